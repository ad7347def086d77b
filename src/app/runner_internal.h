/* Private to the runner's files: the state of one case. */
#ifndef LAP_APP_RUNNER_INTERNAL_H
#define LAP_APP_RUNNER_INTERNAL_H

#include "app/runner.h"
#include "measure/flush.h"
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
    lap_flush *flush; /* NULL with a hot cache */
    lap_check_report report;
    float *logits; /* verified logits, NULL when verification is off */
    lap_latency_options latency_options;
    lap_latency_run latency;
    lap_telemetry *telemetry;
    double build_s;    /* in building plans after the first */
    lap_status status; /* the first stage that failed ended the case with this */
    lap_error err;
} lap_case_run;

/* The network, weights and references of a case: in the runner, kept while they fit. */
lap_status run_prepare(lap_runner *runner, const lap_run_case *c, lap_error *err);

/* A case in stages, each called once and in this order; runner_group.c lets several cases take
 * turns in the second. A stage returns the status that ends the case; run_stage keeps it and does
 * nothing for a case that has ended. run_close frees everything and completes the row. */
typedef lap_status (*lap_case_stage)(lap_case_run *run, lap_error *err);
void run_init(lap_case_run *run, lap_runner *runner, const lap_run_case *c, lap_row *row);
void run_stage(lap_case_run *run, lap_case_stage stage);
void run_tell(const lap_runner *runner, lap_runner_event event, const lap_run_case *c,
              lap_row *row);
/* Whether what is left is for another process (leave_when_lost). */
bool run_leaves(const lap_runner *runner);
void run_tell_so_far(const lap_case_run *run);             /* unless the case has ended */
lap_status run_setup(lap_case_run *run, lap_error *err);   /* to the verified first inference */
lap_status run_latency(lap_case_run *run, lap_error *err); /* all of the next three */
lap_status run_latency_begin(lap_case_run *run, lap_error *err);
/* What begin does before the warm-up: fills latency_options, among others. */
lap_status run_latency_prepare(lap_case_run *run, lap_error *err);
lap_status run_latency_block(lap_case_run *run, size_t samples, bool *done, lap_error *err);
/* Also after a failure of the two before: returns status, or what is worse. */
lap_status run_latency_end(lap_case_run *run, lap_status status, lap_error *err);
lap_status run_rest(lap_case_run *run, lap_error *err); /* layers; frees the plan */
/* runner_throughput.c's, where the case asks for it. */
lap_status run_throughput_if(lap_case_run *run, lap_error *err);
/* Free what the case holds; the row is left as it is. The device's last error, if any. */
lap_status run_release(lap_case_run *run, lap_error *err);
void run_close(lap_case_run *run);
/* run->plan and its timing. */
void run_finish_plan(lap_case_run *run);
/* The network's pass on run->plan. */
lap_workload run_workload(lap_case_run *run);
/* Untimed runs, in seconds, of a device that stood idle. */
double run_rewarm_seconds(const lap_runner *runner);
/* Open run->session, which looks for built kernels in the runner's cache. */
lap_status run_open(lap_case_run *run, lap_error *err);

/* LAP_E_OOM when the plan needs more memory than may safely be taken, or more in one piece than the
 * device says that it gives; batch 1 is always tried. */
lap_status run_fits(lap_case_run *run, const lap_plan *plan, uint64_t batch, lap_error *err);

/* runner_layers.c: device time of every layer of run->plan. */
lap_status run_layers(lap_case_run *run, lap_error *err);

/* runner_throughput.c: batch search and final measurement; run->plan must be gone by then. */
lap_status run_throughput(lap_case_run *run, lap_error *err);

/* A plan for a batch, ready to run, on queue (NULL: the session's). *out may be a plan that is to
 * be freed even when it fails. Opens a session if there is none. */
lap_status run_make_plan(lap_case_run *run, uint64_t batch, lap_queue *queue, lap_plan **out,
                         lap_error *err);
/* What went wrong may have taken the context with it: the next plan opens a new session. */
void run_drop_session(lap_case_run *run);
bool run_interrupted(void *run);

/* runner_extras.c. With cache = cold every repetition is prepared by emptying the cache; the row
 * says what was done. */
lap_status run_cache_open(lap_case_run *run, lap_latency_options *options, lap_error *err);
void run_cache_close(lap_case_run *run);
/* Copies of run->plan's input and output. */
lap_status run_copies(lap_case_run *run, lap_error *err);

/* runner_streams.c: at the batch of the throughput, respectively of the row. What does not fit is
 * no error of the row. */
lap_status run_pipeline(lap_case_run *run, lap_error *err);
lap_status run_streams(lap_case_run *run, lap_error *err);

#endif
