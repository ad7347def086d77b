/* THE list of kernel rows, and what is common to all of them: choosing, defines, parameter text.
 * Knows no row by name outside the list and no backend beyond the language of its kernels.
 */
#include "kernel/rows.h"

#include <stdio.h>
#include <string.h>

/* Within each op kind: fastest first, naive last. A row for one class of devices refuses the others
 * in accepts(), so only rows that compete for a device need an order between them. */
static const lap_kernel_row *const rows[] = {
    /* convolution */
    &lap_row_chain_stem_pool,
    &lap_row_chain_conv_down,
    &lap_row_chain_conv,
    &lap_row_stem_mma_pool,
    &lap_row_conv_wgmma_down,
    &lap_row_conv_mma_down,
    &lap_row_conv_mma_scale,
    &lap_row_conv_mma_smooth,
    &lap_row_stem_mma,
    &lap_row_conv_few_g,
    &lap_row_conv_wgmma_swap,
    &lap_row_conv_wgmma,
    &lap_row_conv_mma,
    &lap_row_conv_matrix_down,
    &lap_row_conv_matrix,
    &lap_row_stem_g,
    &lap_row_excite_g,
    &lap_row_excite_v,
    &lap_row_conv_dw_v,
    &lap_row_conv_winograd_g,
    &lap_row_conv_winograd_down_g,
    &lap_row_conv_igemm_ds,
    &lap_row_conv_igemm_scale,
    &lap_row_conv_igemm,
    &lap_row_conv_winograd4_v,
    &lap_row_conv_winograd4_down_v,
    &lap_row_conv_winograd_v,
    &lap_row_conv_winograd_down_v,
    &lap_row_conv_direct_v,
    &lap_row_conv_direct_down_v,
    &lap_row_conv_direct_scale_v,
    &lap_row_conv_direct_pool_v,
    &lap_row_conv_gemm,
    &lap_row_conv_naive,
    /* max-pool */
    &lap_row_maxpool_g,
    &lap_row_maxpool_v,
    &lap_row_maxpool_naive,
    /* average pool */
    &lap_row_chain_pool_fc,
    &lap_row_pool_fc_g,
    &lap_row_avgpool_g,
    &lap_row_avgpool_v,
    &lap_row_avgpool_fc_v,
    &lap_row_avgpool_naive,
    /* fully connected: the library's product wherever there is one */
    &lap_row_fc_gemm,
    &lap_row_fc_mma,
    &lap_row_fc_igemm,
    &lap_row_fc_g,
    &lap_row_fc_v,
    &lap_row_fc_naive,
    /* depthwise convolution */
    &lap_row_dwconv_pool_r,
    &lap_row_dwconv_r,
    &lap_row_dwconv_pool_g,
    &lap_row_dwconv_g,
    &lap_row_dwconv_pool_v,
    &lap_row_dwconv_v,
    &lap_row_dwconv_naive,
    /* channels times factors */
    &lap_row_scale_naive,
};

const lap_kernel_row *const *lap_kernel_rows(size_t *count) {
    *count = sizeof rows / sizeof rows[0];
    return rows;
}

const lap_kernel_row *lap_kernel_find(const char *id) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i]->id, id) == 0) return rows[i];
    return NULL;
}

bool lap_fusion_partner_writes(lap_fusion fusion) {
    return fusion == LAP_FUSE_MAXPOOL || fusion == LAP_FUSE_FC || lap_fusion_two_layers(fusion);
}

bool lap_fusion_two_layers(lap_fusion fusion) {
    return fusion == LAP_FUSE_EXCITE || fusion == LAP_FUSE_EXPAND;
}

bool lap_fusion_partner_first(lap_fusion fusion) {
    return fusion == LAP_FUSE_DOWNSAMPLE || fusion == LAP_FUSE_SCALE;
}

static bool is_smooth(const lap_op *op) {
    return op && op->act > LAP_ACT_RELU;
}

/* fp32x3 stores floats, so rows of fp32 do whatever has no row of its own: where a device has what
 * fp32x3 is made of, or every device would seem to have it. */
static bool serves(const lap_kernel_row *row, const lap_case *c) {
    if (row->precisions & 1u << c->precision) return true;
    return c->precision == LAP_FP32X3 && row->precisions & 1u << LAP_FP32 &&
           c->features & LAP_FEATURE_MMA(LAP_FP32X3);
}

bool lap_kernel_can_run(const lap_kernel_row *row, const lap_case *c, bool has_gemm) {
    if (row->kind != c->op->kind || row->fusion != c->fusion) return false;
    if (!serves(row, c)) return false;
    if (row->only && strcmp(row->only, c->device->language) != 0) return false;
    if (row->needs_gemm && !has_gemm) return false;
    if (!row->smooth && (is_smooth(c->op) || is_smooth(c->partner))) return false;
    return row->accepts(c);
}

const lap_kernel_row *lap_kernel_choose(lap_case *c, bool naive_only, bool has_gemm) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const lap_kernel_row *row = rows[i];
        if (row->variant || (naive_only && !row->naive)) continue;
        if (!lap_kernel_can_run(row, c, has_gemm)) continue;
        row->defaults(c, &c->params);
        return row;
    }
    return NULL;
}

static size_t add(lap_define *out, size_t at, const char *name, int64_t value) {
    snprintf(out[at].name, sizeof out[at].name, "%s", name);
    out[at].value = value;
    return at + 1;
}

static size_t add_partner(lap_define *out, size_t n, const lap_case *c) {
    const lap_op *p = c->partner;
    switch (c->fusion) {
    case LAP_FUSE_NONE:
    case LAP_FUSE_COUNT:
        break;
    case LAP_FUSE_POOL: /* of the whole output */
        n = add(out, n, "POOLED", 1);
        break;
    case LAP_FUSE_EXCITE:
        n = add(out, n, "K2", p->out.c);
        n = add(out, n, "KS2", p->out.cs);
        n = add(out, n, "ACT2", p->act);
        break;
    case LAP_FUSE_SCALE:
        n = add(out, n, "SCALED", 1);
        break;
    case LAP_FUSE_EXPAND:
        n = add(out, n, "P2", p->out.h);
        n = add(out, n, "Q2", p->out.w);
        n = add(out, n, "R2", p->r);
        n = add(out, n, "S2", p->s);
        n = add(out, n, "STRIDE2", p->stride);
        n = add(out, n, "PAD2", p->pad);
        n = add(out, n, "ACT2", p->act);
        break;
    case LAP_FUSE_MAXPOOL:
        n = add(out, n, "POOL_P", p->out.h);
        n = add(out, n, "POOL_Q", p->out.w);
        n = add(out, n, "POOL_R", p->r);
        n = add(out, n, "POOL_STRIDE", p->stride);
        n = add(out, n, "POOL_PAD", p->pad);
        break;
    case LAP_FUSE_DOWNSAMPLE:
        n = add(out, n, "C2", p->in.c);
        n = add(out, n, "CS2", p->in.cs);
        n = add(out, n, "H2", p->in.h);
        n = add(out, n, "W2", p->in.w);
        n = add(out, n, "STRIDE2", p->stride);
        break;
    case LAP_FUSE_FC:
        n = add(out, n, "K", p->out.c);
        n = add(out, n, "KS", p->out.cs);
        break;
    }
    return n;
}

size_t lap_kernel_defines(const lap_kernel_row *row, const lap_case *c, lap_define *out) {
    const lap_op *op = c->op;
    if (row->chain) {
        size_t count = add(out, 0, "LOCAL", row->chain_local(c));
        return add(out, count, "PRECISION", c->precision);
    }
    bool windowed =
        op->kind == LAP_OP_CONV || op->kind == LAP_OP_MAXPOOL || op->kind == LAP_OP_DWCONV;
    size_t n = add(out, 0, "C", op->in.c);
    n = add(out, n, "CS", op->in.cs);
    if (op->kind != LAP_OP_FC) {
        n = add(out, n, "H", op->in.h);
        n = add(out, n, "W", op->in.w);
    }
    if (lap_op_has_weights(op)) {
        n = add(out, n, "K", op->out.c);
        n = add(out, n, "KS", op->out.cs);
    }
    if (windowed) {
        n = add(out, n, "P", op->out.h);
        n = add(out, n, "Q", op->out.w);
        n = add(out, n, "R", op->r);
        n = add(out, n, "S", op->s);
        n = add(out, n, "STRIDE", op->stride);
        n = add(out, n, "PAD", op->pad);
    }
    n = add_partner(out, n, c);
    if (is_smooth(op)) n = add(out, n, "ACT", op->act);
    for (int i = 0; i < row->tunable_count; i++)
        n = add(out, n, row->tunables[i].name, c->params.value[i]);
    bool own = (row->precisions & 1u << c->precision) != 0;
    return add(out, n, "PRECISION", own ? c->precision : LAP_FP32);
}

void lap_kernel_params_text(const lap_kernel_row *row, const lap_params *params, char *buffer,
                            size_t size) {
    size_t used = 0;
    if (size) buffer[0] = '\0';
    for (int i = 0; i < row->tunable_count && used < size; i++) {
        int n = snprintf(buffer + used, size - used, "%s%s=%d", i ? " " : "", row->tunables[i].name,
                         params->value[i]);
        if (n < 0) return;
        used += (size_t)n;
    }
}

bool lap_row_accepts_all(const lap_case *c) {
    (void)c;
    return true;
}

bool lap_row_accepts_plain(const lap_case *c) {
    return c->precision != LAP_TF32 || (c->features & LAP_FEATURE_MMA(LAP_TF32)) != 0;
}

bool lap_row_valid_all(const lap_case *c) {
    (void)c;
    return true;
}

void lap_row_defaults_none(const lap_case *c, lap_params *params) {
    (void)c;
    memset(params, 0, sizeof *params);
}

uint64_t lap_row_ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

bool lap_row_grid_linear(const lap_case *c, uint64_t items, uint32_t local, lap_grid *grid) {
    /* Some CPU devices allow one work-item per group only. */
    uint64_t most = lap_row_group_most(c->device);
    if (local > most) local = (uint32_t)most;
    uint64_t groups = lap_row_ceil_div(items, local);
    if (groups == 0 || groups > INT32_MAX || c->n == 0) return false;
    /* CUDA's limit for the second dimension; kernels stride over the rest. */
    uint64_t images = c->n < 65535 ? c->n : 65535;
    *grid = (lap_grid){.groups = {(uint32_t)groups, (uint32_t)images, 1}, .local = {local, 1, 1}};
    return true;
}
