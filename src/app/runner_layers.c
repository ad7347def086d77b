/* The layer table: every layer run alone between two events, several times, the median kept. The
 * sum is more than the whole pass where launches overlap, and the row says so by having both. */
#include "app/runner_internal.h"

#include <stdio.h>

enum { WARMUP = 2, REPETITIONS = 11 };

/* *has: the stamps were good. Only they may be missing; the run itself must not fail. */
static lap_status one(lap_case_run *run, int step, double *seconds, bool *has, lap_error *err) {
    LAP_TRY(run->timing.before(run->timing.context, err));
    LAP_TRY(lap_plan_run_step(run->plan, step, err));
    LAP_TRY(run->timing.after(run->timing.context, err));
    LAP_TRY(run->timing.finish(run->timing.context, err));
    lap_status status = run->timing.elapsed(run->timing.context, seconds, err);
    *has = status == LAP_OK;
    return status == LAP_E_TIMER ? LAP_OK : status;
}

static lap_status time_layer(lap_case_run *run, int step, lap_optional *out, lap_error *err) {
    double samples[REPETITIONS], ignored;
    for (int i = 0; i < WARMUP + REPETITIONS; i++) {
        double *to = i < WARMUP ? &ignored : &samples[i - WARMUP];
        bool has;
        LAP_TRY(one(run, step, to, &has, err));
        if (!has) return LAP_OK; /* absent */
    }
    lap_stats stats;
    LAP_TRY(lap_stats_compute(samples, REPETITIONS, &stats, err));
    *out = stats.p50;
    return LAP_OK;
}

/* Least bytes of a pair: what it reads and writes in all, without the tensor in between. */
static uint64_t fused_bytes(const lap_case_run *run, int step) {
    const lap_op *op = lap_plan_op(run->plan, step), *partner = lap_plan_partner(run->plan, step);
    uint64_t n = run->c->batch, between = 0;
    /* The tensor in between was counted once as written and once as read. */
    if (lap_plan_fusion(run->plan, step) == LAP_FUSE_DOWNSAMPLE)
        between = lap_tensor_logical(&partner->out);
    else
        between = lap_tensor_logical(&op->out);
    return lap_op_bytes(op, n, 4) + lap_op_bytes(partner, n, 4) - 2 * 4 * n * between;
}

lap_status run_layers(lap_case_run *run, lap_error *err) {
    int steps = lap_plan_step_count(run->plan);
    lap_meter_step(run->runner->meter, "%s: layers", run->label);
    for (int i = 0; i < steps; i++) {
        const lap_op *op = lap_plan_op(run->plan, i), *partner = lap_plan_partner(run->plan, i);
        lap_meter_progress(run->runner->meter, op->name, (size_t)i, (size_t)steps);
        if (run->runner->interrupted && run->runner->interrupted(NULL))
            return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted in the layer table");
        lap_layer layer = {.macs = lap_op_macs(op),
                           .flops = lap_op_flops(op),
                           .bytes = lap_op_bytes(op, run->c->batch, 4)};
        if (partner) {
            layer.macs += lap_op_macs(partner);
            layer.flops += lap_op_flops(partner);
            layer.bytes = fused_bytes(run, i);
        }
        snprintf(layer.name, sizeof layer.name, "%.47s", lap_plan_step_name(run->plan, i));
        snprintf(layer.kind, sizeof layer.kind, "%s", lap_op_kind_name(op->kind));
        snprintf(layer.kernel, sizeof layer.kernel, "%s", lap_plan_row(run->plan, i)->id);
        LAP_TRY(time_layer(run, i, &layer.device_s, err));
        if (!lap_row_add_layer(run->row, &layer))
            return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the layer table");
    }
    return LAP_OK;
}
