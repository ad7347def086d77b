/* Statistics of samples. Arithmetic only: no clock, no device, no text. */
#include "measure/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

lap_optional lap_some(double value) {
    return isfinite(value) ? (lap_optional){true, value} : lap_none();
}

lap_optional lap_none(void) {
    return (lap_optional){false, 0.0};
}

lap_optional lap_ratio(lap_optional a, lap_optional b) {
    if (!a.has || !b.has || !(b.value > 0)) return lap_none();
    return lap_some(a.value / b.value);
}

lap_optional lap_quantile(const double *ascending, size_t n, double q) {
    if (n == 0 || !(q >= 0 && q <= 1)) return lap_none();
    double h = (double)(n - 1) * q;
    size_t low = (size_t)h;
    if (low >= n - 1) return lap_some(ascending[n - 1]);
    double part = h - (double)low;
    /* Written so that equal neighbours give exactly their value. */
    return lap_some(ascending[low] + part * (ascending[low + 1] - ascending[low]));
}

static int ascending_order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void moments(const double *x, size_t n, lap_stats *out) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    double mean = sum / (double)n, squares = 0, rest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = x[i] - mean;
        squares += d * d;
        rest += d; /* zero but for rounding; correcting by it makes the second pass exact enough */
    }
    out->mean = lap_some(mean);
    if (n < 2) return;
    double variance = (squares - rest * rest / (double)n) / (double)(n - 1);
    out->std = lap_some(sqrt(variance > 0 ? variance : 0));
}

lap_status lap_stats_compute(const double *samples, size_t n, lap_stats *out, lap_error *err) {
    *out = (lap_stats){0};
    if (n == 0) return LAP_OK;
    double *x = n <= SIZE_MAX / sizeof *x ? malloc(n * sizeof *x) : NULL;
    if (!x) return LAP_FAIL(err, LAP_E_NOMEM, "no memory to sort %zu samples", n);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(samples[i])) x[kept++] = samples[i];
    out->n = kept;
    if (kept > 0) {
        qsort(x, kept, sizeof *x, ascending_order);
        moments(x, kept, out);
        out->min = lap_some(x[0]);
        out->max = lap_some(x[kept - 1]);
        out->p50 = lap_quantile(x, kept, 0.50);
        if (kept >= LAP_MIN_N_P90) out->p90 = lap_quantile(x, kept, 0.90);
        if (kept >= LAP_MIN_N_P95) out->p95 = lap_quantile(x, kept, 0.95);
        if (kept >= LAP_MIN_N_P99) out->p99 = lap_quantile(x, kept, 0.99);
    }
    free(x);
    return LAP_OK;
}
