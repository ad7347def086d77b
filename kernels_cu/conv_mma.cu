/* conv_mma: convolution + bias [+ residual] [+ activation] as an implicit matrix product on tensor cores
 * (mma.sync, NVIDIA compute capability 8.0 and later), fp16, bf16 or tf32 operands, fp32 sums; or
 * fp32x3: fp32 operands as two halves each, of which three products are taken.
 *
 * Rows of the product are output pixels (all images in one long line), columns are output channels,
 * depth is channels times window taps. A group makes a BM x BN tile. Everything in shared memory is
 * rows of ROWB bytes, pieces of 16 bytes exchanged within a row so that ldmatrix meets no bank
 * twice; a 32-byte step of depth is one mma (16 halves or 8 tf32), and so all precisions share
 * every address. A chunk is the ROWB bytes of channels that are in such a row.
 *
 * HALO = 1 (windows that keep the image's size): for a chunk, the input pixels of the whole tile
 * with the image rows around it are one contiguous line of memory. It is loaded once; each tap of
 * the window reads it shifted by r * W + s rows, and a row that the tap finds outside its image is
 * read from a row of zeros instead. HALO = 0 (any window and step): every tap of every chunk
 * gathers its own BM rows, zeros outside. With C2 defined, second is in2, and its 1x1 convolution
 * with step STRIDE2 is more depth behind the window's: the residual of a block whose shape changes,
 * never stored. Without, it is the stored residual.
 * With SCALED = 1 (a 1x1 window) every input channel counts times its factor of the image: a
 * thread multiplies the pieces that it has loaded itself, when they have arrived. With HALO = 0 the
 * last chunk of a tap may be partly beyond CS; zeros stand for what is missing.
 *
 * Weights come packed as [column tile][depth step][BN][ROWB], pieces exchanged already. cp.async
 * keeps STAGES - 1 steps of loads in flight. With SPLITK > 1 that many groups share a tile; partial
 * sums go to scratch and whoever takes the tile's last ticket adds them in the order of the parts
 * and puts the ticket counter back to 0. Scratch: one counter a tile (a multiple of 64 words in
 * all), which must be 0 before the first launch, then the partial sums.
 *
 * fp32x3: x = high + low / 2048, both halves; low has the magnitude of high so that it keeps its 11
 * bits. The line of floats is split where it lies, once for all taps: 8 channels become a piece of
 * high and a piece of low halves. Weights of an output channel come scaled by a power of two that
 * brings them up to 2^14, as 16 high and 16 low halves in turn (low unscaled); the factors that
 * undo it stand behind all weights, a float a column. low * (high / 2048), high * low and high *
 * high of a depth step go to a sum of their own, which is then added to the tile's in fp32
 * arithmetic: tensor cores cut bits off where they add, and that must not pile up over the depth.
 *
 * Results pass through shared memory so that a thread reads residuals and writes results 8 channels
 * at a time. tf32 results are rounded to tf32, because the next layer's mma would cut them off.
 * Without H the op is a fully connected layer whose result is the network's: stored as float.
 * Group: BM / WM * BN / WN warps. Grid: x = row tiles * column tiles with the column tile fastest,
 * y = SPLITK.
 * Must not: write outside out and scratch, use floating-point atomics. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, >= C, a multiple of 16 bytes, of the chunk with HALO or C2 */
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
#ifndef ACT
#define ACT 0 /* lap_activation of the results: 2 SiLU, 3 sigmoid, else as flags say */
#endif
#ifndef SCALED
#define SCALED 0 /* 1: input channels times the factors in `factors` */
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
#define BN 64 /* columns of a group's tile */
#endif
#ifndef WM
#define WM 64 /* rows of a warp's tile, a multiple of 16 */
#endif
#ifndef WN
#define WN 32 /* columns of a warp's tile, a multiple of 16 */
#endif
#ifndef ROWB
#define ROWB 64 /* bytes of depth in a row: 64 or 128 */
#endif
#ifndef STAGES
#define STAGES 3 /* depth steps in shared memory */
#endif
#ifndef HALO
#define HALO 0 /* 1: the window's taps share one line of input pixels */
#endif
#ifndef SPLITK
#define SPLITK 1 /* groups that share a tile, at most the chunks of the input */
#endif
#ifndef PRECISION
#define PRECISION 3 /* lap_precision: 1 fp32x3, 2 tf32, 3 fp16, 4 bf16 */
#endif

#if PRECISION == 1
#define ELEMENT 4
#define MMA_TYPE "m16n8k16.row.col.f32.f16.f16.f32"
#elif PRECISION == 2
#define ELEMENT 4
#define MMA_TYPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif PRECISION == 3
#define ELEMENT 2
#define MMA_TYPE "m16n8k16.row.col.f32.f16.f16.f32"
#elif PRECISION == 4
#define ELEMENT 2
#define MMA_TYPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#error "this kernel computes in fp32x3, tf32, fp16 and bf16 only"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "needs the matrix instructions of compute capability 8.0"
#endif

#define MI (WM / 16)
#define NI (WN / 8)
#define WARPS_M (BM / WM)
#define WARPS (WARPS_M * (BN / WN))
#define THREADS (WARPS * 32)
#define PIECES (ROWB / 16)
/* Neighbouring pieces of a row that a thread loads, and rows between two such loads. */
#define LOAD_PIECES (PRECISION == 1 ? 2 : 1)
#define ROW_STEP (THREADS / (PIECES / LOAD_PIECES))
#define CHUNK (ROWB / ELEMENT)
#if HALO
#define TAPS (R * S)
#define BORDER (PAD * W + PAD) /* pixels of the line before and behind the tile's own */
#define CHUNKS (CS / CHUNK)
#define A_BUFFERS ((CHUNKS + SPLITK - 1) / SPLITK > 1 || TAILS > 0 ? 2 : 1)
#else
#define TAPS 1
#define BORDER 0
#define TAP_CHUNKS ((CS + CHUNK - 1) / CHUNK)
#define CHUNKS (R * S * TAP_CHUNKS)
#define A_BUFFERS STAGES
#endif
#define STEPS (CHUNKS * TAPS + TAILS)
#define A_ROWS (BM + 2 * BORDER)
#define A_BYTES (A_ROWS * ROWB)
#define B_BYTES (BN * ROWB)
#define TILES_N ((KS + BN - 1) / BN)
#define TAIL_TAP 31 /* bit that is set in every row's mask */
/* Place of everything in shared memory: a row of zeros, lines of input, stages of weights; all of
 * it is used again for the warps' results, 16 rows at a time. */
#define A_BASE 128
#define B_BASE ((A_BASE + A_BUFFERS * A_BYTES + 127) / 128 * 128)
#define STAGE_ROW (WN + 8) /* floats; 8 more than needed against bank conflicts */
#define LOOP_BYTES (B_BASE + STAGES * B_BYTES)
#define RESULT_BYTES (WARPS * 16 * STAGE_ROW * 4)
#define SHARED_BYTES (LOOP_BYTES > RESULT_BYTES ? LOOP_BYTES : RESULT_BYTES)
/* Piece c of row i lies at piece c ^ EXCHANGE(i). */
#if ROWB == 128
#define EXCHANGE(i) ((i)&7)
#else
#define EXCHANGE(i) ((i) >> 1 & 3)
#endif
/* Registers a thread should get away with, hence groups a multiprocessor should hold. */
#define SUMS (MI * NI * 4 * (PRECISION == 1 ? 2 : 1))
#define REGISTERS (SUMS >= 128 ? 255 : SUMS >= 64 ? 168 : 128)
#define RESIDENT (65536 / (REGISTERS * THREADS) < 1 ? 1 : 65536 / (REGISTERS * THREADS))
#if ACT >= 2
/* Within a few units in the last place of fp32, far below what is stored. The reciprocal of what
 * is beyond 2^126 may be zero. */
static __device__ __forceinline__ float sigmoid(float v) {
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v * -1.44269504f));
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

#include "ptx.cuh"

#if PRECISION == 1
/* The same without a sum so far. */
#define MMA_FIRST(c, a, b0, b1)                                                                    \
    asm volatile("mma.sync.aligned." MMA_TYPE                                                      \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"            \
                 : "=f"((c)[0]), "=f"((c)[1]), "=f"((c)[2]), "=f"((c)[3])                          \
                 : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1),           \
                   "f"(0.0f))
#define OVER_2048(to, from) asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(to) : "r"(from), "r"(0x10001000))
#define COPY_A(to, from, bytes)                                                                    \
    COPY16(to, from, bytes);                                                                       \
    COPY16((to) ^ 16, (from) + 16, bytes)
#else
#define COPY_A COPY16
#endif

#if SCALED
/* Two stored elements times two factors, rounded to storage. */
#if ELEMENT == 4
#define TIMES(word, factor)                                                                        \
    do {                                                                                           \
        float product_ = __uint_as_float(word) * __uint_as_float(factor);                                     \
        ROUND_TF32(product_);                                                                      \
        (word) = __float_as_uint(product_);                                                       \
    } while (0)
#else
#define TIMES(word, factor)                                                                        \
    do {                                                                                           \
        float l_, h_, lf_, hf_;                                                                    \
        UNPACK2(word, l_, h_);                                                                     \
        UNPACK2(factor, lf_, hf_);                                                                 \
        PACK2(word, l_ * lf_, h_ * hf_);                                                           \
    } while (0)
#endif
/* This thread's own pieces of a step, which COPY_WAIT has made visible to it. */
#define SCALE_PIECES(step)                                                                         \
    {                                                                                              \
        const u32 c_ = (u32)(chunk_begin + (step)) * ROWB + piece * 16; /* byte of the channels */ \
        const u32 to_ = base + A_BASE + (u32)(step) % STAGES * A_BYTES + load_to;                  \
        uint4 f_[A_PIECES];                                                                        \
        _Pragma("unroll") for (int i = 0; i < A_PIECES; i++) {                                     \
            if (valid[i] == 0 || (CS % CHUNK != 0 && c_ >= CS * ELEMENT)) continue;                \
            const u32 image_ = (pixel0 + load_row + i * ROW_STEP) / (P * Q);                       \
            f_[i] = *(const uint4 *)((const char *)factors +                                      \
                                      (u64)(image0 + image_) * (CS * ELEMENT) + c_);               \
        }                                                                                          \
        _Pragma("unroll") for (int i = 0; i < A_PIECES; i++) {                                     \
            if (valid[i] == 0 || (CS % CHUNK != 0 && c_ >= CS * ELEMENT)) continue;                \
            const u32 at_ = to_ + i * (ROW_STEP * ROWB);                                           \
            uint4 w;                                                                               \
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"                        \
                         : "=r"(w.x), "=r"(w.y), "=r"(w.z), "=r"(w.w)                           \
                         : "r"(at_)                                                             \
                         : "memory");                                                           \
            TIMES(w.x, f_[i].x);                                                                   \
            TIMES(w.y, f_[i].y);                                                                   \
            TIMES(w.z, f_[i].z);                                                                   \
            TIMES(w.w, f_[i].w);                                                                   \
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at_), "r"(w.x),       \
                         "r"(w.y), "r"(w.z), "r"(w.w)                                           \
                         : "memory");                                                           \
        }                                                                                          \
    }
#endif
#if PRECISION == 1
/* 4 channels: their high and their low halves. */
#define SPLIT4(high, low, v)                                                                       \
    {                                                                                              \
        float h0, h1, h2, h3;                                                                      \
        PACK2((high).x, (v).x, (v).y);                                                             \
        PACK2((high).y, (v).z, (v).w);                                                             \
        UNPACK2((high).x, h0, h1);                                                                 \
        UNPACK2((high).y, h2, h3);                                                                 \
        PACK2((low).x, ((v).x - h0) * 2048.0f, ((v).y - h1) * 2048.0f);                            \
        PACK2((low).y, ((v).z - h2) * 2048.0f, ((v).w - h3) * 2048.0f);                            \
    }
/* Splits the two pieces at `at` where they lie. */
#define SPLIT_PIECES(at)                                                                           \
    {                                                                                              \
        float4 *one = (float4 *)(shared + (at)), *two = (float4 *)(shared + ((at) ^ 16));          \
        const float4 v = *one, w = *two;                                                           \
        uint2 high, low, high2, low2;                                                              \
        SPLIT4(high, low, v)                                                                       \
        SPLIT4(high2, low2, w)                                                                     \
        *(uint4 *)one = make_uint4(high.x, high.y, high2.x, high2.y);                              \
        *(uint4 *)two = make_uint4(low.x, low.y, low2.x, low2.y);                                  \
    }
#endif

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    conv_mma(const void *__restrict__ in, const void *__restrict__ weights,
             const float *__restrict__ bias, const void *__restrict__ second,
             void *__restrict__ out, float *scratch, const void *__restrict__ factors, const int n,
             const int flags) {
    WAIT_FOR_EARLIER();
    extern __shared__ __align__(128) char shared[];
    const u32 tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const u32 group = blockIdx.x, tile_n = group % TILES_N, tile_m = group / TILES_N;
    const u32 part = blockIdx.y;
    const u64 rows = (u64)n * (P * Q);
    const u64 row0 = (u64)tile_m * BM;
    const u32 image0 = (u32)(row0 / (P * Q));
    const u32 pixel0 = (u32)(row0 - (u64)image0 * (P * Q));
    const u32 base = (u32)__cvta_generic_to_shared(shared);

    /* What this thread loads: piece `piece` of rows load_row + i * ROW_STEP. */
    const u32 piece = tid % (PIECES / LOAD_PIECES) * LOAD_PIECES;
    const u32 load_row = tid / (PIECES / LOAD_PIECES);
    const u32 load_to = load_row * ROWB + ((piece ^ EXCHANGE(load_row)) << 4);
    const char *b_from = (const char *)weights + (u64)tile_n * ((u64)STEPS * B_BYTES) + tid * 16;
    const int chunk_begin = (int)(part * CHUNKS / SPLITK);
    const int chunk_end = (int)((part + 1) * CHUNKS / SPLITK);
    const int main_steps = (chunk_end - chunk_begin) * TAPS;
#if TAILS > 0
    const int tail_begin = (int)(part * TAILS / SPLITK);
    const int steps = main_steps + (int)((part + 1) * TAILS / SPLITK) - tail_begin;
#else
    const int steps = main_steps;
#endif
    b_from += (u64)chunk_begin * TAPS * B_BYTES;
#if HALO
    const int first = (int)row0 - BORDER + (int)load_row; /* pixel of this thread's first row */
    const char *a_from =
        (const char *)in + (long long)first * (CS * ELEMENT) + chunk_begin * ROWB + piece * 16;
    int load_tap = 0, load_buffer = 0;
#else
#define A_PIECES (BM / ROW_STEP)
    const char *a_from = (const char *)in + (u64)image0 * ((u64)H * W * CS * ELEMENT) + piece * 16;
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

    /* What this lane names to ldmatrix: a row of the input and a row of the weights. */
    const u32 m0 = warp % WARPS_M * WM, n0 = warp / WARPS_M * WN;
    const u32 a_row = m0 + (lane & 15), a_half = (lane >> 4) * LOAD_PIECES;
    const u32 b_row = n0 + (lane & 7) + (lane >> 4 << 3), b_half = lane >> 3 & 1;
    const u32 b_at = base + B_BASE + b_row * ROWB + ((EXCHANGE(b_row) ^ b_half) << 4);
#if HALO
    u32 inside[MI]; /* bit r * S + s: that tap of the row lies inside its image */
    u32 tap = 0, tap_s = 0, shift = 0, a_buffer = 0;
    /* ldmatrix must find the zeros that this store leaves: no compiler may drop it. */
    if (tid < 32) asm volatile("st.shared.u32 [%0], %1;" ::"r"(base + tid * 4), "r"(0) : "memory");
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
    u32 b_stage = 0, b_load = 0;
    for (int step = 1 - STAGES; step < steps; step++) {
        if (step >= 0) {
#if TAILS > 1
            if (step > main_steps)
                COPY_WAIT(0); /* lines of in2 are only one step ahead */
            else
#endif
                COPY_WAIT(STAGES - 2);
#if SCALED
            SCALE_PIECES(step)
#endif
#if PRECISION == 1
                /* What this thread loaded itself has arrived. */
#if HALO
            if (tap == 0 || tap == TAIL_TAP) {
                const u32 line = A_BASE + a_buffer * A_BYTES + load_to;
                const u32 end = tap == TAIL_TAP ? BM : A_ROWS;
#pragma unroll 2
                for (u32 i = load_row, at = line; i < end; i += ROW_STEP, at += ROW_STEP * ROWB)
                    SPLIT_PIECES(at)
            }
#else
#pragma unroll 2
            for (u32 i = 0; i < BM / ROW_STEP; i++)
                SPLIT_PIECES(A_BASE + b_stage * A_BYTES + load_to + i * (ROW_STEP * ROWB))
#endif
#endif
            __syncthreads();
        }
        const int next = step + STAGES - 1;
        if (next < steps) {
#if TAILS > 0
            if (next == main_steps)
                b_from += (u64)((CHUNKS - chunk_end) * TAPS + tail_begin) * B_BYTES;
#endif
            const u32 b_to = base + B_BASE + b_load * B_BYTES + tid * 16;
#pragma unroll
            for (int i = 0; i < B_BYTES / 16; i += THREADS)
                if (B_BYTES / 16 % THREADS == 0 || i + tid < B_BYTES / 16)
                    COPY16(b_to + i * 16, b_from + i * 16, 16);
            b_from += B_BYTES;
            b_load = b_load + 1 == STAGES ? 0 : b_load + 1;
#if HALO
            if (load_tap == 0 && next < main_steps) {
                const u32 to = base + A_BASE + load_buffer * A_BYTES + load_to;
#pragma unroll 4
                for (int i = 0; i < (A_ROWS + ROW_STEP - 1) / ROW_STEP; i++) {
                    if (A_ROWS % ROW_STEP != 0 && load_row + i * ROW_STEP >= A_ROWS) break;
                    const bool real = (u32)(first + i * ROW_STEP) < (u32)rows;
                    COPY_A(to + i * (ROW_STEP * ROWB),
                           real ? a_from + i * (ROW_STEP * CS * ELEMENT) : (const char *)in,
                           real ? 16 : 0);
                }
                a_from += ROWB;
                load_buffer ^= A_BUFFERS - 1;
            }
            load_tap = load_tap + 1 == TAPS ? 0 : load_tap + 1;
#else
            const u32 index = (u32)(chunk_begin + next), t = index / TAP_CHUNKS;
            const u32 r = t / S, s = t % S;
            const int offset = (int)((r * W + s) * (CS * ELEMENT) + index % TAP_CHUNKS * ROWB);
            const bool stored =
                CS % CHUNK == 0 || index % TAP_CHUNKS * ROWB + piece * 16 < CS * ELEMENT;
            const u32 to = base + A_BASE + (u32)next % STAGES * A_BYTES + load_to;
#pragma unroll
            for (int i = 0; i < A_PIECES; i++) {
                const bool real = stored && (valid[i] >> r & valid[i] >> (16 + s) & 1) != 0;
                COPY_A(to + i * (ROW_STEP * ROWB),
                       real ? a_from + (a_offset[i] + offset) : (const char *)in, real ? 16 : 0);
            }
#endif
        }
#if TAILS > 0
        /* in2's first line is loaded STAGES - 1 steps ahead, like weights; the others one step,
         * when the buffer of the step before is free. */
        const int tail = next == main_steps ? 0 : step >= main_steps ? step + 1 - main_steps : -1;
        if (tail >= 0 && main_steps + tail < steps) {
            const u32 to = base + A_BASE + load_buffer * A_BYTES + load_to;
#pragma unroll
            for (int i = 0; i < BM / ROW_STEP; i++) {
                const u32 t = pixel0 + load_row + i * ROW_STEP;
                const u32 image = image0 + t / (P * Q), pixel = t % (P * Q);
                const bool real = image < (u32)n;
                const u64 at = (u64)image * (H2 * W2) + (pixel / Q * W2 + pixel % Q) * STRIDE2;
                COPY_A(
                    to + i * (ROW_STEP * ROWB),
                    (const char *)second +
                        (real ? at * (CS2 * ELEMENT) + (tail_begin + tail) * ROWB + piece * 16 : 0),
                    real ? 16 : 0);
            }
            load_buffer ^= 1;
        }
#endif
        COPY_COMMIT();
#if HALO
        if (step == 1 - STAGES) { /* while the first loads travel */
#pragma unroll
            for (int i = 0; i < MI; i++) {
                const u32 t = pixel0 + a_row + i * 16, pixel = t % (P * Q);
                const int y = (int)(pixel / Q) - PAD, x = (int)(pixel % Q) - PAD;
                u32 bits = 0;
#pragma unroll
                for (int r = 0; r < R; r++)
#pragma unroll
                    for (int s = 0; s < S; s++)
                        bits |= (u32)(y + r) < H && (u32)(x + s) < W ? 1u << (r * S + s) : 0;
                inside[i] = (row0 + a_row + i * 16 < rows ? bits : 0) | 1u << TAIL_TAP;
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
                a_at[i] = inside[i] >> tap & 1 ? at + i * (16 * ROWB) : base + (a_half << 4);
        }
#else
#pragma unroll
        for (int i = 0; i < MI; i++)
            a_at[i] = base + A_BASE + b_stage * A_BYTES + (a_row + i * 16) * ROWB +
                      ((EXCHANGE(a_row) ^ a_half) << 4);
#endif
        const u32 b_now = b_at + b_stage * B_BYTES;
#if PRECISION == 1
        float part[MI][NI][4];
#pragma unroll
        for (int k = 0; k < ROWB / 64; k++) {
            u32 high[NI / 2][4], low[NI / 2][4], over[NI / 2][4];
#pragma unroll
            for (int j = 0; j < NI / 2; j++) {
                LOAD_MATRICES(high[j], (b_now ^ k * 64) + j * (16 * ROWB));
                LOAD_MATRICES(low[j], (b_now ^ (k * 64 + 32)) + j * (16 * ROWB));
#pragma unroll
                for (int e = 0; e < 4; e++)
                    OVER_2048(over[j][e], high[j][e]);
            }
#pragma unroll
            for (int i = 0; i < MI; i++) {
                u32 a[4], rest[4];
                LOAD_MATRICES(rest, a_at[i] ^ (k * 64 + 16));
                LOAD_MATRICES(a, a_at[i] ^ k * 64);
#pragma unroll
                for (int j = 0; j < NI; j++)
                    if (k == 0)
                        MMA_FIRST(part[i][j], rest, over[j / 2][j % 2 * 2],
                                  over[j / 2][j % 2 * 2 + 1]);
                    else
                        MMA(part[i][j], rest, over[j / 2][j % 2 * 2], over[j / 2][j % 2 * 2 + 1]);
#pragma unroll
                for (int j = 0; j < NI; j++)
                    MMA(part[i][j], a, low[j / 2][j % 2 * 2], low[j / 2][j % 2 * 2 + 1]);
#pragma unroll
                for (int j = 0; j < NI; j++)
                    MMA(part[i][j], a, high[j / 2][j % 2 * 2], high[j / 2][j % 2 * 2 + 1]);
            }
        }
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    acc[i][j][e] += part[i][j][e];
#else
#pragma unroll
        for (int k = 0; k < ROWB / 32; k++) {
            u32 a[MI][4], b[NI / 2][4];
#pragma unroll
            for (int j = 0; j < NI / 2; j++)
                LOAD_MATRICES(b[j], (b_now ^ k * 32) + j * (16 * ROWB));
#pragma unroll
            for (int i = 0; i < MI; i++)
                LOAD_MATRICES(a[i], a_at[i] ^ k * 32);
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < NI; j++)
                    MMA(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
#endif
        b_stage = b_stage + 1 == STAGES ? 0 : b_stage + 1;
#if HALO
        /* The next tap; behind the window's last one the next line, and in2's have a single tap. */
        tap++;
        tap_s++;
        shift++;
        if (tap_s == S) tap_s = 0, shift += W - S;
        if (tap == TAPS || step >= main_steps) tap = tap_s = shift = 0, a_buffer ^= A_BUFFERS - 1;
#if TAILS > 0
        if (step + 1 >= main_steps) tap = TAIL_TAP;
#endif
#endif
    }
    COPY_WAIT(0);

#if SPLITK > 1
    float4 *parts = (float4 *)(scratch + (gridDim.x + 63) / 64 * 64) +
                    (u64)group * (SPLITK * BM * BN / 4) + tid;
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int j = 0; j < NI; j++)
            __stcg(parts + part * (BM * BN / 4) + (i * NI + j) * THREADS,
                   make_float4(acc[i][j][0], acc[i][j][1], acc[i][j][2], acc[i][j][3]));
    __threadfence();
    __syncthreads();
    int *ticket = (int *)shared;
    int *counter = (int *)scratch + group;
    if (tid == 0) {
        const int taken = atomicAdd(counter, 1);
        if (taken == SPLITK - 1) *counter = 0; /* nobody takes another before the next launch */
        *ticket = taken;
    }
    __syncthreads();
    if (*ticket != SPLITK - 1) return;
    __threadfence();
#pragma unroll
    for (int i = 0; i < MI; i++)
#pragma unroll
        for (int j = 0; j < NI; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                acc[i][j][e] = 0.0f;
#pragma unroll 2
    for (int z = 0; z < SPLITK; z++)
#pragma unroll
        for (int i = 0; i < MI; i++)
#pragma unroll
            for (int j = 0; j < NI; j++) {
                const float4 v = __ldcg(parts + z * (BM * BN / 4) + (i * NI + j) * THREADS);
                acc[i][j][0] += v.x, acc[i][j][1] += v.y;
                acc[i][j][2] += v.z, acc[i][j][3] += v.w;
            }
#endif

            /* Epilogue, 16 rows of a warp at a time, 8 channels of a row a thread. out is
             * [rows][KS], so a row's place needs no division. Residuals are fetched 16 rows ahead.
             */
#define ROW_PIECES (WN / 8)
#define ITEMS (16 * ROW_PIECES / 32)
    const u32 at = lane % ROW_PIECES * 8, k = tile_n * BN + n0 + at;
    const u64 row_first = row0 + m0 + lane / ROW_PIECES;
    float add[8];
#pragma unroll
    for (int f = 0; f < 8; f++)
        add[f] = k < KS ? bias[k + f] : 0.0f;
#if PRECISION == 1
    float scale[8]; /* back to the size of the weights; columns behind the last have one too */
    const float *scales =
        (const float *)((const char *)weights + (u64)TILES_N * STEPS * B_BYTES) + k;
#pragma unroll
    for (int f = 0; f < 8; f++)
        scale[f] = scales[f];
#endif
#if TAILS == 0 && !LOGITS
    const bool has_second = (flags & FLAG_RESIDUAL) != 0 && k < KS;
    const uint4 *second_from =
        (const uint4 *)((const char *)second + (row_first * KS + k) * ELEMENT);
    uint4 ahead[ITEMS][ELEMENT / 2], now[ITEMS][ELEMENT / 2];
#define FETCH_SECOND(i)                                                                            \
    for (int e = 0; e < ITEMS; e++) {                                                              \
        const u32 down = (i)*16 + e * (32 / ROW_PIECES);                                           \
        if (has_second && row_first + down < rows)                                                 \
            for (int f = 0; f < ELEMENT / 2; f++)                                                  \
                ahead[e][f] = second_from[down * (KS * ELEMENT / 16) + f];                         \
    }
#pragma unroll
    FETCH_SECOND(0)
#endif
    __syncthreads();
    float *stage = (float *)shared + warp * (16 * STAGE_ROW);
#pragma unroll
    for (int i = 0; i < MI; i++) {
#if TAILS == 0 && !LOGITS
#pragma unroll
        for (int e = 0; e < ITEMS; e++)
#pragma unroll
            for (int f = 0; f < ELEMENT / 2; f++)
                now[e][f] = ahead[e][f];
        if (i + 1 < MI) {
#pragma unroll
            FETCH_SECOND(i + 1)
        }
#endif
        WARP_BARRIER();
#pragma unroll
        for (int j = 0; j < NI; j++) {
            float2 *to = (float2 *)(stage + (lane >> 2) * STAGE_ROW + j * 8 + (lane & 3) * 2);
            to[0] = make_float2(acc[i][j][0], acc[i][j][1]);
            to[4 * STAGE_ROW] = make_float2(acc[i][j][2], acc[i][j][3]);
        }
        WARP_BARRIER();
#pragma unroll
        for (int e = 0; e < ITEMS; e++) {
            const u32 r = e * (32 / ROW_PIECES) + lane / ROW_PIECES;
            const u64 row = row_first + i * 16 + e * (32 / ROW_PIECES);
            if (row >= rows || k >= KS) continue;
            float v[8];
            const float4 low = *(const float4 *)(stage + r * STAGE_ROW + at);
            const float4 high = *(const float4 *)(stage + r * STAGE_ROW + at + 4);
#if PRECISION == 1
            v[0] = low.x * scale[0] + add[0], v[1] = low.y * scale[1] + add[1];
            v[2] = low.z * scale[2] + add[2], v[3] = low.w * scale[3] + add[3];
            v[4] = high.x * scale[4] + add[4], v[5] = high.y * scale[5] + add[5];
            v[6] = high.z * scale[6] + add[6], v[7] = high.w * scale[7] + add[7];
#else
            v[0] = low.x + add[0], v[1] = low.y + add[1];
            v[2] = low.z + add[2], v[3] = low.w + add[3];
            v[4] = high.x + add[4], v[5] = high.y + add[5];
            v[6] = high.z + add[6], v[7] = high.w + add[7];
#endif
#if TAILS == 0 && !LOGITS
            if (flags & FLAG_RESIDUAL) {
#pragma unroll
                for (int f = 0; f < ELEMENT / 2; f++) {
                    const uint4 w = now[e][f];
#if ELEMENT == 4
                    v[f * 4] += __uint_as_float(w.x), v[f * 4 + 1] += __uint_as_float(w.y);
                    v[f * 4 + 2] += __uint_as_float(w.z), v[f * 4 + 3] += __uint_as_float(w.w);
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
#if ACT >= 2
#pragma unroll
            for (int f = 0; f < 8; f++)
                v[f] = ACT == 3 && k + f >= K ? 0.0f : ACTIVATE(v[f]);
#endif
#if ELEMENT == 4 || LOGITS
#if PRECISION == 2 && !LOGITS
#pragma unroll
            for (int f = 0; f < 8; f++)
                ROUND_TF32(v[f]);
#endif
            float4 *to = (float4 *)((char *)out + (row * KS + k) * 4);
            to[0] = make_float4(v[0], v[1], v[2], v[3]);
            to[1] = make_float4(v[4], v[5], v[6], v[7]);
#else
            uint4 both;
            PACK2(both.x, v[0], v[1]);
            PACK2(both.y, v[2], v[3]);
            PACK2(both.z, v[4], v[5]);
            PACK2(both.w, v[6], v[7]);
            *(uint4 *)((char *)out + (row * KS + k) * ELEMENT) = both;
#endif
        }
    }
}
