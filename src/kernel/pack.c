/* Weight packers: from torch's [K][C][R][S] to the layouts kernels read. Pure functions of the op
 * and the row's parameters; they know no device and allocate nothing.
 */
#include "kernel/rows.h"

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

void lap_pack_rsck(const lap_case *c, const lap_op_weights *weights, void *out) {
    const lap_op *op = c->op;
    size_t k_count = (size_t)op->out.c, c_count = (size_t)op->in.c;
    size_t taps = op->kind == LAP_OP_CONV ? (size_t)op->r * (size_t)op->s : 1;
    float *packed = out;
    for (size_t tap = 0; tap < taps; tap++)
        for (size_t channel = 0; channel < c_count; channel++)
            for (size_t k = 0; k < k_count; k++)
                *packed++ = weights->w[(k * c_count + channel) * taps + tap];
}

void lap_pack_blocked(const lap_op *op, const lap_op_weights *weights, int block, void *out) {
    size_t k_count = (size_t)op->out.c, c_count = (size_t)op->in.c, width = (size_t)block;
    size_t taps = op->kind == LAP_OP_CONV ? (size_t)op->r * (size_t)op->s : 1;
    size_t end = ((size_t)op->out.cs + width - 1) / width * width;
    float *packed = out;
    for (size_t k0 = 0; k0 < end; k0 += width)
        for (size_t tap = 0; tap < taps; tap++)
            for (size_t channel = 0; channel < c_count; channel++)
                for (size_t k = k0; k < k0 + width; k++)
                    *packed++ =
                        k < k_count ? weights->w[(k * c_count + channel) * taps + tap] : 0.0f;
}
