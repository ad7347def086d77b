/* What a matrix product leaves to do, in place: bias, residual, ReLU, and zeros in the padding
 * channels K..KS-1. One work-item per stored element; the second grid dimension walks over images. */
#ifndef K
#define K 5 /* output channels */
#endif
#ifndef KS
#define KS 8 /* output channel stride, >= K */
#endif
#ifndef P
#define P 1 /* output height; 1 for a fully connected layer */
#endif
#ifndef Q
#define Q 1 /* output width; 1 for a fully connected layer */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

__kernel void gemm_epilogue(__global const float *bias, __global const float *residual,
                            __global float *out, const int n, const int flags) {
    const uint e = (uint)get_global_id(0);
    if (e >= (uint)(P * Q * KS)) return;
    const int k = (int)(e % KS);
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        const long at = (long)image * (P * Q * KS) + e;
        float value = 0.0f;
        if (k < K) {
            value = out[at] + bias[k];
            if (flags & 2) value += residual[at];
            /* Written so that NaN stays NaN. */
            if ((flags & 1) && value < 0.0f) value = 0.0f;
        }
        out[at] = value;
    }
}
