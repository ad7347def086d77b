/* Direct convolution for CPUs, with bias, residual and activation, alone or with a neighbouring op. No local
 * memory, no barriers, groups of one work-item: a CPU device runs a group as a plain function, and
 * only explicit vectors are sure to become vector registers.
 *
 * One work-item computes PIXELS neighbouring output pixels of one row times BLOCKS vectors of V
 * output channels, held in registers. Weights are [K/(BLOCKS*V)][R][S][C][BLOCKS][V], padded with
 * zeros, so the inner loop reads them as one stream; each input value is broadcast to a vector.
 * Taps outside the image are skipped, not multiplied by zero: by whole rows, and at the left and
 * right edge by leaving pixels out. Leaving out one pixel is compiled as a case of its own, because
 * that is what a 3x3 window needs in every row.
 * Padding channels K..KS-1 are written as zero, channels from KS on are not written.
 *
 * With C2 the residual is not read but computed: a 1x1 convolution of in2 is one more tap. A block's
 * weights are then followed by [C2][BLOCKS][V] of that convolution, whose bias is added to bias.
 * With SCALED an input channel's factor multiplies its weights, which serve PIXELS inputs each.
 * With POOL_P a max-pool follows (entry conv_direct_pool_v): a work-item computes POOL_ROWS rows of
 * POOL_COLUMNS pooled pixels, and keeps only the convolution's rows under one pooling window. Rows
 * that two work-items need are computed twice. */
#ifndef C
#define C 3 /* input channels */
#endif
#ifndef CS
#define CS 4 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 5 /* output channels */
#endif
#ifndef KS
#define KS 8 /* output channel stride, >= K */
#endif
#ifndef P
#define P 8 /* output height */
#endif
#ifndef Q
#define Q 8 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window, both directions */
#endif
#ifndef PAD
#define PAD 1 /* border on every side */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the results: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef SCALED
#define SCALED 0 /* 1: every input channel counts times its factor of the image */
#endif
#ifndef C2
#define C2 0 /* input channels of the 1x1 convolution; 0: there is none */
#endif
#ifndef CS2
#define CS2 0 /* their stride, >= C2 */
#endif
#ifndef H2
#define H2 0 /* height of in2 */
#endif
#ifndef W2
#define W2 0 /* width of in2 */
#endif
#ifndef STRIDE2
#define STRIDE2 1 /* step on in2 */
#endif
#ifndef POOL_P
#define POOL_P 0 /* output height of the max-pool behind; 0: there is none */
#endif
#ifndef POOL_Q
#define POOL_Q 0 /* its output width */
#endif
#ifndef POOL_R
#define POOL_R 3 /* its window's height and width */
#endif
#ifndef POOL_STRIDE
#define POOL_STRIDE 2 /* its window's step */
#endif
#ifndef POOL_PAD
#define POOL_PAD 1 /* its border */
#endif
#ifndef POOL_ROWS
#define POOL_ROWS 1 /* pooled rows in a work-item */
#endif
#ifndef POOL_COLUMNS
#define POOL_COLUMNS 1 /* pooled columns in a work-item */
#endif
#ifndef V
#define V 16 /* floats in a vector: 4, 8 or 16 */
#endif
#ifndef PIXELS
#define PIXELS 7 /* output pixels of one row in a work-item */
#endif
#ifndef BLOCKS
#define BLOCKS 2 /* vectors of output channels in a work-item */
#endif
#ifndef UNROLL
#define UNROLL 2 /* input channels in one step of the inner loop */
#endif
#ifndef IMAGES_INNER
#define IMAGES_INNER 0 /* 1: neighbouring groups share weights over images; 0: over one image */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#include "vector_v.clh"

#define TILES ((Q + PIXELS - 1) / PIXELS)         /* of one output row */
#define BLOCK_FLOATS ((R * S * C + C2) * BLOCKS * V) /* weights of one work-item */

/* One tap of the window, `channels` input channels, for pixels first..last-1, `step` floats apart. */
__attribute__((always_inline)) static void
tap(vec acc[PIXELS][BLOCKS], __global const float *x, __global const float *w,
    __global const float *factors, const int channels, const int step, const int first,
    const int last) {
#pragma unroll UNROLL
    for (int c = 0; c < channels; c++) {
        vec weight[BLOCKS];
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            weight[b] = LOAD(c * BLOCKS + b, w);
#if SCALED
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            weight[b] *= (vec)(factors[c]);
#endif
#pragma unroll
        for (int j = 0; j < PIXELS; j++) {
            if (j < first || j >= last) continue;
            const vec value = (vec)(x[j * step + c]);
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                acc[j][b] = fma(value, weight[b], acc[j][b]);
        }
    }
}

#define ZERO(acc)                                                                                  \
    _Pragma("unroll") for (int j = 0; j < PIXELS; j++)                                             \
        _Pragma("unroll") for (int b = 0; b < BLOCKS; b++) acc[j][b] = (vec)(0.0f);

/* Zeroes acc[PIXELS][BLOCKS] and adds the whole window for `count` pixels of output row p from column
 * q on; x is the image. Not a function: PoCL's compiler keeps the sums in registers only when they are
 * a variable of the function whose loops these are. */
#if R == 1 && S == 1 && PAD == 0
#define WINDOW(acc, x, weights, factors, p, q, count)                                              \
    do {                                                                                           \
        __global const float *pixel = (x) + ((p)*STRIDE * W + (q)*STRIDE) * CS;                    \
        ZERO(acc)                                                                                  \
        if ((count) == PIXELS)                                                                     \
            tap(acc, pixel, weights, factors, C, STRIDE * CS, 0, PIXELS);                          \
        else                                                                                       \
            tap(acc, pixel, weights, factors, C, STRIDE * CS, 0, count);                           \
    } while (0)
#else
#define WINDOW(acc, x, weights, factors, p, q, count)                                              \
    do {                                                                                           \
        const int h0 = (p) * STRIDE - PAD, w0 = (q) * STRIDE - PAD;                                \
        const int r_first = max(0, -h0), r_last = min(R, H - h0);                                  \
        ZERO(acc)                                                                                  \
        for (int r = r_first; r < r_last; r++)                                                     \
            for (int s = 0; s < S; s++) {                                                          \
                /* Pixels whose tap lies inside the row: first <= j < last. */                     \
                const int w = w0 + s;                                                              \
                const int first = w < 0 ? (STRIDE - 1 - w) / STRIDE : 0;                           \
                const int last = min(count, w < W ? (W - 1 - w) / STRIDE + 1 : 0);                 \
                __global const float *pixel = (x) + ((h0 + r) * W + w) * CS;                       \
                __global const float *weight = (weights) + (r * S + s) * (C * BLOCKS * V);         \
                if (first == 0 && last == PIXELS)                                                  \
                    tap(acc, pixel, weight, factors, C, STRIDE * CS, 0, PIXELS);                            \
                else if (first == 1 && last == PIXELS)                                             \
                    tap(acc, pixel, weight, factors, C, STRIDE * CS, 1, PIXELS);                            \
                else if (first == 0 && last == PIXELS - 1)                                         \
                    tap(acc, pixel, weight, factors, C, STRIDE * CS, 0, PIXELS - 1);                        \
                else                                                                               \
                    tap(acc, pixel, weight, factors, C, STRIDE * CS, first, last);                          \
            }                                                                                      \
    } while (0)
#endif

#define TAIL (KS % V) /* channels of the last vector that have a place in memory, if not all */
#if TAIL
__attribute__((always_inline)) static vec load_tail(__global const float *p) {
    vec value = (vec)(0.0f);
#pragma unroll
    for (int i = 0; i < TAIL; i++)
        ((float *)&value)[i] = p[i];
    return value;
}

__attribute__((always_inline)) static void store_tail(const vec value, __global float *p) {
#pragma unroll
    for (int i = 0; i < TAIL; i++)
        p[i] = ((const float *)&value)[i];
}
#endif

/* Bias, residual and activation on the vector of channels from k on; `at` is the element's offset in
 * out and residual. */
__attribute__((always_inline)) static void
finish(vec value, const int k, const long at, __global const float *bias,
       __global const float *residual, __global float *out, const int flags) {
#if TAIL
    const bool whole = k + V <= KS;
    value += whole ? LOAD(0, bias + k) : load_tail(bias + k);
    if (C2 == 0 && flags & 2) value += whole ? LOAD(0, residual + at) : load_tail(residual + at);
#else
    value += LOAD(0, bias + k);
    if (C2 == 0 && flags & 2) value += LOAD(0, residual + at);
#endif
#if ACT
    value = ACTIVATE(value);
#else
    /* Written so that NaN stays NaN. */
    if (flags & 1) value = value < (vec)(0.0f) ? (vec)(0.0f) : value;
#endif
#if K != KS /* whatever the activation made of the padding */
    value = LANES < (ints)(K - k) ? value : (vec)(0.0f);
#endif
#if TAIL
    if (!whole) {
        store_tail(value, out + at);
        return;
    }
#endif
    STORE(value, 0, out + at);
}

#if !POOL_P
/* The fourth argument is the residual, or in2 with C2. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv_direct_v(__global const float *in, __global const float *weights, __global const float *bias,
              __global const float *residual, __global float *out, const int n, const int flags,
              __global const float *factors) {
    const int p = (int)get_group_id(0) / TILES;
    const int q = (int)get_group_id(0) % TILES * PIXELS;
    const int block = (int)get_group_id(IMAGES_INNER ? 2 : 1);
    const int count = Q % PIXELS == 0 ? PIXELS : min(PIXELS, Q - q); /* constant if it can be */
    weights += (long)block * BLOCK_FLOATS;

    for (int image = (int)get_group_id(IMAGES_INNER ? 1 : 2); image < n;
         image += (int)get_num_groups(IMAGES_INNER ? 1 : 2)) {
        vec acc[PIXELS][BLOCKS];
        __global const float *x = in + (long)image * (H * W * CS);
        __global const float *image_factors = SCALED ? factors + (long)image * CS : factors;
        WINDOW(acc, x, weights, image_factors, p, q, count);
#if C2
        __global const float *x2 =
            residual + (long)image * (H2 * W2 * CS2) + (p * W2 + q) * (STRIDE2 * CS2);
        __global const float *w2 = weights + R * S * C * BLOCKS * V;
        if (count == PIXELS)
            tap(acc, x2, w2, factors, C2, STRIDE2 * CS2, 0, PIXELS);
        else
            tap(acc, x2, w2, factors, C2, STRIDE2 * CS2, 0, count);
#endif
        const long at = (((long)image * P + p) * Q + q) * KS;
#pragma unroll
        for (int j = 0; j < PIXELS; j++) {
            if (j >= count) continue;
#pragma unroll
            for (int b = 0; b < BLOCKS; b++) {
                const int k = (block * BLOCKS + b) * V;
                if (KS % (BLOCKS * V) == 0 || k < KS)
                    finish(acc[j][b], k, at + j * KS + k, bias, residual, out, flags);
            }
        }
    }
}
#else
/* Columns of the convolution under POOL_COLUMNS pooled pixels. */
#define SPAN ((POOL_COLUMNS - 1) * POOL_STRIDE + POOL_R)

/* The larger, or NaN if one is. */
__attribute__((always_inline)) static vec larger(vec a, vec b) {
    return a != a || a > b ? a : b;
}

/* Columns first..first+columns-1 of row p of the convolution. */
static void conv_row(__global const float *x, __global const float *weights, vec *line, const int p,
                     const int first, const int columns) {
    for (int at = 0; at < columns; at += PIXELS) {
        const int count = min(PIXELS, columns - at);
        vec acc[PIXELS][BLOCKS];
        WINDOW(acc, x, weights, x, p, first + at, count);
#pragma unroll
        for (int j = 0; j < PIXELS; j++) {
            if (j >= count) continue;
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                line[(at + j) * BLOCKS + b] = acc[j][b];
        }
    }
}

/* The maximum of one window, then bias and ReLU: both grow with their argument, so the order does not
 * change the result. Rows and columns are the convolution's. */
static void pool(const vec *lines, const int block, const int row, const int rows, const int column,
                 const int columns, const int origin, __global const float *bias,
                 __global float *out, const int flags) {
    for (int b = 0; b < BLOCKS; b++) {
        const int k = (block * BLOCKS + b) * V;
        if (k >= KS) continue;
        vec value = (vec)(-INFINITY);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++)
                value = larger(lines[((row + i) % POOL_R * SPAN + column + j - origin) * BLOCKS + b],
                               value);
        finish(value, k, k, bias, bias, out, flags & 1);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv_direct_pool_v(__global const float *in, __global const float *weights,
                   __global const float *bias, __global float *out, const int n, const int flags) {
    const int across = (POOL_Q + POOL_COLUMNS - 1) / POOL_COLUMNS;
    const int first_row = (int)get_group_id(0) / across * POOL_ROWS;
    const int first_column = (int)get_group_id(0) % across * POOL_COLUMNS;
    const int block = (int)get_group_id(1);
    const int last_row = min(first_row + POOL_ROWS, POOL_P);
    const int last_column = min(first_column + POOL_COLUMNS, POOL_Q);
    /* Columns of the convolution: q0..q1-1 */
    const int q0 = max(first_column * POOL_STRIDE - POOL_PAD, 0);
    const int q1 = min((last_column - 1) * POOL_STRIDE - POOL_PAD + POOL_R, Q);
    weights += (long)block * BLOCK_FLOATS;
    vec lines[POOL_R * SPAN * BLOCKS];

    for (int image = (int)get_group_id(2); image < n; image += (int)get_num_groups(2)) {
        __global const float *x = in + (long)image * (H * W * CS);
        int done = max(first_row * POOL_STRIDE - POOL_PAD, 0); /* rows before are done or not needed */
        for (int row = first_row; row < last_row; row++) {
            const int p0 = max(row * POOL_STRIDE - POOL_PAD, 0);
            const int p1 = min(row * POOL_STRIDE - POOL_PAD + POOL_R, P);
            for (done = max(done, p0); done < p1; done++)
                conv_row(x, weights, lines + done % POOL_R * (SPAN * BLOCKS), done, q0, q1 - q0);
            for (int column = first_column; column < last_column; column++) {
                const int c0 = max(column * POOL_STRIDE - POOL_PAD, 0);
                const int c1 = min(column * POOL_STRIDE - POOL_PAD + POOL_R, Q);
                const long at = (((long)image * POOL_P + row) * POOL_Q + column) * KS;
                pool(lines, block, p0, p1 - p0, c0, c1 - c0, q0, bias, out + at, flags);
            }
        }
    }
}
#endif
