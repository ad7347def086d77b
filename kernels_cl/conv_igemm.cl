/* conv_igemm: convolution + bias [+ residual] [+ activation] as an implicit matrix product, fp32
 * FMA of what is stored: floats, halves or bfloat16.
 *
 * Rows of the product are output pixels (all images in one long line), columns are output
 * channels, depth is (r, s, c). A group makes a BM x BN tile: slices of BK of both operands go
 * through two local buffers, the next slice is fetched into registers while the present one is
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
 * Group: (BM / TM) * (BN / TN) * TEAMS work-items, in one dimension. Grid: x = row tiles * column
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
#define LOAD4(p) (*(__global const float4 *)(p))
#elif PRECISION == 3
typedef half stored;
#define LOAD4(p) vloada_half4(0, p)
#define STORE4(p, v) vstorea_half4_rte(v, 0, (__global half *)(p))
#elif PRECISION == 4
typedef ushort stored;
#define LOAD4(p) as_float4(convert_uint4(*(__global const ushort4 *)(p)) << 16)
#define STORE4(p, v) (*(__global ushort4 *)(p) = narrow4(v))
/* To nearest, ties to even; infinity and NaN stay. */
__attribute__((always_inline)) static ushort4 narrow4(float4 v) {
    const uint4 bits = as_uint4(v), even = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const uint4 special = bits >> 16 | select((uint4)(0), (uint4)(0x40u), (bits & 0x7fffffu) != 0u);
    return convert_ushort4(select(even, special, (bits & 0x7f800000u) == 0x7f800000u));
}
#else
#error "no storage of this precision here"
#endif
#if PRECISION == 0 || LOGITS
#undef STORE4
#define STORE4(p, v) (*(__global float4 *)(p) = (v))
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
#if ACT == 2
#define ACTIVATE(v) ((v) / (1.0f + exp(-(v))))
#elif ACT == 3
#define ACTIVATE(v) (1.0f / (1.0f + exp(-(v))))
#endif
#define FLAG_RELU 1
#define FLAG_RESIDUAL 2
/* Orders this group's scratch accesses as seen by other groups. OpenCL 1.2 promises nothing between
 * groups of one launch; mem_fence and volatile accesses do it on the devices known, and where the
 * compiler has a fence of device scope, that is taken. */
#if defined(__NV_CL_C_VERSION)
#define DEVICE_FENCE() __asm__ volatile("membar.gl;" ::: "memory")
#elif defined(__AMDGCN__)
#define DEVICE_FENCE() __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent")
#else
#define DEVICE_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void
conv_igemm(__global const stored *restrict in, __global const stored *restrict weights,
           __global const float *restrict bias, __global const stored *restrict residual,
           __global result *restrict out, __global float *scratch,
           __global const stored *restrict in2, const int n, const int flags) {
    __local float tile[TILE_FLOATS] __attribute__((aligned(128)));
    const uint team = TEAMS > 1 ? get_local_id(0) / TEAM : 0;
    const uint tid = TEAMS > 1 ? get_local_id(0) % TEAM : get_local_id(0);
    const uint group = get_group_id(0), tile_n = group % TILES_N, tile_m = group / TILES_N;
    const uint part = get_group_id(1);
    const ulong rows = (ulong)n * (P * Q);
    const ulong row0 = (ulong)tile_m * BM;
    const uint image0 = (uint)(row0 / (P * Q));
    const uint pixel0 = (uint)(row0 - (ulong)image0 * (P * Q));

    /* What this thread fetches: quad a_kq of rows a_row + i * A_STEP; quad b_col of depths b_row +
     * i * B_STEP. Bit r of valid: window row r lies inside the image; bit 16 + s: column s. */
    const uint a_kq = tid % KQ, a_row = tid / KQ;
    const uint b_col = tid % (BN / 4), b_row = tid / (BN / 4);
    __global const stored *image_base = in + (ulong)image0 * ((ulong)H * W * CS);
    uint a_base[A_QUADS]; /* offsets from image_base, modulo 2^32 */
    uint valid[A_QUADS];
#if SCALED
    uint factor_base[A_QUADS];
#endif
#pragma unroll
    for (int i = 0; i < A_QUADS; i++) {
        const uint t = pixel0 + a_row + i * A_STEP;
        const uint image = image0 + t / (P * Q), pixel = t % (P * Q);
        const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
        uint bits = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            bits |= (uint)(y + r) < H ? 1u << r : 0;
#pragma unroll
        for (int s = 0; s < S; s++)
            bits |= (uint)(x + s) < W ? 0x10000u << s : 0;
        valid[i] = image < (uint)n ? bits : 0;
        a_base[i] = (image - image0) * (uint)(H * W * CS) + (uint)((y * W + x) * CS) + a_kq * 4;
#if SCALED
        factor_base[i] = image * CS + a_kq * 4;
#endif
    }
    const uint b_base = b_row * KPAD + tile_n * BN + b_col * 4;

    /* Place of this thread's tile. Neighbouring threads alternate between both directions, so that
     * equal addresses of a shared load are next to each other. */
    const uint lane = tid % 32, warp = tid / 32;
    const uint m0 = (warp % (THREADS_M / 8) * 8 + (lane >> 1 & 1) + (lane >> 3) * 2) * 4;
    const uint n0 = (warp / (THREADS_M / 8) * 4 + (lane & 1) + (lane >> 2 & 1) * 2) * 4;

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
    float4 a_next[A_QUADS], b_next[B_QUADS];
    __local float *const buffers = tile + team * (2 * STAGE);
    uint buffer = 0; /* 0 or STAGE */
    for (int slice = begin - 1; slice < last; slice++) {
        /* Fetch the next slice; the first turn only does this. */
        const bool more = slice + 1 < end;
        if (more) {
#if C2 > 0
            if (slice + 1 == max(begin, SLICES_OWN)) { /* from here on the partner's input */
                image_base = in2 + (ulong)image0 * ((ulong)H2 * W2 * CS2);
#pragma unroll
                for (int i = 0; i < A_QUADS; i++) {
                    const uint t = pixel0 + a_row + i * A_STEP;
                    const uint image = t / (P * Q), pixel = t % (P * Q);
                    valid[i] = image0 + image < (uint)n ? 0x10001u : 0;
                    a_base[i] = image * (uint)(H2 * W2 * CS2) + a_kq * 4 +
                                (pixel / Q * W2 + pixel % Q) * (STRIDE2 * CS2);
                }
            }
            const bool own = slice + 1 < SLICES_OWN;
#else
            const bool own = true;
#endif
#if CS % BK == 0
            const uint tap = (uint)(slice + 1) / (CS / BK);
            const uint c = (uint)(slice + 1) % (CS / BK) * BK;
#else
            const uint depth = (uint)(slice + 1) * BK + a_kq * 4;
            const uint tap = depth / CS, c = depth % CS - a_kq * 4; /* modulo 2^32 */
#endif
            const uint r = own ? tap / S : 0, s = own ? tap % S : 0;
            const uint c2 = (uint)(slice + 1 - SLICES_OWN) * BK;
            const uint offset = own ? (r * W + s) * CS + c : c2;
#pragma unroll
            for (int i = 0; i < A_QUADS; i++) {
                bool inside = (valid[i] >> r & valid[i] >> (16 + s) & 1) != 0;
#if DEPTH % BK != 0
                if (own) inside = inside && tap < R * S;
#endif
#if CS2 % BK != 0
                if (!own) inside = inside && c2 + a_kq * 4 < CS2;
#endif
                a_next[i] = (float4)(0.0f, 0.0f, 0.0f, 0.0f);
                if (inside)
                    a_next[i] = LOAD4(image_base + (a_base[i] + offset));
#if SCALED
                if (inside) a_next[i] *= LOAD4(in2 + (factor_base[i] + offset));
#endif
            }
            __global const stored *b = weights + (b_base + (uint)(slice + 1) * (BK * KPAD));
#pragma unroll
            for (int i = 0; i < B_QUADS; i++)
                b_next[i] = LOAD4(b + i * (B_STEP * KPAD));
        }
#if TEAMS == 1
        if (slice >= begin) {
#else
        if (slice >= begin && slice < end) {
#endif
            __local const float *a = buffers + buffer;
            __local const float *b = buffers + buffer + A_SIZE;
#pragma unroll
            for (int k = 0; k < BK; k++) {
                float av[TM], bv[TN];
#pragma unroll
                for (int i = 0; i < TM; i += 4) {
                    const uint at = ROW(m0, i / 4 * ROW_GAP, k / 4);
                    const float4 v = *(__local const float4 *)(a + k * BM + at);
                    av[i] = v.x, av[i + 1] = v.y, av[i + 2] = v.z, av[i + 3] = v.w;
                }
#pragma unroll
                for (int j = 0; j < TN; j += 4) {
                    const float4 v = *(__local const float4 *)(b + k * BN + n0 + j / 4 * COL_GAP);
                    bv[j] = v.x, bv[j + 1] = v.y, bv[j + 2] = v.z, bv[j + 3] = v.w;
                }
#pragma unroll
                for (int i = 0; i < TM; i++)
#pragma unroll
                    for (int j = 0; j < TN; j++)
                        acc[i][j] = fma(av[i], bv[j], acc[i][j]);
            }
            buffer = STAGE - buffer;
        }
        if (more) {
            __local float *a = buffers + buffer, *b = buffers + buffer + A_SIZE;
#pragma unroll
            for (int i = 0; i < A_QUADS; i++) {
                __local float *to = a + a_kq * 4 * BM + ROW(a_row, i * A_STEP, a_kq);
                to[0] = a_next[i].x, to[BM] = a_next[i].y;
                to[2 * BM] = a_next[i].z, to[3 * BM] = a_next[i].w;
            }
#pragma unroll
            for (int i = 0; i < B_QUADS; i++)
                *(__local float4 *)(b + (b_row + i * B_STEP) * BN + b_col * 4) = b_next[i];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

#if TEAMS > 1
    __local float4 *sums =
        (__local float4 *)tile + tid; /* one quad of every thread after the other */
    if (team > 0) {
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                sums[(team - 1) * (BM * BN / 4) + (i * TN + j) / 4 * TEAM] =
                    (float4)(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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
    volatile __global float4 *parts =
        (volatile __global float4 *)(scratch + (get_num_groups(0) + 63) / 64 * 64) +
        (ulong)group * (SPLITK * BM * BN / 4) + tid;
    if (team == 0) {
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j += 4)
                parts[part * (BM * BN / 4) + (i * TN + j) / 4 * TEAM] =
                    (float4)(acc[i][j], acc[i][j + 1], acc[i][j + 2], acc[i][j + 3]);
    }
    DEVICE_FENCE();
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    __local int *ticket = (__local int *)tile;
    volatile __global int *counter = (volatile __global int *)scratch + group;
    if (team == 0 && tid == 0) *ticket = atomic_inc(counter);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (*ticket != SPLITK - 1 || team > 0) return;
    DEVICE_FENCE();
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
                const float4 v = parts[z * (BM * BN / 4) + (i * TN + j) / 4 * TEAM];
                acc[i][j] += v.x, acc[i][j + 1] += v.y;
                acc[i][j + 2] += v.z, acc[i][j + 3] += v.w;
            }
#endif

    if (team > 0) return;
        /* Epilogue: out is [rows][KS], so a row's place needs no division. */
#pragma unroll
    for (int j = 0; j < TN; j += 4) {
        const uint k = tile_n * BN + n0 + j / 4 * COL_GAP;
        if (k >= KS) continue;
        const float4 add = *(__global const float4 *)(bias + k);
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const ulong row = row0 + m0 + i / 4 * ROW_GAP + i % 4;
            if (row >= rows) continue;
            float4 v = (float4)(acc[i][j] + add.x, acc[i][j + 1] + add.y, acc[i][j + 2] + add.z,
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
