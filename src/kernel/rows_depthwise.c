/* Depthwise convolution for CPUs: explicit vectors over channels. OpenCL only. */
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
