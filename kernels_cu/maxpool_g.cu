/* maxpool_g: max-pool, four channels of one output pixel a thread. The border counts as minus
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

#include "stored4.cuh"

#define GROUP 128
#define QUADS (CS / 4)
#define LOWEST __int_as_float(0xff800000)
#define LARGER(best, v) ((v) > (best) || (v) != (v) ? (v) : (best))

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(GROUP)
    maxpool_g(const stored4 *__restrict__ in, stored4 *__restrict__ out, const int n) {
    WAIT_FOR_EARLIER();
    const unsigned int e = blockIdx.x * GROUP + threadIdx.x;
    if (e >= P * Q * QUADS) return;
    const unsigned int quad = e % QUADS, pixel = e / QUADS;
    const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
    for (unsigned int image = blockIdx.y; image < (unsigned int)n; image += gridDim.y) {
        const stored4 *from = in + (unsigned long long)image * (H * W * QUADS) + quad;
        float4 best = make_float4(LOWEST, LOWEST, LOWEST, LOWEST);
#pragma unroll
        for (int r = 0; r < R; r++) {
            if ((unsigned int)(y + r) >= H) continue;
#pragma unroll
            for (int s = 0; s < S; s++) {
                if ((unsigned int)(x + s) >= W) continue;
                const float4 v = LOAD4(from, ((y + r) * W + x + s) * QUADS);
                best.x = LARGER(best.x, v.x), best.y = LARGER(best.y, v.y);
                best.z = LARGER(best.z, v.z), best.w = LARGER(best.w, v.w);
            }
        }
        STORE4(out, (unsigned long long)image * (P * Q * QUADS) + e, best);
    }
}
