/* Global average pool, the plainest form: one thread sums one channel of one image. Padding
 * channels C..CS-1 are written as zero. */
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
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored.cuh"

extern "C" __global__ void avgpool_naive(const stored *in, stored *out, const int n) {
    const unsigned int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= (unsigned int)CS) return;
    const float count = (float)(H * W);
    const float inverse = 1.0f / (H * W);
    for (int image = (int)blockIdx.y; image < n; image += (int)gridDim.y) {
        const stored *x = in + (long long)image * (H * W * CS) + c;
        float sum = 0.0f;
        for (int i = 0; i < H * W; i++)
            sum += LOAD(x, i * CS);
        /* A division that is correctly rounded whatever the division mode. */
        const float quotient = sum * inverse;
        const float mean = fabsf(quotient) <= 3.4e38f
                               ? fmaf(fmaf(-quotient, count, sum), inverse, quotient)
                               : quotient; /* infinity and NaN as they are */
        STORE(out, (long long)image * CS + c, c < C ? mean : 0.0f);
    }
}
