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
