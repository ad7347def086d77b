/* Copies between logical host arrays and stored device tensors. fp32 storage. */
#include "plan/internal.h"

#include <stdlib.h>
#include <string.h>

/* Host staging for one image of a tensor. */
static lap_status staging(const lap_tensor *tensor, float **out, lap_error *err) {
    *out = calloc((size_t)lap_tensor_stored(tensor), sizeof **out);
    return *out ? LAP_OK : LAP_FAIL(err, LAP_E_NOMEM, "no memory for one image of a tensor");
}

static lap_status check_range(const lap_plan *plan, int tensor, uint64_t first, uint64_t count,
                              lap_error *err) {
    if (!plan->bound) return LAP_FAIL(err, LAP_E_ARG, "the plan is not bound");
    if (tensor < 0 || tensor >= plan->net->tensor_count || plan->slot_of[tensor] < 0 ||
        first > plan->options.batch || count > plan->options.batch - first)
        return LAP_FAIL(err, LAP_E_ARG, "tensor %d, images %llu + %llu: out of range", tensor,
                        (unsigned long long)first, (unsigned long long)count);
    return LAP_OK;
}

/* Copy pixels between channel strides. */
static void restride(const float *from, int from_stride, float *to, int to_stride, int c,
                     size_t pixels) {
    for (size_t p = 0; p < pixels; p++)
        memcpy(to + p * (size_t)to_stride, from + p * (size_t)from_stride, (size_t)c * sizeof *to);
}

lap_status lap_plan_tensor_read(lap_plan *plan, int tensor, uint64_t first, uint64_t count,
                                float *nhwc, lap_error *err) {
    LAP_TRY(check_range(plan, tensor, first, count, err));
    const lap_tensor *t = &plan->net->tensors[tensor];
    float *image;
    LAP_TRY(staging(t, &image, err));
    size_t bytes = (size_t)lap_tensor_stored(t) * sizeof *image;
    size_t pixels = (size_t)t->h * (size_t)t->w;
    lap_status status = LAP_OK;
    for (uint64_t i = 0; i < count && status == LAP_OK; i++) {
        status = lap_buffer_read(plan->session->queue, plan->slots[plan->slot_of[tensor]].data,
                                 (size_t)(first + i) * bytes, image, bytes, err);
        if (status == LAP_OK)
            restride(image, t->cs, nhwc + i * lap_tensor_logical(t), t->c, t->c, pixels);
    }
    free(image);
    return status;
}

lap_status lap_plan_tensor_write(lap_plan *plan, int tensor, uint64_t first, uint64_t count,
                                 const float *nhwc, lap_error *err) {
    LAP_TRY(check_range(plan, tensor, first, count, err));
    const lap_tensor *t = &plan->net->tensors[tensor];
    float *image;
    LAP_TRY(staging(t, &image, err));
    size_t bytes = (size_t)lap_tensor_stored(t) * sizeof *image;
    size_t pixels = (size_t)t->h * (size_t)t->w;
    lap_status status = LAP_OK;
    for (uint64_t i = 0; i < count && status == LAP_OK; i++) {
        restride(nhwc + i * lap_tensor_logical(t), t->c, image, t->cs, t->c, pixels);
        status = lap_buffer_write(plan->session->queue, plan->slots[plan->slot_of[tensor]].data,
                                  (size_t)(first + i) * bytes, image, bytes, err);
    }
    free(image);
    return status;
}

lap_status lap_plan_tensor_padding(lap_plan *plan, int tensor, uint64_t *wrong, lap_error *err) {
    *wrong = 0;
    LAP_TRY(check_range(plan, tensor, 0, plan->options.batch, err));
    const lap_tensor *t = &plan->net->tensors[tensor];
    if (t->cs == t->c) return LAP_OK;
    float *image;
    LAP_TRY(staging(t, &image, err));
    size_t bytes = (size_t)lap_tensor_stored(t) * sizeof *image;
    size_t pixels = (size_t)t->h * (size_t)t->w;
    lap_status status = LAP_OK;
    for (uint64_t i = 0; i < plan->options.batch && status == LAP_OK; i++) {
        status = lap_buffer_read(plan->session->queue, plan->slots[plan->slot_of[tensor]].data,
                                 (size_t)i * bytes, image, bytes, err);
        for (size_t p = 0; p < pixels && status == LAP_OK; p++)
            for (int c = t->c; c < t->cs; c++)
                if (!(image[p * (size_t)t->cs + (size_t)c] == 0.0f)) ++*wrong;
    }
    free(image);
    return status;
}

lap_status lap_plan_tensor_poison(lap_plan *plan, int tensor, lap_error *err) {
    LAP_TRY(check_range(plan, tensor, 0, plan->options.batch, err));
    plan_buffer *buffer = &plan->slots[plan->slot_of[tensor]];
    return lap_buffer_fill(plan->session->queue, buffer->data, 0, buffer->bytes, PLAN_NAN_WORD,
                           err);
}

static void to_nhwc(const float *nchw, const lap_tensor *t, float *out) {
    size_t pixels = (size_t)t->h * (size_t)t->w;
    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < (size_t)t->c; c++)
            out[p * (size_t)t->cs + c] = nchw[c * pixels + p];
}

lap_status lap_plan_set_input(lap_plan *plan, const float *images, size_t count, lap_error *err) {
    LAP_TRY(check_range(plan, 0, 0, plan->options.batch, err));
    if (count == 0) return LAP_FAIL(err, LAP_E_ARG, "no input images");
    const lap_tensor *t = &plan->net->tensors[0];
    size_t stored = (size_t)lap_tensor_stored(t), logical = (size_t)lap_tensor_logical(t);
    if (count > plan->options.batch) count = (size_t)plan->options.batch;
    float *converted = calloc(count, stored * sizeof *converted);
    if (!converted) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu input images", count);
    for (size_t i = 0; i < count; i++)
        to_nhwc(images + i * logical, t, converted + i * stored);
    lap_status status = LAP_OK;
    size_t bytes = stored * sizeof *converted;
    lap_buffer *buffer = plan->slots[plan->slot_of[0]].data;
    for (uint64_t i = 0; i < plan->options.batch && status == LAP_OK; i += count) {
        size_t n = plan->options.batch - i < count ? (size_t)(plan->options.batch - i) : count;
        status = lap_buffer_write(plan->session->queue, buffer, (size_t)i * bytes, converted,
                                  n * bytes, err);
    }
    free(converted);
    return status;
}

lap_status lap_plan_logits(lap_plan *plan, float *logits, lap_error *err) {
    int last = plan->net->ops[plan->net->op_count - 1].output;
    return lap_plan_tensor_read(plan, last, 0, plan->options.batch, logits, err);
}
