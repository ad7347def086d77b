/* Rows for GPUs, FMA: implicit matrix product (convolution, large fully connected), pools, and
 * a fully connected layer for few images. They refuse CPUs, where such kernels are slow.
 *
 * Geometry computed here mirrors the macros of kernels_cl/conv_igemm.cl and
 * kernels_cu/conv_igemm.cu.
 */
#include "kernel/pack_gpu.h"
#include "kernel/rows.h"

#include <string.h>

/* ---- conv_igemm: what a parameter vector means ---------------------------------------------- */

enum { BM, BN, BK, TM, TN, SPLITK, TEAMS, IGEMM_TUNABLES };

#define LOCAL_UNKNOWN 32768
#define LOCAL_MOST 49152  /* static arrays cannot be larger on any device known */
#define FC_IGEMM_BATCH 32 /* from here on a matrix product beats a product with a vector */

typedef struct igemm {
    uint64_t rows, tiles, slices;               /* rows: output pixels of all images */
    uint32_t team, threads, local_bytes, split; /* team: threads of one */
} igemm;

static uint64_t depth_of(const lap_op *op) {
    uint64_t taps = op->kind == LAP_OP_CONV ? (uint64_t)op->r * (uint64_t)op->s : 1;
    return taps * (uint64_t)op->in.cs;
}

static igemm igemm_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    igemm g = {.split = (uint32_t)v[SPLITK]};
    g.rows = c->n * (op->kind == LAP_OP_CONV ? (uint64_t)op->out.h * (uint64_t)op->out.w : 1);
    g.tiles = lap_row_ceil_div(g.rows, (uint64_t)v[BM]) *
              lap_row_ceil_div((uint64_t)op->out.cs, (uint64_t)v[BN]);
    g.slices = lap_row_ceil_div(depth_of(op), (uint64_t)v[BK]);
    if (c->fusion == LAP_FUSE_DOWNSAMPLE)
        g.slices += lap_row_ceil_div(depth_of(c->partner), (uint64_t)v[BK]);
    g.team = (uint32_t)((v[BM] / v[TM]) * (v[BN] / v[TN]));
    g.threads = g.team * (uint32_t)v[TEAMS];
    int buffers = v[TEAMS] * 2 * (v[BM] + v[BN]) * v[BK], sums = (v[TEAMS] - 1) * v[BM] * v[BN];
    g.local_bytes = (uint32_t)(buffers > sums ? buffers : sums) * (uint32_t)sizeof(float);
    return g;
}

uint64_t lap_row_group_most(const lap_device_info *device) {
    uint64_t most = device->max_group_size ? device->max_group_size : UINT64_MAX;
    uint64_t dim = device->max_group_dim[0] ? device->max_group_dim[0] : UINT64_MAX;
    return most < dim ? most : dim;
}

bool lap_row_group_fits(const lap_device_info *device, uint64_t threads, uint64_t local_bytes) {
    uint64_t local = device->local_bytes ? device->local_bytes : LOCAL_UNKNOWN;
    if (local > LOCAL_MOST) local = LOCAL_MOST;
    if (local_bytes > local) return false;
    return threads <= lap_row_group_most(device);
}

/* The kernel's assumptions: warps of 8 x 4 threads tile a team, and every thread fetches the
 * same number of whole quads of both operands. */
static bool shape_valid(const int *v, const igemm *g) {
    int threads = (int)g->team;
    if (g->threads > 512) return false;
    if (v[BM] % 32 || v[BM] / v[TM] % 8 || v[BN] / v[TN] % 4) return false;
    if (threads < 32 || v[TM] * v[TN] > 128) return false;
    if (threads % (v[BK] / 4) || v[BM] * v[BK] / 4 % threads) return false;
    if (threads % (v[BN] / 4) || v[BN] * v[BK] / 4 % threads) return false;
    /* Quads in flight take registers beside the sums. */
    return (v[BM] + v[BN]) * v[BK] / 4 / threads <= 8;
}

static bool igemm_valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < IGEMM_TUNABLES; i++)
        if (v[i] <= 0) return false;
    igemm g = igemm_of(c);
    if (!shape_valid(v, &g) || !lap_row_group_fits(c->device, g.threads, g.local_bytes))
        return false;
    if (g.split * (uint32_t)v[TEAMS] > g.slices) return false;
    /* Offsets inside the images that a tile touches are 32-bit. */
    uint64_t images = (uint64_t)v[BM] / (g.rows / c->n) + 2;
    if (images * lap_tensor_stored(&c->op->in) > UINT32_MAX) return false;
    if (c->partner && images * lap_tensor_stored(&c->partner->in) > UINT32_MAX) return false;
    /* A tile twice as wide as the output does half its work for nothing. */
    return v[BN] <= 32 || v[BN] < 2 * c->op->out.cs;
}

/* ---- conv_igemm: default parameters --------------------------------------------------------- */

/* Tiles that defaults choose from, with the share of a multiprocessor's multiply-adds that the
 * inner loop reaches: when there is much work (0: not for that), and when there is little, where it
 * is fitted to measured times. */
static const struct tile {
    int bm, bn, bk, tm, tn;
    double much, little;
} tiles[] = {
    {128, 128, 16, 8, 8, 0.84, 0.84}, {128, 64, 16, 8, 8, 0.80, 0.80},
    {64, 64, 16, 8, 4, 0.74, 0.71},   {64, 64, 16, 4, 4, 0.67, 0.645},
    {64, 32, 16, 4, 4, 0.65, 0.52},   {32, 64, 16, 4, 4, 0.65, 0.68},
    {32, 64, 32, 4, 4, 0, 0.70},      {32, 32, 16, 4, 4, 0.63, 0.60},
    {32, 32, 32, 4, 4, 0, 0.60},
};

static const int splits_much[] = {1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32};
static const int splits_little[] = {1, 2, 3, 4, 6, 9, 12};
static const int teams[] = {1, 2, 4};
#define LITTLE 20000        /* clocks at a multiply-add a lane and clock */
#define LOCAL_DEFAULT 32768 /* bytes that every device has; several groups fit larger ones */

/* Groups that registers let a multiprocessor hold, as the CUDA kernel asks for. */
static uint64_t resident_groups(const int *v, const igemm *g) {
    int sums = v[TM] * v[TN];
    uint32_t registers = sums <= 16 ? 64 : sums <= 32 ? 96 : sums <= 64 ? 128 : 255;
    uint32_t groups = 65536 / (registers * g->threads);
    return groups ? groups : 1;
}

static uint64_t units_of(const lap_case *c) {
    return c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
}

/* Less than this fills no device for long: latencies decide then, and parts cost much. */
static bool little_work(const lap_case *c) {
    uint64_t macs = lap_op_macs(c->op) + (c->partner ? lap_op_macs(c->partner) : 0);
    return macs * c->n < (uint64_t)LITTLE * 128 * units_of(c);
}

/* Estimated clocks of a launch on multiprocessors with 128 lanes. Only ratios matter: more warps
 * hide more latency, a slice never takes less than a trip to the second-level cache, parts of a
 * tile must be written, read and added, and so must the teams' sums. The constants for little work
 * are fitted to the times of some 900 builds at batch 1 on a Hopper GPU. */
static double igemm_clocks(const lap_case *c, const struct tile *tile, bool little) {
    const int *v = c->params.value;
    igemm g = igemm_of(c);
    uint64_t busiest = lap_row_ceil_div(g.tiles * g.split, units_of(c)); /* groups of one unit */
    uint64_t resident = resident_groups(v, &g);
    if (busiest < resident) resident = busiest;
    double slices = (double)lap_row_ceil_div(g.slices, (uint64_t)g.split * (uint64_t)v[TEAMS]);
    double warps = (double)(resident * g.threads) / 32, share = little ? tile->little : tile->much;
    double rate = 128 * share * warps / (warps + (little ? 6.5 : 3));
    double work = (double)busiest * v[TEAMS] * slices * v[BM] * v[BN] * v[BK] / rate;
    double turns = (double)lap_row_ceil_div(busiest, resident);
    double latency = turns * slices * (little ? 610 + 58 * v[BK] : 600);
    double clocks = (work > latency ? work : latency) + 1500;
    double quads = (double)v[BM] * v[BN] / g.team / 4; /* of a thread's sums */
    if (g.split > 1) clocks += little ? 11200 + 260 * quads * g.split : 2500 + 50 * quads * g.split;
    if (v[TEAMS] > 1) clocks += 3260 + 594 * quads * (v[TEAMS] - 1);
    return clocks;
}

/* Parts are for filling a device that whole tiles leave idle; beyond that they only cost memory. */
static bool split_useful(const lap_case *c) {
    igemm g = igemm_of(c);
    return g.split == 1 || g.tiles * g.split <= units_of(c) * resident_groups(c->params.value, &g);
}

/* Compilers that give a thread about 128 values keep 4 x 4 sums in registers, not 8 x 8. */
bool lap_row_small_registers(const lap_device_info *device) {
    return strstr(device->vendor, "Intel") != NULL;
}

bool lap_row_in_cuda(const lap_case *c) {
    return strcmp(c->device->language, "cu") == 0;
}

bool lap_row_can_halo(const lap_op *op) {
    return op->kind == LAP_OP_CONV && op->stride == 1 && op->r == op->s &&
           2 * op->pad == op->r - 1 && op->r * op->s > 1 && op->r * op->s <= 31;
}

/* The estimate for the parameters in c; 0 when defaults do not take them. */
static double igemm_estimate(const lap_case *c, const struct tile *tile, bool little) {
    if (!igemm_valid(c) || !split_useful(c)) return 0;
    igemm g = igemm_of(c);
    if (g.local_bytes > LOCAL_DEFAULT || g.threads > 256) return 0;
    return igemm_clocks(c, tile, little);
}

static void igemm_defaults(const lap_case *c, lap_params *params) {
    lap_case trial = *c;
    double best = 0;
    bool little = little_work(c);
    const int *splits = little ? splits_little : splits_much;
    size_t split_count = little ? sizeof splits_little / sizeof splits_little[0]
                                : sizeof splits_much / sizeof splits_much[0];
    size_t team_count = little ? sizeof teams / sizeof teams[0] : 1;
    /* What every device accepts: 64 threads, 8 KiB. */
    *params = (lap_params){
        .value = {[BM] = 32, [BN] = 32, [BK] = 16, [TM] = 4, [TN] = 4, [SPLITK] = 1, [TEAMS] = 1}};
    for (size_t t = 0; t < sizeof tiles / sizeof tiles[0]; t++) {
        const struct tile *tile = &tiles[t];
        if (lap_row_small_registers(c->device) && tile->tm * tile->tn > 16) continue;
        if (!little && tile->much <= 0) continue;
        for (size_t s = 0; s < split_count * team_count; s++) {
            trial.params = (lap_params){.value = {tile->bm, tile->bn, tile->bk, tile->tm, tile->tn,
                                                  splits[s % split_count], teams[s / split_count]}};
            double clocks = igemm_estimate(&trial, tile, little);
            if (clocks <= 0 || (best > 0 && !(clocks < best))) continue;
            best = clocks;
            *params = trial.params;
        }
    }
}

/* ---- conv_igemm: the row's other functions -------------------------------------------------- */

bool lap_row_is_gpu(const lap_device_info *device) {
    return device->type == LAP_DEVICE_GPU || device->type == LAP_DEVICE_ACCELERATOR;
}

static bool igemm_accepts(const lap_case *c) {
    const lap_op *op = c->op;
    if (!lap_row_is_gpu(c->device) || !lap_row_group_fits(c->device, 64, 8192)) return false;
    /* With matrix instructions two steps on them beat a pair without. */
    if (c->fusion != LAP_FUSE_NONE && c->features & lap_row_matrix_features(c->precision))
        return false;
    if (op->kind == LAP_OP_FC) return op->in.h * op->in.w == 1 && c->n >= FC_IGEMM_BATCH;
    return op->r <= 16 && op->s <= 16;
}

static bool igemm_grid(const lap_case *c, lap_grid *grid) {
    igemm g = igemm_of(c);
    if (c->n == 0 || g.tiles > INT32_MAX) return false;
    *grid = (lap_grid){.groups = {(uint32_t)g.tiles, g.split, 1}, .local = {g.threads, 1, 1}};
    return true;
}

static lap_depth_k_layout layout_of(const lap_case *c) {
    const int *v = c->params.value;
    return (lap_depth_k_layout){c->precision, (size_t)v[BK], (size_t)v[BN]};
}

static size_t igemm_packed_bytes(const lap_case *c) {
    lap_depth_k_layout layout = layout_of(c);
    size_t bytes = lap_pack_depth_k_bytes(c->op, &layout);
    if (c->fusion == LAP_FUSE_DOWNSAMPLE) bytes += lap_pack_depth_k_bytes(c->partner, &layout);
    return bytes;
}

static void igemm_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_depth_k_layout layout = layout_of(c);
    lap_pack_depth_k(c->op, &layout, weights->w, out);
}

/* The partner's depth follows the op's. */
static void igemm_pack_fused(const lap_case *c, const lap_op_weights *weights,
                             const lap_op_weights *partner, void *out) {
    lap_depth_k_layout layout = layout_of(c);
    igemm_pack(c, weights, out);
    lap_pack_depth_k(c->partner, &layout, partner->w,
                     (char *)out + lap_pack_depth_k_bytes(c->op, &layout));
}

/* One ticket counter a tile, then the partial sums. */
static uint64_t igemm_scratch_bytes(const lap_case *c) {
    const int *v = c->params.value;
    igemm g = igemm_of(c);
    if (g.split == 1) return 0;
    uint64_t counters = lap_row_ceil_div(g.tiles, 64) * 64;
    return (counters + g.tiles * g.split * (uint64_t)(v[BM] * v[BN])) * sizeof(float);
}

#define IGEMM_COMMON                                                                               \
    .precisions = LAP_ROW_FP32 | LAP_ROW_SHORT, .smooth = true,                                    \
    .tunables = {[BM] = {"BM", 4, {32, 64, 128, 256}},                                             \
                 [BN] = {"BN", 3, {32, 64, 128}},                                                  \
                 [BK] = {"BK", 3, {8, 16, 32}},                                                    \
                 [TM] = {"TM", 3, {4, 8, 16}},                                                     \
                 [TN] = {"TN", 2, {4, 8}},                                                         \
                 [SPLITK] = {"SPLITK", 12, {1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 32}},             \
                 [TEAMS] = {"TEAMS", 4, {1, 2, 4, 8}}},                                            \
    .tunable_count = IGEMM_TUNABLES,                                                               \
    .stages = {LAP_ROW_STAGE_KERNEL("conv_igemm", igemm_grid, 9, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,    \
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT,                \
                                    LAP_ROLE_SCRATCH, LAP_ROLE_IN2, LAP_ROLE_N, LAP_ROLE_FLAGS)},  \
    .stage_count = 1, .accepts = igemm_accepts, .defaults = igemm_defaults, .valid = igemm_valid,  \
    .packed_bytes = igemm_packed_bytes, .scratch_bytes = igemm_scratch_bytes,                      \
    .scratch_zeroed = true

const lap_kernel_row lap_row_conv_igemm = {
    .id = "conv_igemm",
    .about = "implicit matrix product, tiles in local memory, optionally split along the depth",
    .kind = LAP_OP_CONV,
    .pack = igemm_pack,
    IGEMM_COMMON,
};

const lap_kernel_row lap_row_conv_igemm_ds = {
    .id = "conv_igemm_ds",
    .about = "conv_igemm with the residual's 1x1 convolution as more depth",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .pack_fused = igemm_pack_fused,
    IGEMM_COMMON,
};

static void igemm_pack_scaled(const lap_case *c, const lap_op_weights *weights,
                              const lap_op_weights *partner, void *out) {
    (void)partner; /* a SCALE has none */
    igemm_pack(c, weights, out);
}

const lap_kernel_row lap_row_conv_igemm_scale = {
    .id = "conv_igemm_scale",
    .about = "conv_igemm with the factors of its input channels",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_SCALE,
    .pack_fused = igemm_pack_scaled,
    IGEMM_COMMON,
};

const lap_kernel_row lap_row_fc_igemm = {
    .id = "fc_igemm",
    .about = "conv_igemm on images of one pixel, for large batches",
    .kind = LAP_OP_FC,
    .pack = igemm_pack,
    IGEMM_COMMON,
};

/* ---- pools ---------------------------------------------------------------------------------- */

#define MAXPOOL_GROUP 128 /* GROUP in maxpool_g */
#define AVGPOOL_WIDTH 16  /* WIDTH in avgpool_g */

/* CUDA's limit for the second grid dimension; kernels stride over the rest. */
static uint32_t grid_rows(uint64_t count) {
    return count < 65535 ? (uint32_t)count : 65535;
}

static bool grid_of(const lap_case *c, uint64_t groups, uint64_t rows, uint32_t local,
                    lap_grid *grid) {
    if (c->n == 0 || groups == 0 || groups > INT32_MAX) return false;
    *grid = (lap_grid){.groups = {(uint32_t)groups, grid_rows(rows), 1}, .local = {local, 1, 1}};
    return true;
}

static bool maxpool_accepts(const lap_case *c) {
    return lap_row_accepts_plain(c) && lap_row_is_gpu(c->device) &&
           lap_row_group_fits(c->device, MAXPOOL_GROUP, 0);
}

static bool maxpool_grid(const lap_case *c, lap_grid *grid) {
    uint64_t quads = lap_tensor_stored(&c->op->out) / 4;
    return grid_of(c, lap_row_ceil_div(quads, MAXPOOL_GROUP), c->n, MAXPOOL_GROUP, grid);
}

const lap_kernel_row lap_row_maxpool_g = {
    .id = "maxpool_g",
    .about = "four channels of a pixel a work-item",
    .kind = LAP_OP_MAXPOOL,
    .precisions = LAP_ROW_PLAIN,
    .stages = {LAP_ROW_STAGE_KERNEL("maxpool_g", maxpool_grid, 3, LAP_ROLE_IN, LAP_ROLE_OUT,
                                    LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = maxpool_accepts,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
};

static uint32_t avgpool_threads(const lap_case *c) {
    return (uint32_t)c->params.value[0] * AVGPOOL_WIDTH;
}

static bool avgpool_valid(const lap_case *c) {
    uint32_t threads = avgpool_threads(c);
    return c->params.value[0] > 0 && lap_row_group_fits(c->device, threads, threads * 16);
}

static bool avgpool_accepts(const lap_case *c) {
    return lap_row_accepts_plain(c) && lap_row_is_gpu(c->device) &&
           lap_row_group_fits(c->device, 64, 1024);
}

static void avgpool_defaults(const lap_case *c, lap_params *params) {
    lap_case trial = *c;
    *params = (lap_params){.value = {4}};
    trial.params.value[0] = 16;
    if (c->op->in.h * c->op->in.w >= 16 && avgpool_valid(&trial)) *params = trial.params;
}

static bool avgpool_grid(const lap_case *c, lap_grid *grid) {
    uint64_t groups = lap_row_ceil_div((uint64_t)c->op->in.cs, 4 * AVGPOOL_WIDTH);
    return grid_of(c, groups, c->n, avgpool_threads(c), grid);
}

const lap_kernel_row lap_row_avgpool_g = {
    .id = "avgpool_g",
    .about = "rows of a group sum pixels side by side, then a fixed tree",
    .kind = LAP_OP_AVGPOOL,
    .precisions = LAP_ROW_PLAIN,
    .tunables = {{"ROWS", 4, {4, 8, 16, 32}}},
    .tunable_count = 1,
    .stages = {LAP_ROW_STAGE_KERNEL("avgpool_g", avgpool_grid, 3, LAP_ROLE_IN, LAP_ROLE_OUT,
                                    LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = avgpool_accepts,
    .defaults = avgpool_defaults,
    .valid = avgpool_valid,
};

/* ---- fc_g ----------------------------------------------------------------------------------- */

enum { LANES, OUTPUTS, IMAGES, FC_TUNABLES };

static bool fc_valid(const lap_case *c) {
    const int *v = c->params.value;
    if (v[LANES] <= 0 || v[OUTPUTS] <= 0 || v[IMAGES] <= 0) return false;
    uint64_t threads = (uint64_t)v[LANES] * (uint64_t)v[OUTPUTS];
    return threads >= 32 &&
           lap_row_group_fits(c->device, threads, threads * (uint64_t)v[IMAGES] * 4);
}

static bool fc_accepts(const lap_case *c) {
    return lap_row_accepts_plain(c) && lap_row_is_gpu(c->device) &&
           c->op->in.h * c->op->in.w == 1 && lap_row_group_fits(c->device, 64, 2048);
}

static void fc_defaults(const lap_case *c, lap_params *params) {
    int images = c->n >= 8 ? 8 : c->n >= 4 ? 4 : c->n >= 2 ? 2 : 1;
    *params = (lap_params){.value = {[LANES] = 32, [OUTPUTS] = 2, [IMAGES] = images}};
    lap_case trial = *c;
    trial.params = *params;
    trial.params.value[OUTPUTS] = 4;
    if (fc_valid(&trial)) *params = trial.params;
}

static bool fc_grid(const lap_case *c, lap_grid *grid) {
    const int *v = c->params.value;
    uint64_t groups = lap_row_ceil_div((uint64_t)c->op->out.cs, (uint64_t)v[OUTPUTS]);
    uint64_t rows = lap_row_ceil_div(c->n, (uint64_t)v[IMAGES]);
    return grid_of(c, groups, rows, (uint32_t)(v[LANES] * v[OUTPUTS]), grid);
}

static size_t fc_packed_bytes(const lap_case *c) {
    return lap_pack_ks_cs_bytes(c->op, c->precision);
}

static void fc_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_pack_ks_cs(c->op, c->precision, weights->w, out);
}

const lap_kernel_row lap_row_fc_g = {
    .id = "fc_g",
    .about = "lanes of a group share an output, for few images",
    .kind = LAP_OP_FC,
    .precisions = LAP_ROW_PLAIN,
    .tunables = {[LANES] = {"LANES", 4, {8, 16, 32, 64}},
                 [OUTPUTS] = {"OUTPUTS", 4, {1, 2, 4, 8}},
                 [IMAGES] = {"IMAGES", 4, {1, 2, 4, 8}}},
    .tunable_count = FC_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("fc_g", fc_grid, 5, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = fc_accepts,
    .defaults = fc_defaults,
    .valid = fc_valid,
    .packed_bytes = fc_packed_bytes,
    .pack = fc_pack,
};
