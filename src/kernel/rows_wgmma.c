/* Rows on the warpgroup matrix instructions of NVIDIA compute capability 9.0: convolution alone and
 * with the block's 1x1 residual convolution, for work that fills the device.
 *
 * Geometry computed here mirrors the macros of conv_wgmma and conv_wgmma_swap in kernels_cl and
 * kernels_cu.
 */
#include "kernel/pack_mma.h"
#include "kernel/rows.h"

#include <string.h>

enum { BM, BN, WM, STAGES, HALO, WGMMA_TUNABLES };

#define ROWB 128

typedef struct wgmma {
    uint64_t rows, tiles;
    uint64_t taps, steps; /* depth steps of a chunk of channels (HALO), of a tile */
    uint64_t lines;       /* rows of an input buffer */
    uint64_t local_bytes;
    uint32_t threads;
} wgmma;

static bool is_down(const lap_case *c) {
    return c->fusion == LAP_FUSE_DOWNSAMPLE;
}

static int chunk_of(const lap_case *c) {
    return ROWB / (int)lap_element_bytes(c->precision);
}

static wgmma wgmma_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    uint64_t taps = (uint64_t)op->r * (uint64_t)op->s, chunks = (uint64_t)(op->in.cs / chunk_of(c));
    uint64_t tails = is_down(c) ? (uint64_t)(c->partner->in.cs / chunk_of(c)) : 0;
    uint64_t bm = (uint64_t)v[BM], bn = (uint64_t)v[BN];
    wgmma g = {.rows = c->n * (uint64_t)op->out.h * (uint64_t)op->out.w};
    g.tiles = lap_row_ceil_div(g.rows, bm) * lap_row_ceil_div((uint64_t)op->out.cs, bn);
    g.taps = v[HALO] ? taps : 1;
    g.steps = chunks * taps + tails;
    g.lines = bm + (v[HALO] ? 2 * (uint64_t)(op->pad * op->in.w + op->pad) : 0);
    uint64_t buffers = !v[HALO] ? (uint64_t)v[STAGES] : chunks + tails > 1 ? 2 : 1;
    g.threads = (uint32_t)(v[BM] / v[WM] * 128);
    g.local_bytes = (uint64_t)v[STAGES] * bn * ROWB + ROWB + buffers * g.lines * ROWB;
    uint64_t results = (uint64_t)g.threads / 32 * 16 * (bn + 8) * sizeof(float);
    if (results > g.local_bytes) g.local_bytes = results;
    return g;
}

static bool wgmma_valid(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    if (v[BN] != 64 && v[BN] != 128 && v[BN] != 256) return false;
    if (v[WM] != 64 && v[WM] != 128) return false;
    /* Sums of a work-item; three warpgroups of so many would have to spill. */
    if (v[WM] * v[BN] > 128 * 128) return false;
    int most = v[WM] * v[BN] == 128 * 128 ? 2 : 4;
    if (!lap_row_in_cuda(c) && most > 2)
        most = 2; /* where NVIDIA's OpenCL runs it with 256 threads */
    if (v[BM] <= 0 || v[BM] % v[WM] || v[BM] / v[WM] > most) return false;
    if (v[HALO] != 0 && v[HALO] != 1) return false;
    if (v[HALO] ? !lap_row_can_halo(op) : is_down(c)) return false;
    if (op->in.cs % chunk_of(c) || (is_down(c) && c->partner->in.cs % chunk_of(c))) return false;
    wgmma g = wgmma_of(c);
    /* A line of pixels is loaded when the other has been read: its taps are more than the stages
     * that are ahead. */
    if (v[STAGES] < 3 || (v[HALO] && (uint64_t)v[STAGES] > g.taps)) return false;
    if (g.local_bytes > lap_row_local_limit(c)) return false;
    if (g.threads > lap_row_group_most(c->device)) return false;
    /* A tile twice as wide as the output does half its work for nothing. */
    return v[BN] < 2 * op->out.cs;
}

/* ---- default parameters --------------------------------------------------------------------- */

/* Tiles that defaults choose from, with the multiply-adds that a multiprocessor of an H200 was seen
 * to do a clock with them, beside what is counted for the results: with as many groups as it can
 * have, and with one that has it to itself. Where pixels are gathered, most narrow tiles have a
 * stage less, and some were not seen to be better than others. The last of the halves are for
 * little work. */
typedef struct tile {
    int bm, bn, wm, stages;
    double rate, lone;
} tile;
static const tile half_tiles[] = {
    {128, 256, 64, 4, 1720, 1720}, {128, 128, 64, 3, 1550, 1050}, {64, 128, 64, 3, 1395, 540},
    {128, 64, 128, 3, 1240, 540},  {192, 128, 64, 4, 1405, 1440}, {128, 128, 128, 4, 1400, 1150},
    {64, 64, 64, 4, 850, 480},
};
static const tile float_tiles[] = {
    {128, 256, 64, 4, 850, 850}, {128, 128, 128, 4, 775, 570}, {128, 128, 64, 4, 740, 600},
    {64, 128, 64, 4, 612, 356},  {128, 64, 64, 4, 540, 370},   {64, 64, 64, 4, 400, 180},
};
#define CLOCKS_OF_RESULT 0.07 /* for each byte of a tile's results */
#define CLOCKS_OF_GROUP 300

static uint64_t resident_groups(const lap_case *c, const wgmma *g) {
    const int *v = c->params.value;
    int sums = v[WM] * v[BN] / 128;
    uint64_t registers = sums >= 128 ? 224 : sums >= 64 ? 128 : 96;
    uint64_t by_registers = 65536 / (registers * g->threads);
    uint64_t by_local = LAP_ROW_UNIT_LOCAL / (g->local_bytes + LAP_ROW_GROUP_EXTRA);
    uint64_t groups = by_registers < by_local ? by_registers : by_local;
    return groups ? groups : 1;
}

/* Estimated clocks of a launch. Only ratios matter. Groups come in rounds of as many as a
 * multiprocessor can have; fewer are done sooner, but not in proportion, and no sooner than one by
 * itself. Gathered pixels cost the same for many columns as for few. */
static double wgmma_clocks(const lap_case *c, const tile *t) {
    const int *v = c->params.value;
    wgmma g = wgmma_of(c);
    double area = (double)v[BM] * v[BN], work = area * (double)g.steps * chunk_of(c);
    double results = area * (double)lap_element_bytes(c->precision) * CLOCKS_OF_RESULT;
    if (!v[HALO]) work /= v[BN] == 256 ? 0.9 : 0.75;
    uint64_t units = c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
    uint64_t busiest = lap_row_ceil_div(g.tiles, units), resident = resident_groups(c, &g);
    double rate = t->rate < t->lone * (double)resident ? t->rate : t->lone * (double)resident;
    double rest = (double)(busiest % resident) * work / rate;
    if (busiest % resident && rest < work / t->lone) rest = work / t->lone;
    return (double)(busiest - busiest % resident) * work / rate + rest +
           (double)busiest * (results + CLOCKS_OF_GROUP);
}

/* The fastest by the estimate of those tiles of which there are at least so many; its clocks, or
 * -1. */
static double find_tile(const lap_case *c, uint64_t least, lap_params *params) {
    bool wide = c->precision == LAP_TF32;
    const tile *tiles = wide ? float_tiles : half_tiles;
    size_t count = wide ? sizeof float_tiles / sizeof(tile) : sizeof half_tiles / sizeof(tile);
    double best = -1;
    for (const tile *t = tiles; t < tiles + count; t++)
        for (int halo = lap_row_can_halo(c->op); halo >= 0; halo--) {
            if (!halo && (t->bm == 192 || (wide && (t->bn == 256 || t->bm == 64)))) continue;
            lap_case trial = *c;
            int *v = trial.params.value;
            bool deep = halo || t->bn == 256 || t->bm * t->bn == 64 * 64;
            trial.params = (lap_params){.value = {[BM] = t->bm,
                                                  [BN] = t->bn,
                                                  [WM] = t->wm,
                                                  [STAGES] = deep ? t->stages : 3,
                                                  [HALO] = halo}};
            while (!wgmma_valid(&trial) && v[STAGES] > 3)
                v[STAGES]--;
            if (!wgmma_valid(&trial) || wgmma_of(&trial).tiles < least) continue;
            double clocks = wgmma_clocks(&trial, t);
            if (best >= 0 && clocks >= best) continue;
            best = clocks;
            *params = trial.params;
        }
    return best;
}

/* Tiles that leave more of the multiprocessors idle have not been measured. */
static uint64_t enough(const lap_case *c) {
    return (7 * (uint64_t)c->device->units + 9) / 10;
}

static void wgmma_defaults(const lap_case *c, lap_params *params) {
    *params = (lap_params){{0}};
    if (find_tile(c, enough(c), params) < 0) find_tile(c, 0, params);
}

/* Clocks of conv_mma, fitted to steps of ResNet-18 at batches of 8 to 64 on an H200: it can share
 * the depth of a tile among groups, so that few tiles cost it little. */
#define OTHER_CLOCKS 14000
#define OTHER_HALVES 0.0013 /* a multiply-add of each multiprocessor */
#define OTHER_FLOATS 0.0025
static double other_clocks(const lap_case *c) {
    uint64_t work = c->n * (lap_op_macs(c->op) + (is_down(c) ? lap_op_macs(c->partner) : 0));
    double each = (double)work / c->device->units;
    return OTHER_CLOCKS + each * (c->precision == LAP_TF32 ? OTHER_FLOATS : OTHER_HALVES);
}

static bool on_hopper(const lap_case *c) {
    const lap_device_info *device = c->device;
    if (device->cc_major != 9 || device->cc_minor != 0) return false;
    return c->features &
           (lap_row_in_cuda(c) ? LAP_FEATURE_MMA(c->precision) : LAP_FEATURE_WGMMA(c->precision));
}

/* The kernel's offsets inside a tile's images are 32-bit. */
static bool wgmma_accepts(const lap_case *c) {
    const lap_op *op = c->op;
    if (!on_hopper(c) || op->out.cs % 8 || op->r > 15 || op->s > 15) return false;
    uint64_t image = lap_tensor_stored(&op->in) * lap_element_bytes(c->precision);
    uint64_t pixels = (uint64_t)op->out.h * (uint64_t)op->out.w;
    if (image * (256 / pixels + 2) > INT32_MAX) return false;
    if (c->device->units == 0) return false;
    lap_case trial = *c;
    double clocks = find_tile(c, enough(c), &trial.params);
    if (clocks < 0) return false;
    return wgmma_of(&trial).tiles >= c->device->units || clocks < other_clocks(c);
}

static bool wgmma_grid(const lap_case *c, lap_grid *grid) {
    wgmma g = wgmma_of(c);
    /* The kernel counts pixels from before the first. */
    if (c->n == 0 || g.tiles > INT32_MAX || g.rows + g.lines + 256 > INT32_MAX) return false;
    *grid = (lap_grid){.groups = {(uint32_t)g.tiles, 1, 1},
                       .local = {g.threads, 1, 1},
                       .dynamic_local_bytes = lap_row_in_cuda(c) ? (size_t)g.local_bytes : 0};
    return true;
}

static lap_mma_layout layout_of(const lap_case *c) {
    const int *v = c->params.value;
    return (lap_mma_layout){c->precision, v[BN], ROWB, v[HALO] != 0};
}

static size_t wgmma_packed_bytes(const lap_case *c) {
    lap_mma_layout layout = layout_of(c);
    return lap_pack_mma_bytes(c->op, is_down(c) ? c->partner : NULL, &layout);
}

static void wgmma_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_mma_layout layout = layout_of(c);
    lap_pack_mma(c->op, weights->w, NULL, NULL, &layout, out);
}

static void wgmma_pack_fused(const lap_case *c, const lap_op_weights *weights,
                             const lap_op_weights *partner, void *out) {
    lap_mma_layout layout = layout_of(c);
    lap_pack_mma(c->op, weights->w, c->partner, partner->w, &layout, out);
}

#define COMMON(second)                                                                             \
    .kind = LAP_OP_CONV, .precisions = LAP_ROW_MMA,                                                \
    .tunables = {[BM] = {"BM", 4, {64, 128, 256, 192}},                                            \
                 [BN] = {"BN", 3, {64, 128, 256}},                                                 \
                 [WM] = {"WM", 2, {64, 128}},                                                      \
                 [STAGES] = {"STAGES", 4, {3, 4, 5, 6}},                                           \
                 [HALO] = {"HALO", 2, {0, 1}}},                                                    \
    .tunable_count = WGMMA_TUNABLES,                                                               \
    .stages = {LAP_ROW_STAGE_KERNEL("conv_wgmma", wgmma_grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,    \
                                    LAP_ROLE_BIAS, second, LAP_ROLE_OUT, LAP_ROLE_N,               \
                                    LAP_ROLE_FLAGS)},                                              \
    .stage_count = 1, .accepts = wgmma_accepts, .defaults = wgmma_defaults, .valid = wgmma_valid,  \
    .packed_bytes = wgmma_packed_bytes

const lap_kernel_row lap_row_conv_wgmma = {
    .id = "conv_wgmma",
    .about = "implicit matrix product by warpgroups of Hopper's tensor cores",
    .pack = wgmma_pack,
    COMMON(LAP_ROLE_RESIDUAL),
};

const lap_kernel_row lap_row_conv_wgmma_down = {
    .id = "conv_wgmma_down",
    .about = "conv_wgmma, with the 1x1 convolution that makes its residual as more depth",
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .pack_fused = wgmma_pack_fused,
    COMMON(LAP_ROLE_IN2),
};

/* ---- the product turned round, for 64 channels (conv_wgmma_swap) ------------------------------
 */

enum { PIXELS, TEAMS, SWAP_TUNABLES };

#define SWAP_CHANNELS 64
#define SWAP_PITCH_LEAST 16 /* the kernel steps over so many pixels at once */

typedef struct swap {
    uint64_t tiles;
    uint64_t local_bytes;
} swap;

static swap swap_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    uint64_t pad = (uint64_t)op->pad, pitch = (uint64_t)op->in.w + pad,
             pixels = (uint64_t)v[PIXELS];
    uint64_t line = lap_row_ceil_div((pixels + 2 * (pad * pitch + pad)) * ROWB, 1024) * 1024;
    uint64_t teams = (uint64_t)v[TEAMS], steps = (uint64_t)(op->in.cs / chunk_of(c));
    steps *= (uint64_t)(op->r * op->s);
    swap g = {.tiles = lap_row_ceil_div(c->n * ((uint64_t)op->in.h + pad) * pitch, pixels)};
    g.local_bytes = steps * SWAP_CHANNELS * ROWB + teams * line + (teams + 1) * sizeof(uint32_t);
    return g;
}

static bool swap_valid(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    if (v[PIXELS] != 128 && v[PIXELS] != 256) return false;
    if (v[TEAMS] < 1 || v[TEAMS] * v[PIXELS] > 768 || v[TEAMS] > 4) return false; /* registers */
    if (op->in.cs % chunk_of(c) || op->out.cs > SWAP_CHANNELS || !lap_row_can_halo(op))
        return false;
    if (op->in.w + op->pad < SWAP_PITCH_LEAST) return false;
    return swap_of(c).local_bytes <= lap_row_local_limit(c);
}

static bool swap_find_defaults(const lap_case *c, lap_params *params) {
    static const lap_params some[] = {
        {.value = {256, 2}}, {.value = {128, 2}}, {.value = {128, 1}}};
    lap_case trial = *c;
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        *params = trial.params = some[i];
        if (swap_valid(&trial)) return true;
    }
    return false;
}

static void swap_defaults(const lap_case *c, lap_params *params) {
    swap_find_defaults(c, params);
}

/* A multiprocessor should have several tiles to make. */
static bool swap_accepts(const lap_case *c) {
    if (!on_hopper(c) || c->op->out.cs % 8) return false;
    lap_case trial = *c;
    if (!swap_find_defaults(c, &trial.params)) return false;
    return swap_of(&trial).tiles >= 6 * (uint64_t)c->device->units;
}

static bool swap_grid(const lap_case *c, lap_grid *grid) {
    swap g = swap_of(c);
    /* Places are counted from an image before the first, in 32 bits. */
    const lap_op *op = c->op;
    uint64_t image = (uint64_t)(op->in.h + op->pad) * (uint64_t)(op->in.w + op->pad);
    uint64_t places = (g.tiles + 1024) * (uint64_t)c->params.value[PIXELS] + image;
    if (c->n == 0 || places > INT32_MAX) return false;
    uint64_t units = c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
    *grid = (lap_grid){.groups = {(uint32_t)(g.tiles < units ? g.tiles : units), 1, 1},
                       .local = {(uint32_t)c->params.value[TEAMS] * 128, 1, 1},
                       .dynamic_local_bytes = lap_row_in_cuda(c) ? (size_t)g.local_bytes : 0};
    return true;
}

static lap_mma_layout swap_layout_of(const lap_case *c) {
    return (lap_mma_layout){c->precision, SWAP_CHANNELS, ROWB, true};
}

static size_t swap_packed_bytes(const lap_case *c) {
    lap_mma_layout layout = swap_layout_of(c);
    return lap_pack_mma_bytes(c->op, NULL, &layout);
}

static void swap_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_mma_layout layout = swap_layout_of(c);
    lap_pack_mma(c->op, weights->w, NULL, NULL, &layout, out);
}

const lap_kernel_row lap_row_conv_wgmma_swap = {
    .id = "conv_wgmma_swap",
    .about = "conv_wgmma with channels as rows of the product, for 64 channels",
    .kind = LAP_OP_CONV,
    .precisions = LAP_ROW_MMA,
    .tunables = {[PIXELS] = {"PIXELS", 2, {128, 256}}, [TEAMS] = {"TEAMS", 4, {1, 2, 3, 4}}},
    .tunable_count = SWAP_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_wgmma_swap", swap_grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = swap_accepts,
    .defaults = swap_defaults,
    .valid = swap_valid,
    .packed_bytes = swap_packed_bytes,
    .pack = swap_pack,
};
