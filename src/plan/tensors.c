/* Copies between logical host floats and stored device tensors, in the plan's storage type. */
#include "plan/internal.h"

#include "base/half.h"
#include <stdlib.h>
#include <string.h>

typedef enum storage { STORED_F32, STORED_F16, STORED_BF16 } storage;

static storage storage_of(const lap_plan *plan, int tensor) {
    if (plan_tensor_element(plan, tensor) == 4) return STORED_F32;
    return plan->options.precision == LAP_BF16 ? STORED_BF16 : STORED_F16;
}

/* One image of a tensor as it is stored. */
typedef struct image {
    storage type;
    size_t elements, bytes;
    void *data;
} image;

static lap_status image_new(const lap_plan *plan, int tensor, size_t count, image *out,
                            lap_error *err) {
    const lap_tensor *t = &plan->net->tensors[tensor];
    out->type = storage_of(plan, tensor);
    out->elements = (size_t)lap_tensor_stored(t);
    out->bytes = out->elements * plan_tensor_element(plan, tensor);
    out->data = calloc(count, out->bytes);
    return out->data ? LAP_OK
                     : LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu images of a tensor", count);
}

static float get(const image *from, size_t i) {
    switch (from->type) {
    case STORED_F16:
        return lap_half_to_float(((const uint16_t *)from->data)[i]);
    case STORED_BF16:
        return lap_bf16_to_float(((const uint16_t *)from->data)[i]);
    case STORED_F32:
        break;
    }
    return ((const float *)from->data)[i];
}

static void put(image *to, size_t i, float value) {
    switch (to->type) {
    case STORED_F16:
        ((uint16_t *)to->data)[i] = lap_half_from_float(value);
        return;
    case STORED_BF16:
        ((uint16_t *)to->data)[i] = lap_bf16_from_float(value);
        return;
    case STORED_F32:
        ((float *)to->data)[i] = value;
    }
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

static lap_buffer *buffer_of(const lap_plan *plan, int tensor) {
    return plan->slots[plan->slot_of[tensor]].data;
}

lap_status lap_plan_tensor_read(lap_plan *plan, int tensor, uint64_t first, uint64_t count,
                                float *nhwc, lap_error *err) {
    LAP_TRY(check_range(plan, tensor, first, count, err));
    const lap_tensor *t = &plan->net->tensors[tensor];
    size_t cs = (size_t)t->cs, c = (size_t)t->c;
    image one;
    LAP_TRY(image_new(plan, tensor, 1, &one, err));
    lap_status status = LAP_OK;
    for (uint64_t i = 0; i < count && status == LAP_OK; i++) {
        status = lap_buffer_read(plan->queue, buffer_of(plan, tensor),
                                 (size_t)(first + i) * one.bytes, one.data, one.bytes, err);
        for (size_t p = 0; status == LAP_OK && p < one.elements / cs; p++)
            for (size_t k = 0; k < c; k++)
                *nhwc++ = get(&one, p * cs + k);
    }
    free(one.data);
    return status;
}

lap_status lap_plan_tensor_write(lap_plan *plan, int tensor, uint64_t first, uint64_t count,
                                 const float *nhwc, lap_error *err) {
    LAP_TRY(check_range(plan, tensor, first, count, err));
    const lap_tensor *t = &plan->net->tensors[tensor];
    size_t cs = (size_t)t->cs, c = (size_t)t->c;
    image one;
    LAP_TRY(image_new(plan, tensor, 1, &one, err));
    lap_status status = LAP_OK;
    for (uint64_t i = 0; i < count && status == LAP_OK; i++) {
        for (size_t p = 0; p < one.elements / cs; p++)
            for (size_t k = 0; k < c; k++)
                put(&one, p * cs + k, *nhwc++);
        status = lap_buffer_write(plan->queue, buffer_of(plan, tensor),
                                  (size_t)(first + i) * one.bytes, one.data, one.bytes, err);
    }
    free(one.data);
    return status;
}

lap_status lap_plan_tensor_padding(lap_plan *plan, int tensor, uint64_t *wrong, lap_error *err) {
    *wrong = 0;
    LAP_TRY(check_range(plan, tensor, 0, plan->options.batch, err));
    const lap_tensor *t = &plan->net->tensors[tensor];
    size_t cs = (size_t)t->cs, c = (size_t)t->c;
    if (cs == c) return LAP_OK;
    image one;
    LAP_TRY(image_new(plan, tensor, 1, &one, err));
    lap_status status = LAP_OK;
    for (uint64_t i = 0; i < plan->options.batch && status == LAP_OK; i++) {
        status = lap_buffer_read(plan->queue, buffer_of(plan, tensor), (size_t)i * one.bytes,
                                 one.data, one.bytes, err);
        for (size_t p = 0; status == LAP_OK && p < one.elements / cs; p++)
            for (size_t k = c; k < cs; k++)
                *wrong += !(get(&one, p * cs + k) == 0.0f);
    }
    free(one.data);
    return status;
}

lap_status lap_plan_tensor_poison(lap_plan *plan, int tensor, lap_error *err) {
    LAP_TRY(check_range(plan, tensor, 0, plan->options.batch, err));
    plan_buffer *buffer = &plan->slots[plan->slot_of[tensor]];
    return lap_buffer_fill(plan->queue, buffer->data, 0, buffer->bytes, PLAN_NAN_WORD, err);
}

lap_status lap_plan_poison(lap_plan *plan, lap_error *err) {
    LAP_TRY(check_range(plan, 0, 0, plan->options.batch, err));
    for (int s = 0; s < plan->slot_count; s++)
        if (s != plan->slot_of[0])
            LAP_TRY(lap_buffer_fill(plan->queue, plan->slots[s].data, 0, plan->slots[s].bytes,
                                    PLAN_NAN_WORD, err));
    return LAP_OK;
}

/* Image i of `to` from float NCHW. */
static void to_nhwc(const float *nchw, const lap_tensor *t, image *to, size_t i) {
    size_t pixels = (size_t)t->h * (size_t)t->w, cs = (size_t)t->cs;
    for (size_t p = 0; p < pixels; p++)
        for (size_t c = 0; c < (size_t)t->c; c++)
            put(to, i * to->elements + p * cs + c, nchw[c * pixels + p]);
}

lap_status lap_plan_set_input(lap_plan *plan, const float *images, size_t count, lap_error *err) {
    LAP_TRY(check_range(plan, 0, 0, plan->options.batch, err));
    if (count == 0) return LAP_FAIL(err, LAP_E_ARG, "no input images");
    const lap_tensor *t = &plan->net->tensors[0];
    if (count > plan->options.batch) count = (size_t)plan->options.batch;
    image all;
    LAP_TRY(image_new(plan, 0, count, &all, err));
    for (size_t i = 0; i < count; i++)
        to_nhwc(images + i * (size_t)lap_tensor_logical(t), t, &all, i);
    lap_status status = LAP_OK;
    for (uint64_t i = 0; i < plan->options.batch && status == LAP_OK; i += count) {
        size_t n = plan->options.batch - i < count ? (size_t)(plan->options.batch - i) : count;
        status = lap_buffer_write(plan->queue, buffer_of(plan, 0), (size_t)i * all.bytes, all.data,
                                  n * all.bytes, err);
    }
    free(all.data);
    return status;
}

lap_status lap_plan_pack_input(const lap_plan *plan, const float *images, size_t count, void *out,
                               lap_error *err) {
    LAP_TRY(check_range(plan, 0, 0, plan->options.batch, err));
    if (count == 0) return LAP_FAIL(err, LAP_E_ARG, "no input images");
    const lap_tensor *t = &plan->net->tensors[0];
    image all = {.type = storage_of(plan, 0),
                 .elements = (size_t)lap_tensor_stored(t),
                 .bytes = (size_t)lap_tensor_stored(t) * plan_tensor_element(plan, 0),
                 .data = out};
    memset(out, 0, lap_plan_input_bytes(plan)); /* padding channels */
    for (size_t i = 0; i < plan->options.batch; i++)
        to_nhwc(images + i % count * (size_t)lap_tensor_logical(t), t, &all, i);
    return LAP_OK;
}

size_t lap_plan_input_bytes(const lap_plan *plan) {
    return (size_t)plan_tensor_bytes(plan, 0);
}

lap_buffer *lap_plan_input_buffer(const lap_plan *plan) {
    return plan->bound ? buffer_of(plan, 0) : NULL;
}

static int output_tensor(const lap_plan *plan) {
    return plan->net->ops[plan->net->op_count - 1].output;
}

size_t lap_plan_output_bytes(const lap_plan *plan) {
    return (size_t)plan_tensor_bytes(plan, output_tensor(plan));
}

lap_buffer *lap_plan_output_buffer(const lap_plan *plan) {
    return plan->bound ? buffer_of(plan, output_tensor(plan)) : NULL;
}

lap_queue *lap_plan_queue(const lap_plan *plan) {
    return plan->queue;
}

lap_status lap_plan_logits(lap_plan *plan, float *logits, lap_error *err) {
    int last = plan->net->ops[plan->net->op_count - 1].output;
    if (plan->bound) LAP_TRY(plan_chain_check(plan, err));
    return lap_plan_tensor_read(plan, last, 0, plan->options.batch, logits, err);
}
