/* conv_winograd_g: convolution 3x3, stride 1, + bias [+ residual] [+ ReLU] by Winograd's
 * F(2x2, 3x3), fp32 FMA: 16 multiplications where the direct form needs 36. Integers of moderate
 * size come out exact, because the transforms add, subtract and halve only. A NaN spreads to its
 * whole tile.
 *
 * A group makes BT tiles (2x2 output pixels each, of all images in one long line) times BN output
 * channels. Slice by slice of BK input channels it transforms the tiles' 4x4 patches into shared
 * memory and multiplies: at each of the 16 points a BT x BN product, every thread working on one
 * point. The next slice's patches (through registers) and weights (ASYNC: past them, by cp.async)
 * are fetched part by part while the present slice is multiplied. At the end the sums go through
 * shared memory, RUNS of a thread's rows at a time, and are transformed back.
 *
 * Weights are transformed when packed: [K / BN][CS / BK][point][BK][BN], zeros beyond C and K.
 * With C2 the residual is not read but computed: second is in2, and its 1x1 convolution is added in
 * the end; these weights follow the others, [CS2][K, a multiple of BN].
 *
 * Group: 16 * (BT / TM) * (BN / TN) threads, in one dimension. Grid: x = tile blocks * channel
 * blocks, the channel block fastest (neighbours share input). Must not: assume a warp size, write
 * outside out.
 */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of BK */
#endif
#ifndef H
#define H 8 /* input height */
#endif
#ifndef W
#define W 8 /* input width */
#endif
#ifndef K
#define K 64 /* output channels */
#endif
#ifndef KS
#define KS 64 /* output channel stride, >= K, a multiple of 4 */
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
#define PAD 1 /* border of zeros in both directions */
#endif
#ifndef C2
#define C2 0 /* the partner's input channels; 0: there is no partner */
#endif
#ifndef CS2
#define CS2 0 /* the partner's input channel stride, a multiple of 4 */
#endif
#ifndef H2
#define H2 1 /* the partner's input height */
#endif
#ifndef W2
#define W2 1 /* the partner's input width */
#endif
#ifndef STRIDE2
#define STRIDE2 1 /* the partner's step */
#endif
#ifndef BT
#define BT 16 /* tiles of a group, 16 or 32 */
#endif
#ifndef BN
#define BN 64 /* output channels of a group */
#endif
#ifndef BK
#define BK 8 /* input channels of a slice: 4, 8 or 16 */
#endif
#ifndef TM
#define TM 16 /* tiles of a thread, a multiple of 4 */
#endif
#ifndef TN
#define TN 8 /* output channels of a thread, a multiple of 4 */
#endif
#ifndef ASYNC
#define ASYNC 0 /* 1: weights by cp.async, compute capability 8.0 or later */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision; only 0 (fp32) is implemented here */
#endif
#if PRECISION != 0
#error "this kernel computes in fp32 only"
#endif
#if R != 3 || S != 3 || STRIDE != 1 || CS % BK != 0
#error "a shape this kernel was not made for"
#endif

#define THREADS_M (BT / TM)
#define THREADS_N (BN / TN)
#define PER_POINT (THREADS_M * THREADS_N)
#define THREADS (16 * PER_POINT)
#define TILES_X ((Q + 1) / 2)
#define TILES_ALL (TILES_X * ((P + 1) / 2)) /* of an image */
#define BLOCKS_N ((KS + BN - 1) / BN)
#define KPAD (BLOCKS_N * BN)
#define SLICES (CS / BK)
#define ROW_GAP (BT / (TM / 4)) /* a thread's tiles are runs of 4, this far apart */
#define COL_GAP (BN / (TN / 4))
/* Tile t of channel c is kept at t ^ SWIZZLED(c): stores of a warp's patches meet different
 * banks, and runs of 4 tiles stay together. */
#define SWIZZLE (BK < 8 ? 32 / BK : 4)
#define SWIZZLED(c) ((c)*BT / 32 * SWIZZLE % BT)
#define V_POINT (BK * BT)
#define U_POINT (BK * BN)
#define V_SIZE (16 * V_POINT)
#define U_SIZE (16 * U_POINT)
#define STAGE (V_SIZE + U_SIZE)
#define PATCHES (BT * BK) /* of a slice */
#define ITEMS ((PATCHES + THREADS - 1) / THREADS)
#define WORKERS (PATCHES / ITEMS) /* threads that fetch and transform ITEMS patches each */
#define U_QUADS (U_SIZE / 4 / THREADS)
/* The sums' way back: as many of a thread's runs of 4 tiles at a time as there is space for. */
#define E_ROW (BN + 4)
#define RUN_TILES (4 * THREADS_M)
#define RUN_FLOATS (16 * RUN_TILES * E_ROW)
#define RUNS_FIT (2 * STAGE / RUN_FLOATS)
#define RUNS (RUNS_FIT >= TM / 4 ? TM / 4 : RUNS_FIT >= 2 && TM % 8 == 0 ? 2 : 1)
#define SHARED_FLOATS (2 * STAGE > RUN_FLOATS ? 2 * STAGE : RUN_FLOATS)
#define PARTS (BK / 2) /* in which a slice is fetched, one before each of as many depths */
#define PART(i, count) ((i)*PARTS / (count))
#define REGISTERS (TM * TN <= 32 ? 96 : TM * TN <= 64 ? 128 : 255)
#define RESIDENT (65536 / (REGISTERS * THREADS) < 1 ? 1 : 65536 / (REGISTERS * THREADS))
#define FLAG_RELU 1
#define FLAG_RESIDUAL 2

typedef unsigned int u32;
typedef unsigned long long u64;

/* Older devices have no cp.async: there a build with ASYNC is as good as one without. */
#define PAST_REGISTERS (ASYNC && __CUDA_ARCH__ >= 800)
#if PAST_REGISTERS
static __device__ __forceinline__ void copy_quad(float *to, const float *from) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}
#define COPIES_DONE() asm volatile("cp.async.wait_all;" ::: "memory")
#else
#define COPIES_DONE()
#endif

/* B^T d B of a patch; point p of the result goes to v + p * V_POINT. */
static __device__ __forceinline__ void transform(const float d[16], float *v) {
    float t[16];
#pragma unroll
    for (int s = 0; s < 4; s++) {
        t[s] = d[s] - d[8 + s];
        t[4 + s] = d[4 + s] + d[8 + s];
        t[8 + s] = d[8 + s] - d[4 + s];
        t[12 + s] = d[4 + s] - d[12 + s];
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
        v[(4 * r) * V_POINT] = t[4 * r] - t[4 * r + 2];
        v[(4 * r + 1) * V_POINT] = t[4 * r + 1] + t[4 * r + 2];
        v[(4 * r + 2) * V_POINT] = t[4 * r + 2] - t[4 * r + 1];
        v[(4 * r + 3) * V_POINT] = t[4 * r + 1] - t[4 * r + 3];
    }
}

static __device__ __forceinline__ float4 add(const float4 a, const float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ __forceinline__ float4 sub(const float4 a, const float4 b) {
    return make_float4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w);
}

static __device__ __forceinline__ float4 scaled(const float by, const float4 a, const float4 c) {
    return make_float4(fmaf(by, a.x, c.x), fmaf(by, a.y, c.y), fmaf(by, a.z, c.z),
                       fmaf(by, a.w, c.w));
}

/* acc += v u for depth k of a slice at this thread's point. */
static __device__ __forceinline__ void multiply(float acc[TM][TN], const float *v, const u32 m0,
                                                const float *u, const int k) {
    float a[TM], b[TN];
#pragma unroll
    for (int i = 0; i < TM; i += 4) {
        const u32 run = i / 4 * ROW_GAP ^ SWIZZLED(k) / ROW_GAP * ROW_GAP;
        const float4 q = *(const float4 *)(v + k * BT + (m0 ^ SWIZZLED(k) % ROW_GAP) + run);
        a[i] = q.x, a[i + 1] = q.y, a[i + 2] = q.z, a[i + 3] = q.w;
    }
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        const float4 q = *(const float4 *)(u + k * BN + j / 4 * COL_GAP);
        b[j] = q.x, b[j + 1] = q.y, b[j + 2] = q.z, b[j + 3] = q.w;
    }
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            acc[i][j] = fmaf(a[i], b[j], acc[i][j]);
}

/* Part k of a slice: weights (with ASYNC to their place, else held in registers) and patches. */
static __device__ __forceinline__ void fetch(const int k, float *u_to, float4 held[U_QUADS],
                                             const float *u_next, float d[ITEMS][16],
                                             const float *const patch[ITEMS],
                                             const u32 valid[ITEMS]) {
#pragma unroll
    for (int i = 0; i < U_QUADS; i++)
        if (PART(i, U_QUADS) == k) {
#if PAST_REGISTERS
            copy_quad(u_to + i * (THREADS * 4), u_next + i * (THREADS * 4));
#else
            held[i] = *(const float4 *)(u_next + i * (THREADS * 4));
#endif
        }
#pragma unroll
    for (int i = 0; i < ITEMS * 16; i++)
        if (PART(i, ITEMS * 16) == k) {
            const int p = i % 16;
            d[i / 16][p] = 0.0f;
            if (valid[i / 16] >> p & 1) d[i / 16][p] = patch[i / 16][(p / 4 * W + p % 4) * CS];
        }
}

static __device__ __forceinline__ void put_held(const int k, float *u_to,
                                                const float4 held[U_QUADS]) {
#if !PAST_REGISTERS
#pragma unroll
    for (int i = 0; i < U_QUADS; i++)
        if (PART(i, U_QUADS) == k) *(float4 *)(u_to + i * (THREADS * 4)) = held[i];
#endif
}

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    conv_winograd_g(const float *__restrict__ in, const float *__restrict__ weights,
                    const float *__restrict__ bias, const float *__restrict__ second,
                    float *__restrict__ out, const int n, const int flags) {
    WAIT_FOR_EARLIER();
    extern __shared__ __align__(16) float shared[];
    const u32 tid = threadIdx.x;
    const u32 block_n = blockIdx.x % BLOCKS_N, block_t = blockIdx.x / BLOCKS_N;
    const u32 tiles = (u32)n * TILES_ALL;
    const u32 tile0 = block_t * BT;

    /* What this thread fetches: channel c of tiles t + i * (WORKERS / BK). */
    const u32 c = tid % BK, t = tid / BK;
    const bool works = WORKERS == THREADS || tid < WORKERS;
    const float *patch[ITEMS];
    u32 valid[ITEMS]; /* bit 4 r + s: pixel (r, s) lies inside the image */
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const u32 tile = tile0 + t + i * (WORKERS / BK);
        const u32 image = tile / TILES_ALL, at = tile % TILES_ALL;
        const int y = (int)(at / TILES_X) * 2 - PAD, x = (int)(at % TILES_X) * 2 - PAD;
        u32 rows = 0, bits = 0;
#pragma unroll
        for (int s = 0; s < 4; s++)
            rows |= (u32)(x + s) < W ? 1u << s : 0;
#pragma unroll
        for (int r = 0; r < 4; r++)
            bits |= (u32)(y + r) < H ? rows << 4 * r : 0;
        valid[i] = works && tile < tiles ? bits : 0;
        patch[i] = in + ((long long)image * (H * W) + y * W + x) * CS + c;
    }
    const float *u_next = weights + (u64)block_n * (SLICES * U_SIZE) + tid * 4;

    /* Place of this thread's product. Neighbouring threads alternate between both directions, so
     * that equal addresses of a shared load are next to each other. */
    const u32 point = tid / PER_POINT, inside = tid % PER_POINT;
#if THREADS_M >= 2 && THREADS_N >= 2
    const u32 m = inside / 2 % 2 + inside / (2 * THREADS_N) * 2;
    const u32 nn = inside % 2 + inside / 4 % (THREADS_N / 2) * 2;
#else
    const u32 m = inside / THREADS_N, nn = inside % THREADS_N;
#endif
    const u32 m0 = m * 4, n0 = nn * 4;

    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            acc[i][j] = 0.0f;

    float d[ITEMS][16];
    float4 held[U_QUADS];
    float *const v_to = shared + c * BT;
    float *const u_to = shared + V_SIZE + tid * 4;
    const float *const v_from = shared + point * V_POINT;
    const float *const u_from = shared + V_SIZE + point * U_POINT + n0;
#pragma unroll
    for (int k = 0; k < PARTS; k++) {
        fetch(k, u_to, held, u_next, d, patch, valid);
        put_held(k, u_to, held);
    }
    if (works) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++)
            transform(d[i], v_to + ((t + i * (WORKERS / BK)) ^ SWIZZLED(c)));
    }
    u32 buffer = 0; /* 0 or STAGE: the one to multiply from; the other is filled */
#pragma unroll 1
    for (int slice = 1; slice <= SLICES; slice++) {
        const u32 other = STAGE - buffer;
        if (slice < SLICES) { /* the last turn fetches its own slice again, for no use */
            u_next += U_SIZE;
#pragma unroll
            for (int i = 0; i < ITEMS; i++)
                patch[i] += BK;
        }
        COPIES_DONE();
        __syncthreads();
#pragma unroll
        for (int k = 0; k < BK; k++) {
            if (k < PARTS) fetch(k, u_to + other, held, u_next, d, patch, valid);
            multiply(acc, v_from + buffer, m0, u_from + buffer, k);
            if (k < PARTS) put_held(k, u_to + other, held);
        }
        if (works) {
#pragma unroll
            for (int i = 0; i < ITEMS; i++)
                transform(d[i], v_to + other + ((t + i * (WORKERS / BK)) ^ SWIZZLED(c)));
        }
        buffer = other;
    }
    COPIES_DONE();
    __syncthreads();

    /* Back: an item is one tile and four channels. */
#pragma unroll
    for (int run = 0; run < TM / 4; run += RUNS) {
#pragma unroll
        for (int i = 0; i < 4 * RUNS; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                *(float4 *)(shared +
                            (point * (RUNS * RUN_TILES) + i / 4 * RUN_TILES + m0 + i % 4) * E_ROW +
                            n0 + j / 4 * COL_GAP) =
                    make_float4(acc[4 * run + i][j], acc[4 * run + i][j + 1],
                                acc[4 * run + i][j + 2], acc[4 * run + i][j + 3]);
        __syncthreads();
#pragma unroll 1
        for (u32 item = tid; item < RUNS * RUN_TILES * (BN / 4); item += THREADS) {
            const u32 k4 = item % (BN / 4) * 4, row = item / (BN / 4);
            const u32 k = block_n * BN + k4;
            const u32 tile = tile0 + run * ROW_GAP + row;
            if (k >= KS || tile >= tiles) continue;
            const u32 image = tile / TILES_ALL, at = tile % TILES_ALL;
            const u32 p0 = at / TILES_X * 2, q0 = at % TILES_X * 2;
            const u64 base = ((u64)image * (P * Q) + p0 * Q + q0) * KS + k;
            const float4 b = *(const float4 *)(bias + k);
            float4 o[2][2];
#pragma unroll
            for (int y = 0; y < 2; y++)
#pragma unroll
                for (int x = 0; x < 2; x++) {
                    o[y][x] = b;
#if C2 == 0
                    if ((flags & FLAG_RESIDUAL) && p0 + y < P && q0 + x < Q)
                        o[y][x] = add(b, *(const float4 *)(second + base + (y * Q + x) * KS));
#endif
                }
#if C2 > 0
            /* Pixels outside are replaced by their neighbours, and what they give is dropped. */
            const u32 next_p = p0 + 1 < P ? STRIDE2 * W2 * CS2 : 0;
            const u32 next_q = q0 + 1 < Q ? STRIDE2 * CS2 : 0;
            const float *pixel = second + ((u64)image * (H2 * W2) + (p0 * W2 + q0) * STRIDE2) * CS2;
            const float *w = weights + ((u64)BLOCKS_N * SLICES * U_SIZE + k);
#pragma unroll 2
            for (int c4 = 0; c4 < CS2; c4 += 4) {
                float4 in2[2][2], w2[4];
#pragma unroll
                for (int y = 0; y < 2; y++)
#pragma unroll
                    for (int x = 0; x < 2; x++)
                        in2[y][x] = *(const float4 *)(pixel + (y * next_p + x * next_q) + c4);
#pragma unroll
                for (int i = 0; i < 4; i++)
                    w2[i] = *(const float4 *)(w + (c4 + i) * KPAD);
#pragma unroll
                for (int y = 0; y < 2; y++)
#pragma unroll
                    for (int x = 0; x < 2; x++) {
                        o[y][x] = scaled(in2[y][x].x, w2[0], o[y][x]);
                        o[y][x] = scaled(in2[y][x].y, w2[1], o[y][x]);
                        o[y][x] = scaled(in2[y][x].z, w2[2], o[y][x]);
                        o[y][x] = scaled(in2[y][x].w, w2[3], o[y][x]);
                    }
            }
#endif
            float4 s[2][4];
#pragma unroll
            for (int x = 0; x < 4; x++) {
                const float *from = shared + (x * (RUNS * RUN_TILES) + row) * E_ROW + k4;
                const float4 e0 = *(const float4 *)from;
                const float4 e1 = *(const float4 *)(from + 4 * (RUNS * RUN_TILES) * E_ROW);
                const float4 e2 = *(const float4 *)(from + 8 * (RUNS * RUN_TILES) * E_ROW);
                const float4 e3 = *(const float4 *)(from + 12 * (RUNS * RUN_TILES) * E_ROW);
                s[0][x] = add(add(e0, e1), e2);
                s[1][x] = sub(sub(e1, e2), e3);
            }
#pragma unroll
            for (int y = 0; y < 2; y++)
#pragma unroll
                for (int x = 0; x < 2; x++) {
                    if (p0 + y >= P || q0 + x >= Q) continue;
                    float4 v = x == 0 ? add(add(s[y][0], s[y][1]), s[y][2])
                                      : sub(sub(s[y][1], s[y][2]), s[y][3]);
                    v = add(v, o[y][x]);
                    if (flags & FLAG_RELU) {
                        v.x = v.x < 0.0f ? 0.0f : v.x, v.y = v.y < 0.0f ? 0.0f : v.y;
                        v.z = v.z < 0.0f ? 0.0f : v.z, v.w = v.w < 0.0f ? 0.0f : v.w;
                    }
                    *(float4 *)(out + base + (y * Q + x) * KS) = v;
                }
        }
        __syncthreads(); /* before the next runs take the place */
    }
}
