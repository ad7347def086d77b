/* Statistics of samples: pure arithmetic, no device code, no formatting.
 *
 * Values that do not exist (the standard deviation of one sample, the 99th percentile of ten) are
 * absent, never 0, NaN or infinite: lap_optional says which. Units are those of the samples.
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

/* Fewest samples from which a percentile is given: with fewer it would be (nearly) the maximum and
 * claim a precision it does not have. */
enum { LAP_MIN_N_P90 = 10, LAP_MIN_N_P95 = 20, LAP_MIN_N_P99 = 100 };

typedef struct lap_stats {
    size_t n; /* samples that were finite; all fields below are about these */
    lap_optional mean;
    lap_optional std; /* divisor n - 1; absent for n < 2 */
    lap_optional min, p50, max;
    lap_optional p90, p95, p99; /* absent below LAP_MIN_N_* samples */
} lap_stats;

/* Two-pass mean and standard deviation, quantiles as in lap_quantile. samples may be NULL when n is
 * 0 and is not changed. Non-finite samples are left out (out->n counts the others).
 * Error: LAP_E_NOMEM (for the sorted copy). */
lap_status lap_stats_compute(const double *samples, size_t n, lap_stats *out, lap_error *err);

/* Quantile q in [0, 1] of n ascending finite values by linear interpolation between closest ranks
 * (Hyndman and Fan's definition 7, the default of R and NumPy): position h = (n - 1) q, value
 * x[floor h] + (h - floor h) (x[floor h + 1] - x[floor h]). Absent for n = 0 or q outside [0, 1].
 */
lap_optional lap_quantile(const double *ascending, size_t n, double q);

#endif
