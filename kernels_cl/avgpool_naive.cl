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
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

__kernel void avgpool_naive(__global const float *in, __global float *out, const int n) {
    const uint c = (uint)get_global_id(0);
    if (c >= (uint)CS) return;
    const float count = (float)(H * W);
    const float inverse = 1.0f / (H * W);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const float *x = in + (long)image * (H * W * CS) + c;
        float sum = 0.0f;
        for (int i = 0; i < H * W; i++)
            sum += x[i * CS];
        /* A division that is correctly rounded on every device: OpenCL's own may be 2.5 ulp off. */
        const float quotient = sum * inverse;
        const float mean = fabs(quotient) <= 3.4e38f
                               ? fma(fma(-quotient, count, sum), inverse, quotient)
                               : quotient; /* infinity and NaN as they are */
        out[(long)image * CS + c] = c < C ? mean : 0.0f;
    }
}
