/* The shapes, and the ops that they describe. */
#include "shapes.h"

#include <stdio.h>

#define NONE LAP_ACT_NONE
#define RELU LAP_ACT_RELU
#define SILU LAP_ACT_SILU
#define SIGMOID LAP_ACT_SIGMOID
#define ALONE LAP_FUSE_NONE, 0, 0, 0

const shape shapes[] = {
    {LAP_OP_CONV, 2, 3, 13, 13, 10, 3, 3, 1, 1, RELU, true, ALONE},
    {LAP_OP_CONV, 1, 3, 45, 57, 64, 7, 7, 2, 3, RELU, false, ALONE},
    {LAP_OP_CONV, 3, 20, 7, 7, 100, 3, 3, 1, 1, RELU, true, ALONE},
    {LAP_OP_CONV, 1, 64, 14, 28, 64, 3, 3, 1, 1, NONE, true, ALONE},
    {LAP_OP_CONV, 2, 64, 13, 9, 64, 3, 3, 2, 1, RELU, false, ALONE},
    {LAP_OP_CONV, 2, 64, 14, 14, 100, 1, 1, 2, 0, NONE, false, ALONE},
    {LAP_OP_CONV, 1, 4, 9, 7, 64, 5, 5, 1, 0, RELU, true, ALONE},
    {LAP_OP_CONV, 1, 20, 11, 30, 64, 5, 5, 2, 3, NONE, true, ALONE},
    {LAP_OP_CONV, 3, 4, 1, 1, 10, 3, 3, 1, 1, NONE, false, ALONE},
    {LAP_OP_CONV, 1, 5, 8, 3, 20, 4, 2, 1, 0, RELU, false, ALONE},
    {LAP_OP_CONV, 1, 4, 6, 5, 12, 3, 3, 1, 3, RELU, false, ALONE},   /* more border than window */
    {LAP_OP_CONV, 2, 32, 15, 13, 48, 3, 3, 1, 1, RELU, true, ALONE}, /* odd sizes for tiles */
    {LAP_OP_CONV, 1, 16, 16, 11, 16, 3, 3, 1, 0, NONE, false, ALONE},
    {LAP_OP_MAXPOOL, 2, 64, 15, 56, 64, 3, 3, 2, 1, NONE, false, ALONE},
    {LAP_OP_MAXPOOL, 1, 3, 7, 7, 3, 2, 2, 2, 0, NONE, false, ALONE},
    {LAP_OP_MAXPOOL, 3, 20, 5, 9, 20, 3, 3, 1, 1, NONE, false, ALONE},
    {LAP_OP_AVGPOOL, 3, 512, 7, 7, 512, 7, 7, 1, 0, NONE, false, ALONE},
    {LAP_OP_AVGPOOL, 1, 10, 5, 3, 10, 5, 3, 1, 0, NONE, false, ALONE},
    {LAP_OP_FC, 1, 512, 1, 1, 1000, 1, 1, 1, 0, NONE, false, ALONE},
    {LAP_OP_FC, 7, 64, 1, 1, 10, 1, 1, 1, 0, NONE, false, ALONE},
    {LAP_OP_FC, 4, 20, 1, 1, 70, 1, 1, 1, 0, NONE, false, ALONE},
    /* pairs */
    {LAP_OP_CONV, 1, 3, 45, 57, 64, 7, 7, 2, 3, RELU, false, LAP_FUSE_MAXPOOL, 3, 2, 1},
    {LAP_OP_CONV, 2, 3, 64, 38, 64, 7, 7, 2, 3, RELU, false, LAP_FUSE_MAXPOOL, 3, 2, 1},
    {LAP_OP_CONV, 3, 3, 33, 32, 20, 7, 7, 2, 3, NONE, false, LAP_FUSE_MAXPOOL, 3, 2, 1},
    {LAP_OP_CONV, 1, 5, 12, 9, 10, 3, 3, 1, 1, RELU, false, LAP_FUSE_MAXPOOL, 2, 2, 0},
    {LAP_OP_CONV, 2, 4, 9, 11, 64, 5, 5, 1, 2, RELU, true, LAP_FUSE_MAXPOOL, 3, 1, 1},
    {LAP_OP_CONV, 2, 64, 7, 5, 64, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 32, 2, 0},
    {LAP_OP_CONV, 1, 128, 14, 28, 128, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 64, 2, 0},
    {LAP_OP_CONV, 3, 20, 7, 7, 100, 3, 3, 1, 1, NONE, true, LAP_FUSE_DOWNSAMPLE, 10, 2, 0},
    {LAP_OP_CONV, 1, 10, 9, 6, 20, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 6, 1, 0},
    {LAP_OP_AVGPOOL, 1, 512, 7, 7, 512, 7, 7, 1, 0, NONE, false, LAP_FUSE_FC, 1000, 0, 0},
    {LAP_OP_AVGPOOL, 3, 512, 4, 2, 512, 4, 2, 1, 0, NONE, false, LAP_FUSE_FC, 70, 0, 0},
    {LAP_OP_AVGPOOL, 8, 20, 2, 2, 20, 2, 2, 1, 0, NONE, false, LAP_FUSE_FC, 10, 0, 0},
    {LAP_OP_AVGPOOL, 2, 10, 5, 3, 10, 5, 3, 1, 0, NONE, false, LAP_FUSE_FC, 17, 0, 0},
    /* enough tiles for rows that refuse few */
    {LAP_OP_CONV, 2, 64, 15, 14, 96, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 36, 2, 0},
    /* depthwise, factors, smooth activations */
    {LAP_OP_DWCONV, 2, 48, 15, 14, 48, 3, 3, 1, 1, SILU, false, ALONE},
    {LAP_OP_DWCONV, 1, 20, 13, 17, 20, 5, 5, 2, 2, SILU, false, ALONE},
    {LAP_OP_DWCONV, 3, 10, 7, 7, 10, 5, 5, 1, 2, RELU, false, ALONE},
    {LAP_OP_DWCONV, 1, 64, 9, 28, 64, 3, 3, 2, 1, NONE, false, ALONE},
    {LAP_OP_SCALE, 2, 24, 7, 9, 24, 1, 1, 1, 0, NONE, true, ALONE},
    {LAP_OP_SCALE, 1, 10, 5, 3, 10, 1, 1, 1, 0, NONE, true, ALONE},
    {LAP_OP_CONV, 2, 24, 9, 11, 40, 1, 1, 1, 0, SILU, false, ALONE},
    {LAP_OP_CONV, 1, 3, 21, 25, 32, 3, 3, 2, 1, SILU, false, ALONE},
    {LAP_OP_CONV, 3, 48, 1, 1, 10, 1, 1, 1, 0, SIGMOID, false, ALONE},
    {LAP_OP_DWCONV, 2, 48, 15, 14, 48, 3, 3, 1, 1, SILU, false, LAP_FUSE_POOL, 0, 0, 0},
    {LAP_OP_DWCONV, 3, 20, 13, 17, 20, 5, 5, 2, 2, SILU, false, LAP_FUSE_POOL, 0, 0, 0},
    {LAP_OP_DWCONV, 1, 10, 7, 7, 10, 5, 5, 1, 2, NONE, false, LAP_FUSE_POOL, 0, 0, 0},
    {LAP_OP_CONV, 3, 48, 1, 1, 12, 1, 1, 1, 0, SILU, false, LAP_FUSE_EXCITE, 48, 0, 0},
    {LAP_OP_CONV, 1, 10, 1, 1, 6, 1, 1, 1, 0, SILU, false, LAP_FUSE_EXCITE, 10, 0, 0},
    {LAP_OP_CONV, 2, 48, 9, 7, 24, 1, 1, 1, 0, NONE, false, LAP_FUSE_SCALE, 0, 0, 0},
    {LAP_OP_CONV, 3, 144, 7, 7, 40, 1, 1, 1, 0, NONE, true, LAP_FUSE_SCALE, 0, 0, 0},
    {LAP_OP_CONV, 1, 20, 11, 5, 10, 1, 1, 1, 0, RELU, true, LAP_FUSE_SCALE, 0, 0, 0},
    /* vectors with a remainder, rows of whole tiles */
    {LAP_OP_CONV, 1, 12, 3, 56, 46, 1, 1, 1, 0, SILU, false, ALONE},
    {LAP_OP_CONV, 2, 20, 4, 28, 24, 1, 1, 1, 0, NONE, true, LAP_FUSE_SCALE, 0, 0, 0},
    {LAP_OP_CONV, 1, 8, 5, 9, 27, 1, 1, 1, 0, SIGMOID, false, ALONE},
    /* expansions; the depthwise window's size, step, border */
    {LAP_OP_CONV, 2, 12, 9, 13, 48, 1, 1, 1, 0, SILU, false, LAP_FUSE_EXPAND, 3, 1, 1},
    {LAP_OP_CONV, 1, 10, 14, 11, 60, 1, 1, 1, 0, RELU, false, LAP_FUSE_EXPAND, 5, 2, 2},
    {LAP_OP_CONV, 3, 16, 7, 7, 64, 1, 1, 1, 0, SILU, false, LAP_FUSE_EXPAND, 5, 1, 2},
    {LAP_OP_CONV, 2, 5, 3, 6, 10, 1, 1, 1, 0, NONE, false, LAP_FUSE_EXPAND, 3, 2, 0},
    {LAP_OP_CONV, 1, 8, 1, 1, 16, 1, 1, 1, 0, SILU, false, LAP_FUSE_EXPAND, 3, 3, 3},
    /* images enough for a matrix product */
    {LAP_OP_FC, 33, 36, 1, 1, 70, 1, 1, 1, 0, NONE, false, ALONE},
    /* enough for the depthwise rows that refuse little */
    {LAP_OP_DWCONV, 12, 20, 13, 17, 20, 5, 5, 2, 2, SILU, false, ALONE},
    {LAP_OP_DWCONV, 11, 30, 12, 11, 30, 5, 5, 1, 2, RELU, false, ALONE},
    {LAP_OP_DWCONV, 3, 36, 9, 28, 36, 3, 3, 2, 1, SIGMOID, false, ALONE},
    {LAP_OP_DWCONV, 12, 20, 13, 17, 20, 5, 5, 2, 2, SILU, false, LAP_FUSE_POOL, 0, 0, 0},
    {LAP_OP_DWCONV, 6, 30, 19, 11, 30, 5, 5, 1, 2, NONE, false, LAP_FUSE_POOL, 0, 0, 0},
};
const int shape_count = sizeof shapes / sizeof shapes[0];

const int small_shapes[] = {0,  5,  12, 15, 17, 19, 23, 24, 26, 29, 31, 33, 36, 37,
                            40, 42, 43, 44, 46, 48, 50, 60, 61, 62, 63, 64, 65};
const int small_shape_count = sizeof small_shapes / sizeof small_shapes[0];

int shape_for(lap_op_kind kind, lap_fusion fusion) {
    static const int single[LAP_OP_KIND_COUNT] = {11, 13, 16, 20, 35, 39};
    switch (fusion) {
    case LAP_FUSE_NONE:
        break;
    case LAP_FUSE_MAXPOOL:
        return 22;
    case LAP_FUSE_DOWNSAMPLE:
        return 34;
    case LAP_FUSE_FC:
        return 31;
    case LAP_FUSE_POOL:
        return 44;
    case LAP_FUSE_EXCITE:
        return 47;
    case LAP_FUSE_SCALE:
        return 50;
    case LAP_FUSE_EXPAND:
        return 55;
    case LAP_FUSE_COUNT:
        break;
    }
    return single[kind];
}

lap_op shape_op(const shape *s) {
    lap_op op = {.kind = s->kind, .act = s->act, .residual = s->residual ? 2 : -1};
    snprintf(op.name, sizeof op.name, "shape");
    op.in = (lap_tensor){s->c, s->h, s->w, (s->c + 3) / 4 * 4};
    op.out = (lap_tensor){s->k, 1, 1, (s->k + 3) / 4 * 4};
    if (s->kind != LAP_OP_AVGPOOL && s->kind != LAP_OP_FC) {
        op.out.h = (s->h + 2 * s->pad - s->r) / s->stride + 1;
        op.out.w = (s->w + 2 * s->pad - s->s) / s->stride + 1;
    }
    op.r = s->r;
    op.s = s->s;
    op.stride = s->stride;
    op.pad = s->pad;
    return op;
}

lap_op shape_partner(const shape *s, const lap_op *op) {
    lap_op p = {.residual = -1, .r = 1, .s = 1, .stride = s->stride2, .pad = s->pad2};
    snprintf(p.name, sizeof p.name, "partner");
    int stored = (s->size2 + 3) / 4 * 4;
    switch (s->fusion) {
    case LAP_FUSE_NONE:
        break;
    case LAP_FUSE_MAXPOOL:
        p.kind = LAP_OP_MAXPOOL;
        p.in = p.out = op->out;
        p.r = p.s = s->size2;
        p.out.h = (op->out.h + 2 * s->pad2 - p.r) / p.stride + 1;
        p.out.w = (op->out.w + 2 * s->pad2 - p.s) / p.stride + 1;
        break;
    case LAP_FUSE_DOWNSAMPLE: /* the largest input that gives this output */
        p.kind = LAP_OP_CONV;
        p.out = op->out;
        p.in = (lap_tensor){s->size2, op->out.h * s->stride2, op->out.w * s->stride2, stored};
        break;
    case LAP_FUSE_FC:
        p.kind = LAP_OP_FC;
        p.stride = 1;
        p.in = op->out;
        p.out = (lap_tensor){s->size2, 1, 1, stored};
        break;
    case LAP_FUSE_POOL:
        p.kind = LAP_OP_AVGPOOL;
        p.stride = 1;
        p.in = op->out;
        p.out = (lap_tensor){op->out.c, 1, 1, op->out.cs};
        p.r = op->out.h;
        p.s = op->out.w;
        break;
    case LAP_FUSE_EXCITE:
        p.kind = LAP_OP_CONV;
        p.act = LAP_ACT_SIGMOID;
        p.stride = 1;
        p.in = op->out;
        p.out = (lap_tensor){s->size2, 1, 1, stored};
        break;
    case LAP_FUSE_EXPAND:
        p.kind = LAP_OP_DWCONV;
        p.act = s->act;
        p.in = p.out = op->out;
        p.r = p.s = s->size2;
        p.out.h = (op->out.h + 2 * p.pad - p.r) / p.stride + 1;
        p.out.w = (op->out.w + 2 * p.pad - p.s) / p.stride + 1;
        break;
    case LAP_FUSE_SCALE:
        p.kind = LAP_OP_SCALE;
        p.residual = 3;
        p.stride = 1;
        p.in = p.out = op->in;
        break;
    case LAP_FUSE_COUNT:
        break;
    }
    return p;
}
