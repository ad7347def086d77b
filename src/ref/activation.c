/* Activations of the reference, and how they carry the rounding error of what they are given. */
#include "ref/activation.h"

#include <math.h>

double lap_ref_activation(lap_activation act, double x) {
    switch (act) {
    case LAP_ACT_RELU:
        return x < 0.0 ? 0.0 : x; /* not fmax: a NaN must stay one */
    case LAP_ACT_SILU:
        return x / (1.0 + exp(-x)); /* minus infinity gives NaN, as it does in PyTorch */
    case LAP_ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-x));
    case LAP_ACT_NONE:
    case LAP_ACT_COUNT:
        break;
    }
    return x;
}

double lap_ref_activation_bound(lap_activation act, double bound, double y) {
    switch (act) {
    case LAP_ACT_SILU:
        return 1.1 * bound + 2.0 * fabs(y);
    case LAP_ACT_SIGMOID:
        return 0.25 * bound + 2.0 * fabs(y);
    case LAP_ACT_NONE:
    case LAP_ACT_RELU:
    case LAP_ACT_COUNT:
        break;
    }
    return bound;
}
