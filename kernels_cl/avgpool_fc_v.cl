/* Global average pool and the fully connected layer behind it, for few images, CPUs: explicit vectors
 * over output channels. Each work-item computes the means of all channels for itself, which is little
 * beside its share of the weights, then BLOCKS vectors of outputs for up to IMAGES images.
 * Weights are [K/(BLOCKS*V)][C][BLOCKS][V], padded with zeros. Padding channels K..KS-1 are written
 * as zero, channels from KS on are not written. */
#ifndef C
#define C 4 /* input channels */
#endif
#ifndef CS
#define CS 4 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 5 /* output channels */
#endif
#ifndef KS
#define KS 8 /* output channel stride, >= K */
#endif
#ifndef V
#define V 4 /* floats in a vector: 4, 8 or 16; divides C */
#endif
#ifndef BLOCKS
#define BLOCKS 2 /* vectors of output channels in a work-item */
#endif
#ifndef IMAGES
#define IMAGES 4 /* images in a work-item */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#if V == 16
typedef float16 vec;
#define LOAD vload16
#define STORE vstore16
#elif V == 8
typedef float8 vec;
#define LOAD vload8
#define STORE vstore8
#else
typedef float4 vec;
#define LOAD vload4
#define STORE vstore4
#endif

/* Sums for `count` images; a constant count leaves no branch in the loop. */
__attribute__((always_inline)) static void
dot(vec acc[IMAGES][BLOCKS], const float *x, __global const float *w, const int count) {
    for (int c = 0; c < C; c++) {
        vec weight[BLOCKS];
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            weight[b] = LOAD(c * BLOCKS + b, w);
#pragma unroll
        for (int i = 0; i < IMAGES; i++) {
            if (i >= count) continue;
            const vec value = (vec)(x[i * C + c]);
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                acc[i][b] = fma(value, weight[b], acc[i][b]);
        }
    }
}

/* The means of one image's channels. */
static void average(__global const float *x, float *mean) {
    const vec count = (vec)((float)(H * W));
    const vec inverse = (vec)(1.0f / (H * W));
    for (int c = 0; c < C; c += V) {
        vec sum = (vec)(0.0f);
        for (int i = 0; i < H * W; i++)
            sum += LOAD(0, x + i * CS + c);
        /* A division that is correctly rounded on every device: OpenCL's own may be 2.5 ulp off. */
        const vec quotient = sum * inverse;
        const vec divided = fma(fma(-quotient, count, sum), inverse, quotient);
        /* Infinity and NaN stay as they are. */
        STORE(fabs(quotient) <= (vec)(3.4e38f) ? divided : quotient, 0, mean + c);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
avgpool_fc_v(__global const float *in, __global const float *weights, __global const float *bias,
             __global float *out, const int n) {
    const int block = (int)get_group_id(0);
    weights += (long)block * (C * BLOCKS * V);
    float mean[IMAGES * C];
    for (int image = (int)get_group_id(1) * IMAGES; image < n;
         image += (int)get_num_groups(1) * IMAGES) {
        const int count = min(IMAGES, n - image);
        vec acc[IMAGES][BLOCKS];
#pragma unroll
        for (int i = 0; i < IMAGES; i++)
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                acc[i][b] = (vec)(0.0f);
        for (int i = 0; i < count; i++)
            average(in + (long)(image + i) * (H * W * CS), mean + i * C);
        if (count == IMAGES)
            dot(acc, mean, weights, IMAGES);
        else
            dot(acc, mean, weights, count);
#pragma unroll
        for (int i = 0; i < IMAGES; i++) {
            if (i >= count) continue;
#pragma unroll
            for (int b = 0; b < BLOCKS; b++) {
                const int k = (block * BLOCKS + b) * V;
                __global float *y = out + (long)(image + i) * KS + k;
                if (k + V <= K) {
                    STORE(acc[i][b] + LOAD(0, bias + k), 0, y);
                } else {
                    float lanes[V];
                    STORE(acc[i][b], 0, lanes);
                    for (int l = 0; l < V && k + l < KS; l++)
                        y[l] = k + l < K ? lanes[l] + bias[k + l] : 0.0f;
                }
            }
        }
    }
}
