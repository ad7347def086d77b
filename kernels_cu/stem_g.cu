/* stem_g: convolution of an image of few channels, with the 3x3/2 max-pool behind it; the
 * convolution's output is never stored. A group makes CT * TN channels of a strip of columns of a
 * band of pooled rows. It walks down the convolution's rows; a thread computes TM neighbouring
 * columns of TN channels, so that a row of the window in registers serves S * TM * TN products.
 * Input rows lie in a ring in shared memory, a plane a channel; weights are read through the cache.
 * Maxima are taken along the row first, with one column from the neighbour, then downwards.
 * Weights are [R][C][S][KPAD], KPAD = KS rounded up to CT * TN, zeros in the padding.
 * Group: XT * CT, channels fastest. Grid: x = channel blocks * bands * strips, channel blocks
 * fastest; y walks over the images.
 * Must not: be given a pool other than 3x3, step 2, border 1, nor a residual. */
#ifndef C
#define C 3 /* input channels, at most CS */
#endif
#ifndef CS
#define CS 4 /* input channel stride: 4 */
#endif
#ifndef H
#define H 32 /* input height */
#endif
#ifndef W
#define W 32 /* input width */
#endif
#ifndef K
#define K 64 /* output channels */
#endif
#ifndef KS
#define KS 64 /* output channel stride, >= K, a multiple of 4 */
#endif
#ifndef P
#define P 16 /* the convolution's output height */
#endif
#ifndef Q
#define Q 16 /* the convolution's output width */
#endif
#ifndef R
#define R 7 /* window height, at least STRIDE */
#endif
#ifndef S
#define S 7 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 2 /* step of the window in both directions */
#endif
#ifndef PAD
#define PAD 3 /* border of zeros in both directions */
#endif
#ifndef POOL_P
#define POOL_P 8 /* output height */
#endif
#ifndef POOL_Q
#define POOL_Q 8 /* output width */
#endif
#ifndef TM
#define TM 8 /* columns of a thread, even; times STRIDE a multiple of 4 */
#endif
#ifndef TN
#define TN 4 /* channels of a thread: 4 or 8 */
#endif
#ifndef XT
#define XT 14 /* threads along the row */
#endif
#ifndef CT
#define CT 16 /* threads along the channels */
#endif
#ifndef BAND
#define BAND 7 /* pooled rows of a group */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif

#define THREADS (XT * CT)
#define CHANNELS (CT * TN)
#define BLOCKS ((KS + CHANNELS - 1) / CHANNELS)
#define KPAD (BLOCKS * CHANNELS)
#define BANDS ((POOL_P + BAND - 1) / BAND)
/* The first pooled column of a strip lacks its left neighbour, except in the first strip. */
#define STEP (XT * TM / 2 - 1)
#define USED ((XT * TM - 1) * STRIDE + S) /* input columns of a strip */
#define HELD ((TM - 1) * STRIDE + S)      /* input columns of a thread */
#define QUADS ((HELD + 3) / 4)
#define PITCH (((XT - 1) * TM * STRIDE + QUADS * 4 + 3) / 4 * 4)
#define ROWS_FLOATS (R * C * PITCH)
#define REGISTERS (TM * TN <= 32 ? 128 : 168)
#define WARPS ((THREADS + 127) / 128 * 4) /* every quarter of a multiprocessor takes its share */
#define RESIDENT (65536 / (REGISTERS * WARPS * 32) < 1 ? 1 : 65536 / (REGISTERS * WARPS * 32))
#define FLAG_RELU 1
#define LOWEST __int_as_float(0xff800000)
#define LARGER(best, v) ((v) > (best) || (v) != (v) ? (v) : (best))

typedef unsigned int u32;
typedef unsigned long long u64;

/* Rows `first` and the count - 1 below it, relative to input row top, into the ring. */
static __device__ __forceinline__ void fetch(const float4 *image, float *ring, int top, int left,
                                             u32 first, u32 count) {
    for (u32 i = threadIdx.x; i < count * USED; i += THREADS) {
        const u32 row = first + i / USED, x = i % USED;
        const int iy = top + (int)row, ix = left + (int)x;
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if ((u32)iy < H && (u32)ix < W) v = image[iy * W + ix];
        float *to = ring + row % R * (C * PITCH) + x;
        to[0] = v.x;
#if C > 1
        to[PITCH] = v.y;
#endif
#if C > 2
        to[2 * PITCH] = v.z;
#endif
#if C > 3
        to[3 * PITCH] = v.w;
#endif
    }
}

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    stem_g(const float *__restrict__ in, const float *__restrict__ weights,
           const float *__restrict__ bias, float *__restrict__ out, const int n, const int flags) {
    WAIT_FOR_EARLIER();
    __shared__ __align__(16) float ring[ROWS_FLOATS];
    __shared__ __align__(16) float edge[XT * CHANNELS];
    const u32 ct = threadIdx.x % CT, xt = threadIdx.x / CT;
    const u32 block = blockIdx.x % BLOCKS, rest = blockIdx.x / BLOCKS;
    const u32 band = rest % BANDS, strip = rest / BANDS;
    const u32 k0 = block * CHANNELS + ct * 4; /* quads of channels are CT * 4 apart */
    const int p0 = (int)(band * BAND);
    const int p_end = p0 + BAND < POOL_P ? p0 + BAND : POOL_P;
    const int y_first = p0 > 0 ? 2 * p0 - 1 : 0;
    const int y_end = 2 * p_end < P ? 2 * p_end : P;
    const int q0 = (int)(strip * STEP + xt * (TM / 2)); /* first pooled column of the thread */
    const int top = y_first * STRIDE - PAD;
    const int left = (int)(strip * STEP * 2) * STRIDE - PAD;
    const float *w_base = weights + k0;

    for (u32 image = blockIdx.y; image < (u32)n; image += gridDim.y) {
        const float4 *from = (const float4 *)in + (u64)image * (H * W);
        float most[TM / 2][TN]; /* of the rows seen that belong to the next output */
#pragma unroll
        for (int i = 0; i < TM / 2; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                most[i][j] = LOWEST;
        fetch(from, ring, top, left, 0, R);
        __syncthreads();
        for (int y = y_first; y < y_end; y++) {
            const u32 head = (u32)(y - y_first) * STRIDE;
            float acc[TM][TN];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    acc[i][j] = 0.0f;
#pragma unroll 1
            for (u32 r = 0; r < R; r++) {
                const float *row = ring + (head + r) % R * (C * PITCH) + xt * (TM * STRIDE);
                const float *w = w_base + r * (C * S * KPAD);
#if TM * TN <= 16 /* few sums: put work between a load and its use */
#pragma unroll
#else
#pragma unroll 1
#endif
                for (int c = 0; c < C; c++) {
                    float x[QUADS * 4];
#pragma unroll
                    for (int i = 0; i < QUADS; i++) {
                        const float4 v = *(const float4 *)(row + c * PITCH + i * 4);
                        x[i * 4] = v.x, x[i * 4 + 1] = v.y;
                        x[i * 4 + 2] = v.z, x[i * 4 + 3] = v.w;
                    }
#pragma unroll
                    for (int s = 0; s < S; s++) {
                        float f[TN];
#pragma unroll
                        for (int j = 0; j < TN; j += 4) {
                            const float4 v = *(const float4 *)(w + (c * S + s) * KPAD + j * CT);
                            f[j] = v.x, f[j + 1] = v.y, f[j + 2] = v.z, f[j + 3] = v.w;
                        }
#pragma unroll
                        for (int i = 0; i < TM; i++)
#pragma unroll
                            for (int j = 0; j < TN; j++)
                                acc[i][j] = fmaf(x[i * STRIDE + s], f[j], acc[i][j]);
                    }
                }
            }
            float before[TN]; /* the column to the left */
#pragma unroll
            for (int j = 0; j < TN; j++)
                edge[xt * CHANNELS + j * CT + ct] = acc[TM - 1][j];
            __syncthreads();
#pragma unroll
            for (int j = 0; j < TN; j++)
                before[j] = xt > 0 ? edge[(xt - 1) * CHANNELS + j * CT + ct] : LOWEST;
            if (y + 1 < y_end) fetch(from, ring, top, left, head + R, STRIDE);
            const bool emit = y % 2 == 1 || y + 1 == P; /* the last row that an output sees */
            const int p = y / 2;
#pragma unroll
            for (int i = 0; i < TM / 2; i++) {
                const int q = q0 + i;
                const bool wanted =
                    emit && p >= p0 && q < POOL_Q && (i > 0 || xt > 0 || strip == 0);
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    float o[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        float h = i > 0 ? acc[i > 0 ? 2 * i - 1 : 0][j + e] : before[j + e];
                        h = LARGER(h, acc[2 * i][j + e]);
                        if (Q % 2 == 0 || 2 * q + 1 < Q) h = LARGER(h, acc[2 * i + 1][j + e]);
                        o[e] = LARGER(most[i][j + e], h);
                        most[i][j + e] = y % 2 == 1 ? h : o[e];
                    }
                    const u32 k = k0 + j * CT;
                    if (!wanted || k >= KS) continue;
                    const float4 add = *(const float4 *)(bias + k);
                    o[0] += add.x, o[1] += add.y, o[2] += add.z, o[3] += add.w;
                    if (flags & FLAG_RELU) {
                        o[0] = o[0] < 0.0f ? 0.0f : o[0], o[1] = o[1] < 0.0f ? 0.0f : o[1];
                        o[2] = o[2] < 0.0f ? 0.0f : o[2], o[3] = o[3] < 0.0f ? 0.0f : o[3];
                    }
                    *(float4 *)(out + (((u64)image * POOL_P + p) * POOL_Q + q) * KS + k) =
                        make_float4(o[0], o[1], o[2], o[3]);
                }
            }
            __syncthreads();
        }
    }
}
