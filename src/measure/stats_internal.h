/* Private to stats.c and order.c: parts of lap_stats_compute. */
#ifndef LAP_MEASURE_STATS_INTERNAL_H
#define LAP_MEASURE_STATS_INTERNAL_H

#include "measure/stats.h"

/* 95 % interval of the median from order statistics, its half width in ranks times widening. */
lap_interval lap_order_interval(const double *ascending, size_t n, double widening);
lap_optional lap_lag_one(const double *x, size_t n, double mean);
/* Square root of the integrated autocorrelation time of x: 1 + 2 x the sum of the correlations of
 * lags 1, 2, …, in pairs, up to the first pair that chance explains. */
double lap_widening(const double *x, size_t n);
lap_modes lap_best_split(const double *ascending, size_t n);

#endif
