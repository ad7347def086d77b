/* Depthwise convolution with bias and activation, the plainest form: one thread computes one stored
 * output element from the window of its own channel. It is the last resort and the yardstick, and must
 * not become clever. Weights are [R][S][CS]. Padding channels are written as zero. The second grid
 * dimension walks over the images, so any batch fits. */
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
#ifndef K
#define K 5 /* output channels, as many as there are of the input */
#endif
#ifndef KS
#define KS 8 /* output channel stride, the input's */
#endif
#ifndef P
#define P 8 /* output height */
#endif
#ifndef Q
#define Q 8 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window, both directions */
#endif
#ifndef PAD
#define PAD 1 /* border on every side */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the results: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Stored elements: float, float rounded to tf32, half, bfloat16. */
#if PRECISION == 2 || PRECISION == 4
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
#define STORE(p, i, v) ((p)[i] = (v))
#elif PRECISION == 2
typedef float stored;
#define LOAD(p, i) __uint_as_float(rounded((p)[i], 13))
#define STORE(p, i, v) ((p)[i] = __uint_as_float(rounded(v, 13)))
#elif PRECISION == 3
typedef unsigned short stored;
static __device__ float from_half(stored h) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
#define LOAD(p, i) from_half((p)[i])
static __device__ stored to_half(float v) {
    stored h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
#define STORE(p, i, v) ((p)[i] = to_half(v))
#elif PRECISION == 4
typedef unsigned short stored;
#define LOAD(p, i) __uint_as_float((unsigned int)(p)[i] << 16)
#define STORE(p, i, v) ((p)[i] = (stored)(rounded(v, 16) >> 16))
#else
#error "no storage of this precision here"
#endif

#if ACT == 2
#define ACTIVATE(v) ((v) / (1.0f + expf(-(v))))
#elif ACT == 3
#define ACTIVATE(v) (1.0f / (1.0f + expf(-(v))))
#else
#define ACTIVATE(v) (v)
#endif

extern "C" __global__ void dwconv_naive(const stored *in, const stored *weights, const float *bias,
                                        stored *out, const int n, const int flags) {
    const unsigned int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= (unsigned int)(P * Q * KS)) return;
    const int k = (int)(e % KS);
    const int q = (int)(e / KS % Q);
    const int p = (int)(e / KS / Q);
    for (int image = (int)blockIdx.y; image < n; image += (int)gridDim.y) {
        const stored *x = in + (long long)image * (H * W * CS);
        const long long at = (long long)image * (P * Q * KS) + e;
        float sum = 0.0f;
        if (k < K) {
            for (int r = 0; r < R; r++) {
                const int h = p * STRIDE - PAD + r;
                if (h < 0 || h >= H) continue;
                for (int s = 0; s < S; s++) {
                    const int w = q * STRIDE - PAD + s;
                    if (w < 0 || w >= W) continue;
                    sum = fmaf(LOAD(x, (h * W + w) * CS + k), LOAD(weights, (r * S + s) * CS + k), sum);
                }
            }
            sum += bias[k];
            /* Written so that NaN stays NaN. */
            if ((flags & 1) && sum < 0.0f) sum = 0.0f;
            sum = ACTIVATE(sum);
        }
        STORE(out, at, sum);
    }
}
