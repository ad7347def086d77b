/* Plain reference implementations in double, no cleverness beyond threads and loop order.
 *
 * Nothing here shares code with a kernel: kernels are checked against it. Tensors are double, NHWC
 * with logical channels; see each function. Runs on all online cores.
 */
#ifndef LAP_REF_REF_H
#define LAP_REF_REF_H

#include "net/op.h"
#include "net/weights.h"

/* One op on n images. x, residual and y are double, NHWC with LOGICAL channels (no padding):
 * x[n][h][w][c]. w and bias are the folded floats of the op (NULL where it has none). residual may
 * be NULL when the op has none. If bound is not NULL it receives, per output element, sum|x||w| +
 * |b| + |res| (CONV, FC, DWCONV), |x||factor| (SCALE) or the largest |x| in the window (pools),
 * carried through the activation: the scale of the rounding error
 * bound. */
lap_status lap_ref_op(const lap_op *op, int n, const double *x, const double *residual,
                      const lap_op_weights *weights, double *y, double *bound, lap_error *err);

/* The whole network on ONE image (float NCHW): logits[classes] in double. */
lap_status lap_ref_forward(const lap_net *net, const lap_weights *weights, const float *image,
                           double *logits, lap_error *err);

#endif
