/* The layer table. Layers are timed in passes of their own with events between them; these passes
 * are not the row's latency, and their sum is shown beside it. The ceilings that shares are of are
 * measured here too, once per device and driver. */
#include "app/runner_internal.h"

#include "measure/ceilings.h"
#include <stdio.h>
#include <stdlib.h>

enum { WARMUP = 2, REPETITIONS = 11, COLUMNS = REPETITIONS };

/* steps + 1 events, and the spans of all passes: a line for each step and one for the whole. */
typedef struct passes {
    lap_case_run *run;
    size_t steps;
    lap_event **events;
    double *spans; /* [steps + 1][COLUMNS] */
    size_t *good;  /* how many of a line are there */
    size_t gaps;   /* spans without stamps, and why the last one was */
    lap_error gap;
} passes;

static void passes_close(passes *p) {
    for (size_t i = 0; p->events && i <= p->steps; i++)
        lap_event_free(p->events[i]);
    free(p->events);
    free(p->spans);
    free(p->good);
}

static lap_status passes_open(passes *p, lap_error *err) {
    p->steps = (size_t)lap_plan_step_count(p->run->plan);
    p->events = calloc(p->steps + 1, sizeof(lap_event *));
    p->spans = calloc((p->steps + 1) * COLUMNS, sizeof *p->spans);
    p->good = calloc(p->steps + 1, sizeof *p->good);
    if (!p->events || !p->spans || !p->good)
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the layer table");
    for (size_t i = 0; i <= p->steps; i++)
        LAP_TRY(lap_event_new(p->run->session->device, &p->events[i], err));
    return LAP_OK;
}

/* A missing or zero stamp leaves a gap in one line; every other failure ends the table. */
static lap_status keep_span(passes *p, size_t line, size_t first, size_t last, lap_error *err) {
    double seconds;
    lap_error detail = {0};
    lap_status status = lap_event_elapsed(p->events[first], p->events[last], &seconds, &detail);
    if (status == LAP_E_TIMER) {
        p->gaps++;
        p->gap = detail;
        return LAP_OK;
    }
    if (status != LAP_OK && err) *err = detail;
    if (status == LAP_OK) p->spans[line * COLUMNS + p->good[line]++] = seconds;
    return status;
}

static lap_status one_pass(passes *p, bool keep, lap_error *err) {
    lap_queue *queue = lap_plan_queue(p->run->plan);
    LAP_TRY(lap_event_record(p->events[0], queue, err));
    for (size_t i = 0; i < p->steps; i++) {
        LAP_TRY(lap_plan_run_step(p->run->plan, (int)i, err));
        LAP_TRY(lap_event_record(p->events[i + 1], queue, err));
    }
    LAP_TRY(lap_queue_finish(queue, err));
    for (size_t i = 0; keep && i < p->steps; i++)
        LAP_TRY(keep_span(p, i, i, i + 1, err));
    return keep ? keep_span(p, p->steps, 0, p->steps, err) : LAP_OK;
}

/* The median of a line; absent where most stamps were bad. */
static lap_status median(const passes *p, size_t line, lap_optional *out, lap_error *err) {
    *out = lap_none();
    if (p->good[line] <= REPETITIONS / 2) return LAP_OK;
    lap_stats stats;
    LAP_TRY(lap_stats_compute(&p->spans[line * COLUMNS], p->good[line], &stats, err));
    *out = stats.p50;
    return LAP_OK;
}

/* Of a stored activation or weight. */
static unsigned element_bytes(const lap_case_run *run) {
    return run->c->precision == LAP_FP16 || run->c->precision == LAP_BF16 ? 2 : 4;
}

/* Least bytes of a pair: what it reads and writes in all, without the tensor in between. */
static uint64_t fused_bytes(const lap_case_run *run, int step) {
    const lap_op *op = lap_plan_op(run->plan, step), *partner = lap_plan_partner(run->plan, step);
    uint64_t n = run->c->batch;
    /* The tensor in between was counted once as written and once as read; one that others read as
     * well is written all the same. */
    lap_fusion fusion = lap_plan_fusion(run->plan, step);
    bool partner_first = lap_fusion_partner_first(fusion);
    uint64_t written = lap_tensor_logical(partner_first ? &partner->out : &op->out);
    uint64_t between = partner_first ? written : lap_op_reads(partner);
    if (fusion != LAP_FUSE_POOL) between += written;
    unsigned bytes = element_bytes(run);
    uint64_t all =
        lap_op_bytes(op, n, bytes) + lap_op_bytes(partner, n, bytes) - bytes * n * between;
    const lap_op *means = lap_plan_means(run->plan, step);
    if (means && means != partner) all += bytes * n * lap_tensor_logical(&means->out);
    return all;
}

static lap_status add_layer(const passes *p, int step, lap_error *err) {
    const lap_case_run *run = p->run;
    const lap_op *op = lap_plan_op(run->plan, step), *partner = lap_plan_partner(run->plan, step);
    lap_layer layer = {.macs = lap_op_macs(op),
                       .flops = lap_op_flops(op),
                       .bytes = lap_op_bytes(op, run->c->batch, element_bytes(run))};
    if (partner) {
        layer.macs += lap_op_macs(partner);
        layer.flops += lap_op_flops(partner);
        layer.bytes = fused_bytes(run, step);
    }
    const lap_op *means = lap_plan_means(run->plan, step);
    if (means && means != partner) {
        layer.macs += lap_op_macs(means);
        layer.flops += lap_op_flops(means);
    }
    snprintf(layer.name, sizeof layer.name, "%.99s", lap_plan_step_name(run->plan, step));
    snprintf(layer.kind, sizeof layer.kind, "%s", lap_op_kind_name(op->kind));
    snprintf(layer.kernel, sizeof layer.kernel, "%s", lap_plan_row(run->plan, step)->id);
    LAP_TRY(median(p, (size_t)step, &layer.device_s, err));
    if (!lap_row_add_layer(run->row, &layer))
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the layer table");
    lap_optional *sum = &run->row->layer_sum.sum_s;
    bool whole = step == 0 || sum->has; /* a sum without one of its layers is none */
    *sum = whole && layer.device_s.has ? lap_some(sum->value + layer.device_s.value) : lap_none();
    return LAP_OK;
}

static lap_status time_layers(passes *p, lap_error *err) {
    lap_case_run *run = p->run;
    LAP_TRY(passes_open(p, err));
    for (size_t i = 0; i < WARMUP + REPETITIONS; i++) {
        lap_meter_progress(run->runner->meter, "passes", i, WARMUP + REPETITIONS);
        if (run_interrupted(run))
            return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted in the layer table");
        LAP_TRY(one_pass(p, i >= WARMUP, err));
    }
    if (p->gaps)
        lap_row_note(run->row, "layers: %zu spans have no time: %s", p->gaps, p->gap.message);
    for (size_t i = 0; i < p->steps; i++)
        LAP_TRY(add_layer(p, (int)i, err));
    return median(p, p->steps, &run->row->layer_sum.pass_s, err);
}

lap_status run_layers(lap_case_run *run, lap_error *err) {
    lap_meter_step(run->runner->meter, "%s: layers", run->label);
    passes p = {.run = run};
    lap_status status = time_layers(&p, err);
    passes_close(&p);
    LAP_TRY(status);
    char folder[1024];
    bool has_folder = lap_ceilings_folder(folder, sizeof folder);
    lap_meter_step(run->runner->meter, "%s: ceilings", run->label);
    return lap_ceilings_get(run->session->queue, has_folder ? folder : NULL, &run->row->ceilings,
                            err);
}
