/* conv_igemm: convolution + bias [+ residual] [+ activation] as an implicit matrix product, fp32
 * FMA of what is stored: floats, halves or bfloat16.
 *
 * Rows of the product are output pixels (all images in one long line), columns are output
 * channels, depth is (r, s, c). A group makes a BM x BN tile: slices of BK of both operands go
 * through two shared buffers, the next slice is fetched into registers while the present one is
 * multiplied. Weights come packed as [depth, multiple of BK][output channels, multiple of BN] with
 * zeros in the padding, so only the input needs border tests.
 *
 * With TEAMS > 1 the threads form teams, each with buffers of its own for its part of the depth;
 * the first one adds the others' sums in their order.
 *
 * With SPLITK > 1 that many groups share a tile, each taking a part of the depth. Partial sums go
 * to scratch; whoever takes the tile's last ticket adds them in the order of the parts, so that the
 * result does not depend on who that is, runs the epilogue and puts the ticket counter back to 0.
 * Scratch: one counter a tile (a multiple of 64 words in all), which must be 0 before the first
 * launch, then the partial sums.
 *
 * Group: (BM / TM) * (BN / TN) * TEAMS threads, in one dimension. Grid: x = row tiles * column
 * tiles with the column tile fastest (neighbours share input), y = SPLITK. The default geometry, a
 * window and an image of one pixel, is a fully connected layer, whose results are floats. Must not:
 * assume a warp size, write outside out and scratch, use floating-point atomics.
 */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 4 */
#endif
#ifdef H
#define LOGITS 0
#else
#define LOGITS 1
#endif
#ifndef H
#define H 1 /* input height */
#endif
#ifndef W
#define W 1 /* input width */
#endif
#ifndef K
#define K 64 /* output channels */
#endif
#ifndef KS
#define KS 64 /* output channel stride, >= K, a multiple of 4 */
#endif
#ifndef P
#define P 1 /* output height */
#endif
#ifndef Q
#define Q 1 /* output width */
#endif
#ifndef R
#define R 1 /* window height, at most 16 */
#endif
#ifndef S
#define S 1 /* window width, at most 16 */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window in both directions */
#endif
#ifndef PAD
#define PAD 0 /* border of zeros in both directions */
#endif
#ifndef ACT
#define ACT 0 /* lap_activation of the results: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef SCALED
#define SCALED 0 /* 1: in2 has a factor for every input channel of every image; 1x1 windows only */
#endif
#ifndef C2
#define C2 0 /* the partner's input channels; 0: there is no partner */
#endif
#ifndef CS2
#define CS2 0 /* the partner's input channel stride */
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
#ifndef BM
#define BM 128 /* rows of a group's tile, a multiple of 32 */
#endif
#ifndef BN
#define BN 64 /* columns of a group's tile */
#endif
#ifndef BK
#define BK 16 /* depth of a slice: 8, 16 or 32 */
#endif
#ifndef TM
#define TM 8 /* rows of a thread's tile, a multiple of 4 */
#endif
#ifndef TN
#define TN 8 /* columns of a thread's tile, a multiple of 4 */
#endif
#ifndef SPLITK
#define SPLITK 1 /* groups that share a tile */
#endif
#ifndef TEAMS
#define TEAMS 1 /* teams of a group that share a tile, each taking a part of the slices */
#endif
#ifndef PRECISION
#define PRECISION 0 /* lap_precision: how elements are stored; sums are fp32 in any case */
#endif

/* Four neighbouring elements, aligned to their size. */
#if PRECISION == 0
typedef float stored;
#define LOAD4(p) (*(const float4 *)(p))
#elif PRECISION == 3 || PRECISION == 4
typedef unsigned short stored;
#define LOAD4(p) widen4(*(const uint2 *)(p))
#define STORE4(p, v) (*(uint2 *)(p) = make_uint2(narrow2((v).x, (v).y), narrow2((v).z, (v).w)))
#else
#error "no storage of this precision here"
#endif
#if PRECISION == 3
static __device__ __forceinline__ float4 widen4(const uint2 words) {
    float4 v;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(v.x), "=f"(v.y)
        : "r"(words.x));
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(v.z), "=f"(v.w)
        : "r"(words.y));
    return v;
}
static __device__ __forceinline__ unsigned int narrow2(float low, float high) {
    unsigned int word;
    asm("{.reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h};}"
        : "=r"(word)
        : "f"(low), "f"(high));
    return word;
}
#elif PRECISION == 4
static __device__ __forceinline__ float4 widen4(const uint2 words) {
    return make_float4(__uint_as_float(words.x << 16), __uint_as_float(words.x & 0xffff0000u),
                       __uint_as_float(words.y << 16), __uint_as_float(words.y & 0xffff0000u));
}
/* To nearest, ties to even; infinity and NaN stay. */
static __device__ __forceinline__ unsigned int narrow(float v) {
    const unsigned int bits = __float_as_uint(v);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return bits >> 16 | ((bits & 0x7fffffu) != 0 ? 0x40u : 0);
    return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}
static __device__ __forceinline__ unsigned int narrow2(float low, float high) {
    return narrow(low) | narrow(high) << 16;
}
#endif
#if PRECISION == 0 || LOGITS
#undef STORE4
#define STORE4(p, v) (*(float4 *)(p) = (v))
typedef float result;
#else
typedef stored result;
#endif

#define THREADS_M (BM / TM)
#define THREADS_N (BN / TN)
#define TEAM (THREADS_M * THREADS_N)
#define THREADS (TEAM * TEAMS)
#define DEPTH (R * S * CS)
#define SLICES_OWN ((DEPTH + BK - 1) / BK) /* the partner's follow */
#define SLICES (SLICES_OWN + (CS2 + BK - 1) / BK)
#define TILES_N ((KS + BN - 1) / BN)
#define KPAD (TILES_N * BN)
#define KQ (BK / 4)                  /* quads of one row in a slice */
#define A_STEP (TEAM / KQ)           /* rows between two quads of one thread */
#define A_QUADS (BM * BK / 4 / TEAM) /* quads a thread fetches of the input */
#define B_STEP (TEAM / (BN / 4))
#define B_QUADS (BN * BK / 4 / TEAM)
#define ROW_GAP (BM / (TM / 4)) /* a thread's rows are runs of 4, this far apart */
#define COL_GAP (BN / (TN / 4))
/* Transposed stores put quad kq of a row at column row ^ (kq * SWIZZLE): no bank conflicts, and
 * runs of 4 rows stay together. */
#define SWIZZLE (128 / BK)
#define ROW(base, step, kq)                                                                        \
    ((step) % 32 == 0 ? ((base) ^ ((kq)*SWIZZLE)) + (step) : ((base) + (step)) ^ ((kq)*SWIZZLE))
#define A_SIZE (BM * BK)
#define STAGE (BM * BK + BN * BK) /* a buffer: the input's slice, then the weights' */
#define BUFFERS (TEAMS * 2 * STAGE)
#define SUMS ((TEAMS - 1) * BM * BN) /* take the buffers' place after the last slice */
#define TILE_FLOATS (BUFFERS > SUMS ? BUFFERS : SUMS)
/* Registers a thread should get away with, hence groups a multiprocessor should hold. */
#define REGISTERS (TM * TN <= 16 ? 64 : TM * TN <= 32 ? 96 : TM * TN <= 64 ? 128 : 255)
#define RESIDENT (65536 / (REGISTERS * THREADS) < 1 ? 1 : 65536 / (REGISTERS * THREADS))
#if ACT >= 2
/* Within a few units in the last place of fp32. The reciprocal of what is beyond 2^126 may be
 * zero. */
static __device__ __forceinline__ float sigmoid(float v) {
    float e;
    e = expf(-v);
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(1.0f + e));
    return e;
}
#if ACT == 2
#define ACTIVATE(v) ((v)*sigmoid(v))
#else
#define ACTIVATE(v) sigmoid(v)
#endif
#endif
#define FLAG_RELU 1
#define FLAG_RESIDUAL 2

typedef unsigned int u32;
typedef unsigned long long u64;

/* Weights go into shared memory past the registers where the hardware can and where registers are
 * short; elsewhere it measured a few percent slower. */
#if PRECISION == 0 && __CUDA_ARCH__ >= 800 && (BK >= 32 || (C2 > 0 && TM * TN > 16))
#define ASYNC 1
static __device__ __forceinline__ void copy_quad(float *to, const float *from) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
}
#else
#define ASYNC 0
#endif

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    conv_igemm(const stored *__restrict__ in, const stored *__restrict__ weights,
               const float *__restrict__ bias, const stored *__restrict__ residual,
               result *__restrict__ out, float *scratch, const stored *__restrict__ in2,
               const int n, const int flags) {
    WAIT_FOR_EARLIER();
    __shared__ __align__(16) float tile[TILE_FLOATS];
    const u32 team = TEAMS > 1 ? threadIdx.x / TEAM : 0;
    const u32 tid = TEAMS > 1 ? threadIdx.x % TEAM : threadIdx.x;
    const u32 tile_n = blockIdx.x % TILES_N, tile_m = blockIdx.x / TILES_N;
    const u32 part = blockIdx.y;
    const u64 rows = (u64)n * (P * Q);
    const u64 row0 = (u64)tile_m * BM;
    const u32 image0 = (u32)(row0 / (P * Q));
    const u32 pixel0 = (u32)(row0 - (u64)image0 * (P * Q));

    /* What this thread fetches: quad a_kq of rows a_row + i * A_STEP; quad b_col of depths b_row +
     * i * B_STEP. Bit r of valid: window row r lies inside the image; bit 16 + s: column s. */
    const u32 a_kq = tid % KQ, a_row = tid / KQ;
    const u32 b_col = tid % (BN / 4), b_row = tid / (BN / 4);
    const stored *image_base = in + (u64)image0 * ((u64)H * W * CS);
    u32 a_base[A_QUADS]; /* offsets from image_base, modulo 2^32 */
    u32 valid[A_QUADS];
#if SCALED
    u32 factor_base[A_QUADS];
#endif
#pragma unroll
    for (int i = 0; i < A_QUADS; i++) {
        const u32 t = pixel0 + a_row + i * A_STEP;
        const u32 image = image0 + t / (P * Q), pixel = t % (P * Q);
        const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
        u32 bits = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            bits |= (u32)(y + r) < H ? 1u << r : 0;
#pragma unroll
        for (int s = 0; s < S; s++)
            bits |= (u32)(x + s) < W ? 0x10000u << s : 0;
        valid[i] = image < (u32)n ? bits : 0;
        a_base[i] = (image - image0) * (u32)(H * W * CS) + (u32)((y * W + x) * CS) + a_kq * 4;
#if SCALED
        factor_base[i] = image * CS + a_kq * 4;
#endif
    }
    const u32 b_base = b_row * KPAD + tile_n * BN + b_col * 4;

    /* Place of this thread's tile. Neighbouring threads alternate between both directions, so that
     * equal addresses of a shared load are next to each other. */
    const u32 lane = tid % 32, warp = tid / 32;
    const u32 m0 = (warp % (THREADS_M / 8) * 8 + (lane >> 1 & 1) + (lane >> 3) * 2) * 4;
    const u32 n0 = (warp / (THREADS_M / 8) * 4 + (lane & 1) + (lane >> 2 & 1) * 2) * 4;

    float acc[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            acc[i][j] = 0.0f;

    const int part_begin = (int)(part * SLICES / SPLITK);
    const int part_slices = (int)((part + 1) * SLICES / SPLITK) - part_begin;
    const int begin = part_begin + (int)team * part_slices / TEAMS;
    const int end = part_begin + ((int)team + 1) * part_slices / TEAMS;
    /* Every team makes as many turns as the busiest, because of the barriers. */
    const int last = begin + (part_slices + TEAMS - 1) / TEAMS;
    float4 a_next[A_QUADS];
#if !ASYNC
    float4 b_next[B_QUADS];
#endif
    float *const buffers = tile + team * (2 * STAGE);
    u32 buffer = 0; /* 0 or STAGE */
    for (int slice = begin - 1; slice < last; slice++) {
        /* Fetch the next slice; the first turn only does this. */
        const bool more = slice + 1 < end;
        if (more) {
#if C2 > 0
            if (slice + 1 == max(begin, SLICES_OWN)) { /* from here on the partner's input */
                u32 again = blockIdx.x; /* computed anew: kept, it would cost registers */
                asm volatile("" : "+r"(again));
                const u64 row = (u64)(again / TILES_N) * BM;
                const u32 first = (u32)(row / (P * Q));
                const u32 t0 = (u32)(row - (u64)first * (P * Q)) + tid / KQ;
                image_base = in2 + (u64)first * ((u64)H2 * W2 * CS2);
#pragma unroll
                for (int i = 0; i < A_QUADS; i++) {
                    const u32 t = t0 + i * A_STEP;
                    const u32 image = t / (P * Q), pixel = t % (P * Q);
                    valid[i] = first + image < (u32)n ? 0x10001u : 0;
                    a_base[i] = image * (u32)(H2 * W2 * CS2) + a_kq * 4 +
                                (pixel / Q * W2 + pixel % Q) * (STRIDE2 * CS2);
                }
            }
            const bool own = slice + 1 < SLICES_OWN;
#else
            const bool own = true;
#endif
#if CS % BK == 0
            const u32 tap = (u32)(slice + 1) / (CS / BK);
            const u32 c = (u32)(slice + 1) % (CS / BK) * BK;
#else
            const u32 depth = (u32)(slice + 1) * BK + a_kq * 4;
            const u32 tap = depth / CS, c = depth % CS - a_kq * 4; /* modulo 2^32 */
#endif
            const u32 r = own ? tap / S : 0, s = own ? tap % S : 0;
            const u32 c2 = (u32)(slice + 1 - SLICES_OWN) * BK;
            const u32 offset = own ? (r * W + s) * CS + c : c2;
#pragma unroll
            for (int i = 0; i < A_QUADS; i++) {
                bool inside = (valid[i] >> r & valid[i] >> (16 + s) & 1) != 0;
#if DEPTH % BK != 0
                if (own) inside = inside && tap < R * S;
#endif
#if CS2 % BK != 0
                if (!own) inside = inside && c2 + a_kq * 4 < CS2;
#endif
                a_next[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (inside) a_next[i] = LOAD4(image_base + (a_base[i] + offset));
#if SCALED
                if (inside) {
                    const float4 factor = LOAD4(in2 + (factor_base[i] + offset));
                    a_next[i].x *= factor.x, a_next[i].y *= factor.y;
                    a_next[i].z *= factor.z, a_next[i].w *= factor.w;
                }
#endif
            }
            const stored *b = weights + (b_base + (u32)(slice + 1) * (BK * KPAD));
#pragma unroll
            for (int i = 0; i < B_QUADS; i++) {
#if ASYNC
                /* Into the buffer that the turn before last has read. */
                const u32 free_buffer = slice >= begin ? STAGE - buffer : buffer;
                copy_quad(buffers + free_buffer + A_SIZE + (b_row + i * B_STEP) * BN + b_col * 4,
                          b + i * (B_STEP * KPAD));
#else
                b_next[i] = LOAD4(b + i * (B_STEP * KPAD));
#endif
            }
        }
        if (slice >= begin && (TEAMS == 1 || slice < end)) {
            const float *a = buffers + buffer;
            const float *b = buffers + buffer + A_SIZE;
#pragma unroll
            for (int k = 0; k < BK; k++) {
                float av[TM], bv[TN];
#pragma unroll
                for (int i = 0; i < TM; i += 4) {
                    const u32 at = ROW(m0, i / 4 * ROW_GAP, k / 4);
                    const float4 v = *(const float4 *)(a + k * BM + at);
                    av[i] = v.x, av[i + 1] = v.y, av[i + 2] = v.z, av[i + 3] = v.w;
                }
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    const float4 v = *(const float4 *)(b + k * BN + n0 + j / 4 * COL_GAP);
                    bv[j] = v.x, bv[j + 1] = v.y, bv[j + 2] = v.z, bv[j + 3] = v.w;
                }
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++)
                        acc[i][j] = fmaf(av[i], bv[j], acc[i][j]);
            }
            buffer = STAGE - buffer;
        }
        if (more) {
            float *a = buffers + buffer;
#pragma unroll
            for (int i = 0; i < A_QUADS; i++) {
                float *to = a + a_kq * 4 * BM + ROW(a_row, i * A_STEP, a_kq);
                to[0] = a_next[i].x, to[BM] = a_next[i].y;
                to[2 * BM] = a_next[i].z, to[3 * BM] = a_next[i].w;
            }
#if ASYNC
            asm volatile("cp.async.wait_all;" ::: "memory");
#else
#pragma unroll
            for (int i = 0; i < B_QUADS; i++)
                *(float4 *)(a + A_SIZE + (b_row + i * B_STEP) * BN + b_col * 4) = b_next[i];
#endif
        }
        __syncthreads();
    }

#if TEAMS > 1
    float4 *sums = (float4 *)tile + tid; /* one quad of every thread after the other */
    if (team > 0) {
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                sums[(team - 1) * (BM * BN / 4) + (i * TN + j) / 4 * TEAM] =
                    make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
    }
    __syncthreads();
    if (team == 0) {
#pragma unroll
        for (int z = 0; z < TEAMS - 1; z++)
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    const float4 v = sums[z * (BM * BN / 4) + (i * TN + j) / 4 * TEAM];
                    acc[i][j] += v.x, acc[i][j + 1] += v.y;
                    acc[i][j + 2] += v.z, acc[i][j + 3] += v.w;
                }
    }
#endif

#if SPLITK > 1
    /* Partial sums, one quad of every thread after the other. */
    float4 *parts = (float4 *)(scratch + (gridDim.x + 63) / 64 * 64) +
                    (u64)blockIdx.x * (SPLITK * BM * BN / 4) + tid;
    if (team == 0) {
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                __stcg(parts + part * (BM * BN / 4) + (i * TN + j) / 4 * TEAM,
                       make_float4(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]));
    }
    __threadfence();
    __syncthreads();
    int *ticket = (int *)tile;
    int *counter = (int *)scratch + blockIdx.x;
    if (team == 0 && tid == 0) *ticket = atomicAdd(counter, 1);
    __syncthreads();
    if (*ticket != SPLITK - 1 || team > 0) return;
    __threadfence();
    if (team == 0 && tid == 0) *counter = 0;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            acc[i][j] = 0.0f;
#pragma unroll 2
    for (int z = 0; z < SPLITK; z++)
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 v = __ldcg(parts + z * (BM * BN / 4) + (i * TN + j) / 4 * TEAM);
                acc[i][j] += v.x, acc[i][j + 1] += v.y;
                acc[i][j + 2] += v.z, acc[i][j + 3] += v.w;
            }
#endif

    if (team > 0) return;
        /* Epilogue: out is [rows][KS], so a row's place needs no division. */
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        const u32 k = tile_n * BN + n0 + j / 4 * COL_GAP;
        if (k >= KS) continue;
        const float4 add = *(const float4 *)(bias + k);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const u64 row = row0 + m0 + i / 4 * ROW_GAP + i % 4;
            if (row >= rows) continue;
            float4 v = make_float4(acc[i][j] + add.x, acc[i][j + 1] + add.y, acc[i][j + 2] + add.z,
                                   acc[i][j + 3] + add.w);
            if (flags & FLAG_RESIDUAL) {
                const float4 w = LOAD4(residual + row * KS + k);
                v.x += w.x, v.y += w.y, v.z += w.z, v.w += w.w;
            }
            if (flags & FLAG_RELU) {
                v.x = v.x < 0.0f ? 0.0f : v.x, v.y = v.y < 0.0f ? 0.0f : v.y;
                v.z = v.z < 0.0f ? 0.0f : v.z, v.w = v.w < 0.0f ? 0.0f : v.w;
            }
#if ACT >= 2
            v.x = ACTIVATE(v.x), v.y = ACTIVATE(v.y), v.z = ACTIVATE(v.z), v.w = ACTIVATE(v.w);
#if ACT == 3 && K != KS /* of zero it is not zero, which padding must be */
            v.x = k < K ? v.x : 0.0f, v.y = k + 1 < K ? v.y : 0.0f;
            v.z = k + 2 < K ? v.z : 0.0f, v.w = k + 3 < K ? v.w : 0.0f;
#endif
#endif
            STORE4(out + row * KS + k, v);
        }
    }
}
