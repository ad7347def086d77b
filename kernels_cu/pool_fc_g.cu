/* pool_fc_g: global average pool and the fully connected layer behind it. A group averages IMAGES
 * images, all of their channels, into shared memory, then makes OUTPUTS outputs of each: LANES
 * neighbours share an output, each taking every LANES-th quad of its weights, and their sums are
 * added in a fixed tree. Groups average the same images again rather than wait for each other.
 * Weights are [KS][CS] with zeros in the padding, so K..KS-1 come out zero.
 * Group: GROUP. Grid: x = ceil(KS / OUTPUTS); y walks over blocks of IMAGES images. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 4, at most 32 * LANES */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 64 /* outputs */
#endif
#ifndef KS
#define KS 64 /* output stride, >= K */
#endif
#ifndef GROUP
#define GROUP 256 /* threads of a group */
#endif
#ifndef LANES
#define LANES 32 /* work on one output side by side, a power of two */
#endif
#ifndef OUTPUTS
#define OUTPUTS 8 /* outputs of a group, a multiple of GROUP / LANES */
#endif
#ifndef IMAGES
#define IMAGES 1 /* images that share one pass over the weights */
#endif
#ifndef PARTS
#define PARTS 2 /* pixels summed side by side */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#define QUADS (CS / 4)
#define HELD ((QUADS + LANES - 1) / LANES) /* quads of weights that a thread holds */
#define AT_ONCE (GROUP / LANES)            /* outputs */
/* A division that is correctly rounded whatever the language's own is; infinity and NaN pass. */
#define MEAN(s)                                                                                    \
    (fabsf((s)*inverse) <= 3.4e38f ? fmaf(fmaf(-((s)*inverse), count, (s)), inverse, (s)*inverse)  \
                                   : (s)*inverse)

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(GROUP)
    pool_fc_g(const float4 *__restrict__ in, const float4 *__restrict__ weights,
              const float *__restrict__ bias, float *__restrict__ out, const int n) {
    WAIT_FOR_EARLIER();
    __shared__ float4 mean[PARTS * IMAGES * QUADS]; /* sums of the parts first */
    __shared__ float sums[IMAGES * GROUP];
    const unsigned int tid = threadIdx.x, lane = tid % LANES, mine = tid / LANES;
    const unsigned int k_first = blockIdx.x * OUTPUTS;
    const float inverse = 1.0f / (H * W), count = (float)(H * W);
    for (unsigned long long first = (unsigned long long)blockIdx.y * IMAGES;
         first < (unsigned long long)n; first += (unsigned long long)gridDim.y * IMAGES) {
        float4 w[HELD]; /* the first ones are on their way while the pixels are summed */
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            const unsigned int k = k_first + mine < KS ? k_first + mine : KS - 1;
            w[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (lane + i * LANES < QUADS) w[i] = weights[k * QUADS + lane + i * LANES];
        }
        for (unsigned int e = tid; e < PARTS * IMAGES * QUADS; e += GROUP) {
            const unsigned int quad = e % QUADS, image = e / QUADS % IMAGES;
            const unsigned int part = e / (QUADS * IMAGES);
            const unsigned long long at =
                first + image < (unsigned long long)n ? first + image : first;
            const float4 *from = in + at * (H * W * QUADS) + quad;
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
            for (unsigned int i = part; i < H * W; i += PARTS) {
                const float4 v = from[i * QUADS];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
            mean[e] = sum;
        }
        __syncthreads();
        for (unsigned int e = tid; e < IMAGES * QUADS; e += GROUP) {
            float4 sum = mean[e];
#pragma unroll
            for (int part = 1; part < PARTS; part++) {
                const float4 v = mean[e + part * (IMAGES * QUADS)];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
            mean[e] = make_float4(MEAN(sum.x), MEAN(sum.y), MEAN(sum.z), MEAN(sum.w));
        }
        __syncthreads();
        for (unsigned int done = 0; done < OUTPUTS; done += AT_ONCE) {
            const unsigned int k = k_first + done + mine;
            float sum[IMAGES];
#pragma unroll
            for (int m = 0; m < IMAGES; m++)
                sum[m] = 0.0f;
#pragma unroll
            for (int i = 0; i < HELD; i++) {
                if (QUADS % LANES != 0 && lane + i * LANES >= QUADS) continue;
#pragma unroll
                for (int m = 0; m < IMAGES; m++) {
                    const float4 v = mean[m * QUADS + lane + i * LANES];
                    sum[m] = fmaf(v.x, w[i].x, sum[m]);
                    sum[m] = fmaf(v.y, w[i].y, sum[m]);
                    sum[m] = fmaf(v.z, w[i].z, sum[m]);
                    sum[m] = fmaf(v.w, w[i].w, sum[m]);
                }
            }
#pragma unroll
            for (int m = 0; m < IMAGES; m++)
                sums[m * GROUP + tid] = sum[m];
            if (done + AT_ONCE < OUTPUTS) {
                const unsigned int next = k + AT_ONCE < KS ? k + AT_ONCE : KS - 1;
#pragma unroll
                for (int i = 0; i < HELD; i++)
                    if (lane + i * LANES < QUADS) w[i] = weights[next * QUADS + lane + i * LANES];
            }
            __syncthreads();
#pragma unroll
            for (unsigned int step = LANES / 2; step > 0; step /= 2) {
                if (lane < step) {
#pragma unroll
                    for (int m = 0; m < IMAGES; m++)
                        sums[m * GROUP + tid] += sums[m * GROUP + tid + step];
                }
                __syncthreads();
            }
            if (lane == 0 && k < KS) {
#pragma unroll
                for (int m = 0; m < IMAGES; m++)
                    if (first + m < (unsigned long long)n)
                        out[(first + m) * KS + k] = sums[m * GROUP + tid] + bias[k];
            }
            __syncthreads();
        }
    }
}
