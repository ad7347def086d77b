/* Ratios with intervals (see ratio.h). Arithmetic only. */
#include "compare/ratio.h"

#include <math.h>

static double square(double x) {
    return x * x;
}

/* A mean of which every sample was the same adds nothing, and no degrees of freedom either. */
static double freedom_term(double error, uint64_t n) {
    return error > 0 ? square(square(error)) / (double)(n - 1) : 0;
}

/* Beyond this Student's t is that of the normal distribution. */
static const double MANY = 1e9;

static size_t freedom(double ea, uint64_t na, double eb, uint64_t nb) {
    double terms = freedom_term(ea, na) + freedom_term(eb, nb);
    double v = terms > 0 ? square(square(ea) + square(eb)) / terms : MANY;
    return v > MANY ? (size_t)MANY : v < 1 ? 1 : (size_t)v;
}

lap_estimate lap_ratio_of_means(const lap_mean *a, const lap_mean *b) {
    lap_estimate e = {0};
    if (!(a->mean > 0) || !(b->mean > 0) || !isfinite(a->mean / b->mean) ||
        !(a->mean / b->mean > 0))
        return e;
    e.has = true;
    e.ratio = a->mean / b->mean;
    if (!a->relative_error.has || !b->relative_error.has || a->n < 2 || b->n < 2) return e;
    double ea = a->relative_error.value, eb = b->relative_error.value;
    double width = lap_student_95(freedom(ea, a->n, eb, b->n)) * sqrt(square(ea) + square(eb));
    e.low = e.ratio * exp(-width);
    e.high = e.ratio * exp(width);
    e.has_interval = isfinite(e.high) && e.low > 0;
    if (!e.has_interval) e.low = e.high = 0;
    return e;
}

lap_estimate lap_estimate_invert(const lap_estimate *e) {
    if (!e->has) return *e;
    lap_estimate out = {.has = true, .ratio = 1 / e->ratio, .has_interval = e->has_interval};
    if (e->has_interval) {
        out.low = 1 / e->high;
        out.high = 1 / e->low;
    }
    return out;
}

double lap_estimate_half(const lap_estimate *e) {
    return e->has_interval ? (e->high - e->low) / 2 : 0;
}

const char *lap_judgement_name(lap_judgement judgement) {
    static const char *const names[] = {"", "baseline", "same", "faster", "slower", "unclear"};
    return names[judgement];
}

lap_judgement lap_judge(const lap_estimate *speed, double margin) {
    if (!speed->has || !speed->has_interval) return LAP_JUDGED_UNCLEAR;
    double limit = 1 + margin;
    if (speed->low > limit) return LAP_JUDGED_FASTER;
    if (speed->high < 1 / limit) return LAP_JUDGED_SLOWER;
    if (speed->low >= 1 / limit && speed->high <= limit) return LAP_JUDGED_SAME;
    return LAP_JUDGED_UNCLEAR;
}
