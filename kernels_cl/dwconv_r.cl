/* dwconv_r: depthwise convolution + bias [+ activation], with POOLED also the mean of every channel
 * over the output; the input's rows pass by, every one read once.
 *
 * A work-item has VC = 2 channels of TQ neighbouring columns and goes down a band of ROWS output rows. An
 * input row is part of up to LIVE output rows, whose sums are kept: it is added to all of them, and the
 * one that it is the last for is done. The loop over rows is unrolled LIVE times, so that a sum stays in
 * its register while its part in the window changes. The next row is loaded before the last one is used.
 * A group has CX times VC channels of LINES tiles side by side. Weights are [R][S][CS] in fp32, in
 * registers or with SHARED in local memory. An output's sum has the same order as in dwconv_g.
 *
 * Means: as in dwconv_g, with its scratch: a counter for every image and block of channels (a multiple
 * of 64 words in all), which must be 0 before the first launch, then the sums [n][bands][CS].
 * Group: CX * LINES work-items. Grid: x = blocks of channels * bands, blocks
 * fastest; y walks over the images. */
#ifndef C
#define C 8 /* input channels */
#endif
#ifndef CS
#define CS 8 /* input channel stride, >= C, a multiple of 4 */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 8 /* output channels */
#endif
#ifndef KS
#define KS 8 /* output channel stride, >= K */
#endif
#ifndef P
#define P 8 /* output height */
#endif
#ifndef Q
#define Q 8 /* output width */
#endif
#ifndef R
#define R 3 /* window height */
#endif
#ifndef S
#define S 3 /* window width */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window, both directions */
#endif
#ifndef PAD
#define PAD 1 /* border on every side */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the results: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef POOLED
#define POOLED 0 /* 1: means are written as well */
#endif
#ifndef CX
#define CX 8 /* work-items side by side along the channels */
#endif
#ifndef LINES
#define LINES 16 /* tiles that a group makes at a time */
#endif
#ifndef TQ
#define TQ 4 /* columns of a tile */
#endif
#ifndef ROWS
#define ROWS 8 /* output rows of a group */
#endif
#ifndef SHARED
#define SHARED 0 /* 1: weights in local memory, not in registers */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* VC stored elements: float, float rounded to tf32, half, bfloat16. */
#define VC 2
#if PRECISION == 2 || PRECISION == 4
/* Rounds off `drop` bits, to nearest, ties to even; infinity and NaN stay. */
__attribute__((always_inline)) static uint rounded(float v, int drop) {
    const uint bits = as_uint(v);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits | ((bits & 0x7fffffu) != 0 ? 0x400000u : 0);
    return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop << drop;
}
#endif
#if PRECISION == 0 || PRECISION == 2
typedef float2 pack;
#define ZERO ((float2)(0.0f))
__attribute__((always_inline)) static void widen(const pack p, float *v) {
    v[0] = p.x, v[1] = p.y;
}
#if PRECISION == 0
#define ROUND(v) (v)
#else
#define ROUND(v) as_float(rounded(v, 13))
#endif
__attribute__((always_inline)) static pack narrow(const float *v) {
    return (float2)(ROUND(v[0]), ROUND(v[1]));
}
#elif PRECISION == 3
typedef uint pack;
#define ZERO 0
/* Halves need an extension as values, not as pointers. */
__attribute__((always_inline)) static void widen(const pack word, float *v) {
    const float2 both = vload_half2(0, (const half *)&word);
    v[0] = both.x, v[1] = both.y;
}
__attribute__((always_inline)) static pack narrow(const float *v) {
    uint word;
    vstore_half2_rte((float2)(v[0], v[1]), 0, (half *)&word);
    return word;
}
#elif PRECISION == 4
typedef uint pack;
#define ZERO 0
__attribute__((always_inline)) static void widen(const pack word, float *v) {
    v[0] = as_float(word << 16), v[1] = as_float(word & 0xffff0000u);
}
__attribute__((always_inline)) static pack narrow(const float *v) {
    return rounded(v[0], 16) >> 16 | (rounded(v[1], 16) & 0xffff0000u);
}
#else
#error "no storage of this precision here"
#endif
#include "smooth.clh"

#include "dwconv.clh"
#define SPAN_W ((TQ - 1) * STRIDE + S) /* input columns under a tile */
#define LIVE ((R + STRIDE - 1) / STRIDE) /* output rows that an input row is part of */
/* Column j of them is inside the image, wherever the tile is; outside, wherever it is. */
#define INSIDE(j) ((j) >= PAD && (j) < W + PAD - (STRIPS - 1) * TQ * STRIDE)
#define OUTSIDE(j) (STRIPS == 1 && ((j) < PAD || (j) >= W + PAD))
/* Sums keep their registers where steps are unrolled; other compilers than NVIDIA's take minutes. */
#if defined(__NV_CL_C_VERSION)
#define FOR_STEPS _Pragma("unroll")
#else
#define FOR_STEPS _Pragma("unroll 1")
#endif

/* Weight s of the window's row r. Local memory is read where it is said, or the compiler would take
 * all of it into registers ahead. */
#if SHARED
#define LOAD_TAP(to, r, s)                                                                         \
    do {                                                                                           \
        const float2 two = ((volatile __local float2 *)taps)[((r)*S + (s)) * CX + lane];           \
        (to)[0] = two.x, (to)[1] = two.y;                                                          \
    } while (0)
#else
#define LOAD_TAP(to, r, s) ((to)[0] = tap[r][s][0], (to)[1] = tap[r][s][1])
#endif
/* Row i under the tile, if a sum of the band wants it; what is outside stays zero. */
#define LOAD_ROW(to, i)                                                                            \
    if (h0 + (i) >= 0 && h0 + (i) < H && (i) < (rows - 1) * STRIDE + R) {                          \
        _Pragma("unroll") for (int j = 0; j < SPAN_W; j++) {                                       \
            if (OUTSIDE(j)) continue;                                                              \
            if ((INSIDE(j)) | (w0 + j >= 0 && w0 + j < W))                                         \
                to[j] = tile[((i)*W + j) * (CS / VC)];                                             \
        }                                                                                          \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
dwconv_r(__global const pack *restrict in, __global const float *restrict weights, __global const float *restrict bias,
             __global pack *restrict out, __global pack *restrict means, __global float *scratch, const int n,
             const int flags) {
    const uint tid = get_local_id(0), lane = tid % CX, first = tid / CX;
    const uint block = get_group_id(0) % BLOCKS, band = get_group_id(0) / BLOCKS;
    const uint which = block * CX + lane; /* which VC channels */
    const int p0 = (int)(band * ROWS), rows = p0 + ROWS < P ? ROWS : P - p0;
    const int h0 = p0 * STRIDE - PAD;
    const bool used = which < CS / VC;
    float base[VC];
#pragma unroll
    for (int v = 0; v < VC; v++)
        base[v] = bias[(used ? which : 0) * VC + v];
#if SHARED
    __local float2 taps[R * S * CX];
    for (uint k = tid; k < R * S * CX; k += GROUP) {
        const uint from = block * CX + k % CX;
        taps[k] = ((__global const float2 *)weights)[k / CX * (CS / VC) + (from < CS / VC ? from : 0)];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    __global const float2 *w = (__global const float2 *)weights + (used ? which : 0);
    float tap[R][S][VC];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int s = 0; s < S; s++) {
            const float2 two = w[(r * S + s) * (CS / VC)];
            tap[r][s][0] = two.x, tap[r][s][1] = two.y;
        }
#endif
#if POOLED
    __local float sums[GROUP * VC];
#if BANDS > 1
    __local int ticket;
#endif
#endif
    for (uint image = get_group_id(1); image < (uint)n; image += get_num_groups(1)) {
        __global const pack *x = in + (ulong)image * (H * W * (CS / VC)) + which;
        __global pack *y = out + (ulong)image * (P * Q * (KS / VC)) + which;
#if POOLED
        float sum[VC];
#pragma unroll
        for (int v = 0; v < VC; v++)
            sum[v] = 0.0f;
#endif
        for (uint strip = first; used && strip < STRIPS; strip += LINES) {
            const int q = STRIPS == 1 ? 0 : (int)(strip * TQ), w0 = q * STRIDE - PAD;
            __global const pack *tile = x + (h0 * W + w0) * (CS / VC);
            __global pack *to = y + (p0 * Q + q) * (KS / VC);
            float acc[LIVE][TQ][VC];
            pack next[SPAN_W];
#pragma unroll
            for (int j = 0; j < SPAN_W; j++)
                next[j] = ZERO;
            LOAD_ROW(next, 0)
            /* Step m begins the sums of row m and ends those of row m - (LIVE - 1). */
            for (int m0 = 0; m0 < rows + LIVE - 1; m0 += LIVE)
                FOR_STEPS
                for (int u = 0; u < LIVE; u++) {
                    const int m = m0 + u;
                    if (m >= rows + LIVE - 1) continue;
#pragma unroll
                    for (int j = 0; j < TQ; j++)
#pragma unroll
                        for (int v = 0; v < VC; v++)
                            acc[u][j][v] = base[v];
                    FOR_STEPS
                    for (int d = 0; d < STRIDE; d++) {
                        const int i = m * STRIDE + d;
                        pack raw[SPAN_W];
#pragma unroll
                        for (int j = 0; j < SPAN_W; j++)
                            raw[j] = next[j];
                        LOAD_ROW(next, i + 1)
                        if (h0 + i < 0 || h0 + i >= H) continue;
                        float value[SPAN_W][VC];
#pragma unroll
                        for (int j = 0; j < SPAN_W; j++)
                            widen(raw[j], value[j]);
                        FOR_STEPS
                        for (int k = 0; k < LIVE; k++) {
                            const int r = d + k * STRIDE;
                            if (r >= R || m < k || m - k >= rows) continue;
                            float(*const into)[VC] = acc[(u - k + LIVE) % LIVE];
                            float row[S][VC];
#pragma unroll
                            for (int s = 0; s < S; s++)
                                LOAD_TAP(row[s], r, s);
#pragma unroll
                            for (int j = 0; j < SPAN_W; j++) {
                                if (OUTSIDE(j)) continue;
#pragma unroll
                                for (int s = 0; s < S; s++) {
                                    if (j < s || (j - s) % STRIDE != 0 || (j - s) / STRIDE >= TQ)
                                        continue;
#pragma unroll
                                    for (int v = 0; v < VC; v++)
                                        into[(j - s) / STRIDE][v] = fma(
                                            value[j][v], row[s][v], into[(j - s) / STRIDE][v]);
                                }
                            }
                        }
                    }
                    if (m < LIVE - 1) continue;
#pragma unroll
                    for (int j = 0; j < TQ; j++) {
                        if (Q % TQ != 0 && q + j >= Q) continue;
                        float *const result = acc[(u + 1) % LIVE][j];
#pragma unroll
                        for (int v = 0; v < VC; v++) {
#if ACT == 2
                            result[v] = SILU(result[v]);
#elif ACT == 3
                            /* Of zero it is not zero, which padding must be. */
                            result[v] = which * VC + v < K ? SIGMOID(result[v]) : 0.0f;
#else
                            /* Written so that NaN stays NaN. */
                            if ((flags & FLAG_RELU) != 0 && result[v] < 0.0f) result[v] = 0.0f;
#endif
#if POOLED
                            sum[v] += result[v];
#endif
                        }
                        to[((m - (LIVE - 1)) * Q + j) * (KS / VC)] = narrow(result);
                    }
                }
        }
#include "dwconv_means.clh"
    }
}
