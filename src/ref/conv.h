/* Convolution of the reference. Private to src/ref. */
#ifndef LAP_REF_CONV_H
#define LAP_REF_CONV_H

#include "ref/ref.h"

/* CONV and FC on n images. With magnitude, every x, w, bias and residual counts by its absolute
 * value and there is no ReLU: the result is then the scale of the rounding error bound. */
lap_status lap_ref_conv(const lap_op *op, int n, const double *x, const double *residual,
                        const lap_op_weights *weights, bool magnitude, double *y, lap_error *err);

#endif
