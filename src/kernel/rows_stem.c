/* Rows for the network's first convolution on tensor cores (stem_mma), alone and with the max-pool
 * behind it.
 *
 * Geometry computed here mirrors the macros of kernels_cl/stem_mma.cl and kernels_cu/stem_mma.cu.
 */
#include "kernel/pack_mma.h"
#include "kernel/rows.h"

#include <string.h>

enum { WM, STAGES, STEM_TUNABLES };

#define ROWS 256 /* output pixels of a group */
#define BLOCK 64 /* output channels of a group */
#define RESULT_ROW 144

typedef struct stem {
    int tile_p, tile_q; /* stored pixels of a group */
    int tile_h, tile_w; /* pixels of the convolution */
    uint64_t tiles;     /* of an image, all blocks of channels */
    uint64_t local_bytes;
    uint32_t threads;
} stem;

static stem stem_of(const lap_case *c) {
    const int *v = c->params.value;
    const lap_op *op = c->op;
    stem g = {16, 16, 16, 16, 0, 0, (uint32_t)(ROWS / v[WM]) * 32};
    const lap_tensor *out = &op->out;
    if (c->partner) {
        out = &c->partner->out;
        g.tile_p = 7;
        g.tile_q = 8;
        g.tile_h = (g.tile_p - 1) * c->partner->stride + c->partner->r;
        g.tile_w = (g.tile_q - 1) * c->partner->stride + c->partner->r;
    }
    g.tiles = lap_row_ceil_div((uint64_t)out->h, (uint64_t)g.tile_p) *
              lap_row_ceil_div((uint64_t)out->w, (uint64_t)g.tile_q) *
              ((uint64_t)op->out.cs / BLOCK);
    uint64_t element = lap_element_bytes(c->precision);
    uint64_t patch = (uint64_t)((g.tile_h - 1) * op->stride + op->r) *
                     (uint64_t)((g.tile_w - 1) * op->stride + 8) * 4 * element;
    g.local_bytes = (patch + 127) / 128 * 128 + (uint64_t)v[STAGES] * BLOCK * 32 * element;
    if (g.local_bytes < ROWS * RESULT_ROW) g.local_bytes = ROWS * RESULT_ROW;
    return g;
}

static bool stem_valid(const lap_case *c) {
    const int *v = c->params.value;
    if ((v[WM] != 32 && v[WM] != 64) || v[STAGES] < 2 || v[STAGES] > 8) return false;
    stem g = stem_of(c);
    if (g.threads > lap_row_group_most(c->device)) return false;
    return g.local_bytes <= lap_row_local_limit(c);
}

static void stem_defaults(const lap_case *c, lap_params *params) {
    (void)c;
    *params = (lap_params){.value = {[WM] = 64, [STAGES] = 2}};
}

static bool stem_accepts(const lap_case *c) {
    const lap_op *op = c->op;
    if (!(c->features & LAP_FEATURE_MMA(c->precision))) return false;
    if (op->in.cs != 4 || op->out.cs % BLOCK || op->s > 8 || op->residual >= 0) return false;
    if (op->stride != 2 || lap_tensor_stored(&op->in) > INT32_MAX / 4) return false;
    const lap_op *pool = c->partner;
    if (pool && (pool->r != 3 || pool->s != 3 || pool->stride != 2 || pool->pad > 1)) return false;
    lap_case trial = *c;
    stem_defaults(c, &trial.params);
    return stem_valid(&trial);
}

static bool stem_grid(const lap_case *c, lap_grid *grid) {
    stem g = stem_of(c);
    if (c->n == 0 || g.tiles > INT32_MAX / c->n) return false;
    *grid = (lap_grid){.groups = {(uint32_t)(g.tiles * c->n), 1, 1},
                       .local = {g.threads, 1, 1},
                       .dynamic_local_bytes = lap_row_in_cuda(c) ? (size_t)g.local_bytes : 0};
    return true;
}

static size_t stem_packed_bytes(const lap_case *c) {
    return lap_pack_stem_bytes(c->op, c->precision);
}

static void stem_pack(const lap_case *c, const lap_op_weights *weights, void *out) {
    lap_pack_stem(c->op, weights->w, c->precision, out);
}

static void stem_pack_fused(const lap_case *c, const lap_op_weights *weights,
                            const lap_op_weights *partner, void *out) {
    (void)partner; /* a pool has none */
    lap_pack_stem(c->op, weights->w, c->precision, out);
}

#define STEM_COMMON                                                                                \
    .kind = LAP_OP_CONV, .precisions = LAP_ROW_MMA,                                                \
    .tunables = {[WM] = {"WM", 2, {32, 64}}, [STAGES] = {"STAGES", 4, {2, 3, 4, 7}}},              \
    .tunable_count = STEM_TUNABLES,                                                                \
    .stages = {LAP_ROW_STAGE_KERNEL("stem_mma", stem_grid, 6, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,       \
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N, LAP_ROLE_FLAGS)},     \
    .stage_count = 1, .accepts = stem_accepts, .defaults = stem_defaults, .valid = stem_valid,     \
    .packed_bytes = stem_packed_bytes, .pack = stem_pack

const lap_kernel_row lap_row_stem_mma_pool = {
    .id = "stem_mma_pool",
    .about = "first convolution and max-pool on tensor cores, nothing stored between",
    .fusion = LAP_FUSE_MAXPOOL,
    .pack_fused = stem_pack_fused,
    STEM_COMMON,
};

const lap_kernel_row lap_row_stem_mma = {
    .id = "stem_mma",
    .about = "first convolution on tensor cores, window rows read in place",
    STEM_COMMON,
};
