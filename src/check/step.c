/* A step of a plan, its arrays, and what it should give by src/ref. */
#include "check/step.h"

#include "ref/ref.h"

#include <stdlib.h>

check_step check_describe(const lap_plan *plan, int step, const lap_weights *weights,
                          lap_precision precision) {
    check_step io = {.op = lap_plan_op(plan, step),
                     .partner = lap_plan_partner(plan, step),
                     .means = lap_plan_means(plan, step),
                     .fusion = lap_plan_fusion(plan, step),
                     .name = lap_plan_step_name(plan, step),
                     .kernel = lap_plan_row(plan, step)->id,
                     .out = lap_plan_output(plan, step),
                     .precision = precision,
                     .error_factor = lap_plan_row(plan, step)->error_factor,
                     .logits = step == lap_plan_step_count(plan) - 1};
    bool scaled = io.fusion == LAP_FUSE_SCALE;
    const lap_op *scale = scaled ? io.partner : io.op;
    io.in = scale->input;
    io.in_shape = scale->in;
    io.second = io.fusion == LAP_FUSE_DOWNSAMPLE ? io.partner->input : io.op->residual;
    io.second_shape = io.fusion == LAP_FUSE_DOWNSAMPLE ? io.partner->in : io.op->out;
    io.third = -1;
    io.third_shape = (lap_tensor){scale->out.c, 1, 1, scale->out.cs};
    if (io.op->kind == LAP_OP_SCALE) io.second_shape = io.third_shape;
    if (scaled) io.third = io.partner->residual;
    io.out_shape = lap_fusion_partner_writes(io.fusion) ? io.partner->out : io.op->out;
    io.extra = io.means ? io.means->output : -1;
    io.extra_shape = io.means ? io.means->out : io.op->out;
    io.w = &weights->ops[lap_plan_op_index(plan, io.op)];
    if (io.partner) io.partner_w = &weights->ops[lap_plan_op_index(plan, io.partner)];
    return io;
}

void check_arrays_free(check_arrays *a) {
    free(a->in);
    free(a->second);
    free(a->third);
    free(a->out);
    free(a->again);
    free(a->extra);
    free(a->extra_again);
    free(a->in64);
    free(a->second64);
    free(a->third64);
    free(a->want);
    free(a->bound);
    free(a->middle);
    free(a->middle_bound);
    free(a->extra_want);
    free(a->extra_bound);
}

lap_status check_arrays_new(const check_step *io, uint64_t n, check_arrays *a, lap_error *err) {
    size_t in = (size_t)(n * lap_tensor_logical(&io->in_shape));
    size_t second = (size_t)(n * lap_tensor_logical(&io->second_shape));
    size_t out = (size_t)(n * lap_tensor_logical(&io->out_shape));
    /* Between fused ops: the first op's output, or the partner's (downsample). */
    const lap_op *between = lap_fusion_partner_first(io->fusion) ? io->partner : io->op;
    size_t middle = (size_t)(n * lap_tensor_logical(&between->out));
    size_t third = (size_t)(n * lap_tensor_logical(&io->third_shape));
    size_t extra = (size_t)(n * lap_tensor_logical(&io->extra_shape));
    *a = (check_arrays){.in = malloc(in * sizeof(float)),
                        .second = malloc(second * sizeof(float)),
                        .third = malloc(third * sizeof(float)),
                        .extra = malloc(extra * sizeof(float)),
                        .extra_again = malloc(extra * sizeof(float)),
                        .third64 = malloc(third * sizeof(double)),
                        .extra_want = malloc(extra * sizeof(double)),
                        .extra_bound = malloc(extra * sizeof(double)),
                        .out = malloc(out * sizeof(float)),
                        .again = malloc(out * sizeof(float)),
                        .in64 = malloc(in * sizeof(double)),
                        .second64 = malloc(second * sizeof(double)),
                        .want = malloc(out * sizeof(double)),
                        .bound = malloc(out * sizeof(double)),
                        .middle = malloc(middle * sizeof(double)),
                        .middle_bound = malloc(middle * sizeof(double))};
    if (a->in && a->second && a->out && a->again && a->in64 && a->second64 && a->want && a->bound &&
        a->middle && a->middle_bound && a->third && a->extra && a->extra_again && a->third64 &&
        a->extra_want && a->extra_bound)
        return LAP_OK;
    check_arrays_free(a);
    return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for its check", io->name);
}

lap_status check_reference(const check_step *io, int n, const check_arrays *a, lap_error *err) {
    switch (io->fusion) {
    case LAP_FUSE_NONE:
        return lap_ref_op(io->op, n, a->in64, io->second >= 0 ? a->second64 : NULL, io->w, a->want,
                          a->bound, err);
    case LAP_FUSE_DOWNSAMPLE: {
        LAP_TRY(lap_ref_op(io->partner, n, a->second64, NULL, io->partner_w, a->middle,
                           a->middle_bound, err));
        LAP_TRY(lap_ref_op(io->op, n, a->in64, a->middle, io->w, a->want, a->bound, err));
        size_t count = (size_t)n * (size_t)lap_tensor_logical(&io->out_shape);
        for (size_t i = 0; i < count; i++)
            a->bound[i] += a->middle_bound[i];
        return LAP_OK;
    }
    case LAP_FUSE_MAXPOOL:
        LAP_TRY(lap_ref_op(io->op, n, a->in64, NULL, io->w, a->middle, a->middle_bound, err));
        /* The maximum is off by at most the largest error in the window. */
        LAP_TRY(lap_ref_op(io->partner, n, a->middle_bound, NULL, NULL, a->bound, NULL, err));
        return lap_ref_op(io->partner, n, a->middle, NULL, NULL, a->want, NULL, err);
    case LAP_FUSE_POOL:
        LAP_TRY(lap_ref_op(io->op, n, a->in64, NULL, io->w, a->want, a->bound, err));
        /* A mean is off by at most the mean of the errors, and by its own. */
        LAP_TRY(lap_ref_op(io->partner, n, a->bound, NULL, NULL, a->extra_bound, NULL, err));
        return lap_ref_op(io->partner, n, a->want, NULL, NULL, a->extra_want, NULL, err);
    case LAP_FUSE_SCALE:
        LAP_TRY(lap_ref_op(io->partner, n, a->in64, a->third64, NULL, a->middle, NULL, err));
        return lap_ref_op(io->op, n, a->middle, io->second >= 0 ? a->second64 : NULL, io->w,
                          a->want, a->bound, err);
    case LAP_FUSE_EXPAND:
        LAP_TRY(lap_ref_op(io->op, n, a->in64, NULL, io->w, a->middle, a->middle_bound, err));
        LAP_TRY(lap_ref_op(io->partner, n, a->middle_bound, NULL, io->partner_w, a->want, a->bound,
                           err));
        LAP_TRY(lap_ref_op(io->means, n, a->bound, NULL, NULL, a->extra_bound, NULL, err));
        LAP_TRY(lap_ref_op(io->partner, n, a->middle, NULL, io->partner_w, a->want, NULL, err));
        return lap_ref_op(io->means, n, a->want, NULL, NULL, a->extra_want, NULL, err);
    case LAP_FUSE_EXCITE:
    case LAP_FUSE_FC:
        LAP_TRY(lap_ref_op(io->op, n, a->in64, NULL, io->w->w ? io->w : NULL, a->middle,
                           a->middle_bound, err));
        LAP_TRY(lap_ref_op(io->partner, n, a->middle_bound, NULL, io->partner_w, a->want, a->bound,
                           err));
        return lap_ref_op(io->partner, n, a->middle, NULL, io->partner_w, a->want, NULL, err);
    case LAP_FUSE_COUNT:
        break;
    }
    return LAP_FAIL(err, LAP_E_INTERNAL, "%s: unknown fusion %d", io->name, (int)io->fusion);
}
