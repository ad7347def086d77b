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

static void direct_defaults(const lap_case *c, lap_params *params) {
    const lap_op *op = c->op;
    memset(params, 0, sizeof *params);
    int v = lap_row_vector_width(c->device);
    /* 1x1 windows have little work a group: more groups balance better. */
    int blocks = op->out.cs > v && op->r * op->s > 1 ? 2 : 1;
    params->value[V] = v;
    params->value[BLOCKS] = blocks;
    int limit = sum_registers(v) / blocks;
    params->value[PIXELS] = default_pixels(op->out.w, limit < 14 ? limit : 14);
    params->value[UNROLL] = 1; /* more gains nothing and compiles twice as long */
    /* Keep in cache what is larger: weights across images, or one image across channels. */
    params->value[IMAGES_INNER] = lap_op_weight_count(op) > lap_tensor_stored(&op->in);
}

static bool direct_valid(const lap_case *c) {
    const int *p = c->params.value;
    return (p[V] == 4 || p[V] == 8 || p[V] == 16) && p[PIXELS] >= 1 && p[BLOCKS] >= 1 &&
           p[BLOCKS] <= 8 && p[PIXELS] * p[BLOCKS] <= 32 && p[UNROLL] >= 1 && p[UNROLL] <= 8 &&
           (p[IMAGES_INNER] == 0 || p[IMAGES_INNER] == 1);
}

static size_t direct_packed_bytes(const lap_case *c) {
    size_t channels = (size_t)channel_groups(c) * (size_t)(c->params.value[V]) *
                      (size_t)(c->params.value[BLOCKS]);
    return channels * (size_t)c->op->in.c * (size_t)c->op->r * (size_t)c->op->s * sizeof(float);
}

static void direct_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_pack_blocked(c->op, weights, c->params.value[V] * c->params.value[BLOCKS], out);
}

const lap_kernel_row lap_row_conv_direct_v = {
    .id = "conv_direct_v",
    .about = "direct, explicit vectors over output channels",
    .kind = LAP_OP_CONV,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {{"V", 3, {4, 8, 16}},
                 {"PIXELS", 9, {1, 2, 3, 4, 6, 7, 8, 12, 14}},
                 {"BLOCKS", 4, {1, 2, 3, 4}},
                 {"UNROLL", 4, {1, 2, 4, 8}},
                 {"IMAGES_INNER", 2, {0, 1}}},
    .tunable_count = 5,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_direct_v", direct_grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = is_cpu,
    .defaults = direct_defaults,
    .valid = direct_valid,
    .packed_bytes = direct_packed_bytes,
    .pack = direct_pack,
};

/* ---- pools and fully connected -------------------------------------------------------------- */

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

/* Places of fc_v's tunables. */
enum { FC_V, FC_BLOCKS, FC_IMAGES };

static void fc_defaults(const lap_case *c, lap_params *params) {
    memset(params, 0, sizeof *params);
    params->value[FC_V] = lap_row_vector_width(c->device);
    params->value[FC_BLOCKS] = 2;
    params->value[FC_IMAGES] = c->n >= 4 ? 4 : 1;
}

static bool fc_valid(const lap_case *c) {
    const int *p = c->params.value;
    return (p[FC_V] == 4 || p[FC_V] == 8 || p[FC_V] == 16) && p[FC_BLOCKS] >= 1 &&
           p[FC_IMAGES] >= 1 && p[FC_BLOCKS] * p[FC_IMAGES] <= 32;
}

static size_t fc_step(const lap_case *c) {
    return (size_t)(c->params.value[FC_V] * c->params.value[FC_BLOCKS]);
}

static size_t fc_blocks(const lap_case *c) {
    return (size_t)lap_row_ceil_div((uint64_t)c->op->out.cs, fc_step(c));
}

static bool fc_grid(const lap_case *c, lap_grid *grid) {
    if (!lap_row_grid_linear(c, fc_blocks(c), 1, grid)) return false;
    uint64_t batches = lap_row_ceil_div(c->n, (uint64_t)c->params.value[FC_IMAGES]);
    if (batches < grid->groups[1]) grid->groups[1] = (uint32_t)batches;
    return true;
}

static size_t fc_packed_bytes(const lap_case *c) {
    return fc_blocks(c) * fc_step(c) * (size_t)c->op->in.c * sizeof(float);
}

static void fc_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_pack_blocked(c->op, weights, (int)fc_step(c), out);
}

const lap_kernel_row lap_row_fc_v = {
    .id = "fc_v",
    .about = "explicit vectors over output channels, weights shared by images",
    .kind = LAP_OP_FC,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {{"V", 3, {4, 8, 16}}, {"BLOCKS", 3, {1, 2, 4}}, {"IMAGES", 4, {1, 2, 4, 8}}},
    .tunable_count = 3,
    .stages = {LAP_ROW_STAGE_KERNEL("fc_v", fc_grid, 5, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = is_cpu,
    .defaults = fc_defaults,
    .valid = fc_valid,
    .packed_bytes = fc_packed_bytes,
    .pack = fc_pack,
};
