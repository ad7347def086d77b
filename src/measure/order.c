/* Statistics of the order of samples and of their ranks: intervals, trend, groups. Arithmetic only,
 * see stats.h. */
#include "measure/stats.h"
#include "measure/stats_internal.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static const double PI = 3.14159265358979323846;

/* ---- Student's t ---------------------------------------------------------------------------- */

/* P(|T| <= t), by the finite series for whole degrees of freedom. */
static double student_inside(double t, size_t freedom) {
    double angle = atan(t / sqrt((double)freedom));
    double sine = sin(angle), cosine = cos(angle), square = cosine * cosine;
    bool odd = freedom % 2 == 1;
    double term = odd ? cosine : 1, sum = 0;
    for (size_t k = odd ? 3 : 2; k <= freedom; k += 2) {
        sum += term;
        double d = (double)k;
        term *= square * (d - 1) / d;
    }
    return odd ? 2 / PI * (angle + sine * sum) : sine * sum;
}

/* From here on the first two terms of the expansion in 1/freedom are exact to 1e-6. */
enum { MANY_DEGREES = 200 };

double lap_student_95(size_t freedom) {
    const double z = 1.959963984540054;
    if (freedom < 1) freedom = 1;
    if (freedom > MANY_DEGREES) {
        double v = (double)freedom, z3 = z * z * z;
        return z + (z3 + z) / (4 * v) + (5 * z3 * z * z + 16 * z3 + 3 * z) / (96 * v * v);
    }
    double low = 0, high = 20;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (student_inside(middle, freedom) < 0.95)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* ---- the median's interval ------------------------------------------------------------------ */

/* Where the exact binomial sum is too long, its normal approximation is exact to a rank. */
enum { MANY_SAMPLES = 1000 };

size_t lap_median_rank_95(size_t n) {
    if (n < 6) return 0;
    if (n > MANY_SAMPLES) {
        double rank = floor((double)n / 2 - 1.959963984540054 * sqrt((double)n) / 2);
        return rank < 1 ? 1 : (size_t)rank;
    }
    /* The largest r with P(B < r) <= 0.025 for B ~ binomial(n, 1/2). */
    double log_term = -(double)n * log(2.0), below = 0;
    size_t rank = 0;
    for (size_t k = 0; k < n / 2; k++) {
        below += exp(log_term);
        if (!(below <= 0.025)) break;
        rank = k + 1;
        log_term += log((double)(n - k)) - log((double)(k + 1));
    }
    return rank;
}

lap_interval lap_order_interval(const double *ascending, size_t n, double widening) {
    size_t rank = lap_median_rank_95(n);
    if (rank == 0) return (lap_interval){0};
    double half = ((double)(n + 1) / 2 - (double)rank) * widening;
    double low = floor((double)(n + 1) / 2 - half);
    rank = low < 1 ? 1 : (size_t)low;
    return (lap_interval){true, ascending[rank - 1], ascending[n - rank]};
}

/* ---- trend and autocorrelation -------------------------------------------------------------- */

typedef struct ranked {
    double value;
    size_t at;
} ranked;

static int by_value(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->value != y->value) return x->value > y->value ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

bool lap_rank_correlation(const double *x, size_t n, double *rho) {
    *rho = 0;
    if (n < 2) return true;
    ranked *r = n <= SIZE_MAX / sizeof *r ? malloc(n * sizeof *r) : NULL;
    if (!r) return false;
    for (size_t i = 0; i < n; i++)
        r[i] = (ranked){x[i], i};
    qsort(r, n, sizeof *r, by_value);
    double middle = (double)(n - 1) / 2, with = 0, own = 0, position = 0;
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && r[end].value == r[i].value)
            end++;
        double rank = (double)(i + end - 1) / 2 - middle; /* ties share their mean rank */
        for (; i < end; i++) {
            double p = (double)r[i].at - middle;
            with += rank * p;
            own += rank * rank;
            position += p * p;
        }
    }
    free(r);
    if (own > 0) *rho = with / sqrt(own * position);
    return true;
}

double lap_spearman_p(double rho, size_t n) {
    if (n < 3) return 1;
    double rest = 1 - rho * rho;
    if (!(rest > 0)) return 0;
    if (n - 2 > MANY_DEGREES) { /* Wallace: the normal deviate of t, to 1e-4 of p far out too */
        double v = (double)(n - 2);
        double z = sqrt(-v * log1p(-rho * rho)) * (8 * v + 1) / (8 * v + 3);
        return erfc(z / sqrt(2.0));
    }
    double t = fabs(rho) * sqrt((double)(n - 2) / rest);
    double outside = 1 - student_inside(t, n - 2);
    return outside > 0 ? outside : 0;
}

lap_optional lap_lag_one(const double *x, size_t n, double mean) {
    if (n < LAP_MIN_N_ORDER) return lap_none();
    double with = 0, own = 0;
    for (size_t i = 0; i < n; i++) {
        double d = x[i] - mean;
        own += d * d;
        if (i > 0) with += d * (x[i - 1] - mean);
    }
    return own > 0 ? lap_some(with / own) : lap_none();
}

static double correlation(const double *x, size_t n, double mean, double own, size_t lag) {
    double with = 0;
    for (size_t i = lag; i < n; i++)
        with += (x[i] - mean) * (x[i - lag] - mean);
    return with / own;
}

/* Lags are looked at while they matter, and no further than this. */
enum { MOST_LAGS = 400 };

double lap_widening(const double *x, size_t n) {
    if (n < LAP_MIN_N_ORDER) return 1;
    double sum = 0, own = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    double mean = sum / (double)n, time = 1;
    for (size_t i = 0; i < n; i++)
        own += (x[i] - mean) * (x[i] - mean);
    if (!(own > 0)) return 1;
    /* What independent samples show by chance does not count. */
    double chance = 2 * sqrt(2 / (double)n);
    for (size_t lag = 1; lag + 1 < n / 4 && lag < MOST_LAGS; lag += 2) {
        double pair = correlation(x, n, mean, own, lag) + correlation(x, n, mean, own, lag + 1);
        if (!(pair > chance)) break;
        time += 2 * pair;
    }
    return sqrt(time);
}

/* ---- groups --------------------------------------------------------------------------------- */

lap_modes lap_best_split(const double *ascending, size_t n) {
    if (n < LAP_MIN_N_MODES) return (lap_modes){0};
    /* 5 % at each end stay out: a few far outliers are no group and must not hide two. */
    size_t cut = n / 20, kept = n - 2 * cut, least = n / 10 - cut;
    const double *x = ascending + cut;
    if (least < 1) least = 1;
    double origin = x[kept / 2], sum = 0, squares = 0;
    for (size_t i = 0; i < kept; i++) {
        double d = x[i] - origin;
        sum += d;
        squares += d * d;
    }
    double total = squares - sum * sum / (double)kept, best = -1, left = 0;
    lap_modes out = {0};
    for (size_t i = 1; i < kept; i++) {
        left += x[i - 1] - origin;
        if (i < least || kept - i < least) continue;
        double a = (double)i, b = (double)(kept - i), low = left / a, high = (sum - left) / b;
        double between = a * b / (a + b) * (high - low) * (high - low);
        if (!(between > best)) continue;
        best = between;
        out = (lap_modes){true, 0, origin + low, origin + high, (double)(n - cut - i) / (double)n};
    }
    out.share = total > 0 ? best / total : 0;
    return out;
}
