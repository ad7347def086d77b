/* The reference: pools, the choice by kind, and the whole network. Convolution is in conv.c. */
#include "ref/ref.h"
#include "base/threads.h"
#include "ref/activation.h"
#include "ref/conv.h"

#include <math.h>
#include <stdlib.h>

/* ---- pools ---------------------------------------------------------------------------------- */

typedef struct pool {
    const lap_op *op;
    const double *x;
    double *y, *bound; /* bound may be NULL */
} pool;

/* The window of one output value: padding counts as minus infinity; a NaN in it wins. */
static void max_value(const pool *v, const double *image, int p, int q, int c, size_t at) {
    const lap_op *op = v->op;
    double best = -INFINITY, magnitude = 0.0;
    for (int r = 0; r < op->r; r++) {
        int row = p * op->stride - op->pad + r;
        if (row < 0 || row >= op->in.h) continue;
        for (int s = 0; s < op->s; s++) {
            int column = q * op->stride - op->pad + s;
            if (column < 0 || column >= op->in.w) continue;
            size_t pixel = (size_t)row * (size_t)op->in.w + (size_t)column;
            double x = image[pixel * (size_t)op->in.c + (size_t)c];
            if (!(x <= best)) best = x;
            if (isnan(best)) break;
            if (fabs(x) > magnitude) magnitude = fabs(x);
        }
        if (isnan(best)) break;
    }
    v->y[at] = best;
    if (v->bound) v->bound[at] = isnan(best) ? best : magnitude;
}

static void max_row(void *context, uint64_t item) {
    const pool *v = context;
    const lap_op *op = v->op;
    const double *image =
        v->x + (size_t)(item / (uint64_t)op->out.h) * (size_t)lap_tensor_logical(&op->in);
    int p = (int)(item % (uint64_t)op->out.h);
    for (int q = 0; q < op->out.w; q++)
        for (int c = 0; c < op->out.c; c++) {
            size_t pixel = (size_t)item * (size_t)op->out.w + (size_t)q;
            max_value(v, image, p, q, c, pixel * (size_t)op->out.c + (size_t)c);
        }
}

/* Item: one channel of one image. */
static void average_channel(void *context, uint64_t item) {
    const pool *v = context;
    const lap_op *op = v->op;
    size_t c_count = (size_t)op->in.c, pixels = (size_t)op->in.h * (size_t)op->in.w;
    const double *x = v->x + (size_t)(item / c_count) * pixels * c_count + (size_t)(item % c_count);
    double sum = 0.0, magnitude = 0.0;
    for (size_t i = 0; i < pixels; i++) {
        sum += x[i * c_count];
        if (!(fabs(x[i * c_count]) <= magnitude)) magnitude = fabs(x[i * c_count]);
    }
    v->y[item] = sum / (double)pixels;
    if (v->bound) v->bound[item] = magnitude;
}

/* ---- depthwise convolution, scaling ---------------------------------------------------------- */

typedef struct channelwise {
    const lap_op *op;
    const double *x, *factors;
    const lap_op_weights *weights;
    double *y, *bound; /* bound may be NULL */
} channelwise;

/* One output value: its own window of its own channel, then bias and activation. */
static void depthwise_value(const channelwise *v, const double *image, int p, int q, int c,
                            size_t at) {
    const lap_op *op = v->op;
    const float *w = v->weights->w + (size_t)c * (size_t)op->r * (size_t)op->s;
    double bias = (double)v->weights->bias[c], sum = bias, magnitude = fabs(bias);
    for (int r = 0; r < op->r; r++) {
        int row = p * op->stride - op->pad + r;
        if (row < 0 || row >= op->in.h) continue;
        for (int s = 0; s < op->s; s++) {
            int column = q * op->stride - op->pad + s;
            if (column < 0 || column >= op->in.w) continue;
            size_t pixel = (size_t)row * (size_t)op->in.w + (size_t)column;
            double term = image[pixel * (size_t)op->in.c + (size_t)c] * (double)w[r * op->s + s];
            sum += term;
            magnitude += fabs(term);
        }
    }
    v->y[at] = lap_ref_activation(op->act, sum);
    if (v->bound) v->bound[at] = lap_ref_activation_bound(op->act, magnitude, v->y[at]);
}

static void depthwise_row(void *context, uint64_t item) {
    const channelwise *v = context;
    const lap_op *op = v->op;
    const double *image =
        v->x + (size_t)(item / (uint64_t)op->out.h) * (size_t)lap_tensor_logical(&op->in);
    int p = (int)(item % (uint64_t)op->out.h);
    for (int q = 0; q < op->out.w; q++)
        for (int c = 0; c < op->out.c; c++) {
            size_t pixel = (size_t)item * (size_t)op->out.w + (size_t)q;
            depthwise_value(v, image, p, q, c, pixel * (size_t)op->out.c + (size_t)c);
        }
}

/* Item: one row of one image. */
static void scale_row(void *context, uint64_t item) {
    const channelwise *v = context;
    const lap_op *op = v->op;
    size_t c_count = (size_t)op->out.c, row = (size_t)op->out.w * c_count;
    const double *factors = v->factors + (size_t)(item / (uint64_t)op->out.h) * c_count;
    for (size_t i = 0; i < row; i++) {
        size_t at = (size_t)item * row + i;
        v->y[at] = lap_ref_activation(op->act, v->x[at] * factors[i % c_count]);
        if (v->bound)
            v->bound[at] =
                lap_ref_activation_bound(op->act, fabs(v->x[at] * factors[i % c_count]), v->y[at]);
    }
}

/* ---- one op --------------------------------------------------------------------------------- */

lap_status lap_ref_op(const lap_op *op, int n, const double *x, const double *residual,
                      const lap_op_weights *weights, double *y, double *bound, lap_error *err) {
    if (!op || n < 1 || !x || !y) return LAP_FAIL(err, LAP_E_ARG, "lap_ref_op: NULL or n below 1");
    if (op->residual >= 0 && !residual)
        return LAP_FAIL(err, LAP_E_ARG, "lap_ref_op: %s needs its residual", op->name);
    if (op->residual < 0) residual = NULL;
    pool v = {op, x, y, bound};
    channelwise by_channel = {op, x, residual, weights, y, bound};
    switch (op->kind) {
    case LAP_OP_CONV:
    case LAP_OP_FC:
        if (!weights || !weights->w || !weights->bias)
            return LAP_FAIL(err, LAP_E_ARG, "lap_ref_op: %s needs weights and a bias", op->name);
        LAP_TRY(lap_ref_conv(op, n, x, residual, weights, false, y, err));
        if (!bound) return LAP_OK;
        LAP_TRY(lap_ref_conv(op, n, x, residual, weights, true, bound, err));
        for (size_t i = 0; i < (size_t)n * (size_t)lap_tensor_logical(&op->out); i++)
            bound[i] = lap_ref_activation_bound(op->act, bound[i], y[i]);
        return LAP_OK;
    case LAP_OP_DWCONV:
        if (!weights || !weights->w || !weights->bias)
            return LAP_FAIL(err, LAP_E_ARG, "lap_ref_op: %s needs weights and a bias", op->name);
        lap_parallel((uint64_t)n * (uint64_t)op->out.h, depthwise_row, &by_channel);
        return LAP_OK;
    case LAP_OP_SCALE:
        lap_parallel((uint64_t)n * (uint64_t)op->out.h, scale_row, &by_channel);
        return LAP_OK;
    case LAP_OP_MAXPOOL:
        lap_parallel((uint64_t)n * (uint64_t)op->out.h, max_row, &v);
        return LAP_OK;
    case LAP_OP_AVGPOOL:
        lap_parallel((uint64_t)n * (uint64_t)op->in.c, average_channel, &v);
        return LAP_OK;
    case LAP_OP_KIND_COUNT:
        break;
    }
    return LAP_FAIL(err, LAP_E_INTERNAL, "lap_ref_op: %s: unknown kind %d", op->name,
                    (int)op->kind);
}

/* ---- the network ---------------------------------------------------------------------------- */

/* Whether any op after op reads tensor. */
static bool read_later(const lap_net *net, int tensor, int op) {
    for (int i = op + 1; i < net->op_count; i++)
        if (net->ops[i].input == tensor || net->ops[i].residual == tensor) return true;
    return false;
}

static double *load_image(const lap_net *net, const float *image) {
    const lap_tensor *t = &net->tensors[0];
    size_t pixels = (size_t)t->h * (size_t)t->w, c_count = (size_t)t->c;
    double *x = malloc(pixels * c_count * sizeof *x);
    if (!x) return NULL;
    for (size_t c = 0; c < c_count; c++)
        for (size_t i = 0; i < pixels; i++)
            x[i * c_count + c] = (double)image[c * pixels + i];
    return x;
}

static lap_status run_ops(const lap_net *net, const lap_weights *weights, double **values,
                          lap_error *err) {
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        values[op->output] = malloc((size_t)lap_tensor_logical(&op->out) * sizeof(double));
        if (!values[op->output])
            return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for the reference's output", op->name);
        const double *residual = op->residual >= 0 ? values[op->residual] : NULL;
        LAP_TRY(lap_ref_op(op, 1, values[op->input], residual, &weights->ops[i], values[op->output],
                           NULL, err));
        for (int t = 0; t < op->output; t++) {
            if (!values[t] || read_later(net, t, i)) continue;
            free(values[t]);
            values[t] = NULL;
        }
    }
    return LAP_OK;
}

lap_status lap_ref_forward(const lap_net *net, const lap_weights *weights, const float *image,
                           double *logits, lap_error *err) {
    if (!net || !weights || !image || !logits)
        return LAP_FAIL(err, LAP_E_ARG, "lap_ref_forward: an argument is NULL");
    if (weights->op_count != net->op_count)
        return LAP_FAIL(err, LAP_E_ARG, "lap_ref_forward: weights of %d ops for a net of %d",
                        weights->op_count, net->op_count);
    double **values = calloc((size_t)net->tensor_count, sizeof *values);
    if (!values) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the reference");
    values[0] = load_image(net, image);
    lap_status status = values[0] ? run_ops(net, weights, values, err)
                                  : LAP_FAIL(err, LAP_E_NOMEM, "no memory for the image");
    const double *last = values[net->ops[net->op_count - 1].output];
    for (int i = 0; status == LAP_OK && i < net->classes; i++)
        logits[i] = last[i];
    for (int i = 0; i < net->tensor_count; i++)
        free(values[i]);
    free(values);
    return status;
}
