/* A 1x1 convolution and the depthwise one behind it for CPUs, with bias and activation of both, and the
 * means of what comes out: explicit vectors over channels, groups of one work-item. The tensor in
 * between, several times as large as the input, is never stored.
 *
 * One work-item has a whole image of V channels. It keeps the rows of the first convolution that a window
 * of the second one covers, between columns of zeros, and makes every row when it is first needed,
 * PIXELS pixels at a time. Rows outside the image are skipped.
 * Weights are [KS/V][C][V] of the first convolution, padded with zeros, then [R2][S2][KS] of the
 * second. Biases: KS of the first, then KS of the second. Padding channels are written as zero. V
 * divides KS; the first window is one pixel, without a border or a step. */
#ifndef C
#define C 5 /* input channels */
#endif
#ifndef CS
#define CS 8 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height, and that of the tensor in between */
#endif
#ifndef W
#define W 8 /* their width */
#endif
#ifndef K
#define K 5 /* output channels, of both convolutions */
#endif
#ifndef KS
#define KS 8 /* output channel stride, >= K */
#endif
#ifndef P
#define P 8 /* height of what the first convolution makes: the input's */
#endif
#ifndef Q
#define Q 8 /* its width */
#endif
#ifndef R
#define R 1 /* window height of the first */
#endif
#ifndef S
#define S 1 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 1 /* its step */
#endif
#ifndef PAD
#define PAD 0 /* its border */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the first: 2 SiLU, else as flags say */
#endif
#ifndef R2
#define R2 3 /* window height of the second */
#endif
#ifndef S2
#define S2 3 /* window width */
#endif
#ifndef STRIDE2
#define STRIDE2 1 /* its step, both directions */
#endif
#ifndef PAD2
#define PAD2 1 /* its border on every side */
#endif
#ifndef P2
#define P2 8 /* output height */
#endif
#ifndef Q2
#define Q2 8 /* output width */
#endif
#ifndef ACT2
#define ACT2 0 /* lap_activation of the second: 1 ReLU, 2 SiLU, else none */
#endif
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16; divides KS */
#endif
#ifndef PIXELS
#define PIXELS 4 /* pixels of the first convolution at a time */
#endif
#ifndef PIXELS2
#define PIXELS2 4 /* of the second */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#include "vector_v.clh"

#define LINE ((Q2 - 1) * STRIDE2 + S2 > W + PAD2 ? (Q2 - 1) * STRIDE2 + S2 : W + PAD2) /* of a kept row */
#define SPAN ((PIXELS2 - 1) * STRIDE2 + S2) /* pixels under PIXELS2 outputs */

/* Written so that NaN stays NaN. */
#define RELU(v) ((v) < (vec)(0.0f) ? (vec)(0.0f) : (v))
#if ACT == 2
#define ACTIVATE1 SILU
#else
#define ACTIVATE1(v) (flags & 1 ? RELU(v) : (v))
#endif
#if ACT2 == 1
#define ACTIVATE2 RELU
#elif ACT2 == 2
#define ACTIVATE2 SILU
#else
#define ACTIVATE2(v) (v)
#endif

#if K != KS /* zero weights times infinity are no zeros */
#define REAL(v) (LANES < (ints)(K - k) ? (v) : (vec)(0.0f))
#else
#define REAL(v) (v)
#endif

/* `count` pixels of the first convolution, at most PIXELS; not a function: see conv_direct_v. */
#define POINTWISE(x, weights, first, line, count)                                                  \
    do {                                                                                           \
        vec acc[PIXELS];                                                                           \
        _Pragma("unroll") for (int j = 0; j < PIXELS; j++) acc[j] = (vec)(0.0f);                   \
        for (int i = 0; i < C; i++) {                                                              \
            const vec weight = LOAD(i, weights);                                                   \
            _Pragma("unroll") for (int j = 0; j < PIXELS; j++) if (j < (count)) acc[j] =           \
                fma((vec)((x)[j * CS + i]), weight, acc[j]);                                       \
        }                                                                                          \
        _Pragma("unroll") for (int j = 0; j < PIXELS; j++) if (j < (count))(line)[j] =             \
            REAL(ACTIVATE1(acc[j] + first));                                                       \
    } while (0)

/* Adds the windows of PIXELS2 outputs of a row to acc. */
#define WINDOWS(acc, lines, w, r0, r1, h0, q)                                                      \
    for (int r = (r0); r < (r1); r++) {                                                            \
        const vec *line = (lines) + ((h0) + r) % R2 * LINE + (q)*STRIDE2;                          \
        vec value[SPAN];                                                                           \
        _Pragma("unroll") for (int i = 0; i < SPAN; i++) value[i] = line[i];                       \
        _Pragma("unroll") for (int s = 0; s < S2; s++) {                                           \
            const vec weight = LOAD(0, (w) + (r * S2 + s) * KS);                                   \
            _Pragma("unroll") for (int j = 0; j < PIXELS2; j++) acc[j] =                           \
                fma(value[j * STRIDE2 + s], weight, acc[j]);                                       \
        }                                                                                          \
    }

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv_dw_v(__global const float *in, __global const float *weights, __global const float *bias,
          __global float *out, __global float *mean, const int n, const int flags) {
    const int k = (int)get_group_id(0) * V;
    __global const float *second = weights + C * KS + k;
    const vec bias1 = LOAD(0, bias + k), bias2 = LOAD(0, bias + KS + k);
    weights += C * k;
    vec lines[R2 * LINE + PIXELS2 * STRIDE2]; /* the last strip may read beyond its row */
    for (int i = 0; i < R2 * LINE + PIXELS2 * STRIDE2; i++)
        lines[i] = (vec)(0.0f);

    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const float *x = in + (long)image * (H * W * CS);
        __global float *y = out + (long)image * (P2 * Q2 * KS) + k;
        vec sum = (vec)(0.0f);
        int made = 0; /* rows of the first convolution */
        for (int p = 0; p < P2; p++) {
            const int h0 = p * STRIDE2 - PAD2, r0 = max(0, -h0), r1 = min(R2, H - h0);
            /* Rows that no window covers are not made. */
            for (made = max(made, h0 + r0); made < h0 + r1; made++) {
                __global const float *row = x + made * (W * CS);
                vec *line = lines + made % R2 * LINE + PAD2;
                int w = 0;
                for (; w + PIXELS <= W; w += PIXELS)
                    POINTWISE(row + w * CS, weights, bias1, line + w, PIXELS);
#if W % PIXELS
                POINTWISE(row + w * CS, weights, bias1, line + w, W % PIXELS);
#endif
            }
            for (int q = 0; q < Q2; q += PIXELS2) {
                vec acc[PIXELS2];
#pragma unroll
                for (int j = 0; j < PIXELS2; j++)
                    acc[j] = bias2;
                if (r0 == 0 && r1 == R2)
                    WINDOWS(acc, lines, second, 0, R2, h0, q)
                else
                    WINDOWS(acc, lines, second, r0, r1, h0, q)
#pragma unroll
                for (int j = 0; j < PIXELS2; j++) {
                    if (q + j >= Q2) continue;
                    const vec v = ACTIVATE2(acc[j]);
                    STORE(v, 0, y + (p * Q2 + q + j) * KS);
                    sum += v;
                }
            }
        }
        /* A division that is correctly rounded on every device: OpenCL's own may be 2.5 ulp off. */
        const vec count = (vec)((float)(P2 * Q2)), inverse = (vec)(1.0f / (P2 * Q2));
        const vec quotient = sum * inverse;
        const vec divided = fma(fma(-quotient, count, sum), inverse, quotient);
        /* Infinity and NaN stay as they are. */
        STORE(fabs(quotient) <= (vec)(3.4e38f) ? divided : quotient, 0, mean + (long)image * KS + k);
    }
}
