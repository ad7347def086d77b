/* excite_g: two small fully connected layers with activations, one behind the other: the factors of
 * squeeze and excitation from the means of an image's channels. A group makes all of the first layer
 * and the part of the second that is its own; what several groups of an image compute again is less
 * than waiting for each other would cost.
 *
 * First layer: LANES work-items share an output, each taking every LANES-th 16 bytes of its weights
 * [KS][CS]; their sums are added in a fixed order. Second layer: a work-item makes VC outputs from a part
 * of the depth, weights [K][KS2] behind the first layer's. Sums and what is between the layers are fp32.
 * Biases: KS of the first layer, then KS2 of the second.
 * Group: GROUP work-items. Grid: x = SPLIT parts of the outputs; y walks over the images. */
#ifndef C
#define C 8 /* input channels */
#endif
#ifndef CS
#define CS 8 /* input channel stride, >= C, 16 bytes or a multiple */
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
#define KS 4 /* their stride */
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
#define KS2 8 /* their stride, 16 bytes or a multiple */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the first layer: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef ACT2
#define ACT2 0 /* of the second: 1 ReLU, 2 SiLU, 3 sigmoid, else none */
#endif
#ifndef GROUP
#define GROUP 256 /* work-items of a group */
#endif
#ifndef LANES
#define LANES 32 /* share an output of the first layer, a power of two */
#endif
#ifndef SPLIT
#define SPLIT 1 /* groups that share the second layer's outputs */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored16.clh"
#if VC == 8
__attribute__((always_inline)) static void widen(const pack p, float *v) {
    widen2(p.x, v), widen2(p.y, v + 2), widen2(p.z, v + 4), widen2(p.w, v + 6);
}
__attribute__((always_inline)) static pack narrow(const float *v) {
    return (uint4)(narrow2(v), narrow2(v + 2), narrow2(v + 4), narrow2(v + 6));
}
#endif
#include "smooth.clh"

#define QUADS (CS / VC)
#define OUTS ((KS2 / VC + SPLIT - 1) / SPLIT) /* times VC outputs of a group */
#define PARTS (GROUP / OUTS < 1 ? 1 : GROUP / OUTS > K ? K : GROUP / OUTS)
#define AT_ONCE (GROUP / LANES)
#define FLAG_RELU 1

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
excite_g(__global const pack *restrict in, __global const pack *restrict weights, __global const float *restrict bias,
             __global pack *restrict out, const int n, const int flags) {
    __local float mean[CS];
    __local float sums[GROUP * VC > K * LANES ? GROUP * VC : K * LANES];
    __local float squeezed[K];
    const uint tid = get_local_id(0), lane = tid % LANES, mine = tid / LANES;
    __global const pack *second = weights + KS * QUADS;
    for (uint image = get_group_id(1); image < (uint)n; image += get_num_groups(1)) {
        for (uint i = tid; i < QUADS; i += GROUP) {
            float v[VC];
            widen(in[(ulong)image * QUADS + i], v);
#pragma unroll
            for (int e = 0; e < VC; e++)
                mean[i * VC + e] = v[e];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = mine; k < K; k += AT_ONCE) {
            float sum = 0.0f;
#pragma unroll 4
            for (uint i = lane; i < QUADS; i += LANES) {
                float v[VC];
                widen(weights[k * QUADS + i], v);
#pragma unroll
                for (int e = 0; e < VC; e++)
                    sum = fma(v[e], mean[i * VC + e], sum);
            }
            sums[k * LANES + lane] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = tid; k < K; k += GROUP) {
            float sum = bias[k];
#pragma unroll 8
            for (int l = 0; l < LANES; l++)
                sum += sums[k * LANES + (l + k) % LANES]; /* from bank to bank */
            if ((flags & FLAG_RELU) != 0 && sum < 0.0f) sum = 0.0f;
#if ACT == 2
            sum = SILU(sum);
#elif ACT == 3
            sum = SIGMOID(sum);
#endif
            squeezed[k] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint first = 0; first < OUTS; first += GROUP / PARTS) {
            const uint own = first + tid % (GROUP / PARTS), part = tid / (GROUP / PARTS);
            const uint quad = get_group_id(0) * OUTS + own;
            const bool used = own < OUTS && quad < KS2 / VC && part < PARTS;
            float sum[VC];
#pragma unroll
            for (int e = 0; e < VC; e++)
                sum[e] = 0.0f;
            if (used) {
#pragma unroll 4
                for (uint k = part; k < K; k += PARTS) {
                    float v[VC];
                    widen(second[k * (KS2 / VC) + quad], v);
#pragma unroll
                    for (int e = 0; e < VC; e++)
                        sum[e] = fma(v[e], squeezed[k], sum[e]);
                }
            }
#pragma unroll
            for (int e = 0; e < VC; e++)
                sums[e * GROUP + tid] = sum[e];
            barrier(CLK_LOCAL_MEM_FENCE);
            if (used && part == 0) {
#pragma unroll
                for (int e = 0; e < VC; e++) {
                    const uint k = quad * VC + e;
                    for (uint other = 1; other < PARTS; other++)
                        sum[e] += sums[e * GROUP + other * (GROUP / PARTS) + tid];
                    sum[e] += bias[KS + k];
#if ACT2 == 1
                    if (sum[e] < 0.0f) sum[e] = 0.0f;
#elif ACT2 == 2
                    sum[e] = SILU(sum[e]);
#elif ACT2 == 3
                    sum[e] = SIGMOID(sum[e]);
#endif
                    if (k >= K2) sum[e] = 0.0f;
                }
                out[(ulong)image * (KS2 / VC) + quad] = narrow(sum);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
