/* What the tests run kernel rows on: single ops, and pairs of ops that one row may compute. Shapes
 * only, no data. */
#ifndef LAP_TEST_SHAPES_H
#define LAP_TEST_SHAPES_H

#include "kernel/kernel.h"

typedef struct shape {
    lap_op_kind kind;
    int n, c, h, w, k, r, s, stride, pad;
    lap_activation act;
    bool residual;
    /* The partner, whose other sizes follow from the op's: window, step and border of the max-pool;
     * input channels and step of the 1x1 convolution; outputs of the layer. */
    lap_fusion fusion;
    int size2, stride2, pad2;
} shape;

extern const shape shapes[];
extern const int shape_count;
/* Those on which a CPU stands in for a GPU, and all that a simulator gets. */
extern const int small_shapes[];
extern const int small_shape_count;

/* The index of a shape of usual size that a row may compute. */
int shape_for(lap_op_kind kind, lap_fusion fusion);

lap_op shape_op(const shape *s);
/* The partner of shape_op(s); only with a fusion. */
lap_op shape_partner(const shape *s, const lap_op *op);

#endif
