/* Max-pool, the plainest form: one thread computes one stored output element. The border counts
 * as minus infinity; a NaN in the window gives NaN. Padding channels C..CS-1 are written as zero.
 */
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
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored.cuh"

extern "C" __global__ void maxpool_naive(const stored *in, stored *out, const int n) {
    const unsigned int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= (unsigned int)(P * Q * CS)) return;
    const int c = (int)(e % CS);
    const int q = (int)(e / CS % Q);
    const int p = (int)(e / CS / Q);
    for (int image = (int)blockIdx.y; image < n; image += (int)gridDim.y) {
        const stored *x = in + (long long)image * (H * W * CS);
        float best = -__int_as_float(0x7f800000);
        for (int r = 0; r < R; r++) {
            const int h = p * STRIDE - PAD + r;
            if (h < 0 || h >= H) continue;
            for (int s = 0; s < S; s++) {
                const int w = q * STRIDE - PAD + s;
                if (w < 0 || w >= W) continue;
                const float v = LOAD(x, (h * W + w) * CS + c);
                if (v > best || v != v) best = v;
            }
        }
        STORE(out, (long long)image * (P * Q * CS) + e, c < C ? best : 0.0f);
    }
}
