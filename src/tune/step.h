/* One step of a network on its own: the smallest network in which the step has all it reads, so
 * that candidates for it can be checked and timed without the rest. */
#ifndef LAP_TUNE_STEP_H
#define LAP_TUNE_STEP_H

#include "check/check.h"
#include "measure/stats.h"
#include "measure/timing.h"
#include "tune/space.h"

/* Names a step of a network: the op, how it is fused, and with which other op (-1: none). */
typedef struct lap_step_ref {
    int op, partner;
    lap_fusion fusion;
} lap_step_ref;

typedef struct lap_tune_step {
    lap_net *net; /* what makes the step's inputs, the step, and something behind it */
    lap_weights *weights;
    float *images; /* two, random, NCHW */
    int index;     /* the step in a plan of net */
    bool unfused;
    char name[48]; /* of the op */
    lap_fusion fusion;
} lap_tune_step;

/* LAP_E_UNSUPPORTED when the step's inputs cannot be made with few ops. */
lap_status lap_tune_step_new(const lap_net *net, const lap_step_ref *ref, lap_tune_step *out,
                             lap_error *err);
void lap_tune_step_free(lap_tune_step *step);

/* Plan options that run candidate in this step; both must outlive the plan. NULL: the default. */
typedef struct lap_forced {
    const lap_tune_step *step;
    const lap_candidate *candidate;
} lap_forced;
lap_plan_options lap_tune_step_options(const lap_forced *forced, lap_precision precision,
                                       uint64_t batch);

/* A candidate ready to be timed. */
typedef struct lap_bench {
    lap_forced forced;
    lap_plan *plan;
    lap_graph *graph; /* the step, `repeats` times; NULL where the device has none */
    uint64_t repeats;
    double best_s, median_s; /* one run of the step */
} lap_bench;

/* Build, run once, and find out how often it must be repeated for `sample_s` seconds. On failure
 * everything is given back; LAP_E_UNSUPPORTED when the built kernels do not fit their limits. */
lap_status lap_bench_open(lap_bench *bench, lap_session *session, const lap_timing *timing,
                          lap_precision precision, uint64_t batch, double sample_s, lap_error *err);
void lap_bench_close(lap_bench *bench);

/* Time all of them in turn, `rounds` times each. */
lap_status lap_bench_time(lap_bench *benches, size_t count, lap_session *session,
                          const lap_timing *timing, int rounds, lap_error *err);

#endif
