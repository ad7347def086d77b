/* Convolution 3x3, stride 1, by Winograd's F(M x M, 3x3) for CPUs, with bias, residual and ReLU: 16
 * multiplications where the direct form needs 36 (M = 2), or 36 where it needs 144 (M = 4). With M = 2
 * integers of moderate size come out exact, because the transforms add, subtract and halve only; with
 * M = 4 (points 0, +-sqrt(1/2), +-sqrt(2), infinity: of all choices one that rounds least) they do
 * not. A NaN spreads to its whole tile.
 *
 * One work-item takes TILES tiles, of several images where one ends, and GROUPS * BLOCKS vectors of
 * output channels. Slice by slice of the input channels it transforms the input patches into private
 * memory (which stays in cache) and multiplies: for each point a small matrix product with the sums in
 * registers. Then it transforms back. No local memory, no barriers.
 * Weights are transformed when packed: [K/(BLOCKS*V)][POINTS][C][BLOCKS][V], padded with zeros.
 *
 * With C2 the residual is not read but computed: a 1x1 convolution of in2, its weights behind the
 * others as [K/V][C2][V], its bias added to bias. */
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
#ifndef C2
#define C2 0 /* input channels of the 1x1 convolution; 0: there is none */
#endif
#ifndef CS2
#define CS2 0 /* their stride, >= C2 */
#endif
#ifndef H2
#define H2 0 /* height of in2 */
#endif
#ifndef W2
#define W2 0 /* width of in2 */
#endif
#ifndef STRIDE2
#define STRIDE2 1 /* step on in2 */
#endif
#ifndef M
#define M 2 /* edge of an output tile: 2 or 4 */
#endif
#ifndef V
#define V 16 /* floats in a vector: 4, 8 or 16; divides C and K */
#endif
#ifndef TILES
#define TILES 14 /* output tiles in a work-item */
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

#if R != 3 || S != 3 || STRIDE != 1 || C % SLICE != 0 || SLICE % V != 0 || K % V != 0 || (M != 2 && M != 4)
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

#define EDGE (M + 2) /* of a patch */
#define POINTS (EDGE * EDGE)
#define TILES_X ((Q + M - 1) / M)
#define TILES_ALL (TILES_X * ((P + M - 1) / M))
#define STEP (BLOCKS * V)
#define STEPS ((K + STEP - 1) / STEP)

#if M == 4
#define ROOT_HALF 0.70710678118654752f
#define ROOT_TWO 1.41421356237309505f
#endif

/* B^T x for EDGE values that lie `by` apart, in place */
__attribute__((always_inline)) static void transform_in(vec *x, const int by) {
#if M == 2
    const vec a = x[0], b = x[by], c = x[2 * by], d = x[3 * by];
    x[0] = a - c;
    x[by] = b + c;
    x[2 * by] = c - b;
    x[3 * by] = b - d;
#else
    const vec a = x[0], b = x[by], c = x[2 * by], d = x[3 * by], e = x[4 * by], f = x[5 * by];
    const vec even = fma(c, (vec)(-2.0f), e), odd = fma(b, (vec)(-2.0f), d);
    const vec even2 = fma(c, (vec)(-0.5f), e), odd2 = fma(b, (vec)(-0.5f), d);
    x[0] = fma(c, (vec)(-2.5f), a + e);
    x[by] = fma(odd, (vec)(ROOT_HALF), even);
    x[2 * by] = fma(odd, (vec)(-ROOT_HALF), even);
    x[3 * by] = fma(odd2, (vec)(ROOT_TWO), even2);
    x[4 * by] = fma(odd2, (vec)(-ROOT_TWO), even2);
    x[5 * by] = fma(d, (vec)(-2.5f), b + f);
#endif
}

/* A^T x: EDGE values `from_by` apart to M values `by` apart */
__attribute__((always_inline)) static void transform_out(const vec *x, const int from_by, vec *y,
                                                         const int by) {
    const vec sum = x[from_by] + x[2 * from_by], difference = x[from_by] - x[2 * from_by];
#if M == 2
    y[0] = x[0] + sum;
    y[by] = difference - x[3 * from_by];
#else
    const vec sum2 = x[3 * from_by] + x[4 * from_by], difference2 = x[3 * from_by] - x[4 * from_by];
    y[0] = x[0] + sum + sum2;
    y[by] = fma(difference2, (vec)(ROOT_TWO), difference * ROOT_HALF);
    y[2 * by] = fma(sum2, (vec)(2.0f), sum * 0.5f);
    y[3 * by] =
        fma(difference2, (vec)(2.0f * ROOT_TWO), fma(difference, (vec)(0.5f * ROOT_HALF), x[5 * from_by]));
#endif
}

/* The input patches of all tiles, channels c..c+SLICE-1, to [POINTS][TILES][SLICE]. */
static void gather(__global const float *in, float *to, const int first, const int last,
                   const int c) {
    for (int t = 0; t < TILES; t++) {
        const int tile = min(first + t, last); /* surplus tiles are not stored */
        const int image = tile / TILES_ALL, place = tile % TILES_ALL;
        __global const float *x = in + (long)image * (H * W * CS) + c;
        const int h0 = place / TILES_X * M - PAD, w0 = place % TILES_X * M - PAD;
        for (int i = 0; i < SLICE; i += V) {
            vec patch[POINTS];
            /* Column by column, so that a column stays in registers. */
#pragma unroll 1
            for (int column = 0; column < EDGE; column++) {
                const int w = w0 + column;
                vec line[EDGE];
#pragma unroll
                for (int row = 0; row < EDGE; row++) {
                    const int h = h0 + row;
                    line[row] = h >= 0 && h < H && w >= 0 && w < W
                                    ? LOAD(0, x + (h * W + w) * CS + i)
                                    : (vec)(0.0f);
                }
                transform_in(line, 1);
#pragma unroll
                for (int row = 0; row < EDGE; row++)
                    patch[row * EDGE + column] = line[row];
            }
#pragma unroll 1
            for (int row = 0; row < EDGE; row++) {
                vec line[EDGE];
#pragma unroll
                for (int column = 0; column < EDGE; column++)
                    line[column] = patch[row * EDGE + column];
                transform_in(line, 1);
#pragma unroll
                for (int column = 0; column < EDGE; column++)
                    STORE(line[column], 0, to + ((row * EDGE + column) * TILES + t) * SLICE + i);
            }
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

#if C2
/* The 1x1 convolution for the pixels of one tile and one vector of output channels. */
static void downsample(__global const float *in2, __global const float *w, const int p0,
                       const int q0, vec acc[M * M]) {
    __global const float *x[M * M];
#pragma unroll
    for (int i = 0; i < M * M; i++) { /* pixels beyond the edge are not stored */
        const int h = min(p0 + i / M, P - 1) * STRIDE2, w2 = min(q0 + i % M, Q - 1) * STRIDE2;
        x[i] = in2 + (h * W2 + w2) * CS2;
        acc[i] = (vec)(0.0f);
    }
#pragma unroll 1
    for (int c = 0; c < C2; c++) {
        const vec weight = LOAD(c, w);
#pragma unroll
        for (int i = 0; i < M * M; i++)
            acc[i] = fma((vec)(x[i][c]), weight, acc[i]);
    }
}
#endif

/* A^T sums A for one tile and one vector, bias, residual, ReLU, store. `residual` is in2 with C2, and
 * w2 then the weights of the 1x1 convolution for this vector. */
static void finish(const vec *sums, const int tile, const int k, __global const float *bias,
                   __global const float *residual, __global const float *w2, __global float *out,
                   const int flags) {
    const int image = tile / TILES_ALL, place = tile % TILES_ALL;
    const int p0 = place / TILES_X * M, q0 = place % TILES_X * M;
    const vec add = LOAD(0, bias + k);
    vec rows[M * EDGE], tiles[M * M];
#pragma unroll 1
    for (int i = 0; i < EDGE; i++)
        transform_out(sums + i * TILES * BLOCKS, EDGE * TILES * BLOCKS, rows + i, EDGE);
#pragma unroll 1
    for (int i = 0; i < M; i++)
        transform_out(rows + i * EDGE, 1, tiles + i * M, 1);
#if C2
    vec extra[M * M];
    downsample(residual + (long)image * (H2 * W2 * CS2), w2, p0, q0, extra);
#endif
#pragma unroll 1
    for (int i = 0; i < M * M; i++) {
        const int p = p0 + i / M, q = q0 + i % M;
        if (p >= P || q >= Q) continue;
        const long at = (((long)image * P + p) * Q + q) * KS + k;
        vec value = tiles[i] + add;
#if C2
        value += extra[i];
#else
        if (flags & 2) value += LOAD(0, residual + at);
#endif
        /* Written so that NaN stays NaN. */
        if (flags & 1) value = value < (vec)(0.0f) ? (vec)(0.0f) : value;
        STORE(value, 0, out + at);
    }
}

/* The fourth argument is the residual, or in2 with C2. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void
conv_winograd_v(__global const float *in, __global const float *weights,
                __global const float *bias, __global const float *residual, __global float *out,
                const int n, const int flags) {
    const int last = n * TILES_ALL - 1;
    const int group = (int)get_group_id(1) * GROUPS;
    const int groups = min(GROUPS, STEPS - group);
    __global const float *w2 = weights + (long)STEPS * POINTS * C * STEP;
    float x[POINTS * TILES * SLICE];
    vec sums[GROUPS * POINTS * TILES * BLOCKS];

    const int first = (int)get_group_id(0) * TILES;
    for (int i = 0; i < GROUPS * POINTS * TILES * BLOCKS; i++)
        sums[i] = (vec)(0.0f);
    for (int c = 0; c < C; c += SLICE) {
        gather(in, x, first, last, c);
        for (int g = 0; g < groups; g++)
            for (int p = 0; p < POINTS; p++)
                multiply(sums + (g * POINTS + p) * (TILES * BLOCKS), x + p * (TILES * SLICE),
                         weights + (((long)(group + g) * POINTS + p) * C + c) * STEP);
    }
    for (int g = 0; g < groups; g++)
        for (int t = 0; t < TILES && first + t <= last; t++)
            for (int b = 0; b < BLOCKS; b++) {
                const int k = ((group + g) * BLOCKS + b) * V;
                if (k < K)
                    finish(sums + g * (POINTS * TILES * BLOCKS) + t * BLOCKS + b, first + t, k, bias,
                           residual, w2 + (long)k * C2, out, flags);
            }
}
