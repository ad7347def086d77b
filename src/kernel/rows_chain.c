/* Rows whose steps are run one after another by one launch (chain_mma), for small batches: the
 * first convolution with its max-pool, 3x3 convolutions (with the residual's 1x1 convolution), the
 * average pool with the classifier. Parameters go into the step's words, not into defines, so that
 * all steps share one kernel.
 *
 * Geometry computed here mirrors kernels_cl/chain_mma* and kernels_cu/chain_mma*.
 */
#include "kernel/rows_chain.h"
#include "kernel/chain.h"
#include "kernel/pack_chain.h"
#include "kernel/pack_gpu.h"

#include <string.h>

#define THREADS LAP_CHAIN_THREADS
#define LINE 128 /* bytes of a row in local memory */
#define HEAD LAP_CHAIN_HEAD
#define LOCAL 163840 /* bytes that a group uses when it can have them */
#define LOCAL_STATIC 49152
#define MOST_BATCH 1       /* what has been measured */
#define MOST_BATCH_SPLIT 8 /* only by name */
#define MOST_TAILS 9
#define MOST_BUFFERS LAP_CHAIN_MOST_BUFFERS
#define MOST_ROWS LAP_CHAIN_MOST_ROWS

enum { BM, BN, CHAIN_TUNABLES };
enum { KIND_STEM = 5, KIND_POOL_FC };

/* In the order of the kernel's kinds. */
static const struct tile {
    int bm, bn;
} tiles[] = {{64, 32}, {64, 16}, {32, 32}, {32, 16}, {32, 8}};

static int tile_of(const lap_case *c) {
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++)
        if (tiles[i].bm == c->params.value[BM] && tiles[i].bn == c->params.value[BN]) return (int)i;
    return -1;
}

static bool in_cuda(const lap_case *c) {
    return strcmp(c->device->language, "cu") == 0;
}

/* In OpenCL what every NVIDIA compiler gives: more has not been measured. */
int lap_chain_local(const lap_case *c) {
    uint64_t limit = in_cuda(c) ? c->device->local_optin_bytes : c->device->local_bytes;
    uint64_t most = in_cuda(c) ? LOCAL : LOCAL_STATIC;
    return (int)(limit < most ? limit / LINE * LINE : most);
}

bool lap_chain_device(const lap_case *c, uint64_t most_batch) {
    const lap_device_info *device = c->device;
    if (!(c->features & LAP_FEATURE_MMA(c->precision)) || device->units == 0) return false;
    return c->n <= most_batch && lap_row_group_fits(device, THREADS, LOCAL_STATIC);
}

/* A group for every multiprocessor: one always fits, and all of them are there at once. */
bool lap_chain_grid(const lap_case *c, lap_grid *grid) {
    *grid = (lap_grid){.groups = {c->device->units, 1, 1},
                       .local = {THREADS, 1, 1},
                       .dynamic_local_bytes = in_cuda(c) ? (size_t)lap_chain_local(c) : 0};
    return c->n > 0 && c->device->units > 0;
}

/* ---- 3x3 convolutions ----------------------------------------------------------------------- */

typedef struct tiling {
    uint64_t rows, columns, items, phases, tails, lines, buffers;
    bool halo;
} tiling;

static tiling tiling_of(const lap_case *c) {
    const lap_op *op = c->op;
    uint64_t bm = (uint64_t)c->params.value[BM], bn = (uint64_t)c->params.value[BN];
    uint64_t element = lap_element_bytes(c->precision);
    tiling g = {.halo = op->stride == 1};
    g.rows = c->n * (uint64_t)op->out.h * (uint64_t)op->out.w;
    g.columns = (uint64_t)op->out.cs / bn;
    g.items = g.columns * lap_row_ceil_div(g.rows, bm);
    g.phases = (uint64_t)op->in.cs * element / LINE;
    g.tails = c->partner ? (uint64_t)c->partner->in.cs * element / LINE : 0;
    g.lines = g.halo ? bm + 2 * ((uint64_t)op->in.w + 1) : 9 * bm;
    uint64_t space = (uint64_t)lap_chain_local(c), taken = HEAD + g.tails * bm * LINE;
    g.buffers = taken < space ? (space - taken) / (g.lines * LINE) : 0;
    if (g.buffers > g.phases) g.buffers = g.phases;
    if (g.buffers > MOST_BUFFERS) g.buffers = MOST_BUFFERS;
    return g;
}

static bool conv_valid(const lap_case *c) {
    const lap_op *op = c->op;
    if (tile_of(c) < 0) return false;
    uint64_t element = lap_element_bytes(c->precision);
    if (op->r != 3 || op->s != 3 || op->pad != 1 || op->stride < 1 || op->stride > 2) return false;
    if ((uint64_t)op->in.cs * element % LINE || op->out.cs % c->params.value[BN]) return false;
    if (c->partner && (uint64_t)c->partner->in.cs * element % LINE) return false;
    tiling g = tiling_of(c);
    if (g.buffers == 0 || g.tails > MOST_TAILS || g.rows > MOST_ROWS) return false;
    uint64_t bm = (uint64_t)c->params.value[BM], bn = (uint64_t)c->params.value[BN];
    uint64_t sums = 4 * bm * (bn == 8 ? 8 : bn + 8) * sizeof(float);
    return HEAD + sums <= (uint64_t)lap_chain_local(c);
}

/* Estimated clocks of the step. Only ratios matter. */
static double conv_clocks(const lap_case *c) {
    tiling g = tiling_of(c);
    uint64_t rounds = lap_row_ceil_div(g.items, c->device->units);
    double mf = c->params.value[BM] / 32.0, nf = c->params.value[BN] / 8.0;
    double taps = (double)(9 * g.phases + g.tails), products = taps * mf * nf;
    double chain = taps * (mf * nf < 2 ? 18 : 36), busy = products * 18; /* two warps a quarter */
    double matrices = taps * mf * 32;                                    /* 8 warps, 4 clocks */
    double work = busy > chain ? busy : chain;
    if (matrices > work) work = matrices;
    double loads = (double)(g.lines * g.phases * LINE) / 48;
    double stalls = (double)(g.phases - g.buffers) * 300 + 20 * (double)g.phases;
    return (double)rounds * (1400 + work + loads + stalls);
}

static bool find_tile(const lap_case *c, lap_params *params) {
    double best = -1;
    lap_case trial = *c;
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        trial.params = (lap_params){.value = {[BM] = tiles[i].bm, [BN] = tiles[i].bn}};
        if (!conv_valid(&trial)) continue;
        double clocks = conv_clocks(&trial);
        if (best >= 0 && clocks >= best) continue;
        best = clocks;
        *params = trial.params;
    }
    return best >= 0;
}

static void conv_defaults(const lap_case *c, lap_params *params) {
    *params = (lap_params){{0}};
    find_tile(c, params);
}

static bool conv_accepts(const lap_case *c) {
    lap_params params;
    return lap_chain_device(c, MOST_BATCH) && find_tile(c, &params);
}

static void conv_words(const lap_case *c, int32_t *words) {
    const lap_op *op = c->op, *partner = c->partner;
    int32_t element = (int32_t)lap_element_bytes(c->precision);
    tiling g = tiling_of(c);
    words[LAP_CHAIN_KIND] = tile_of(c);
    words[LAP_CHAIN_ITEMS] = (int32_t)g.items;
    words[LAP_CHAIN_COLUMNS] = (int32_t)g.columns;
    words[LAP_CHAIN_ROWS] = (int32_t)g.rows;
    words[LAP_CHAIN_PIXELS] = op->out.h * op->out.w;
    words[LAP_CHAIN_OUT_W] = op->out.w;
    words[LAP_CHAIN_OUT_C] = op->out.cs;
    words[LAP_CHAIN_IN_H] = op->in.h;
    words[LAP_CHAIN_IN_W] = op->in.w;
    words[LAP_CHAIN_IN_BYTES] = op->in.cs * element;
    words[LAP_CHAIN_HALO] = g.halo;
    words[LAP_CHAIN_LINES] = (int32_t)g.lines;
    words[LAP_CHAIN_PHASES] = (int32_t)g.phases;
    words[LAP_CHAIN_BUFFERS] = (int32_t)g.buffers;
    words[LAP_CHAIN_TAILS] = (int32_t)g.tails;
    if (!partner) return;
    words[LAP_CHAIN_SECOND_IMAGE] = partner->in.h * partner->in.w;
    words[LAP_CHAIN_SECOND_W] = partner->in.w;
    words[LAP_CHAIN_SECOND_BYTES] = partner->in.cs * element;
    words[LAP_CHAIN_SECOND_STEP] = partner->stride;
}

static size_t conv_packed_bytes(const lap_case *c) {
    return lap_pack_chain_bytes(c->op, c->partner, c->precision);
}

static void conv_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_pack_chain(c->op, weights->w, NULL, NULL, c->precision, c->params.value[BN], out);
}

static void conv_pack_fused(const lap_case *c, const lap_op_weights *weights,
                            const lap_op_weights *partner, void *out) {
    lap_pack_chain(c->op, weights->w, c->partner, partner->w, c->precision, c->params.value[BN],
                   out);
}

#define CHAIN_CONV                                                                                 \
    .kind = LAP_OP_CONV, .tunables = {[BM] = {"BM", 2, {32, 64}}, [BN] = {"BN", 3, {8, 16, 32}}},  \
    .tunable_count = CHAIN_TUNABLES, .accepts = conv_accepts, .defaults = conv_defaults,           \
    .valid = conv_valid, .packed_bytes = conv_packed_bytes, .pack = conv_pack, .chain = conv_words

const lap_kernel_row lap_row_chain_conv = {
    .id = "chain_conv",
    .about = "3x3 convolution on tensor cores, one launch for a chain of steps",
    CHAIN_CONV,
    LAP_CHAIN_STAGE("chain_mma"),
};

const lap_kernel_row lap_row_chain_conv_down = {
    .id = "chain_conv_down",
    .about = "chain_conv, with the 1x1 convolution that makes its residual as more depth",
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .pack_fused = conv_pack_fused,
    CHAIN_CONV,
    LAP_CHAIN_STAGE("chain_mma"),
};

/* ---- the first convolution with its max-pool ------------------------------------------------- */

#define STEM_ROWS 7 /* of the pool in a tile */
#define STEM_COLUMNS 8
#define STEM_CHANNELS 32

static bool stem_fits(const lap_case *c) {
    const lap_op *op = c->op, *pool = c->partner;
    if (op->in.cs != 4 || op->out.cs % STEM_CHANNELS || op->residual >= 0) return false;
    if (op->r != 7 || op->s != 7 || op->stride != 2 || op->pad != 3) return false;
    if (lap_tensor_stored(&op->in) > INT32_MAX / 4) return false;
    return pool->r == 3 && pool->s == 3 && pool->stride == 2 && pool->pad == 1;
}

static bool stem_accepts(const lap_case *c) {
    return lap_chain_device(c, MOST_BATCH) && stem_fits(c);
}

static bool split_stem_accepts(const lap_case *c) {
    return lap_chain_device(c, MOST_BATCH_SPLIT) && stem_fits(c);
}

static void stem_words(const lap_case *c, int32_t *words) {
    const lap_op *op = c->op;
    const lap_tensor *out = &c->partner->out;
    int32_t columns = (out->w + STEM_COLUMNS - 1) / STEM_COLUMNS;
    int32_t down = (out->h + STEM_ROWS - 1) / STEM_ROWS;
    words[LAP_CHAIN_KIND] = KIND_STEM;
    words[LAP_CHAIN_ITEMS] = (int32_t)c->n * columns * down * (out->cs / STEM_CHANNELS);
    words[LAP_CHAIN_COLUMNS] = columns;
    words[LAP_CHAIN_PIXELS] = out->h * out->w;
    words[LAP_CHAIN_OUT_W] = out->w;
    words[LAP_CHAIN_OUT_C] = out->cs;
    words[LAP_CHAIN_IN_H] = op->in.h;
    words[LAP_CHAIN_IN_W] = op->in.w;
    words[LAP_CHAIN_CONV_H] = op->out.h;
    words[LAP_CHAIN_CONV_W] = op->out.w;
}

static size_t stem_packed_bytes(const lap_case *c) {
    return lap_pack_chain_stem_bytes(c->op, c->precision);
}

static void stem_pack(const lap_case *c, const lap_op_weights *weights,
                      const lap_op_weights *partner, void *out) {
    (void)partner; /* a pool has none */
    lap_pack_chain_stem(c->op, weights->w, c->precision, out);
}

#define CHAIN_STEM                                                                                 \
    .kind = LAP_OP_CONV, .fusion = LAP_FUSE_MAXPOOL, .defaults = lap_row_defaults_none,            \
    .valid = lap_row_valid_all, .packed_bytes = stem_packed_bytes, .pack_fused = stem_pack,        \
    .chain = stem_words

const lap_kernel_row lap_row_chain_stem_pool = {
    .id = "chain_stem_pool",
    .about = "first convolution and max-pool on tensor cores, one launch for a chain of steps",
    .accepts = stem_accepts,
    CHAIN_STEM,
    LAP_CHAIN_STAGE("chain_mma"),
};

const lap_kernel_row lap_row_chain_split_stem_pool = {
    .id = "chain_split_stem_pool",
    .about = "chain_stem_pool for a chain with chain_split_conv",
    .variant = true,
    .accepts = split_stem_accepts,
    CHAIN_STEM,
    LAP_CHAIN_STAGE("chain_split"),
};

/* ---- the average pool with the classifier --------------------------------------------------- */

#define FC_PIECES 128 /* of 16 bytes, in a pixel */

static bool pool_fc_fits(const lap_case *c) {
    uint64_t bytes = (uint64_t)c->op->in.cs * lap_element_bytes(c->precision);
    return bytes % 16 == 0 && bytes / 16 <= FC_PIECES;
}

static bool pool_fc_accepts(const lap_case *c) {
    return lap_chain_device(c, MOST_BATCH) && pool_fc_fits(c);
}

static bool split_pool_fc_accepts(const lap_case *c) {
    return lap_chain_device(c, MOST_BATCH_SPLIT) && pool_fc_fits(c);
}

static void pool_fc_words(const lap_case *c, int32_t *words) {
    const lap_op *op = c->op;
    words[LAP_CHAIN_KIND] = KIND_POOL_FC;
    words[LAP_CHAIN_ITEMS] = (c->partner->out.cs + 7) / 8; /* a warp an output */
    words[LAP_CHAIN_PIXELS] = op->in.h * op->in.w;
    words[LAP_CHAIN_OUT_C] = c->partner->out.cs;
    words[LAP_CHAIN_IN_BYTES] = op->in.cs * (int32_t)lap_element_bytes(c->precision);
    words[LAP_CHAIN_IMAGES] = (int32_t)c->n;
}

static size_t pool_fc_packed_bytes(const lap_case *c) {
    return lap_pack_ks_cs_bytes(c->partner, c->precision);
}

static void pool_fc_pack(const lap_case *c, const lap_op_weights *weights,
                         const lap_op_weights *partner, void *out) {
    (void)weights; /* a pool */
    lap_pack_ks_cs(c->partner, c->precision, partner->w, out);
}

#define CHAIN_POOL_FC                                                                              \
    .kind = LAP_OP_AVGPOOL, .fusion = LAP_FUSE_FC, .defaults = lap_row_defaults_none,              \
    .valid = lap_row_valid_all, .packed_bytes = pool_fc_packed_bytes, .pack_fused = pool_fc_pack,  \
    .chain = pool_fc_words

const lap_kernel_row lap_row_chain_pool_fc = {
    .id = "chain_pool_fc",
    .about = "average pool and classifier, a warp an output, one launch for a chain of steps",
    .accepts = pool_fc_accepts,
    CHAIN_POOL_FC,
    LAP_CHAIN_STAGE("chain_mma"),
};

const lap_kernel_row lap_row_chain_split_pool_fc = {
    .id = "chain_split_pool_fc",
    .about = "chain_pool_fc for a chain with chain_split_conv",
    .variant = true,
    .accepts = split_pool_fc_accepts,
    CHAIN_POOL_FC,
    LAP_CHAIN_STAGE("chain_split"),
};
