/* VC stored elements, 16 bytes: float, float rounded to tf32, half, bfloat16. */
#if PRECISION == 2 || PRECISION == 4
/* Rounds off `drop` bits, to nearest, ties to even; infinity and NaN stay. */
static __device__ __forceinline__ unsigned int rounded(float v, int drop) {
    const unsigned int bits = __float_as_uint(v);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits | ((bits & 0x7fffffu) != 0 ? 0x400000u : 0);
    return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop << drop;
}
#endif
#if PRECISION == 0 || PRECISION == 2
#define VC 4
typedef float4 pack;
static __device__ __forceinline__ void widen(const pack p, float *v) {
    v[0] = p.x, v[1] = p.y, v[2] = p.z, v[3] = p.w;
}
#if PRECISION == 0
#define ROUND(v) (v)
#else
#define ROUND(v) __uint_as_float(rounded(v, 13))
#endif
static __device__ __forceinline__ pack narrow(const float *v) {
    return make_float4(ROUND(v[0]), ROUND(v[1]), ROUND(v[2]), ROUND(v[3]));
}
#elif PRECISION == 3
#define VC 8
typedef uint4 pack;
static __device__ __forceinline__ void widen2(unsigned int word, float *v) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(v[0]), "=f"(v[1])
        : "r"(word));
}
static __device__ __forceinline__ unsigned int narrow2(const float *v) {
    unsigned int word;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(v[1]), "f"(v[0]));
#else
    asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}"
        : "=r"(word)
        : "f"(v[0]), "f"(v[1]));
#endif
    return word;
}
#elif PRECISION == 4
#define VC 8
typedef uint4 pack;
static __device__ __forceinline__ void widen2(unsigned int word, float *v) {
    v[0] = __uint_as_float(word << 16), v[1] = __uint_as_float(word & 0xffff0000u);
}
static __device__ __forceinline__ unsigned int narrow2(const float *v) {
    return rounded(v[0], 16) >> 16 | (rounded(v[1], 16) & 0xffff0000u);
}
#else
#error "no storage of this precision here"
#endif
