/* Activations of the reference. Private to src/ref. */
#ifndef LAP_REF_ACTIVATION_H
#define LAP_REF_ACTIVATION_H

#include "net/op.h"

double lap_ref_activation(lap_activation act, double x);

/* The scale of the error of y = act(x), where `bound` is that of x: no activation has a slope above
 * 1.1 (SiLU) or 1/4 (sigmoid); SiLU and sigmoid themselves are rounded, to within twice the scale's
 * unit of their result. */
double lap_ref_activation_bound(lap_activation act, double bound, double y);

#endif
