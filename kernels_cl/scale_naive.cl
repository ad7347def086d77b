/* Every channel times its own factor of the image, the plainest form: one work-item computes one stored
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

#include "stored.clh"

__kernel void scale_naive(__global const stored *in, __global const stored *factors,
                          __global stored *out, const int n) {
    const uint e = (uint)get_global_id(0);
    if (e >= (uint)(H * W * CS)) return;
    const int c = (int)(e % CS);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        const long at = (long)image * (H * W * CS) + e;
        const float v = c < C ? LOAD(in, at) * LOAD(factors, (long)image * CS + c) : 0.0f;
        STORE(out, at, v);
    }
}
