/* Depthwise convolution with bias and activation, the plainest form: one work-item computes one stored
 * output element from the window of its own channel. It is the last resort and the yardstick, and must
 * not become clever. Weights are [R][S][CS]. Padding channels are written as zero. The second grid
 * dimension walks over the images, so any batch fits. */
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
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored.clh"

#if ACT == 2
#define ACTIVATE(v) ((v) / (1.0f + exp(-(v))))
#elif ACT == 3
#define ACTIVATE(v) (1.0f / (1.0f + exp(-(v))))
#else
#define ACTIVATE(v) (v)
#endif

__kernel void dwconv_naive(__global const stored *in, __global const stored *weights,
                           __global const float *bias, __global stored *out, const int n,
                           const int flags) {
    const uint e = (uint)get_global_id(0);
    if (e >= (uint)(P * Q * KS)) return;
    const int k = (int)(e % KS);
    const int q = (int)(e / KS % Q);
    const int p = (int)(e / KS / Q);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const stored *x = in + (long)image * (H * W * CS);
        const long at = (long)image * (P * Q * KS) + e;
        float sum = 0.0f;
        if (k < K) {
            for (int r = 0; r < R; r++) {
                const int h = p * STRIDE - PAD + r;
                if (h < 0 || h >= H) continue;
                for (int s = 0; s < S; s++) {
                    const int w = q * STRIDE - PAD + s;
                    if (w < 0 || w >= W) continue;
                    sum = fma(LOAD(x, (h * W + w) * CS + k), LOAD(weights, (r * S + s) * CS + k), sum);
                }
            }
            sum += bias[k];
            /* Written so that NaN stays NaN. */
            if ((flags & 1) && sum < 0.0f) sum = 0.0f;
            sum = ACTIVATE(sum);
        }
        STORE(out, at, sum);
    }
}
