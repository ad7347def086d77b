/* Max-pool, the plainest form: one work-item computes one stored output element. The border counts
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

#include "stored.clh"

__kernel void maxpool_naive(__global const stored *in, __global stored *out, const int n) {
    const uint e = (uint)get_global_id(0);
    if (e >= (uint)(P * Q * CS)) return;
    const int c = (int)(e % CS);
    const int q = (int)(e / CS % Q);
    const int p = (int)(e / CS / Q);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const stored *x = in + (long)image * (H * W * CS);
        float best = -INFINITY;
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
        STORE(out, (long)image * (P * Q * CS) + e, c < C ? best : 0.0f);
    }
}
