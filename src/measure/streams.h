/* Several queues at once, each with a plan and activations of its own: images per second, and how
 * long a batch takes while the others run. */
#ifndef LAP_MEASURE_STREAMS_H
#define LAP_MEASURE_STREAMS_H

#include "measure/extras.h"
#include "plan/plan.h"

enum { LAP_MAX_STREAMS = 64 };

typedef struct lap_streams_job {
    lap_plan *const *plans;  /* one for each queue; bound, verified, no two on one queue */
    size_t count;            /* 1 to LAP_MAX_STREAMS */
    uint64_t batch, batches; /* batches in all */
    double max_seconds;      /* 0: no limit */
    bool (*interrupted)(void *context); /* NULL: never */
    void *context;
    double (*now)(void); /* NULL: lap_clock_now */
} lap_streams_job;

/* The queues take turns: when it is a queue's turn, its batch is waited for and the next one
 * enqueued. A batch's latency is from before its enqueueing to the return of its wait, so it may
 * include time in which it was done and another one was waited for. Fills everything but status and
 * reason. Errors: the device's; LAP_E_TIMER if the clock shows no time; LAP_E_INTERRUPTED. */
lap_status lap_streams_measure(const lap_streams_job *job, lap_stream_point *out, lap_error *err);

#endif
