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
    double burn_in_seconds; /* runs before the warm-up, for clocks and heat; 0 for none */
    bool warmup_auto;       /* warm up until the spans are steady (see lap_steady) */
    size_t warmup_count;   /* warm-up ends when both count and seconds are reached; not with auto */
    double warmup_seconds; /* 0 for none */
    size_t repetitions;    /* at least 1; with a noise target the most samples */
    double noise_target;   /* > 0: samples are taken until the standard error of the mean is at
                              most this share of it */
    size_t min_samples;    /* ... but at least so many */
    double max_seconds;    /* timed part ends early after this (at least one sample); 0: no limit;
                              the warm-up is bounded by the same time */
    size_t passes;         /* runs of the workload in one sample; 0 is 1 */
    bool passes_auto;      /* as many as the timer needs; runs a few samples to find out */
    double
        rewarm_seconds; /* lap_latency_block runs untimed so long first, if not the first block */
    double tick_s;      /* resolution of device spans as measured; 0: as the timing claims */
    lap_optional overhead_s;  /* wall span of an empty kernel: how much longer a wall span may be */
    lap_telemetry *telemetry; /* told when timed blocks begin and end; NULL for none */
    bool (*interrupted)(void *context); /* NULL: never */
    /* Called after each warm-up run and repetition; NULL for none. */
    void (*progress)(void *context, const char *what, size_t done, size_t total);
    void *context; /* of interrupted and progress */
    /* Called before every timed repetition, outside of it, and done on return; NULL for none. */
    lap_status (*prepare)(void *prepare_context, lap_error *err);
    void *prepare_context;
} lap_latency_options;

/* Measure. out is overwritten (lap_latency_free it afterwards).
 * Errors: LAP_E_ARG; LAP_E_INTERRUPTED with what was measured so far in out, statistics included;
 * anything from the workload or the queue, with out empty. */
lap_status lap_measure_latency(const lap_workload *workload, const lap_timing *timing,
                               const lap_latency_options *options, lap_latency *out,
                               lap_error *err);

/* The same in parts, so that several rows can take turns: begin (burn-in, warm-up, passes), blocks
 * until done, end. What workload and timing point to must live until end; end is called once after
 * begin, with the first status that was not LAP_OK, which it returns. */
typedef struct lap_latency_run {
    lap_workload workload;
    lap_timing timing;
    lap_latency_options options;
    lap_latency *out;
    size_t capacity, next_check;
    double origin; /* of at_s */
} lap_latency_run;

lap_status lap_latency_begin(lap_latency_run *run, const lap_workload *workload,
                             const lap_timing *timing, const lap_latency_options *options,
                             lap_latency *out, lap_error *err);
/* Up to count samples more; *done when the row needs no other block. */
lap_status lap_latency_block(lap_latency_run *run, size_t count, bool *done, lap_error *err);
lap_status lap_latency_end(lap_latency_run *run, lap_status status, lap_error *err);

/* The steadiness test of warmup = auto, on n spans in order and the host time at the end of each.
 * The last window is the last LAP_STEADY_RUNS runs or LAP_STEADY_S seconds, whichever is more; the
 * window before it likewise. Steady: their medians differ by no more than 1 %, or than half of the
 * scaled MAD within them; and there is no trend over both (|rank correlation| <= 0.6), or one of
 * less than 0.25 % from window to window. *typical is the median of the last window.
 * False also while there are not two windows, and on a lack of memory. */
enum { LAP_STEADY_RUNS = 10, LAP_WARMUP_MOST = 20000 };
#define LAP_STEADY_S 0.1
bool lap_steady(const double *spans, const double *ends, size_t n, double *typical);

/* Passes for one sample, from the median and spread of a few single-pass spans and the timer's
 * resolution: 1 unless a pass is shorter than 100 x the resolution, or the spread is below the
 * resolution and the pass shorter than 1000 x; at most LAP_PASSES_MOST. reason says why, "" for 1.
 */
enum { LAP_PASSES_MOST = 1000, LAP_PILOT_SAMPLES = 10 };
size_t lap_passes_needed(double median_s, double spread_s, double resolution_s, char *reason,
                         size_t size);

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
