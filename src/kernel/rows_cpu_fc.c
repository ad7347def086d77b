/* Rows for CPUs: the fully connected layer, alone and with the average pool before it; an
 * excitation's two layers. OpenCL only.
 */
#include "kernel/rows.h"

#include <string.h>

static bool is_cpu(const lap_case *c) {
    return c->device->type == LAP_DEVICE_CPU;
}

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
    return (size_t)c->params.value[FC_V] * (size_t)c->params.value[FC_BLOCKS];
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

/* ---- average pool and fully connected: a matrix-vector product --------------------------------
 */

/* More images than this are work for a matrix product. */
#define MOST_IMAGES 8

/* The pool is vectorised over channels without a remainder; the means lie in private memory. */
static bool pooled_accepts(const lap_case *c) {
    return is_cpu(c) && c->n <= MOST_IMAGES && c->op->in.c % lap_row_vector_width(c->device) == 0 &&
           c->op->in.c <= 4096;
}

static void pooled_defaults(const lap_case *c, lap_params *params) {
    memset(params, 0, sizeof *params);
    params->value[FC_V] = lap_row_vector_width(c->device);
    /* One image: long streams of weights. More: each weight serves several. */
    params->value[FC_BLOCKS] = c->n >= 4 ? 2 : 4;
    params->value[FC_IMAGES] = c->n >= 4 ? 4 : 1;
}

static bool pooled_valid(const lap_case *c) {
    return fc_valid(c) && c->op->in.c % c->params.value[FC_V] == 0;
}

/* The same case as the fully connected layer sees it. */
static lap_case layer_of(const lap_case *c) {
    lap_case layer = *c;
    layer.op = c->partner;
    return layer;
}

static bool pooled_grid(const lap_case *c, lap_grid *grid) {
    lap_case layer = layer_of(c);
    return fc_grid(&layer, grid);
}

static size_t pooled_packed_bytes(const lap_case *c) {
    lap_case layer = layer_of(c);
    return fc_packed_bytes(&layer);
}

static void pooled_pack(const lap_case *c, const lap_op_weights *weights,
                        const lap_op_weights *partner, void *out) {
    (void)weights; /* the pool has none */
    lap_case layer = layer_of(c);
    fc_pack(&layer, partner, out);
}

const lap_kernel_row lap_row_avgpool_fc_v = {
    .id = "avgpool_fc_v",
    .about = "average pool and fully connected layer of few images, explicit vectors",
    .kind = LAP_OP_AVGPOOL,
    .fusion = LAP_FUSE_FC,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .tunables = {{"V", 3, {4, 8, 16}}, {"BLOCKS", 4, {1, 2, 4, 8}}, {"IMAGES", 4, {1, 2, 4, 8}}},
    .tunable_count = 3,
    .stages = {LAP_ROW_STAGE_KERNEL("avgpool_fc_v", pooled_grid, 5, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N)},
    .stage_count = 1,
    .accepts = pooled_accepts,
    .defaults = pooled_defaults,
    .valid = pooled_valid,
    .packed_bytes = pooled_packed_bytes,
    .pack_fused = pooled_pack,
};

/* ---- an excitation's two layers ---------------------------------------------------------------
 */

enum { EX_V, EX_BLOCKS, EX_SPLIT, EX_TUNABLES };

#define EX_MOST 4096 /* inputs, and outputs of the first layer: private memory */

/* One work-item has less to do than it takes to wake another core for a part of it. */
static void excite_defaults(const lap_case *c, lap_params *params) {
    memset(params, 0, sizeof *params);
    params->value[EX_V] = lap_row_vector_width(c->device);
    params->value[EX_BLOCKS] = 3;
    params->value[EX_SPLIT] = 1;
}

static bool excite_valid(const lap_case *c) {
    const int *p = c->params.value;
    return (p[EX_V] == 4 || p[EX_V] == 8 || p[EX_V] == 16) && p[EX_BLOCKS] >= 1 &&
           p[EX_BLOCKS] <= 8 && p[EX_SPLIT] >= 1 && p[EX_SPLIT] <= 16;
}

static bool excite_accepts(const lap_case *c) {
    return is_cpu(c) && c->op->in.c <= EX_MOST && c->op->out.c <= EX_MOST;
}

static bool excite_grid(const lap_case *c, lap_grid *grid) {
    return lap_row_grid_linear(c, (uint64_t)c->params.value[EX_SPLIT], 1, grid);
}

/* As the kernel's macros: a first layer's row and a second layer's, with their zeros. */
static size_t excite_row(const lap_case *c) {
    size_t v = (size_t)c->params.value[EX_V];
    return ((size_t)c->op->in.c + v - 1) / v * v;
}

static size_t excite_row2(const lap_case *c) {
    size_t block = (size_t)c->params.value[EX_V] * (size_t)c->params.value[EX_BLOCKS];
    return ((size_t)c->partner->out.cs + block - 1) / block * block;
}

static size_t excite_packed_bytes(const lap_case *c) {
    return ((size_t)c->op->out.cs * excite_row(c) + (size_t)c->op->out.c * excite_row2(c)) *
           sizeof(float);
}

static void excite_pack(const lap_case *c, const lap_op_weights *weights,
                        const lap_op_weights *partner, void *out) {
    size_t inputs = (size_t)c->op->in.c, middle = (size_t)c->op->out.c;
    size_t row = excite_row(c), row2 = excite_row2(c), outputs = (size_t)c->partner->out.c;
    float *to = out;
    for (size_t k = 0; k < (size_t)c->op->out.cs; k++)
        for (size_t i = 0; i < row; i++)
            *to++ = k < middle && i < inputs ? weights->w[k * inputs + i] : 0.0f;
    for (size_t k = 0; k < middle; k++)
        for (size_t i = 0; i < row2; i++)
            *to++ = i < outputs ? partner->w[i * middle + k] : 0.0f;
}

const lap_kernel_row lap_row_excite_v = {
    .id = "excite_v",
    .about = "both small layers of an image in one work-item, explicit vectors",
    .kind = LAP_OP_CONV,
    .fusion = LAP_FUSE_EXCITE,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .smooth = true,
    .tunables = {[EX_V] = {"V", 3, {4, 8, 16}},
                 [EX_BLOCKS] = {"BLOCKS", 4, {1, 2, 3, 6}},
                 [EX_SPLIT] = {"SPLIT", 3, {1, 2, 4}}},
    .tunable_count = EX_TUNABLES,
    .stages = {LAP_ROW_STAGE_KERNEL("excite_v", excite_grid, 6, LAP_ROLE_IN, LAP_ROLE_WEIGHTS,
                                    LAP_ROLE_BIAS, LAP_ROLE_OUT, LAP_ROLE_N, LAP_ROLE_FLAGS)},
    .stage_count = 1,
    .accepts = excite_accepts,
    .defaults = excite_defaults,
    .valid = excite_valid,
    .packed_bytes = excite_packed_bytes,
    .pack_fused = excite_pack,
};
