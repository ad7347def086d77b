/* Weight packers: from torch's [K][C][R][S] to the layouts kernels read. Pure functions of the op
 * and the row's parameters; they know no device and allocate nothing.
 */
#include "kernel/rows.h"

#include "base/half.h"

size_t lap_element_bytes(lap_precision precision) {
    return precision == LAP_FP16 || precision == LAP_BF16 ? 2 : 4;
}

void lap_element_put(lap_precision precision, void *to, size_t i, float value) {
    switch (precision) {
    case LAP_FP16:
        ((uint16_t *)to)[i] = lap_half_from_float(value);
        return;
    case LAP_BF16:
        ((uint16_t *)to)[i] = lap_bf16_from_float(value);
        return;
    case LAP_TF32:
        value = lap_tf32_round(value);
        break;
    case LAP_FP32:
    case LAP_FP32X3:
    case LAP_PRECISION_COUNT:
        break;
    }
    ((float *)to)[i] = value;
}

size_t lap_pack_krsc_bytes(const lap_case *c) {
    return (size_t)lap_op_weight_count(c->op) * lap_element_bytes(c->precision);
}

void lap_pack_krsc(const lap_case *c, const lap_op_weights *weights, void *out) {
    const lap_op *op = c->op;
    size_t k_count = (size_t)op->out.c, c_count = (size_t)op->in.c;
    size_t taps = op->kind == LAP_OP_CONV ? (size_t)op->r * (size_t)op->s : 1;
    size_t at = 0;
    for (size_t k = 0; k < k_count; k++)
        for (size_t tap = 0; tap < taps; tap++)
            for (size_t channel = 0; channel < c_count; channel++)
                lap_element_put(c->precision, out, at++,
                                weights->w[(k * c_count + channel) * taps + tap]);
}

size_t lap_pack_rsc_bytes(const lap_case *c) {
    const lap_op *op = c->op;
    return (size_t)op->r * (size_t)op->s * (size_t)op->out.cs * lap_element_bytes(c->precision);
}

void lap_pack_rsc(const lap_case *c, const lap_op_weights *weights, void *out) {
    size_t taps = (size_t)c->op->r * (size_t)c->op->s, at = 0;
    for (size_t tap = 0; tap < taps; tap++)
        for (size_t channel = 0; channel < (size_t)c->op->out.cs; channel++)
            lap_element_put(c->precision, out, at++,
                            channel < (size_t)c->op->out.c ? weights->w[channel * taps + tap]
                                                           : 0.0f);
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

/* Winograd's G for F(m x m, 3x3): a row per point, for g[0], g[1], g[2]. For m = 4 the points are
 * 0,
 * +-sqrt(1/2), +-sqrt(2) and infinity. */
static const double winograd2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
#define ROOT_HALF 0.70710678118654752440
#define ROOT_TWO 1.41421356237309504880
static const double winograd4[6][3] = {{1, 0, 0},
                                       {-2.0 / 3, -ROOT_HALF * 2 / 3, -1.0 / 3},
                                       {-2.0 / 3, ROOT_HALF * 2 / 3, -1.0 / 3},
                                       {1.0 / 6, ROOT_TWO / 6, 1.0 / 3},
                                       {1.0 / 6, -ROOT_TWO / 6, 1.0 / 3},
                                       {0, 0, 1}};

void lap_winograd_window(const float *g, int edge, float *u) {
    const double(*matrix)[3] = edge == 4 ? winograd2 : winograd4;
    double half[6][3];
    for (int i = 0; i < edge; i++)
        for (int j = 0; j < 3; j++)
            half[i][j] = matrix[i][0] * (double)g[j] + matrix[i][1] * (double)g[3 + j] +
                         matrix[i][2] * (double)g[6 + j];
    for (int i = 0; i < edge; i++)
        for (int j = 0; j < edge; j++)
            u[i * edge + j] = (float)(matrix[j][0] * half[i][0] + matrix[j][1] * half[i][1] +
                                      matrix[j][2] * half[i][2]);
}

void lap_pack_winograd(const lap_op *op, const lap_op_weights *weights, int block, int m,
                       void *out) {
    size_t k_count = (size_t)op->out.c, c_count = (size_t)op->in.c, width = (size_t)block;
    size_t end = (k_count + width - 1) / width * width;
    size_t points = (size_t)(m + 2) * (size_t)(m + 2);
    float *packed = out;
    for (size_t k = 0; k < end; k++)
        for (size_t channel = 0; channel < c_count; channel++) {
            float u[36] = {0};
            if (k < k_count)
                lap_winograd_window(weights->w + (k * c_count + channel) * 9, m + 2, u);
            for (size_t point = 0; point < points; point++)
                packed[((k / width * points + point) * c_count + channel) * width + k % width] =
                    u[point];
        }
}
