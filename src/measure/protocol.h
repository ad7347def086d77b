/* The latency protocol: warm up, then time repetitions one by one, keeping every sample.
 *
 * Each repetition: A = host clock, event D, the workload is enqueued, event E, B = host clock, wait
 * for the queue, C = host clock. Spans: device E - D, wall C - A, submission B - A. Inputs are
 * resident and kernels are built before; nothing is copied inside a repetition, on any backend.
 *
 * The device span is believed unless it is disproved: a missing or reversed stamp, a device span
 * longer than the wall span around it, or one so much shorter that the difference cannot be
 * overhead. Then the wall spans are the row's latency and clock_reason says why.
 */
#ifndef LAP_MEASURE_PROTOCOL_H
#define LAP_MEASURE_PROTOCOL_H

#include "measure/result.h"
#include "measure/timing.h"

/* What is measured: run enqueues one unit of work and returns without waiting. */
typedef struct lap_workload {
    lap_status (*run)(void *context, lap_error *err);
    void *context;
} lap_workload;

typedef struct lap_latency_options {
    size_t warmup_count;   /* warm-up ends when both count and seconds are reached */
    double warmup_seconds; /* 0 for none */
    size_t repetitions;    /* at least 1 */
    double max_seconds;    /* timed part ends early after this (at least one sample); 0: no limit;
                              the warm-up is bounded by the same time */
    bool (*interrupted)(void *context); /* NULL: never */
    /* Called after each warm-up run and repetition; NULL for none. */
    void (*progress)(void *context, const char *what, size_t done, size_t total);
    void *context; /* of interrupted and progress */
} lap_latency_options;

/* Measure. out is overwritten (lap_latency_free it afterwards).
 * Errors: LAP_E_ARG; LAP_E_INTERRUPTED with what was measured so far in out, statistics included;
 * anything from the workload or the queue, with out empty. */
lap_status lap_measure_latency(const lap_workload *workload, const lap_timing *timing,
                               const lap_latency_options *options, lap_latency *out,
                               lap_error *err);

/* Host time of one run to completion: the first inference, a cold cost. */
lap_status lap_measure_once(const lap_workload *workload, const lap_timing *timing, double *wall_s,
                            lap_error *err);

/* count runs back to back, one wait at the end: host seconds for all. The throughput measurement;
 * waits in between only so often that the queue cannot grow without bound. interrupted may be NULL.
 * Errors: LAP_E_TIMER if the clock shows no time; LAP_E_INTERRUPTED; the workload's. */
lap_status lap_measure_batches(const lap_workload *workload, const lap_timing *timing,
                               uint64_t count, bool (*interrupted)(void *context), void *context,
                               double *seconds, lap_error *err);

#endif
