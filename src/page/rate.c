/* Images per second (see rate.h). */
#include "page/rate.h"

#include <math.h>

lap_rate lap_rate_of(const lap_span *span, uint64_t batch) {
    lap_rate rate = {.value = (double)batch / span->mean_s.value};
    if (!span->relative_error.has || span->n < 2) return rate;
    double w = lap_student_95((size_t)span->n - 1) * span->relative_error.value;
    /* On the logarithm, as for ratios: an interval of rates is never below 0. */
    rate.has_interval = true;
    rate.low = rate.value * exp(-w);
    rate.high = rate.value * exp(w);
    return rate;
}
