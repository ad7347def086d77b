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
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Stored elements: float, float rounded to tf32, half, bfloat16. */
#if PRECISION == 2
/* Rounds off `drop` bits, to nearest, ties to even; infinity and NaN stay. */
static __device__ unsigned int rounded(float v, int drop) {
    const unsigned int bits = __float_as_uint(v);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits | ((bits & 0x7fffffu) != 0 ? 0x400000u : 0);
    return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop << drop;
}
#endif
#if PRECISION == 0
typedef float stored;
#define LOAD(p, i) ((p)[i])
#elif PRECISION == 2
typedef float stored;
#define LOAD(p, i) __uint_as_float(rounded((p)[i], 13))
#elif PRECISION == 3
typedef unsigned short stored;
static __device__ float from_half(stored h) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
#define LOAD(p, i) from_half((p)[i])
#elif PRECISION == 4
typedef unsigned short stored;
#define LOAD(p, i) __uint_as_float((unsigned int)(p)[i] << 16)
#else
#error "no storage of this precision here"
#endif

extern "C" __global__ void fc_naive(const stored *in, const stored *weights, const float *bias,
                                    float *out, const int n) {
    const unsigned int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= (unsigned int)KS) return;
    for (int image = (int)blockIdx.y; image < n; image += (int)gridDim.y) {
        const stored *x = in + (long long)image * CS;
        float sum = 0.0f;
        if (k < K) {
            const stored *row = weights + (long long)k * C;
            for (int c = 0; c < C; c++)
                sum = fmaf(LOAD(x, c), LOAD(row, c), sum);
            sum += bias[k];
        }
        out[(long long)image * KS + k] = sum;
    }
}
