/* Weight packers for the tensor-core rows. Rows of 64 or 128 bytes of depth for each output
 * channel; within a row, pieces of 16 bytes are exchanged as the kernels' EXCHANGE says, so that
 * what they copy to local memory is in its place at once. Pure functions; they know no device.
 */
#include "kernel/pack_mma.h"

#include "kernel/rows.h"
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

size_t lap_pack_mma_bytes(const lap_op *op, const lap_op *partner, const lap_mma_layout *layout) {
    size_t blocks = (size_t)lap_row_ceil_div((uint64_t)op->out.cs, (uint64_t)layout->bn);
    return blocks * steps_of(op, partner, layout) * (size_t)(layout->bn * layout->rowb);
}

/* Where the weights of one op go, and how. */
typedef struct target {
    const lap_mma_layout *layout;
    size_t steps; /* of a block */
    char *out;
} target;

static void put(const target *t, size_t step, size_t k, size_t channel, float value) {
    size_t bn = (size_t)t->layout->bn, rowb = (size_t)t->layout->rowb;
    size_t element = lap_element_bytes(t->layout->precision);
    size_t row = k % bn;
    char *at = t->out + ((k / bn * t->steps + step) * bn + row) * rowb;
    at += exchanged(row, channel * element, rowb);
    lap_element_put(t->layout->precision, at, 0, value);
}

void lap_pack_mma(const lap_op *op, const float *w, const lap_op *partner, const float *partner_w,
                  const lap_mma_layout *layout, void *out) {
    target t = {layout, steps_of(op, partner, layout), out};
    size_t taps = taps_of(op), chunk = chunk_of(layout), c_count = (size_t)op->in.c;
    size_t chunks = chunks_of(op, layout);
    memset(out, 0, lap_pack_mma_bytes(op, partner, layout));
    for (size_t k = 0; k < (size_t)op->out.c; k++)
        for (size_t c = 0; c < c_count; c++)
            for (size_t tap = 0; tap < taps; tap++) {
                size_t step = layout->halo ? c / chunk * taps + tap : tap * chunks + c / chunk;
                put(&t, step, k, c % chunk, w[(k * c_count + c) * taps + tap]);
            }
    if (!partner) return;
    size_t c2_count = (size_t)partner->in.c;
    for (size_t k = 0; k < (size_t)op->out.c; k++)
        for (size_t c = 0; c < c2_count; c++)
            put(&t, chunks * taps + c / chunk, k, c % chunk, partner_w[k * c2_count + c]);
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
