/* Convolution with bias, residual and activation, the plainest form: one thread computes one stored
 * output element. It is the last resort and the yardstick, and must not become clever.
 * Weights are [K][R][S][C]. Padding channels K..KS-1 are written as zero. The second grid dimension
 * walks over the images, so any batch fits. */
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
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored.cuh"

#if ACT == 2
#define ACTIVATE(v) ((v) / (1.0f + expf(-(v))))
#elif ACT == 3
#define ACTIVATE(v) (1.0f / (1.0f + expf(-(v))))
#else
#define ACTIVATE(v) (v)
#endif

extern "C" __global__ void conv_naive(const stored *in, const stored *weights, const float *bias,
                                      const stored *residual, stored *out, const int n,
                                      const int flags) {
    const unsigned int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= (unsigned int)(P * Q * KS)) return;
    const int k = (int)(e % KS);
    const int q = (int)(e / KS % Q);
    const int p = (int)(e / KS / Q);
    for (int image = (int)blockIdx.y; image < n; image += (int)gridDim.y) {
        const stored *x = in + (long long)image * (H * W * CS);
        const long long at = (long long)image * (P * Q * KS) + e;
        float sum = 0.0f;
        if (k < K) {
            for (int r = 0; r < R; r++) {
                const int h = p * STRIDE - PAD + r;
                if (h < 0 || h >= H) continue;
                for (int s = 0; s < S; s++) {
                    const int w = q * STRIDE - PAD + s;
                    if (w < 0 || w >= W) continue;
                    const stored *pixel = x + (h * W + w) * CS;
                    const stored *tap = weights + (long long)((k * R + r) * S + s) * C;
                    for (int c = 0; c < C; c++)
                        sum = fmaf(LOAD(pixel, c), LOAD(tap, c), sum);
                }
            }
            sum += bias[k];
            if (flags & 2) sum += LOAD(residual, at);
            /* Written so that NaN stays NaN. */
            if ((flags & 1) && sum < 0.0f) sum = 0.0f;
            sum = ACTIVATE(sum);
        }
        STORE(out, at, sum);
    }
}
