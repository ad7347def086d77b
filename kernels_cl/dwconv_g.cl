/* dwconv_g: depthwise convolution + bias [+ activation], with POOLED also the mean of every channel
 * over the output.
 *
 * A work-item has VC = 4 channels and makes tiles of TP x TQ neighbouring output pixels. It goes through
 * the input rows under a tile, reads each of their pixels once, and adds it to all outputs whose window
 * has it; a row of the window is held in registers until the tile's last output row has used it. A group
 * has CX times VC channels of a band of ROWS output rows, whose input its work-items share in the
 * first-level cache. Weights are [R][S][CS] in fp32; small windows stay in registers. An output's sum
 * has the same order whatever the tile.
 *
 * Means: the work-items of a channel add up their outputs, groups put their sums in scratch, and
 * whoever takes the last ticket of an image's channels adds the bands' sums in their order and puts
 * the counter back to 0. Scratch: a counter for every image and block of channels (a multiple of 64
 * words in all), which must be 0 before the first launch, then the sums [n][bands][CS].
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
#ifndef TP
#define TP 1 /* rows of a tile */
#endif
#ifndef ROWS
#define ROWS 8 /* output rows of a group */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* VC stored elements: float, float rounded to tf32, half, bfloat16. */
#define VC 4
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
typedef float4 pack;
#define ZERO ((float4)(0.0f))
__attribute__((always_inline)) static void widen(const pack p, float *v) {
    v[0] = p.x, v[1] = p.y, v[2] = p.z, v[3] = p.w;
}
#if PRECISION == 0
#define ROUND(v) (v)
#else
#define ROUND(v) as_float(rounded(v, 13))
#endif
__attribute__((always_inline)) static pack narrow(const float *v) {
    return (float4)(ROUND(v[0]), ROUND(v[1]), ROUND(v[2]), ROUND(v[3]));
}
#elif PRECISION == 3
typedef uint2 pack;
#define ZERO ((uint2)(0))
/* Halves need an extension as values, not as pointers. */
__attribute__((always_inline)) static void widen2(uint word, float *v) {
    const float2 both = vload_half2(0, (const half *)&word);
    v[0] = both.x, v[1] = both.y;
}
__attribute__((always_inline)) static uint narrow2(const float *v) {
    uint word;
    vstore_half2_rte((float2)(v[0], v[1]), 0, (half *)&word);
    return word;
}
#elif PRECISION == 4
typedef uint2 pack;
#define ZERO ((uint2)(0))
__attribute__((always_inline)) static void widen2(uint word, float *v) {
    v[0] = as_float(word << 16), v[1] = as_float(word & 0xffff0000u);
}
__attribute__((always_inline)) static uint narrow2(const float *v) {
    return rounded(v[0], 16) >> 16 | (rounded(v[1], 16) & 0xffff0000u);
}
#else
#error "no storage of this precision here"
#endif
#if PRECISION >= 3
__attribute__((always_inline)) static void widen(const pack p, float *v) {
    widen2(p.x, v), widen2(p.y, v + 2);
}
__attribute__((always_inline)) static pack narrow(const float *v) {
    return (uint2)(narrow2(v), narrow2(v + 2));
}
#endif
#include "smooth.clh"

#include "dwconv.clh"
#define SPAN_H ((TP - 1) * STRIDE + R) /* input under a tile */
#define SPAN_W ((TQ - 1) * STRIDE + S)
/* Column j of it is inside the image, wherever the tile is. */
#define INSIDE(j) ((j) >= PAD && (j) < W + PAD - (STRIPS - 1) * TQ * STRIDE)
/* All weights stay in registers, and rows are unrolled: other compilers than NVIDIA's then take more
 * registers than they have. */
#if defined(__NV_CL_C_VERSION)
#define KEEP (R * S <= 9)
#define FOR_ROWS _Pragma("unroll")
#else
#define KEEP 0
#if TP > 1
#define FOR_ROWS _Pragma("unroll")
#else
#define FOR_ROWS _Pragma("unroll 1")
#endif
#endif
#define TAP_ROWS (KEEP || TP > 1 ? R : 1)

/* A row of the window. */
#define LOAD_TAPS(r)                                                                               \
    _Pragma("unroll") for (int s = 0; s < S; s++) {                                                \
        const float4 four = *(__global const float4 *)(w + ((r)*S + s) * CS);                                \
        float *const to = tap[TAP_ROWS == 1 ? 0 : (r)][s];                                         \
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;                            \
    }

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
dwconv_g(__global const pack *restrict in, __global const float *restrict weights, __global const float *restrict bias,
             __global pack *restrict out, __global pack *restrict means, __global float *scratch, const int n,
             const int flags) {
    const uint tid = get_local_id(0), lane = tid % CX, first = tid / CX;
    const uint block = get_group_id(0) % BLOCKS, band = get_group_id(0) / BLOCKS;
    const uint which = block * CX + lane; /* which VC channels */
    const int row_end = (int)(band * ROWS + ROWS) < P ? (int)(band * ROWS + ROWS) : P;
    const uint strips = (row_end - band * ROWS + TP - 1) / TP * STRIPS;
    const bool used = which < CS / VC;
    __global const float *w = weights + (used ? which : 0) * VC;
    float tap[TAP_ROWS][S][VC], base[VC];
#pragma unroll
    for (int v = 0; v < VC; v++)
        base[v] = bias[(used ? which : 0) * VC + v];
#if KEEP
#pragma unroll
    for (int r = 0; r < R; r++)
        LOAD_TAPS(r)
#else
    const int none = flags >> 8; /* 0, which the compiler does not know: it would load all weights ahead */
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
        for (uint strip = first; used && strip < strips; strip += LINES) {
            const int p = (int)(band * ROWS + strip / STRIPS * TP), q = (int)(strip % STRIPS * TQ);
            const int h0 = p * STRIDE - PAD, w0 = q * STRIDE - PAD;
            __global const pack *tile = x + (h0 * W + w0) * (CS / VC);
            float acc[TP][TQ][VC];
#pragma unroll
            for (int t = 0; t < TP; t++)
#pragma unroll
                for (int j = 0; j < TQ; j++)
#pragma unroll
                    for (int v = 0; v < VC; v++)
                        acc[t][j][v] = base[v];
            FOR_ROWS
            for (int i = 0; i < SPAN_H; i++) {
#if !KEEP
                if (i < R) {
                    LOAD_TAPS(i)
                }
#endif
                if (h0 + i < 0 || h0 + i >= H) continue;
                pack raw[SPAN_W];
#pragma unroll
                for (int j = 0; j < SPAN_W; j++) {
                    raw[j] = ZERO;
                    if ((INSIDE(j)) | (w0 + j >= 0 && w0 + j < W)) raw[j] = tile[(i * W + j) * (CS / VC)];
                }
#pragma unroll
                for (int j = 0; j < SPAN_W; j++) {
                    float value[VC];
                    widen(raw[j], value);
#pragma unroll
                    for (int t = 0; t < TP; t++) {
                        const int r = i - t * STRIDE;
                        if (r < 0 || r >= R) continue;
#pragma unroll
                        for (int s = 0; s < S; s++) {
                            if (j < s || (j - s) % STRIDE != 0 || (j - s) / STRIDE >= TQ) continue;
#pragma unroll
                            for (int v = 0; v < VC; v++)
                                acc[t][(j - s) / STRIDE][v] =
                                    fma(value[v], tap[TAP_ROWS == 1 ? 0 : r][s][v],
                                        acc[t][(j - s) / STRIDE][v]);
                        }
                    }
                }
            }
#if !KEEP
            w += none;
#endif
#pragma unroll
            for (int t = 0; t < TP; t++) {
                if ((ROWS % TP != 0 || P % TP != 0) && p + t >= row_end) continue;
#pragma unroll
                for (int j = 0; j < TQ; j++) {
                    if (Q % TQ != 0 && q + j >= Q) continue;
                    float *const result = acc[t][j];
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
                    y[((p + t) * Q + q + j) * (KS / VC)] = narrow(result);
                }
            }
        }
#include "dwconv_means.clh"
    }
}
