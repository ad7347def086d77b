/* chain: several steps of a network in one launch, on tensor cores (mma.sync, NVIDIA compute
 * capability 8.0 and later), fp16, bf16 or tf32 operands, fp32 sums. For small batches, where what
 * is between two kernels costs as much as the kernels.
 *
 * Groups stay for the whole launch and meet at a barrier in device memory after every step; all of
 * them must be resident at the same time, which whoever launches has to see to. A barrier that
 * waits too long gives up, marks sync and ends the launch: wrong results, but an end. While it
 * waits, a group has the first weights of its next tile on their way: weights are packed in the
 * order in which lanes need them and go to registers at once, and only activations pass through
 * local memory.
 *
 * table has TABLE_WORDS words a step (src/kernel/chain.h names them); memory holds every
 * tensor of the steps, weights their weights and biases, offsets are in pieces of 16 bytes. Steps
 * first to first + count - 1 are run; with count < 0 only the barrier, -count times. sync: a 64-bit
 * count of arrivals, which is a multiple of the groups between launches, then a word that is not 0
 * after a barrier has given up. Group: 256 threads. Grid: as many groups as can be resident, any
 * number. Must not: write outside the steps' outputs and sync, use floating-point atomics. */
#ifndef LOCAL
#define LOCAL 49152 /* bytes of local memory of a group, at least 49152 */
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
/* The compiler's target may be older than the instructions need; the program that picks kernels
 * tests that by running a small one. */

/* Words of a step. */
#define TABLE_WORDS 32
enum {
    IN,
    OUT,
    SECOND,
    WEIGHTS,
    BIAS,
    FLAGS,
    KIND,
    ITEMS,   /* tiles */
    COLUMNS, /* tiles side by side */
    ROWS,    /* pixels of all images */
    PIXELS,  /* output pixels of an image */
    OUT_W,
    OUT_C, /* output channels as stored */
    IN_H,
    IN_W,
    IN_BYTES,     /* of an input pixel */
    STEP,         /* of the window: 1 or 2 */
    LINES,        /* rows of 128 bytes in a buffer */
    PHASES,       /* buffers' worth of input channels */
    BUFFERS,      /* in local memory at a time */
    TAILS,        /* rows of 128 bytes of the second input */
    SECOND_IMAGE, /* pixels of an image of the second input */
    SECOND_W,
    SECOND_BYTES,
    SECOND_STEP,
    IMAGES,
    SPLITS,  /* groups that share a tile */
    SCRATCH, /* a count of 128 bytes a tile, then the parts' sums */
    TILES
};

#define THREADS 256
#define ZEROS 128 /* bytes of zeros that rows outside the image are read from */
#define HEAD (2 * TABLE_WORDS * 4 + ZEROS + 128)
#define LINE                                                                                       \
    144 /* bytes from pixel to pixel in local memory: 128 and 16 against bank conflicts            \
         */
#define FLAG_RELU 1
#define FLAG_RESIDUAL 2
#define PATIENCE (1 << 22) /* looks at the barrier before it gives up: seconds */

#include "ptx.clh"

#define STORE_SHARED_PIECE(to, v)                                                                  \
    __asm__ volatile("st.global.cg.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"((v)[0]),         \
                     "f"((v)[1]), "f"((v)[2]), "f"((v)[3])                                         \
                     : "memory")
/* Weights: nobody writes them, so they may be fetched before the barrier. */
#define LOAD_WEIGHTS4(d, from)                                                                     \
    __asm__ volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"                                 \
                     : "=r"((d)[0]), "=r"((d)[1]), "=r"((d)[2]), "=r"((d)[3])                      \
                     : "l"(from))
/* Activations: other groups wrote them, so not from the first-level cache. */
#define LOAD_SHARED_PIECE(d, from)                                                                 \
    __asm__ volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"                                 \
                     : "=r"((d)[0]), "=r"((d)[1]), "=r"((d)[2]), "=r"((d)[3])                      \
                     : "l"(from)                                                                   \
                     : "memory")
#define LOAD_SHARED_HALF(d, from)                                                                  \
    __asm__ volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];"                                         \
                     : "=r"((d)[0]), "=r"((d)[1])                                                  \
                     : "l"(from)                                                                   \
                     : "memory")
/* The sum of v over the lanes of a warp, in a fixed order, in all of them. */
#define ADD_LANES(v)                                                                               \
    for (int lanes = 16; lanes > 0; lanes /= 2)                                                    \
    v += lane_value(v, lanes)
/* The larger of each element of two words; NaN wins. */
#if PRECISION == 2
#define LOWEST 0xff800000u
#define MAX(best, word)                                                                            \
    __asm__("{.reg .f32 a, b; mov.b32 a, %0; mov.b32 b, %1; max.NaN.f32 a, a, b; mov.b32 %0, a;}"  \
            : "+r"(best)                                                                           \
            : "r"(word))
#elif PRECISION == 3
#define LOWEST 0xfc00fc00u
#define MAX(best, word) __asm__("max.NaN.f16x2 %0, %0, %1;" : "+r"(best) : "r"(word))
#else
#define LOWEST 0xff80ff80u
#define MAX(best, word) __asm__("max.NaN.bf16x2 %0, %0, %1;" : "+r"(best) : "r"(word))
#endif

/* ---- barriers ------------------------------------------------------------------------------- */

/* Everything this group wrote is there for whoever sees the count. */
static inline __attribute__((always_inline)) void arrive(__global void *count) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if ((u32)get_local_id(0) == 0)
        __asm__ volatile("fence.acq_rel.gpu; red.relaxed.gpu.global.add.u64 [%0], 1;" ::"l"(count)
                         : "memory");
}

/* A count as it is; it grows only. */
static inline __attribute__((always_inline)) u64 count_now(__global const void *count) {
    u64 now;
    __asm__ volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(count) : "memory");
    return now;
}

/* Until the count is at least `until`. False: the launch is over. */
static inline __attribute__((always_inline)) bool
await(__global const void *count, u64 until, __global void *sync, volatile __local int *over) {
    if ((u32)get_local_id(0) == 0) {
        __global u32 *failed = (__global u32 *)sync + 2;
        u64 seen = 0;
        u32 gone = 0;
        for (u32 looks = 1;; looks++) {
            __asm__ volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                             : "=l"(seen)
                             : "l"(count)
                             : "memory");
            if (seen >= until) break;
            if (looks % 1024 != 0) continue;
            __asm__ volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                             : "=r"(gone)
                             : "l"(failed)
                             : "memory");
            if (gone == 0 && looks < PATIENCE) continue;
            __asm__ volatile("st.relaxed.gpu.global.u32 [%0], 1;" ::"l"(failed) : "memory");
            *over = 1;
            break;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    return *over == 0;
}

/* v of the lane whose number differs in these bits. */
static inline float lane_value(float v, int bits) {
    u32 other;
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
                     : "=r"(other)
                     : "r"(as_uint(v)), "r"(bits));
    return as_float(other);
}

/* What a step needs to know of the launch. */
typedef struct place {
    __global void *sync;
    u64 until; /* the count that its input waits for; 0: it is there */
    volatile __local int *over;
} place;

#define AWAIT(p) ((p)->until == 0 || await((p)->sync, (p)->until, (p)->sync, (p)->over))

/* The local id as if it were new at every step: what follows from it is not worth a register for
 * the whole launch. */
static inline __attribute__((always_inline)) u32 own_id(void) {
    u32 id = (u32)get_local_id(0);
    __asm__ volatile("" : "+r"(id));
    return id;
}

/* ---- steps ---------------------------------------------------------------------------------- */

#include "chain_stem.clh"

/* Convolution tiles: rows of 16 pixels of a warp, 8 output channels of a group. */
#define CONV conv_2_4
#define MF 2
#define NF 4
#include "chain_conv.clh"
#define CONV conv_2_2
#define MF 2
#define NF 2
#include "chain_conv.clh"
#define CONV conv_1_4
#define MF 1
#define NF 4
#include "chain_conv.clh"
#include "chain_fc.clh"

__kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) void
chain(__global char *memory, __global const char *restrict weights,
      __global const int *restrict table, __global void *sync, const int first, const int count) {
    __local char shared[LOCAL] __attribute__((aligned(128)));
    __local int *words = (__local int *)shared;
    volatile __local int *over = (volatile __local int *)(shared + 2 * TABLE_WORDS * 4 + ZEROS);
    const u32 tid = (u32)get_local_id(0);
    const u32 base = (u32)(size_t)shared;
    const int steps = count < 0 ? -count : count;
    u64 until = count_now(sync);
    until -=
        until % (u32)get_num_groups(0); /* some may have arrived at this launch's first barrier */
    if (tid < TABLE_WORDS && count > 0) words[tid] = table[first * TABLE_WORDS + tid];
    /* ldmatrix must find the zeros that this store leaves: no compiler may drop it. */
    if (tid < ZEROS / 4)
        __asm__ volatile("st.shared.u32 [%0], %1;" ::"r"(base + 2 * TABLE_WORDS * 4 + tid * 4),
                         "r"(0)
                         : "memory");
    if (tid == 0) *over = ((volatile __global u32 *)sync)[2] != 0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (*over) return;
    place p = {sync, 0, over};
    for (int step = 0; step < steps; step++) {
        __local const int *t = words + step % 2 * TABLE_WORDS;
        int ahead = 0;
        if (tid < TABLE_WORDS && step + 1 < count)
            ahead = table[(first + step + 1) * TABLE_WORDS + tid];
        bool going = true;
        if (count < 0 || (u32)get_group_id(0) >= (u32)t[ITEMS])
            going = AWAIT(&p); /* nothing to do */
        else
            switch (t[KIND]) {
            case 0:
                going = conv_2_4(memory, weights, t, shared, base, &p);
                break;
            case 1:
                going = conv_2_2(memory, weights, t, shared, base, &p);
                break;
            case 2:
                going = conv_1_4(memory, weights, t, shared, base, &p);
                break;
            case 3:
                going = stem(memory, weights, t, shared, base, &p);
                break;
            default:
                going = pool_fc(memory, weights, t, shared, &p);
                break;
            }
        if (!going) return;
        if (step + 1 == steps) return;
        if (tid < TABLE_WORDS) words[(step + 1) % 2 * TABLE_WORDS + tid] = ahead;
        arrive(sync);
        until += (u32)get_num_groups(0);
        p.until = until;
    }
}
