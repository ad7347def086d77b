/* Weight packers: from torch's [K][C][R][S] to the layouts kernels read. Pure functions of the op
 * and the row's parameters; they know no device and allocate nothing.
 */
#include "kernel/rows.h"

#include <string.h>

size_t lap_pack_krsc_bytes(const lap_case *c) {
    return (size_t)lap_op_weight_count(c->op) * sizeof(float);
}

void lap_pack_krsc(const lap_case *c, const lap_op_weights *weights, void *out) {
    const lap_op *op = c->op;
    size_t k_count = (size_t)op->out.c, c_count = (size_t)op->in.c;
    size_t taps = op->kind == LAP_OP_CONV ? (size_t)op->r * (size_t)op->s : 1;
    float *packed = out;
    for (size_t k = 0; k < k_count; k++)
        for (size_t tap = 0; tap < taps; tap++)
            for (size_t channel = 0; channel < c_count; channel++)
                *packed++ = weights->w[(k * c_count + channel) * taps + tap];
}
