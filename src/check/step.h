/* Private to src/check: one step of a plan with what it reads, writes and should give. */
#ifndef LAP_CHECK_STEP_H
#define LAP_CHECK_STEP_H

#include "check/check.h"

/* What one step reads and writes. The second input is the residual or SCALE's factors, or the input
 * of a fused downsample convolution; the third is what else a pair reads. */
typedef struct check_step {
    const lap_op *op, *partner, *means;
    lap_fusion fusion;
    const char *name, *kernel;
    /* Tensors; -1 where there is none. `extra` is a second output. */
    int in, second, third, out, extra;
    lap_tensor in_shape, second_shape, third_shape, out_shape, extra_shape;
    const lap_op_weights *w, *partner_w;
    lap_precision precision;
    int error_factor; /* the row's */
    bool logits;      /* the step writes the network's output */
} check_step;

typedef struct check_arrays {
    float *in, *second, *third, *out, *again, *extra, *extra_again;
    double *in64, *second64, *third64, *want, *bound, *middle, *middle_bound;
    double *extra_want, *extra_bound;
} check_arrays;

/* ---- step.c ---------------------------------------------------------------------------------- */

check_step check_describe(const lap_plan *plan, int step, const lap_weights *weights,
                          lap_precision precision);
void check_arrays_free(check_arrays *a);
lap_status check_arrays_new(const check_step *io, uint64_t n, check_arrays *a, lap_error *err);
/* What the step should give, and the scale of its rounding error per element. */
lap_status check_reference(const check_step *io, int n, const check_arrays *a, lap_error *err);

/* ---- integers.c: values whose sums are exact --------------------------------------------------
 */

/* An integer in -range..range from the counter-based generator. */
float check_integer(uint64_t stream, uint64_t index, int range);
/* Integers in -range..range for inputs and weights. With 24 bits of fraction 8 keeps every partial
 * sum exact. Storage with 11 bits takes smaller ones, so that the results themselves stay exact. */
int check_integer_range(lap_precision precision);
void check_fill_integers(const lap_op *op, uint64_t n, int range, uint64_t stream, float *out);
/* Integer weights for the whole network, shaped like real ones. */
lap_status check_integer_weights(const lap_net *net, const lap_weights *like, int range,
                                 lap_weights **out, lap_error *err);

/* ---- bounds.c: what rounding may do -----------------------------------------------------------
 */

/* The value that storage of the precision gives for an exact one: correctly rounded. */
double check_stored(const check_step *io, double exact);
/* Unit roundoff of the operands. */
double check_roundoff(lap_precision precision);
/* Unit roundoff times what the errors of the step's sums may add up to. Wide operands: errors of
 * the sum dominate and grow like a random walk. Narrow ones: the rounding of the operands
 * dominates. */
double check_bound_factor(const check_step *io);
/* Small halves have steps of 2^-24 however small they are: no value is closer than that. */
void check_allow_small(const check_step *io, double *bound, size_t count);

#endif
