/* Weight packers for the tensor-core rows. Rows of 64 or 128 bytes of depth for each output
 * channel; within a row, pieces of 16 bytes are exchanged as the kernels' EXCHANGE says, so that
 * what they copy to local memory is in its place at once. Pure functions; they know no device.
 */
#include "kernel/pack_mma.h"

#include "base/half.h"
#include "kernel/rows.h"

#include <math.h>
#include <string.h>

#define STEM_BLOCK 64
#define STEM_ROW 32 /* 8 columns of 4 channels */

/* Byte position, inside a row, of the piece that belongs at byte `at`. */
static size_t exchanged(size_t row, size_t at, size_t rowb) {
    size_t mask = rowb == 128 ? row & 7 : row >> 1 & 3;
    return ((at / 16) ^ mask) * 16 + at % 16;
}

static size_t taps_of(const lap_op *op) {
    return op->kind == LAP_OP_CONV ? (size_t)op->r * (size_t)op->s : 1;
}

static size_t chunk_of(const lap_mma_layout *layout) {
    return (size_t)layout->rowb / lap_element_bytes(layout->precision);
}

/* Of a tap; the last one may be partly beyond the channels. */
static size_t chunks_of(const lap_op *op, const lap_mma_layout *layout) {
    return (size_t)lap_row_ceil_div((uint64_t)op->in.cs, chunk_of(layout));
}

static size_t steps_of(const lap_op *op, const lap_op *partner, const lap_mma_layout *layout) {
    size_t steps = taps_of(op) * chunks_of(op, layout);
    return steps + (partner ? (size_t)partner->in.cs / chunk_of(layout) : 0);
}

/* Channels in all blocks, and the bytes of their weights. */
static size_t columns_of(const lap_op *op, const lap_mma_layout *layout) {
    uint64_t bn = (uint64_t)layout->bn;
    return (size_t)(lap_row_ceil_div((uint64_t)op->out.cs, bn) * bn);
}

static size_t weight_bytes(const lap_op *op, const lap_op *partner, const lap_mma_layout *layout) {
    return columns_of(op, layout) * steps_of(op, partner, layout) * (size_t)layout->rowb;
}

size_t lap_pack_mma_bytes(const lap_op *op, const lap_op *partner, const lap_mma_layout *layout) {
    size_t scales = layout->precision == LAP_FP32X3 ? columns_of(op, layout) * sizeof(float) : 0;
    return weight_bytes(op, partner, layout) + scales;
}

/* Where the weights of one op go, and how. */
typedef struct target {
    const lap_mma_layout *layout;
    size_t steps; /* of a block */
    char *out;
    int exponent; /* fp32x3: of the power of two that the channel is scaled by */
} target;

static void put(const target *t, size_t step, size_t k, size_t channel, float value) {
    size_t bn = (size_t)t->layout->bn, rowb = (size_t)t->layout->rowb;
    size_t element = lap_element_bytes(t->layout->precision);
    size_t row = k % bn;
    char *line = t->out + ((k / bn * t->steps + step) * bn + row) * rowb;
    if (t->layout->precision != LAP_FP32X3) {
        char *at = line + exchanged(row, channel * element, rowb);
        lap_element_put(t->layout->precision, at, 0, value);
        return;
    }
    value = ldexpf(value, t->exponent);
    size_t at = channel / 16 * 64 + channel % 16 * 2;
    uint16_t high = lap_half_from_float(value);
    uint16_t low = lap_half_from_float(value - lap_half_to_float(high));
    memcpy(line + exchanged(row, at, rowb), &high, sizeof high);
    memcpy(line + exchanged(row, at + 32, rowb), &low, sizeof low);
}

#define EXPONENT_MOST 100 /* its inverse must be a float, too */

/* The power of two that brings the largest of a channel's weights to 2^14 or just below 2^15. */
static int exponent_of(const float *w, size_t count, const float *partner_w, size_t partner_count) {
    float most = 0;
    for (size_t i = 0; i < count; i++)
        if (fabsf(w[i]) > most) most = fabsf(w[i]);
    for (size_t i = 0; i < partner_count; i++)
        if (fabsf(partner_w[i]) > most) most = fabsf(partner_w[i]);
    if (!(most > 0) || isinf(most)) return 0;
    int exponent = 14 - ilogbf(most);
    return exponent > EXPONENT_MOST    ? EXPONENT_MOST
           : exponent < -EXPONENT_MOST ? -EXPONENT_MOST
                                       : exponent;
}

void lap_pack_mma(const lap_op *op, const float *w, const lap_op *partner, const float *partner_w,
                  const lap_mma_layout *layout, void *out) {
    target t = {layout, steps_of(op, partner, layout), out, 0};
    size_t taps = taps_of(op), chunk = chunk_of(layout), c_count = (size_t)op->in.c;
    size_t chunks = chunks_of(op, layout), c2_count = partner ? (size_t)partner->in.c : 0;
    char *scales = t.out + weight_bytes(op, partner, layout);
    memset(out, 0, lap_pack_mma_bytes(op, partner, layout));
    for (size_t k = 0; k < (size_t)op->out.c; k++) {
        const float *from = w + k * c_count * taps;
        const float *from2 = partner ? partner_w + k * c2_count : NULL;
        if (layout->precision == LAP_FP32X3) {
            t.exponent = exponent_of(from, c_count * taps, from2, c2_count);
            float scale = ldexpf(1, -t.exponent);
            memcpy(scales + k * sizeof scale, &scale, sizeof scale);
        }
        for (size_t c = 0; c < c_count; c++)
            for (size_t tap = 0; tap < taps; tap++) {
                size_t step = layout->halo ? c / chunk * taps + tap : tap * chunks + c / chunk;
                put(&t, step, k, c % chunk, from[c * taps + tap]);
            }
        for (size_t c = 0; c < c2_count; c++)
            put(&t, chunks * taps + c / chunk, k, c % chunk, from2[c]);
    }
}

size_t lap_pack_stem_bytes(const lap_op *op, lap_precision precision) {
    size_t blocks = (size_t)lap_row_ceil_div((uint64_t)op->out.cs, STEM_BLOCK);
    return blocks * (size_t)op->r * STEM_BLOCK * STEM_ROW * lap_element_bytes(precision);
}

void lap_pack_stem(const lap_op *op, const float *w, lap_precision precision, void *out) {
    size_t element = lap_element_bytes(precision), rowb = STEM_ROW * element;
    size_t rows = (size_t)op->r, columns = (size_t)op->s, c_count = (size_t)op->in.c;
    memset(out, 0, lap_pack_stem_bytes(op, precision));
    for (size_t k = 0; k < (size_t)op->out.c; k++)
        for (size_t c = 0; c < c_count; c++)
            for (size_t r = 0; r < rows; r++)
                for (size_t s = 0; s < columns; s++) {
                    size_t row = k % STEM_BLOCK;
                    char *at =
                        (char *)out + ((k / STEM_BLOCK * rows + r) * STEM_BLOCK + row) * rowb;
                    at += exchanged(row, (s * 4 + c) * element, rowb);
                    lap_element_put(precision, at, 0,
                                    w[((k * c_count + c) * rows + r) * columns + s]);
                }
}
