/* conv_wgmma: convolution + bias [+ residual] [+ ReLU] as an implicit matrix product on the
 * warpgroup matrix instructions (wgmma) of NVIDIA compute capability 9.0; fp16, bf16 or tf32
 * operands, fp32 sums.
 * NVIDIA's OpenCL has no target with these instructions: they stand behind HIDE, as comments to its
 * compiler, and the program takes the mark out of the built text and raises its target.
 *
 * Rows of the product are output pixels (all images in one long line), columns are output channels,
 * depth is channels times window taps. A group makes a BM x BN tile; a warpgroup (4 warps) WM rows
 * of it, 64 at an instruction, over all BN columns. Everything in local memory is rows of 128
 * bytes, pieces of 16 bytes exchanged within a row (piece c of row i lies at c ^ (i & 7)): ldmatrix
 * meets no bank twice so, and it is wgmma's 128-byte swizzle. A chunk is the 128 bytes of channels
 * that are in such a row; a depth step is one tap of one chunk, four instructions deep.
 *
 * The pixels are the operand in registers, by ldmatrix, because each lane names its own row there:
 * HALO = 1 (windows that keep the image's size): for a chunk, the input pixels of the whole tile
 * with the image rows around it are one contiguous line of memory. It is loaded once; each tap of
 * the window reads it shifted by r * W + s rows, and a row that the tap finds outside its image is
 * read from a row of zeros instead. HALO = 0 (any window and step): every tap of every chunk
 * gathers its own BM rows, zeros outside. With C2 defined, second is in2, and its 1x1 convolution
 * with step STRIDE2 is more depth behind the window's: the residual of a block whose shape changes,
 * never stored. Without, it is the stored residual.
 *
 * The weights are the operand in local memory, read where cp.async put them. They come packed as
 * [column tile][depth step][BN][128 bytes], pieces exchanged already. STAGES - 2 steps of loads are
 * in flight: one stage is being read, and one more may be, by products that nobody has waited for.
 * Each 32 bytes of depth are a commit group of their own, and the registers of its pixels are
 * written again only when it is done, three groups later.
 *
 * Results pass through local memory so that a work-item reads residuals and writes results 8
 * channels at a time. tf32 results are rounded to tf32, because the next layer's product would cut
 * them off. Group: BM / WM * 128 work-items. Grid: x = row tiles * column tiles with the column
 * tile fastest. Must not: write outside out. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of the chunk */
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
#define KS 64 /* output channel stride, >= K, a multiple of 8 */
#endif
#ifndef P
#define P 1 /* output height */
#endif
#ifndef Q
#define Q 1 /* output width */
#endif
#ifndef R
#define R 1 /* window height, at most 15 */
#endif
#ifndef S
#define S 1 /* window width, at most 15; R * S at most 31 with HALO */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window in both directions */
#endif
#ifndef PAD
#define PAD 0 /* border of zeros in both directions */
#endif
#ifdef C2
#define TAILS (CS2 * ELEMENT / ROWB) /* chunks of in2 */
#else
#define TAILS 0
#define CS2 1
#define H2 1
#define W2 1
#define STRIDE2 1
#endif
#ifndef BM
#define BM 128 /* rows of a group's tile */
#endif
#ifndef BN
#define BN 64 /* columns of a group's tile: 64, 128 or 256 */
#endif
#ifndef WM
#define WM 64 /* rows of a warpgroup's tile: 64 or 128 */
#endif
#ifndef STAGES
#define STAGES 4 /* depth steps in local memory, at least 3 */
#endif
#ifndef HALO
#define HALO 0 /* 1: the window's taps share one line of input pixels */
#endif
#ifndef PRECISION
#define PRECISION 3 /* lap_precision: 2 tf32, 3 fp16, 4 bf16 */
#endif

#if PRECISION == 2
#define ELEMENT 4
#define WGMMA_TYPE "k8.f32.tf32.tf32"
#define WGMMA_ORDER ""
#elif PRECISION == 3
#define ELEMENT 2
#define WGMMA_TYPE "k16.f32.f16.f16"
#define WGMMA_ORDER ", 0" /* columns of the weights are rows of local memory */
#elif PRECISION == 4
#define ELEMENT 2
#define WGMMA_TYPE "k16.f32.bf16.bf16"
#define WGMMA_ORDER ", 0"
#else
#error "this kernel computes in tf32, fp16 and bf16 only"
#endif

#define ROWB 128
#define MI (WM / 64)
#define NI (BN / 8)
#define THREADS (BM / WM * 128)
#define WARPS (THREADS / 32)
#define ROW_STEP (THREADS / 8) /* rows between two loads of a thread */
#define CHUNK (ROWB / ELEMENT)
#define CHUNKS (CS / CHUNK)
#if HALO
#define TAPS (R * S)
#define BORDER (PAD * W + PAD) /* pixels of the line before and behind the tile's own */
#define STEPS (CHUNKS * TAPS + TAILS)
#define A_BUFFERS (CHUNKS + TAILS > 1 ? 2 : 1)
#else
#define TAPS 1
#define BORDER 0
#define STEPS (R * S * CHUNKS)
#define A_BUFFERS STAGES
#endif
#define A_ROWS (BM + 2 * BORDER)
#define A_BYTES (A_ROWS * ROWB)
#define B_BYTES (BN * ROWB)
#define TILES_N ((KS + BN - 1) / BN)
#define TAIL_TAP 31 /* bit that is set in every row's mask */
/* Place of everything in local memory: stages of weights (multiples of 1024 bytes, of which the
 * swizzle counts), a row of zeros, lines of input; all of it is used again for the warps' results,
 * 16 rows at a time. */
#define ZEROS (STAGES * B_BYTES)
#define A_BASE (ZEROS + ROWB)
#define STAGE_ROW (BN + 8) /* floats; 8 more than needed against bank conflicts */
#define LOOP_BYTES (A_BASE + A_BUFFERS * A_BYTES)
#define RESULT_BYTES (WARPS * 16 * STAGE_ROW * 4)
#define SHARED_BYTES (LOOP_BYTES > RESULT_BYTES ? LOOP_BYTES : RESULT_BYTES)
#define EXCHANGE(i) ((i)&7)
#define FLAG_RELU 1
#define FLAG_RESIDUAL 2

#include "ptx.clh"
#include "wgmma.clh"

#if BN == 64
#define SUM_NAMES SUM_NAMES_32
#define SUM_LIST(c) SUM16(c, 0), SUM16(c, 4)
#define WGMMA_SHAPE "m64n64"
#define A_NAMES "{%32, %33, %34, %35}, %36"
#define ONE_NAME "%37"
#elif BN == 128
#define SUM_NAMES SUM_NAMES_64
#define SUM_LIST(c) SUM64(c, 0)
#define WGMMA_SHAPE "m64n128"
#define A_NAMES "{%64, %65, %66, %67}, %68"
#define ONE_NAME "%69"
#elif BN == 256
#define SUM_NAMES SUM_NAMES_128
#define SUM_LIST(c) SUM64(c, 0), SUM64(c, 16)
#define WGMMA_SHAPE "m64n256"
#define A_NAMES "{%128, %129, %130, %131}, %132"
#define ONE_NAME "%133"
#else
#error "BN must be 64, 128 or 256"
#endif
/* c += a * the weights at descriptor b; runs on after this. */
#define WGMMA(c, a, b)                                                                             \
    __asm__ volatile(HIDE "{.reg .pred add; setp.ne.u32 add, " ONE_NAME                            \
                          ", 0; wgmma.mma_async.sync.aligned." WGMMA_SHAPE WGMMA_TYPE              \
                          " {" SUM_NAMES "}, " A_NAMES ", add, 1, 1" WGMMA_ORDER ";}"              \
                     : SUM_LIST(c)                                                                 \
                     : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "l"(b), "r"(1))

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void
conv_wgmma(__global const void *restrict in, __global const void *restrict weights,
           __global const float *restrict bias, __global const void *restrict second,
           __global void *restrict out, const int n, const int flags) {
    __local char shared[SHARED_BYTES] __attribute__((aligned(1024)));
    const u32 tid = get_local_id(0), lane = tid & 31, warp = tid >> 5;
    const u32 tile_n = get_group_id(0) % TILES_N, tile_m = get_group_id(0) / TILES_N;
    const u64 rows = (u64)n * (P * Q);
    const u64 row0 = (u64)tile_m * BM;
    const u32 image0 = (u32)(row0 / (P * Q));
    const u32 pixel0 = (u32)(row0 - (u64)image0 * (P * Q));
    const u32 base = (u32)(size_t)shared;

    /* What this work-item loads: piece `piece` of rows load_row + i * ROW_STEP. */
    const u32 piece = tid % 8, load_row = tid / 8;
    const u32 load_to = load_row * ROWB + ((piece ^ EXCHANGE(load_row)) << 4);
    __global const char *b_from =
        (__global const char *)weights + (u64)tile_n * ((u64)STEPS * B_BYTES) + tid * 16;
#if HALO
    const int first = (int)row0 - BORDER + (int)load_row; /* pixel of this work-item's first row */
    __global const char *a_from =
        (__global const char *)in + (long)first * (CS * ELEMENT) + piece * 16;
    int load_tap = 0;
    u32 load_buffer = 0;
#else
#define A_PIECES (BM / ROW_STEP)
    __global const char *a_from =
        (__global const char *)in + (u64)image0 * ((u64)H * W * CS * ELEMENT) + piece * 16;
    int a_offset[A_PIECES];
    u32 valid[A_PIECES]; /* bit r: window row r lies inside the image; bit 16 + s: column s */
#pragma unroll
    for (int i = 0; i < A_PIECES; i++) {
        const u32 t = pixel0 + load_row + i * ROW_STEP;
        const u32 image = t / (P * Q), pixel = t % (P * Q);
        const int y = (int)(pixel / Q) * STRIDE - PAD, x = (int)(pixel % Q) * STRIDE - PAD;
        u32 bits = 0;
#pragma unroll
        for (int r = 0; r < R; r++)
            bits |= (u32)(y + r) < H ? 1u << r : 0;
#pragma unroll
        for (int s = 0; s < S; s++)
            bits |= (u32)(x + s) < W ? 0x10000u << s : 0;
        valid[i] = image0 + image < (u32)n ? bits : 0;
        a_offset[i] = (int)(image * (H * W) + y * W + x) * (CS * ELEMENT);
    }
#endif

    /* What this lane names to ldmatrix: a row of the input. */
    const u32 m0 = warp / 4 * WM + warp % 4 * 16;
    const u32 a_row = m0 + (lane & 15), a_half = lane >> 4;
    const u64 b_first = DESCRIPTOR | base >> 4;
#if HALO
    u32 inside[MI]; /* bit r * S + s: that tap of the row lies inside its image */
    u32 tap = 0, tap_s = 0, shift = 0, a_buffer = 0;
    /* ldmatrix must find the zeros that this store leaves: no compiler may drop it. */
    if (tid < 32)
        __asm__ volatile("st.shared.u32 [%0], %1;" ::"r"(base + ZEROS + tid * 4), "r"(0)
                         : "memory");
#endif

    float acc[MI][NI][4];
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int j = 0; j < NI; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                acc[i][j][e] = 0.0f;

    /* The first turns, below 0, only load. */
    u32 stage = 0, load_stage = 0;
    for (int step = 2 - STAGES; step < STEPS; step++) {
        if (step >= 0) {
#if TAILS > 1 && STAGES > 3
            if (step > STEPS - TAILS)
                COPY_WAIT(0); /* lines of in2 are only one step ahead */
            else
#endif
                COPY_WAIT(STAGES - 3);
            SHOW_COPIES();
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const int next = step + STAGES - 2;
        if (next < STEPS) {
            const u32 b_to = base + load_stage * B_BYTES + tid * 16;
#pragma unroll
            for (int i = 0; i < B_BYTES / 16; i += THREADS)
                if (B_BYTES / 16 % THREADS == 0 || i + tid < B_BYTES / 16)
                    COPY16(b_to + i * 16, b_from + i * 16, 16);
            b_from += B_BYTES;
#if HALO
            if (load_tap == 0 && next < STEPS - TAILS) {
                const u32 to = base + A_BASE + load_buffer * A_BYTES + load_to;
#pragma unroll 4
                for (int i = 0; i < (A_ROWS + ROW_STEP - 1) / ROW_STEP; i++) {
                    if (A_ROWS % ROW_STEP != 0 && load_row + i * ROW_STEP >= A_ROWS) break;
                    const bool real = (u32)(first + i * ROW_STEP) < (u32)rows;
                    COPY16(to + i * (ROW_STEP * ROWB),
                           real ? a_from + i * (ROW_STEP * CS * ELEMENT)
                                : (__global const char *)in,
                           real ? 16 : 0);
                }
                a_from += ROWB;
                load_buffer ^= A_BUFFERS - 1;
            }
            load_tap = load_tap + 1 == TAPS ? 0 : load_tap + 1;
#else
            const u32 t = (u32)next / CHUNKS, r = t / S, s = t % S;
            const int offset = (int)((r * W + s) * (CS * ELEMENT) + (u32)next % CHUNKS * ROWB);
            const u32 to = base + A_BASE + load_stage * A_BYTES + load_to;
#pragma unroll
            for (int i = 0; i < A_PIECES; i++) {
                const bool real = (valid[i] >> r & valid[i] >> (16 + s) & 1) != 0;
                COPY16(to + i * (ROW_STEP * ROWB),
                       real ? a_from + (a_offset[i] + offset) : (__global const char *)in,
                       real ? 16 : 0);
            }
#endif
            load_stage = load_stage + 1 == STAGES ? 0 : load_stage + 1;
        }
#if TAILS > 0
        /* in2's first line is loaded STAGES - 2 steps ahead, like weights; the others one step,
         * when the buffer of the step before is free. */
        const int tail = step >= STEPS - TAILS   ? step + 1 - (STEPS - TAILS)
                         : next == STEPS - TAILS ? 0
                                                 : -1;
        if (tail >= 0 && tail < TAILS) {
            const u32 to = base + A_BASE + load_buffer * A_BYTES + load_to;
#pragma unroll
            for (int i = 0; i < BM / ROW_STEP; i++) {
                const u32 t = pixel0 + load_row + i * ROW_STEP;
                const u32 image = image0 + t / (P * Q), pixel = t % (P * Q);
                const bool real = image < (u32)n;
                const u64 at = (u64)image * (H2 * W2) + (pixel / Q * W2 + pixel % Q) * STRIDE2;
                COPY16(to + i * (ROW_STEP * ROWB),
                       (__global const char *)second +
                           (real ? at * (CS2 * ELEMENT) + tail * ROWB + piece * 16 : 0),
                       real ? 16 : 0);
            }
            load_buffer ^= 1;
        }
#endif
        COPY_COMMIT();
#if HALO
        if (step == 2 - STAGES) { /* while the first loads travel */
#pragma unroll
            for (int i = 0; i < MI; i++) {
                const u32 t = pixel0 + a_row + i * 64, pixel = t % (P * Q);
                const int y = (int)(pixel / Q) - PAD, x = (int)(pixel % Q) - PAD;
                u32 bits = 0;
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int s = 0; s < S; s++)
                        bits |= (u32)(y + r) < H && (u32)(x + s) < W ? 1u << (r * S + s) : 0;
                inside[i] = (row0 + a_row + i * 64 < rows ? bits : 0) | 1u << TAIL_TAP;
            }
        }
#endif
        if (step < 0) continue;

        u32 a_at[MI];
#if HALO
        {
            const u32 row = a_row + shift;
            const u32 at =
                base + A_BASE + a_buffer * A_BYTES + row * ROWB + ((EXCHANGE(row) ^ a_half) << 4);
#pragma unroll
            for (int i = 0; i < MI; i++)
                a_at[i] =
                    inside[i] >> tap & 1 ? at + i * (64 * ROWB) : base + ZEROS + (a_half << 4);
        }
#else
#pragma unroll
        for (int i = 0; i < MI; i++)
            a_at[i] = base + A_BASE + stage * A_BYTES + (a_row + i * 64) * ROWB +
                      ((EXCHANGE(a_row) ^ a_half) << 4);
#endif
        const u64 b_now = b_first + stage * (B_BYTES / 16);
        u32 a[4][MI][4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            WGMMA_WAIT(3); /* who read a[k] before is done */
#pragma unroll
            for (int i = 0; i < MI; i++)
                LOAD_MATRICES(a[k][i], a_at[i] ^ k * 32);
            WGMMA_FENCE();
#pragma unroll
            for (int i = 0; i < MI; i++)
                WGMMA(acc[i], a[k][i], b_now + k * 2);
            WGMMA_COMMIT();
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
#if HALO
        /* The next tap; behind the window's last one the next line, and in2's have a single tap. */
        tap++;
        tap_s++;
        shift++;
        if (tap_s == S) tap_s = 0, shift += W - S;
        if (tap == TAPS || step >= STEPS - TAILS)
            tap = tap_s = shift = 0, a_buffer ^= A_BUFFERS - 1;
#if TAILS > 0
        if (step + 1 >= STEPS - TAILS) tap = TAIL_TAP;
#endif
#endif
    }
    WGMMA_WAIT(0);
#pragma unroll
    for (int i = 0; i < MI; i++)
        SUMS_DONE(acc[i]);
    COPY_WAIT(0);

    /* Epilogue, 16 rows of a warp at a time, 8 channels of a row a work-item. out is [rows][KS], so
     * a row's place needs no division. Residuals are fetched a part of the 16 rows ahead. */
#define ROW_PIECES (BN / 8)
#define ITEMS (16 * ROW_PIECES / 32)
    const u32 at = lane % ROW_PIECES * 8, k = tile_n * BN + at;
    const u64 row_first = row0 + m0 + lane / ROW_PIECES;
    float add[8];
#pragma unroll
    for (int f = 0; f < 8; f++)
        add[f] = k < KS ? bias[k + f] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float *lines = (__local float *)shared + warp * (16 * STAGE_ROW);
#pragma unroll
    for (int i = 0; i < MI; i++) {
#if TAILS == 0
        const bool has_second = (flags & FLAG_RESIDUAL) != 0 && k < KS;
        uint4 ahead[ITEMS][ELEMENT / 2];
#pragma unroll
        for (int e = 0; e < ITEMS; e++) {
            const u64 row = row_first + i * 64 + e * (32 / ROW_PIECES);
            if (has_second && row < rows)
#pragma unroll
                for (int f = 0; f < ELEMENT / 2; f++)
                    ahead[e][f] = ((__global const uint4 *)((__global const char *)second +
                                                            (row * KS + k) * ELEMENT))[f];
        }
#endif
        WARP_BARRIER();
#pragma unroll
        for (int j = 0; j < NI; j++) {
            __local float2 *to =
                (__local float2 *)(lines + (lane >> 2) * STAGE_ROW + j * 8 + (lane & 3) * 2);
            to[0] = (float2)(acc[i][j][0], acc[i][j][1]);
            to[4 * STAGE_ROW] = (float2)(acc[i][j][2], acc[i][j][3]);
        }
        WARP_BARRIER();
#pragma unroll
        for (int e = 0; e < ITEMS; e++) {
            const u32 r = e * (32 / ROW_PIECES) + lane / ROW_PIECES;
            const u64 row = row_first + i * 64 + e * (32 / ROW_PIECES);
            if (row >= rows || k >= KS) continue;
            float v[8];
            const float4 low = *(__local const float4 *)(lines + r * STAGE_ROW + at);
            const float4 high = *(__local const float4 *)(lines + r * STAGE_ROW + at + 4);
            v[0] = low.x + add[0], v[1] = low.y + add[1];
            v[2] = low.z + add[2], v[3] = low.w + add[3];
            v[4] = high.x + add[4], v[5] = high.y + add[5];
            v[6] = high.z + add[6], v[7] = high.w + add[7];
#if TAILS == 0
            if (flags & FLAG_RESIDUAL) {
#pragma unroll
                for (int f = 0; f < ELEMENT / 2; f++) {
                    const uint4 w = ahead[e][f];
#if ELEMENT == 4
                    v[f * 4] += as_float(w.x), v[f * 4 + 1] += as_float(w.y);
                    v[f * 4 + 2] += as_float(w.z), v[f * 4 + 3] += as_float(w.w);
#else
                    float l, h;
                    UNPACK2(w.x, l, h);
                    v[0] += l, v[1] += h;
                    UNPACK2(w.y, l, h);
                    v[2] += l, v[3] += h;
                    UNPACK2(w.z, l, h);
                    v[4] += l, v[5] += h;
                    UNPACK2(w.w, l, h);
                    v[6] += l, v[7] += h;
#endif
                }
            }
#endif
            if (flags & FLAG_RELU) {
#pragma unroll
                for (int f = 0; f < 8; f++)
                    v[f] = v[f] < 0.0f ? 0.0f : v[f];
            }
#if ELEMENT == 4
#pragma unroll
            for (int f = 0; f < 8; f++)
                ROUND_TF32(v[f]);
            __global float4 *to = (__global float4 *)((__global char *)out + (row * KS + k) * 4);
            to[0] = (float4)(v[0], v[1], v[2], v[3]);
            to[1] = (float4)(v[4], v[5], v[6], v[7]);
#else
            uint4 both;
            PACK2(both.x, v[0], v[1]);
            PACK2(both.y, v[2], v[3]);
            PACK2(both.z, v[4], v[5]);
            PACK2(both.w, v[6], v[7]);
            *(__global uint4 *)((__global char *)out + (row * KS + k) * ELEMENT) = both;
#endif
        }
    }
}
