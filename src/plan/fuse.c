/* Which ops could be computed together: pairs whose tensor in between nobody else reads. */
#include "plan/internal.h"

/* The only op that reads the tensor, as input or residual; NULL if there are several or none. */
static const lap_op *only_reader(const lap_net *net, int tensor) {
    const lap_op *reader = NULL;
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        if (op->input != tensor && op->residual != tensor) continue;
        if (reader) return NULL;
        reader = op;
    }
    return reader;
}

static const lap_op *writer(const lap_net *net, int tensor) {
    for (int i = 0; i < net->op_count; i++)
        if (net->ops[i].output == tensor) return &net->ops[i];
    return NULL;
}

/* A 1x1 convolution that only makes this op's residual. */
static const lap_op *downsample_of(const lap_net *net, const lap_op *op) {
    if (op->kind != LAP_OP_CONV || op->residual < 0) return NULL;
    const lap_op *made = writer(net, op->residual);
    if (!made || made->kind != LAP_OP_CONV || made->residual >= 0 || made->act != LAP_ACT_NONE)
        return NULL;
    if (made->r != 1 || made->s != 1 || made->pad != 0) return NULL;
    return only_reader(net, op->residual) == op ? made : NULL;
}

static bool is_pointwise(const lap_op *op) {
    return op->kind == LAP_OP_CONV && op->r == 1 && op->s == 1 && op->stride == 1 && op->pad == 0;
}

const lap_op *plan_means(const lap_net *net, const lap_op *op) {
    if (op->kind != LAP_OP_DWCONV) return NULL;
    for (int i = 0; i < net->op_count; i++)
        if (net->ops[i].kind == LAP_OP_AVGPOOL && net->ops[i].input == op->output)
            return &net->ops[i];
    return NULL;
}

static const lap_op *scale_of(const lap_net *net, const lap_op *op) {
    const lap_op *made = writer(net, op->input);
    if (!is_pointwise(op) || !made || made->kind != LAP_OP_SCALE) return NULL;
    return only_reader(net, op->input) == op ? made : NULL;
}

static bool is_excitation(const lap_op *op, const lap_op *next) {
    return is_pointwise(op) && is_pointwise(next) && op->in.h * op->in.w == 1 && op->residual < 0 &&
           next->residual < 0;
}

const lap_op *plan_partner(const lap_net *net, int index, lap_fusion *fusion) {
    const lap_op *op = &net->ops[index];
    const lap_op *partner = scale_of(net, op);
    *fusion = LAP_FUSE_SCALE;
    if (partner) return partner;
    *fusion = LAP_FUSE_DOWNSAMPLE;
    if ((partner = downsample_of(net, op))) return partner;
    *fusion = LAP_FUSE_POOL;
    if ((partner = plan_means(net, op))) return partner;
    const lap_op *next = only_reader(net, op->output);
    if (next && next->input == op->output) {
        *fusion = LAP_FUSE_MAXPOOL;
        if (op->kind == LAP_OP_CONV && next->kind == LAP_OP_MAXPOOL) return next;
        *fusion = LAP_FUSE_FC;
        if (op->kind == LAP_OP_AVGPOOL && next->kind == LAP_OP_FC) return next;
        *fusion = LAP_FUSE_EXCITE;
        if (is_excitation(op, next)) return next;
        *fusion = LAP_FUSE_EXPAND;
        if (is_pointwise(op) && op->residual < 0 && plan_means(net, next)) return next;
    }
    *fusion = LAP_FUSE_NONE;
    return NULL;
}
