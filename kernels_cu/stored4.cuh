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
