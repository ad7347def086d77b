/* Depthwise convolution for CPUs, with bias and activation: explicit vectors over channels. No local
 * memory, no barriers, groups of one work-item.
 *
 * One work-item computes ROWS output rows of V channels, PIXELS neighbouring pixels at a time. For each
 * row of the window it loads the input pixels under all of them once, so a loaded vector serves up to S
 * products. Taps outside the image are skipped by whole rows; at the left and right edge columns outside
 * are taken as zero. Weights are [R][S][CS]. Padding channels are written as zero: their weights and
 * biases are. V divides CS. With POOLED a work-item, which has all of its channels' pixels, sums them.
 * Every other vector of channels is done from the last row on: two cores that write into neighbouring
 * lines of the cache at the same time, which are fetched in pairs, wait for each other. */
#ifndef C
#define C 5 /* input channels */
#endif
#ifndef CS
#define CS 8 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 5 /* output channels, as many as there are of the input */
#endif
#ifndef KS
#define KS 8 /* output channel stride, the input's */
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
#ifndef POOLED
#define POOLED 0 /* 1: the mean of every channel over the output is written as well; ROWS is P then */
#endif
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16; divides CS */
#endif
#ifndef PIXELS
#define PIXELS 4 /* output pixels at a time */
#endif
#ifndef ROWS
#define ROWS 1 /* output rows of a work-item */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#include "vector_v.clh"

#define SPAN ((PIXELS - 1) * STRIDE + S) /* input pixels under PIXELS outputs */

/* Adds the windows of PIXELS outputs of row p from column q on to acc. INSIDE(w) is a test of an input
 * column; a constant one leaves no branch. Not a function: see conv_direct_v. */
#define WINDOWS(acc, x, w, p, q, INSIDE)                                                           \
    for (int r = max(0, PAD - (p)*STRIDE); r < min(R, H + PAD - (p)*STRIDE); r++) {                \
        __global const float *line = (x) + (((p)*STRIDE - PAD + r) * W + (q)*STRIDE - PAD) * CS;   \
        vec value[SPAN];                                                                           \
        _Pragma("unroll") for (int i = 0; i < SPAN; i++) value[i] =                                \
            INSIDE((q)*STRIDE - PAD + i) ? LOAD(0, line + i * CS) : (vec)(0.0f);                   \
        _Pragma("unroll") for (int s = 0; s < S; s++) {                                            \
            const vec weight = LOAD(0, (w) + (r * S + s) * CS);                                    \
            _Pragma("unroll") for (int j = 0; j < PIXELS; j++) acc[j] =                            \
                fma(value[j * STRIDE + s], weight, acc[j]);                                        \
        }                                                                                          \
    }
#define ALWAYS(column) 1
#define IN_ROW(column) ((column) >= 0 && (column) < W)

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
dwconv_v(__global const float *in, __global const float *weights, __global const float *bias,
         __global float *out, __global float *mean, const int n, const int flags) {
    const int bands = (P + ROWS - 1) / ROWS;
    const int c = (int)get_group_id(0) / bands * V, p0 = (int)get_group_id(0) % bands * ROWS;
    const vec first = LOAD(0, bias + c);
    weights += c;

    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const float *x = in + (long)image * (H * W * CS) + c;
        __global float *y = out + (long)image * (P * Q * KS) + c;
#if POOLED
        vec sum = (vec)(0.0f);
#endif
        const int rows = min(ROWS, P - p0);
        for (int row = 0; row < rows; row++)
            for (int q = 0; q < Q; q += PIXELS) {
                const int p = p0 + (c / V % 2 ? rows - 1 - row : row);
                vec acc[PIXELS];
#pragma unroll
                for (int j = 0; j < PIXELS; j++)
                    acc[j] = first;
                if (q * STRIDE >= PAD && (q + PIXELS - 1) * STRIDE - PAD + S <= W) {
                    WINDOWS(acc, x, weights, p, q, ALWAYS)
                } else {
                    WINDOWS(acc, x, weights, p, q, IN_ROW)
                }
#pragma unroll
                for (int j = 0; j < PIXELS; j++) {
                    if (q + j >= Q) continue;
                    vec v = acc[j];
                    /* Written so that NaN stays NaN. */
                    if (flags & 1) v = v < (vec)(0.0f) ? (vec)(0.0f) : v;
#if ACT
                    v = ACTIVATE(v);
#if ACT == 3 && K != KS
                    v = LANES < (ints)(K - c) ? v : (vec)(0.0f); /* a sigmoid of zero is not zero */
#endif
#endif
                    STORE(v, 0, y + (p * Q + q + j) * KS);
#if POOLED
                    sum += v;
#endif
                }
            }
#if POOLED
        /* A division that is correctly rounded on every device: OpenCL's own may be 2.5 ulp off. */
        const vec count = (vec)((float)(P * Q)), inverse = (vec)(1.0f / (P * Q));
        const vec quotient = sum * inverse;
        const vec divided = fma(fma(-quotient, count, sum), inverse, quotient);
        /* Infinity and NaN stay as they are. */
        STORE(fabs(quotient) <= (vec)(3.4e38f) ? divided : quotient, 0, mean + (long)image * KS + c);
#endif
    }
}
