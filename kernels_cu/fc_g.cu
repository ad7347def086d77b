/* fc_g: fully connected layer for few images. LANES neighbours share an output: each takes every
 * LANES-th quad of its weights and multiplies it with IMAGES images, then the lanes' sums are added
 * in a fixed tree. Weights are [KS][CS] with zeros in the padding, so K..KS-1 come out zero.
 * Group: LANES * OUTPUTS. Grid: x = ceil(KS / OUTPUTS); y walks over blocks of IMAGES images. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 4 */
#endif
#ifndef K
#define K 64 /* outputs */
#endif
#ifndef KS
#define KS 64 /* output stride, >= K */
#endif
#ifndef LANES
#define LANES 32 /* work on one output side by side, a power of two */
#endif
#ifndef OUTPUTS
#define OUTPUTS 4 /* outputs of a group */
#endif
#ifndef IMAGES
#define IMAGES 1 /* images that share one pass over the weights */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Four stored elements: float, float rounded to tf32, half, bfloat16. */
#if PRECISION == 0 || PRECISION == 2
typedef float4 stored4;
#define LOAD4(p, i) ((p)[i])
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
#elif PRECISION == 4
typedef ushort4 stored4;
static __device__ float widened(unsigned short h) {
    return __uint_as_float((unsigned int)h << 16);
}
static __device__ float4 from_stored4(stored4 q) {
    return make_float4(widened(q.x), widened(q.y), widened(q.z), widened(q.w));
}
#define LOAD4(p, i) from_stored4((p)[i])
#else
#error "no storage of this precision here"
#endif

#define QUADS (CS / 4)

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(LANES *OUTPUTS)
    fc_g(const stored4 *__restrict__ in, const stored4 *__restrict__ weights,
         const float *__restrict__ bias, float *__restrict__ out, const int n) {
    WAIT_FOR_EARLIER();
    __shared__ float sums[IMAGES * LANES * OUTPUTS];
    const unsigned int tid = threadIdx.x, lane = tid % LANES;
    const unsigned int k = blockIdx.x * OUTPUTS + tid / LANES;
    const unsigned int from_k = k < KS ? k : KS - 1; /* surplus lanes read something valid */
    for (unsigned long long first = (unsigned long long)blockIdx.y * IMAGES;
         first < (unsigned long long)n; first += (unsigned long long)gridDim.y * IMAGES) {
        float sum[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            sum[i] = 0.0f;
        for (unsigned int c = lane; c < QUADS; c += LANES) {
            const float4 w = LOAD4(weights, (unsigned long long)from_k * QUADS + c);
#pragma unroll
            for (int i = 0; i < IMAGES; i++) {
                const unsigned long long image =
                    first + i < (unsigned long long)n ? first + i : first;
                const float4 v = LOAD4(in, image * QUADS + c);
                sum[i] = fmaf(v.x, w.x, sum[i]);
                sum[i] = fmaf(v.y, w.y, sum[i]);
                sum[i] = fmaf(v.z, w.z, sum[i]);
                sum[i] = fmaf(v.w, w.w, sum[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            sums[i * (LANES * OUTPUTS) + tid] = sum[i];
        __syncthreads();
#pragma unroll
        for (unsigned int step = LANES / 2; step > 0; step /= 2) {
            if (lane < step) {
#pragma unroll
                for (int i = 0; i < IMAGES; i++)
                    sums[i * (LANES * OUTPUTS) + tid] += sums[i * (LANES * OUTPUTS) + tid + step];
            }
            __syncthreads();
        }
        if (lane == 0 && k < KS) {
#pragma unroll
            for (int i = 0; i < IMAGES; i++)
                if (first + i < (unsigned long long)n)
                    out[(first + i) * KS + k] = sums[i * (LANES * OUTPUTS) + tid] + bias[k];
        }
        __syncthreads();
    }
}
