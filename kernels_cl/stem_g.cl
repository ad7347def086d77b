/* stem_g: convolution of an image of few channels, with the 3x3/2 max-pool behind it; the
 * convolution's output is never stored. A group makes CT * TN channels of a strip of columns of a
 * band of pooled rows. It walks down the convolution's rows; a thread computes TM neighbouring
 * columns of TN channels, so that a row of the window in registers serves S * TM * TN products.
 * Input rows lie in a ring in local memory, a plane a channel; weights are read through the cache.
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
#define FLAG_RELU 1
#define LOWEST (-INFINITY)
#define LARGER(best, v) ((v) > (best) || (v) != (v) ? (v) : (best))

/* Rows `first` and the count - 1 below it, relative to input row top, into the ring. */
static void fetch(__global const float4 *image, __local float *ring, int top, int left, uint first,
                  uint count) {
    for (uint i = get_local_id(0); i < count * USED; i += THREADS) {
        const uint row = first + i / USED, x = i % USED;
        const int iy = top + (int)row, ix = left + (int)x;
        float4 v = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
        if ((uint)iy < H && (uint)ix < W) v = image[iy * W + ix];
        __local float *to = ring + row % R * (C * PITCH) + x;
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

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void
stem_g(__global const float *restrict in, __global const float *restrict weights,
       __global const float *restrict bias, __global float *restrict out, const int n,
       const int flags) {
    __local float ring[ROWS_FLOATS] __attribute__((aligned(128)));
    __local float edge[XT * CHANNELS] __attribute__((aligned(128)));
    const uint ct = get_local_id(0) % CT, xt = get_local_id(0) / CT;
    const uint block = get_group_id(0) % BLOCKS, rest = get_group_id(0) / BLOCKS;
    const uint band = rest % BANDS, strip = rest / BANDS;
    const uint k0 = block * CHANNELS + ct * 4; /* quads of channels are CT * 4 apart */
    const int p0 = (int)(band * BAND);
    const int p_end = p0 + BAND < POOL_P ? p0 + BAND : POOL_P;
    const int y_first = p0 > 0 ? 2 * p0 - 1 : 0;
    const int y_end = 2 * p_end < P ? 2 * p_end : P;
    const int q0 = (int)(strip * STEP + xt * (TM / 2)); /* first pooled column of the thread */
    const int top = y_first * STRIDE - PAD;
    const int left = (int)(strip * STEP * 2) * STRIDE - PAD;
    __global const float *w_base = weights + k0;

    for (uint image = get_group_id(1); image < (uint)n; image += get_num_groups(1)) {
        __global const float4 *from = (__global const float4 *)in + (ulong)image * (H * W);
        float most[TM / 2][TN]; /* of the rows seen that belong to the next output */
#pragma unroll
        for (int i = 0; i < TM / 2; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                most[i][j] = LOWEST;
        fetch(from, ring, top, left, 0, R);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int y = y_first; y < y_end; y++) {
            const uint head = (uint)(y - y_first) * STRIDE;
            float acc[TM][TN];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    acc[i][j] = 0.0f;
#pragma unroll 1
            for (uint r = 0; r < R; r++) {
                __local const float *row = ring + (head + r) % R * (C * PITCH) + xt * (TM * STRIDE);
                __global const float *w = w_base + r * (C * S * KPAD);
#if TM * TN <= 16 /* few sums: put work between a load and its use */
#pragma unroll
#else
#pragma unroll 1
#endif
                for (int c = 0; c < C; c++) {
                    float x[QUADS * 4];
#pragma unroll
                    for (int i = 0; i < QUADS; i++) {
                        const float4 v = *(__local const float4 *)(row + c * PITCH + i * 4);
                        x[i * 4] = v.x, x[i * 4 + 1] = v.y;
                        x[i * 4 + 2] = v.z, x[i * 4 + 3] = v.w;
                    }
#pragma unroll
                    for (int s = 0; s < S; s++) {
                        float f[TN];
#pragma unroll
                        for (int j = 0; j < TN; j += 4) {
                            const float4 v =
                                *(__global const float4 *)(w + (c * S + s) * KPAD + j * CT);
                            f[j] = v.x, f[j + 1] = v.y, f[j + 2] = v.z, f[j + 3] = v.w;
                        }
#pragma unroll
                        for (int i = 0; i < TM; i++)
#pragma unroll
                            for (int j = 0; j < TN; j++)
                                acc[i][j] = fma(x[i * STRIDE + s], f[j], acc[i][j]);
                    }
                }
            }
            float before[TN]; /* the column to the left */
#pragma unroll
            for (int j = 0; j < TN; j++)
                edge[xt * CHANNELS + j * CT + ct] = acc[TM - 1][j];
            barrier(CLK_LOCAL_MEM_FENCE);
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
                    const uint k = k0 + j * CT;
                    if (!wanted || k >= KS) continue;
                    const float4 add = *(__global const float4 *)(bias + k);
                    o[0] += add.x, o[1] += add.y, o[2] += add.z, o[3] += add.w;
                    if (flags & FLAG_RELU) {
                        o[0] = o[0] < 0.0f ? 0.0f : o[0], o[1] = o[1] < 0.0f ? 0.0f : o[1];
                        o[2] = o[2] < 0.0f ? 0.0f : o[2], o[3] = o[3] < 0.0f ? 0.0f : o[3];
                    }
                    *(__global float4 *)(out + (((ulong)image * POOL_P + p) * POOL_Q + q) * KS +
                                         k) = (float4)(o[0], o[1], o[2], o[3]);
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}
