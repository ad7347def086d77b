/* The exact and the real check: every op of a plan alone, against src/ref. */
#include "check/check.h"
#include "check/compare.h"
#include "check/step.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void widen(const float *from, double *to, size_t n) {
    for (size_t i = 0; i < n; i++)
        to[i] = (double)from[i];
}

static lap_status wrong(lap_check_report *report, const check_step *io, const char *check,
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

static lap_status wrong_text(lap_check_report *report, const check_step *io, lap_error *err,
                             const char *text) {
    snprintf(report->first_wrong, sizeof report->first_wrong, "%s", io->name);
    snprintf(report->detail, sizeof report->detail, "%s (kernel %s): %s", io->name, io->kernel,
             text);
    return LAP_FAIL(err, LAP_E_VERIFY, "%s", report->detail);
}

/* Poison the output, run the step, read it; the same again must give the same bits. */
static lap_status run_twice(lap_plan *plan, int step, const check_step *io, uint64_t n,
                            check_arrays *a, lap_check_report *report, lap_error *err) {
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

/* What the reference says of n images, and the step of small halves, once. */
static lap_status reference(const check_step *io, uint64_t n, bool exact, check_arrays *a,
                            lap_error *err) {
    LAP_TRY(check_reference(io, (int)n, a, err));
    if (!exact) check_allow_small(io, a->bound, (size_t)(n * lap_tensor_logical(&io->out_shape)));
    if (io->extra >= 0)
        check_allow_small(io, a->extra_bound, (size_t)(n * lap_tensor_logical(&io->extra_shape)));
    return LAP_OK;
}

/* The second output is a mean of the first; of n images, which are those of the batch from `first`
 * on. */
static lap_status compare_extra(const check_step *io, const check_arrays *a, uint64_t first,
                                uint64_t n, lap_check_report *report, lap_error *err) {
    if (io->extra < 0) return LAP_OK;
    size_t one = (size_t)lap_tensor_logical(&io->extra_shape), count = (size_t)n * one;
    lap_mismatch m =
        lap_compare_bound(a->extra, a->extra_want, a->extra_bound, check_bound_factor(io), count);
    m.index += (size_t)first * one;
    if (!m.found) return LAP_OK;
    check_step beside = *io;
    beside.out_shape = io->extra_shape;
    return wrong(report, &beside, "second output", &m, err);
}

/* The sum is exact, the activation behind it is not: within 16 units of roundoff of the result, or
 * of the smallest step that the storage has. */
static lap_mismatch compare_activated(const check_step *io, check_arrays *a, size_t count) {
    double factor = 16 * check_roundoff(io->precision) * (io->error_factor ? io->error_factor : 1);
    double least = io->precision == LAP_FP16 ? ldexp(1, -24) : 1e-30;
    for (size_t i = 0; i < count; i++)
        a->bound[i] = fabs(a->want[i]) + least / factor;
    return lap_compare_bound(a->out, a->want, a->bound, factor, count);
}

/* Division by the window is not correctly rounded in OpenCL: a few units in the last place. */
static bool divides(const check_step *io) {
    return io->op->kind == LAP_OP_AVGPOOL;
}

static lap_status exact_step(lap_plan *plan, int step, uint64_t n, const check_step *io,
                             check_arrays *a, lap_check_report *report, lap_error *err) {
    size_t in = (size_t)(n * lap_tensor_logical(&io->in_shape));
    size_t out = (size_t)(n * lap_tensor_logical(&io->out_shape));
    int range = check_integer_range(io->precision);
    check_fill_integers(io->op, n, range, 3000 + (uint64_t)step, a->in);
    LAP_TRY(lap_plan_tensor_write(plan, io->in, 0, n, a->in, err));
    widen(a->in, a->in64, in);
    if (io->second >= 0) {
        size_t second = (size_t)(n * lap_tensor_logical(&io->second_shape));
        for (size_t i = 0; i < second; i++)
            a->second[i] = check_integer(4000 + (uint64_t)step, i, range);
        LAP_TRY(lap_plan_tensor_write(plan, io->second, 0, n, a->second, err));
        widen(a->second, a->second64, second);
    }
    if (io->third >= 0) {
        size_t third = (size_t)(n * lap_tensor_logical(&io->third_shape));
        for (size_t i = 0; i < third; i++)
            a->third[i] = check_integer(5000 + (uint64_t)step, i, range);
        LAP_TRY(lap_plan_tensor_write(plan, io->third, 0, n, a->third, err));
        widen(a->third, a->third64, third);
    }
    LAP_TRY(run_twice(plan, step, io, n, a, report, err));
    LAP_TRY(reference(io, n, true, a, err));
    LAP_TRY(compare_extra(io, a, 0, n, report, err));
    for (size_t i = 0; i < out; i++)
        a->want[i] = check_stored(io, a->want[i]);
    lap_mismatch m;
    if (lap_fusion_two_layers(io->fusion))
        m = lap_compare_bound(a->out, a->want, a->bound, check_bound_factor(io), out);
    else if (io->op->act > LAP_ACT_RELU)
        m = compare_activated(io, a, out);
    else if (io->error_factor)
        m = lap_compare_bound(a->out, a->want, a->bound, check_bound_factor(io), out);
    else if (divides(io))
        m = lap_compare_bound(a->out, a->want, io->partner ? a->bound : NULL,
                              4 * check_roundoff(io->precision), out);
    else
        m = lap_compare_exact(a->out, a->want, out);
    if (m.found) return wrong(report, io, "exact", &m, err);
    return LAP_OK;
}

static lap_mismatch compare_real(const check_step *io, const check_arrays *a, size_t count) {
    if (io->op->kind == LAP_OP_MAXPOOL) return lap_compare_exact(a->out, a->want, count);
    return lap_compare_bound(a->out, a->want, a->bound, check_bound_factor(io), count);
}

/* The device's own input of the step is the reference's input: errors do not add up over layers. */
static lap_status real_step(lap_plan *plan, int step, const check_step *io, check_arrays *a,
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
    LAP_TRY(reference(io, 1, false, a, err));
    LAP_TRY(compare_extra(io, a, 0, 1, report, err));
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
        check_step io = check_describe(run->plan, i, run->weights, run->precision);
        if (run->progress) run->progress(run->context, io.name, (size_t)i, (size_t)steps);
        if (run->mode == LAP_CHECK_QUICK && !is_first_of_build(run->plan, i)) {
            /* Quick: this layer runs kernels that another layer has checked. */
            continue;
        }
        check_arrays a;
        LAP_TRY(check_arrays_new(&io, run->n, &a, err));
        lap_status status = run->exact ? exact_step(run->plan, i, run->n, &io, &a, run->report, err)
                                       : real_step(run->plan, i, &io, &a, run->report, err);
        check_arrays_free(&a);
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
    LAP_TRY(check_integer_weights(net, weights, check_integer_range(options->precision), &integers,
                                  err));
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
static lap_status compare_batch(lap_plan *plan, const check_step *io, uint64_t batch,
                                check_arrays *a, lap_check_report *report, lap_error *err) {
    size_t one = (size_t)lap_tensor_logical(&io->out_shape);
    for (uint64_t first = 0; first < batch; first += 2) {
        uint64_t count = batch - first < 2 ? batch - first : 2;
        LAP_TRY(lap_plan_tensor_read(plan, io->out, first, count, a->out, err));
        lap_mismatch m = compare_real(io, a, (size_t)count * one);
        m.index += (size_t)first * one;
        if (m.found) return wrong(report, io, "batch", &m, err);
        if (io->extra >= 0)
            LAP_TRY(lap_plan_tensor_read(plan, io->extra, first, count, a->extra, err));
        LAP_TRY(compare_extra(io, a, first, count, report, err));
    }
    uint64_t padding, beside = 0;
    LAP_TRY(lap_plan_tensor_padding(plan, io->out, &padding, err));
    if (io->extra >= 0) LAP_TRY(lap_plan_tensor_padding(plan, io->extra, &beside, err));
    return padding + beside == 0 ? LAP_OK
                                 : wrong_text(report, io, err, "padding channels are not zero");
}

static lap_status batch_step(lap_plan *plan, int step, const check_step *io, uint64_t batch,
                             check_arrays *a, lap_check_report *report, lap_error *err) {
    LAP_TRY(lap_plan_tensor_poison(plan, io->out, err));
    if (io->extra >= 0) LAP_TRY(lap_plan_tensor_poison(plan, io->extra, err));
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
    LAP_TRY(reference(io, 2, false, a, err));
    return compare_batch(plan, io, batch, a, report, err);
}

static lap_status check_batch(lap_session *session, const lap_net *net, const lap_weights *weights,
                              const lap_plan_options *options, const float *images, int step,
                              lap_check_report *report, lap_error *err) {
    lap_plan_options whole = *options;
    whole.no_reuse = true;
    lap_plan *plan = NULL;
    LAP_TRY(lap_plan_new(session, net, &whole, NULL, NULL, &plan, err));
    check_step io = check_describe(plan, step, weights, options->precision);
    check_arrays a;
    lap_status status = check_arrays_new(&io, 2, &a, err);
    if (status != LAP_OK) {
        lap_plan_free(plan);
        return status;
    }
    status = lap_plan_upload(plan, weights, err);
    if (status == LAP_OK) status = lap_plan_bind(plan, err);
    if (status == LAP_OK) status = lap_plan_set_input(plan, images, 2, err);
    if (status == LAP_OK) status = batch_step(plan, step, &io, options->batch, &a, report, err);
    if (status == LAP_OK) status = guards(plan, report, err);
    check_arrays_free(&a);
    lap_plan_free(plan);
    return status;
}

lap_status lap_check_step(lap_session *session, const lap_net *net, const lap_weights *weights,
                          const lap_plan_options *options, const float *images, int step,
                          lap_check_report *report, lap_error *err) {
    int range = check_integer_range(options->precision);
    lap_weights *integers = NULL;
    *report = (lap_check_report){.mode = LAP_CHECK_FULL};
    LAP_TRY(check_integer_weights(net, weights, range, &integers, err));
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
