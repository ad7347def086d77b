/* Rows for GPUs beside the matrix products: depthwise convolution, with and without the means of
 * its channels; squeeze and excitation's two layers; the first convolution of a network where
 * tensor cores have no kernel for it.
 *
 * Geometry computed here mirrors the macros of dwconv_g, dwconv_r, excite_g and conv_few_g.
 */
#include "kernel/pack_gpu.h"
#include "kernel/rows.h"

#include "base/half.h"

#include <string.h>

/* Stored elements in 16 bytes. */
static int vector_of(const lap_case *c) {
    return 16 / (int)lap_element_bytes(c->precision);
}

static uint64_t units_of(const lap_case *c) {
    return c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
}

/* Images in the second dimension, which kernels walk with a stride. */
static bool grid_of(const lap_case *c, uint64_t groups, uint64_t threads, lap_grid *grid) {
    if (c->n == 0 || groups == 0 || groups > INT32_MAX) return false;
    uint32_t images = c->n < 65535 ? (uint32_t)c->n : 65535; /* CUDA's limit */
    *grid = (lap_grid){.groups = {(uint32_t)groups, images, 1}, .local = {(uint32_t)threads, 1, 1}};
    return true;
}

/* The value that storage of the precision gives, as a float. */
static float rounded(lap_precision precision, float value) {
    switch (precision) {
    case LAP_FP16:
        return lap_half_to_float(lap_half_from_float(value));
    case LAP_BF16:
        return lap_bf16_to_float(lap_bf16_from_float(value));
    case LAP_TF32:
        return lap_tf32_round(value);
    case LAP_FP32:
    case LAP_FP32X3:
    case LAP_PRECISION_COUNT:
        break;
    }
    return value;
}

/* ---- depthwise: what is best where ----------------------------------------------------------- */

/* A tile: neighbours along the channels, lines, columns, rows (dwconv_g) or where weights are
 * (dwconv_r), rows of a group. */
typedef struct dw_tile {
    int cx, lines, tq, extra, rows;
} dw_tile;

enum { IN_REGISTERS, IN_SHARED, IN_SHARED_IF_MANY };

/* Kinds of layers and the best of some 370 builds for them at batch 64 and 256 on a Hopper GPU: of
 * dwconv_r from `least` threads a multiprocessor, below or without one of dwconv_g. Without either
 * the older rules of dwconv_g hold. */
static const struct dw_kind {
    int bytes, window, stride, width, least;
    dw_tile r, g;
} dw_kinds[] = {
    {2, 3, 1, 112, 0, {0}, {8, 16, 8, 1, 14}},
    {2, 3, 1, 56, 0, {0}, {36, 7, 4, 2, 14}},
    {2, 3, 1, 14, 160, {32, 2, 7, IN_REGISTERS, 14}, {0}},
    {2, 3, 1, 7, 160, {32, 1, 7, IN_REGISTERS, 7}, {0}},
    {2, 3, 2, 56, 0, {0}, {24, 10, 8, 1, 14}},
    {2, 3, 2, 14, 160, {32, 2, 7, IN_REGISTERS, 4}, {0}},
    {2, 5, 1, 28, 160, {30, 4, 7, IN_REGISTERS, 28}, {0}},
    {2, 5, 1, 14, 160, {16, 2, 7, IN_SHARED_IF_MANY, 14}, {0}},
    {2, 5, 1, 7, 640, {96, 1, 7, IN_REGISTERS, 7}, {32, 7, 7, 1, 7}},
    {2, 5, 2, 28, 160, {72, 2, 7, IN_REGISTERS, 7}, {0}},
    {2, 5, 2, 7, 160, {32, 1, 7, IN_REGISTERS, 7}, {0}},
    {4, 3, 1, 112, 0, {0}, {8, 32, 7, 1, 14}},
    {4, 3, 1, 56, 0, {0}, {12, 21, 7, 1, 28}},
    {4, 3, 1, 14, 160, {32, 2, 7, IN_REGISTERS, 7}, {0}},
    {4, 3, 1, 7, 160, {32, 1, 7, IN_REGISTERS, 7}, {0}},
    {4, 3, 2, 56, 160, {16, 8, 7, IN_REGISTERS, 28}, {0}},
    {4, 3, 2, 14, 160, {64, 2, 7, IN_REGISTERS, 4}, {0}},
    {4, 5, 1, 28, 160, {8, 4, 7, IN_REGISTERS, 28}, {0}},
    {4, 5, 1, 14, 160, {16, 2, 7, IN_SHARED_IF_MANY, 14}, {0}},
    {4, 5, 1, 7, 0, {0}, {16, 7, 7, 1, 7}},
    {4, 5, 2, 28, 160, {8, 4, 7, IN_SHARED, 14}, {0}},
    {4, 5, 2, 7, 160, {63, 2, 4, IN_REGISTERS, 7}, {0}},
};

/* The kind whose width is the nearest; NULL: none, or not a GPU that is known to be like that. */
static const struct dw_kind *kind_of(const lap_case *c) {
    const lap_op *op = c->op;
    const struct dw_kind *best = NULL;
    double best_ratio = 0;
    if (!c->device->cc_major || op->r != op->s) return NULL;
    for (size_t i = 0; i < sizeof dw_kinds / sizeof dw_kinds[0]; i++) {
        const struct dw_kind *kind = &dw_kinds[i];
        if (kind->bytes != (int)lap_element_bytes(c->precision) || kind->window != op->r ||
            kind->stride != op->stride)
            continue;
        double ratio = (double)op->out.w / kind->width;
        if (ratio < 1) ratio = 1 / ratio;
        if (best && ratio >= best_ratio) continue;
        best = kind;
        best_ratio = ratio;
    }
    return best;
}

/* The tile for an op of this size: no wider than it, and with few idle work-items. */
static dw_tile fitted(const lap_op *op, dw_tile t, int vectors) {
    int parts = (op->out.w + t.tq - 1) / t.tq, blocks;
    t.tq = (op->out.w + parts - 1) / parts;
    if (t.cx > vectors) t.cx = vectors;
    blocks = (vectors + t.cx - 1) / t.cx;
    if (blocks * t.cx * 8 > vectors * 9) t.cx = (vectors + blocks - 1) / blocks;
    if (t.rows > op->out.h) t.rows = op->out.h;
    return t;
}

/* ---- depthwise: tiles ------------------------------------------------------------------------ */

enum { CX, LINES, TQ, TP, ROWS, DW_TUNABLES };

#define DW_VECTOR 4 /* channels of a work-item */

typedef struct depthwise {
    uint64_t quads, blocks, bands, tiles; /* tiles: of a whole band */
    uint64_t threads;
} depthwise;

static depthwise depthwise_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    depthwise g = {.quads = (uint64_t)(op->out.cs / DW_VECTOR)};
    g.blocks = lap_row_ceil_div(g.quads, (uint64_t)v[CX]);
    g.bands = lap_row_ceil_div((uint64_t)op->out.h, (uint64_t)v[ROWS]);
    g.tiles = lap_row_ceil_div((uint64_t)op->out.w, (uint64_t)v[TQ]) *
              lap_row_ceil_div((uint64_t)v[ROWS], (uint64_t)v[TP]);
    g.threads = (uint64_t)v[CX] * (uint64_t)v[LINES];
    return g;
}

static bool depthwise_valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < DW_TUNABLES; i++)
        if (v[i] <= 0) return false;
    depthwise g = depthwise_of(c);
    if (v[TQ] > 8 || v[TP] > 4 || v[TQ] * v[TP] > 16) return false;
    if (g.threads > 512 || (uint64_t)v[CX] > g.quads) return false;
    uint64_t local = c->fusion == LAP_FUSE_POOL ? g.threads * DW_VECTOR * 4 + 16 : 0;
    return lap_row_group_fits(c->device, g.threads, local);
}

/* Neighbours along the channels: whole lines of the cache where there are so many, and the number
 * that leaves fewest of them idle. */
static int default_cx(uint64_t quads) {
    int best = 1;
    double best_cost = 1e9;
    for (int cx = 1; cx <= 16 && (uint64_t)cx <= quads; cx++) {
        double cost =
            (double)(lap_row_ceil_div(quads, (uint64_t)cx) * (uint64_t)cx) / (double)quads;
        if (cx < 8) cost += 0.04 * (8 - cx);
        if (cost > best_cost) continue;
        best_cost = cost;
        best = cx;
    }
    return best;
}

/* A tile's columns and rows, with much work. On NVIDIA GPUs, from the times of some 450 builds at
 * batch 64 and 256 on a Hopper GPU: seven columns where they cover the row and the window is small
 * or the image is, else two rows of four; others keep fewer values, see FOR_ROWS in the kernel. */
static void large_tile(const lap_case *c, int *v) {
    const lap_op *op = c->op;
    bool sevens = op->out.w % 7 == 0 && op->r <= 3 && op->stride == 1;
    /* Halves have narrower lines: with seven columns the early layers find less in the cache. */
    if (op->out.w > 56 && lap_element_bytes(c->precision) < 4) sevens = false;
    v[TQ] = sevens || op->out.w == 7 ? 7 : 4;
    v[TP] = v[TQ] == 7 || !c->device->cc_major ? 1 : 2;
    if (!c->device->cc_major) v[TQ] = 4;
}

/* The work-items of all tiles, if they are of TQ columns and TP rows. */
static uint64_t tile_items(const lap_case *c, const int *v) {
    const lap_op *op = c->op;
    return c->n * (uint64_t)(op->out.cs / DW_VECTOR) *
           lap_row_ceil_div((uint64_t)op->out.h, (uint64_t)v[TP]) *
           lap_row_ceil_div((uint64_t)op->out.w, (uint64_t)v[TQ]);
}

/* So many lines, or fewer where groups cannot be so large. */
static int few_lines(const lap_case *c, int cx, int lines) {
    uint64_t most = lap_row_group_most(c->device) / (uint64_t)cx;
    return most >= (uint64_t)lines ? lines : most ? (int)most : 1;
}

/* Whole images where they are groups enough, else bands of them. */
static void depthwise_defaults(const lap_case *c, lap_params *params) {
    static const int small_tiles[][2] = {{4, 1}, {2, 1}}; /* TQ, TP */
    const lap_op *op = c->op;
    uint64_t units = units_of(c);
    lap_case trial = *c;
    int *v = trial.params.value;
    memset(&trial.params, 0, sizeof trial.params);
    v[CX] = default_cx((uint64_t)(op->out.cs / DW_VECTOR));
    /* Large tiles read less again; small ones give a device with little to do more threads. */
    large_tile(c, v);
    for (int i = 0; i < 2 && tile_items(c, v) < units * 512; i++) {
        v[TQ] = small_tiles[i][0];
        v[TP] = small_tiles[i][1];
    }
    const struct dw_kind *kind = kind_of(c);
    if (kind && kind->g.cx && tile_items(c, v) >= units * 512) {
        dw_tile t = fitted(op, kind->g, op->out.cs / DW_VECTOR);
        *params = (lap_params){.value = {t.cx, few_lines(c, t.cx, t.lines), t.tq, t.extra, t.rows}};
        return;
    }
    v[LINES] = 1;
    v[ROWS] = op->out.h;
    for (;;) {
        depthwise g = depthwise_of(&trial);
        if (v[ROWS] <= v[TP] || g.blocks * g.bands * c->n >= units * 7 / 4) break;
        v[ROWS] = (v[ROWS] + 2 * v[TP] - 1) / (2 * v[TP]) * v[TP];
    }
    int threads = op->out.w >= 56 || v[TQ] == 7 ? 256 : 128;
    uint64_t lines = (uint64_t)(threads / v[CX]), all = depthwise_of(&trial).tiles;
    v[LINES] = few_lines(c, v[CX], (int)(all < lines ? all : lines));
    *params = trial.params;
}

static bool depthwise_accepts(const lap_case *c) {
    if (!lap_row_is_gpu(c->device) || !lap_row_accepts_plain(c)) return false;
    if (c->op->out.cs % DW_VECTOR || c->op->s > 16 || c->op->in.cs != c->op->out.cs) return false;
    lap_case trial = *c;
    depthwise_defaults(c, &trial.params);
    return depthwise_valid(&trial);
}

static bool depthwise_grid(const lap_case *c, lap_grid *grid) {
    depthwise g = depthwise_of(c);
    return grid_of(c, g.blocks * g.bands, g.threads, grid);
}

static size_t depthwise_packed_bytes(const lap_case *c) {
    return (size_t)c->op->r * (size_t)c->op->s * (size_t)c->op->out.cs * sizeof(float);
}

/* As lap_pack_rsc, but floats whatever is stored: they are used as floats. */
static void depthwise_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    size_t taps = (size_t)c->op->r * (size_t)c->op->s, cs = (size_t)c->op->out.cs;
    float *to = out;
    for (size_t i = 0; i < taps * cs; i++) {
        size_t channel = i % cs;
        bool real = channel < (size_t)c->op->out.c;
        to[i] = real ? rounded(c->precision, weights->w[channel * taps + i / cs]) : 0.0f;
    }
}

static void depthwise_pack_fused(const lap_case *c, const lap_op_weights *weights,
                                 const lap_op_weights *partner, void *out) {
    (void)partner; /* a pool has none */
    depthwise_pack(c, weights, out);
}

/* A counter for every image and block of channels, then sums of bands. */
static uint64_t means_scratch(const lap_case *c, uint64_t blocks, uint64_t bands) {
    if (bands == 1) return 0;
    uint64_t counters = lap_row_ceil_div(c->n * blocks, 64) * 64;
    return (counters + c->n * bands * (uint64_t)c->op->out.cs) * sizeof(float);
}

static uint64_t depthwise_scratch_bytes(const lap_case *c) {
    depthwise g = depthwise_of(c);
    return c->fusion == LAP_FUSE_POOL ? means_scratch(c, g.blocks, g.bands) : 0;
}

#define DW_COMMON                                                                                  \
    .kind = LAP_OP_DWCONV, .precisions = LAP_ROW_PLAIN, .smooth = true,                            \
    .tunables = {[CX] = {"CX", 12, {2, 4, 6, 8, 9, 10, 12, 15, 16, 24, 32, 36}},                   \
                 [LINES] = {"LINES", 11, {4, 7, 8, 10, 14, 16, 17, 20, 21, 28, 32}},               \
                 [TQ] = {"TQ", 5, {1, 2, 4, 7, 8}},                                                \
                 [TP] = {"TP", 3, {1, 2, 4}},                                                      \
                 [ROWS] = {"ROWS", 8, {1, 2, 4, 7, 14, 28, 56, 112}}},                             \
    .tunable_count = DW_TUNABLES,                                                                  \
    .stages = {LAP_ROW_STAGE_KERNEL("dwconv_g", depthwise_grid, 8, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,  \
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_OUT2, LAP_ROLE_SCRATCH,  \
                                    LAP_ROLE_N, LAP_ROLE_FLAGS)},                                  \
    .stage_count = 1, .accepts = depthwise_accepts, .defaults = depthwise_defaults,                \
    .valid = depthwise_valid, .packed_bytes = depthwise_packed_bytes,                              \
    .scratch_bytes = depthwise_scratch_bytes, .scratch_zeroed = true

const lap_kernel_row lap_row_dwconv_g = {
    .id = "dwconv_g",
    .about = "tiles of a few pixels from registers, four channels a work-item",
    .pack = depthwise_pack,
    DW_COMMON,
};

const lap_kernel_row lap_row_dwconv_pool_g = {
    .id = "dwconv_pool_g",
    .about = "dwconv_g, and the means of its channels",
    .fusion = LAP_FUSE_POOL,
    .pack_fused = depthwise_pack_fused,
    DW_COMMON,
};

/* ---- depthwise: rows that pass by ------------------------------------------------------------ */

enum { R_CX, R_LINES, R_TQ, R_SHARED, R_ROWS, R_TUNABLES };

#define R_VECTOR 2 /* channels of a work-item */

typedef struct rolling {
    uint64_t blocks, bands, strips, threads;
} rolling;

static rolling rolling_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    return (rolling){
        .blocks = lap_row_ceil_div((uint64_t)(op->out.cs / R_VECTOR), (uint64_t)v[R_CX]),
        .bands = lap_row_ceil_div((uint64_t)op->out.h, (uint64_t)v[R_ROWS]),
        .strips = lap_row_ceil_div((uint64_t)op->out.w, (uint64_t)v[R_TQ]),
        .threads = (uint64_t)v[R_CX] * (uint64_t)v[R_LINES],
    };
}

static bool rolling_valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < R_TUNABLES; i++)
        if (v[i] <= 0 && i != R_SHARED) return false;
    rolling g = rolling_of(c);
    if (v[R_TQ] > 8 || v[R_SHARED] < 0 || v[R_SHARED] > 1) return false;
    if (g.threads > 256 || v[R_CX] > c->op->out.cs / R_VECTOR) return false;
    if ((uint64_t)v[R_LINES] > g.strips) return false;
    uint64_t floats = c->fusion == LAP_FUSE_POOL ? g.threads * R_VECTOR + 4 : 0;
    if (v[R_SHARED]) floats += (uint64_t)(c->op->r * c->op->s * v[R_CX] * R_VECTOR);
    return lap_row_group_fits(c->device, g.threads, floats * sizeof(float));
}

/* 25 weights of two channels leave a multiprocessor registers for 10 warps. While they are all the
 * work, that is faster; groups that have to wait for them cost more than reading weights again. */
static bool are_many(const lap_case *c) {
    rolling g = rolling_of(c);
    uint64_t warps = lap_row_ceil_div(g.threads, 32) * g.blocks * g.bands * c->n;
    return warps > units_of(c) * 10;
}

static void rolling_defaults(const lap_case *c, lap_params *params) {
    const struct dw_kind *kind = kind_of(c);
    dw_tile t = {16, 2, 7, IN_SHARED_IF_MANY, 14};
    if (kind && kind->r.cx) t = kind->r;
    t = fitted(c->op, t, c->op->out.cs / R_VECTOR);
    int strips = (c->op->out.w + t.tq - 1) / t.tq;
    lap_case trial = *c;
    trial.params = (lap_params){.value = {[R_CX] = t.cx,
                                          [R_LINES] = t.lines < strips ? t.lines : strips,
                                          [R_TQ] = t.tq,
                                          [R_ROWS] = t.rows}};
    trial.params.value[R_SHARED] =
        t.extra == IN_SHARED || (t.extra == IN_SHARED_IF_MANY && are_many(&trial));
    *params = trial.params;
}

/* Where it is known to be the faster: what registers do elsewhere than on NVIDIA GPUs is not. */
static bool rolling_accepts(const lap_case *c) {
    if (!lap_row_is_gpu(c->device) || !lap_row_accepts_plain(c)) return false;
    if (c->op->out.cs % R_VECTOR || c->op->in.cs != c->op->out.cs) return false;
    const struct dw_kind *kind = kind_of(c);
    if (!kind || !kind->r.cx) return false;
    lap_case trial = *c;
    rolling_defaults(c, &trial.params);
    rolling g = rolling_of(&trial);
    uint64_t threads = (uint64_t)(c->op->out.cs / R_VECTOR) * g.strips * g.bands * c->n;
    return threads >= units_of(c) * (uint64_t)kind->least && rolling_valid(&trial);
}

static bool rolling_grid(const lap_case *c, lap_grid *grid) {
    rolling g = rolling_of(c);
    return grid_of(c, g.blocks * g.bands, g.threads, grid);
}

static uint64_t rolling_scratch_bytes(const lap_case *c) {
    rolling g = rolling_of(c);
    return c->fusion == LAP_FUSE_POOL ? means_scratch(c, g.blocks, g.bands) : 0;
}

#define ROLLING_COMMON                                                                             \
    .kind = LAP_OP_DWCONV, .precisions = LAP_ROW_PLAIN, .smooth = true,                            \
    .tunables = {[R_CX] = {"CX", 8, {8, 16, 24, 30, 32, 63, 72, 96}},                              \
                 [R_LINES] = {"LINES", 6, {1, 2, 4, 7, 8, 16}},                                    \
                 [R_TQ] = {"TQ", 3, {4, 7, 8}},                                                    \
                 [R_SHARED] = {"SHARED", 2, {0, 1}},                                               \
                 [R_ROWS] = {"ROWS", 5, {4, 7, 14, 28, 56}}},                                      \
    .tunable_count = R_TUNABLES,                                                                   \
    .stages = {LAP_ROW_STAGE_KERNEL("dwconv_r", rolling_grid, 8, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,    \
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_OUT2, LAP_ROLE_SCRATCH,  \
                                    LAP_ROLE_N, LAP_ROLE_FLAGS)},                                  \
    .stage_count = 1, .accepts = rolling_accepts, .defaults = rolling_defaults,                    \
    .valid = rolling_valid, .packed_bytes = depthwise_packed_bytes,                                \
    .scratch_bytes = rolling_scratch_bytes, .scratch_zeroed = true

const lap_kernel_row lap_row_dwconv_r = {
    .id = "dwconv_r",
    .about = "columns of sums down which the input's rows pass, two channels a work-item",
    .pack = depthwise_pack,
    ROLLING_COMMON,
};

const lap_kernel_row lap_row_dwconv_pool_r = {
    .id = "dwconv_pool_r",
    .about = "dwconv_r, and the means of its channels",
    .fusion = LAP_FUSE_POOL,
    .pack_fused = depthwise_pack_fused,
    ROLLING_COMMON,
};

/* ---- squeeze and excitation ------------------------------------------------------------------ */

enum { GROUP, LANES, SPLIT, EX_TUNABLES };

static bool excite_valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < EX_TUNABLES; i++)
        if (v[i] <= 0) return false;
    int vector = vector_of(c);
    if (v[GROUP] % v[LANES] || v[SPLIT] > c->partner->out.cs / vector) return false;
    uint64_t sums = (uint64_t)v[GROUP] * (uint64_t)vector;
    uint64_t shared = (uint64_t)c->op->out.c * (uint64_t)v[LANES];
    uint64_t floats = (uint64_t)(c->op->in.cs + c->op->out.c) + (sums > shared ? sums : shared);
    return lap_row_group_fits(c->device, (uint64_t)v[GROUP], floats * sizeof(float));
}

/* Few images: several groups each, so that reading the second layer's weights is shared. The first
 * layer in one go where a group can be that large (times of 96 builds on a Hopper GPU). */
static void excite_defaults(const lap_case *c, lap_params *params) {
    int outs = c->partner->out.cs / vector_of(c);
    int split = c->n * 4 <= units_of(c) ? 4 : c->n * 2 <= units_of(c) ? 2 : 1;
    while (split > 1 && outs / split < 8)
        split /= 2;
    lap_case trial = *c;
    trial.params = (lap_params){.value = {[GROUP] = 512, [LANES] = 8, [SPLIT] = split}};
    *params = (lap_params){.value = {[GROUP] = 256, [LANES] = 32, [SPLIT] = split}};
    if (c->op->out.c >= 16 && excite_valid(&trial)) *params = trial.params;
    while (params->value[GROUP] > params->value[LANES] &&
           (uint64_t)params->value[GROUP] > lap_row_group_most(c->device))
        params->value[GROUP] /= 2;
}

static bool excite_accepts(const lap_case *c) {
    if (!lap_row_is_gpu(c->device) || !lap_row_accepts_plain(c)) return false;
    if (c->op->in.cs % vector_of(c) || c->partner->out.cs % vector_of(c)) return false;
    lap_case trial = *c;
    excite_defaults(c, &trial.params);
    return excite_valid(&trial);
}

static bool excite_grid(const lap_case *c, lap_grid *grid) {
    return grid_of(c, (uint64_t)c->params.value[SPLIT], (uint64_t)c->params.value[GROUP], grid);
}

static size_t excite_packed_bytes(const lap_case *c) {
    return lap_pack_ks_cs_bytes(c->op, c->precision) +
           (size_t)c->op->out.c * (size_t)c->partner->out.cs * lap_element_bytes(c->precision);
}

/* [KS][CS], then the second layer as [K][KS2]. */
static void excite_pack(const lap_case *c, const lap_op_weights *weights,
                        const lap_op_weights *partner, void *out) {
    size_t depth = (size_t)c->op->out.c, cs = (size_t)c->partner->out.cs;
    lap_pack_ks_cs(c->op, c->precision, weights->w, out);
    char *to = (char *)out + lap_pack_ks_cs_bytes(c->op, c->precision);
    for (size_t k = 0; k < depth; k++)
        for (size_t i = 0; i < cs; i++)
            lap_element_put(c->precision, to, k * cs + i,
                            i < (size_t)c->partner->out.c ? partner->w[i * depth + k] : 0.0f);
}

const lap_kernel_row lap_row_excite_g = {
    .id = "excite_g",
    .about = "both small layers of an image in one group",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_EXCITE,
    .precisions = LAP_ROW_PLAIN,
    .smooth = true,
    .tunables = {[GROUP] = {"GROUP", 3, {128, 256, 512}},
                 [LANES] = {"LANES", 3, {8, 16, 32}},
                 [SPLIT] = {"SPLIT", 4, {1, 2, 4, 8}}},
    .tunable_count = EX_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("excite_g", excite_grid, 6, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N, LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = excite_accepts,
    .defaults = excite_defaults,
    .valid = excite_valid,
    .packed_bytes = excite_packed_bytes,
    .pack_fused = excite_pack,
};

/* ---- few input channels ---------------------------------------------------------------------- */

enum { FEW_TQ, FEW_GROUP, FEW_TUNABLES };

static uint64_t few_weight_bytes(const lap_case *c) {
    const lap_op *op = c->op;
    return (uint64_t)(op->r * op->s * op->in.c * op->out.cs) * sizeof(float);
}

static bool few_valid(const lap_case *c) {
    const int *v = c->params.value;
    return v[FEW_TQ] >= 1 && v[FEW_TQ] <= 8 && v[FEW_GROUP] >= 1 &&
           lap_row_group_fits(c->device, (uint64_t)v[FEW_GROUP], few_weight_bytes(c));
}

static void few_defaults(const lap_case *c, lap_params *params) {
    uint64_t pixels = c->n * (uint64_t)c->op->out.h * (uint64_t)c->op->out.w;
    bool little = pixels * (uint64_t)c->op->out.cs < units_of(c) * 16384;
    uint64_t most = lap_row_group_most(c->device);
    *params = (lap_params){
        .value = {[FEW_TQ] = little ? 2 : 4, [FEW_GROUP] = most < 128 ? (int)most : 128}};
}

static bool few_accepts(const lap_case *c) {
    const lap_op *op = c->op;
    if (!lap_row_is_gpu(c->device) || !lap_row_accepts_plain(c)) return false;
    if (op->in.cs != 4 || op->out.cs % 8 || op->residual >= 0 || op->r * op->s > 25) return false;
    lap_case trial = *c;
    few_defaults(c, &trial.params);
    return few_valid(&trial);
}

static bool few_grid(const lap_case *c, lap_grid *grid) {
    const lap_op *op = c->op;
    uint64_t strips = lap_row_ceil_div((uint64_t)op->out.w, (uint64_t)c->params.value[FEW_TQ]);
    uint64_t items = strips * (uint64_t)op->out.h * (uint64_t)(op->out.cs / 8);
    uint64_t group = (uint64_t)c->params.value[FEW_GROUP];
    return grid_of(c, lap_row_ceil_div(items, group), group, grid);
}

static size_t few_packed_bytes(const lap_case *c) {
    return (size_t)few_weight_bytes(c);
}

/* [R][S][C][KS], floats whatever is stored. */
static void few_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    size_t taps = (size_t)c->op->r * (size_t)c->op->s, ks = (size_t)c->op->out.cs;
    size_t c_count = (size_t)c->op->in.c;
    float *to = out;
    for (size_t i = 0; i < taps * c_count * ks; i++) {
        size_t k = i % ks, channel = i / ks % c_count, tap = i / ks / c_count;
        bool real = k < (size_t)c->op->out.c;
        to[i] =
            real ? rounded(c->precision, weights->w[(k * c_count + channel) * taps + tap]) : 0.0f;
    }
}

const lap_kernel_row lap_row_conv_few_g = {
    .id = "conv_few_g",
    .about = "few input channels: strips of a row, 8 output channels a work-item",
    .kind = LAP_OP_CONV,
    .precisions = LAP_ROW_PLAIN,
    .smooth = true,
    .tunables = {[FEW_TQ] = {"TQ", 4, {1, 2, 4, 8}}, [FEW_GROUP] = {"GROUP", 3, {64, 128, 256}}},
    .tunable_count = FEW_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_few_g", few_grid, 6, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N, LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = few_accepts,
    .defaults = few_defaults,
    .valid = few_valid,
    .packed_bytes = few_packed_bytes,
    .pack = few_pack,
};
