/* maxpool_g: max-pool, four channels of one output pixel a thread. The border counts as minus
 * infinity; a NaN in the window gives NaN. Padding channels C..CS-1 come out zero, since they are
 * zero in the input.
 * Group: 128. Grid: x = groups over P * Q * CS / 4 of one image; y walks over the images. */
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
#ifndef P
#define P 4 /* output height */
#endif
#ifndef Q
#define Q 4 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 2 /* step of the window in both directions */
#endif
#ifndef PAD
#define PAD 1 /* border in both directions, smaller than the window */
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

#define GROUP 128
#define QUADS (CS / 4)
#define LOWEST __int_as_float(0xff800000)
#define LARGER(best, v) ((v) > (best) || (v) != (v) ? (v) : (best))

extern "C" __global__ void __launch_bounds__(GROUP)
    maxpool_g(const stored4 *__restrict__ in, stored4 *__restrict__ out, const int n) {
    const unsigned int e = blockIdx.x * GROUP + threadIdx.x;
    if (e >= P * Q * QUADS) return;
    const unsigned int quad = e % QUADS, pixel = e / QUADS;
    const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
    for (unsigned int image = blockIdx.y; image < (unsigned int)n; image += gridDim.y) {
        const stored4 *from = in + (unsigned long long)image * (H * W * QUADS) + quad;
        float4 best = make_float4(LOWEST, LOWEST, LOWEST, LOWEST);
#pragma unroll
        for (int r = 0; r < R; r++) {
            if ((unsigned int)(y + r) >= H) continue;
#pragma unroll
            for (int s = 0; s < S; s++) {
                if ((unsigned int)(x + s) >= W) continue;
                const float4 v = LOAD4(from, ((y + r) * W + x + s) * QUADS);
                best.x = LARGER(best.x, v.x), best.y = LARGER(best.y, v.y);
                best.z = LARGER(best.z, v.z), best.w = LARGER(best.w, v.w);
            }
        }
        STORE4(out, (unsigned long long)image * (P * Q * QUADS) + e, best);
    }
}
