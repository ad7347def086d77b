/* excite_g: two small fully connected layers with activations, one behind the other: the factors of
 * squeeze and excitation from the means of an image's channels. A group makes all of the first layer
 * and the part of the second that is its own; what several groups of an image compute again is less
 * than waiting for each other would cost.
 *
 * First layer: LANES threads share an output, each taking every LANES-th 16 bytes of its weights
 * [KS][CS]; their sums are added in a fixed order. Second layer: a thread makes VC outputs from a part
 * of the depth, weights [K][KS2] behind the first layer's. Sums and what is between the layers are fp32.
 * Biases: KS of the first layer, then KS2 of the second.
 * Group: GROUP threads. Grid: x = SPLIT parts of the outputs; y walks over the images. */
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
#define GROUP 256 /* threads of a group */
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

#include "stored16.cuh"
#if VC == 8
static __device__ __forceinline__ void widen(const pack p, float *v) {
    widen2(p.x, v), widen2(p.y, v + 2), widen2(p.z, v + 4), widen2(p.w, v + 6);
}
static __device__ __forceinline__ pack narrow(const float *v) {
    return make_uint4(narrow2(v), narrow2(v + 2), narrow2(v + 4), narrow2(v + 6));
}
#endif
#include "smooth.cuh"

#define QUADS (CS / VC)
#define OUTS ((KS2 / VC + SPLIT - 1) / SPLIT) /* times VC outputs of a group */
#define PARTS (GROUP / OUTS < 1 ? 1 : GROUP / OUTS > K ? K : GROUP / OUTS)
#define AT_ONCE (GROUP / LANES)
#define FLAG_RELU 1

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(GROUP)
    excite_g(const pack *__restrict__ in, const pack *__restrict__ weights, const float *__restrict__ bias,
             pack *__restrict__ out, const int n, const int flags) {
    WAIT_FOR_EARLIER();
    __shared__ float mean[CS];
    __shared__ float sums[GROUP * VC > K * LANES ? GROUP * VC : K * LANES];
    __shared__ float squeezed[K];
    const unsigned int tid = threadIdx.x, lane = tid % LANES, mine = tid / LANES;
    const pack *second = weights + KS * QUADS;
    for (unsigned int image = blockIdx.y; image < (unsigned int)n; image += gridDim.y) {
        for (unsigned int i = tid; i < QUADS; i += GROUP) {
            float v[VC];
            widen(in[(unsigned long long)image * QUADS + i], v);
#pragma unroll
            for (int e = 0; e < VC; e++)
                mean[i * VC + e] = v[e];
        }
        __syncthreads();
        for (unsigned int k = mine; k < K; k += AT_ONCE) {
            float sum = 0.0f;
#pragma unroll 4
            for (unsigned int i = lane; i < QUADS; i += LANES) {
                float v[VC];
                widen(weights[k * QUADS + i], v);
#pragma unroll
                for (int e = 0; e < VC; e++)
                    sum = fmaf(v[e], mean[i * VC + e], sum);
            }
            sums[k * LANES + lane] = sum;
        }
        __syncthreads();
        for (unsigned int k = tid; k < K; k += GROUP) {
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
        __syncthreads();
        for (unsigned int first = 0; first < OUTS; first += GROUP / PARTS) {
            const unsigned int own = first + tid % (GROUP / PARTS), part = tid / (GROUP / PARTS);
            const unsigned int quad = blockIdx.x * OUTS + own;
            const bool used = own < OUTS && quad < KS2 / VC && part < PARTS;
            float sum[VC];
#pragma unroll
            for (int e = 0; e < VC; e++)
                sum[e] = 0.0f;
            if (used) {
#pragma unroll 4
                for (unsigned int k = part; k < K; k += PARTS) {
                    float v[VC];
                    widen(second[k * (KS2 / VC) + quad], v);
#pragma unroll
                    for (int e = 0; e < VC; e++)
                        sum[e] = fmaf(v[e], squeezed[k], sum[e]);
                }
            }
#pragma unroll
            for (int e = 0; e < VC; e++)
                sums[e * GROUP + tid] = sum[e];
            __syncthreads();
            if (used && part == 0) {
#pragma unroll
                for (int e = 0; e < VC; e++) {
                    const unsigned int k = quad * VC + e;
                    for (unsigned int other = 1; other < PARTS; other++)
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
                out[(unsigned long long)image * (KS2 / VC) + quad] = narrow(sum);
            }
            __syncthreads();
        }
    }
}
