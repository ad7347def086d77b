/* Chained 3x3 convolutions (with the residual's 1x1 convolution), whose tiles several groups may
 * share. The first convolution and the classifier of such chains are in rows_chain.c.
 *
 * Geometry computed here mirrors kernels_cl/chain_conv.clh and kernels_cu/chain_conv.cuh.
 */
#include "kernel/chain.h"
#include "kernel/pack_chain.h"
#include "kernel/rows_chain.h"

#define THREADS LAP_CHAIN_THREADS
#define CHUNK 128 /* bytes of channels in a phase */
#define LINE 144  /* bytes from pixel to pixel in local memory */
#define HEAD 512  /* bytes of local memory before the input's rows */
#define MOST_BUFFERS 16
#define MOST_ROWS (1 << 28)
#define COUNTER 128 /* bytes of scratch for the count of a tile */

enum { BM, BN, SPLITS, CHAIN_TUNABLES };

/* In the order of the kernel's kinds. */
static const struct tile {
    int bm, bn;
} tiles[LAP_CHAIN_CONV_KINDS] = {{64, 32}, {64, 16}, {32, 32}};
static const int splits[] = {1, 2, 4, 8, 16};

static int tile_of(const lap_case *c) {
    for (size_t i = 0; i < LAP_CHAIN_CONV_KINDS; i++)
        if (tiles[i].bm == c->params.value[BM] && tiles[i].bn == c->params.value[BN]) return (int)i;
    return -1;
}

typedef struct tiling {
    uint64_t rows, columns, tiles, items;
    uint64_t all_phases, phases, tails; /* phases and tails: of one group */
    uint64_t lines, buffers, split;
} tiling;

/* Input pixel under the middle of the window, in one line of all images. */
static uint64_t middle(const lap_op *op, uint64_t row) {
    uint64_t pixels = (uint64_t)op->out.h * (uint64_t)op->out.w, w = (uint64_t)op->out.w;
    uint64_t pixel = row % pixels, step = (uint64_t)op->stride, in_w = (uint64_t)op->in.w;
    return row / pixels * (uint64_t)op->in.h * in_w + (pixel / w * in_w + pixel % w) * step;
}

/* Input pixels that a tile may need: from the first middle to the last, where every row of the
 * image that ends in between leaves some out, and a border. An image that ends leaves no more. */
static uint64_t lines_of(const lap_op *op, uint64_t rows, uint64_t bm) {
    uint64_t w = (uint64_t)op->out.w, in_w = (uint64_t)op->in.w, step = (uint64_t)op->stride;
    uint64_t span = (bm - 1 + lap_row_ceil_div(bm - 1, w) * (in_w > w ? in_w - w : 0)) * step;
    uint64_t all = middle(op, rows - 1);
    return (span < all ? span : all) + 2 * (in_w + 1) + 1;
}

static tiling tiling_of(const lap_case *c) {
    const lap_op *op = c->op;
    uint64_t bm = (uint64_t)c->params.value[BM], bn = (uint64_t)c->params.value[BN];
    uint64_t element = lap_element_bytes(c->precision), tails = 0;
    tiling g = {.split = (uint64_t)c->params.value[SPLITS]};
    g.rows = c->n * (uint64_t)op->out.h * (uint64_t)op->out.w;
    g.columns = (uint64_t)op->out.cs / bn;
    g.tiles = g.columns * lap_row_ceil_div(g.rows, bm);
    g.items = g.tiles * g.split;
    g.all_phases = (uint64_t)op->in.cs * element / CHUNK;
    g.phases = lap_row_ceil_div(g.all_phases, g.split);
    if (c->partner) tails = (uint64_t)c->partner->in.cs * element / CHUNK;
    g.tails = lap_row_ceil_div(tails, g.split);
    g.lines = lines_of(op, g.rows, bm);
    uint64_t space = (uint64_t)lap_chain_local(c), taken = HEAD + g.tails * bm * LINE;
    g.buffers = taken < space ? (space - taken) / (g.lines * LINE) : 0;
    if (g.buffers > g.phases) g.buffers = g.phases;
    if (g.buffers > MOST_BUFFERS) g.buffers = MOST_BUFFERS;
    return g;
}

static bool conv_valid(const lap_case *c) {
    const lap_op *op = c->op;
    if (tile_of(c) < 0 || c->params.value[SPLITS] < 1) return false;
    uint64_t element = lap_element_bytes(c->precision);
    if (op->r != 3 || op->s != 3 || op->pad != 1 || op->stride < 1 || op->stride > 2) return false;
    if ((uint64_t)op->in.cs * element % CHUNK || op->out.cs % c->params.value[BN]) return false;
    if (c->partner && (uint64_t)c->partner->in.cs * element % CHUNK) return false;
    tiling g = tiling_of(c);
    if (g.buffers == 0 || g.rows > MOST_ROWS || g.split > g.all_phases) return false;
    uint64_t bm = (uint64_t)c->params.value[BM], bn = (uint64_t)c->params.value[BN];
    /* Groups that share a tile wait for each other; a thread takes a part or two. */
    if (g.split > 1 && (g.items > c->device->units || g.split * THREADS < bm * bn / 4))
        return false;
    uint64_t sums = 4 * bm * (bn + 8) * sizeof(float);
    return HEAD + sums <= (uint64_t)lap_chain_local(c);
}

/* Estimated clocks of the step, fitted to clock readings on an H200. Only ratios matter. */
static double conv_clocks(const lap_case *c) {
    tiling g = tiling_of(c);
    uint64_t rounds = lap_row_ceil_div(g.items, c->device->units);
    double bm = c->params.value[BM], bn = c->params.value[BN];
    double taps = (double)(9 * g.phases + g.tails), tf32 = c->precision == LAP_TF32 ? 1.6 : 1;
    double work = taps * (40 + bm * bn / 24 * tf32);
    double weights = taps * bn * CHUNK, pixels = (double)(g.lines * g.phases) * CHUNK;
    double loads = 700 + pixels / 40 + (weights > 40000 ? (weights - 40000) / 40 : 0);
    double all = (weights + pixels) * (double)g.items / 2600; /* of the second-level cache */
    if (g.phases > g.buffers) loads += (double)(g.phases - g.buffers) * 500;
    double clocks = (double)rounds * (600 + work + loads);
    if (all > clocks) clocks = all;
    return g.split > 1 ? clocks + 1800 : clocks;
}

static bool find_tile(const lap_case *c, lap_params *params) {
    double best = -1;
    lap_case trial = *c;
    for (size_t i = 0; i < LAP_CHAIN_CONV_KINDS; i++)
        for (size_t s = 0; s < sizeof splits / sizeof splits[0]; s++) {
            trial.params = (lap_params){
                .value = {[BM] = tiles[i].bm, [BN] = tiles[i].bn, [SPLITS] = splits[s]}};
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
    return lap_chain_suits(c) && find_tile(c, &params);
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
    words[LAP_CHAIN_STEP] = op->stride;
    words[LAP_CHAIN_LINES] = (int32_t)g.lines;
    words[LAP_CHAIN_PHASES] = (int32_t)g.all_phases;
    words[LAP_CHAIN_BUFFERS] = (int32_t)g.buffers;
    words[LAP_CHAIN_IMAGES] = (int32_t)c->n;
    words[LAP_CHAIN_SPLITS] = (int32_t)g.split;
    words[LAP_CHAIN_TILES] = (int32_t)g.tiles;
    if (!partner) return;
    words[LAP_CHAIN_TAILS] = partner->in.cs * element / CHUNK;
    words[LAP_CHAIN_SECOND_IMAGE] = partner->in.h * partner->in.w;
    words[LAP_CHAIN_SECOND_W] = partner->in.w;
    words[LAP_CHAIN_SECOND_BYTES] = partner->in.cs * element;
    words[LAP_CHAIN_SECOND_STEP] = partner->stride;
}

static uint64_t conv_scratch_bytes(const lap_case *c) {
    tiling g = tiling_of(c);
    uint64_t tile = (uint64_t)(c->params.value[BM] * c->params.value[BN]) * sizeof(float);
    return g.split == 1 ? 0 : g.tiles * (COUNTER + g.split * tile);
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
    .kind = LAP_OP_CONV,                                                                           \
    .tunables = {[BM] = {"BM", 2, {32, 64}},                                                       \
                 [BN] = {"BN", 2, {16, 32}},                                                       \
                 [SPLITS] = {"SPLITS", 5, {1, 2, 4, 8, 16}}},                                      \
    .tunable_count = CHAIN_TUNABLES, .accepts = conv_accepts, .defaults = conv_defaults,           \
    .valid = conv_valid, .packed_bytes = conv_packed_bytes, .pack = conv_pack,                     \
    .chain = conv_words, .scratch_bytes = conv_scratch_bytes, .scratch_zeroed = true

const lap_kernel_row lap_row_chain_conv = {
    .id = "chain_conv",
    .about =
        "3x3 convolution on tensor cores, one launch for a chain of steps, tiles shared by groups",
    CHAIN_CONV,
    LAP_CHAIN_STAGE,
};

const lap_kernel_row lap_row_chain_conv_down = {
    .id = "chain_conv_down",
    .about = "chain_conv, with the 1x1 convolution that makes its residual as more depth",
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .pack_fused = conv_pack_fused,
    CHAIN_CONV,
    LAP_CHAIN_STAGE,
};
