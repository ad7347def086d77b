/* How samples are distributed, for drawing: counts in bins, and the cumulative share. Pure
 * arithmetic. */
#ifndef LAP_PAGE_SHAPE_H
#define LAP_PAGE_SHAPE_H

#include "base/status.h"
#include <stddef.h>

enum { LAP_SHAPE_BINS = 40, LAP_SHAPE_STEPS = 120 };

typedef struct lap_shape {
    size_t n;
    size_t bins;      /* 1 .. LAP_SHAPE_BINS, of the same width; 0 without samples */
    double low, high; /* edges of the first and the last bin */
    size_t counts[LAP_SHAPE_BINS];
    size_t beyond; /* samples above high: far outliers must not squeeze the rest into one bin */
    double most;   /* the largest sample */
    size_t steps;  /* of the cumulative curve: share of the samples up to a value */
    double value[LAP_SHAPE_STEPS], share[LAP_SHAPE_STEPS];
} lap_shape;

/* Bins by the rule of Freedman and Diaconis (twice the interquartile range over the cube root of
 * n), at least 8, from the least sample to the largest, or to the upper quartile plus eight times
 * the interquartile range. LAP_E_NOMEM. */
lap_status lap_shape_of(const double *samples, size_t n, lap_shape *out, lap_error *err);

#endif
