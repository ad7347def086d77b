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
typedef ushort4 stored4; /* halves need an extension as vectors, not as pointers */
#define LOAD4(p, i) vload_half4(i, (__global const half *)(p))
#elif PRECISION == 4
typedef ushort4 stored4;
#define LOAD4(p, i) as_float4(convert_uint4((p)[i]) << 16)
#else
#error "no storage of this precision here"
#endif

#define QUADS (CS / 4)

__kernel __attribute__((reqd_work_group_size(LANES * OUTPUTS, 1, 1))) void
fc_g(__global const stored4 *restrict in, __global const stored4 *restrict weights,
     __global const float *restrict bias, __global float *restrict out, const int n) {
    __local float sums[IMAGES * LANES * OUTPUTS];
    const uint tid = get_local_id(0), lane = tid % LANES;
    const uint k = get_group_id(0) * OUTPUTS + tid / LANES;
    const uint from_k = k < KS ? k : KS - 1; /* surplus lanes read something valid */
    for (ulong first = (ulong)get_group_id(1) * IMAGES; first < (ulong)n;
         first += (ulong)get_num_groups(1) * IMAGES) {
        float sum[IMAGES];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            sum[i] = 0.0f;
        for (uint c = lane; c < QUADS; c += LANES) {
            const float4 w = LOAD4(weights, (ulong)from_k * QUADS + c);
#pragma unroll
            for (int i = 0; i < IMAGES; i++) {
                const ulong image = first + i < (ulong)n ? first + i : first;
                const float4 v = LOAD4(in, image * QUADS + c);
                sum[i] = fma(v.x, w.x, sum[i]);
                sum[i] = fma(v.y, w.y, sum[i]);
                sum[i] = fma(v.z, w.z, sum[i]);
                sum[i] = fma(v.w, w.w, sum[i]);
            }
        }
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
            sums[i * (LANES * OUTPUTS) + tid] = sum[i];
        barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
        for (uint step = LANES / 2; step > 0; step /= 2) {
            if (lane < step) {
#pragma unroll
                for (int i = 0; i < IMAGES; i++)
                    sums[i * (LANES * OUTPUTS) + tid] += sums[i * (LANES * OUTPUTS) + tid + step];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0 && k < KS) {
#pragma unroll
            for (int i = 0; i < IMAGES; i++)
                if (first + i < (ulong)n)
                    out[(first + i) * KS + k] = sums[i * (LANES * OUTPUTS) + tid] + bias[k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
