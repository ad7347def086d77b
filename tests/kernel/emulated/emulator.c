/* Runs a chained CUDA kernel (its text as generate.py leaves it) in host memory: a fiber for each
 * thread of each group, and in C what the text has in PTX. Everything that threads do together
 * switches fibers; groups take turns in an order of chance, from a fixed seed.
 *
 * What it finds: wrong indices, weights, sums; reads of a copy that was not waited for (the place
 * holds NaN until then); writes behind a group's memory; addresses that are not aligned; barriers
 * that not all threads reach. What it cannot find: anything of the device's memory model, as memory
 * here is always up to date; and it says nothing of speed.
 *
 * Compiled once for a kernel and a precision: TEXT (file), ENTRY, NAME, PRECISION. */
#define _GNU_SOURCE
#include "emulator.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

typedef unsigned int u32;
typedef unsigned long long u64;

enum { GROUP = 256, WARPS = GROUP / 32, STACK = 32768, COPIES = 64, TURN = 64, MARGIN = 4096 };
#define LOOKS_MOST 10000000

typedef struct copy {
    char *to;
    u32 bytes;
    int group;
    char data[16];
} copy;

typedef enum waiting { RUNS, FOR_GROUP, FOR_WARP } waiting;

typedef struct fiber {
    jmp_buf here;
    ucontext_t context;
    char *stack;
    bool started, done;
    u32 id, group, turn;
    waiting waiting;
    u64 generation;
    copy *copies; /* apart: the scheduler looks at all fibers often */
    int copy_count, commits;
} fiber;

typedef struct lane {
    u32 a[4], b[2], address;
    float value;
} lane;

typedef struct group {
    char *memory;
    u32 at_barrier, at_warp[WARPS];
    u64 generation, warp_generation[WARPS];
    lane lanes[WARPS][2][32]; /* two turns: a slow lane may still read the last one's */
} group;

static fiber *fibers, *current;
static group *groups;
static u32 group_count, made;
static jmp_buf scheduler;
static struct {
    char *memory;
    const char *weights;
    const int32_t *table;
    void *sync;
    int first, count;
} launch;

static void stop(const char *why) {
    fprintf(stderr, "emulated kernel: %s (group %u, thread %u)\n", why, current->group,
            current->id);
    abort();
}

static group *own_group(void) {
    return &groups[current->group];
}

static char *group_memory(void) {
    return own_group()->memory;
}

/* ---- what threads do together ---------------------------------------------------------------- */

static void yield(void) {
    if (_setjmp(current->here) == 0) _longjmp(scheduler, 1);
}

static void group_barrier(void) {
    group *g = own_group();
    current->generation = g->generation;
    if (++g->at_barrier == GROUP) {
        g->at_barrier = 0;
        g->generation++;
        return;
    }
    current->waiting = FOR_GROUP;
    yield();
}

static void warp_barrier(void) {
    group *g = own_group();
    u32 warp = current->id / 32;
    current->generation = g->warp_generation[warp];
    if (++g->at_warp[warp] == 32) {
        g->at_warp[warp] = 0;
        g->warp_generation[warp]++;
        return;
    }
    current->waiting = FOR_WARP;
    yield();
}

/* The warp's 32 entries of this turn; the caller fills its own, then warp_barrier(). */
static lane *next_turn(void) {
    return own_group()->lanes[current->id / 32][current->turn++ & 1];
}

/* ---- instructions ---------------------------------------------------------------------------- */

static float float_of(u32 word) {
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static u32 word_of(float value) {
    u32 word;
    memcpy(&word, &value, sizeof word);
    return word;
}

/* The source is read now, the data lands at the wait. */
static void copy_async(u32 to, const void *from, u32 bytes, u32 full) {
    if (current->copy_count == COPIES) stop("more copies under way than it can hold");
    if (to % full || (bytes && (uintptr_t)from % full)) stop("a copy is not aligned");
    copy *c = &current->copies[current->copy_count++];
    *c = (copy){.to = group_memory() + to, .bytes = full, .group = current->commits};
    if (bytes) memcpy(c->data, from, bytes);
    memset(c->to, 0xff, full);
}

static void copy_wait(int left) {
    int kept = 0;
    for (int i = 0; i < current->copy_count; i++) {
        copy *c = &current->copies[i];
        if (c->group < current->commits - left)
            memcpy(c->to, c->data, c->bytes);
        else
            current->copies[kept++] = *c;
    }
    current->copy_count = kept;
}

static void load_matrices(u32 *out, u32 from) {
    if (from % 16) stop("ldmatrix is not aligned");
    lane *all = next_turn();
    u32 id = current->id % 32;
    all[id].address = from;
    warp_barrier();
    for (u32 m = 0; m < 4; m++)
        memcpy(&out[m], group_memory() + all[m * 8 + id / 4].address + id % 4 * 4, 4);
}

#if PRECISION == 3
static float half_at(u32 word, u32 i) {
    uint16_t bits = (uint16_t)(word >> 16 * i);
    _Float16 value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

static u32 half_bits(float value) {
    _Float16 half = (_Float16)value;
    uint16_t bits;
    memcpy(&bits, &half, sizeof bits);
    return bits;
}

static u32 larger_halves(u32 a, u32 b) {
    u32 out = 0;
    for (u32 i = 0; i < 2; i++)
        out |= half_bits(fmaxf(half_at(a, i), half_at(b, i))) << 16 * i;
    return out;
}
#endif

static void multiply(float *sums, const u32 *a, u32 b0, u32 b1) {
    lane *all = next_turn();
    u32 id = current->id % 32;
    memcpy(all[id].a, a, sizeof all[id].a);
    all[id].b[0] = b0, all[id].b[1] = b1;
    warp_barrier();
    for (u32 e = 0; e < 4; e++) {
        u32 row = id / 4, column = id % 4 * 2 + e % 2, low = e / 2; /* rows 8 to 15: words 1, 3 */
        float sum = sums[e];
#if PRECISION == 2
        for (u32 k = 0; k < 8; k++)
            sum += float_of(all[row * 4 + k % 4].a[low + k / 4 * 2]) *
                   float_of(all[column * 4 + k % 4].b[k / 4]);
#else
        for (u32 k = 0; k < 16; k++)
            sum += half_at(all[row * 4 + k % 8 / 2].a[low + k / 8 * 2], k % 2) *
                   half_at(all[column * 4 + k % 8 / 2].b[k / 8], k % 2);
#endif
        sums[e] = sum;
    }
}

static float other_lane(float value, u32 bits) {
    lane *all = next_turn();
    all[current->id % 32].value = value;
    warp_barrier();
    return all[(current->id % 32) ^ bits].value;
}

static float rounded_tf32(float value) {
    u32 word = word_of(value);
    if ((word & 0x7f800000u) != 0x7f800000u) word = (word + 0x1000u) & 0xffffe000u;
    return float_of(word);
}

/* ---- the kernel's vocabulary ----------------------------------------------------------------- */

typedef struct float2 {
    float x, y;
} float2;
typedef struct float4 {
    float x, y, z, w;
} float4;
typedef struct uint2 {
    u32 x, y;
} uint2;
typedef struct uint4 {
    u32 x, y, z, w;
} uint4;
typedef struct index {
    u32 x;
} index_x;
#define make_float2(a, b) ((float2){a, b})
#define make_float4(a, b, c, d) ((float4){a, b, c, d})
#define make_uint4(a, b, c, d) ((uint4){a, b, c, d})
#define threadIdx ((index_x){current->id})
#define blockIdx ((index_x){current->group})
#define gridDim ((index_x){group_count})
#define __device__
#define __forceinline__
#define __restrict__
#define __uint_as_float float_of
#define __syncthreads group_barrier
#define COPY16(to, from, bytes) copy_async(to, from, bytes, 16)
#define COPY8(to, from, bytes) copy_async(to, from, bytes, 8)
#define COPY_COMMIT() (current->commits++)
#define COPY_WAIT copy_wait
#define LOAD_MATRICES load_matrices
#define MMA multiply
#define LOAD_WEIGHTS4(d, from) memcpy(d, from, 16)
#define LOAD_SHARED_PIECE(d, from) memcpy(d, from, 16)
#define LOAD_SHARED_HALF(d, from) memcpy(d, from, 8)
#define STORE_SHARED_PIECE(to, v) memcpy(to, v, 16)
#define ADD_LANES(v)                                                                               \
    for (u32 bits = 16; bits > 0; bits /= 2)                                                       \
    v += other_lane(v, bits)
#define ROUND_TF32(v) (v = rounded_tf32(v))
#define ROUND_WORD_TF32(w) (w = word_of(rounded_tf32(float_of(w))))
#if PRECISION == 2
#define MAX(best, word) (best = word_of(fmaxf(float_of(best), float_of(word))))
#else
#define PACK2(word, low, high) (word = half_bits(low) | half_bits(high) << 16)
#define UNPACK2(word, low, high) (low = half_at(word, 0), high = half_at(word, 1))
#define MAX(best, word) (best = larger_halves(best, word))
#endif

static void arrive(void *count) {
    group_barrier();
    if (current->id == 0) ++*(u64 *)count;
}

static u64 count_now(const void *count) {
    return *(const volatile u64 *)count;
}

static bool await(const void *count, u64 until, void *sync, const int *over) {
    (void)sync;
    for (u64 looks = 0; current->id == 0 && count_now(count) < until; looks++) {
        if (looks == LOOKS_MOST) stop("a barrier in device memory is never complete");
        yield();
    }
    group_barrier();
    return *over == 0;
}

static u32 own_id(void) {
    return current->id;
}

#include TEXT

/* ---- running --------------------------------------------------------------------------------- */

static void body(void) {
    ENTRY(launch.memory, launch.weights, launch.table, launch.sync, launch.first, launch.count);
    if (current->copy_count) stop("it ended with copies under way");
    current->done = true;
    _longjmp(scheduler, 1);
}

static bool can_run(fiber *f) {
    group *g = &groups[f->group];
    if (f->done) return false;
    u64 now = f->waiting == FOR_GROUP ? g->generation : g->warp_generation[f->id / 32];
    if (f->waiting != RUNS && now == f->generation) return false;
    f->waiting = RUNS;
    return true;
}

static void resume(fiber *f) {
    current = f;
    if (_setjmp(scheduler)) return;
    if (f->started) _longjmp(f->here, 1);
    f->started = true;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK;
    f->context.uc_link = NULL;
    makecontext(&f->context, body, 0);
    setcontext(&f->context);
}

static void reset(u32 local) {
    if (made < group_count) {
        fibers = realloc(fibers, group_count * GROUP * sizeof *fibers);
        groups = realloc(groups, group_count * sizeof *groups);
        if (!fibers || !groups) abort();
        for (u32 i = made * GROUP; i < group_count * GROUP; i++)
            if (!(fibers[i].stack = malloc(STACK)) ||
                !(fibers[i].copies = malloc(COPIES * sizeof(copy))))
                abort();
        for (u32 i = made; i < group_count; i++)
            if (!(groups[i].memory = aligned_alloc(128, local + MARGIN))) abort();
        made = group_count;
    }
    for (u32 i = 0; i < group_count * GROUP; i++)
        fibers[i] = (fiber){.stack = fibers[i].stack,
                            .copies = fibers[i].copies,
                            .id = i % GROUP,
                            .group = i / GROUP};
    for (u32 i = 0; i < group_count; i++) {
        char *memory = groups[i].memory;
        memset(&groups[i], 0, sizeof groups[i]);
        groups[i].memory = memory;
        memset(memory, 0xff, local + MARGIN);
    }
}

/* Each thread of a group as far as it comes, from a thread of chance; how many moved, those that
 * only look at a count left out. */
static u32 run_group(fiber *first, unsigned *seed, u32 *left) {
    u32 moved = 0, offset = (u32)rand_r(seed) % GROUP;
    for (u32 i = 0; i < GROUP; i++) {
        fiber *f = &first[(i + offset) % GROUP];
        if (!can_run(f)) continue;
        resume(f);
        if (f->done) --*left;
        moved += f->done || f->waiting != RUNS;
    }
    return moved;
}

/* Groups take turns, in an order that changes. */
static void run_all(void) {
    unsigned seed = 1;
    for (u32 left = group_count * GROUP; left > 0;) {
        u32 from = (u32)rand_r(&seed) % group_count;
        for (u32 g = 0; g < group_count; g++)
            for (int turn = 0; turn < TURN; turn++)
                if (!run_group(&fibers[(g + from) % group_count * GROUP], &seed, &left)) break;
    }
}

void NAME(const emulated_launch *l) {
    launch.memory = l->memory, launch.weights = l->weights, launch.table = l->table;
    launch.sync = l->sync, launch.first = l->first, launch.count = l->count;
    group_count = l->groups;
    reset(l->local_bytes);
    run_all();
    for (u32 i = 0; i < group_count; i++)
        for (u32 k = 0; k < MARGIN; k++)
            if ((unsigned char)groups[i].memory[l->local_bytes + k] != 0xff)
                stop("it wrote behind a group's memory");
}
