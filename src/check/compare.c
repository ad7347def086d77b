/* Comparisons. `!(difference <= allowed)` everywhere: a NaN difference is a mismatch. */
#include "check/compare.h"

#include <math.h>

static void note(lap_mismatch *m, size_t i, float got, double want, double allowed) {
    if (!m->found) {
        m->found = true;
        m->index = i;
        m->got = got;
        m->want = want;
        m->allowed = allowed;
    }
    m->count++;
}

lap_mismatch lap_compare_exact(const float *got, const double *want, size_t n) {
    lap_mismatch m = {0};
    for (size_t i = 0; i < n; i++) {
        double difference = fabs((double)got[i] - want[i]);
        if (!(difference <= m.worst)) m.worst = isnan(difference) ? INFINITY : difference;
        /* Not got == want: infinity equals infinity. */
        if (!(difference == 0)) note(&m, i, got[i], want[i], 0);
    }
    return m;
}

lap_mismatch lap_compare_bound(const float *got, const double *want, const double *bound,
                               double factor, size_t n) {
    lap_mismatch m = {0};
    for (size_t i = 0; i < n; i++) {
        double allowed = factor * (bound ? bound[i] : fabs(want[i]));
        double difference = fabs((double)got[i] - want[i]);
        double share = difference == 0 ? 0 : difference / allowed;
        if (!(share <= m.worst)) m.worst = isnan(share) ? INFINITY : share;
        if (!(difference <= allowed)) note(&m, i, got[i], want[i], allowed);
    }
    return m;
}

double lap_relative_l2(const float *got, const double *want, size_t n) {
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        double difference = (double)got[i] - want[i];
        error += difference * difference;
        size += want[i] * want[i];
    }
    if (error == 0) return 0;
    double ratio = sqrt(error / size);
    return isfinite(ratio) ? ratio : INFINITY;
}
