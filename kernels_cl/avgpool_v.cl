/* Global average pool for CPUs: explicit vectors over channels, one work-item sums V channels of one
 * image. Padding channels C..CS-1 are written as zero. */
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
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16; divides CS */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#if V == 16
typedef float16 vec;
#define LOAD vload16
#define STORE vstore16
#elif V == 8
typedef float8 vec;
#define LOAD vload8
#define STORE vstore8
#else
typedef float4 vec;
#define LOAD vload4
#define STORE vstore4
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
avgpool_v(__global const float *in, __global float *out, const int n) {
    const int first = (int)get_group_id(0) * V;
    const vec count = (vec)((float)(H * W));
    const vec inverse = (vec)(1.0f / (H * W));
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const float *x = in + (long)image * (H * W * CS) + first;
        __global float *y = out + (long)image * CS + first;
        vec sum = (vec)(0.0f);
        for (int i = 0; i < H * W; i++)
            sum += LOAD(0, x + i * CS);
        /* A division that is correctly rounded on every device: OpenCL's own may be 2.5 ulp off. */
        const vec quotient = sum * inverse;
        const vec mean = fma(fma(-quotient, count, sum), inverse, quotient);
        /* Infinity and NaN stay as they are. */
        STORE(fabs(quotient) <= (vec)(3.4e38f) ? mean : quotient, 0, y);
        for (int c = max(C - first, 0); c < V; c++)
            y[c] = 0.0f;
    }
}
