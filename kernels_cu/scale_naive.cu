/* Every channel times its own factor of the image, the plainest form: one thread computes one stored
 * output element. Padding channels are written as zero. The second grid dimension walks over the
 * images, so any batch fits. */
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
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

#include "stored.cuh"

extern "C" __global__ void scale_naive(const stored *in, const stored *factors, stored *out,
                                       const int n) {
    const unsigned int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= (unsigned int)(H * W * CS)) return;
    const int c = (int)(e % CS);
    for (int image = (int)blockIdx.y; image < n; image += (int)gridDim.y) {
        const long long at = (long long)image * (H * W * CS) + e;
        const float v = c < C ? LOAD(in, at) * LOAD(factors, (long long)image * CS + c) : 0.0f;
        STORE(out, at, v);
    }
}
