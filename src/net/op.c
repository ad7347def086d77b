/* Names and counts of ops and networks. Pure arithmetic in 64 bits: no allocation, no device. */
#include "net/op.h"

#include <string.h>

static const char *const precision_names[LAP_PRECISION_COUNT] = {
    [LAP_FP32] = "fp32", [LAP_FP32X3] = "fp32x3", [LAP_TF32] = "tf32",
    [LAP_FP16] = "fp16", [LAP_BF16] = "bf16",
};

static const char *const kind_names[LAP_OP_KIND_COUNT] = {
    [LAP_OP_CONV] = "conv", [LAP_OP_MAXPOOL] = "maxpool", [LAP_OP_AVGPOOL] = "avgpool",
    [LAP_OP_FC] = "fc",     [LAP_OP_DWCONV] = "dwconv",   [LAP_OP_SCALE] = "scale",
};

static const char *const act_names[LAP_ACT_COUNT] = {
    [LAP_ACT_NONE] = "none",
    [LAP_ACT_RELU] = "relu",
    [LAP_ACT_SILU] = "silu",
    [LAP_ACT_SIGMOID] = "sigmoid",
};

const char *lap_activation_name(lap_activation act) {
    return (unsigned)act < LAP_ACT_COUNT ? act_names[act] : "unknown";
}

const char *lap_precision_name(lap_precision precision) {
    return (unsigned)precision < LAP_PRECISION_COUNT ? precision_names[precision] : "unknown";
}

bool lap_precision_parse(const char *name, lap_precision *out) {
    for (int i = 0; i < LAP_PRECISION_COUNT; i++) {
        if (strcmp(name, precision_names[i]) == 0) {
            *out = (lap_precision)i;
            return true;
        }
    }
    return false;
}

const char *lap_op_kind_name(lap_op_kind kind) {
    return (unsigned)kind < LAP_OP_KIND_COUNT ? kind_names[kind] : "unknown";
}

static uint64_t product(int a, int b, int c) {
    return (uint64_t)a * (uint64_t)b * (uint64_t)c;
}

uint64_t lap_tensor_stored(const lap_tensor *tensor) {
    return product(tensor->h, tensor->w, tensor->cs);
}

uint64_t lap_tensor_logical(const lap_tensor *tensor) {
    return product(tensor->h, tensor->w, tensor->c);
}

bool lap_op_has_weights(const lap_op *op) {
    return op->kind == LAP_OP_CONV || op->kind == LAP_OP_FC || op->kind == LAP_OP_DWCONV;
}

int lap_op_depth(const lap_op *op) {
    return op->kind == LAP_OP_DWCONV ? 1 : op->in.c;
}

uint64_t lap_op_weight_count(const lap_op *op) {
    if (!lap_op_has_weights(op)) return 0;
    return (uint64_t)op->out.c * product(lap_op_depth(op), op->r, op->s);
}

uint64_t lap_op_macs(const lap_op *op) {
    return lap_op_weight_count(op) * product(op->out.h, op->out.w, 1);
}

uint64_t lap_op_flops(const lap_op *op) {
    return 2 * lap_op_macs(op);
}

uint64_t lap_op_fvcore(const lap_op *op) {
    uint64_t flops = lap_op_macs(op);
    if (op->bn[0]) flops += 2 * lap_tensor_logical(&op->out);
    if (op->kind == LAP_OP_AVGPOOL) flops += lap_tensor_logical(&op->in);
    return flops;
}

/* One direction of a window: how many of `size` inputs some output reads, and in *taps how many of
 * the window's places meet an input at all: small images leave the outer ones in the border. */
static uint64_t met_by_window(int size, int outputs, int window, int stride, int pad,
                              uint64_t *taps) {
    uint64_t inputs = 0;
    *taps = 0;
    for (int i = 0; i < size; i++) {
        int last = (i + pad) / stride; /* the last output that begins no later */
        if (last >= outputs) last = outputs - 1;
        inputs += i + pad - last * stride < window;
    }
    for (int t = 0; t < window; t++) {
        bool met = false;
        for (int o = 0; o < outputs && !met; o++)
            met = o * stride - pad + t >= 0 && o * stride - pad + t < size;
        *taps += met;
    }
    return inputs;
}

static bool has_window(const lap_op *op) {
    return op->kind == LAP_OP_CONV || op->kind == LAP_OP_DWCONV || op->kind == LAP_OP_MAXPOOL ||
           op->kind == LAP_OP_AVGPOOL;
}

/* Elements of an image and weights that some output needs. */
static void needs(const lap_op *op, uint64_t *image, uint64_t *weights) {
    *image = lap_tensor_logical(&op->in);
    *weights = lap_op_weight_count(op);
    if (!has_window(op)) return;
    uint64_t rows, columns, r, s;
    rows = met_by_window(op->in.h, op->out.h, op->r, op->stride, op->pad, &r);
    columns = met_by_window(op->in.w, op->out.w, op->s, op->stride, op->pad, &s);
    *image = (uint64_t)op->in.c * rows * columns;
    if (lap_op_has_weights(op)) *weights = (uint64_t)op->out.c * (uint64_t)lap_op_depth(op) * r * s;
}

uint64_t lap_op_reads(const lap_op *op) {
    uint64_t image, weights;
    needs(op, &image, &weights);
    return image;
}

uint64_t lap_op_bytes(const lap_op *op, uint64_t n, unsigned elem_bytes) {
    uint64_t image, weights;
    needs(op, &image, &weights);
    image += lap_tensor_logical(&op->out);
    if (op->residual >= 0)
        image += op->kind == LAP_OP_SCALE ? (uint64_t)op->out.c : lap_tensor_logical(&op->out);
    uint64_t bytes = (n * image + weights) * elem_bytes;
    if (lap_op_has_weights(op)) bytes += (uint64_t)op->out.c * 4;
    return bytes;
}

static uint64_t sum_over(const lap_net *net, uint64_t (*count)(const lap_op *)) {
    uint64_t sum = 0;
    for (int i = 0; i < net->op_count; i++)
        sum += count(&net->ops[i]);
    return sum;
}

uint64_t lap_net_macs(const lap_net *net) {
    return sum_over(net, lap_op_macs);
}

uint64_t lap_net_flops(const lap_net *net) {
    return sum_over(net, lap_op_flops);
}

uint64_t lap_net_fvcore(const lap_net *net) {
    return sum_over(net, lap_op_fvcore);
}

/* A batch norm has two learnable vectors (scale, shift); an op without one has its own bias. */
static uint64_t op_parameters(const lap_op *op) {
    if (!lap_op_has_weights(op)) return 0;
    return lap_op_weight_count(op) + (uint64_t)op->out.c * (op->bn[0] ? 2 : 1);
}

uint64_t lap_net_parameters(const lap_net *net) {
    return sum_over(net, op_parameters);
}
