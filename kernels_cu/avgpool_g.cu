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

#include "stored4.cuh"

#define WIDTH 16
#define QUADS (CS / 4)
/* A division that is correctly rounded whatever the language's own is; infinity and NaN pass. */
#define MEAN(s)                                                                                    \
    (fabsf((s)*inverse) <= 3.4e38f ? fmaf(fmaf(-((s)*inverse), count, (s)), inverse, (s)*inverse)  \
                                   : (s)*inverse)

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(ROWS *WIDTH)
    avgpool_g(const stored4 *__restrict__ in, stored4 *__restrict__ out, const int n) {
    WAIT_FOR_EARLIER();
    __shared__ float4 sums[ROWS * WIDTH];
    const unsigned int tid = threadIdx.x, row = tid / WIDTH;
    const unsigned int quad = blockIdx.x * WIDTH + tid % WIDTH;
    const float inverse = 1.0f / (H * W), count = (float)(H * W);
    for (unsigned int image = blockIdx.y; image < (unsigned int)n; image += gridDim.y) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (quad < QUADS) {
            const stored4 *from = in + (unsigned long long)image * (H * W * QUADS) + quad;
            for (unsigned int i = row; i < H * W; i += ROWS) {
                const float4 v = LOAD4(from, i * QUADS);
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
        }
        sums[tid] = sum;
        __syncthreads();
#pragma unroll
        for (unsigned int half_rows = ROWS / 2; half_rows > 0; half_rows /= 2) {
            if (row < half_rows) {
                const float4 v = sums[tid + half_rows * WIDTH];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
                sums[tid] = sum;
            }
            __syncthreads();
        }
        if (row == 0 && quad < QUADS) {
            const float4 mean = make_float4(MEAN(sum.x), MEAN(sum.y), MEAN(sum.z), MEAN(sum.w));
            STORE4(out, (unsigned long long)image * QUADS + quad, mean);
        }
    }
}
