/* Rows that leave the work to the device's matrix product library (CLBlast on OpenCL). The product
 * is written straight into the output tensor and finished there, so scratch is the unfolded input
 * only.
 */
#include "kernel/rows.h"

#define LOCAL 64

static uint64_t unfolded_row(const lap_op *op) {
    return (uint64_t)op->r * (uint64_t)op->s * (uint64_t)op->in.c;
}

static uint64_t conv_scratch_bytes(const lap_case *c) {
    const lap_op *op = c->op;
    uint64_t pixels = (uint64_t)op->out.h * (uint64_t)op->out.w;
    return c->n * pixels * unfolded_row(op) * sizeof(float);
}

static bool conv_accepts(const lap_case *c) {
    uint64_t bytes = conv_scratch_bytes(c), most = c->device->memory_bytes / 4;
    if (c->device->max_alloc_bytes && bytes > c->device->max_alloc_bytes) return false;
    return c->device->memory_bytes == 0 || bytes <= most;
}

static bool im2col_grid(const lap_case *c, lap_grid *grid) {
    const lap_op *op = c->op;
    uint64_t pixels = (uint64_t)op->out.h * (uint64_t)op->out.w;
    uint64_t items = pixels * unfolded_row(op);
    return items <= INT32_MAX && lap_row_grid_linear(c, items, LOCAL, grid);
}

static bool epilogue_grid(const lap_case *c, lap_grid *grid) {
    return lap_row_grid_linear(c, lap_tensor_stored(&c->op->out), LOCAL, grid);
}

static void conv_gemm(const lap_case *c, lap_gemm *gemm) {
    const lap_op *op = c->op;
    gemm->m = (size_t)(c->n * (uint64_t)op->out.h * (uint64_t)op->out.w);
    gemm->n = (size_t)op->out.c;
    gemm->k = (size_t)unfolded_row(op);
    gemm->lda = gemm->k;
    gemm->ldb = gemm->n;
    gemm->ldc = (size_t)op->out.cs;
    gemm->b_transposed = false;
    gemm->beta = 0.0f;
}

static void fc_gemm(const lap_case *c, lap_gemm *gemm) {
    const lap_op *op = c->op;
    gemm->m = (size_t)c->n;
    gemm->n = (size_t)op->out.c;
    gemm->k = (size_t)op->in.c;
    gemm->lda = (size_t)op->in.cs;
    gemm->ldb = gemm->n;
    gemm->ldc = (size_t)op->out.cs;
    gemm->b_transposed = false;
    gemm->beta = 0.0f;
}

#define EPILOGUE                                                                                   \
    LAP_ROW_STAGE_KERNEL("gemm_epilogue", epilogue_grid, 5, LAP_ROLE_BIAS, LAP_ROLE_RESIDUAL,      \
                         LAP_ROLE_OUT, LAP_ROLE_N, LAP_ROLE_FLAGS)

const lap_kernel_row lap_row_conv_gemm = {
    .id = "conv_im2col_gemm",
    .about = "unfolded input times weights through the GEMM library",
    .kind = LAP_OP_CONV,
    .precisions = LAP_ROW_FP32,
    .variant = true,
    .only = "cl",
    .needs_gemm = true,
    .stages = {LAP_ROW_STAGE_KERNEL("im2col", im2col_grid, 3, LAP_ROLE_IN, LAP_ROLE_SCRATCH,
                                    LAP_ROLE_N),
               {.kind = LAP_STAGE_GEMM,
                .roles = {LAP_ROLE_SCRATCH, LAP_ROLE_WEIGHTS, LAP_ROLE_OUT},
                .role_count = 3,
                .gemm = conv_gemm},
               EPILOGUE},
    .stage_count = 3,
    .accepts = conv_accepts,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
    .packed_bytes = lap_pack_krsc_bytes,
    .pack = lap_pack_rsck,
    .scratch_bytes = conv_scratch_bytes,
};

const lap_kernel_row lap_row_fc_gemm = {
    .id = "fc_gemm",
    .about = "product through the GEMM library",
    .kind = LAP_OP_FC,
    .precisions = LAP_ROW_FP32,
    .only = "cl",
    .needs_gemm = true,
    .stages = {{.kind = LAP_STAGE_GEMM,
                .roles = {LAP_ROLE_IN, LAP_ROLE_WEIGHTS, LAP_ROLE_OUT},
                .role_count = 3,
                .gemm = fc_gemm},
               EPILOGUE},
    .stage_count = 2,
    .accepts = lap_row_accepts_all,
    .defaults = lap_row_defaults_none,
    .valid = lap_row_valid_all,
    .packed_bytes = lap_pack_krsc_bytes,
    .pack = lap_pack_rsck,
};
