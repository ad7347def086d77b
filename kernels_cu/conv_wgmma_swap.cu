/* conv_wgmma_swap: convolution to at most 64 channels + bias [+ residual] [+ ReLU] on the warpgroup
 * matrix instructions (wgmma) of NVIDIA compute capability 9.0; fp16, bf16 or tf32 operands, fp32
 * sums, step 1, windows that keep the image's size. It is compiled for sm_90a only.
 *
 * With 64 columns an instruction that takes pixels as rows waits for shared memory; so rows of the
 * product are output channels and columns are pixels, PIXELS at an instruction. Both operands lie
 * in shared memory: rows of 128 bytes (a chunk of channels), pieces of 16 bytes exchanged within a
 * row (piece c of row i lies at c ^ (i & 7)), wgmma's 128-byte swizzle, which is one of addresses
 * and so allows to begin at any row.
 *
 * Pixels are counted with their borders: behind every image row come PAD zeros, behind every image
 * PAD rows of zeros, each serves as the border of both its neighbours. A tile is PIXELS of them in
 * that order, the ones before and behind it that its window sees lie with it in one line, and a tap
 * of the window is a view of the line that begins r * PITCH + s rows later. Sums of border pixels
 * are not stored.
 *
 * A group stays on its multiprocessor: it loads all weights once, and each of its TEAMS warpgroups
 * takes the group's next tile, loads its line a chunk at a time, multiplies and stores, by itself:
 * while one waits for memory another one multiplies. The next tile's line is on its way as soon as
 * the products have read the last one; residuals are fetched while they run.
 *
 * Results go from registers to memory in sectors of 32 bytes: 8 lanes have neighbouring channels of
 * a pixel in tf32; with 16-bit elements movmatrix turns 8 channels of 8 pixels round, and rows of
 * the product are channels in such an order that a thread then has 4 neighbouring ones. tf32
 * results are rounded to tf32, because the next layer's product would cut them off.
 *
 * Group: TEAMS * 128 threads. Grid: x = groups, at most as many as multiprocessors; group g makes
 * tiles g, g + groups, ...
 * Must not: write outside out. */
#ifndef C
#define C 64 /* input channels */
#endif
#ifndef CS
#define CS 64 /* input channel stride, a multiple of the chunk */
#endif
#ifndef H
#define H 1 /* input and output height */
#endif
#ifndef W
#define W 16 /* input and output width, with PAD at least 16 */
#endif
#ifndef K
#define K 64 /* output channels */
#endif
#ifndef KS
#define KS 64 /* output channel stride, a multiple of 8, at most 64 */
#endif
#ifndef P
#define P 1 /* output height: H */
#endif
#ifndef Q
#define Q 16 /* output width: W */
#endif
#ifndef R
#define R 1 /* window height, odd */
#endif
#ifndef S
#define S 1 /* window width: R */
#endif
#ifndef STRIDE
#define STRIDE 1 /* step of the window: 1 */
#endif
#ifndef PAD
#define PAD 0 /* border of zeros: (R - 1) / 2 */
#endif
#ifndef PIXELS
#define PIXELS 256 /* of a tile: 128 or 256 */
#endif
#ifndef TEAMS
#define TEAMS 3 /* warpgroups of a group */
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
#define WGMMA_ORDER ", 0, 0" /* both operands' depth is contiguous */
#elif PRECISION == 4
#define ELEMENT 2
#define WGMMA_TYPE "k16.f32.bf16.bf16"
#define WGMMA_ORDER ", 0, 0"
#else
#error "this kernel computes in tf32, fp16 and bf16 only"
#endif
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#error "needs the warpgroup matrix instructions of sm_90a"
#endif

#define ROWB 128
#define CHUNKS (CS * ELEMENT / ROWB)
#define PITCH (W + PAD)
#define IMAGE ((H + PAD) * PITCH)
#define BORDER (PAD * PITCH + PAD)
#define LINE_ROWS (PIXELS + 2 * BORDER)
/* Place of everything in shared memory, multiples of 1024 bytes: weights, each team's line,
 * numbers. */
#define TAP_BYTES (64 * ROWB)
#define CHUNK_BYTES (R * S * TAP_BYTES)
#define LINES (CHUNKS * CHUNK_BYTES)
#define LINE_BYTES ((LINE_ROWS * ROWB + 1023) / 1024 * 1024)
#define NUMBERS (LINES + TEAMS * LINE_BYTES)
#define EXCHANGE(i) ((i)&7)
/* Residuals of so many times 8 pixels are in registers at once. */
#define BATCH (TEAMS > 2 ? 8 : PIXELS / 8)
#define FLAG_RELU 1
#define FLAG_RESIDUAL 2

#include "ptx.cuh"
#include "wgmma.cuh"

#define TEAM_BARRIER(team) asm volatile("bar.sync %0, 128;" ::"r"((team) + 1) : "memory")
#if PIXELS == 128
#define SUM_LIST(c) SUM64(c, 0)
#define WGMMA_SHAPE "m64n128"
#define OPERAND_NAMES "%64, %65"
#define ONE_NAME "%66"
#define SUM_NAMES SUM_NAMES_64
#elif PIXELS == 256
#define SUM_LIST(c) SUM64(c, 0), SUM64(c, 16)
#define WGMMA_SHAPE "m64n256"
#define OPERAND_NAMES "%128, %129"
#define ONE_NAME "%130"
#define SUM_NAMES SUM_NAMES_128
#else
#error "PIXELS must be 128 or 256"
#endif
/* c += the weights at descriptor a * the pixels at descriptor b; runs on after this. */
#define WGMMA(c, a, b)                                                                             \
    asm volatile("{.reg .pred add; setp.ne.u32 add, " ONE_NAME                                     \
                 ", 0; wgmma.mma_async.sync.aligned." WGMMA_SHAPE WGMMA_TYPE " {" SUM_NAMES        \
                 "}, " OPERAND_NAMES ", add, 1, 1" WGMMA_ORDER ";}"                                \
                 : SUM_LIST(c)                                                                     \
                 : "l"(a), "l"(b), "r"(1))
#define TURN(word) asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(word))

/* A place in the order with borders: column, row, and the stored pixel there if it is one. */
typedef struct {
    u32 x, y;
    int pixel;
} place;

/* first is counted from an image before the first one. */
static __device__ __forceinline__ place place_at(u32 first) {
    const u32 image = first / IMAGE, rest = first % IMAGE;
    place p = {rest % PITCH, rest / PITCH, 0};
    p.pixel = ((int)image - 1) * (H * W) + (int)(p.y * W + p.x);
    return p;
}

/* count <= PITCH places on. */
static __device__ __forceinline__ void go_on(place *p, u32 count) {
    p->x += count, p->pixel += (int)count;
    if (p->x >= PITCH) {
        p->x -= PITCH, p->y++, p->pixel -= PAD;
        if (p->y == H + PAD) p->y = 0, p->pixel -= PAD * W;
    }
}

static __device__ __forceinline__ bool is_pixel(place p, u32 pixels) {
    return p.x < W && p.y < H && (u32)p.pixel < pixels;
}

/* A chunk of the pixels that the tile at place0 sees. */
#define LOAD_LINE(chunk)                                                                           \
    {                                                                                              \
        const u32 to_ = line + row * ROWB + ((piece ^ EXCHANGE(row)) << 4);                        \
        const char *from_ = (const char *)in + (chunk)*ROWB + piece * 16;                          \
        place p_ = place_at(place0 + (IMAGE - BORDER) + row);                                      \
        _Pragma("unroll 4") for (u32 i_ = 0; i_ < LINE_ROWS; i_ += 16) {                           \
            if (LINE_ROWS % 16 != 0 && row + i_ >= LINE_ROWS) break;                               \
            const bool real_ = is_pixel(p_, pixels);                                               \
            COPY16(to_ + i_ * ROWB, from_ + (real_ ? (u64)(u32)p_.pixel * (CS * ELEMENT) : 0),     \
                   real_ ? 16 : 0);                                                                \
            go_on(&p_, 16);                                                                        \
        }                                                                                          \
    }
/* Rows of the product and their channels, and a thread's residuals of 8 pixels. */
#if ELEMENT == 4
#define VECTOR float4
#define FIRST q * 2 /* and the next */
#define ROW_OF(k) (k)
#define CHANNEL_OF(m) (m)
#define FETCH()                                                                                    \
    if (flags & FLAG_RESIDUAL) {                                                                   \
        _Pragma("unroll") for (int i_ = 0; i_ < BATCH; i_++) {                                     \
            place o_ = fetched;                                                                    \
            go_on(&o_, 1);                                                                         \
            const float *at_ = (const float *)second + (u64)(u32)fetched.pixel * KS;               \
            const float *on_ = (const float *)second + (u64)(u32)o_.pixel * KS;                    \
            const bool real_ = is_pixel(fetched, pixels), next_ = is_pixel(o_, pixels);            \
            ahead[i_].x = real_ && k0 < KS ? at_[k0] : 0.0f;                                       \
            ahead[i_].y = next_ && k0 < KS ? on_[k0] : 0.0f;                                       \
            ahead[i_].z = real_ && k1 < KS ? at_[k1] : 0.0f;                                       \
            ahead[i_].w = next_ && k1 < KS ? on_[k1] : 0.0f;                                       \
            go_on(&fetched, 8);                                                                    \
        }                                                                                          \
    }
#else
#define VECTOR uint2
#define FIRST lane / 4
#define ROW_OF(k) (((k) & ~15u) + ((k) >> 1 & 1) * 8 + ((k) >> 2 & 3) * 2 + ((k)&1))
#define CHANNEL_OF(m) (((m) & ~15u) + ((m) >> 1 & 3) * 4 + ((m) >> 3 & 1) * 2 + ((m)&1))
#define FETCH()                                                                                    \
    if (flags & FLAG_RESIDUAL) {                                                                   \
        _Pragma("unroll") for (int i_ = 0; i_ < BATCH; i_++) {                                     \
            ahead[i_] = make_uint2(0, 0);                                                          \
            if (is_pixel(fetched, pixels) && channel < KS)                                         \
                ahead[i_] = *(const uint2 *)((const char *)second +                                \
                                             ((u64)(u32)fetched.pixel * KS + channel) * ELEMENT);  \
            go_on(&fetched, 8);                                                                    \
        }                                                                                          \
    }
#endif

#include "overlap.cuh"

extern "C" __global__ void __launch_bounds__(TEAMS * 128, 1)
    conv_wgmma_swap(const void *__restrict__ in, const void *__restrict__ weights,
                    const float *__restrict__ bias, const void *__restrict__ second,
                    void *__restrict__ out, const int n, const int flags) {
    WAIT_FOR_EARLIER();
    extern __shared__ __align__(1024) char shared[];
    const u32 tid = threadIdx.x, team = tid / 128, t = tid % 128, lane = tid & 31;
    const u32 base = (u32)__cvta_generic_to_shared(shared);
    const u32 line = base + LINES + team * LINE_BYTES;
    volatile u32 *numbers = (volatile u32 *)(shared + NUMBERS); /* each team's, and the next */
    const u32 piece = t % 8, row = t / 8;

    for (u32 i = tid; i < LINES / 16; i += TEAMS * 128) {
        const u32 k = i / 8 % 64, to = i / 512 * 64 + ROW_OF(k);
        COPY16(base + to * ROWB + ((i % 8 ^ EXCHANGE(k) ^ EXCHANGE(to)) << 4),
               (const char *)weights + i * 16, 16);
    }
    if (tid == 0) numbers[TEAMS] = TEAMS;

    /* This thread's rows of the product are channels k0 and k1. */
    const u32 q = lane & 3, m = t / 32 * 16 + lane / 4;
    const u32 k0 = CHANNEL_OF(m), k1 = CHANNEL_OF(m + 8);
    const float add0 = k0 < KS ? bias[k0] : 0.0f, add1 = k1 < KS ? bias[k1] : 0.0f;
#if ELEMENT == 2
    const u32 channel = t / 32 * 16 + q * 4; /* and three more, which it stores */
#endif
    const u32 end = (u32)n * IMAGE, pixels = (u32)n * (H * W); /* places, and stored ones */
    u32 place0 = (blockIdx.x + team * gridDim.x) * PIXELS;
    if (place0 < end) LOAD_LINE(0)
    COPY_COMMIT();
    COPY_WAIT(0);
    SHOW_COPIES();
    __syncthreads();

    while (place0 < end) {
        float acc[PIXELS / 8][4];
#pragma unroll
        for (int j = 0; j < PIXELS / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                acc[j][e] = 0.0f;
        VECTOR ahead[BATCH];
        place fetched = place_at(place0 + IMAGE + FIRST), stored = fetched;
#pragma unroll 1
        for (u32 chunk = 0; chunk < CHUNKS; chunk++) {
            if (chunk > 0) {
                TEAM_BARRIER(team); /* nobody reads the line before any more */
                LOAD_LINE(chunk)
                COPY_COMMIT();
            }
            COPY_WAIT(0);
            SHOW_COPIES();
            TEAM_BARRIER(team);
            /* Computed here from what no compiler knows: kept in registers they would not fit. */
            u64 weights_at = DESCRIPTOR | (base + chunk * CHUNK_BYTES) >> 4;
            u64 line_at = DESCRIPTOR | __shfl_sync(0xffffffffu, line >> 4, 0);
#pragma unroll 1
            for (int r = 0; r < R; r++) {
                WGMMA_FENCE();
#pragma unroll
                for (int s = 0; s < S; s++)
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        WGMMA(acc, weights_at + (s * (TAP_BYTES / 16) + k * 2),
                              line_at + (s * (ROWB / 16) + k * 2));
                WGMMA_COMMIT();
                weights_at += S * (TAP_BYTES / 16), line_at += PITCH * (ROWB / 16);
            }
            if (chunk == CHUNKS - 1) {
                FETCH()
                if (t == 0) numbers[team] = atomicAdd((u32 *)numbers + TEAMS, 1);
            }
            WGMMA_WAIT(0);
            SUMS_DONE(acc);
        }
        TEAM_BARRIER(team);
        place0 = (blockIdx.x + numbers[team] * gridDim.x) * PIXELS;
        if (place0 < end) LOAD_LINE(0)
        COPY_COMMIT();

#pragma unroll
        for (int b = 0; b < PIXELS / 8; b += BATCH) {
            if (b > 0) FETCH()
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                float *v = acc[b + i];
                v[0] += add0, v[1] += add0, v[2] += add1, v[3] += add1;
#if ELEMENT == 4
                if (flags & FLAG_RESIDUAL)
                    v[0] += ahead[i].x, v[1] += ahead[i].y, v[2] += ahead[i].z, v[3] += ahead[i].w;
#else
                if (flags & FLAG_RESIDUAL) {
                    float l, h;
                    TURN(ahead[i].x);
                    TURN(ahead[i].y);
                    UNPACK2(ahead[i].x, l, h);
                    v[0] += l, v[1] += h;
                    UNPACK2(ahead[i].y, l, h);
                    v[2] += l, v[3] += h;
                }
#endif
                if (flags & FLAG_RELU) {
#pragma unroll
                    for (int e = 0; e < 4; e++)
                        v[e] = v[e] < 0.0f ? 0.0f : v[e];
                }
#if ELEMENT == 4
#pragma unroll
                for (int e = 0; e < 4; e++)
                    ROUND_TF32(v[e]);
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float *to = (float *)out + (u64)(u32)stored.pixel * KS;
                    const bool real = is_pixel(stored, pixels);
                    if (real && k0 < KS) to[k0] = v[e];
                    if (real && k1 < KS) to[k1] = v[e + 2];
                    go_on(&stored, e == 0 ? 1 : 7);
                }
#else
                uint2 both;
                PACK2(both.x, v[0], v[1]);
                PACK2(both.y, v[2], v[3]);
                TURN(both.x);
                TURN(both.y);
                if (is_pixel(stored, pixels) && channel < KS)
                    *(uint2 *)((char *)out + ((u64)(u32)stored.pixel * KS + channel) * ELEMENT) =
                        both;
                go_on(&stored, 8);
#endif
            }
        }
    }
    COPY_WAIT(0);
}
