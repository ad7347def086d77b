/* The state dict of a network: the tensors that training leaves behind, by torchvision's names.
 * Private to src/net. Describes them and folds them; where values come from is a lap_state_source.
 */
#ifndef LAP_NET_STATE_H
#define LAP_NET_STATE_H

#include "net/weights.h"

#define LAP_BN_EPSILON 1e-5 /* torch's default, which torchvision uses */

typedef enum lap_state_role {
    LAP_STATE_WEIGHT,      /* CONV [k][c][r][s], FC [k][c] */
    LAP_STATE_BIAS,        /* of an op without batch norm */
    LAP_STATE_BN_SCALE,    /* bn.weight */
    LAP_STATE_BN_SHIFT,    /* bn.bias */
    LAP_STATE_BN_MEAN,     /* bn.running_mean */
    LAP_STATE_BN_VARIANCE, /* bn.running_var */
    LAP_STATE_BN_COUNTER   /* bn.num_batches_tracked: int64 scalar, not used by inference */
} lap_state_role;

typedef struct lap_state_tensor {
    char name[80];
    lap_state_role role;
    const lap_op *op;
    int rank;
    uint64_t shape[4];
    uint64_t count; /* product of shape; 1 for a scalar */
    bool scaled;    /* a weight of an op that reads a SCALE's output */
} lap_state_tensor;

typedef struct lap_state {
    lap_state_tensor *tensors; /* torch's order: op by op */
    int count;
    int *first; /* per op: index of its weight tensor, -1 if it has none; the others follow */
} lap_state;

lap_status lap_state_new(const lap_net *net, lap_state *out, lap_error *err);
void lap_state_free(lap_state *state);

/* Gives the count values of tensor index (never asked for a LAP_STATE_BN_COUNTER). */
typedef lap_status (*lap_state_fetch)(void *context, int index, float *out, lap_error *err);

/* The synthetic values of one tensor; see synthetic.c for their definition. */
void lap_synthetic_fill(uint64_t seed, const lap_state_tensor *tensor, float *out);

#endif
