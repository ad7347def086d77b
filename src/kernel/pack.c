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

/* out[4] = G in[3], for values `step` apart. */
static void winograd_column(const double *in, int in_step, double *out, int out_step) {
    double a = in[0], b = in[in_step], c = in[2 * in_step];
    out[0] = a;
    out[out_step] = (a + b + c) / 2.0;
    out[2 * out_step] = (a - b + c) / 2.0;
    out[3 * out_step] = c;
}

/* G g G^T of one 3x3 window, in double, rounded once. */
static void winograd_window(const float *g, float u[16]) {
    double window[9], half[12], full[16];
    for (int i = 0; i < 9; i++)
        window[i] = (double)g[i];
    for (int i = 0; i < 3; i++)
        winograd_column(window + i, 3, half + i, 3);
    for (int i = 0; i < 4; i++)
        winograd_column(half + i * 3, 1, full + i * 4, 1);
    for (int i = 0; i < 16; i++)
        u[i] = (float)full[i];
}

void lap_pack_winograd(const lap_op *op, const lap_op_weights *weights, int block, void *out) {
    size_t k_count = (size_t)op->out.c, c_count = (size_t)op->in.c, width = (size_t)block;
    size_t end = (k_count + width - 1) / width * width;
    float *packed = out;
    for (size_t k = 0; k < end; k++)
        for (size_t channel = 0; channel < c_count; channel++) {
            float u[16] = {0};
            if (k < k_count) winograd_window(weights->w + (k * c_count + channel) * 9, u);
            for (size_t point = 0; point < 16; point++)
                packed[((k / width * 16 + point) * c_count + channel) * width + k % width] =
                    u[point];
        }
}
