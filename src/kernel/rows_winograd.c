/* Winograd convolution for CPUs: 3x3, stride 1, channels in whole vectors; F(2x2) and F(4x4), alone
 * and with the 1x1 convolution that makes the residual. OpenCL only.
 */
#include "kernel/rows.h"

#include <string.h>

/* Places of the tunables. */
enum { V, TILES, BLOCKS, GROUPS, SLICE, M };

static int points(int m) {
    return (m + 2) * (m + 2);
}

/* Tiles of one image, edge m. */
static uint64_t tiles_of(const lap_op *op, int m) {
    return (uint64_t)((op->out.h + m - 1) / m) * (uint64_t)((op->out.w + m - 1) / m);
}

static bool is_winograd(const lap_case *c) {
    const lap_op *op = c->op;
    int v = lap_row_vector_width(c->device);
    return c->device->type == LAP_DEVICE_CPU && op->r == 3 && op->s == 3 && op->stride == 1 &&
           op->in.c % v == 0 && op->out.c % v == 0;
}

/* Transformed weights are 16/9 or 4 times as large: with few tiles to use them on, reading them
 * takes longer than the direct form. */
static bool accepts2(const lap_case *c) {
    return is_winograd(c) && c->n * tiles_of(c->op, 2) >= 32;
}

static bool accepts4(const lap_case *c) {
    return is_winograd(c) && c->n * tiles_of(c->op, 4) >= 32;
}

static int steps(const lap_case *c) {
    int step = c->params.value[V] * c->params.value[BLOCKS];
    return (c->op->out.c + step - 1) / step;
}

/* Tiles of a work-item: the number up to the limit that wastes least, then the largest. */
static int default_tiles(uint64_t all, int limit) {
    int best = 1;
    double best_cost = 1e9;
    /* Enough of them: a last part that is not full matters little, and batches share a build. */
    if (all >= 4 * (uint64_t)limit) return limit;
    for (int tiles = limit; tiles >= 1; tiles--) {
        double stored = (double)(lap_row_ceil_div(all, (uint64_t)tiles) * (uint64_t)tiles);
        double cost = stored / (double)all * (1.0 + 1.0 / tiles);
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = tiles;
    }
    return best;
}

static int private_floats(const lap_params *params, int m) {
    const int *p = params->value;
    return points(m) * p[TILES] * (p[SLICE] + p[GROUPS] * p[BLOCKS] * p[V]);
}

/* Private memory lies on a thread's stack: keep it well below what stacks are. */
#define MOST_PRIVATE_FLOATS (1 << 16)

/* One transformed input serves several products, as long as every core has work: the number with
 * which the busiest core is done first. */
static int default_groups(const lap_case *c, lap_params *params) {
    int *p = params->value, best = 1;
    int products = c->op->out.c / (p[V] * p[BLOCKS]);
    uint64_t units = c->device->units ? c->device->units : 1;
    uint64_t across = lap_row_ceil_div(tiles_of(c->op, p[M]) * c->n, (uint64_t)p[TILES]);
    double best_cost = 1e300;
    for (int groups = 1; groups <= 8 && groups <= products; groups *= 2) {
        p[GROUPS] = groups;
        if (private_floats(params, p[M]) > MOST_PRIVATE_FLOATS) break;
        uint64_t items = across * lap_row_ceil_div((uint64_t)products, (uint64_t)groups);
        /* A transform takes about a quarter of a product's time. */
        double cost = (double)lap_row_ceil_div(items, units) * (0.25 + groups);
        if (cost > best_cost) continue;
        best_cost = cost;
        best = groups;
    }
    return best;
}

static void defaults(const lap_case *c, lap_params *params, int m) {
    const lap_op *op = c->op;
    memset(params, 0, sizeof *params);
    int *p = params->value;
    int v = lap_row_vector_width(c->device), registers = v == 16 ? 28 : 12;
    int blocks = op->out.c % (2 * v) == 0 ? 2 : 1;
    int limit = registers / blocks;
    uint64_t all = tiles_of(op, m) * c->n;
    int slice = 64;
    while (slice > v && op->in.c % slice)
        slice /= 2;
    p[V] = v;
    p[TILES] = default_tiles(all, limit < 16 ? limit : 16);
    p[BLOCKS] = blocks;
    p[SLICE] = slice;
    p[M] = m;
    p[GROUPS] = default_groups(c, params);
}

static void defaults2(const lap_case *c, lap_params *params) {
    defaults(c, params, 2);
}

static void defaults4(const lap_case *c, lap_params *params) {
    defaults(c, params, 4);
}

static bool valid(const lap_case *c) {
    const int *p = c->params.value;
    if ((p[V] != 4 && p[V] != 8 && p[V] != 16) || p[TILES] < 1 || p[BLOCKS] < 1 || p[GROUPS] < 1)
        return false;
    if (c->op->in.c % p[V] || c->op->out.c % p[V] || p[SLICE] < p[V]) return false;
    return p[SLICE] % p[V] == 0 && c->op->in.c % p[SLICE] == 0 && p[TILES] * p[BLOCKS] <= 32 &&
           private_floats(&c->params, p[M]) <= MOST_PRIVATE_FLOATS;
}

static bool grid(const lap_case *c, lap_grid *out) {
    uint64_t tiles = tiles_of(c->op, c->params.value[M]) * c->n;
    if (tiles == 0 || tiles > INT32_MAX - 64) return false;
    uint64_t items = lap_row_ceil_div(tiles, (uint64_t)c->params.value[TILES]);
    uint64_t groups = lap_row_ceil_div((uint64_t)steps(c), (uint64_t)c->params.value[GROUPS]);
    *out = (lap_grid){.groups = {(uint32_t)items, (uint32_t)groups, 1}, .local = {1, 1, 1}};
    return true;
}

static size_t packed_channels(const lap_case *c) {
    return (size_t)steps(c) * (size_t)(c->params.value[V] * c->params.value[BLOCKS]);
}

static size_t packed_bytes(const lap_case *c) {
    size_t each = (size_t)c->op->in.c * (size_t)points(c->params.value[M]);
    if (c->fusion == LAP_FUSE_DOWNSAMPLE) each += (size_t)c->partner->in.c;
    return packed_channels(c) * each * sizeof(float);
}

static void pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    const int *p = c->params.value;
    lap_pack_winograd(c->op, weights, p[V] * p[BLOCKS], p[M], out);
}

static void pack_down(const lap_case *c, const lap_op_weights *weights,
                      const lap_op_weights *partner, void *out) {
    pack(c, weights, out);
    size_t own = packed_channels(c) * (size_t)c->op->in.c * (size_t)points(c->params.value[M]);
    size_t v = (size_t)c->params.value[V], c2 = (size_t)c->partner->in.c;
    size_t k_count = (size_t)c->op->out.c, channels = packed_channels(c);
    float *packed = (float *)out + own;
    for (size_t i = 0; i < channels * c2; i++) {
        size_t k = i / (c2 * v) * v + i % v, channel = i / v % c2;
        packed[i] = k < k_count ? partner->w[k * c2 + channel] : 0.0f;
    }
}

#define TUNABLES(m)                                                                                \
    .tunables = {{"V", 3, {4, 8, 16}},                                                             \
                 {"TILES", 8, {4, 6, 7, 8, 9, 12, 14, 16}},                                        \
                 {"BLOCKS", 3, {1, 2, 4}},                                                         \
                 {"GROUPS", 4, {1, 2, 4, 8}},                                                      \
                 {"SLICE", 4, {16, 32, 64, 128}},                                                  \
                 {"M", 1, {m}}},                                                                   \
    .tunable_count = 6
#define STAGE(fourth)                                                                              \
    .stages = {LAP_ROW_STAGE_KERNEL("conv_winograd_v", grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,     \
                                    LAP_ROLE_BIAS, fourth, LAP_ROLE_OUT, LAP_ROLE_N,               \
                                    LAP_ROLE_FLAGS)},                                              \
    .stage_count = 1
#define COMMON                                                                                     \
    .kind = LAP_OP_CONV, .precisions = LAP_ROW_FP32, .only = "cl", .valid = valid,                 \
    .packed_bytes = packed_bytes
#define ALONE .fusion = LAP_FUSE_NONE, .pack = pack, STAGE(LAP_ROLE_RESIDUAL)
#define DOWN .fusion = LAP_FUSE_DOWNSAMPLE, .pack_fused = pack_down, STAGE(LAP_ROLE_IN2)
/* Over random tiles of 16 to 512 channels the error of F(4x4) is 1.6 to 2.8 times the direct form's
 * (root mean square), and at most 0.21 of the bound for direct forms. But it grows with all inputs
 * of the tile, the bound only with those of the element: hence more room. */
#define F2 .accepts = accepts2, .defaults = defaults2, TUNABLES(2)
#define F4 .accepts = accepts4, .defaults = defaults4, .error_factor = 4, TUNABLES(4)

const lap_kernel_row lap_row_conv_winograd_v = {
    .id = "conv_winograd_v", .about = "Winograd F(2x2), explicit vectors", COMMON, ALONE, F2};

const lap_kernel_row lap_row_conv_winograd_down_v = {
    .id = "conv_winograd_down_v",
    .about = "Winograd F(2x2), with the 1x1 convolution of the shortcut",
    COMMON,
    DOWN,
    F2};

const lap_kernel_row lap_row_conv_winograd4_v = {
    .id = "conv_winograd4_v", .about = "Winograd F(4x4), explicit vectors", COMMON, ALONE, F4};

const lap_kernel_row lap_row_conv_winograd4_down_v = {
    .id = "conv_winograd4_down_v",
    .about = "Winograd F(4x4), with the 1x1 convolution of the shortcut",
    COMMON,
    DOWN,
    F4};
