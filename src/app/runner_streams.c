/* End-to-end throughput and several queues at once. Plans are verified before and after, as
 * everywhere; what does not fit or is not there becomes a reason in the row, not its failure. */
#include "app/runner_internal.h"

#include "measure/pipeline.h"
#include "measure/streams.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct plan_set {
    lap_case_run *run;
    uint64_t batch;
    size_t count;
    bool own_queues;
    lap_plan *plans[LAP_MAX_STREAMS];
    lap_queue *queues[LAP_MAX_STREAMS];
    float *logits[LAP_MAX_STREAMS];
} plan_set;

static void set_close(plan_set *set) {
    for (size_t i = 0; i < set->count; i++) {
        lap_plan_free(set->plans[i]);
        free(set->logits[i]);
    }
    for (size_t i = 0; i < set->count; i++)
        lap_queue_free(set->queues[i]);
}

static lap_status verify_one(plan_set *set, size_t i, lap_error *err) {
    lap_runner *runner = set->run->runner;
    if (runner->config->verify.mode == LAP_VERIFY_OFF) return LAP_OK;
    lap_check_report report = {.mode = set->run->report.mode};
    return lap_check_logits(set->plans[i], runner->net, &runner->expected, set->batch,
                            set->run->c->precision, &set->logits[i], &report, err);
}

static lap_status set_open(plan_set *set, lap_error *err) {
    for (size_t i = 0; i < set->count; i++) {
        if (set->own_queues) {
            lap_session **session = &set->run->session;
            if (!*session) LAP_TRY(run_open(set->run, err));
            LAP_TRY(lap_queue_new((*session)->device, &set->queues[i], err));
        }
        LAP_TRY(run_make_plan(set->run, set->batch, set->queues[i], &set->plans[i], err));
        LAP_TRY(verify_one(set, i, err));
    }
    return LAP_OK;
}

static lap_status set_unchanged(plan_set *set, lap_error *err) {
    for (size_t i = 0; i < set->count; i++) {
        if (!set->logits[i]) continue;
        lap_check_report report = {.mode = set->run->report.mode};
        LAP_TRY(lap_check_unchanged(set->plans[i], set->run->runner->net, set->batch,
                                    set->logits[i], &report, err));
    }
    return LAP_OK;
}

/* Failures that are about this measurement only. */
static bool is_local(lap_status status) {
    return status == LAP_E_OOM || status == LAP_E_NOMEM || status == LAP_E_LAUNCH ||
           status == LAP_E_UNSUPPORTED || status == LAP_E_TIMER;
}

/* A wrong result fails the row, whoever found it. */
static void note_wrong(lap_case_run *run, lap_status status, const char *what, lap_error *err) {
    if (status != LAP_E_VERIFY) return;
    lap_error_prefix(err, "%s: ", what);
    run->row->verified.passed = false;
    snprintf(run->row->verified.first_wrong, sizeof run->row->verified.first_wrong, "%s", what);
}

static lap_status pipeline_set(plan_set *set, lap_error *err) {
    lap_case_run *run = set->run;
    const lap_config *config = run->runner->config;
    const lap_expected *expected = &run->runner->expected;
    LAP_TRY(set_open(set, err));
    size_t bytes = lap_plan_input_bytes(set->plans[0]);
    void *packed = malloc(bytes);
    if (!packed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for an input of %zu bytes", bytes);
    lap_pipeline_job job = {.plans = {set->plans[0], set->plans[1]},
                            .input = packed,
                            .batch = set->batch,
                            .batches = config->throughput.batches,
                            .max_seconds = config->throughput.max_seconds / 3,
                            .interrupted = run_interrupted,
                            .context = run};
    lap_status status =
        lap_plan_pack_input(set->plans[0], expected->images, expected->count, packed, err);
    if (status == LAP_OK) status = lap_pipeline_measure(&job, &run->row->pipeline, err);
    free(packed);
    return status == LAP_OK ? set_unchanged(set, err) : status;
}

lap_status run_pipeline(lap_case_run *run, lap_error *err) {
    lap_pipeline *out = &run->row->pipeline;
    lap_meter_step(run->runner->meter, "%s: pipeline", run->label);
    plan_set set = {.run = run, .batch = run->row->throughput.batch, .count = 2};
    lap_error detail = {0};
    if (set.batch == 0) { /* none within the latency limit */
        lap_row_note(run->row, "no pipeline: it is measured at the throughput's batch");
        return LAP_OK;
    }
    lap_status status = pipeline_set(&set, &detail);
    set_close(&set);
    if (status == LAP_E_OOM || status == LAP_E_LAUNCH) run_drop_session(run);
    if (is_local(status)) {
        *out = (lap_pipeline){.has = true, .batch = set.batch};
        lap_error_text(&detail, out->reason, sizeof out->reason);
        return LAP_OK;
    }
    if (status != LAP_OK) *out = (lap_pipeline){0};
    note_wrong(run, status, "pipeline", &detail);
    if (status != LAP_OK && err) *err = detail;
    return status;
}

static lap_status one_point(plan_set *set, lap_stream_point *point, lap_error *err) {
    const lap_config *config = set->run->runner->config;
    LAP_TRY(set_open(set, err));
    lap_streams_job job = {.plans = set->plans,
                           .count = set->count,
                           .batch = set->batch,
                           .batches = config->throughput.batches,
                           .max_seconds = config->throughput.max_seconds,
                           .interrupted = run_interrupted,
                           .context = set->run};
    LAP_TRY(lap_streams_measure(&job, point, err));
    return set_unchanged(set, err);
}

static lap_status add_point(lap_case_run *run, uint64_t streams, lap_error *err) {
    char what[40];
    snprintf(what, sizeof what, "%" PRIu64 " queues", streams);
    lap_meter_step(run->runner->meter, "%s: %s", run->label, what);
    plan_set set = {
        .run = run, .batch = run->c->batch, .count = (size_t)streams, .own_queues = true};
    lap_stream_point point = {0};
    lap_error detail = {0};
    lap_status status = one_point(&set, &point, &detail);
    set_close(&set);
    if (status == LAP_E_OOM || status == LAP_E_LAUNCH) run_drop_session(run);
    if (status != LAP_OK && !is_local(status)) {
        note_wrong(run, status, what, &detail);
        if (err) *err = detail;
        return status;
    }
    if (status != LAP_OK) {
        point = (lap_stream_point){.streams = streams, .batch = set.batch, .status = status};
        lap_error_text(&detail, point.reason, sizeof point.reason);
    }
    run->row->streams.points[run->row->streams.count++] = point;
    return LAP_OK;
}

lap_status run_streams(lap_case_run *run, lap_error *err) {
    const lap_config_list *list = &run->runner->config->throughput.streams;
    if (list->count == 1 && list->values[0] == 1) return LAP_OK;
    for (size_t i = 0; i < list->count; i++)
        LAP_TRY(add_point(run, list->values[i], err));
    return LAP_OK;
}
