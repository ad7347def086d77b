/* Weight packers for the GPU rows: layouts in which output channels lie next to each other. Pure
 * functions of the op and the given padding; they know no device and allocate nothing.
 */
#include "kernel/pack_gpu.h"

#include "kernel/rows.h"

#include <string.h>

static size_t taps_of(const lap_op *op) {
    return op->kind == LAP_OP_CONV ? (size_t)op->r * (size_t)op->s : 1;
}

static size_t round_up(size_t value, size_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

size_t lap_pack_depth_k_bytes(const lap_op *op, const lap_depth_k_layout *layout) {
    size_t depth = round_up(taps_of(op) * (size_t)op->in.cs, layout->depth_multiple);
    size_t columns = round_up((size_t)op->out.cs, layout->k_multiple);
    return depth * columns * lap_element_bytes(layout->precision);
}

void lap_pack_depth_k(const lap_op *op, const lap_depth_k_layout *layout, const float *w,
                      void *out) {
    size_t taps = taps_of(op), c_count = (size_t)op->in.c, k_count = (size_t)op->out.c;
    size_t row = round_up((size_t)op->out.cs, layout->k_multiple);
    memset(out, 0, lap_pack_depth_k_bytes(op, layout));
    for (size_t k = 0; k < k_count; k++)
        for (size_t c = 0; c < c_count; c++)
            for (size_t tap = 0; tap < taps; tap++)
                lap_element_put(layout->precision, out, (tap * (size_t)op->in.cs + c) * row + k,
                                w[(k * c_count + c) * taps + tap]);
}

size_t lap_pack_winograd_g_bytes(const lap_op *op, size_t width) {
    return 16 * (size_t)op->in.cs * round_up((size_t)op->out.cs, width) * sizeof(float);
}

void lap_pack_winograd_g(const lap_op *op, size_t slice, size_t width, const float *w, float *out) {
    size_t c_count = (size_t)op->in.c, slices = (size_t)op->in.cs / slice;
    memset(out, 0, lap_pack_winograd_g_bytes(op, width));
    for (size_t k = 0; k < (size_t)op->out.c; k++)
        for (size_t c = 0; c < c_count; c++) {
            float u[16];
            lap_winograd_window(w + (k * c_count + c) * 9, 4, u);
            for (size_t p = 0; p < 16; p++) {
                size_t row = ((k / width * slices + c / slice) * 16 + p) * slice + c % slice;
                out[row * width + k % width] = u[p];
            }
        }
}

size_t lap_pack_rcs_k_bytes(const lap_op *op, size_t k_multiple) {
    size_t rows = taps_of(op) * (size_t)op->in.c;
    return rows * round_up((size_t)op->out.cs, k_multiple) * sizeof(float);
}

void lap_pack_rcs_k(const lap_op *op, size_t k_multiple, const float *w, float *out) {
    size_t r_count = (size_t)op->r, s_count = (size_t)op->s, c_count = (size_t)op->in.c;
    size_t row = round_up((size_t)op->out.cs, k_multiple);
    memset(out, 0, lap_pack_rcs_k_bytes(op, k_multiple));
    for (size_t k = 0; k < (size_t)op->out.c; k++)
        for (size_t c = 0; c < c_count; c++)
            for (size_t r = 0; r < r_count; r++)
                for (size_t s = 0; s < s_count; s++)
                    out[((r * c_count + c) * s_count + s) * row + k] = *w++;
}

size_t lap_pack_ks_cs_bytes(const lap_op *op, lap_precision precision) {
    return (size_t)op->out.cs * (size_t)op->in.cs * lap_element_bytes(precision);
}

void lap_pack_ks_cs(const lap_op *op, lap_precision precision, const float *w, void *out) {
    size_t c_count = (size_t)op->in.c, k_count = (size_t)op->out.c, row = (size_t)op->in.cs;
    memset(out, 0, lap_pack_ks_cs_bytes(op, precision));
    for (size_t k = 0; k < k_count; k++)
        for (size_t c = 0; c < c_count; c++)
            lap_element_put(precision, out, k * row + c, w[k * c_count + c]);
}
