/* The whole network against the reference, and against itself. */
#include "check/check.h"
#include "check/compare.h"

#include "ref/ref.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double lap_check_limit(lap_precision precision) {
    switch (precision) {
    case LAP_FP32:
    case LAP_FP32X3:
        return 3e-6;
    case LAP_TF32:
    case LAP_FP16:
        return 3e-3;
    case LAP_BF16:
        return 2e-2;
    case LAP_PRECISION_COUNT:
        break;
    }
    return 0;
}

lap_status lap_expected_new(const lap_net *net, const lap_weights *weights, const lap_input *input,
                            size_t count, bool images_only, lap_progress progress, void *context,
                            const lap_interrupt *interrupt, lap_expected *out, lap_error *err) {
    *out = (lap_expected){.classes = net->classes};
    uint64_t distinct = lap_input_distinct(input);
    out->count = distinct < count ? (size_t)distinct : count;
    size_t image = (size_t)lap_tensor_logical(&net->tensors[0]);
    size_t classes = (size_t)net->classes;
    out->images = malloc(out->count * image * sizeof *out->images);
    if (!images_only) out->logits = malloc(out->count * classes * sizeof *out->logits);
    lap_status status =
        out->images && (out->logits || images_only) && out->count
            ? LAP_OK
            : LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu reference images", out->count);
    for (size_t i = 0; i < out->count && status == LAP_OK; i++) {
        if (progress) progress(context, "reference", i, out->count);
        if (interrupt && interrupt->asked && interrupt->asked(interrupt->context))
            status = LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted after %zu of %zu references", i,
                              out->count);
        if (status == LAP_OK) status = lap_input_image(input, i, out->images + i * image, err);
        if (status == LAP_OK && !images_only)
            status = lap_ref_forward(net, weights, out->images + i * image,
                                     out->logits + i * classes, err);
    }
    if (status != LAP_OK) lap_expected_free(out);
    return status;
}

void lap_expected_free(lap_expected *expected) {
    free(expected->images);
    free(expected->logits);
    *expected = (lap_expected){0};
}

static lap_status fail(lap_check_report *report, const char *where, lap_error *err) {
    report->passed = false;
    snprintf(report->first_wrong, sizeof report->first_wrong, "%s", where);
    return LAP_FAIL(err, LAP_E_VERIFY, "%s", report->detail);
}

/* Nothing of an earlier pass is left, between the layers too: a kernel that read its input before
 * it was written would find the right values there. */
static lap_status run_poisoned(lap_plan *plan, float *logits, lap_error *err) {
    LAP_TRY(lap_plan_poison(plan, err));
    LAP_TRY(lap_plan_run(plan, err));
    return lap_plan_logits(plan, logits, err);
}

static lap_status compare_all(const float *got, const lap_net *net, const lap_expected *expected,
                              uint64_t batch, lap_check_report *report, lap_error *err) {
    size_t classes = (size_t)net->classes;
    uint64_t worst = 0;
    report->logits_rel_l2 = 0;
    for (uint64_t i = 0; i < batch; i++) {
        double error = lap_relative_l2(got + i * classes,
                                       expected->logits + i % expected->count * classes, classes);
        if (!(error <= report->logits_rel_l2)) {
            report->logits_rel_l2 = error;
            worst = i;
        }
        report->images++;
    }
    report->has_logits = true;
    if (report->logits_rel_l2 <= report->limit) return LAP_OK;
    if (isfinite(report->logits_rel_l2))
        snprintf(report->detail, sizeof report->detail,
                 "logits of image %llu: relative L2 error %.3g, the limit is %.1g",
                 (unsigned long long)worst, report->logits_rel_l2, report->limit);
    else
        snprintf(report->detail, sizeof report->detail,
                 "logits of image %llu are not finite numbers", (unsigned long long)worst);
    return fail(report, "logits", err);
}

static lap_status not_interrupted(const lap_plan *plan, lap_error *err) {
    if (!lap_plan_interrupted(plan)) return LAP_OK;
    return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted in the check of the logits");
}

static lap_status check_guards(lap_plan *plan, lap_check_report *report, lap_error *err) {
    lap_error detail = {0};
    lap_status status = lap_plan_guards_check(plan, &detail);
    if (status == LAP_E_VERIFY) {
        snprintf(report->detail, sizeof report->detail, "%.760s", detail.message);
        return fail(report, "memory guards", err);
    }
    if (status != LAP_OK && err) *err = detail;
    return status;
}

static lap_status check_run(lap_plan *plan, const lap_net *net, const lap_expected *expected,
                            uint64_t batch, float *first, float *second, lap_check_report *report,
                            lap_error *err) {
    size_t bytes = (size_t)batch * (size_t)net->classes * sizeof *first;
    LAP_TRY(not_interrupted(plan, err));
    LAP_TRY(run_poisoned(plan, first, err));
    LAP_TRY(compare_all(first, net, expected, batch, report, err));
    LAP_TRY(check_guards(plan, report, err));
    LAP_TRY(not_interrupted(plan, err));
    LAP_TRY(run_poisoned(plan, second, err));
    if (memcmp(first, second, bytes) != 0) {
        snprintf(report->detail, sizeof report->detail,
                 "two runs on the same input gave different logits");
        return fail(report, "logits", err);
    }
    return LAP_OK;
}

lap_status lap_check_logits(lap_plan *plan, const lap_net *net, const lap_expected *expected,
                            uint64_t batch, lap_precision precision, float **logits,
                            lap_check_report *report, lap_error *err) {
    if (logits) *logits = NULL;
    report->limit = lap_check_limit(precision);
    report->passed = false;
    LAP_TRY(lap_plan_set_input(plan, expected->images, expected->count, err));
    size_t count = (size_t)batch * (size_t)net->classes;
    float *first = malloc(count * sizeof *first), *second = malloc(count * sizeof *second);
    lap_status status = LAP_E_NOMEM;
    if (first && second)
        status = check_run(plan, net, expected, batch, first, second, report, err);
    else
        LAP_FAIL(err, LAP_E_NOMEM, "no memory for the logits of %llu images",
                 (unsigned long long)batch);
    free(second);
    if (status != LAP_OK || !logits) {
        free(first);
    } else {
        *logits = first;
    }
    report->passed = status == LAP_OK;
    return status;
}

lap_status lap_check_unchanged(lap_plan *plan, const lap_net *net, uint64_t batch,
                               const float *before, lap_check_report *report, lap_error *err) {
    size_t count = (size_t)batch * (size_t)net->classes;
    float *now = malloc(count * sizeof *now);
    if (!now)
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the logits of %llu images",
                        (unsigned long long)batch);
    size_t bytes = count * sizeof *now;
    lap_status status = lap_plan_logits(plan, now, err);
    bool same = status == LAP_OK && memcmp(now, before, bytes) == 0;
    /* Kernels that ceased to write would leave the right logits of an earlier run. */
    if (same) {
        status = run_poisoned(plan, now, err);
        same = status == LAP_OK && memcmp(now, before, bytes) == 0;
    }
    if (status == LAP_OK && !same) {
        snprintf(report->detail, sizeof report->detail,
                 "after the timed runs the logits are not the bits they were before");
        status = fail(report, "logits", err);
    }
    free(now);
    return status == LAP_OK ? check_guards(plan, report, err) : status;
}
