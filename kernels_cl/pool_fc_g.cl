/* pool_fc_g: global average pool and the fully connected layer behind it. A group averages IMAGES
 * images, all of their channels, into local memory, then makes OUTPUTS outputs of each: LANES
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
    (fabs((s)*inverse) <= 3.4e38f ? fma(fma(-((s)*inverse), count, (s)), inverse, (s)*inverse)     \
                                  : (s)*inverse)

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
pool_fc_g(__global const float4 *restrict in, __global const float4 *restrict weights,
          __global const float *restrict bias, __global float *restrict out, const int n) {
    __local float4 mean[PARTS * IMAGES * QUADS]; /* sums of the parts first */
    __local float sums[IMAGES * GROUP];
    const uint tid = get_local_id(0), lane = tid % LANES, mine = tid / LANES;
    const uint k_first = get_group_id(0) * OUTPUTS;
    const float inverse = 1.0f / (H * W), count = (float)(H * W);
    for (ulong first = (ulong)get_group_id(1) * IMAGES; first < (ulong)n;
         first += (ulong)get_num_groups(1) * IMAGES) {
        float4 w[HELD]; /* the first ones are on their way while the pixels are summed */
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            const uint k = k_first + mine < KS ? k_first + mine : KS - 1;
            w[i] = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
            if (lane + i * LANES < QUADS) w[i] = weights[k * QUADS + lane + i * LANES];
        }
        for (uint e = tid; e < PARTS * IMAGES * QUADS; e += GROUP) {
            const uint quad = e % QUADS, image = e / QUADS % IMAGES;
            const uint part = e / (QUADS * IMAGES);
            const ulong at = first + image < (ulong)n ? first + image : first;
            __global const float4 *from = in + at * (H * W * QUADS) + quad;
            float4 sum = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 8
            for (uint i = part; i < H * W; i += PARTS) {
                const float4 v = from[i * QUADS];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
            mean[e] = sum;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = tid; e < IMAGES * QUADS; e += GROUP) {
            float4 sum = mean[e];
#pragma unroll
            for (int part = 1; part < PARTS; part++) {
                const float4 v = mean[e + part * (IMAGES * QUADS)];
                sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
            }
            mean[e] = (float4)(MEAN(sum.x), MEAN(sum.y), MEAN(sum.z), MEAN(sum.w));
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint done = 0; done < OUTPUTS; done += AT_ONCE) {
            const uint k = k_first + done + mine;
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
                    sum[m] = fma(v.x, w[i].x, sum[m]);
                    sum[m] = fma(v.y, w[i].y, sum[m]);
                    sum[m] = fma(v.z, w[i].z, sum[m]);
                    sum[m] = fma(v.w, w[i].w, sum[m]);
                }
            }
#pragma unroll
            for (int m = 0; m < IMAGES; m++)
                sums[m * GROUP + tid] = sum[m];
            if (done + AT_ONCE < OUTPUTS) {
                const uint next = k + AT_ONCE < KS ? k + AT_ONCE : KS - 1;
#pragma unroll
                for (int i = 0; i < HELD; i++)
                    if (lane + i * LANES < QUADS) w[i] = weights[next * QUADS + lane + i * LANES];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
            for (uint step = LANES / 2; step > 0; step /= 2) {
                if (lane < step) {
#pragma unroll
                    for (int m = 0; m < IMAGES; m++)
                        sums[m * GROUP + tid] += sums[m * GROUP + tid + step];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (lane == 0 && k < KS) {
#pragma unroll
                for (int m = 0; m < IMAGES; m++)
                    if (first + m < (ulong)n)
                        out[(first + m) * KS + k] = sums[m * GROUP + tid] + bias[k];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
