/* Private to protocol.c and warmup.c: one sample, and what comes before the first that counts. */
#ifndef LAP_MEASURE_PROTOCOL_INTERNAL_H
#define LAP_MEASURE_PROTOCOL_INTERNAL_H

#include "measure/protocol.h"

typedef enum lap_span_fault {
    LAP_SPAN_GOOD = 0,
    LAP_SPAN_BAD,       /* a stamp was missing, zero or reversed */
    LAP_SPAN_IMPOSSIBLE /* longer than the wall span around it */
} lap_span_fault;

/* One sample of so many passes; sample->device_s is absent with a fault. */
lap_status lap_latency_sample(lap_latency_run *run, size_t passes, lap_sample *sample,
                              lap_span_fault *fault, lap_error *err);

bool lap_latency_stopped(const lap_latency_options *options);
void lap_latency_tell(const lap_latency_options *options, const char *what, size_t done,
                      size_t total);

/* Burn-in and warm-up as the options say. */
lap_status lap_latency_warm_up(lap_latency_run *run, lap_error *err);
/* Set out->passes from a few samples. */
lap_status lap_latency_calibrate(lap_latency_run *run, double resolution_s, lap_error *err);

#endif
