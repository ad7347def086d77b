/* Comparisons of results with references. Pure; every test is written so that NaN fails. */
#ifndef LAP_CHECK_COMPARE_H
#define LAP_CHECK_COMPARE_H

#include "net/op.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct lap_mismatch {
    bool found;
    size_t index; /* first wrong element */
    size_t count; /* wrong elements in all */
    float got;
    double want, allowed; /* allowed difference, 0 for exact */
    double worst;         /* largest |got - want| over allowed; |got - want| when exact; INFINITY if
                             not finite */
} lap_mismatch;

/* Equality of values: 0 and -0 are equal, NaN and Inf equal nothing, not even themselves. */
lap_mismatch lap_compare_exact(const float *got, const double *want, size_t n);
/* |got - want| <= factor * bound[i]; with bound NULL factor * |want|. */
lap_mismatch lap_compare_bound(const float *got, const double *want, const double *bound,
                               double factor, size_t n);
/* ||got - want|| / ||want||, INFINITY when anything is not finite or want is zero and got is not.
 */
double lap_relative_l2(const float *got, const double *want, size_t n);

#endif
