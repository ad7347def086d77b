/* See tiny.h. Aborts where a test cannot go on. */
#include "tiny.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *pointer) {
    if (!pointer) abort();
    return pointer;
}

static lap_tensor shape(int c, int h, int w) {
    return (lap_tensor){.c = c, .h = h, .w = w, .cs = (c + 3) / 4 * 4};
}

static int pooled(int size, const lap_op *op) {
    return (size + 2 * op->pad - op->r) / op->stride + 1;
}

/* Completes op: shapes from its input, window and channels. */
static void add(lap_net *net, lap_op op, const char *name, int channels) {
    op.output = net->op_count + 1;
    op.in = net->tensors[op.input];
    snprintf(op.name, sizeof op.name, "%s", name);
    if (op.kind == LAP_OP_AVGPOOL || op.kind == LAP_OP_FC) {
        op.r = op.in.h;
        op.s = op.in.w;
        op.stride = 1;
        op.pad = 0;
    }
    op.out = shape(channels, pooled(op.in.h, &op), pooled(op.in.w, &op));
    net->tensors[op.output] = op.out;
    net->ops[net->op_count++] = op;
    net->tensor_count = net->op_count + 1;
}

lap_net *tiny_net(void) {
    enum { OPS = TINY_OPS };
    lap_net *net = must(calloc(1, sizeof *net));
    net->model = TINY_MODEL;
    net->height = net->width = TINY_SIDE;
    net->ops = must(calloc(OPS, sizeof *net->ops));
    net->tensors = must(calloc(OPS + 1, sizeof *net->tensors));
    net->tensors[0] = shape(3, TINY_SIDE, TINY_SIDE);
    lap_op conv = {.kind = LAP_OP_CONV,
                   .residual = -1,
                   .act = LAP_ACT_RELU,
                   .r = 3,
                   .s = 3,
                   .stride = 2,
                   .pad = 1};
    add(net, conv, "conv1", 6);
    lap_op pool = conv;
    pool.kind = LAP_OP_MAXPOOL;
    pool.input = 1;
    pool.act = LAP_ACT_NONE;
    add(net, pool, "maxpool", 6);
    conv.input = 2;
    conv.stride = 1;
    add(net, conv, "conv2", 6);
    conv.input = 3;
    conv.residual = 2;
    add(net, conv, "conv3", 6);
    lap_op proj = {.kind = LAP_OP_CONV, .input = 4, .residual = -1, .r = 1, .s = 1, .stride = 1};
    add(net, proj, "proj", 8);
    add(net, (lap_op){.kind = LAP_OP_AVGPOOL, .input = 5, .residual = -1}, "avgpool", 8);
    add(net, (lap_op){.kind = LAP_OP_FC, .input = 6, .residual = -1}, "fc", TINY_CLASSES);
    net->classes = TINY_CLASSES;
    return net;
}

lap_weights *tiny_weights(const lap_net *net) {
    lap_weights *w = must(calloc(1, sizeof *w));
    w->ops = must(calloc((size_t)net->op_count, sizeof *w->ops));
    w->op_count = net->op_count;
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        if (op->kind != LAP_OP_CONV && op->kind != LAP_OP_FC) continue;
        lap_op_weights *to = &w->ops[i];
        to->k = (size_t)op->out.c;
        to->w_count = (size_t)lap_op_weight_count(op);
        to->w = must(malloc(to->w_count * sizeof *to->w));
        to->bias = must(malloc(to->k * sizeof *to->bias));
        for (size_t j = 0; j < to->w_count; j++)
            to->w[j] = (float)(lap_rng_uniform(7, (uint64_t)i, j) - 0.4);
        for (size_t j = 0; j < to->k; j++)
            to->bias[j] = (float)(lap_rng_uniform(8, (uint64_t)i, j) - 0.4);
    }
    return w;
}

void tiny_expected(const lap_net *net, const lap_weights *weights, size_t count,
                   lap_expected *out) {
    lap_input *input = NULL;
    const lap_tensor *in = &net->tensors[0];
    if (lap_input_open("synthetic:1", in->c, in->h, in->w, &input, NULL) != LAP_OK) abort();
    if (lap_expected_new(net, weights, input, count, false, NULL, NULL, NULL, out, NULL) != LAP_OK)
        abort();
    lap_input_free(input);
}
