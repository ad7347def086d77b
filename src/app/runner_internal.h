/* Private to the runner's files: the state of one case. */
#ifndef LAP_APP_RUNNER_INTERNAL_H
#define LAP_APP_RUNNER_INTERNAL_H

#include "app/runner.h"
#include "measure/limits.h"
#include "measure/protocol.h"
#include "measure/throughput.h"

typedef struct lap_case_run {
    lap_runner *runner;
    const lap_run_case *c;
    lap_row *row;
    char label[96]; /* for progress: "cuda:0 batch 1" */
    lap_plan_options options;
    lap_session *session;
    lap_plan *plan;
    lap_timing timing;
    lap_check_report report;
    float *logits; /* verified logits, NULL when verification is off */
} lap_case_run;

/* LAP_E_OOM when the plan needs more memory than may safely be taken; batch 1 is always tried. */
lap_status run_fits(lap_case_run *run, const lap_plan *plan, lap_error *err);

/* runner_layers.c: device time of every layer of run->plan. */
lap_status run_layers(lap_case_run *run, lap_error *err);

/* runner_throughput.c: batch search and final measurement; run->plan must be gone by then. */
lap_status run_throughput(lap_case_run *run, lap_error *err);

#endif
