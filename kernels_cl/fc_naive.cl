/* Fully connected layer with bias, the plainest form: one work-item computes one stored output
 * element. Weights are [K][C]. Padding channels K..KS-1 are written as zero. */
#ifndef C
#define C 3 /* input channels */
#endif
#ifndef CS
#define CS 4 /* input channel stride, >= C */
#endif
#ifndef K
#define K 5 /* output channels */
#endif
#ifndef KS
#define KS 8 /* output channel stride, >= K */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

__kernel void fc_naive(__global const float *in, __global const float *weights,
                       __global const float *bias, __global float *out, const int n) {
    const uint k = (uint)get_global_id(0);
    if (k >= (uint)KS) return;
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const float *x = in + (long)image * CS;
        float sum = 0.0f;
        if (k < K) {
            __global const float *row = weights + (long)k * C;
            for (int c = 0; c < C; c++)
                sum = fma(x[c], row[c], sum);
            sum += bias[k];
        }
        out[(long)image * KS + k] = sum;
    }
}
