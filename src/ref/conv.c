/* Direct convolution in double. The only liberty taken is the order of the loops: eight output
 * channels of two neighbouring outputs are summed side by side, in vector registers. Each output's
 * own sum is always taken in the order r, s, c, starting from the bias; taps that fall into the
 * padding are skipped. */
#include "ref/conv.h"
#include "base/threads.h"
#include "ref/activation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 8, PIXELS = 2 };

typedef struct conv {
    const lap_op *op;
    const double *x, *residual;
    const lap_op_weights *weights;
    bool magnitude;
    double *y;
    double *packed; /* [k / LANES][r][s][c][LANES]; lanes beyond k are zero */
    int blocks;     /* k / LANES, rounded up */
    uint64_t rows;  /* output rows of all images */
} conv;

static double value(const conv *v, double x) {
    return v->magnitude ? fabs(x) : x;
}

static size_t panel_size(const conv *v) {
    const lap_op *op = v->op;
    return (size_t)op->r * (size_t)op->s * (size_t)op->in.c * LANES;
}

static void pack_panel(void *context, uint64_t block) {
    const conv *v = context;
    const lap_op *op = v->op;
    size_t taps = (size_t)op->r * (size_t)op->s, c_count = (size_t)op->in.c;
    double *to = v->packed + (size_t)block * panel_size(v);
    for (size_t lane = 0; lane < LANES; lane++) {
        size_t k = (size_t)block * LANES + lane;
        for (size_t c = 0; c < c_count; c++)
            for (size_t tap = 0; tap < taps; tap++)
                to[(tap * c_count + c) * LANES + lane] =
                    k < (size_t)op->out.c
                        ? value(v, (double)v->weights->w[(k * c_count + c) * taps + tap])
                        : 0.0;
    }
}

/* Two doubles: every machine has such registers. Compilers left to themselves spill the sums. */
typedef double pair __attribute__((vector_size(16)));

/* sum[p][lane] += x[p * step + c] * w[c][lane] over all c, for PIXELS pixels. */
static void accumulate(const double *x, size_t step, const double *w, size_t c_count,
                       double sum[PIXELS][LANES]) {
    pair a[PIXELS][LANES / 2];
    memcpy(a, sum, sizeof a);
    for (size_t c = 0; c < c_count; c++) {
        pair row[LANES / 2];
        memcpy(row, w + c * LANES, sizeof row);
        for (int p = 0; p < PIXELS; p++)
            for (int i = 0; i < LANES / 2; i++)
                a[p][i] += x[(size_t)p * step + c] * row[i];
    }
    memcpy(sum, a, sizeof a);
}

static void accumulate_one(const double *x, const double *w, size_t c_count, double sum[LANES]) {
    double a[LANES];
    for (int lane = 0; lane < LANES; lane++)
        a[lane] = sum[lane];
    for (size_t c = 0; c < c_count; c++)
        for (int lane = 0; lane < LANES; lane++)
            a[lane] += x[c] * w[c * LANES + (size_t)lane];
    for (int lane = 0; lane < LANES; lane++)
        sum[lane] = a[lane];
}

/* Outputs q .. q + count - 1 of one row of one image, one block of channels. */
static void sum_pixels(const conv *v, const double *image, const double *panel, int p, int q,
                       int count, double sum[PIXELS][LANES]) {
    const lap_op *op = v->op;
    size_t c_count = (size_t)op->in.c;
    for (int r = 0; r < op->r; r++) {
        int row = p * op->stride - op->pad + r;
        if (row < 0 || row >= op->in.h) continue;
        for (int s = 0; s < op->s; s++) {
            const double *w = panel + ((size_t)r * (size_t)op->s + (size_t)s) * c_count * LANES;
            const double *line = image + (size_t)row * (size_t)op->in.w * c_count;
            int first = q * op->stride - op->pad + s;
            int last = first + (PIXELS - 1) * op->stride;
            if (count == PIXELS && first >= 0 && last < op->in.w) {
                accumulate(line + (size_t)first * c_count, (size_t)op->stride * c_count, w, c_count,
                           sum);
                continue;
            }
            for (int i = 0; i < count; i++) {
                int column = first + i * op->stride;
                if (column >= 0 && column < op->in.w)
                    accumulate_one(line + (size_t)column * c_count, w, c_count, sum[i]);
            }
        }
    }
}

static void store_pixel(const conv *v, size_t pixel, int block, const double sum[LANES]) {
    const lap_op *op = v->op;
    for (int lane = 0; lane < LANES && block * LANES + lane < op->out.c; lane++) {
        size_t at = pixel * (size_t)op->out.c + (size_t)(block * LANES + lane);
        double y = sum[lane];
        if (v->residual) y += value(v, v->residual[at]);
        if (!v->magnitude) y = lap_ref_activation(op->act, y);
        v->y[at] = y;
    }
}

/* Item: one output row of one image for one block of channels; all rows of a block follow each
 * other, so that its panel stays in the cache. */
static void conv_row(void *context, uint64_t item) {
    const conv *v = context;
    const lap_op *op = v->op;
    int block = (int)(item / v->rows);
    size_t row = (size_t)(item % v->rows); /* over all images */
    size_t image = row / (size_t)op->out.h;
    int p = (int)(row % (size_t)op->out.h);
    const double *x = v->x + image * (size_t)lap_tensor_logical(&op->in);
    const double *panel = v->packed + (size_t)block * panel_size(v);
    double bias[LANES] = {0};
    for (int lane = 0; lane < LANES && block * LANES + lane < op->out.c; lane++)
        bias[lane] = value(v, (double)v->weights->bias[block * LANES + lane]);
    for (int q = 0; q < op->out.w; q += PIXELS) {
        int count = op->out.w - q < PIXELS ? op->out.w - q : PIXELS;
        double sum[PIXELS][LANES];
        for (int i = 0; i < PIXELS; i++)
            memcpy(sum[i], bias, sizeof bias);
        sum_pixels(v, x, panel, p, q, count, sum);
        for (int i = 0; i < count; i++)
            store_pixel(v, row * (size_t)op->out.w + (size_t)(q + i), block, sum[i]);
    }
}

lap_status lap_ref_conv(const lap_op *op, int n, const double *x, const double *residual,
                        const lap_op_weights *weights, bool magnitude, double *y, lap_error *err) {
    conv v = {
        .op = op, .x = x, .residual = residual, .weights = weights, .magnitude = magnitude, .y = y};
    v.blocks = (op->out.c + LANES - 1) / LANES;
    v.rows = (uint64_t)n * (uint64_t)op->out.h;
    size_t x_count = (size_t)n * (size_t)lap_tensor_logical(&op->in);
    double *absolute = magnitude ? malloc(x_count * sizeof *absolute) : NULL;
    v.packed = malloc((size_t)v.blocks * panel_size(&v) * sizeof *v.packed);
    lap_status status = LAP_OK;
    if (!v.packed || (magnitude && !absolute)) {
        status = LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for the reference", op->name);
    } else {
        if (magnitude) {
            for (size_t i = 0; i < x_count; i++)
                absolute[i] = fabs(x[i]);
            v.x = absolute;
        }
        lap_parallel((uint64_t)v.blocks, pack_panel, &v);
        lap_parallel((uint64_t)v.blocks * v.rows, conv_row, &v);
    }
    free(absolute);
    free(v.packed);
    return status;
}
