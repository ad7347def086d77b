/* Global average pool, the plainest form: one work-item sums one channel of one image. Padding
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

#include "stored.clh"

__kernel void avgpool_naive(__global const stored *in, __global stored *out, const int n) {
    const uint c = (uint)get_global_id(0);
    if (c >= (uint)CS) return;
    const float count = (float)(H * W);
    const float inverse = 1.0f / (H * W);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const stored *x = in + (long)image * (H * W * CS) + c;
        float sum = 0.0f;
        for (int i = 0; i < H * W; i++)
            sum += LOAD(x, i * CS);
        /* A division that is correctly rounded on every device: OpenCL's own may be 2.5 ulp off. */
        const float quotient = sum * inverse;
        const float mean = fabs(quotient) <= 3.4e38f
                               ? fma(fma(-quotient, count, sum), inverse, quotient)
                               : quotient; /* infinity and NaN as they are */
        STORE(out, (long)image * CS + c, c < C ? mean : 0.0f);
    }
}
