/* Lists a network's state dict. Describes tensors only; holds no values. */
#include "net/state.h"

#include <stdio.h>
#include <stdlib.h>

enum { PER_OP_MAX = 6 };

static void add(lap_state *state, const lap_op *op, const char *module, const char *leaf,
                lap_state_role role) {
    lap_state_tensor *t = &state->tensors[state->count++];
    snprintf(t->name, sizeof t->name, "%s.%s", module, leaf);
    t->role = role;
    t->op = op;
    uint64_t k = (uint64_t)op->out.c, c = (uint64_t)lap_op_depth(op);
    uint64_t r = (uint64_t)op->r, s = (uint64_t)op->s;
    if (role == LAP_STATE_WEIGHT) {
        t->rank = op->kind == LAP_OP_FC ? 2 : 4;
        t->shape[0] = k, t->shape[1] = c, t->shape[2] = r, t->shape[3] = s;
    } else if (role != LAP_STATE_BN_COUNTER) {
        t->rank = 1;
        t->shape[0] = k;
    }
    t->count = 1;
    for (int i = 0; i < t->rank; i++)
        t->count *= t->shape[i];
}

/* Whether the op reads what a gate has made smaller. */
static bool reads_scaled(const lap_net *net, const lap_op *op) {
    return op->input > 0 && net->ops[op->input - 1].kind == LAP_OP_SCALE;
}

static void add_op(lap_state *state, const lap_op *op, bool scaled) {
    add(state, op, op->name, "weight", LAP_STATE_WEIGHT);
    state->tensors[state->count - 1].scaled = scaled;
    if (!op->bn[0]) {
        add(state, op, op->name, "bias", LAP_STATE_BIAS);
        return;
    }
    add(state, op, op->bn, "weight", LAP_STATE_BN_SCALE);
    add(state, op, op->bn, "bias", LAP_STATE_BN_SHIFT);
    add(state, op, op->bn, "running_mean", LAP_STATE_BN_MEAN);
    add(state, op, op->bn, "running_var", LAP_STATE_BN_VARIANCE);
    add(state, op, op->bn, "num_batches_tracked", LAP_STATE_BN_COUNTER);
}

lap_status lap_state_new(const lap_net *net, lap_state *out, lap_error *err) {
    *out = (lap_state){0};
    out->tensors = calloc((size_t)net->op_count * PER_OP_MAX, sizeof *out->tensors);
    out->first = calloc((size_t)net->op_count, sizeof *out->first);
    if (!out->tensors || !out->first) {
        lap_state_free(out);
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for the list of weights", net->model);
    }
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        bool weights = lap_op_has_weights(op);
        out->first[i] = weights ? out->count : -1;
        if (weights) add_op(out, op, reads_scaled(net, op));
    }
    return LAP_OK;
}

void lap_state_free(lap_state *state) {
    free(state->tensors);
    free(state->first);
    *state = (lap_state){0};
}
