/* Winograd F(2x2, 3x3) convolution for GPUs, fp32 FMA: alone and with the 1x1 convolution that
 * makes the residual. Both languages.
 *
 * Geometry computed here mirrors the macros of kernels_cl/conv_winograd_g.cl and
 * kernels_cu/conv_winograd_g.cu.
 */
#include "kernel/pack_gpu.h"
#include "kernel/rows.h"

#include <string.h>

enum { BT, BN, BK, TM, TN, ASYNC, WINOGRAD_TUNABLES };

#define LOCAL_DEFAULT 32768 /* most that defaults take where nothing was measured */

typedef struct winograd {
    uint64_t tiles, groups;
    uint64_t local_bytes;
    uint32_t threads;
    uint64_t resident; /* groups that registers let a multiprocessor hold */
} winograd;

static winograd winograd_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    winograd g = {0};
    g.tiles = c->n * (uint64_t)((op->out.h + 1) / 2) * (uint64_t)((op->out.w + 1) / 2);
    g.groups = lap_row_ceil_div(g.tiles, (uint64_t)v[BT]) *
               lap_row_ceil_div((uint64_t)op->out.cs, (uint64_t)v[BN]);
    g.threads = (uint32_t)(16 * (v[BT] / v[TM]) * (v[BN] / v[TN]));
    uint64_t buffers = 2 * 16 * (uint64_t)(v[BK] * (v[BT] + v[BN]));
    uint64_t sums = 16 * 4 * (uint64_t)(v[BT] / v[TM] * (v[BN] + 4));
    g.local_bytes = (buffers > sums ? buffers : sums) * sizeof(float);
    int acc = v[TM] * v[TN];
    uint64_t registers = acc <= 32 ? 96 : acc <= 64 ? 128 : 255;
    g.resident = 65536 / (registers * g.threads);
    if (g.resident == 0) g.resident = 1;
    return g;
}

static bool is_nvidia(const lap_device_info *device) {
    return device->cc_major > 0;
}

/* Everything is a power of two, so what fits at all fits evenly. */
static bool is_power(int value) {
    return value > 0 && (value & (value - 1)) == 0;
}

static bool valid(const lap_case *c) {
    const int *v = c->params.value;
    for (int i = 0; i < ASYNC; i++)
        if (!is_power(v[i])) return false;
    if (v[BK] < 4 || v[TM] < 4 || v[TN] < 4 || v[TM] > v[BT] || v[TN] > v[BN]) return false;
    if (c->op->in.cs % v[BK] || v[TM] * v[TN] > 128) return false;
    if (v[ASYNC] && (v[ASYNC] != 1 || c->device->cc_major < 8)) return false;
    if (v[BK] * v[TM] * v[TN] < 4 * v[BT]) return false; /* a quad of weights for everybody */
    winograd g = winograd_of(c);
    if (g.threads < 32 || g.threads > 512 || g.local_bytes > lap_row_local_limit(c)) return false;
    /* Patches wait in registers beside the sums. */
    int patches = v[BT] * v[BK] / (int)g.threads;
    if (v[TM] * v[TN] + 16 * (patches ? patches : 1) > 176) return false;
    if (g.threads > lap_row_group_most(c->device)) return false;
    if (c->device->max_group_dim[0] && g.threads > c->device->max_group_dim[0]) return false;
    /* A tile twice as wide as the output does half its work for nothing. */
    return v[BN] <= 32 || v[BN] < 2 * c->op->out.cs;
}

/* Tiles that defaults choose from, the fastest on a Hopper GPU first. */
static const lap_params tiles[] = {
    {{16, 64, 8, 16, 8}}, {{16, 32, 8, 8, 8}}, {{16, 64, 4, 16, 8}},
    {{16, 32, 4, 8, 8}},  {{16, 16, 4, 4, 4}},
};

static bool find_defaults(const lap_case *c, lap_params *params) {
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        lap_case trial = *c;
        int *v = trial.params.value;
        trial.params = tiles[i];
        v[ASYNC] = c->device->cc_major >= 8;
        if (lap_row_small_registers(c->device) && v[TM] * v[TN] > 16) continue;
        if (!valid(&trial)) continue;
        uint64_t local = winograd_of(&trial).local_bytes;
        if (!is_nvidia(c->device) && local > LOCAL_DEFAULT) continue;
        *params = trial.params;
        return true;
    }
    return false;
}

static void defaults(const lap_case *c, lap_params *params) {
    *params = (lap_params){{0}};
    find_defaults(c, params);
}

/* The share of the device's time in which it is full: groups come in rounds, and one that shares
 * its multiprocessor with fewer others is done sooner, but not in proportion. */
static double fullness(const lap_case *c) {
    winograd g = winograd_of(c);
    uint64_t units = c->device->units ? c->device->units : LAP_ROW_UNITS_UNKNOWN;
    uint64_t busiest = lap_row_ceil_div(g.groups, units), rest = busiest % g.resident;
    uint64_t whole = busiest / g.resident;
    double rounds = (double)whole;
    if (rest) rounds += 0.3 + 0.7 * (double)rest / (double)g.resident;
    return (double)g.groups / (double)(units * g.resident) / rounds;
}

/* On a full device, an H200 at batches 64 and 256, it takes 0.5 to 0.65 of the implicit product's
 * time, which has smaller parts to fill a device with. Between that and few images nothing was
 * measured: less full than this it is left alone. */
#define FULL_ENOUGH 0.8
#define CHANNELS_LEAST 16 /* with fewer the transforms cost more than is saved */

static bool accepts(const lap_case *c) {
    const lap_op *op = c->op;
    if (!lap_row_is_gpu(c->device) || op->r != 3 || op->s != 3 || op->stride != 1) return false;
    if (op->in.cs < CHANNELS_LEAST) return false;
    lap_case trial = *c;
    if (!find_defaults(c, &trial.params)) return false;
    return fullness(&trial) >= FULL_ENOUGH;
}

static bool grid(const lap_case *c, lap_grid *out) {
    winograd g = winograd_of(c);
    if (g.tiles == 0 || g.tiles > INT32_MAX - 64 || g.groups > INT32_MAX) return false;
    *out = (lap_grid){.groups = {(uint32_t)g.groups, 1, 1},
                      .local = {g.threads, 1, 1},
                      .dynamic_local_bytes = lap_row_in_cuda(c) ? (size_t)g.local_bytes : 0};
    return true;
}

/* The partner's weights. */
static lap_depth_k_layout down_layout(const lap_case *c) {
    return (lap_depth_k_layout){LAP_FP32, 4, (size_t)c->params.value[BN]};
}

static size_t packed_bytes(const lap_case *c) {
    size_t width = (size_t)c->params.value[BN], bytes = lap_pack_winograd_g_bytes(c->op, width);
    lap_depth_k_layout down = down_layout(c);
    if (c->fusion == LAP_FUSE_DOWNSAMPLE) bytes += lap_pack_depth_k_bytes(c->partner, &down);
    return bytes;
}

static void pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    const int *v = c->params.value;
    lap_pack_winograd_g(c->op, (size_t)v[BK], (size_t)v[BN], weights->w, out);
}

/* The partner's follow. */
static void pack_down(const lap_case *c, const lap_op_weights *weights,
                      const lap_op_weights *partner, void *out) {
    size_t width = (size_t)c->params.value[BN];
    pack(c, weights, out);
    lap_depth_k_layout down = down_layout(c);
    lap_pack_depth_k(c->partner, &down, partner->w,
                     (float *)out + lap_pack_winograd_g_bytes(c->op, width) / sizeof(float));
}

#define COMMON(second)                                                                             \
    .kind = LAP_OP_CONV, .precisions = LAP_ROW_FP32,                                               \
    .tunables = {[BT] = {"BT", 2, {16, 32}},   [BN] = {"BN", 4, {16, 32, 64, 128}},                \
                 [BK] = {"BK", 3, {4, 8, 16}}, [TM] = {"TM", 3, {4, 8, 16}},                       \
                 [TN] = {"TN", 3, {4, 8, 16}}, [ASYNC] = {"ASYNC", 2, {0, 1}}},                    \
    .tunable_count = WINOGRAD_TUNABLES,                                                            \
    .stages = {LAP_ROW_STAGE_KERNEL("conv_winograd_g", grid, 7, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,     \
                                    LAP_ROLE_BIAS, second, LAP_ROLE_OUT, LAP_ROLE_N,               \
                                    LAP_ROLE_FLAGS)},                                              \
    .stage_count = 1, .accepts = accepts, .defaults = defaults, .valid = valid,                    \
    .packed_bytes = packed_bytes

const lap_kernel_row lap_row_conv_winograd_g = {
    .id = "conv_winograd_g",
    .about = "Winograd F(2x2) in one kernel, for work that fills the device",
    .pack = pack,
    COMMON(LAP_ROLE_RESIDUAL),
};

const lap_kernel_row lap_row_conv_winograd_down_g = {
    .id = "conv_winograd_down_g",
    .about = "conv_winograd_g, with the 1x1 convolution of the shortcut",
    .fusion = LAP_FUSE_DOWNSAMPLE,
    .pack_fused = pack_down,
    COMMON(LAP_ROLE_IN2),
};
