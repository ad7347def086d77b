/* Rows for CPUs: explicit vectors, one work-item per group, no local memory. OpenCL only. They
 * refuse other devices, where such kernels are hopeless.
 */
#include "kernel/rows.h"

#include <string.h>

/* Places of conv_direct_v's tunables in a parameter vector. */
enum { V, PIXELS, BLOCKS, UNROLL, IMAGES_INNER };

static bool is_cpu(const lap_case *c) {
    return c->device->type == LAP_DEVICE_CPU;
}

/* Floats in the vectors a kernel is written with. An unknown width gets 8: two SSE or NEON
 * registers lose little, and half of AVX-512 is better than none. */
int lap_row_vector_width(const lap_device_info *device) {
    if (device->simd_width >= 16) return 16;
    return device->simd_width == 4 ? 4 : 8;
}

/* Vector registers that may hold sums: AVX-512 has 32 registers, AVX and SSE 16. */
static int sum_registers(int v) {
    return v == 16 ? 28 : 12;
}

static int channel_groups(const lap_case *c) {
    int step = c->params.value[V] * c->params.value[BLOCKS];
    return (c->op->out.cs + step - 1) / step;
}

static bool direct_grid(const lap_case *c, lap_grid *grid) {
    uint64_t tiles = lap_row_ceil_div((uint64_t)c->op->out.w, (uint64_t)c->params.value[PIXELS]);
    tiles *= (uint64_t)c->op->out.h;
    if (tiles > INT32_MAX || c->n == 0) return false;
    uint32_t images = c->n < 65535 ? (uint32_t)c->n : 65535;
    uint32_t blocks = (uint32_t)channel_groups(c);
    bool inner = c->params.value[IMAGES_INNER];
    *grid =
        (lap_grid){.groups = {(uint32_t)tiles, inner ? images : blocks, inner ? blocks : images},
                   .local = {1, 1, 1}};
    return true;
}

/* The tile that wastes least of a row, then the largest one that leaves registers free. */
static int default_pixels(int width, int limit) {
    int best = 1;
    double best_cost = 1e9;
    for (int pixels = limit; pixels >= 1; pixels--) {
        int tiles = (width + pixels - 1) / pixels;
        /* Small tiles spend more of their time on loading weights. */
        double cost = (double)tiles * pixels / width * (1.0 + 0.25 / pixels);
        if (width % pixels) cost += 0.05; /* a partial tile runs with branches */
        if (cost < best_cost) {
            best_cost = cost;
            best = pixels;
        }
    }
    return best;
}

/* Vectors of output channels in a 1x1 group, where registers are not what limits it. */
static int pointwise_blocks(const lap_case *c, int v) {
    uint64_t vectors = lap_row_ceil_div((uint64_t)c->op->out.cs, (uint64_t)v);
    /* Little work a group: where there are few groups, more balance better. */
    uint64_t most = c->n * (uint64_t)c->op->out.h * lap_row_ceil_div((uint64_t)c->op->out.w, 14) *
                    ((vectors + 1) / 2);
    bool few = most < 16 * (uint64_t)(c->device->units ? c->device->units : 1);
    return vectors % 2 || few ? 1 : 2;
}

static void direct_defaults(const lap_case *c, lap_params *params) {
    const lap_op *op = c->op;
    memset(params, 0, sizeof *params);
    int v = lap_row_vector_width(c->device), channels = op->out.cs;
    int blocks = channels > v ? 2 : 1, limit = sum_registers(v) / blocks, most = 14;
    if (op->r * op->s == 1) {
        blocks = pointwise_blocks(c, v);
        limit = sum_registers(v) / blocks;
        if (op->out.w % 28 == 0 && op->out.w > 28) most = 28;
        if (v == 16 && channels % 16 == 8 && channels < 64) {
            /* Half vectors without a remainder: as many registers, and half of the work each. */
            v = 8;
            blocks = channels / 8;
            limit = 28 / blocks;
        }
    }
    params->value[V] = v;
    params->value[BLOCKS] = blocks;
    params->value[PIXELS] = default_pixels(op->out.w, limit < most ? limit : most);
    params->value[UNROLL] = 1; /* more gains nothing and compiles twice as long */
    /* Keep in cache what is larger: weights across images, or one image across channels. */
    params->value[IMAGES_INNER] = lap_op_weight_count(op) > lap_tensor_stored(&op->in);
}

static bool direct_valid(const lap_case *c) {
    const int *p = c->params.value;
    return (p[V] == 4 || p[V] == 8 || p[V] == 16) && p[PIXELS] >= 1 && p[BLOCKS] >= 1 &&
           p[BLOCKS] <= 8 && p[PIXELS] * p[BLOCKS] <= 32 && p[UNROLL] >= 1 && p[UNROLL] <= 8 &&
           (c->fusion == LAP_FUSE_MAXPOOL || p[IMAGES_INNER] == 0 || p[IMAGES_INNER] == 1);
}

static size_t direct_packed_bytes(const lap_case *c) {
    size_t channels = (size_t)channel_groups(c) * (size_t)(c->params.value[V]) *
                      (size_t)(c->params.value[BLOCKS]);
    size_t taps = (size_t)c->op->in.c * (size_t)c->op->r * (size_t)c->op->s;
    if (c->fusion == LAP_FUSE_DOWNSAMPLE) taps += (size_t)c->partner->in.c;
    return channels * taps * sizeof(float);
}

static void direct_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_pack_blocked(c->op, weights, c->params.value[V] * c->params.value[BLOCKS], out);
}

#define DIRECT_TUNABLES                                                                            \
    {"V", 3, {4, 8, 16}}, {"PIXELS", 11, {1, 2, 3, 4, 5, 6, 7, 8, 12, 14, 28}},                    \
        {"BLOCKS", 5, {1, 2, 3, 4, 5}}, {                                                          \
        "UNROLL", 4, {                                                                             \
            1, 2, 4, 8                                                                             \
        }                                                                                          \
    }

const lap_kernel_row lap_row_conv_direct_v = {
    .id = "conv_direct_v",
    .about = "direct, explicit vectors over output channels",
    .kind = LAP_OP_CONV,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {DIRECT_TUNABLES, {"IMAGES_INNER", 2, {0, 1}}},
    .tunable_count = 5,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_direct_v", direct_grid, 8, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS, LAP_ROLE_IN2)},
    .stage_count = 1,
    .smooth = true,
    .accepts = is_cpu,
    .defaults = direct_defaults,
    .valid = direct_valid,
    .packed_bytes = direct_packed_bytes,
    .pack = direct_pack,
};

/* ---- with the factors of its input channels -------------------------------------------------- */

static void scaled_pack(const lap_case *c, const lap_op_weights *weights,
                        const lap_op_weights *partner, void *out) {
    (void)partner; /* a SCALE has none */
    direct_pack(c, weights, out);
}

const lap_kernel_row lap_row_conv_direct_scale_v = {
    .id = "conv_direct_scale_v",
    .about = "direct, with the factors of its input channels",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_SCALE,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .smooth = true,
    .tunables = {DIRECT_TUNABLES, {"IMAGES_INNER", 2, {0, 1}}},
    .tunable_count = 5,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_direct_v", direct_grid, 8, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS, LAP_ROLE_IN2)},
    .stage_count = 1,
    .accepts = is_cpu,
    .defaults = direct_defaults,
    .valid = direct_valid,
    .packed_bytes = direct_packed_bytes,
    .pack_fused = scaled_pack,
};

/* ---- with the 1x1 convolution that makes the residual ---------------------------------------- */

/* A block's weights, then the partner's for the same output channels. */
static void down_pack(const lap_case *c, const lap_op_weights *weights,
                      const lap_op_weights *partner, void *out) {
    size_t step = (size_t)c->params.value[V] * (size_t)c->params.value[BLOCKS];
    size_t k_count = (size_t)c->op->out.c, c_count = (size_t)c->op->in.c;
    size_t taps = (size_t)c->op->r * (size_t)c->op->s, c2_count = (size_t)c->partner->in.c;
    float *packed = out;
    for (size_t block = 0; block < (size_t)channel_groups(c); block++) {
        size_t k0 = block * step;
        for (size_t i = 0; i < taps * c_count * step; i++) {
            size_t k = k0 + i % step, channel = i / step % c_count, tap = i / step / c_count;
            *packed++ = k < k_count ? weights->w[(k * c_count + channel) * taps + tap] : 0.0f;
        }
        for (size_t i = 0; i < c2_count * step; i++) {
            size_t k = k0 + i % step;
            *packed++ = k < k_count ? partner->w[k * c2_count + i / step] : 0.0f;
        }
    }
}

const lap_kernel_row lap_row_conv_direct_down_v = {
    .id = "conv_direct_down_v",
    .about = "direct, with the 1x1 convolution of the shortcut as one more tap",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {DIRECT_TUNABLES, {"IMAGES_INNER", 2, {0, 1}}},
    .tunable_count = 5,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_direct_v", direct_grid, 8, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_IN2, LAP_ROLE_OUT, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS, LAP_ROLE_IN2)},
    .stage_count = 1,
    .smooth = true,
    .accepts = is_cpu,
    .defaults = direct_defaults,
    .valid = direct_valid,
    .packed_bytes = direct_packed_bytes,
    .pack_fused = down_pack,
};

/* ---- with the max-pool behind ---------------------------------------------------------------- */

enum { POOL_ROWS = UNROLL + 1, POOL_COLUMNS };

/* Floats of a work-item's private rows: what is kept while a pooled row is made. */
static uint64_t pool_line_floats(const lap_case *c) {
    const int *p = c->params.value;
    const lap_op *pool = c->partner;
    uint64_t span = (uint64_t)(p[POOL_COLUMNS] - 1) * (uint64_t)pool->stride + (uint64_t)pool->r;
    return (uint64_t)pool->r * span * (uint64_t)(p[BLOCKS] * p[V]);
}

static uint64_t pool_items(const lap_case *c) {
    const lap_tensor *out = &c->partner->out;
    return lap_row_ceil_div((uint64_t)out->h, (uint64_t)c->params.value[POOL_ROWS]) *
           lap_row_ceil_div((uint64_t)out->w, (uint64_t)c->params.value[POOL_COLUMNS]);
}

#define MOST_LINE_FLOATS (1 << 16) /* a stack's share */

static bool pool_fits(const lap_case *c) {
    const int *p = c->params.value;
    return direct_valid(c) && p[POOL_ROWS] >= 1 && p[POOL_COLUMNS] >= 1 &&
           pool_line_floats(c) <= MOST_LINE_FLOATS;
}

/* Strips as high as leave every core a few, since neighbours compute a row twice; as wide as the
 * kept rows stay in a first or second level cache. */
static void pooled_defaults(const lap_case *c, lap_params *params) {
    direct_defaults(c, params);
    params->value[POOL_ROWS] = params->value[POOL_COLUMNS] = 1;
    lap_case trial = *c;
    trial.params = *params;
    int *p = trial.params.value;
    const lap_tensor *out = &c->partner->out;
    uint64_t blocks = (uint64_t)channel_groups(&trial);
    uint64_t wanted = 4 * (uint64_t)(c->device->units ? c->device->units : 1);
    int parts = 1;
    do { /* columns in equal parts */
        p[POOL_COLUMNS] = (out->w + parts - 1) / parts;
        parts++;
    } while (pool_line_floats(&trial) > MOST_LINE_FLOATS / 4 && p[POOL_COLUMNS] > 1);
    for (parts = 1;; parts++) {
        p[POOL_ROWS] = (out->h + parts - 1) / parts;
        if (p[POOL_ROWS] <= 2 || pool_items(&trial) * blocks * c->n >= wanted) break;
    }
    *params = trial.params;
}

/* Only windows that overlap by no more than rows: else much would be computed twice. */
static bool pooled_accepts(const lap_case *c) {
    if (!is_cpu(c) || c->op->residual >= 0 || c->partner->stride < 2) return false;
    lap_case trial = *c;
    pooled_defaults(c, &trial.params);
    return pool_fits(&trial);
}

static bool pooled_grid(const lap_case *c, lap_grid *grid) {
    uint64_t items = pool_items(c);
    if (items > INT32_MAX || c->n == 0) return false;
    uint32_t images = c->n < 65535 ? (uint32_t)c->n : 65535;
    *grid = (lap_grid){.groups = {(uint32_t)items, (uint32_t)channel_groups(c), images},
                       .local = {1, 1, 1}};
    return true;
}

static void pooled_pack(const lap_case *c, const lap_op_weights *weights,
                        const lap_op_weights *partner, void *out) {
    (void)partner; /* a pool has none */
    direct_pack(c, weights, out);
}

const lap_kernel_row lap_row_conv_direct_pool_v = {
    .id = "conv_direct_pool_v",
    .about = "direct, with the max-pool behind it",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_MAXPOOL,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {DIRECT_TUNABLES,
                 {"POOL_ROWS", 7, {1, 2, 4, 7, 14, 28, 56}},
                 {"POOL_COLUMNS", 4, {7, 14, 28, 56}}},
    .tunable_count = 6,
    .stages = {{.kind = LAP_STAGE_KERNEL,
                .stem = "conv_direct_v",
                .entry = "conv_direct_pool_v",
                .roles = {LAP_ROLE_IN, LAP_ROLE_WEIGHTS, LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N,
                          LAP_ROLE_FLAGS},
                .role_count = 6,
                .grid = pooled_grid}},
    .stage_count = 1,
    .accepts = pooled_accepts,
    .defaults = pooled_defaults,
    .valid = pool_fits,
    .packed_bytes = direct_packed_bytes,
    .pack_fused = pooled_pack,
};

/* ---- pools ----------------------------------------------------------------------------------- */

/* Pools are vectorised over channels without a remainder: the channel stride is a multiple of 4. */
static void pool_defaults(const lap_case *c, lap_params *params) {
    memset(params, 0, sizeof *params);
    int v = lap_row_vector_width(c->device);
    while (v > 4 && c->op->in.cs % v)
        v /= 2;
    params->value[V] = v;
}

static bool pool_valid(const lap_case *c) {
    int v = c->params.value[V];
    return (v == 4 || v == 8 || v == 16) && c->op->in.cs % v == 0;
}

static bool rows_grid(const lap_case *c, lap_grid *grid) {
    return lap_row_grid_linear(c, (uint64_t)c->op->out.h, 1, grid);
}

static bool vectors_grid(const lap_case *c, lap_grid *grid) {
    return lap_row_grid_linear(c, (uint64_t)(c->op->in.cs / c->params.value[V]), 1, grid);
}

const lap_kernel_row lap_row_maxpool_v = {
    .id = "maxpool_v",
    .about = "explicit vectors over channels, an output row per work-item",
    .kind = LAP_OP_MAXPOOL,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {{"V", 3, {4, 8, 16}}},
    .tunable_count = 1,
    .stages = {LAP_ROW_STAGE_KERNEL("maxpool_v", rows_grid, 3, LAP_ROLE_IN, LAP_ROLE_OUT,
                                    LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = is_cpu,
    .defaults = pool_defaults,
    .valid = pool_valid,
};

const lap_kernel_row lap_row_avgpool_v = {
    .id = "avgpool_v",
    .about = "explicit vectors over channels",
    .kind = LAP_OP_AVGPOOL,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {{"V", 3, {4, 8, 16}}},
    .tunable_count = 1,
    .stages = {LAP_ROW_STAGE_KERNEL("avgpool_v", vectors_grid, 3, LAP_ROLE_IN, LAP_ROLE_OUT,
                                    LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = is_cpu,
    .defaults = pool_defaults,
    .valid = pool_valid,
};
