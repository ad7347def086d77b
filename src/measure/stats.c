/* Statistics of samples. Arithmetic only: no clock, no device, no text. */
#include "measure/stats.h"
#include "measure/stats_internal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

void lap_sort(double *values, size_t n) {
    if (n > 1) qsort(values, n, sizeof *values, ascending_order);
}

lap_optional lap_relative_error(const lap_stats *s) {
    if (!s->std.has) return lap_none();
    return lap_ratio(lap_some(s->std.value / sqrt((double)s->n) * s->widening), s->mean);
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

/* Half widths are widened by what neighbours have in common: n samples that resemble each other
 * tell less than n independent ones. */
static void mean_interval(lap_stats *out) {
    if (!out->std.has) return;
    double half =
        lap_student_95(out->n - 1) * out->std.value / sqrt((double)out->n) * out->widening;
    out->mean_ci = (lap_interval){true, out->mean.value - half, out->mean.value + half};
}

/* Beyond 3.5 standard deviations of a normal distribution with this MAD (Iglewicz and Hoaglin). */
static void count_outliers(const double *ascending, lap_stats *out) {
    if (out->n < LAP_MIN_N_OUTLIERS || !(out->mad.value > 0)) return;
    double fence = 3.5 / 0.6745 * out->mad.value, middle = out->p50.value;
    out->has_outliers = true;
    for (size_t i = 0; i < out->n; i++) {
        out->outliers_low += ascending[i] < middle - fence;
        out->outliers_high += ascending[i] > middle + fence;
    }
}

/* What needs only the sorted samples. */
static void order_statistics(const double *x, size_t n, lap_stats *out) {
    out->min = lap_some(x[0]);
    out->max = lap_some(x[n - 1]);
    out->p50 = lap_quantile(x, n, 0.50);
    if (n >= LAP_MIN_N_P90) out->p90 = lap_quantile(x, n, 0.90);
    if (n >= LAP_MIN_N_P95) out->p95 = lap_quantile(x, n, 0.95);
    if (n >= LAP_MIN_N_P99) out->p99 = lap_quantile(x, n, 0.99);
    out->p50_ci = lap_order_interval(x, n, out->p50_widening);
    out->modes = lap_best_split(x, n);
}

static double median_of(const double *samples, size_t n, double *work) {
    memcpy(work, samples, n * sizeof *work);
    lap_sort(work, n);
    return lap_quantile(work, n, 0.5).value;
}

/* work has room for n. */
static lap_status trend(const double *x, size_t n, double *work, lap_stats *out, lap_error *err) {
    if (n < LAP_MIN_N_ORDER) return LAP_OK;
    double rho;
    if (!lap_rank_correlation(x, n, &rho))
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the ranks of %zu samples", n);
    size_t third = n / 3;
    double first = median_of(x, third, work), last = median_of(x + n - third, third, work);
    lap_optional change = lap_ratio(lap_some(last), lap_some(first));
    out->drift = (lap_drift){true, rho, lap_spearman_p(rho, n), change.has ? change.value - 1 : 0};
    return LAP_OK;
}

static lap_status describe(double *x, size_t n, double *work, lap_stats *out, lap_error *err) {
    moments(x, n, out);
    out->autocorrelation = lap_lag_one(x, n, out->mean.value);
    out->widening = lap_widening(x, n);
    mean_interval(out);
    LAP_TRY(trend(x, n, work, out, err));
    /* The median's error is that of the share of samples below it: of their sides, not values. */
    double middle = median_of(x, n, work);
    for (size_t i = 0; i < n; i++)
        work[i] = (x[i] > middle) - (x[i] < middle);
    out->p50_widening = lap_widening(work, n);
    lap_sort(x, n);
    order_statistics(x, n, out);
    for (size_t i = 0; i < n; i++)
        work[i] = fabs(x[i] - out->p50.value);
    lap_sort(work, n);
    out->mad = lap_quantile(work, n, 0.5);
    count_outliers(x, out);
    return LAP_OK;
}

lap_status lap_stats_compute(const double *samples, size_t n, lap_stats *out, lap_error *err) {
    *out = (lap_stats){.widening = 1, .p50_widening = 1};
    if (n == 0) return LAP_OK;
    double *x = n <= SIZE_MAX / (2 * sizeof *x) ? malloc(2 * n * sizeof *x) : NULL;
    if (!x) return LAP_FAIL(err, LAP_E_NOMEM, "no memory to sort %zu samples", n);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(samples[i])) x[kept++] = samples[i];
    out->n = kept;
    lap_status status = kept > 0 ? describe(x, kept, x + n, out, err) : LAP_OK;
    free(x);
    return status;
}
