/* Statistics of samples: pure arithmetic, no device code, no formatting.
 *
 * Values that do not exist (the standard deviation of one sample, the 99th percentile of ten) are
 * absent, never 0, NaN or infinite: lap_optional says which. Units are those of the samples.
 * Samples are given in the order in which they were taken: drift and autocorrelation need it.
 */
#ifndef LAP_MEASURE_STATS_H
#define LAP_MEASURE_STATS_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>

/* A double that may be absent. When has is false, value is 0 and means nothing. */
typedef struct lap_optional {
    bool has;
    double value;
} lap_optional;

/* Present if value is finite, else absent: no NaN or infinity passes this point. */
lap_optional lap_some(double value);
lap_optional lap_none(void);
/* a / b; absent when either is absent, b is not above zero, or the result is not finite. */
lap_optional lap_ratio(lap_optional a, lap_optional b);

/* Fewest samples from which a percentile is given (one sample lies beyond it): with fewer it would
 * be (nearly) the maximum and claim a precision it does not have. */
enum { LAP_MIN_N_P90 = 10, LAP_MIN_N_P95 = 20, LAP_MIN_N_P99 = 100 };
/* Below so many (five samples lie beyond it) a percentile is shown with a star: it is rough. */
enum { LAP_STAR_N_P90 = 50, LAP_STAR_N_P95 = 100, LAP_STAR_N_P99 = 500 };

/* Fewest samples for what looks at more than location and spread. */
enum { LAP_MIN_N_OUTLIERS = 5, LAP_MIN_N_ORDER = 10, LAP_MIN_N_MODES = 30 };

typedef struct lap_interval {
    bool has;
    double low, high;
} lap_interval;

/* A trend over the order of the samples (n >= LAP_MIN_N_ORDER). */
typedef struct lap_drift {
    bool has;
    double rho;      /* Spearman's rank correlation of value and position, -1..1 */
    double p;        /* two-sided, of no trend at all */
    double relative; /* median of the last third / median of the first third - 1 */
} lap_drift;

/* The best split of the samples into a lower and an upper group (n >= LAP_MIN_N_MODES). */
typedef struct lap_modes {
    bool has;
    double share;      /* of the variance that the split explains: 0.64 for a normal distribution,
                          0.75 for a uniform one, near 1 for two separate groups */
    double low, high;  /* means of the groups */
    double upper_part; /* share of the samples in the upper group, 0.1..0.9 */
} lap_modes;

typedef struct lap_stats {
    size_t n; /* samples that were finite; all fields below are about these */
    lap_optional mean;
    lap_optional std; /* divisor n - 1; absent for n < 2 */
    lap_optional min, p50, max;
    lap_optional p90, p95, p99;    /* absent below LAP_MIN_N_* samples */
    lap_optional mad;              /* median absolute deviation from the median, not scaled */
    lap_optional autocorrelation;  /* lag 1; absent below LAP_MIN_N_ORDER or without spread */
    double widening, p50_widening; /* factors >= 1 by which neighbours that resemble each other
                                      widen the intervals of mean and median */
    lap_interval mean_ci, p50_ci;  /* 95 %; mean_ci needs n >= 2, p50_ci n >= 6 */
    bool has_outliers;             /* counted: n >= LAP_MIN_N_OUTLIERS and mad above 0 */
    size_t outliers_low, outliers_high;
    lap_drift drift;
    lap_modes modes;
} lap_stats;

/* Everything above. samples may be NULL when n is 0 and is not changed. Non-finite samples are left
 * out (out->n counts the others). Error: LAP_E_NOMEM (for sorted copies). */
lap_status lap_stats_compute(const double *samples, size_t n, lap_stats *out, lap_error *err);

/* Standard error of the mean over the mean, widened by autocorrelation; absent for n < 2. */
lap_optional lap_relative_error(const lap_stats *stats);

/* Quantile q in [0, 1] of n ascending finite values by linear interpolation between closest ranks
 * (Hyndman and Fan's definition 7, the default of R and NumPy): position h = (n - 1) q, value
 * x[floor h] + (h - floor h) (x[floor h + 1] - x[floor h]). Absent for n = 0 or q outside [0, 1].
 */
lap_optional lap_quantile(const double *ascending, size_t n, double q);

/* Sort in place, ascending; values are finite. */
void lap_sort(double *values, size_t n);

/* The t with P(|T| <= t) = 0.95 for so many degrees of freedom (at least 1). */
double lap_student_95(size_t freedom);
/* Ranks (1-based, from below and from above alike) of the narrowest symmetric order-statistic
 * interval of the median with a coverage of at least 95 %: x[rank] .. x[n + 1 - rank]. 0 if there
 * is none (n < 6). */
size_t lap_median_rank_95(size_t n);

/* Spearman's rank correlation of x with its positions, ties given mean ranks; 0 without spread.
 * False on a lack of memory. */
bool lap_rank_correlation(const double *x, size_t n, double *rho);
/* Two-sided p of a Spearman correlation of n values, by Student's t with n - 2 degrees. */
double lap_spearman_p(double rho, size_t n);

#endif
