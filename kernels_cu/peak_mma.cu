/* peak_mma: nothing but matrix products in 8 independent accumulators a warp: what mma.sync can do
 * when nothing else limits it. All factors are `bits`, the pattern of two ones (one, for tf32), so
 * that every element of a result is DEPTH * n, exact, and the host can tell that the work was done.
 * out has a float a thread: the sum of one element of each accumulator.
 * Group: a multiple of 32. Grid: x. FLOPs: 2 * 16 * 8 * DEPTH * 8 * n a warp. */
#ifndef PRECISION
#define PRECISION 3 /* lap_precision: 2 tf32, 3 fp16, 4 bf16 */
#endif

#if PRECISION == 2
#define MMA_TYPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif PRECISION == 3
#define MMA_TYPE "m16n8k16.row.col.f32.f16.f16.f32"
#elif PRECISION == 4
#define MMA_TYPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#error "only tf32, fp16 and bf16 have these matrix instructions"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "needs the matrix instructions of compute capability 8.0"
#endif

#define MMA(c)                                                                                     \
    asm volatile("mma.sync.aligned." MMA_TYPE                                                  \
                     " {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"            \
                     : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w)                                  \
                     : "r"(ones))

extern "C" __global__ void peak_mma(float *out, const int bits, const int n) {
    const unsigned int ones = (unsigned int)bits;
    const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float4 a = zero, b = zero, c = zero, d = zero, e = zero, f = zero, g = zero, h = zero;
    for (int t = 0; t < n; t++) {
        MMA(a); MMA(b); MMA(c); MMA(d); MMA(e); MMA(f); MMA(g); MMA(h);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a.x + b.y + c.z + d.w + e.x + f.y + g.z + h.w;
}
