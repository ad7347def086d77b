/* Fully connected layer with bias, the plainest form: one thread computes one stored output
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

extern "C" __global__ void fc_naive(const float *in, const float *weights, const float *bias,
                                    float *out, const int n) {
    const unsigned int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= (unsigned int)KS) return;
    for (int image = (int)blockIdx.y; image < n; image += (int)gridDim.y) {
        const float *x = in + (long long)image * CS;
        float sum = 0.0f;
        if (k < K) {
            const float *row = weights + (long long)k * C;
            for (int c = 0; c < C; c++)
                sum = fmaf(x[c], row[c], sum);
            sum += bias[k];
        }
        out[(long long)image * KS + k] = sum;
    }
}
