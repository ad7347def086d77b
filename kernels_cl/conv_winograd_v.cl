/* Convolution 3x3, stride 1, by Winograd's F(2x2, 3x3) for CPUs, with bias, residual and ReLU: 16
 * multiplications where the direct form needs 36. Integers of moderate size come out exact, because
 * the transforms add, subtract and halve only. A NaN spreads to the whole 2x2 tile.
 *
 * One work-item takes TILES tiles of one image and GROUPS * BLOCKS vectors of output channels. Slice
 * by slice of the input channels it transforms the 4x4 input patches into private memory (which stays
 * in cache) and multiplies: for each of the 16 points a small matrix product with the sums in
 * registers. Then it transforms back. No local memory, no barriers.
 * Weights are transformed when packed: [K/(BLOCKS*V)][16][C][BLOCKS][V], padded with zeros. */
#ifndef C
#define C 16 /* input channels */
#endif
#ifndef CS
#define CS 16 /* input channel stride, >= C */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 16 /* output channels */
#endif
#ifndef KS
#define KS 16 /* output channel stride, >= K */
#endif
#ifndef P
#define P 8 /* output height */
#endif
#ifndef Q
#define Q 8 /* output width */
#endif
#ifndef R
#define R 3 /* window height; always 3 */
#endif
#ifndef S
#define S 3 /* window width; always 3 */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window; always 1 */
#endif
#ifndef PAD
#define PAD 1 /* border on every side */
#endif
#ifndef V
#define V 16 /* floats in a vector: 4, 8 or 16; divides C and K */
#endif
#ifndef TILES
#define TILES 14 /* 2x2 output tiles in a work-item */
#endif
#ifndef BLOCKS
#define BLOCKS 2 /* vectors of output channels in one product */
#endif
#ifndef GROUPS
#define GROUPS 1 /* such products a work-item makes from one transformed input */
#endif
#ifndef SLICE
#define SLICE 16 /* input channels transformed at a time; divides C, multiple of V */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#if R != 3 || S != 3 || STRIDE != 1 || C % SLICE != 0 || SLICE % V != 0 || K % V != 0
#error "a shape this kernel was not made for"
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

#define POINTS 16
#define TILES_X ((Q + 1) / 2)
#define TILES_ALL (TILES_X * ((P + 1) / 2))
#define STEP (BLOCKS * V)

/* patch = B^T patch B, in place */
__attribute__((always_inline)) static void transform_input(vec patch[POINTS]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const vec a = patch[i], b = patch[4 + i], c = patch[8 + i], d = patch[12 + i];
        patch[i] = a - c;
        patch[4 + i] = b + c;
        patch[8 + i] = c - b;
        patch[12 + i] = b - d;
    }
#pragma unroll
    for (int i = 0; i < POINTS; i += 4) {
        const vec a = patch[i], b = patch[i + 1], c = patch[i + 2], d = patch[i + 3];
        patch[i] = a - c;
        patch[i + 1] = b + c;
        patch[i + 2] = c - b;
        patch[i + 3] = b - d;
    }
}

/* The input patches of all tiles, channels c..c+SLICE-1, to [POINTS][TILES][SLICE]. */
static void gather(__global const float *x, float *to, const int first, const int c) {
    for (int t = 0; t < TILES; t++) {
        const int tile = min(first + t, TILES_ALL - 1); /* surplus tiles are not stored */
        const int h0 = tile / TILES_X * 2 - PAD, w0 = tile % TILES_X * 2 - PAD;
        for (int i = 0; i < SLICE; i += V) {
            vec patch[POINTS];
#pragma unroll
            for (int p = 0; p < POINTS; p++) {
                const int h = h0 + p / 4, w = w0 + p % 4;
                patch[p] = h >= 0 && h < H && w >= 0 && w < W
                               ? LOAD(0, x + (h * W + w) * CS + c + i)
                               : (vec)(0.0f);
            }
            transform_input(patch);
#pragma unroll
            for (int p = 0; p < POINTS; p++)
                STORE(patch[p], 0, to + (p * TILES + t) * SLICE + i);
        }
    }
}

/* sums[TILES][BLOCKS] += x[TILES][SLICE] * w[SLICE][BLOCKS] */
static void multiply(vec *sums, const float *x, __global const float *w) {
    vec acc[TILES][BLOCKS];
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            acc[t][b] = sums[t * BLOCKS + b];
#pragma unroll 1
    for (int c = 0; c < SLICE; c++) {
        vec weight[BLOCKS];
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            weight[b] = LOAD(c * BLOCKS + b, w);
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const vec value = (vec)(x[t * SLICE + c]);
#pragma unroll
            for (int b = 0; b < BLOCKS; b++)
                acc[t][b] = fma(value, weight[b], acc[t][b]);
        }
    }
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int b = 0; b < BLOCKS; b++)
            sums[t * BLOCKS + b] = acc[t][b];
}

/* A^T sums A for one tile and one vector, bias, residual, ReLU, store. */
static void finish(const vec *sums, const int tile, const int k, const long image,
                   __global const float *bias, __global const float *residual, __global float *out,
                   const int flags) {
    const int p0 = tile / TILES_X * 2, q0 = tile % TILES_X * 2;
    const vec add = LOAD(0, bias + k);
    vec rows[8];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const vec b = sums[(4 + i) * TILES * BLOCKS], c = sums[(8 + i) * TILES * BLOCKS];
        rows[i] = sums[i * TILES * BLOCKS] + b + c;
        rows[4 + i] = b - c - sums[(12 + i) * TILES * BLOCKS];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int p = p0 + i / 2, q = q0 + i % 2, row = i / 2 * 4;
        if (p >= P || q >= Q) continue;
        vec value = i % 2 ? rows[row + 1] - rows[row + 2] - rows[row + 3]
                          : rows[row] + rows[row + 1] + rows[row + 2];
        const long at = ((image * P + p) * Q + q) * KS + k;
        value += add;
        if (flags & 2) value += LOAD(0, residual + at);
        /* Written so that NaN stays NaN. */
        if (flags & 1) value = value < (vec)(0.0f) ? (vec)(0.0f) : value;
        STORE(value, 0, out + at);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv_winograd_v(__global const float *in, __global const float *weights,
                __global const float *bias, __global const float *residual, __global float *out,
                const int n, const int flags) {
    const int first = (int)get_group_id(0) * TILES;
    const int group = (int)get_group_id(2) * GROUPS;
    const int groups = min(GROUPS, (K + STEP - 1) / STEP - group);
    float x[POINTS * TILES * SLICE];
    vec sums[GROUPS * POINTS * TILES * BLOCKS];

    for (int image = (int)get_group_id(1); image < n; image += (int)get_num_groups(1)) {
        for (int i = 0; i < GROUPS * POINTS * TILES * BLOCKS; i++)
            sums[i] = (vec)(0.0f);
        for (int c = 0; c < C; c += SLICE) {
            gather(in + (long)image * (H * W * CS), x, first, c);
            for (int g = 0; g < groups; g++)
                for (int p = 0; p < POINTS; p++)
                    multiply(sums + (g * POINTS + p) * (TILES * BLOCKS), x + p * (TILES * SLICE),
                             weights + (((long)(group + g) * POINTS + p) * C + c) * STEP);
        }
        for (int g = 0; g < groups; g++)
            for (int t = 0; t < TILES && first + t < TILES_ALL; t++)
                for (int b = 0; b < BLOCKS; b++) {
                    const int k = ((group + g) * BLOCKS + b) * V;
                    if (k < K)
                        finish(sums + g * (POINTS * TILES * BLOCKS) + t * BLOCKS + b, first + t, k,
                               image, bias, residual, out, flags);
                }
    }
}
