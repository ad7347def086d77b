/* dwconv_g: depthwise convolution + bias [+ activation], with POOLED also the mean of every channel
 * over the output.
 *
 * A thread has VC = 4 channels and makes tiles of TP x TQ neighbouring output pixels. It goes through
 * the input rows under a tile, reads each of their pixels once, and adds it to all outputs whose window
 * has it; a row of the window is held in registers until the tile's last output row has used it. A group
 * has CX times VC channels of a band of ROWS output rows, whose input its threads share in the
 * first-level cache. Weights are [R][S][CS] in fp32; small windows stay in registers. An output's sum
 * has the same order whatever the tile.
 *
 * Means: the threads of a channel add up their outputs, groups put their sums in scratch, and
 * whoever takes the last ticket of an image's channels adds the bands' sums in their order and puts
 * the counter back to 0. Scratch: a counter for every image and block of channels (a multiple of 64
 * words in all), which must be 0 before the first launch, then the sums [n][bands][CS].
 * Group: CX * LINES threads. Grid: x = blocks of channels * bands, blocks
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
#define CX 8 /* threads side by side along the channels */
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
static __device__ __forceinline__ unsigned int rounded(float v, int drop) {
    const unsigned int bits = __float_as_uint(v);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits | ((bits & 0x7fffffu) != 0 ? 0x400000u : 0);
    return (bits + (1u << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop << drop;
}
#endif
#if PRECISION == 0 || PRECISION == 2
typedef float4 pack;
#define ZERO make_float4(0.0f, 0.0f, 0.0f, 0.0f)
static __device__ __forceinline__ void widen(const pack p, float *v) {
    v[0] = p.x, v[1] = p.y, v[2] = p.z, v[3] = p.w;
}
#if PRECISION == 0
#define ROUND(v) (v)
#else
#define ROUND(v) __uint_as_float(rounded(v, 13))
#endif
static __device__ __forceinline__ pack narrow(const float *v) {
    return make_float4(ROUND(v[0]), ROUND(v[1]), ROUND(v[2]), ROUND(v[3]));
}
#elif PRECISION == 3
typedef uint2 pack;
#define ZERO make_uint2(0, 0)
static __device__ __forceinline__ void widen2(unsigned int word, float *v) {
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(v[0]), "=f"(v[1])
        : "r"(word));
}
static __device__ __forceinline__ unsigned int narrow2(const float *v) {
    unsigned int word;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(v[1]), "f"(v[0]));
#else
    asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}"
        : "=r"(word)
        : "f"(v[0]), "f"(v[1]));
#endif
    return word;
}
#elif PRECISION == 4
typedef uint2 pack;
#define ZERO make_uint2(0, 0)
static __device__ __forceinline__ void widen2(unsigned int word, float *v) {
    v[0] = __uint_as_float(word << 16), v[1] = __uint_as_float(word & 0xffff0000u);
}
static __device__ __forceinline__ unsigned int narrow2(const float *v) {
    return rounded(v[0], 16) >> 16 | (rounded(v[1], 16) & 0xffff0000u);
}
#else
#error "no storage of this precision here"
#endif
#if PRECISION >= 3
static __device__ __forceinline__ void widen(const pack p, float *v) {
    widen2(p.x, v), widen2(p.y, v + 2);
}
static __device__ __forceinline__ pack narrow(const float *v) {
    return make_uint2(narrow2(v), narrow2(v + 2));
}
#endif
#include "smooth.cuh"

#include "dwconv.cuh"
#define SPAN_H ((TP - 1) * STRIDE + R) /* input under a tile */
#define SPAN_W ((TQ - 1) * STRIDE + S)
/* Column j of it is inside the image, wherever the tile is. */
#define INSIDE(j) ((j) >= PAD && (j) < W + PAD - (STRIPS - 1) * TQ * STRIDE)
#define KEEP (R * S <= 9) /* all weights stay in registers */
#define TAP_ROWS (KEEP || TP > 1 ? R : 1)

/* A row of the window. */
#define LOAD_TAPS(r)                                                                               \
    _Pragma("unroll") for (int s = 0; s < S; s++) {                                                \
        const float4 four = *(const float4 *)(w + ((r)*S + s) * CS);                                         \
        float *const to = tap[TAP_ROWS == 1 ? 0 : (r)][s];                                         \
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;                            \
    }

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(GROUP)
    dwconv_g(const pack *__restrict__ in, const float *__restrict__ weights, const float *__restrict__ bias,
             pack *__restrict__ out, pack *__restrict__ means, float *scratch, const int n,
             const int flags) {
    WAIT_FOR_EARLIER();
    const unsigned int tid = threadIdx.x, lane = tid % CX, first = tid / CX;
    const unsigned int block = blockIdx.x % BLOCKS, band = blockIdx.x / BLOCKS;
    const unsigned int which = block * CX + lane; /* which VC channels */
    const int row_end = (int)(band * ROWS + ROWS) < P ? (int)(band * ROWS + ROWS) : P;
    const unsigned int strips = (row_end - band * ROWS + TP - 1) / TP * STRIPS;
    const bool used = which < CS / VC;
    const float *w = weights + (used ? which : 0) * VC;
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
    __shared__ float sums[GROUP * VC];
#if BANDS > 1
    __shared__ int ticket;
#endif
#endif
    for (unsigned int image = blockIdx.y; image < (unsigned int)n; image += gridDim.y) {
        const pack *x = in + (unsigned long long)image * (H * W * (CS / VC)) + which;
        pack *y = out + (unsigned long long)image * (P * Q * (KS / VC)) + which;
#if POOLED
        float sum[VC];
#pragma unroll
        for (int v = 0; v < VC; v++)
            sum[v] = 0.0f;
#endif
        for (unsigned int strip = first; used && strip < strips; strip += LINES) {
            const int p = (int)(band * ROWS + strip / STRIPS * TP), q = (int)(strip % STRIPS * TQ);
            const int h0 = p * STRIDE - PAD, w0 = q * STRIDE - PAD;
            const pack *tile = x + (h0 * W + w0) * (CS / VC);
            float acc[TP][TQ][VC];
#pragma unroll
            for (int t = 0; t < TP; t++)
#pragma unroll
                for (int j = 0; j < TQ; j++)
#pragma unroll
                    for (int v = 0; v < VC; v++)
                        acc[t][j][v] = base[v];
#pragma unroll
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
                                    fmaf(value[v], tap[TAP_ROWS == 1 ? 0 : r][s][v],
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
#include "dwconv_means.cuh"
    }
}
