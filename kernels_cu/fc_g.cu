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
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#define QUADS (CS / 4)

extern "C" __global__ void __launch_bounds__(LANES *OUTPUTS)
    fc_g(const float4 *__restrict__ in, const float4 *__restrict__ weights,
         const float *__restrict__ bias, float *__restrict__ out, const int n) {
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
            const float4 w = weights[(unsigned long long)from_k * QUADS + c];
#pragma unroll
            for (int i = 0; i < IMAGES; i++) {
                const unsigned long long image =
                    first + i < (unsigned long long)n ? first + i : first;
                const float4 v = in[image * QUADS + c];
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
