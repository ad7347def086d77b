/* Rows whose steps are run one after another by one launch (chain), for small batches: the first
 * convolution with its max-pool and the average pool with the classifier; 3x3 convolutions are in
 * rows_chain_conv.c. Parameters go into the step's words, not into defines, so that all steps share
 * one kernel.
 *
 * Geometry computed here mirrors kernels_cl/chain* and kernels_cu/chain*.
 */
#include "kernel/rows_chain.h"
#include "kernel/chain.h"
#include "kernel/pack_chain.h"
#include "kernel/pack_gpu.h"

#include <string.h>

#define LOCAL 163840 /* bytes that a group uses when it can have them */
#define LOCAL_STATIC 49152
#define MOST_BATCH 2 /* with 4, kernels of their own are faster by 5 % on an H200 */
/* Multiply-adds of a step for each multiprocessor. At 224x224 a step of ResNet-18 has 0.9 million
 * on an H200; at 1024x2048, with 37 million, kernels of their own are two to nine times as fast. */
#define MOST_WORK 3000000
#define LINE 128 /* bytes that local memory is counted in */

enum { KIND_STEM = LAP_CHAIN_CONV_KINDS, KIND_POOL_FC };

/* In OpenCL what every NVIDIA compiler gives: more has not been measured. */
int lap_chain_local(const lap_case *c) {
    uint64_t limit = lap_row_in_cuda(c) ? c->device->local_optin_bytes : c->device->local_bytes;
    uint64_t most = lap_row_in_cuda(c) ? LOCAL : LOCAL_STATIC;
    return (int)(limit < most ? limit / LINE * LINE : most);
}

bool lap_chain_suits(const lap_case *c) {
    const lap_device_info *device = c->device;
    if (!(c->features & LAP_FEATURE_MMA(c->precision)) || device->units == 0) return false;
    if (c->n > MOST_BATCH || c->n * lap_op_macs(c->op) / device->units > MOST_WORK) return false;
    return lap_row_group_fits(device, LAP_CHAIN_THREADS, LOCAL_STATIC);
}

/* A group for every multiprocessor: one always fits, and all of them are there at once. */
bool lap_chain_grid(const lap_case *c, lap_grid *grid) {
    *grid = (lap_grid){.groups = {c->device->units, 1, 1},
                       .local = {LAP_CHAIN_THREADS, 1, 1},
                       .dynamic_local_bytes = lap_row_in_cuda(c) ? (size_t)lap_chain_local(c) : 0};
    return c->n > 0 && c->device->units > 0;
}

/* ---- the first convolution with its max-pool ------------------------------------------------- */

#define STEM_ROWS 7 /* of the pool in a tile */
#define STEM_COLUMNS 8
#define STEM_CHANNELS 32

static bool stem_fits(const lap_case *c) {
    const lap_op *op = c->op, *pool = c->partner;
    if (op->in.cs != 4 || op->out.cs % STEM_CHANNELS || op->residual >= 0) return false;
    if (op->r != 7 || op->s != 7 || op->stride != 2 || op->pad != 3) return false;
    if (lap_tensor_stored(&op->in) > INT32_MAX / 4) return false;
    return pool->r == 3 && pool->s == 3 && pool->stride == 2 && pool->pad == 1;
}

static bool stem_accepts(const lap_case *c) {
    return lap_chain_suits(c) && stem_fits(c);
}

static void stem_words(const lap_case *c, int32_t *words) {
    const lap_op *op = c->op;
    const lap_tensor *out = &c->partner->out;
    int32_t columns = (out->w + STEM_COLUMNS - 1) / STEM_COLUMNS;
    int32_t down = (out->h + STEM_ROWS - 1) / STEM_ROWS;
    words[LAP_CHAIN_KIND] = KIND_STEM;
    words[LAP_CHAIN_ITEMS] = (int32_t)c->n * columns * down * (out->cs / STEM_CHANNELS);
    words[LAP_CHAIN_COLUMNS] = columns;
    words[LAP_CHAIN_PIXELS] = out->h * out->w;
    words[LAP_CHAIN_OUT_W] = out->w;
    words[LAP_CHAIN_OUT_C] = out->cs;
    words[LAP_CHAIN_IN_H] = op->in.h;
    words[LAP_CHAIN_IN_W] = op->in.w;
    words[LAP_CHAIN_CONV_H] = op->out.h;
    words[LAP_CHAIN_CONV_W] = op->out.w;
}

static size_t stem_packed_bytes(const lap_case *c) {
    return lap_pack_chain_stem_bytes(c->op, c->precision);
}

static void stem_pack(const lap_case *c, const lap_op_weights *weights,
                      const lap_op_weights *partner, void *out) {
    (void)partner; /* a pool has none */
    lap_pack_chain_stem(c->op, weights->w, c->precision, out);
}

const lap_kernel_row lap_row_chain_stem_pool = {
    .id = "chain_stem_pool",
    .about = "first convolution and max-pool on tensor cores, one launch for a chain of steps",
    .accepts = stem_accepts,
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_MAXPOOL,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
    .packed_bytes = stem_packed_bytes,
    .pack_fused = stem_pack,
    .chain = stem_words,
    LAP_CHAIN_STAGE,
};

/* ---- the average pool with the classifier --------------------------------------------------- */

#define FC_PIECES 128 /* of 16 bytes, in a pixel */

static bool pool_fc_fits(const lap_case *c) {
    uint64_t bytes = (uint64_t)c->op->in.cs * lap_element_bytes(c->precision);
    return bytes % 16 == 0 && bytes / 16 <= FC_PIECES && lap_row_pool_again(c->op);
}

static bool pool_fc_accepts(const lap_case *c) {
    return lap_chain_suits(c) && pool_fc_fits(c);
}

static void pool_fc_words(const lap_case *c, int32_t *words) {
    const lap_op *op = c->op;
    words[LAP_CHAIN_KIND] = KIND_POOL_FC;
    words[LAP_CHAIN_ITEMS] = (c->partner->out.cs + 7) / 8; /* a warp an output */
    words[LAP_CHAIN_PIXELS] = op->in.h * op->in.w;
    words[LAP_CHAIN_OUT_C] = c->partner->out.cs;
    words[LAP_CHAIN_IN_BYTES] = op->in.cs * (int32_t)lap_element_bytes(c->precision);
    words[LAP_CHAIN_IMAGES] = (int32_t)c->n;
}

static size_t pool_fc_packed_bytes(const lap_case *c) {
    return lap_pack_ks_cs_bytes(c->partner, c->precision);
}

static void pool_fc_pack(const lap_case *c, const lap_op_weights *weights,
                         const lap_op_weights *partner, void *out) {
    (void)weights; /* a pool */
    lap_pack_ks_cs(c->partner, c->precision, partner->w, out);
}

const lap_kernel_row lap_row_chain_pool_fc = {
    .id = "chain_pool_fc",
    .about = "average pool and classifier, a warp an output, one launch for a chain of steps",
    .accepts = pool_fc_accepts,
    .kind = LAP_OP_AVGPOOL,
    .fusion = LAP_FUSE_FC,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
    .packed_bytes = pool_fc_packed_bytes,
    .pack_fused = pool_fc_pack,
    .chain = pool_fc_words,
    LAP_CHAIN_STAGE,
};
