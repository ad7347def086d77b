/* Rows for GPUs that compute two ops without storing the tensor between them, fp32 FMA: the first
 * convolution with its max-pool, and the average pool with the fully connected layer. (The
 * residual's 1x1 convolution is in rows_gpu.c.)
 *
 * Geometry computed here mirrors the macros of stem_g and pool_fc_g.
 */
#include "kernel/pack_gpu.h"
#include "kernel/rows.h"

/* ---- stem_g --------------------------------------------------------------------------------- */

enum { TM, TN, XT, CT, BAND, STEM_TUNABLES };

typedef struct stem {
    uint64_t blocks, bands, strips; /* groups of an image, by direction */
    uint32_t threads, local_bytes;
} stem;

static stem stem_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    stem g = {.threads = (uint32_t)(v[XT] * v[CT])};
    int step = v[XT] * v[TM] / 2 - 1, quads = ((v[TM] - 1) * op->stride + op->s + 3) / 4;
    int pitch = ((v[XT] - 1) * v[TM] * op->stride + quads * 4 + 3) / 4 * 4;
    g.blocks = lap_row_ceil_div((uint64_t)op->out.cs, (uint64_t)v[CT] * (uint64_t)v[TN]);
    g.bands = lap_row_ceil_div((uint64_t)c->partner->out.h, (uint64_t)v[BAND]);
    /* The first strip makes one pooled column more than the others. */
    g.strips = c->partner->out.w <= step + 1
                   ? 1
                   : lap_row_ceil_div((uint64_t)(c->partner->out.w - 1), (uint64_t)step);
    g.local_bytes = (uint32_t)(op->r * op->in.c * pitch + v[XT] * v[CT] * v[TN]) * 4;
    return g;
}

static bool stem_accepts(const lap_case *c) {
    const lap_op *op = c->op, *pool = c->partner;
    if (!lap_row_is_gpu(c->device) || !lap_row_group_fits(c->device, 64, 16384)) return false;
    if (op->in.cs != 4 || op->residual >= 0 || op->r > 7 || op->s > 7) return false;
    if (op->stride > 2 || op->r < op->stride) return false;
    return pool->r == 3 && pool->s == 3 && pool->stride == 2 && pool->pad == 1;
}

static bool stem_valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < STEM_TUNABLES; i++)
        if (v[i] <= 0) return false;
    if (v[TM] % 2 || v[TM] * c->op->stride % 4 || v[TN] % 4 || v[TM] * v[TN] > 64) return false;
    stem g = stem_of(c);
    if (g.threads < 32 || g.threads > 512) return false;
    if (!lap_row_group_fits(c->device, g.threads, g.local_bytes)) return false;
    /* Half of the channels or columns for nothing. */
    if (v[CT] * v[TN] > 16 && v[CT] * v[TN] >= 2 * c->op->out.cs) return false;
    return v[XT] <= 8 || v[XT] * v[TM] < 2 * c->op->out.w + 2 * v[TM];
}

/* What defaults choose from. */
static const int stem_shapes[][4] = {
    {14, 4, 8, 16}, {8, 4, 14, 16}, {8, 4, 16, 16}, {8, 4, 8, 16}, {8, 4, 28, 8},
    {8, 4, 14, 8},  {8, 4, 4, 16},  {4, 4, 28, 8},  {4, 4, 28, 4}, {4, 4, 14, 8},
    {4, 4, 7, 16},  {4, 4, 8, 4},   {8, 4, 8, 8},
};
static const int stem_bands[] = {1, 2, 4, 7, 14, 28};

/* Estimated clocks of one launch on multiprocessors that issue for 4 warps at a time. Only ratios
 * matter. */
static double stem_clocks(const lap_case *c) {
    const int *v = c->params.value;
    stem g = stem_of(c);
    uint64_t units = c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
    uint64_t busiest = lap_row_ceil_div(c->n * g.blocks * g.bands * g.strips, units);
    uint64_t warps = lap_row_ceil_div(g.threads, 32), quarters = (warps + 3) / 4 * 4;
    uint64_t registers = v[TM] * v[TN] <= 32 ? 128 : 168; /* as the CUDA kernel asks for */
    uint64_t resident = 65536 / (registers * quarters * 32);
    if (resident < 1) resident = 1;
    uint64_t turns = lap_row_ceil_div(busiest, resident);
    if (busiest < resident) resident = busiest;
    double each = (double)(resident * warps) / 4; /* warps that share an issue slot */
    if (each < 1) each = 1;
    /* Products issue four at a time; a loaded word takes a clock for every warp. */
    double words = (v[TM] - 1) * c->op->stride + c->op->s * (1 + v[TN]);
    double inner = (double)(c->op->s * v[TM] * v[TN]) / 4 + words;
    double row = (c->op->r * c->op->in.c * inner + 60) * 4 * each * (1 + 0.5 / each) + 1500;
    return (double)turns * (2 * v[BAND] + 1) * row;
}

static void stem_defaults(const lap_case *c, lap_params *params) {
    lap_case trial = *c;
    double best = 0;
    *params = (lap_params){.value = {[TM] = 4, [TN] = 4, [XT] = 8, [CT] = 4, [BAND] = 1}};
    for (size_t s = 0; s < sizeof stem_shapes / sizeof stem_shapes[0]; s++)
        for (size_t b = 0; b < sizeof stem_bands / sizeof stem_bands[0]; b++) {
            const int *v = stem_shapes[s];
            if (lap_row_small_registers(c->device) && v[TM] * v[TN] > 16) continue;
            trial.params = (lap_params){.value = {v[TM], v[TN], v[XT], v[CT], stem_bands[b]}};
            if (!stem_valid(&trial)) continue;
            double clocks = stem_clocks(&trial);
            if (best > 0 && !(clocks < best)) continue;
            best = clocks;
            *params = trial.params;
        }
}

/* Images in the second dimension, which kernels walk with a stride. */
static bool grid_of(uint64_t groups, uint64_t rows, uint32_t threads, lap_grid *grid) {
    if (groups == 0 || groups > INT32_MAX || rows == 0) return false;
    if (rows > 65535) rows = 65535; /* CUDA's limit */
    *grid = (lap_grid){.groups = {(uint32_t)groups, (uint32_t)rows, 1}, .local = {threads, 1, 1}};
    return true;
}

static bool stem_grid(const lap_case *c, lap_grid *grid) {
    stem g = stem_of(c);
    return grid_of(g.blocks * g.bands * g.strips, c->n, g.threads, grid);
}

static size_t stem_channels(const lap_case *c) {
    return (size_t)c->params.value[CT] * (size_t)c->params.value[TN];
}

static size_t stem_packed_bytes(const lap_case *c) {
    return lap_pack_rcs_k_bytes(c->op, stem_channels(c));
}

static void stem_pack(const lap_case *c, const lap_op_weights *weights,
                      const lap_op_weights *partner, void *out) {
    (void)partner; /* a pool */
    lap_pack_rcs_k(c->op, stem_channels(c), weights->w, out);
}

const lap_kernel_row lap_row_stem_g = {
    .id = "stem_g",
    .about = "few input channels, input rows in local memory, pooled in registers",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_MAXPOOL,
    .precisions = LAP_ROW_FP32,
    .tunables = {[TM] = {"TM", 3, {4, 8, 14}},
                 [TN] = {"TN", 2, {4, 8}},
                 [XT] = {"XT", 7, {4, 7, 8, 14, 16, 28, 32}},
                 [CT] = {"CT", 4, {2, 4, 8, 16}},
                 [BAND] = {"BAND", 6, {1, 2, 4, 7, 14, 28}}},
    .tunable_count = STEM_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("stem_g", stem_grid, 6, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N, LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = stem_accepts,
    .defaults = stem_defaults,
    .valid = stem_valid,
    .packed_bytes = stem_packed_bytes,
    .pack_fused = stem_pack,
};

/* ---- pool_fc_g ------------------------------------------------------------------------------ */

enum { GROUP, LANES, OUTPUTS, IMAGES, PARTS, POOL_TUNABLES };

static bool pool_fc_valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < POOL_TUNABLES; i++)
        if (v[i] <= 0) return false;
    if (v[GROUP] % v[LANES] || v[OUTPUTS] % (v[GROUP] / v[LANES])) return false;
    if (c->op->in.cs > 32 * v[LANES]) return false;
    uint64_t local = (uint64_t)(v[PARTS] * v[IMAGES] * c->op->in.cs + v[IMAGES] * v[GROUP]) * 4;
    return lap_row_group_fits(c->device, (uint64_t)v[GROUP], local);
}

/* 7x7 in ResNet-18 at 224x224. 32x64 took 0.09 ms on an H200, where the pool by itself and the
 * classifier behind it are a tenth of that. */
#define POOL_AGAIN 256

bool lap_row_pool_again(const lap_op *op) {
    return (int64_t)op->in.h * op->in.w <= POOL_AGAIN;
}

/* As few groups average an image again as keep the device busy. */
static void pool_fc_defaults(const lap_case *c, lap_params *params) {
    lap_case trial = *c;
    int images = c->n >= 32 ? 4 : c->n >= 16 ? 2 : 1;
    *params = (lap_params){
        .value = {[GROUP] = 64, [LANES] = 16, [OUTPUTS] = 8, [IMAGES] = 1, [PARTS] = 1}};
    trial.params = (lap_params){.value = {[GROUP] = 256,
                                          [LANES] = 32,
                                          [OUTPUTS] = c->n >= 64  ? 256
                                                      : c->n >= 8 ? 64
                                                      : c->n >= 2 ? 16
                                                                  : 8,
                                          [IMAGES] = images,
                                          [PARTS] = images == 1 ? 2 : 1}};
    if (pool_fc_valid(&trial)) *params = trial.params;
}

static bool pool_fc_accepts(const lap_case *c) {
    lap_case trial = *c;
    if (!lap_row_is_gpu(c->device) || !lap_row_pool_again(c->op)) return false;
    pool_fc_defaults(c, &trial.params);
    return pool_fc_valid(&trial);
}

static bool pool_fc_grid(const lap_case *c, lap_grid *grid) {
    const int *v = c->params.value;
    return grid_of(lap_row_ceil_div((uint64_t)c->partner->out.cs, (uint64_t)v[OUTPUTS]),
                   lap_row_ceil_div(c->n, (uint64_t)v[IMAGES]), (uint32_t)v[GROUP], grid);
}

static size_t pool_fc_packed_bytes(const lap_case *c) {
    return lap_pack_ks_cs_bytes(c->partner, c->precision);
}

static void pool_fc_pack(const lap_case *c, const lap_op_weights *weights,
                         const lap_op_weights *partner, void *out) {
    (void)weights; /* a pool */
    lap_pack_ks_cs(c->partner, c->precision, partner->w, out);
}

const lap_kernel_row lap_row_pool_fc_g = {
    .id = "pool_fc_g",
    .about = "every group averages its images itself, then lanes share outputs",
    .kind = LAP_OP_AVGPOOL,
    .fusion = LAP_FUSE_FC,
    .precisions = LAP_ROW_FP32,
    .tunables = {[GROUP] = {"GROUP", 3, {128, 256, 512}},
                 [LANES] = {"LANES", 3, {16, 32, 64}},
                 [OUTPUTS] = {"OUTPUTS", 6, {4, 8, 16, 32, 64, 256}},
                 [IMAGES] = {"IMAGES", 3, {1, 2, 4}},
                 [PARTS] = {"PARTS", 3, {1, 2, 4}}},
    .tunable_count = POOL_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("pool_fc_g", pool_fc_grid, 5, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = pool_fc_accepts,
    .defaults = pool_fc_defaults,
    .valid = pool_fc_valid,
    .packed_bytes = pool_fc_packed_bytes,
    .pack_fused = pool_fc_pack,
};
