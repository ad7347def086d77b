/* The exact and the real check: every op of a plan alone, against src/ref. */
#include "check/check.h"
#include "check/compare.h"

#include "base/rng.h"
#include "ref/ref.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arrays {
    float *in, *res, *out, *again;
    double *in64, *res64, *want, *bound;
} arrays;

static void arrays_free(arrays *a) {
    free(a->in);
    free(a->res);
    free(a->out);
    free(a->again);
    free(a->in64);
    free(a->res64);
    free(a->want);
    free(a->bound);
}

static lap_status arrays_new(const lap_op *op, uint64_t n, arrays *a, lap_error *err) {
    size_t in = (size_t)(n * lap_tensor_logical(&op->in));
    size_t out = (size_t)(n * lap_tensor_logical(&op->out));
    *a = (arrays){.in = malloc(in * sizeof(float)),
                  .res = malloc(out * sizeof(float)),
                  .out = malloc(out * sizeof(float)),
                  .again = malloc(out * sizeof(float)),
                  .in64 = malloc(in * sizeof(double)),
                  .res64 = malloc(out * sizeof(double)),
                  .want = malloc(out * sizeof(double)),
                  .bound = malloc(out * sizeof(double))};
    if (a->in && a->res && a->out && a->again && a->in64 && a->res64 && a->want && a->bound)
        return LAP_OK;
    arrays_free(a);
    return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for its check", op->name);
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

static void fill_integers(const lap_op *op, uint64_t n, uint64_t stream, float *out) {
    if (op->kind == LAP_OP_AVGPOOL) {
        fill_mean_integers(&op->in, n, stream, out);
        return;
    }
    size_t count = (size_t)(n * lap_tensor_logical(&op->in));
    for (size_t i = 0; i < count; i++)
        out[i] = small_integer(stream, i, 8);
}

/* Integer weights for the whole network, shaped like real ones. */
static lap_status integer_weights(const lap_net *net, const lap_weights *like, lap_weights **out,
                                  lap_error *err) {
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
            to->w[j] = small_integer(1000 + (uint64_t)i, j, 8);
        for (size_t j = 0; j < to->k; j++)
            to->bias[j] = small_integer(2000 + (uint64_t)i, j, 8);
    }
    *out = w;
    return LAP_OK;
}

static lap_status wrong(lap_check_report *report, const lap_op *op, const char *kernel,
                        const char *check, const lap_mismatch *m, lap_error *err) {
    const lap_tensor *t = &op->out;
    size_t c = m->index % (size_t)t->c, pixel = m->index / (size_t)t->c;
    size_t w = pixel % (size_t)t->w, h = pixel / (size_t)t->w % (size_t)t->h;
    size_t n = pixel / ((size_t)t->w * (size_t)t->h);
    snprintf(report->first_wrong, sizeof report->first_wrong, "%s", op->name);
    snprintf(report->detail, sizeof report->detail,
             "%s check of %s (kernel %s): %zu values wrong, first at image %zu, channel %zu, row "
             "%zu, column %zu: got %.9g, expected %.9g, allowed difference %.3g",
             check, op->name, kernel, m->count, n, c, h, w, (double)m->got, m->want, m->allowed);
    return LAP_FAIL(err, LAP_E_VERIFY, "%s", report->detail);
}

static lap_status wrong_text(lap_check_report *report, const lap_op *op, lap_error *err,
                             const char *text) {
    snprintf(report->first_wrong, sizeof report->first_wrong, "%s", op->name);
    snprintf(report->detail, sizeof report->detail, "%s: %s", op->name, text);
    return LAP_FAIL(err, LAP_E_VERIFY, "%s", report->detail);
}

/* Poison the output, run the step, read it; the same again must give the same bits. */
static lap_status run_twice(lap_plan *plan, int step, uint64_t n, arrays *a,
                            lap_check_report *report, lap_error *err) {
    const lap_op *op = lap_plan_op(plan, step);
    size_t bytes = (size_t)(n * lap_tensor_logical(&op->out)) * sizeof(float);
    float *to[] = {a->out, a->again};
    for (int run = 0; run < 2; run++) {
        LAP_TRY(lap_plan_tensor_poison(plan, op->output, err));
        LAP_TRY(lap_plan_run_step(plan, step, err));
        LAP_TRY(lap_plan_tensor_read(plan, op->output, 0, n, to[run], err));
    }
    if (memcmp(a->out, a->again, bytes) != 0)
        return wrong_text(report, op, err, "two runs on the same input differ");
    uint64_t padding;
    LAP_TRY(lap_plan_tensor_padding(plan, op->output, &padding, err));
    if (padding) return wrong_text(report, op, err, "padding channels of its output are not zero");
    return LAP_OK;
}

static lap_status exact_step(lap_plan *plan, int step, uint64_t n, const lap_op_weights *weights,
                             arrays *a, lap_check_report *report, lap_error *err) {
    const lap_op *op = lap_plan_op(plan, step);
    size_t in = (size_t)(n * lap_tensor_logical(&op->in));
    size_t out = (size_t)(n * lap_tensor_logical(&op->out));
    fill_integers(op, n, 3000 + (uint64_t)step, a->in);
    LAP_TRY(lap_plan_tensor_write(plan, op->input, 0, n, a->in, err));
    widen(a->in, a->in64, in);
    if (op->residual >= 0) {
        for (size_t i = 0; i < out; i++)
            a->res[i] = small_integer(4000 + (uint64_t)step, i, 8);
        LAP_TRY(lap_plan_tensor_write(plan, op->residual, 0, n, a->res, err));
        widen(a->res, a->res64, out);
    }
    LAP_TRY(run_twice(plan, step, n, a, report, err));
    LAP_TRY(lap_ref_op(op, (int)n, a->in64, op->residual >= 0 ? a->res64 : NULL, weights, a->want,
                       NULL, err));
    lap_mismatch m = op->kind == LAP_OP_AVGPOOL
                         ? lap_compare_bound(a->out, a->want, NULL, 4 * ldexp(1, -24), out)
                         : lap_compare_exact(a->out, a->want, out);
    if (m.found) return wrong(report, op, lap_plan_row(plan, step)->id, "exact", &m, err);
    return LAP_OK;
}

/* The longest sum behind one output element. */
static double sum_length(const lap_op *op) {
    double window = (double)op->r * (double)op->s;
    switch (op->kind) {
    case LAP_OP_CONV:
        return window * op->in.c;
    case LAP_OP_FC:
        return (double)lap_tensor_logical(&op->in);
    case LAP_OP_AVGPOOL:
        return (double)op->in.h * (double)op->in.w;
    case LAP_OP_MAXPOOL:
    case LAP_OP_KIND_COUNT:
        break;
    }
    return 1;
}

/* The device's own input of the step is the reference's input: errors do not add up over layers. */
static lap_status real_step(lap_plan *plan, int step, const lap_op_weights *weights, arrays *a,
                            lap_check_report *report, lap_error *err) {
    const lap_op *op = lap_plan_op(plan, step);
    size_t in = (size_t)lap_tensor_logical(&op->in), out = (size_t)lap_tensor_logical(&op->out);
    LAP_TRY(lap_plan_tensor_read(plan, op->input, 0, 1, a->in, err));
    widen(a->in, a->in64, in);
    if (op->residual >= 0) {
        LAP_TRY(lap_plan_tensor_read(plan, op->residual, 0, 1, a->res, err));
        widen(a->res, a->res64, out);
    }
    LAP_TRY(run_twice(plan, step, 1, a, report, err));
    LAP_TRY(lap_ref_op(op, 1, a->in64, op->residual >= 0 ? a->res64 : NULL, weights, a->want,
                       a->bound, err));
    double factor = 4 * sqrt(sum_length(op)) * ldexp(1, -24);
    lap_mismatch m = op->kind == LAP_OP_MAXPOOL
                         ? lap_compare_exact(a->out, a->want, out)
                         : lap_compare_bound(a->out, a->want, a->bound, factor, out);
    if (m.found) return wrong(report, op, lap_plan_row(plan, step)->id, "real", &m, err);
    return LAP_OK;
}

typedef struct layer_run {
    lap_plan *plan;
    const lap_weights *weights;
    lap_check_mode mode;
    uint64_t n;
    bool exact;
    lap_progress progress;
    void *context;
    lap_check_report *report;
} layer_run;

/* No earlier step runs the same kernels the same way. Residual and ReLU are arguments, not defines,
 * so steps of one build may still take different paths through it. */
static bool is_first_of_build(const lap_plan *plan, int step) {
    const lap_op *op = lap_plan_op(plan, step);
    for (int i = 0; i < step; i++) {
        const lap_op *earlier = lap_plan_op(plan, i);
        if (lap_plan_build_id(plan, i) == lap_plan_build_id(plan, step) &&
            earlier->relu == op->relu && (earlier->residual >= 0) == (op->residual >= 0))
            return false;
    }
    return true;
}

static lap_status check_all(const layer_run *run, lap_error *err) {
    int steps = lap_plan_step_count(run->plan);
    int *passed = run->exact ? &run->report->exact_layers : &run->report->real_layers;
    for (int i = 0; i < steps; i++) {
        const lap_op *op = lap_plan_op(run->plan, i);
        if (run->progress) run->progress(run->context, op->name, (size_t)i, (size_t)steps);
        if (run->mode == LAP_CHECK_QUICK && !is_first_of_build(run->plan, i)) {
            /* Quick: this layer runs kernels that another layer has checked. */
            continue;
        }
        arrays a;
        LAP_TRY(arrays_new(op, run->n, &a, err));
        const lap_op_weights *w = &run->weights->ops[i];
        lap_status status = run->exact ? exact_step(run->plan, i, run->n, w, &a, run->report, err)
                                       : real_step(run->plan, i, w, &a, run->report, err);
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
    LAP_TRY(integer_weights(net, weights, &integers, err));
    layer_run run = {.weights = integers,
                     .mode = mode,
                     .n = mode == LAP_CHECK_FULL && options->batch > 1 ? 2 : 1,
                     .exact = true,
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
