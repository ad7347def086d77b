/* Integers for the exact check: inputs and weights whose products and partial sums are exact. */
#include "check/step.h"

#include "base/rng.h"

#include <stdlib.h>

float check_integer(uint64_t stream, uint64_t index, int range) {
    double u = lap_rng_uniform(0x1A9, stream, index);
    return (float)((int)(u * (2 * range + 1)) - range);
}

/* Average pooling: values that differ, but whose mean over the window is a whole number. */
static void fill_mean_integers(const lap_tensor *t, uint64_t n, uint64_t stream, float *out) {
    size_t pixels = (size_t)t->h * (size_t)t->w, c = (size_t)t->c;
    for (uint64_t i = 0; i < n; i++)
        for (size_t p = 0; p < pixels; p++)
            for (size_t k = 0; k < c; k++) {
                float base = check_integer(stream, i * c + k, 8);
                float swing = p == pixels - 1 && pixels % 2 ? 0.0f : p % 2 ? 3.0f : -3.0f;
                out[(i * pixels + p) * c + k] = base + swing;
            }
}

int check_integer_range(lap_precision precision) {
    return precision == LAP_FP32 || precision == LAP_FP32X3 ? 8 : 2;
}

void check_fill_integers(const lap_op *op, uint64_t n, int range, uint64_t stream, float *out) {
    if (op->kind == LAP_OP_AVGPOOL) {
        fill_mean_integers(&op->in, n, stream, out);
        return;
    }
    size_t count = (size_t)(n * lap_tensor_logical(&op->in));
    for (size_t i = 0; i < count; i++)
        out[i] = check_integer(stream, i, range);
}

lap_status check_integer_weights(const lap_net *net, const lap_weights *like, int range,
                                 lap_weights **out, lap_error *err) {
    lap_weights *w = calloc(1, sizeof *w);
    if (w) w->ops = calloc((size_t)net->op_count, sizeof *w->ops);
    if (!w || !w->ops) {
        free(w);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for integer weights");
    }
    w->op_count = net->op_count;
    for (int i = 0; i < net->op_count; i++) {
        const lap_op_weights *from = &like->ops[i];
        lap_op_weights *to = &w->ops[i];
        if (!from->w) continue;
        *to = (lap_op_weights){.w = malloc(from->w_count * sizeof *to->w),
                               .bias = malloc(from->k * sizeof *to->bias),
                               .w_count = from->w_count,
                               .k = from->k};
        if (!to->w || !to->bias) {
            lap_weights_free(w);
            return LAP_FAIL(err, LAP_E_NOMEM, "no memory for integer weights");
        }
        for (size_t j = 0; j < to->w_count; j++)
            to->w[j] = check_integer(1000 + (uint64_t)i, j, range);
        for (size_t j = 0; j < to->k; j++)
            to->bias[j] = check_integer(2000 + (uint64_t)i, j, range);
    }
    *out = w;
    return LAP_OK;
}
