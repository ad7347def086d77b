/* The smooth activations of fp32 sums. */
/* Within a few units in the last place of fp32. The reciprocal of what is beyond 2^126 may be zero. */
static __device__ __forceinline__ float sigmoid(float v) {
    float e;
#if PRECISION == 0
    e = expf(-v);
#else
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v * -1.44269504f));
#endif
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(1.0f + e));
    return e;
}
#define SILU(v) ((v)*sigmoid(v))
#define SIGMOID(v) sigmoid(v)
