/* avgpool_g: global average pool. A group sums 16 quads of channels of one image: each of its rows
 * of 16 takes every ROWS-th pixel, then the rows' sums are added in a fixed tree.
 * Group: 16 * ROWS. Grid: x = ceil(CS / 64); y walks over the images. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 4 */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef ROWS
#define ROWS 16 /* pixels summed side by side, a power of two */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Four stored elements: float, float rounded to tf32, half, bfloat16. */
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
typedef float4 stored4;
#define LOAD4(p, i) ((p)[i])
#define STORE4(p, i, v) ((p)[i] = (v))
#elif PRECISION == 2
typedef float4 stored4;
#define LOAD4(p, i) ((p)[i])
#define R13(v) __uint_as_float(rounded(v, 13))
#define STORE4(p, i, v) ((p)[i] = make_float4(R13((v).x), R13((v).y), R13((v).z), R13((v).w)))
#elif PRECISION == 3
typedef ushort4 stored4;
static __device__ float from_half(unsigned short h) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(h));
    return v;
}
static __device__ float4 from_stored4(stored4 q) {
    return make_float4(from_half(q.x), from_half(q.y), from_half(q.z), from_half(q.w));
}
#define LOAD4(p, i) from_stored4((p)[i])
static __device__ unsigned short to_half(float v) {
    unsigned short h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(v));
    return h;
}
#define STORE4(p, i, v)                                                                            \
    ((p)[i] = make_ushort4(to_half((v).x), to_half((v).y), to_half((v).z), to_half((v).w)))
#elif PRECISION == 4
typedef ushort4 stored4;
static __device__ float widened(unsigned short h) {
    return __uint_as_float((unsigned int)h << 16);
}
static __device__ float4 from_stored4(stored4 q) {
    return make_float4(widened(q.x), widened(q.y), widened(q.z), widened(q.w));
}
#define LOAD4(p, i) from_stored4((p)[i])
#define R16(v) ((unsigned short)(rounded(v, 16) >> 16))
#define STORE4(p, i, v) ((p)[i] = make_ushort4(R16((v).x), R16((v).y), R16((v).z), R16((v).w)))
#else
#error "no storage of this precision here"
#endif

#define WIDTH 16
#define QUADS (CS / 4)
/* A division that is correctly rounded whatever the language's own is; infinity and NaN pass. */
#define MEAN(s)                                                                                    \
    (fabsf((s)*inverse) <= 3.4e38f ? fmaf(fmaf(-((s)*inverse), count, (s)), inverse, (s)*inverse)  \
                                   : (s)*inverse)

extern "C" __global__ void __launch_bounds__(ROWS *WIDTH)
    avgpool_g(const stored4 *__restrict__ in, stored4 *__restrict__ out, const int n) {
    __shared__ float4 sums[ROWS * WIDTH];
    const unsigned int tid = threadIdx.x, row = tid / WIDTH;
    const unsigned int quad = blockIdx.x * WIDTH + tid % WIDTH;
    const float inverse = 1.0f / (H * W), count = (float)(H * W);
    for (unsigned int image = blockIdx.y; image < (unsigned int)n; image += gridDim.y) {
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (quad < QUADS) {
            const stored4 *from = in + (unsigned long long)image * (H * W * QUADS) + quad;
            for (unsigned int i = row; i < H * W; i += ROWS) {
                const float4 v = LOAD4(from, i * QUADS);
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
        }
        sums[tid] = sum;
        __syncthreads();
#pragma unroll
        for (unsigned int half_rows = ROWS / 2; half_rows > 0; half_rows /= 2) {
            if (row < half_rows) {
                const float4 v = sums[tid + half_rows * WIDTH];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
                sums[tid] = sum;
            }
            __syncthreads();
        }
        if (row == 0 && quad < QUADS) {
            const float4 mean = make_float4(MEAN(sum.x), MEAN(sum.y), MEAN(sum.z), MEAN(sum.w));
            STORE4(out, (unsigned long long)image * QUADS + quad, mean);
        }
    }
}
