/* Winograd convolution for CPUs: 3x3, stride 1, channels in whole vectors. OpenCL only. */
#include "kernel/rows.h"

#include <string.h>

/* Places of the tunables. */
enum { V, TILES, BLOCKS, GROUPS, SLICE };

#define POINTS 16

static int tiles_of(const lap_op *op) {
    return (op->out.h + 1) / 2 * ((op->out.w + 1) / 2);
}

static bool accepts(const lap_case *c) {
    const lap_op *op = c->op;
    int v = lap_row_vector_width(c->device);
    if (c->device->type != LAP_DEVICE_CPU || op->r != 3 || op->s != 3 || op->stride != 1)
        return false;
    /* Transformed weights are 16/9 as large: with few tiles to use them on, reading them takes
     * longer than the direct form. */
    return op->in.c % v == 0 && op->out.c % v == 0 && tiles_of(op) >= 32;
}

static int steps(const lap_case *c) {
    int step = c->params.value[V] * c->params.value[BLOCKS];
    return (c->op->out.c + step - 1) / step;
}

/* Tiles of a work-item: the number up to the limit that wastes least, then the largest. */
static int default_tiles(int all, int limit) {
    int best = 1;
    double best_cost = 1e9;
    for (int tiles = limit; tiles >= 1; tiles--) {
        double cost = (double)((all + tiles - 1) / tiles * tiles) / all * (1.0 + 1.0 / tiles);
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = tiles;
    }
    return best;
}

static void defaults(const lap_case *c, lap_params *params) {
    const lap_op *op = c->op;
    memset(params, 0, sizeof *params);
    int v = lap_row_vector_width(c->device), registers = v == 16 ? 28 : 12;
    int blocks = op->out.c % (2 * v) == 0 ? 2 : 1;
    int limit = registers / blocks;
    int tiles = default_tiles(tiles_of(op), limit < 16 ? limit : 16);
    int slice = 64;
    while (slice > v && op->in.c % slice)
        slice /= 2;
    params->value[V] = v;
    params->value[TILES] = tiles;
    params->value[BLOCKS] = blocks;
    /* One transformed input serves several products, as long as every core has work. */
    int groups = 4, products = op->out.c / (v * blocks);
    uint64_t in_row = lap_row_ceil_div((uint64_t)tiles_of(op), (uint64_t)tiles) * c->n;
    uint64_t wanted = 4 * (uint64_t)(c->device->units ? c->device->units : 1);
    while (groups > 1 && (groups > products ||
                          in_row * lap_row_ceil_div((uint64_t)products, (uint64_t)groups) < wanted))
        groups /= 2;
    params->value[GROUPS] = groups;
    params->value[SLICE] = slice;
}

static bool valid(const lap_case *c) {
    const int *p = c->params.value;
    if ((p[V] != 4 && p[V] != 8 && p[V] != 16) || p[TILES] < 1 || p[BLOCKS] < 1 || p[GROUPS] < 1)
        return false;
    if (c->op->in.c % p[V] || c->op->out.c % p[V] || p[SLICE] < p[V]) return false;
    /* Private memory lies on a thread's stack: keep it well below what stacks are. */
    int floats = POINTS * p[TILES] * (p[SLICE] + p[GROUPS] * p[BLOCKS] * p[V]);
    return p[SLICE] % p[V] == 0 && c->op->in.c % p[SLICE] == 0 && p[TILES] * p[BLOCKS] <= 32 &&
           floats <= 1 << 16;
}

static bool grid(const lap_case *c, lap_grid *out) {
    uint64_t tiles = (uint64_t)c->params.value[TILES];
    if (!lap_row_grid_linear(c, lap_row_ceil_div((uint64_t)tiles_of(c->op), tiles), 1, out))
        return false;
    out->groups[2] =
        (uint32_t)lap_row_ceil_div((uint64_t)steps(c), (uint64_t)c->params.value[GROUPS]);
    return true;
}

static size_t packed_bytes(const lap_case *c) {
    size_t channels = (size_t)steps(c) * (size_t)(c->params.value[V] * c->params.value[BLOCKS]);
    return channels * (size_t)c->op->in.c * POINTS * sizeof(float);
}

static void pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_pack_winograd(c->op, weights, c->params.value[V] * c->params.value[BLOCKS], out);
}

const lap_kernel_row lap_row_conv_winograd_v = {
    .id = "conv_winograd_v",
    .about = "Winograd F(2x2), explicit vectors over output channels",
    .kind = LAP_OP_CONV,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {{"V", 3, {4, 8, 16}},
                 {"TILES", 8, {4, 6, 7, 8, 9, 12, 14, 16}},
                 {"BLOCKS", 3, {1, 2, 4}},
                 {"GROUPS", 4, {1, 2, 4, 8}},
                 {"SLICE", 4, {16, 32, 64, 128}}},
    .tunable_count = 5,
    .stages = {LAP_ROW_STAGE_KERNEL("conv_winograd_v", grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL, LAP_ROLE_OUT, LAP_ROLE_N,
                                    LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = accepts,
    .defaults = defaults,
    .valid = valid,
    .packed_bytes = packed_bytes,
    .pack = pack,
};
