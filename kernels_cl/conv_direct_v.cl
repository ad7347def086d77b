/* Direct convolution for CPUs, with bias, residual and ReLU. No local memory, no barriers, groups of
 * one work-item: a CPU device runs a group as a plain function, and only explicit vectors are sure to
 * become vector registers.
 *
 * One work-item computes PIXELS neighbouring output pixels of one row times BLOCKS vectors of V
 * output channels, held in registers. Weights are [K/(BLOCKS*V)][R][S][C][BLOCKS][V], padded with
 * zeros, so the inner loop reads them as one stream; each input value is broadcast to a vector.
 * Taps outside the image are skipped, not multiplied by zero: by whole rows, and at the left and
 * right edge by leaving pixels out. Leaving out one pixel is compiled as a case of its own, because
 * that is what a 3x3 window needs in every row.
 * Padding channels K..KS-1 are written as zero, channels from KS on are not written. */
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

#if V == 16
typedef float16 vec;
#define LOAD vload16
#define STORE vstore16
#elif V == 8
typedef float8 vec;
#define LOAD vload8
#define STORE vstore8
#else
typedef float4 vec;
#define LOAD vload4
#define STORE vstore4
#endif

#define TILES ((Q + PIXELS - 1) / PIXELS) /* of one output row */

/* One tap of the window, all input channels, for pixels first..last-1. */
__attribute__((always_inline)) static void
tap(vec acc[PIXELS][BLOCKS], __global const float *x, __global const float *w, const int first,
    const int last) {
#pragma unroll UNROLL
    for (int c = 0; c < C; c++) {
        vec weight[BLOCKS];
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            weight[b] = LOAD(c * BLOCKS + b, w);
#pragma unroll
        for (int j = 0; j < PIXELS; j++) {
            if (j < first || j >= last) continue;
            const vec value = (vec)(x[j * STRIDE * CS + c]);
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                acc[j][b] = fma(value, weight[b], acc[j][b]);
        }
    }
}

/* Bias, residual and ReLU on one vector; `at` is the element's offset in out and residual. */
__attribute__((always_inline)) static void
finish(vec value, const int k, const long at, __global const float *bias,
       __global const float *residual, __global float *out, const int flags) {
#if K % V == 0
    value += LOAD(0, bias + k);
    if (flags & 2) value += LOAD(0, residual + at);
    /* Written so that NaN stays NaN. */
    if (flags & 1) value = value < (vec)(0.0f) ? (vec)(0.0f) : value;
    STORE(value, 0, out + at);
#else
    float lanes[V];
    STORE(value, 0, lanes);
    for (int i = 0; i < V && k + i < KS; i++) {
        float v = 0.0f;
        if (k + i < K) {
            v = lanes[i] + bias[k + i];
            if (flags & 2) v += residual[at + i];
            if ((flags & 1) && v < 0.0f) v = 0.0f;
        }
        out[at + i] = v;
    }
#endif
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv_direct_v(__global const float *in, __global const float *weights, __global const float *bias,
              __global const float *residual, __global float *out, const int n, const int flags) {
    const int p = (int)get_group_id(0) / TILES;
    const int q = (int)get_group_id(0) % TILES * PIXELS;
    const int block = (int)get_group_id(IMAGES_INNER ? 2 : 1);
    const int count = min(PIXELS, Q - q);
    const int h0 = p * STRIDE - PAD, w0 = q * STRIDE - PAD;
    const int r_first = max(0, -h0), r_last = min(R, H - h0);
    weights += (long)block * (R * S * C * BLOCKS * V);

    for (int image = (int)get_group_id(IMAGES_INNER ? 1 : 2); image < n;
         image += (int)get_num_groups(IMAGES_INNER ? 1 : 2)) {
        __global const float *x = in + (long)image * (H * W * CS);
        vec acc[PIXELS][BLOCKS];
#pragma unroll
        for (int j = 0; j < PIXELS; j++)
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                acc[j][b] = (vec)(0.0f);

        for (int r = r_first; r < r_last; r++) {
            for (int s = 0; s < S; s++) {
                /* Pixels whose tap lies inside the row: first <= j < last. */
                const int w = w0 + s;
                const int first = w < 0 ? (STRIDE - 1 - w) / STRIDE : 0;
                const int last = min(count, w < W ? (W - 1 - w) / STRIDE + 1 : 0);
                __global const float *pixel = x + ((h0 + r) * W + w) * CS;
                __global const float *weight = weights + (r * S + s) * (C * BLOCKS * V);
                if (first == 0 && last == PIXELS)
                    tap(acc, pixel, weight, 0, PIXELS);
                else if (first == 1 && last == PIXELS)
                    tap(acc, pixel, weight, 1, PIXELS);
                else if (first == 0 && last == PIXELS - 1)
                    tap(acc, pixel, weight, 0, PIXELS - 1);
                else
                    tap(acc, pixel, weight, first, last);
            }
        }

        const long at = (((long)image * P + p) * Q + q) * KS;
#pragma unroll
        for (int j = 0; j < PIXELS; j++) {
            if (j >= count) continue;
#pragma unroll
            for (int b = 0; b < BLOCKS; b++) {
                const int k = (block * BLOCKS + b) * V;
                if (k < KS) finish(acc[j][b], k, at + j * KS + k, bias, residual, out, flags);
            }
        }
    }
}
