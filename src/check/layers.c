/* The exact and the real check: every op of a plan alone, against src/ref. */
#include "check/check.h"
#include "check/compare.h"

#include "base/half.h"
#include "base/rng.h"
#include "ref/ref.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one step reads and writes. The second input is the residual or SCALE's factors, or the input
 * of a fused downsample convolution; the third is what else a pair reads. */
typedef struct step_io {
    const lap_op *op, *partner, *means;
    lap_fusion fusion;
    const char *name, *kernel;
    /* Tensors; -1 where there is none. `extra` is a second output. */
    int in, second, third, out, extra;
    lap_tensor in_shape, second_shape, third_shape, out_shape, extra_shape;
    const lap_op_weights *w, *partner_w;
    lap_precision precision;
    int error_factor; /* the row's */
    bool logits;      /* the step writes the network's output */
} step_io;

typedef struct arrays {
    float *in, *second, *third, *out, *again, *extra, *extra_again;
    double *in64, *second64, *third64, *want, *bound, *middle, *middle_bound;
    double *extra_want, *extra_bound;
} arrays;

static step_io describe(const lap_plan *plan, int step, const lap_weights *weights,
                        lap_precision precision) {
    step_io io = {.op = lap_plan_op(plan, step),
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

static void arrays_free(arrays *a) {
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

static lap_status arrays_new(const step_io *io, uint64_t n, arrays *a, lap_error *err) {
    size_t in = (size_t)(n * lap_tensor_logical(&io->in_shape));
    size_t second = (size_t)(n * lap_tensor_logical(&io->second_shape));
    size_t out = (size_t)(n * lap_tensor_logical(&io->out_shape));
    /* Between fused ops: the first op's output, or the partner's (downsample). */
    const lap_op *between = lap_fusion_partner_first(io->fusion) ? io->partner : io->op;
    size_t middle = (size_t)(n * lap_tensor_logical(&between->out));
    size_t third = (size_t)(n * lap_tensor_logical(&io->third_shape));
    size_t extra = (size_t)(n * lap_tensor_logical(&io->extra_shape));
    *a = (arrays){.in = malloc(in * sizeof(float)),
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
    arrays_free(a);
    return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for its check", io->name);
}

/* What the step should give, and the scale of its rounding error per element. */
static lap_status reference(const step_io *io, int n, const arrays *a, lap_error *err) {
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

static void widen(const float *from, double *to, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

/* An integer in -range..range from the counter-based generator. */
static float small_integer(uint64_t stream, uint64_t index, int range) {
    double u = lap_rng_uniform(0x1A9, stream, index);
    return (float)((int)(u * (2 * range + 1)) - range);
}

/* Average pooling: values that differ, but whose mean over the window is a whole number. */
static void fill_mean_integers(const lap_tensor *t, uint64_t n, uint64_t stream, float *out) {
    size_t pixels = (size_t)t->h * (size_t)t->w, c = (size_t)t->c;
    for (uint64_t i = 0; i < n; i++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t k = 0; k < c; k++) {
                float base = small_integer(stream, i * c + k, 8);
                float swing = p == pixels - 1 && pixels % 2 ? 0.0f : p % 2 ? 3.0f : -3.0f;
                out[(i * pixels + p) * c + k] = base + swing;
            }
}

/* Integers in -range..range for inputs and weights. With 24 bits of fraction 8 keeps every partial
 * sum exact. Storage with 11 bits takes smaller ones, so that the results themselves stay exact. */
static int integer_range(lap_precision precision) {
    return precision == LAP_FP32 || precision == LAP_FP32X3 ? 8 : 2;
}

static void fill_integers(const lap_op *op, uint64_t n, int range, uint64_t stream, float *out) {
    if (op->kind == LAP_OP_AVGPOOL) {
        fill_mean_integers(&op->in, n, stream, out);
        return;
    }
    size_t count = (size_t)(n * lap_tensor_logical(&op->in));
    for (size_t i = 0; i < count; i++)
        out[i] = small_integer(stream, i, range);
}

/* Integer weights for the whole network, shaped like real ones. */
static lap_status integer_weights(const lap_net *net, const lap_weights *like, int range,
                                  lap_weights **out, lap_error *err) {
    lap_weights *w = calloc(1, sizeof *w);
    if (w) w->ops = calloc((size_t)net->op_count, sizeof *w->ops);
    if (!w || !w->ops) {
        free(w);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for integer weights");
    }
    w->op_count = net->op_count;
    for (int i = 0; i < net->op_count; i++) {
        const lap_op_weights *from = &like->ops[i];
        lap_op_weights *to = &w->ops[i];
        if (!from->w) continue;
        *to = (lap_op_weights){.w = malloc(from->w_count * sizeof *to->w),
                               .bias = malloc(from->k * sizeof *to->bias),
                               .w_count = from->w_count,
                               .k = from->k};
        if (!to->w || !to->bias) {
            lap_weights_free(w);
            return LAP_FAIL(err, LAP_E_NOMEM, "no memory for integer weights");
        }
        for (size_t j = 0; j < to->w_count; j++)
            to->w[j] = small_integer(1000 + (uint64_t)i, j, range);
        for (size_t j = 0; j < to->k; j++)
            to->bias[j] = small_integer(2000 + (uint64_t)i, j, range);
    }
    *out = w;
    return LAP_OK;
}

static lap_status wrong(lap_check_report *report, const step_io *io, const char *check,
                        const lap_mismatch *m, lap_error *err) {
    const lap_tensor *t = &io->out_shape;
    size_t c = m->index % (size_t)t->c, pixel = m->index / (size_t)t->c;
    size_t w = pixel % (size_t)t->w, h = pixel / (size_t)t->w % (size_t)t->h;
    size_t n = pixel / ((size_t)t->w * (size_t)t->h);
    snprintf(report->first_wrong, sizeof report->first_wrong, "%s", io->name);
    snprintf(report->detail, sizeof report->detail,
             "%s check of %s (kernel %s): %zu values wrong, first at image %zu, channel %zu, row "
             "%zu, column %zu: got %.9g, expected %.9g, allowed difference %.3g",
             check, io->name, io->kernel, m->count, n, c, h, w, (double)m->got, m->want,
             m->allowed);
    return LAP_FAIL(err, LAP_E_VERIFY, "%s", report->detail);
}

static lap_status wrong_text(lap_check_report *report, const step_io *io, lap_error *err,
                             const char *text) {
    snprintf(report->first_wrong, sizeof report->first_wrong, "%s", io->name);
    snprintf(report->detail, sizeof report->detail, "%s (kernel %s): %s", io->name, io->kernel,
             text);
    return LAP_FAIL(err, LAP_E_VERIFY, "%s", report->detail);
}

/* Poison the output, run the step, read it; the same again must give the same bits. */
static lap_status run_twice(lap_plan *plan, int step, const step_io *io, uint64_t n, arrays *a,
                            lap_check_report *report, lap_error *err) {
    size_t bytes = (size_t)(n * lap_tensor_logical(&io->out_shape)) * sizeof(float);
    float *to[] = {a->out, a->again};
    for (int run = 0; run < 2; run++) {
        LAP_TRY(lap_plan_tensor_poison(plan, io->out, err));
        if (io->extra >= 0) LAP_TRY(lap_plan_tensor_poison(plan, io->extra, err));
        LAP_TRY(lap_plan_run_step(plan, step, err));
        LAP_TRY(lap_plan_tensor_read(plan, io->out, 0, n, to[run], err));
        if (io->extra >= 0)
            LAP_TRY(
                lap_plan_tensor_read(plan, io->extra, 0, n, run ? a->extra_again : a->extra, err));
    }
    size_t extra = (size_t)(n * lap_tensor_logical(&io->extra_shape)) * sizeof(float);
    if (memcmp(a->out, a->again, bytes) != 0 ||
        (io->extra >= 0 && memcmp(a->extra, a->extra_again, extra) != 0))
        return wrong_text(report, io, err, "two runs on the same input differ");
    uint64_t padding, beside = 0;
    LAP_TRY(lap_plan_tensor_padding(plan, io->out, &padding, err));
    if (io->extra >= 0) LAP_TRY(lap_plan_tensor_padding(plan, io->extra, &beside, err));
    if (padding || beside)
        return wrong_text(report, io, err, "padding channels of its output are not zero");
    return LAP_OK;
}

/* The value that storage of the precision gives for an exact one: correctly rounded. */
static double stored_value(const step_io *io, double exact) {
    if (io->logits) return exact;
    if (io->precision == LAP_FP16)
        return (double)lap_half_to_float(lap_half_from_float((float)exact));
    if (io->precision == LAP_BF16)
        return (double)lap_bf16_to_float(lap_bf16_from_float((float)exact));
    return exact;
}

/* Unit roundoff of the operands. */
static double roundoff(lap_precision precision) {
    switch (precision) {
    case LAP_TF32:
    case LAP_FP16:
        return ldexp(1, -11);
    case LAP_BF16:
        return ldexp(1, -8);
    case LAP_FP32:
    case LAP_FP32X3:
    case LAP_PRECISION_COUNT:
        break;
    }
    return ldexp(1, -24);
}

/* Division by the window is not correctly rounded in OpenCL: a few units in the last place. */
static bool divides(const step_io *io) {
    return io->op->kind == LAP_OP_AVGPOOL;
}

static double op_sum_length(const lap_op *op) {
    double window = (double)op->r * (double)op->s;
    switch (op->kind) {
    case LAP_OP_CONV:
    case LAP_OP_DWCONV:
        return window * lap_op_depth(op);
    case LAP_OP_SCALE:
        return 1;
    case LAP_OP_FC:
        return (double)lap_tensor_logical(&op->in);
    case LAP_OP_AVGPOOL:
        return (double)op->in.h * (double)op->in.w;
    case LAP_OP_MAXPOOL:
    case LAP_OP_KIND_COUNT:
        break;
    }
    return 0;
}

/* The longest sum behind one output element. */
static double sum_length(const step_io *io) {
    double length = op_sum_length(io->op) + (io->partner ? op_sum_length(io->partner) : 0);
    return length + (io->means && io->means != io->partner ? op_sum_length(io->means) : 0);
}

/* Unit roundoff times what the errors of the step's sums may add up to. Wide operands: errors of
 * the sum dominate and grow like a random walk. Narrow ones: the rounding of the operands
 * dominates. */
static double bound_factor(const step_io *io) {
    bool wide = io->precision == LAP_FP32 || io->precision == LAP_FP32X3;
    double factor = wide ? 4 * sqrt(sum_length(io)) : 8;
    return factor * (io->error_factor ? io->error_factor : 1) * roundoff(io->precision);
}

/* Small halves have steps of 2^-24 however small they are: no value is closer than that. */
static void allow_small(const step_io *io, double *bound, size_t count) {
    if (io->precision != LAP_FP16) return;
    for (size_t i = 0; i < count; i++)
        bound[i] += ldexp(1, -24) / bound_factor(io);
}

/* The second output is a mean of the first. */
static lap_status compare_extra(const step_io *io, const arrays *a, uint64_t n,
                                lap_check_report *report, lap_error *err) {
    if (io->extra < 0) return LAP_OK;
    size_t count = (size_t)(n * lap_tensor_logical(&io->extra_shape));
    allow_small(io, a->extra_bound, count);
    lap_mismatch m =
        lap_compare_bound(a->extra, a->extra_want, a->extra_bound, bound_factor(io), count);
    if (!m.found) return LAP_OK;
    step_io beside = *io;
    beside.out_shape = io->extra_shape;
    return wrong(report, &beside, "second output", &m, err);
}

/* The sum is exact, the activation behind it is not: within 16 units of roundoff of the result, or
 * of the smallest step that the storage has. */
static lap_mismatch compare_activated(const step_io *io, arrays *a, size_t count) {
    double factor = 16 * roundoff(io->precision) * (io->error_factor ? io->error_factor : 1);
    double least = io->precision == LAP_FP16 ? ldexp(1, -24) : 1e-30;
    for (size_t i = 0; i < count; i++)
        a->bound[i] = fabs(a->want[i]) + least / factor;
    return lap_compare_bound(a->out, a->want, a->bound, factor, count);
}

static lap_status exact_step(lap_plan *plan, int step, uint64_t n, const step_io *io, arrays *a,
                             lap_check_report *report, lap_error *err) {
    size_t in = (size_t)(n * lap_tensor_logical(&io->in_shape));
    size_t out = (size_t)(n * lap_tensor_logical(&io->out_shape));
    int range = integer_range(io->precision);
    fill_integers(io->op, n, range, 3000 + (uint64_t)step, a->in);
    LAP_TRY(lap_plan_tensor_write(plan, io->in, 0, n, a->in, err));
    widen(a->in, a->in64, in);
    if (io->second >= 0) {
        size_t second = (size_t)(n * lap_tensor_logical(&io->second_shape));
        for (size_t i = 0; i < second; i++)
            a->second[i] = small_integer(4000 + (uint64_t)step, i, range);
        LAP_TRY(lap_plan_tensor_write(plan, io->second, 0, n, a->second, err));
        widen(a->second, a->second64, second);
    }
    if (io->third >= 0) {
        size_t third = (size_t)(n * lap_tensor_logical(&io->third_shape));
        for (size_t i = 0; i < third; i++)
            a->third[i] = small_integer(5000 + (uint64_t)step, i, range);
        LAP_TRY(lap_plan_tensor_write(plan, io->third, 0, n, a->third, err));
        widen(a->third, a->third64, third);
    }
    LAP_TRY(run_twice(plan, step, io, n, a, report, err));
    LAP_TRY(reference(io, (int)n, a, err));
    LAP_TRY(compare_extra(io, a, n, report, err));
    for (size_t i = 0; i < out; i++)
        a->want[i] = stored_value(io, a->want[i]);
    lap_mismatch m;
    if (lap_fusion_two_layers(io->fusion))
        m = lap_compare_bound(a->out, a->want, a->bound, bound_factor(io), out);
    else if (io->op->act > LAP_ACT_RELU)
        m = compare_activated(io, a, out);
    else if (io->error_factor)
        m = lap_compare_bound(a->out, a->want, a->bound, bound_factor(io), out);
    else if (divides(io))
        m = lap_compare_bound(a->out, a->want, io->partner ? a->bound : NULL,
                              4 * roundoff(io->precision), out);
    else
        m = lap_compare_exact(a->out, a->want, out);
    if (m.found) return wrong(report, io, "exact", &m, err);
    return LAP_OK;
}

static lap_mismatch compare_real(const step_io *io, const arrays *a, size_t count) {
    if (io->op->kind == LAP_OP_MAXPOOL) return lap_compare_exact(a->out, a->want, count);
    allow_small(io, a->bound, count);
    return lap_compare_bound(a->out, a->want, a->bound, bound_factor(io), count);
}

/* The device's own input of the step is the reference's input: errors do not add up over layers. */
static lap_status real_step(lap_plan *plan, int step, const step_io *io, arrays *a,
                            lap_check_report *report, lap_error *err) {
    size_t in = (size_t)lap_tensor_logical(&io->in_shape);
    size_t out = (size_t)lap_tensor_logical(&io->out_shape);
    LAP_TRY(lap_plan_tensor_read(plan, io->in, 0, 1, a->in, err));
    widen(a->in, a->in64, in);
    if (io->second >= 0) {
        LAP_TRY(lap_plan_tensor_read(plan, io->second, 0, 1, a->second, err));
        widen(a->second, a->second64, (size_t)lap_tensor_logical(&io->second_shape));
    }
    if (io->third >= 0) {
        LAP_TRY(lap_plan_tensor_read(plan, io->third, 0, 1, a->third, err));
        widen(a->third, a->third64, (size_t)lap_tensor_logical(&io->third_shape));
    }
    LAP_TRY(run_twice(plan, step, io, 1, a, report, err));
    LAP_TRY(reference(io, 1, a, err));
    LAP_TRY(compare_extra(io, a, 1, report, err));
    lap_mismatch m = compare_real(io, a, out);
    if (m.found) return wrong(report, io, "real", &m, err);
    return LAP_OK;
}

typedef struct layer_run {
    lap_plan *plan;
    const lap_weights *weights;
    lap_check_mode mode;
    uint64_t n;
    lap_precision precision;
    bool exact;
    int only; /* the one step to check, -1 for all */
    lap_progress progress;
    void *context;
    lap_check_report *report;
} layer_run;

/* No earlier step runs the same kernels the same way. Residual and activation may be arguments, not
 * defines, so steps of one build may still take different paths through it. */
static bool is_first_of_build(const lap_plan *plan, int step) {
    const lap_op *op = lap_plan_op(plan, step);
    for (int i = 0; i < step; i++) {
        const lap_op *earlier = lap_plan_op(plan, i);
        if (lap_plan_build_id(plan, i) == lap_plan_build_id(plan, step) &&
            earlier->act == op->act && (earlier->residual >= 0) == (op->residual >= 0))
            return false;
    }
    return true;
}

static lap_status check_all(const layer_run *run, lap_error *err) {
    int steps = lap_plan_step_count(run->plan);
    int *passed = run->exact ? &run->report->exact_layers : &run->report->real_layers;
    for (int i = 0; i < steps; i++) {
        if (lap_plan_interrupted(run->plan))
            return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted in the %s check of layer %d of %d",
                            run->exact ? "exact" : "real", i + 1, steps);
        if (run->only >= 0 && run->only != i) {
            /* Not checked, but it makes what the checked step reads. */
            if (!run->exact) LAP_TRY(lap_plan_run_step(run->plan, i, err));
            continue;
        }
        step_io io = describe(run->plan, i, run->weights, run->precision);
        if (run->progress) run->progress(run->context, io.name, (size_t)i, (size_t)steps);
        if (run->mode == LAP_CHECK_QUICK && !is_first_of_build(run->plan, i)) {
            /* Quick: this layer runs kernels that another layer has checked. */
            continue;
        }
        arrays a;
        LAP_TRY(arrays_new(&io, run->n, &a, err));
        lap_status status = run->exact ? exact_step(run->plan, i, run->n, &io, &a, run->report, err)
                                       : real_step(run->plan, i, &io, &a, run->report, err);
        arrays_free(&a);
        LAP_TRY(status);
        ++*passed;
    }
    return LAP_OK;
}

static lap_status guards(lap_plan *plan, lap_check_report *report, lap_error *err) {
    lap_error detail = {0};
    lap_status status = lap_plan_guards_check(plan, &detail);
    if (status == LAP_E_VERIFY) {
        snprintf(report->first_wrong, sizeof report->first_wrong, "memory guards");
        snprintf(report->detail, sizeof report->detail, "%.760s", detail.message);
    }
    if (status != LAP_OK && err) *err = detail;
    return status;
}

static int planned(const lap_plan *plan, lap_check_mode mode) {
    int count = 0;
    for (int i = 0; i < lap_plan_step_count(plan); i++)
        count += mode == LAP_CHECK_FULL || is_first_of_build(plan, i);
    return count;
}

/* One plan on weights, checked one way. */
static lap_status check_with(lap_session *session, const lap_net *net,
                             const lap_plan_options *options, const float *image, layer_run *run,
                             lap_error *err) {
    lap_plan_options layered = *options;
    layered.chosen_for = options->batch;
    layered.batch = run->n;
    layered.no_reuse = true;
    LAP_TRY(lap_plan_new(session, net, &layered, NULL, NULL, &run->plan, err));
    lap_status status = lap_plan_upload(run->plan, run->weights, err);
    if (status == LAP_OK) status = lap_plan_bind(run->plan, err);
    if (status == LAP_OK) status = lap_plan_set_input(run->plan, image, 1, err);
    int *wanted = run->exact ? &run->report->exact_wanted : &run->report->real_wanted;
    *wanted = planned(run->plan, run->mode);
    if (status == LAP_OK) status = check_all(run, err);
    if (status == LAP_OK) status = guards(run->plan, run->report, err);
    lap_plan_free(run->plan);
    return status;
}

lap_status lap_check_layers(lap_session *session, const lap_net *net, const lap_weights *weights,
                            const lap_plan_options *options, const float *image,
                            lap_check_mode mode, lap_progress progress, void *context,
                            lap_check_report *report, lap_error *err) {
    report->mode = mode;
    if (mode == LAP_CHECK_OFF) return LAP_OK;
    lap_weights *integers = NULL;
    LAP_TRY(integer_weights(net, weights, integer_range(options->precision), &integers, err));
    layer_run run = {.weights = integers,
                     .mode = mode,
                     .precision = options->precision,
                     .n = mode == LAP_CHECK_FULL && options->batch > 1 ? 2 : 1,
                     .exact = true,
                     .only = -1,
                     .progress = progress,
                     .context = context,
                     .report = report};
    lap_status status = check_with(session, net, options, image, &run, err);
    lap_weights_free(integers);
    if (status != LAP_OK || mode == LAP_CHECK_QUICK) return status;
    run.weights = weights;
    run.n = 1;
    run.exact = false;
    return check_with(session, net, options, image, &run, err);
}

/* ---- one step ------------------------------------------------------------------------------- */

/* Outputs of all images against the references of the first two, which the others repeat. */
static lap_status compare_batch(lap_plan *plan, const step_io *io, uint64_t batch, arrays *a,
                                lap_check_report *report, lap_error *err) {
    size_t one = (size_t)lap_tensor_logical(&io->out_shape);
    for (uint64_t first = 0; first < batch; first += 2) {
        uint64_t count = batch - first < 2 ? batch - first : 2;
        LAP_TRY(lap_plan_tensor_read(plan, io->out, first, count, a->out, err));
        lap_mismatch m = compare_real(io, a, (size_t)count * one);
        m.index += (size_t)first * one;
        if (m.found) return wrong(report, io, "batch", &m, err);
    }
    uint64_t padding;
    LAP_TRY(lap_plan_tensor_padding(plan, io->out, &padding, err));
    return padding == 0 ? LAP_OK : wrong_text(report, io, err, "padding channels are not zero");
}

static lap_status batch_step(lap_plan *plan, int step, const step_io *io, uint64_t batch, arrays *a,
                             lap_check_report *report, lap_error *err) {
    LAP_TRY(lap_plan_tensor_poison(plan, io->out, err));
    for (int i = 0; i <= step; i++)
        LAP_TRY(lap_plan_run_step(plan, i, err));
    LAP_TRY(lap_plan_tensor_read(plan, io->in, 0, 2, a->in, err));
    widen(a->in, a->in64, 2 * (size_t)lap_tensor_logical(&io->in_shape));
    if (io->second >= 0) {
        LAP_TRY(lap_plan_tensor_read(plan, io->second, 0, 2, a->second, err));
        widen(a->second, a->second64, 2 * (size_t)lap_tensor_logical(&io->second_shape));
    }
    if (io->third >= 0) {
        LAP_TRY(lap_plan_tensor_read(plan, io->third, 0, 2, a->third, err));
        widen(a->third, a->third64, 2 * (size_t)lap_tensor_logical(&io->third_shape));
    }
    LAP_TRY(reference(io, 2, a, err));
    return compare_batch(plan, io, batch, a, report, err);
}

static lap_status check_batch(lap_session *session, const lap_net *net, const lap_weights *weights,
                              const lap_plan_options *options, const float *images, int step,
                              lap_check_report *report, lap_error *err) {
    lap_plan_options whole = *options;
    whole.no_reuse = true;
    lap_plan *plan = NULL;
    LAP_TRY(lap_plan_new(session, net, &whole, NULL, NULL, &plan, err));
    step_io io = describe(plan, step, weights, options->precision);
    arrays a;
    lap_status status = arrays_new(&io, 2, &a, err);
    if (status != LAP_OK) {
        lap_plan_free(plan);
        return status;
    }
    status = lap_plan_upload(plan, weights, err);
    if (status == LAP_OK) status = lap_plan_bind(plan, err);
    if (status == LAP_OK) status = lap_plan_set_input(plan, images, 2, err);
    if (status == LAP_OK) status = batch_step(plan, step, &io, options->batch, &a, report, err);
    if (status == LAP_OK) status = guards(plan, report, err);
    arrays_free(&a);
    lap_plan_free(plan);
    return status;
}

lap_status lap_check_step(lap_session *session, const lap_net *net, const lap_weights *weights,
                          const lap_plan_options *options, const float *images, int step,
                          lap_check_report *report, lap_error *err) {
    int range = integer_range(options->precision);
    lap_weights *integers = NULL;
    *report = (lap_check_report){.mode = LAP_CHECK_FULL};
    LAP_TRY(integer_weights(net, weights, range, &integers, err));
    layer_run run = {.weights = integers,
                     .mode = LAP_CHECK_FULL,
                     .precision = options->precision,
                     .n = options->batch > 1 ? 2 : 1,
                     .exact = true,
                     .only = step,
                     .report = report};
    lap_status status = check_with(session, net, options, images, &run, err);
    lap_weights_free(integers);
    run.weights = weights;
    run.n = 1;
    run.exact = false;
    if (status == LAP_OK) status = check_with(session, net, options, images, &run, err);
    if (status == LAP_OK && options->batch > 1)
        status = check_batch(session, net, weights, options, images, step, report, err);
    report->passed = status == LAP_OK;
    return status;
}
