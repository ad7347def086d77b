/* avgpool_g: global average pool. A group sums 16 quads of channels of one image: each of its rows
 * of 16 takes every ROWS-th pixel, then the rows' sums are added in a fixed tree.
 * Group: 16 * ROWS. Grid: x = ceil(CS / 64); y walks over the images. */
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
#ifndef ROWS
#define ROWS 16 /* pixels summed side by side, a power of two */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored4.clh"

#define WIDTH 16
#define QUADS (CS / 4)
/* A division that is correctly rounded whatever the language's own is; infinity and NaN pass. */
#define MEAN(s)                                                                                    \
    (fabs((s)*inverse) <= 3.4e38f ? fma(fma(-((s)*inverse), count, (s)), inverse, (s)*inverse)     \
                                  : (s)*inverse)

__kernel __attribute__((reqd_work_group_size(ROWS * WIDTH, 1, 1))) void
avgpool_g(__global const stored4 *restrict in, __global stored4 *restrict out, const int n) {
    __local float4 sums[ROWS * WIDTH];
    const uint tid = get_local_id(0), row = tid / WIDTH;
    const uint quad = get_group_id(0) * WIDTH + tid % WIDTH;
    const float inverse = 1.0f / (H * W), count = (float)(H * W);
    for (uint image = get_group_id(1); image < (uint)n; image += get_num_groups(1)) {
        float4 sum = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
        if (quad < QUADS) {
            __global const stored4 *from = in + (ulong)image * (H * W * QUADS) + quad;
            for (uint i = row; i < H * W; i += ROWS) {
                const float4 v = LOAD4(from, i * QUADS);
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
        }
        sums[tid] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint half_rows = ROWS / 2; half_rows > 0; half_rows /= 2) {
            if (row < half_rows) {
                const float4 v = sums[tid + half_rows * WIDTH];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
                sums[tid] = sum;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (row == 0 && quad < QUADS) {
            const float4 mean = (float4)(MEAN(sum.x), MEAN(sum.y), MEAN(sum.z), MEAN(sum.w));
            STORE4(out, (ulong)image * QUADS + quad, mean);
        }
    }
}
