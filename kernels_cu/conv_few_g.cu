/* conv_few_g: convolution of an image of up to four channels + bias [+ activation], without residual.
 * A thread makes TQ neighbouring pixels of 8 output channels from registers: for each row of the window
 * it reads the input pixels under all of them once. Weights are fp32 [R][S][C][KPAD] in shared memory,
 * KPAD = K rounded up to 8, zeros in the padding.
 * Group: GROUP threads, channels fastest. Grid: x = tiles of an image; y walks over the images. */
#ifndef C
#define C 3 /* input channels */
#endif
#ifndef CS
#define CS 4 /* input channel stride: 4 */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 8 /* output channels */
#endif
#ifndef KS
#define KS 8 /* output channel stride, >= K, a multiple of 8 */
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
#ifndef TQ
#define TQ 4 /* pixels of a strip */
#endif
#ifndef GROUP
#define GROUP 128 /* threads of a group */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored16.cuh"
#if VC == 8
static __device__ __forceinline__ pack narrow(const float *v) {
    return make_uint4(narrow2(v), narrow2(v + 2), narrow2(v + 4), narrow2(v + 6));
}
#endif
#include "smooth.cuh"

#define BLOCKS (KS / 8)
#define KPAD KS
#define STRIPS ((Q + TQ - 1) / TQ)
#define SPAN ((TQ - 1) * STRIDE + S)
#define FLAG_RELU 1
#if VC == 8
typedef uint2 pixel;
static __device__ __forceinline__ void widen_pixel(const pixel p, float *v) {
    widen2(p.x, v), widen2(p.y, v + 2);
}
#else
typedef float4 pixel;
#define widen_pixel widen
#endif

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(GROUP)
    conv_few_g(const pixel *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias,
               pack *__restrict__ out, const int n, const int flags) {
    WAIT_FOR_EARLIER();
    __shared__ float4 taps[R * S * C * KPAD / 4];
    for (unsigned int i = threadIdx.x; i < R * S * C * KPAD / 4; i += GROUP)
        taps[i] = ((const float4 *)weights)[i];
    __syncthreads();
    const unsigned int item = blockIdx.x * GROUP + threadIdx.x, block = item % BLOCKS;
    const unsigned int strip = item / BLOCKS, p = strip / STRIPS, q = strip % STRIPS * TQ;
    if (p >= P) return;
    for (unsigned int image = blockIdx.y; image < (unsigned int)n; image += gridDim.y) {
        const pixel *x = in + (unsigned long long)image * (H * W);
        float acc[TQ][8];
#pragma unroll
        for (int v = 0; v < 8; v++) {
            const float b = bias[block * 8 + v];
#pragma unroll
            for (int j = 0; j < TQ; j++)
                acc[j][v] = b;
        }
        for (int r = 0; r < R; r++) {
            const int h = (int)p * STRIDE - PAD + r, w0 = (int)q * STRIDE - PAD;
            if (h < 0 || h >= H) continue;
            float value[SPAN][4];
#pragma unroll
            for (int j = 0; j < SPAN; j++) {
                value[j][0] = value[j][1] = value[j][2] = value[j][3] = 0.0f;
                if (w0 + j >= 0 && w0 + j < W) widen_pixel(x[h * W + w0 + j], value[j]);
            }
#pragma unroll
            for (int s = 0; s < S; s++)
#pragma unroll
                for (int c = 0; c < C; c++) {
                    const unsigned int at = (((r * S + s) * C + c) * KPAD + block * 8) / 4;
                    const float4 low = taps[at], high = taps[at + 1];
#pragma unroll
                    for (int j = 0; j < TQ; j++) {
                        const float v = value[j * STRIDE + s][c];
                        acc[j][0] = fmaf(v, low.x, acc[j][0]), acc[j][1] = fmaf(v, low.y, acc[j][1]);
                        acc[j][2] = fmaf(v, low.z, acc[j][2]), acc[j][3] = fmaf(v, low.w, acc[j][3]);
                        acc[j][4] = fmaf(v, high.x, acc[j][4]), acc[j][5] = fmaf(v, high.y, acc[j][5]);
                        acc[j][6] = fmaf(v, high.z, acc[j][6]), acc[j][7] = fmaf(v, high.w, acc[j][7]);
                    }
                }
        }
#pragma unroll
        for (int j = 0; j < TQ; j++) {
            if (q + j >= Q) continue;
#pragma unroll
            for (int v = 0; v < 8; v++) {
                /* Written so that NaN stays NaN. */
                if ((flags & FLAG_RELU) != 0 && acc[j][v] < 0.0f) acc[j][v] = 0.0f;
#if ACT == 2
                acc[j][v] = SILU(acc[j][v]);
#elif ACT == 3
                acc[j][v] = SIGMOID(acc[j][v]);
#endif
                if (block * 8 + v >= K) acc[j][v] = 0.0f;
            }
            pack *y = out + (((unsigned long long)image * P + p) * Q + q + j) * (KS / VC) + block * (8 / VC);
            y[0] = narrow(acc[j]);
#if VC == 4
            y[1] = narrow(acc[j] + 4);
#endif
        }
    }
}
