/* maxpool_g: max-pool, four channels of one output pixel a work-item. The border counts as minus
 * infinity; a NaN in the window gives NaN. Padding channels C..CS-1 come out zero, since they are
 * zero in the input.
 * Group: 128. Grid: x = groups over P * Q * CS / 4 of one image; y walks over the images. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 4 */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef P
#define P 4 /* output height */
#endif
#ifndef Q
#define Q 4 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 2 /* step of the window in both directions */
#endif
#ifndef PAD
#define PAD 1 /* border in both directions, smaller than the window */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored4.clh"

#define GROUP 128
#define QUADS (CS / 4)
#define LOWEST (-INFINITY)
#define LARGER(best, v) ((v) > (best) || (v) != (v) ? (v) : (best))

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
maxpool_g(__global const stored4 *restrict in, __global stored4 *restrict out, const int n) {
    const uint e = get_group_id(0) * GROUP + get_local_id(0);
    if (e >= P * Q * QUADS) return;
    const uint quad = e % QUADS, pixel = e / QUADS;
    const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
    for (uint image = get_group_id(1); image < (uint)n; image += get_num_groups(1)) {
        __global const stored4 *from = in + (ulong)image * (H * W * QUADS) + quad;
        float4 best = (float4)(LOWEST, LOWEST, LOWEST, LOWEST);
#pragma unroll
        for (int r = 0; r < R; r++) {
            if ((uint)(y + r) >= H) continue;
#pragma unroll
            for (int s = 0; s < S; s++) {
                if ((uint)(x + s) >= W) continue;
                const float4 v = LOAD4(from, ((y + r) * W + x + s) * QUADS);
                best.x = LARGER(best.x, v.x), best.y = LARGER(best.y, v.y);
                best.z = LARGER(best.z, v.z), best.w = LARGER(best.w, v.w);
            }
        }
        STORE4(out, (ulong)image * (P * Q * QUADS) + e, best);
    }
}
