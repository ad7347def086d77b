/* Weight packers of the chained rows. Pure functions; they know no device. */
#include "kernel/pack_chain.h"

#include "kernel/rows.h"
#include <string.h>

#define LINE 128
#define QUARTER 32 /* bytes: the depth of one product */
#define TAPS 9
#define GROUP_BYTES 256 /* of 8 output channels by a quarter */
#define STEM_CHANNELS 32
#define STEM_ROWS 7

/* Byte of the element at `depth` (bytes within a quarter) of a tile's output channel k, in the
 * words of the lanes. Lane k % 8 * 4 + i holds, of each 8 channels, the i-th word of both 16-byte
 * halves; the words of 16 channels are a piece of 16 bytes a lane. */
static size_t lane_byte(size_t k, size_t depth) {
    size_t half = depth / 16, lane = k % 8 * 4 + depth % 16 / 4, column = k / 8;
    return column / 2 * 512 + lane * 16 + column % 2 * 8 + half * 4 + depth % 4;
}

size_t lap_pack_chain_bytes(const lap_op *op, const lap_op *partner, lap_precision precision) {
    size_t element = lap_element_bytes(precision);
    size_t depth = (size_t)op->in.cs * TAPS + (partner ? (size_t)partner->in.cs : 0);
    return (size_t)op->out.cs * depth * element;
}

void lap_pack_chain(const lap_op *op, const float *w, const lap_op *partner, const float *partner_w,
                    lap_precision precision, int width, void *out) {
    size_t element = lap_element_bytes(precision), bn = (size_t)width;
    size_t phases = (size_t)op->in.cs * element / LINE;
    size_t tails = partner ? (size_t)partner->in.cs * element / LINE : 0;
    size_t tap_bytes = bn / 8 * GROUP_BYTES;
    size_t block = (phases * TAPS + tails) * 4 * tap_bytes;
    memset(out, 0, lap_pack_chain_bytes(op, partner, precision));
    for (size_t k = 0; k < (size_t)op->out.c; k++) {
        char *to = (char *)out + k / bn * block;
        for (size_t c = 0; c < (size_t)op->in.c; c++)
            for (size_t tap = 0; tap < TAPS; tap++) {
                size_t at = c * element, quarter = at / LINE * 4 + at % LINE / QUARTER;
                lap_element_put(precision,
                                to + (quarter * TAPS + tap) * tap_bytes +
                                    lane_byte(k % bn, at % QUARTER),
                                0, w[(k * (size_t)op->in.c + c) * TAPS + tap]);
            }
        to += phases * TAPS * 4 * tap_bytes;
        for (size_t c = 0; partner && c < (size_t)partner->in.c; c++) {
            size_t at = c * element, index = at % LINE / QUARTER * tails + at / LINE;
            lap_element_put(precision, to + index * tap_bytes + lane_byte(k % bn, at % QUARTER), 0,
                            partner_w[k * (size_t)partner->in.c + c]);
        }
    }
}

size_t lap_pack_chain_stem_bytes(const lap_op *op, lap_precision precision) {
    return (size_t)op->out.cs * STEM_ROWS * 32 * lap_element_bytes(precision);
}

void lap_pack_chain_stem(const lap_op *op, const float *w, lap_precision precision, void *out) {
    size_t element = lap_element_bytes(precision), c_count = (size_t)op->in.c;
    size_t row_bytes = STEM_CHANNELS * 32 * element;
    memset(out, 0, lap_pack_chain_stem_bytes(op, precision));
    for (size_t k = 0; k < (size_t)op->out.c; k++)
        for (size_t c = 0; c < c_count; c++)
            for (size_t r = 0; r < STEM_ROWS; r++)
                for (size_t s = 0; s < STEM_ROWS; s++) {
                    size_t at = (s * 4 + c) * element;
                    char *to = (char *)out + (k / STEM_CHANNELS * STEM_ROWS + r) * row_bytes;
                    to += at / QUARTER * (STEM_CHANNELS * QUARTER);
                    to += lane_byte(k % STEM_CHANNELS, at % QUARTER);
                    lap_element_put(precision, to, 0,
                                    w[((k * c_count + c) * STEM_ROWS + r) * STEM_ROWS + s]);
                }
}
