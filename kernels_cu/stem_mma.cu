/* stem_mma: the first convolution on tensor cores (mma.sync, NVIDIA compute capability 8.0 and
 * later): a window of at most 8 columns over pixels of 4 stored channels, + bias [+ ReLU], and with
 * POOL_P defined the max-pool behind it, without storing what is between. fp16, bf16 or tf32
 * operands, fp32 sums.
 *
 * One window row of an output pixel is 8 neighbouring pixels, 32 values in a line (the 8th column's
 * weights are zero). A group keeps the input patch of its tile in shared memory as it is; since the
 * step is even, every window row starts at a multiple of 16 bytes and ldmatrix reads it there: no
 * unfolding. A depth step is one window row, whose weights are packed as [64-channel block][window
 * row][64][32 values], pieces of 16 bytes exchanged within a row as in conv_mma.
 *
 * Tile: 16 x 16 pixels of 64 channels, or TILE_P x TILE_Q pixels of the pool, for which 15 x 17
 * pixels are computed (the border twice, by neighbours). NaN stays NaN. tf32: the input is rounded
 * here (nobody did it before), results are rounded for the layers that follow. Group: 256 / WM
 * warps. Grid: x = images * tiles * 64-channel blocks, the blocks fastest. Must not: write outside
 * out. */
#ifndef C
#define C 3 /* input channels */
#endif
#ifndef CS
#define CS 4 /* input channel stride: 4 */
#endif
#ifndef H
#define H 224 /* input height */
#endif
#ifndef W
#define W 224 /* input width */
#endif
#ifndef K
#define K 64 /* output channels */
#endif
#ifndef KS
#define KS 64 /* output channel stride, a multiple of 64 */
#endif
#ifndef P
#define P 112 /* output height of the convolution */
#endif
#ifndef Q
#define Q 112 /* output width of the convolution */
#endif
#ifndef R
#define R 7 /* window height */
#endif
#ifndef S
#define S 7 /* window width, at most 8 */
#endif
#ifndef STRIDE
#define STRIDE 2 /* step of the window in both directions, even */
#endif
#ifndef PAD
#define PAD 3 /* border of zeros in both directions */
#endif
#ifndef WM
#define WM 64 /* rows of a warp's tile: 32 or 64 */
#endif
#ifndef STAGES
#define STAGES 3 /* window rows of weights in shared memory */
#endif
#ifndef PRECISION
#define PRECISION 3 /* lap_precision: 2 tf32, 3 fp16, 4 bf16 */
#endif

#if PRECISION == 2
#define ELEMENT 4
#define MMA_TYPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#elif PRECISION == 3
#define ELEMENT 2
#define MMA_TYPE "m16n8k16.row.col.f32.f16.f16.f32"
#elif PRECISION == 4
#define ELEMENT 2
#define MMA_TYPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#else
#error "this kernel computes in tf32, fp16 and bf16 only"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#error "needs the matrix instructions of compute capability 8.0"
#endif

#define BM 256
#define BN 64
#define MI (WM / 16)
#define NI (BN / 8)
#define WARPS (BM / WM)
#define THREADS (WARPS * 32)
#define ROWB (32 * ELEMENT)
#define PIXEL (4 * ELEMENT)
#define B_BYTES (BN * ROWB)
#define BLOCKS (KS / BN)
#ifdef POOL_P
#define TILE_P 7 /* pixels of the pool */
#define TILE_Q 8
#define TILE_H ((TILE_P - 1) * POOL_STRIDE + POOL_R) /* pixels of the convolution */
#define TILE_W ((TILE_Q - 1) * POOL_STRIDE + POOL_R)
#define OUT_P POOL_P
#define OUT_Q POOL_Q
#else
#define TILE_P 16
#define TILE_Q 16
#define TILE_H TILE_P
#define TILE_W TILE_Q
#define OUT_P P
#define OUT_Q Q
#endif
#define TILES_P ((OUT_P + TILE_P - 1) / TILE_P)
#define TILES_Q ((OUT_Q + TILE_Q - 1) / TILE_Q)
#define PATCH_H ((TILE_H - 1) * STRIDE + R)
#define PATCH_W ((TILE_W - 1) * STRIDE + 8)
#define PATCH_BYTES ((PATCH_H * PATCH_W * PIXEL + 127) / 128 * 128)
/* Results: rows of 128 bytes of channels, 16 more against bank conflicts. */
#define PASS (128 / ELEMENT)
#define RESULT_ROW 144
#define LOOP_BYTES (PATCH_BYTES + STAGES * B_BYTES)
#define RESULT_BYTES (BM * RESULT_ROW)
#define SHARED_BYTES (LOOP_BYTES > RESULT_BYTES ? LOOP_BYTES : RESULT_BYTES)
#if ELEMENT == 4
#define EXCHANGE(i) ((i)&7)
#else
#define EXCHANGE(i) ((i) >> 1 & 3)
#endif
/* Registers a thread should get away with, hence groups a multiprocessor should hold. */
#define SUMS (MI * NI * 4)
#define REGISTERS (SUMS >= 128 ? ELEMENT == 2 ? 168 : 255 : SUMS >= 64 ? 168 : 128)
#define RESIDENT (65536 / (REGISTERS * THREADS) < 1 ? 1 : 65536 / (REGISTERS * THREADS))
#define FLAG_RELU 1
/* Place i of a tile that begins at `from`, moved into an image of `size`. */
#define CLAMP(i, from, size)                                                                       \
    ((i) + (from) < 0 ? -(from) : (i) + (from) >= (size) ? (size)-1 - (from) : (i))

#include "ptx.cuh"

#if ELEMENT == 4
#define COPY_PIXEL COPY16
#else
#define COPY_PIXEL COPY8
#endif
/* The larger of each element of two words; NaN wins. */
#if PRECISION == 2
#define MAX_TYPE "f32"
#define LOWEST 0xff800000u
#elif PRECISION == 3
#define MAX_TYPE "f16x2"
#define LOWEST 0xfc00fc00u
#else
#define MAX_TYPE "bf16x2"
#define LOWEST 0xff80ff80u
#endif
#if PRECISION == 2
#define MAX(best, word)                                                                            \
    asm("{.reg .f32 a, b; mov.b32 a, %0; mov.b32 b, %1; max.NaN." MAX_TYPE                         \
        " a, a, b; mov.b32 %0, a;}"                                                                \
        : "+r"(best)                                                                               \
        : "r"(word))
#else
#define MAX(best, word) asm("max.NaN." MAX_TYPE " %0, %0, %1;" : "+r"(best) : "r"(word))
#endif

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    stem_mma(const void *__restrict__ in, const void *__restrict__ weights,
             const float *__restrict__ bias, void *__restrict__ out, const int n, const int flags) {
    WAIT_FOR_EARLIER();
    extern __shared__ __align__(128) char shared[];
    const u32 tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
    const u32 block = blockIdx.x % BLOCKS, all = blockIdx.x / BLOCKS;
    const u32 image = all / (TILES_P * TILES_Q), tile = all % (TILES_P * TILES_Q);
    if (image >= (u32)n) return;
    const int p0 = (int)(tile / TILES_Q) * TILE_P, q0 = (int)(tile % TILES_Q) * TILE_Q;
#ifdef POOL_P
    const int y0 = p0 * POOL_STRIDE - POOL_PAD, x0 = q0 * POOL_STRIDE - POOL_PAD;
#else
    const int y0 = p0, x0 = q0;
#endif
    const u32 base = (u32)__cvta_generic_to_shared(shared);
    const char *image_in = (const char *)in + (u64)image * ((u64)H * W * PIXEL);
    const char *b_from = (const char *)weights + (u64)block * (R * B_BYTES) + tid * 16;

    /* The patch travels with the first window row of weights. */
    for (u32 i = tid; i < PATCH_H * PATCH_W; i += THREADS) {
        const int y = y0 * STRIDE - PAD + (int)(i / PATCH_W),
                  x = x0 * STRIDE - PAD + (int)(i % PATCH_W);
        const bool real = (u32)y < H && (u32)x < W;
        COPY_PIXEL(base + i * PIXEL, real ? image_in + (y * W + x) * PIXEL : image_in,
                   real ? PIXEL : 0);
    }

    /* What this lane names to ldmatrix. A row behind the tile's last pixel repeats the first. */
    u32 a_at[MI];
#pragma unroll
    for (int i = 0; i < MI; i++) {
        const u32 m = warp * WM + i * 16 + (lane & 15), pixel = m < TILE_H * TILE_W ? m : 0;
        a_at[i] = base + (pixel / TILE_W * PATCH_W + pixel % TILE_W) * (STRIDE * PIXEL) +
                  (lane >> 4 << 4);
    }
    const u32 b_row = (lane & 7) + (lane >> 4 << 3), b_half = lane >> 3 & 1;
    const u32 b_at = base + PATCH_BYTES + b_row * ROWB + ((EXCHANGE(b_row) ^ b_half) << 4);

    float acc[MI][NI][4]; /* the bias first: it need not be added at the end */
#pragma unroll
    for (int j = 0; j < NI; j++) {
        const u32 k = block * BN + j * 8 + (lane & 3) * 2;
        const float add0 = bias[k], add1 = bias[k + 1];
#pragma unroll
        for (int i = 0; i < MI; i++) {
            acc[i][j][0] = acc[i][j][2] = add0;
            acc[i][j][1] = acc[i][j][3] = add1;
        }
    }

    /* The first turns, below 0, only load. */
    for (int step = 1 - STAGES; step < R; step++) {
        if (step >= 0) {
            COPY_WAIT(STAGES - 2);
            __syncthreads();
        }
        const int next = step + STAGES - 1;
        if (next < R) {
            const u32 b_to = base + PATCH_BYTES + (u32)next % STAGES * B_BYTES + tid * 16;
#pragma unroll
            for (int i = 0; i < B_BYTES / 16; i += THREADS)
                if (B_BYTES / 16 % THREADS == 0 || i + tid < B_BYTES / 16)
                    COPY16(b_to + i * 16, b_from + i * 16, 16);
            b_from += B_BYTES;
        }
        COPY_COMMIT();
        if (step < 0) continue;
        const u32 b_now = b_at + (u32)step % STAGES * B_BYTES;
#pragma unroll
        for (int k = 0; k < ROWB / 32; k++) {
            u32 a[MI][4], b[NI / 2][4];
#pragma unroll
            for (int j = 0; j < NI / 2; j++)
                LOAD_MATRICES(b[j], (b_now ^ k * 32) + j * (16 * ROWB));
#pragma unroll
            for (int i = 0; i < MI; i++)
                LOAD_MATRICES(a[i], a_at[i] + step * (PATCH_W * PIXEL) + k * 32);
#if PRECISION == 2
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    ROUND_WORD_TF32(a[i][e]);
#endif
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int j = 0; j < NI; j++)
                    MMA(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }
    COPY_WAIT(0);

#if PRECISION != 2
    const u32 least = flags & FLAG_RELU ? 0 : LOWEST;
#endif
    /* Results, PASS channels at a time: to shared memory as they will be stored, then 16 bytes a
     * thread to out. */
#pragma unroll
    for (int pass = 0; pass < BN / PASS; pass++) {
        __syncthreads();
#pragma unroll
        for (int j = 0; j < PASS / 8; j++)
#pragma unroll
            for (int i = 0; i < MI; i++)
#pragma unroll
                for (int half_rows = 0; half_rows < 2; half_rows++) {
                    const u32 m = warp * WM + i * 16 + half_rows * 8 + (lane >> 2);
                    char *to = shared + m * RESULT_ROW + (j * 8 + (lane & 3) * 2) * ELEMENT;
                    float v0 = acc[i][pass * (PASS / 8) + j][half_rows * 2];
                    float v1 = acc[i][pass * (PASS / 8) + j][half_rows * 2 + 1];
#if PRECISION == 2
                    if (flags & FLAG_RELU) {
                        v0 = v0 < 0.0f ? 0.0f : v0;
                        v1 = v1 < 0.0f ? 0.0f : v1;
                    }
                    ROUND_TF32(v0);
                    ROUND_TF32(v1);
                    *(float2 *)to = make_float2(v0, v1);
#else
                    u32 word;
                    PACK2(word, v0, v1);
                    MAX(word, least); /* the ReLU, two at a time */
                    *(u32 *)to = word;
#endif
                }
        __syncthreads();
        for (u32 item = tid; item < TILE_P * TILE_Q * 8; item += THREADS) {
            const u32 at = item % 8 * 16;
            const int p = (int)(item / 8 / TILE_Q), q = (int)(item / 8 % TILE_Q);
            if (p0 + p >= OUT_P || q0 + q >= OUT_Q) continue;
#ifdef POOL_P
            /* Pixels outside the image count as their neighbour inside, which is in the window too.
             */
            uint4 best = make_uint4(LOWEST, LOWEST, LOWEST, LOWEST);
            u32 column[POOL_R];
#pragma unroll
            for (int c = 0; c < POOL_R; c++)
                column[c] = (u32)CLAMP(q * POOL_STRIDE + c, x0, Q) * RESULT_ROW + at;
#pragma unroll
            for (int r = 0; r < POOL_R; r++) {
                const u32 row = (u32)CLAMP(p * POOL_STRIDE + r, y0, P) * (TILE_W * RESULT_ROW);
#pragma unroll
                for (int c = 0; c < POOL_R; c++) {
                    const uint4 v = *(const uint4 *)(shared + row + column[c]);
                    MAX(best.x, v.x);
                    MAX(best.y, v.y);
                    MAX(best.z, v.z);
                    MAX(best.w, v.w);
                }
            }
#else
            const uint4 best = *(const uint4 *)(shared + (p * TILE_W + q) * RESULT_ROW + at);
#endif
            const u64 pixel = (u64)image * (OUT_P * OUT_Q) + (u32)((p0 + p) * OUT_Q + q0 + q);
            *(uint4 *)((char *)out + (pixel * KS + block * BN + pass * PASS) * ELEMENT + at) = best;
        }
    }
}
