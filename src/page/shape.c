/* Histogram and cumulative curve (see shape.h). */
#include "page/shape.h"
#include "measure/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_BINS = 8, FAR = 8 };

static void fill_bins(const double *x, size_t n, lap_shape *s) {
    double quarter = lap_quantile(x, n, 0.25).value, upper = lap_quantile(x, n, 0.75).value;
    double spread = upper - quarter, fence = upper + FAR * spread;
    s->low = x[0];
    s->high = x[n - 1];
    if (spread > 0 && s->high > fence) s->high = fence;
    if (!(s->high > s->low)) { /* all alike: one bin around the value */
        double half = s->low > 0 ? s->low * 0.005 : 0.5e-9;
        s->low -= half;
        s->high += half;
        s->bins = 1;
    } else {
        double width = 2 * spread / cbrt((double)n);
        double bins = width > 0 ? ceil((s->high - s->low) / width) : LEAST_BINS;
        s->bins = (size_t)fmin(LAP_SHAPE_BINS, fmax(LEAST_BINS, bins));
    }
    for (size_t i = 0; i < n; i++) {
        if (x[i] > s->high) {
            s->beyond++;
            continue;
        }
        size_t bin = (size_t)((x[i] - s->low) / (s->high - s->low) * (double)s->bins);
        s->counts[bin < s->bins ? bin : s->bins - 1]++;
    }
}

/* Every sample is a step while there are few, else evenly spread ones; first and last always. */
static void fill_steps(const double *x, size_t n, lap_shape *s) {
    s->steps = n < LAP_SHAPE_STEPS ? n : LAP_SHAPE_STEPS;
    for (size_t k = 0; k < s->steps; k++) {
        size_t i = s->steps > 1 ? k * (n - 1) / (s->steps - 1) : n - 1;
        s->value[k] = x[i];
        s->share[k] = (double)(i + 1) / (double)n;
    }
}

lap_status lap_shape_of(const double *samples, size_t n, lap_shape *out, lap_error *err) {
    *out = (lap_shape){.n = n};
    if (n == 0) return LAP_OK;
    double *x = malloc(n * sizeof *x);
    if (!x) return LAP_FAIL(err, LAP_E_NOMEM, "no memory to sort %zu samples", n);
    memcpy(x, samples, n * sizeof *x);
    lap_sort(x, n);
    out->most = x[n - 1];
    fill_bins(x, n, out);
    fill_steps(x, n, out);
    free(x);
    return LAP_OK;
}
