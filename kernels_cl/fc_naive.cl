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
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Stored elements: float, float rounded to tf32, half, bfloat16. */
#if PRECISION == 2
/* Rounds off `drop` bits, to nearest, ties to even; infinity and NaN stay. */
static uint rounded(float v, int drop) {
    const uint bits = as_uint(v);
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
#define LOAD(p, i) as_float(rounded((p)[i], 13))
#elif PRECISION == 3
typedef half stored;
#define LOAD(p, i) vload_half(i, p)
#elif PRECISION == 4
typedef ushort stored;
#define LOAD(p, i) as_float((uint)(p)[i] << 16)
#else
#error "no storage of this precision here"
#endif

__kernel void fc_naive(__global const stored *in, __global const stored *weights,
                       __global const float *bias, __global float *out, const int n) {
    const uint k = (uint)get_global_id(0);
    if (k >= (uint)KS) return;
    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        __global const stored *x = in + (long)image * CS;
        float sum = 0.0f;
        if (k < K) {
            __global const stored *row = weights + (long)k * C;
            for (int c = 0; c < C; c++)
                sum = fma(LOAD(x, c), LOAD(row, c), sum);
            sum += bias[k];
        }
        out[(long)image * KS + k] = sum;
    }
}
