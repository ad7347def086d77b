/* Loads a network's weights and folds batch norm into them. Folding happens here and nowhere else.
 */
#include "base/text.h"
#include "net/safetensors.h"
#include "net/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char synthetic_prefix[] = "synthetic:";

/* ---- folding -------------------------------------------------------------------------------- */

/* Reading state: where values come from, and room for the vectors of one batch norm. */
typedef struct reader {
    const lap_state *state;
    lap_state_fetch fetch;
    void *context;
} reader;

static lap_status fold_row(const lap_state_tensor *first, float *w, size_t row, double scale,
                           lap_error *err) {
    for (size_t i = 0; i < row; i++) {
        w[i] = (float)(w[i] * scale);
        if (!isfinite(w[i]))
            return LAP_FAIL(err, LAP_E_FORMAT,
                            "%s: not finite once batch norm %s is folded into it (scale %.6g)",
                            first->name, first->op->bn, scale);
    }
    return LAP_OK;
}

/* The state tensors of one batch norm follow their weight: scale, shift, mean, variance. */
static lap_status fold(const reader *from, int first, lap_op_weights *to, float *vectors,
                       lap_error *err) {
    const lap_state_tensor *t = &from->state->tensors[first];
    size_t k = to->k, row = to->w_count / k;
    for (int i = 0; i < 4; i++)
        LAP_TRY(from->fetch(from->context, first + 1 + i, vectors + (size_t)i * k, err));
    const float *gamma = vectors, *beta = gamma + k, *mean = beta + k, *variance = mean + k;
    for (size_t i = 0; i < k; i++) {
        if (!(variance[i] >= 0.0f))
            return LAP_FAIL(err, LAP_E_FORMAT, "%s[%zu] is %g: expected a variance of 0 or more",
                            t[4].name, i, (double)variance[i]);
        double scale = gamma[i] / sqrt((double)variance[i] + LAP_BN_EPSILON);
        LAP_TRY(fold_row(t, to->w + i * row, row, scale, err));
        to->bias[i] = (float)(beta[i] - mean[i] * scale);
        if (!isfinite(to->bias[i]))
            return LAP_FAIL(err, LAP_E_FORMAT, "%s: the folded bias of channel %zu is not finite",
                            t->op->bn, i);
    }
    return LAP_OK;
}

static lap_status load_op(const reader *from, int op_index, lap_op_weights *to, lap_error *err) {
    int first = from->state->first[op_index];
    if (first < 0) return LAP_OK;
    const lap_state_tensor *t = &from->state->tensors[first];
    to->k = (size_t)t->op->out.c;
    to->w_count = (size_t)t->count;
    to->w = malloc(to->w_count * sizeof *to->w);
    to->bias = malloc(to->k * sizeof *to->bias);
    if (!to->w || !to->bias)
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for %zu weights", t->name, to->w_count);
    LAP_TRY(from->fetch(from->context, first, to->w, err));
    if (!t->op->bn[0]) return from->fetch(from->context, first + 1, to->bias, err);
    float *vectors = malloc(to->k * 4 * sizeof *vectors);
    if (!vectors) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", t->op->bn);
    lap_status status = fold(from, first, to, vectors, err);
    free(vectors);
    return status;
}

/* ---- the set -------------------------------------------------------------------------------- */

static uint64_t hash_floats(uint64_t hash, const float *data, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &data[i], sizeof bits);
        for (int byte = 0; byte < 4; byte++)
            hash = (hash ^ ((bits >> 8 * byte) & 0xFFu)) * 0x100000001B3u;
    }
    return hash;
}

/* Per op its weights, then its bias, each float as four bytes, least significant first. */
static void hash_set(lap_weights *weights) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (int i = 0; i < weights->op_count; i++) {
        const lap_op_weights *op = &weights->ops[i];
        hash = hash_floats(hash, op->w, op->w_count);
        hash = hash_floats(hash, op->bias, op->k);
    }
    snprintf(weights->hash, sizeof weights->hash, "%016llx", (unsigned long long)hash);
}

static lap_status load_all(const lap_net *net, const char *spec, const reader *from,
                           lap_weights **out, lap_error *err) {
    lap_weights *weights = calloc(1, sizeof *weights);
    if (weights) weights->ops = calloc((size_t)net->op_count, sizeof *weights->ops);
    if (!weights || !weights->ops) {
        free(weights);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the weights of %s", net->model);
    }
    weights->op_count = net->op_count;
    snprintf(weights->source, sizeof weights->source, "%s", spec);
    for (int i = 0; i < net->op_count; i++) {
        lap_status status = load_op(from, i, &weights->ops[i], err);
        if (status != LAP_OK) {
            lap_weights_free(weights);
            return status;
        }
    }
    hash_set(weights);
    *out = weights;
    return LAP_OK;
}

/* ---- sources -------------------------------------------------------------------------------- */

typedef struct synthetic {
    const lap_state *state;
    uint64_t seed;
} synthetic;

static lap_status fetch_synthetic(void *context, int index, float *out, lap_error *err) {
    (void)err;
    const synthetic *from = context;
    lap_synthetic_fill(from->seed, &from->state->tensors[index], out);
    return LAP_OK;
}

static lap_status load_file(const lap_net *net, const char *path, const lap_state *state,
                            lap_weights **out, lap_error *err) {
    lap_safetensors *file;
    LAP_TRY(lap_safetensors_open(path, state, &file, err));
    reader from = {state, lap_safetensors_fetch, file};
    lap_status status = load_all(net, path, &from, out, err);
    lap_safetensors_close(file);
    return status;
}

lap_status lap_weights_load(const lap_net *net, const char *spec, lap_weights **out,
                            lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_weights_load: out is NULL");
    *out = NULL;
    if (!net || !spec) return LAP_FAIL(err, LAP_E_ARG, "lap_weights_load: net or spec is NULL");
    size_t prefix = sizeof synthetic_prefix - 1;
    bool is_synthetic = strncmp(spec, synthetic_prefix, prefix) == 0;
    uint64_t seed = 0;
    if (spec[0] == '\0' || (is_synthetic && !lap_parse_u64(spec + prefix, &seed)))
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "weights \"%s\": expected synthetic:SEED (SEED 0 to 2^64-1) or the path of "
                        "a .safetensors file",
                        spec);
    lap_state state;
    LAP_TRY(lap_state_new(net, &state, err));
    lap_status status;
    if (is_synthetic) {
        synthetic source = {&state, seed};
        reader from = {&state, fetch_synthetic, &source};
        status = load_all(net, spec, &from, out, err);
    } else {
        status = load_file(net, spec, &state, out, err);
    }
    lap_state_free(&state);
    return status;
}

void lap_weights_free(lap_weights *weights) {
    if (!weights) return;
    for (int i = 0; i < weights->op_count; i++) {
        free(weights->ops[i].w);
        free(weights->ops[i].bias);
    }
    free(weights->ops);
    free(weights);
}

lap_status lap_weights_export(const lap_net *net, uint64_t seed, const char *path, bool force,
                              lap_error *err) {
    if (!net || !path) return LAP_FAIL(err, LAP_E_ARG, "lap_weights_export: net or path is NULL");
    lap_state state;
    LAP_TRY(lap_state_new(net, &state, err));
    synthetic source = {&state, seed};
    lap_status status = lap_safetensors_write(path, &state, fetch_synthetic, &source, force, err);
    lap_state_free(&state);
    return status;
}
