/* Rows on tensor cores: convolution, convolution with the block's 1x1 residual convolution, and
 * fully connected, as implicit matrix products (conv_mma). They run where the session has seen a
 * test kernel of the precision run.
 *
 * Geometry computed here mirrors the macros of kernels_cl/conv_mma.cl and kernels_cu/conv_mma.cu.
 */
#include "kernel/pack_mma.h"
#include "kernel/rows.h"

#include <string.h>

enum { BM, BN, WM, WN, ROWB, STAGES, HALO, SPLITK, MMA_TUNABLES };

#define LOCAL_STATIC 49152 /* what OpenCL kernels may declare, unless more was seen to work */
#define FC_MMA_BATCH 16    /* from here on a matrix product beats a product with a vector */

typedef struct mma {
    uint64_t rows, tiles;
    uint64_t chunks, tails; /* chunks of channels (HALO) or of taps; chunks of the second input */
    uint64_t taps;          /* depth steps of a chunk */
    uint64_t steps;         /* of a tile */
    uint64_t lines;         /* rows of an input buffer */
    uint64_t local_bytes;
    uint32_t threads, split;
} mma;

static uint64_t window_of(const lap_op *op) {
    return op->kind == LAP_OP_CONV ? (uint64_t)op->r * (uint64_t)op->s : 1;
}

/* The partner is more depth. */
static bool is_down(const lap_case *c) {
    return c->fusion == LAP_FUSE_DOWNSAMPLE;
}

static mma mma_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    uint64_t chunk = (uint64_t)v[ROWB] / lap_element_bytes(c->precision);
    uint64_t taps = window_of(op), bm = (uint64_t)v[BM], rowb = (uint64_t)v[ROWB];
    mma g = {.split = (uint32_t)v[SPLITK]};
    g.rows = c->n * (op->kind == LAP_OP_CONV ? (uint64_t)op->out.h * (uint64_t)op->out.w : 1);
    g.tiles =
        lap_row_ceil_div(g.rows, bm) * lap_row_ceil_div((uint64_t)op->out.cs, (uint64_t)v[BN]);
    g.taps = v[HALO] ? taps : 1;
    g.chunks = lap_row_ceil_div((uint64_t)op->in.cs, chunk) * (v[HALO] ? 1 : taps);
    g.tails = is_down(c) ? (uint64_t)c->partner->in.cs / chunk : 0;
    g.steps = g.chunks * g.taps + g.tails;
    g.lines = bm + (v[HALO] ? 2 * (uint64_t)(op->pad * op->in.w + op->pad) : 0);
    uint64_t two = lap_row_ceil_div(g.chunks, g.split) > 1 || g.tails > 0;
    uint64_t buffers = v[HALO] ? 1 + two : (uint64_t)v[STAGES];
    uint64_t warps = (uint64_t)(v[BM] / v[WM]) * (uint64_t)(v[BN] / v[WN]);
    g.threads = (uint32_t)warps * 32;
    g.local_bytes = (128 + buffers * g.lines * rowb + 127) / 128 * 128;
    g.local_bytes += (uint64_t)v[STAGES] * (uint64_t)v[BN] * rowb;
    uint64_t results = warps * 16 * (uint64_t)(v[WN] + 8) * 4;
    if (results > g.local_bytes) g.local_bytes = results;
    return g;
}

static bool is_smooth(const lap_case *c) {
    return c->op->act > LAP_ACT_RELU;
}

static uint64_t units_of(const lap_case *c) {
    return c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
}

/* Many outputs with few products each, and an activation of some ten instructions. */
static bool is_narrow(const lap_case *c) {
    const lap_op *op = c->op;
    if (!is_smooth(c) || op->kind != LAP_OP_CONV || op->r * op->s * op->in.cs > 32) return false;
    return c->n * (uint64_t)op->out.h * (uint64_t)op->out.w >= units_of(c) * 1024;
}

uint64_t lap_row_local_limit(const lap_case *c) {
    if (lap_row_in_cuda(c) || c->features & LAP_FEATURE_LARGE_LOCAL)
        return c->device->local_optin_bytes;
    return c->device->local_bytes < LOCAL_STATIC ? c->device->local_bytes : LOCAL_STATIC;
}

/* Input channels that end within a chunk: only for the rows that also know smooth activations or
 * factors, which networks of such widths need. */
static bool may_be_ragged(const lap_case *c) {
    return is_smooth(c) || c->fusion == LAP_FUSE_SCALE;
}

/* The kernel's assumptions about tiles, whatever the op. */
static bool tiles_valid(const int *v, const mma *g, bool x3) {
    if (v[WM] % 16 || v[WN] % 16 || v[BM] % v[WM] || v[BN] % v[WN]) return false;
    if (v[ROWB] != 64 && v[ROWB] != 128) return false;
    int threads = (int)g->threads, pieces = v[ROWB] / 16;
    if (threads > 512 || v[WM] * v[WN] > 4096) return false;
    if (x3) { /* two sums for each output; loads of two pieces */
        if (v[WM] * v[WN] > 2048) return false;
        pieces /= 2;
    }
    /* Rows that one work-item loads must lie at the same exchange of pieces. */
    return threads / pieces % 8 == 0 && v[BM] % (threads / pieces) == 0;
}

static bool mma_valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < MMA_TUNABLES; i++)
        if (i != HALO && v[i] <= 0) return false;
    if (v[STAGES] < 2 || (v[HALO] != 0 && v[HALO] != 1)) return false;
    if (v[HALO] ? !lap_row_can_halo(c->op) : is_down(c)) return false;
    int chunk = v[ROWB] / (int)lap_element_bytes(c->precision);
    /* fp32x3 splits whole chunks as they are, and stays clear of approximate activations. */
    if (c->precision == LAP_FP32X3 &&
        (c->op->in.cs % chunk || c->fusion == LAP_FUSE_SCALE || is_smooth(c)))
        return false;
    /* Whole chunks where one line serves several taps, else at least whole pieces of 16 bytes. */
    int piece = 16 / (int)lap_element_bytes(c->precision);
    if (c->op->in.cs % (v[HALO] || !may_be_ragged(c) ? chunk : piece)) return false;
    if (is_down(c) && c->partner->in.cs % chunk) return false;
    mma g = mma_of(c);
    if (!tiles_valid(v, &g, c->precision == LAP_FP32X3)) return false;
    if (v[HALO] && (uint64_t)v[STAGES] > g.taps) return false;
    if (g.split > g.chunks || g.local_bytes > lap_row_local_limit(c)) return false;
    if (g.threads > lap_row_group_most(c->device)) return false;
    /* A tile twice as wide as the output does half its work for nothing. */
    return v[BN] <= 32 || v[BN] < 2 * c->op->out.cs;
}

/* ---- default parameters --------------------------------------------------------------------- */

/* Tiles that defaults choose from, with the multiply-adds of halves that a multiprocessor of
 * compute capability 9.0 was seen to do a clock in a long product. The last is for narrow inputs
 * only. */
static const struct tile {
    int bm, bn, wm, wn;
    double rate;
} tiles[] = {
    {128, 128, 64, 64, 940}, {256, 64, 64, 64, 930},  {128, 64, 64, 64, 935},
    {128, 64, 32, 64, 880},  {128, 64, 64, 32, 870},  {64, 128, 32, 64, 880},
    {64, 64, 32, 32, 650},   {64, 32, 32, 16, 450},   {32, 64, 16, 32, 450},
    {32, 32, 16, 16, 350},   {128, 128, 64, 32, 880}, {128, 32, 32, 32, 700},
};
static const int splits[] = {1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 36};

/* Groups that fit a multiprocessor. */
static uint64_t resident_groups(const lap_case *c, const mma *g) {
    const int *v = c->params.value;
    int sums = v[WM] * v[WN] / 32 * (c->precision == LAP_FP32X3 ? 2 : 1);
    uint64_t registers = sums >= 128 ? 256 : sums >= 64 ? 168 : 128;
    uint64_t by_registers = 65536 / (registers * g->threads);
    uint64_t local =
        lap_row_local_limit(c) > LAP_ROW_UNIT_LOCAL ? lap_row_local_limit(c) : LAP_ROW_UNIT_LOCAL;
    /* Small devices have 100 KiB for all; only the opt-in limit tells. */
    if (c->device->local_optin_bytes > LOCAL_STATIC && c->device->local_optin_bytes < 200000)
        local = c->device->local_optin_bytes + LAP_ROW_GROUP_EXTRA;
    uint64_t by_local = local / (g->local_bytes + LAP_ROW_GROUP_EXTRA);
    uint64_t groups = by_registers < by_local ? by_registers : by_local;
    return groups ? groups : 1;
}

static double larger(double a, double b) {
    return a > b ? a : b;
}

/* Clocks of one group where storing what little depth has made takes longest: expansions with SiLU.
 * More warps hide more of it. Fitted to the times of 64 builds of four such layers on a Hopper GPU,
 * 12 % root mean square. */
static double narrow_clocks(const lap_case *c, const mma *g, double rate, double steps,
                            double warps) {
    const int *v = c->params.value;
    double area = (double)v[BM] * v[BN];
    double depth = (double)v[ROWB] / (double)lap_element_bytes(c->precision);
    double loaded = (double)(g->lines + (uint64_t)v[BN]) * v[ROWB];
    return (0.75 * steps * area * depth / rate + 0.12 * area + 0.008 * steps * loaded) *
           (1 + 6.9 / warps);
}

/* Estimated clocks of a launch. Only ratios matter. Either all groups of a multiprocessor keep it
 * busy, each with its product and what it takes to begin and to end one; or, when there are few,
 * the chain of one group's steps counts, none of which is shorter than its share of a load. Parts
 * of a tile must be written, read and added. */
static double mma_clocks(const lap_case *c, double rate) {
    const int *v = c->params.value;
    mma g = mma_of(c);
    uint64_t busy = lap_row_ceil_div(g.tiles * g.split, units_of(c));
    uint64_t resident = resident_groups(c, &g);
    if (busy < resident) resident = busy;
    double steps = (double)lap_row_ceil_div(g.chunks, g.split) * (double)g.taps;
    steps += (double)lap_row_ceil_div(g.tails, g.split);
    double depth = (double)v[ROWB] / (double)lap_element_bytes(c->precision);
    double area = (double)v[BM] * v[BN], warps = g.threads / 32.0;
    if (c->precision == LAP_TF32) rate /= 2;
    if (c->precision == LAP_FP32X3) rate /= 3;
    if (v[ROWB] == 64) rate *= 0.92; /* a barrier for half the work */
    if (!v[HALO]) rate *= 0.95;
    if (is_narrow(c) && g.split == 1)
        return (double)busy * narrow_clocks(c, &g, rate, steps, warps * (double)resident);
    double group = steps * area * depth / rate + 0.3 * area + 300 + 300 * (double)g.tails;
    group *= (1 + 0.02 / (v[STAGES] - 1)) * (1 + 0.5 / (warps * (double)resident));
    double products = c->precision == LAP_TF32 ? 2 : c->precision == LAP_FP32X3 ? 3 : 1;
    double alone = area * depth / (200 * warps) * products;
    alone = steps * larger(600.0 / (v[STAGES] - 1), 60 + alone);
    alone += 3000 + 0.2 * area + (double)(g.lines * (uint64_t)v[ROWB]) / 80;
    double clocks = larger((double)busy * group, alone * (double)lap_row_ceil_div(busy, resident));
    return g.split > 1 ? clocks + 800 + (double)g.split * area / 16 : clocks;
}

/* The fewest estimated clocks among stages and splits for c's tile. */
static double best_split(lap_case *c, double rate, double best, lap_params *params) {
    int *v = c->params.value;
    for (int stages = 2; stages <= 6; stages++)
        for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
            v[STAGES] = stages;
            v[SPLITK] = splits[i];
            if (!mma_valid(c)) continue;
            double clocks = mma_clocks(c, rate);
            if (best >= 0 && clocks >= best) continue;
            best = clocks;
            *params = c->params;
        }
    return best;
}

static bool find_defaults(const lap_case *c, lap_params *params) {
    double best = -1;
    size_t count = sizeof tiles / sizeof tiles[0] - (is_narrow(c) ? 0 : 1);
    for (size_t t = 0; t < count; t++)
        for (int rowb = 128; rowb >= 64; rowb /= 2)
            for (int halo = 1; halo >= 0; halo--) {
                lap_case trial = *c;
                trial.params = (lap_params){.value = {[BM] = tiles[t].bm,
                                                      [BN] = tiles[t].bn,
                                                      [WM] = tiles[t].wm,
                                                      [WN] = tiles[t].wn,
                                                      [ROWB] = rowb,
                                                      [HALO] = halo}};
                best = best_split(&trial, tiles[t].rate, best, params);
            }
    return best >= 0;
}

static void mma_defaults(const lap_case *c, lap_params *params) {
    *params = (lap_params){{0}};
    find_defaults(c, params);
}

/* Some parameters must fit; the kernel's offsets inside a tile's images are 32-bit. */
static bool mma_accepts(const lap_case *c) {
    if (!(c->features & LAP_FEATURE_MMA(c->precision))) return false;
    const lap_op *op = c->op;
    if (op->out.cs % 8 || op->in.cs * (int)lap_element_bytes(c->precision) < 32) return false;
    if (op->kind == LAP_OP_FC && (op->in.h * op->in.w != 1 || c->n < FC_MMA_BATCH)) return false;
    if (op->r > 15 || op->s > 15) return false;
    uint64_t image = lap_tensor_stored(&op->in) * lap_element_bytes(c->precision);
    uint64_t pixels = (uint64_t)op->out.h * (uint64_t)op->out.w;
    if (image * (256 / pixels + 2) > INT32_MAX) return false;
    lap_params params;
    return find_defaults(c, &params);
}

static bool mma_grid(const lap_case *c, lap_grid *grid) {
    mma g = mma_of(c);
    uint64_t border = g.lines; /* the kernel counts pixels from before the first */
    if (c->n == 0 || g.tiles > INT32_MAX || g.rows + border + 256 > INT32_MAX) return false;
    *grid = (lap_grid){.groups = {(uint32_t)g.tiles, g.split, 1},
                       .local = {g.threads, 1, 1},
                       .dynamic_local_bytes = lap_row_in_cuda(c) ? (size_t)g.local_bytes : 0};
    return true;
}

static lap_mma_layout layout_of(const lap_case *c) {
    const int *v = c->params.value;
    return (lap_mma_layout){c->precision, v[BN], v[ROWB], v[HALO] != 0};
}

static size_t mma_packed_bytes(const lap_case *c) {
    lap_mma_layout layout = layout_of(c);
    return lap_pack_mma_bytes(c->op, is_down(c) ? c->partner : NULL, &layout);
}

static void mma_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_mma_layout layout = layout_of(c);
    lap_pack_mma(c->op, weights->w, NULL, NULL, &layout, out);
}

static void mma_pack_fused(const lap_case *c, const lap_op_weights *weights,
                           const lap_op_weights *partner, void *out) {
    lap_mma_layout layout = layout_of(c);
    lap_pack_mma(c->op, weights->w, is_down(c) ? c->partner : NULL, partner->w, &layout, out);
}

/* One ticket counter a tile, then the partial sums. */
static uint64_t mma_scratch_bytes(const lap_case *c) {
    const int *v = c->params.value;
    mma g = mma_of(c);
    if (g.split == 1) return 0;
    uint64_t counters = lap_row_ceil_div(g.tiles, 64) * 64;
    return (counters + g.tiles * g.split * (uint64_t)(v[BM] * v[BN])) * sizeof(float);
}

#define MMA_BUT_ACCEPTS(second)                                                                    \
    .precisions = LAP_ROW_MMA_X3,                                                                  \
    .tunables = {[BM] = {"BM", 4, {32, 64, 128, 256}},                                             \
                 [BN] = {"BN", 4, {32, 64, 128, 256}},                                             \
                 [WM] = {"WM", 3, {16, 32, 64}},                                                   \
                 [WN] = {"WN", 3, {16, 32, 64}},                                                   \
                 [ROWB] = {"ROWB", 2, {64, 128}},                                                  \
                 [STAGES] = {"STAGES", 5, {2, 3, 4, 5, 6}},                                        \
                 [HALO] = {"HALO", 2, {0, 1}},                                                     \
                 [SPLITK] = {"SPLITK", 12, {1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 36}}},            \
    .tunable_count = MMA_TUNABLES,                                                                 \
    .stages = {LAP_ROW_STAGE_KERNEL("conv_mma", mma_grid, 9, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,        \
                                    LAP_ROLE_BIAS, second, LAP_ROLE_OUT, LAP_ROLE_SCRATCH,         \
                                    LAP_ROLE_IN2, LAP_ROLE_N, LAP_ROLE_FLAGS)},                    \
    .stage_count = 1, .defaults = mma_defaults, .valid = mma_valid,                                \
    .packed_bytes = mma_packed_bytes, .pack = mma_pack, .scratch_bytes = mma_scratch_bytes,        \
    .scratch_zeroed = true

#define MMA_COMMON(second) MMA_BUT_ACCEPTS(second), .accepts = mma_accepts

const lap_kernel_row lap_row_conv_mma = {
    .id = "conv_mma",
    .about = "implicit matrix product on tensor cores",
    .kind = LAP_OP_CONV,
    MMA_COMMON(LAP_ROLE_RESIDUAL),
};

const lap_kernel_row lap_row_conv_mma_down = {
    .id = "conv_mma_down",
    .about = "conv_mma, with the 1x1 convolution that makes its residual as more depth",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .pack_fused = mma_pack_fused,
    MMA_COMMON(LAP_ROLE_IN2),
};

const lap_kernel_row lap_row_fc_mma = {
    .id = "fc_mma",
    .about = "conv_mma on images of one pixel, for large batches",
    .kind = LAP_OP_FC,
    MMA_COMMON(LAP_ROLE_RESIDUAL),
};

static bool smooth_accepts(const lap_case *c) {
    return is_smooth(c) && mma_accepts(c);
}

const lap_kernel_row lap_row_conv_mma_smooth = {
    .id = "conv_mma_smooth",
    .about = "conv_mma, with SiLU or sigmoid behind it, for any multiple of 16 bytes of channels",
    .kind = LAP_OP_CONV,
    .smooth = true,
    MMA_BUT_ACCEPTS(LAP_ROLE_RESIDUAL),
    .accepts = smooth_accepts,
};

const lap_kernel_row lap_row_conv_mma_scale = {
    .id = "conv_mma_scale",
    .about = "conv_mma, with the factors of its input channels",
    .smooth = true,
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_SCALE,
    .pack_fused = mma_pack_fused,
    MMA_COMMON(LAP_ROLE_RESIDUAL),
};
