/* Squeeze and excitation's two small layers for CPUs, one behind the other: the factors of an image's
 * channels from their means. Explicit vectors, groups of one work-item.
 *
 * A work-item makes all of the first layer and its part of the second, which SPLIT of them share: what is
 * computed again costs less than another launch. First layer: weights [KS][CV], CV being C in whole
 * vectors; ROWS outputs at a time, the lanes of a sum are added in the end. Second layer: weights
 * [K][KV2] behind them, KV2 being K2 in whole blocks; a vector has V outputs, BLOCKS of them at a time.
 * Zeros fill the weights. Biases: KS of the first layer, then KS2 of the second. Padding channels are
 * written as zero. */
#ifndef C
#define C 8 /* input channels */
#endif
#ifndef CS
#define CS 8 /* input channel stride, >= C */
#endif
#ifndef H
#define H 1 /* input height */
#endif
#ifndef W
#define W 1 /* input width */
#endif
#ifndef K
#define K 4 /* outputs of the first layer */
#endif
#ifndef KS
#define KS 4 /* their stride, a multiple of 4 */
#endif
#ifndef P
#define P 1 /* output height */
#endif
#ifndef Q
#define Q 1 /* output width */
#endif
#ifndef R
#define R 1 /* window height */
#endif
#ifndef S
#define S 1 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window */
#endif
#ifndef PAD
#define PAD 0 /* border */
#endif
#ifndef K2
#define K2 8 /* outputs of the second layer */
#endif
#ifndef KS2
#define KS2 8 /* their stride */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the first layer: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef ACT2
#define ACT2 0 /* of the second: 1 ReLU, 2 SiLU, 3 sigmoid, else none */
#endif
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16 */
#endif
#ifndef BLOCKS
#define BLOCKS 4 /* vectors of the second layer's outputs at a time */
#endif
#ifndef SPLIT
#define SPLIT 1 /* work-items that share an image */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#include "vector_v.clh"

#define ROWS 4 /* outputs of the first layer at a time; divides KS */
#define VECTORS ((C + V - 1) / V)
#define PARTS ((KS2 + BLOCKS * V - 1) / (BLOCKS * V)) /* blocks of the second layer */
#define KV2 (PARTS * BLOCKS * V)

/* Written so that NaN stays NaN. */
#define RELU(v) ((v) < (vec)(0.0f) ? (vec)(0.0f) : (v))
#if ACT2 == 1
#define ACTIVATE2 RELU
#elif ACT2 == 2
#define ACTIVATE2 SILU
#elif ACT2 == 3
#define ACTIVATE2 SIGMOID
#else
#define ACTIVATE2(v) (v)
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
excite_v(__global const float *in, __global const float *weights, __global const float *bias,
         __global float *out, const int n, const int flags) {
    __global const float *second = weights + KS * VECTORS * V;
    const int part = (int)get_group_id(0);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        vec means[VECTORS], squeezed[(KS + V - 1) / V];
        for (int i = 0; i < VECTORS * V; i++)
            ((float *)means)[i] = i < C ? in[(long)image * CS + i] : 0.0f;
        for (int k = 0; k < (KS + V - 1) / V; k++)
            squeezed[k] = (vec)(0.0f);
        for (int k = 0; k < KS; k += ROWS) {
            vec sum[ROWS];
#pragma unroll
            for (int j = 0; j < ROWS; j++)
                sum[j] = (vec)(0.0f);
            for (int i = 0; i < VECTORS; i++) {
#pragma unroll
                for (int j = 0; j < ROWS; j++)
                    sum[j] = fma(means[i], LOAD(i, weights + (k + j) * (VECTORS * V)), sum[j]);
            }
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                const float *lanes = (const float *)&sum[j];
                float all[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
                for (int i = 0; i < V; i++)
                    all[i % 4] += lanes[i];
                ((float *)squeezed)[k + j] = all[0] + all[1] + (all[2] + all[3]) + bias[k + j];
            }
        }
        for (int k = 0; k < (KS + V - 1) / V; k++) {
#if ACT
            squeezed[k] = ACTIVATE(squeezed[k]);
#else
            if (flags & 1) squeezed[k] = RELU(squeezed[k]);
#endif
        }
        for (int p = part; p < PARTS; p += SPLIT) {
            vec sum[BLOCKS];
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                sum[b] = (vec)(0.0f);
            for (int k = 0; k < K; k++) {
                const vec value = (vec)(((const float *)squeezed)[k]);
#pragma unroll
                for (int b = 0; b < BLOCKS; b++)
                    sum[b] = fma(value, LOAD(p * BLOCKS + b, second + k * KV2), sum[b]);
            }
            for (int b = 0; b < BLOCKS; b++) {
                const int k = (p * BLOCKS + b) * V;
                float lanes[V];
                for (int i = 0; i < V; i++)
                    lanes[i] = k + i < KS2 ? bias[KS + k + i] : 0.0f;
                const vec v = ACTIVATE2(sum[b] + LOAD(0, lanes));
                for (int i = 0; i < V && k + i < KS2; i++)
                    out[(long)image * KS2 + k + i] = k + i < K2 ? ((const float *)&v)[i] : 0.0f;
            }
        }
    }
}
