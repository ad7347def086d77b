/* Images per second of a mean latency, with the interval that belongs to it. Pure arithmetic. */
#ifndef LAP_PAGE_RATE_H
#define LAP_PAGE_RATE_H

#include "compare/document.h"

typedef struct lap_rate {
    double value;
    bool has_interval; /* 95 %, by Student's t from the mean's standard error */
    double low, high;
} lap_rate;

/* span has a mean above 0. */
lap_rate lap_rate_of(const lap_span *span, uint64_t batch);

#endif
