/* Depthwise convolution for CPUs, alone and with the 1x1 convolution before it: explicit vectors
 * over channels. OpenCL only. */
#include "kernel/rows.h"

#include <string.h>

enum { V, PIXELS, ROWS, CPU_TUNABLES };

/* Vectors without a remainder: the channel stride is a multiple of 4. */
static void cpu_defaults(const lap_case *c, lap_params *params) {
    const lap_op *op = c->op;
    memset(params, 0, sizeof *params);
    int v = lap_row_vector_width(c->device), limit = v == 16 ? 8 : 4;
    while (v > 4 && op->out.cs % v)
        v /= 2;
    /* As few parts of a row as registers allow, of the same size. */
    int parts = (op->out.w + limit - 1) / limit;
    params->value[V] = v;
    params->value[PIXELS] = (op->out.w + parts - 1) / parts;
    /* Rows under one another share input lines; every core gets several items all the same. */
    if (c->fusion == LAP_FUSE_POOL) {
        params->value[ROWS] = op->out.h;
        return;
    }
    uint64_t wanted = 8 * (uint64_t)(c->device->units ? c->device->units : 1);
    int rows = op->out.h;
    while (rows > 1 && lap_row_ceil_div((uint64_t)op->out.h, (uint64_t)rows) *
                               (uint64_t)(op->out.cs / v) * c->n <
                           wanted)
        rows = (rows + 1) / 2;
    params->value[ROWS] = rows;
}

static bool cpu_valid(const lap_case *c) {
    const int *p = c->params.value;
    return (p[V] == 4 || p[V] == 8 || p[V] == 16) && c->op->out.cs % p[V] == 0 && p[PIXELS] >= 1 &&
           p[PIXELS] <= 16 && p[ROWS] >= 1 &&
           (c->fusion != LAP_FUSE_POOL || p[ROWS] == c->op->out.h);
}

static bool cpu_accepts(const lap_case *c) {
    return c->device->type == LAP_DEVICE_CPU && c->op->in.cs == c->op->out.cs && c->op->s <= 16;
}

/* A work-item has whole images of its channels: only where cores are about equally busy then. */
static bool pooled_accepts(const lap_case *c) {
    lap_case trial = *c;
    if (!cpu_accepts(c)) return false;
    cpu_defaults(c, &trial.params);
    uint64_t items = c->n * (uint64_t)(c->op->out.cs / trial.params.value[V]);
    uint64_t units = c->device->units ? c->device->units : 1;
    return lap_row_ceil_div(items, units) * units * 7 <= items * 8;
}

static void pooled_pack(const lap_case *c, const lap_op_weights *weights,
                        const lap_op_weights *partner, void *out) {
    (void)partner; /* a pool has none */
    lap_pack_rsc(c, weights, out);
}

static bool cpu_grid(const lap_case *c, lap_grid *grid) {
    const int *p = c->params.value;
    uint64_t bands = lap_row_ceil_div((uint64_t)c->op->out.h, (uint64_t)p[ROWS]);
    return lap_row_grid_linear(c, bands * (uint64_t)(c->op->out.cs / p[V]), 1, grid);
}

#define CPU_COMMON                                                                                 \
    .kind = LAP_OP_DWCONV, .precisions = LAP_ROW_FP32, .only = "cl", .smooth = true,               \
    .tunables = {[V] = {"V", 3, {4, 8, 16}},                                                       \
                 [PIXELS] = {"PIXELS", 7, {1, 2, 4, 7, 8, 14, 16}},                                \
                 [ROWS] = {"ROWS", 8, {1, 2, 4, 7, 14, 28, 56, 112}}},                             \
    .tunable_count = CPU_TUNABLES,                                                                 \
    .stages = {LAP_ROW_STAGE_KERNEL("dwconv_v", cpu_grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,        \
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_OUT2, LAP_ROLE_N,        \
                                    LAP_ROLE_FLAGS)},                                              \
    .stage_count = 1, .defaults = cpu_defaults, .valid = cpu_valid,                                \
    .packed_bytes = lap_pack_rsc_bytes

const lap_kernel_row lap_row_dwconv_v = {
    .id = "dwconv_v",
    .about = "explicit vectors over channels, input pixels kept for the whole window row",
    .accepts = cpu_accepts,
    .pack = lap_pack_rsc,
    CPU_COMMON,
};

const lap_kernel_row lap_row_dwconv_pool_v = {
    .id = "dwconv_pool_v",
    .about = "dwconv_v, and the means of its channels",
    .fusion = LAP_FUSE_POOL,
    .accepts = pooled_accepts,
    .pack_fused = pooled_pack,
    CPU_COMMON,
};

/* ---- with the 1x1 convolution before it ------------------------------------------------------ */

enum { EX_V, EX_PIXELS, EX_PIXELS2, EX_TUNABLES };

#define MOST_KEPT_FLOATS (1 << 15) /* rows between the two: a part of a second level cache */

/* As many floats as the kernel's array has. */
static uint64_t kept_floats(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op, *dw = c->partner;
    int line = (dw->out.w - 1) * dw->stride + dw->s;
    if (line < op->out.w + dw->pad) line = op->out.w + dw->pad;
    return (uint64_t)(dw->r * line + v[EX_PIXELS2] * dw->stride) * (uint64_t)v[EX_V];
}

/* As few parts of a row as the limit allows, of about the same size. */
static int part_of(int width, int limit) {
    int parts = (width + limit - 1) / limit;
    return (width + parts - 1) / parts;
}

static void expand_defaults(const lap_case *c, lap_params *params) {
    memset(params, 0, sizeof *params);
    int v = lap_row_vector_width(c->device), wide = v == 16;
    while (v > 4 && c->partner->out.cs % v)
        v /= 2;
    params->value[EX_V] = v;
    params->value[EX_PIXELS] = part_of(c->op->out.w, wide ? 16 : 8);
    params->value[EX_PIXELS2] = part_of(c->partner->out.w, wide ? 8 : 4);
}

static bool expand_valid(const lap_case *c) {
    const int *v = c->params.value;
    return (v[EX_V] == 4 || v[EX_V] == 8 || v[EX_V] == 16) && c->partner->out.cs % v[EX_V] == 0 &&
           v[EX_PIXELS] >= 1 && v[EX_PIXELS] <= 28 && v[EX_PIXELS2] >= 1 && v[EX_PIXELS2] <= 16 &&
           kept_floats(c) <= MOST_KEPT_FLOATS;
}

/* As pooled_accepts: a work-item has whole images. */
static bool expand_accepts(const lap_case *c) {
    const lap_op *op = c->op, *dw = c->partner;
    if (c->device->type != LAP_DEVICE_CPU || op->act > LAP_ACT_SILU || dw->act > LAP_ACT_SILU)
        return false;
    if (op->out.cs != dw->out.cs || dw->s > 16 || dw->r > 16) return false;
    lap_case trial = *c;
    expand_defaults(c, &trial.params);
    uint64_t items = c->n * (uint64_t)(dw->out.cs / trial.params.value[EX_V]);
    uint64_t units = c->device->units ? c->device->units : 1;
    return expand_valid(&trial) && lap_row_ceil_div(items, units) * units * 7 <= items * 8;
}

static bool expand_grid(const lap_case *c, lap_grid *grid) {
    return lap_row_grid_linear(c, (uint64_t)(c->partner->out.cs / c->params.value[EX_V]), 1, grid);
}

static size_t expand_first_floats(const lap_case *c) {
    return (size_t)c->op->out.cs * (size_t)c->op->in.c;
}

static size_t expand_packed_bytes(const lap_case *c) {
    size_t taps = (size_t)c->partner->r * (size_t)c->partner->s;
    return (expand_first_floats(c) + taps * (size_t)c->partner->out.cs) * sizeof(float);
}

static void expand_pack(const lap_case *c, const lap_op_weights *weights,
                        const lap_op_weights *partner, void *out) {
    lap_case second = *c;
    second.op = c->partner;
    lap_pack_blocked(c->op, weights, c->params.value[EX_V], out);
    lap_pack_rsc(&second, partner, (float *)out + expand_first_floats(c));
}

const lap_kernel_row lap_row_conv_dw_v = {
    .id = "conv_dw_v",
    .about = "1x1 and depthwise convolution, explicit vectors, rows between them kept in cache",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_EXPAND,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .smooth = true,
    .tunables = {[EX_V] = {"V", 3, {4, 8, 16}},
                 [EX_PIXELS] = {"PIXELS", 6, {4, 7, 8, 14, 16, 28}},
                 [EX_PIXELS2] = {"PIXELS2", 4, {4, 7, 8, 14}}},
    .tunable_count = EX_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_dw_v", expand_grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_OUT2, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = expand_accepts,
    .defaults = expand_defaults,
    .valid = expand_valid,
    .packed_bytes = expand_packed_bytes,
    .pack_fused = expand_pack,
};
