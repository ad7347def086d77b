/* The wrappers over a backend's table for memory and for the library GEMM: ranges are checked
 * without overflow, views keep their parent alive. Never touches memory itself. */
#include "device/objects.h"

#include <math.h>
#include <stdlib.h>

/* ---- objects -------------------------------------------------------------------------------- */

lap_status lap_buffer_new(lap_device *device, size_t bytes, lap_buffer **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_buffer_new: out is NULL");
    *out = NULL;
    if (!device) return LAP_FAIL(err, LAP_E_ARG, "lap_buffer_new: device is NULL");
    if (bytes == 0) return LAP_FAIL(err, LAP_E_ARG, "lap_buffer_new: 0 bytes, at least 1 needed");
    /* max_alloc_bytes is no reason to refuse: some devices report far less than they give. */
    lap_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) return LAP_FAIL(err, LAP_E_NOMEM, "lap_buffer_new: out of memory");
    buffer->device = device;
    buffer->bytes = bytes;
    lap_status status = lap_call_enter(device, "lap_buffer_new", err);
    if (status == LAP_OK)
        status =
            lap_call_leave(device, "lap_buffer_new",
                           device->ops->buffer_new(device->handle, bytes, &buffer->handle, err));
    if (status != LAP_OK) {
        free(buffer);
        return status;
    }
    device->buffers++;
    *out = buffer;
    return LAP_OK;
}

static lap_status check_range(const lap_buffer *buffer, size_t offset, size_t bytes,
                              const char *call, lap_error *err) {
    if (bytes == 0) return LAP_FAIL(err, LAP_E_ARG, "%s: 0 bytes, at least 1 needed", call);
    if (offset > buffer->bytes || bytes > buffer->bytes - offset)
        return LAP_FAIL(err, LAP_E_ARG, "%s: %zu bytes at offset %zu of a buffer of %zu bytes",
                        call, bytes, offset, buffer->bytes);
    return LAP_OK;
}

lap_status lap_buffer_view(lap_buffer *parent, size_t offset, size_t bytes, lap_buffer **out,
                           lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_buffer_view: out is NULL");
    *out = NULL;
    if (!parent) return LAP_FAIL(err, LAP_E_ARG, "lap_buffer_view: parent is NULL");
    if (parent->parent)
        return LAP_FAIL(err, LAP_E_ARG,
                        "lap_buffer_view: the parent is a view itself; view the "
                        "buffer it belongs to");
    LAP_TRY(check_range(parent, offset, bytes, "lap_buffer_view", err));
    lap_device *device = parent->device;
    if (offset % device->info.base_align_bytes != 0)
        return LAP_FAIL(err, LAP_E_ARG,
                        "lap_buffer_view: offset %zu is not a multiple of %u, which %s needs",
                        offset, device->info.base_align_bytes, device->info.selector);
    lap_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) return LAP_FAIL(err, LAP_E_NOMEM, "lap_buffer_view: out of memory");
    buffer->device = device;
    buffer->bytes = bytes;
    buffer->parent = parent;
    lap_status status = lap_call_enter(device, "lap_buffer_view", err);
    if (status == LAP_OK)
        status = lap_call_leave(
            device, "lap_buffer_view",
            device->ops->buffer_view(parent->handle, offset, bytes, &buffer->handle, err));
    if (status != LAP_OK) {
        free(buffer);
        return status;
    }
    parent->views++;
    device->buffers++;
    *out = buffer;
    return LAP_OK;
}

static void release(lap_buffer *buffer) {
    buffer->device->ops->buffer_free(buffer->handle);
    buffer->device->buffers--;
    free(buffer);
}

void lap_buffer_free(lap_buffer *buffer) {
    if (!buffer) return;
    if (buffer->views > 0) { /* goes with its last view: a view must never dangle */
        buffer->freed = true;
        return;
    }
    lap_buffer *parent = buffer->parent;
    release(buffer);
    if (parent && --parent->views == 0 && parent->freed) release(parent);
}

size_t lap_buffer_bytes(const lap_buffer *buffer) {
    return buffer ? buffer->bytes : 0;
}

/* ---- copies --------------------------------------------------------------------------------- */

static lap_status check_copy(const lap_queue *queue, const lap_buffer *buffer, size_t offset,
                             size_t bytes, const char *call, lap_error *err) {
    if (!queue || !buffer) return LAP_FAIL(err, LAP_E_ARG, "%s: queue or buffer is NULL", call);
    if (queue->device != buffer->device)
        return LAP_FAIL(err, LAP_E_ARG, "%s: the queue is on %s, the buffer on %s", call,
                        queue->device->info.selector, buffer->device->info.selector);
    LAP_TRY(check_range(buffer, offset, bytes, call, err));
    return lap_queue_check_idle(queue, call, err);
}

static lap_status done(lap_queue *queue, const char *call, lap_status status) {
    if (status == LAP_OK) {
        queue->commands++;
        queue->unstamped = false;
    }
    return lap_call_leave(queue->device, call, status);
}

lap_status lap_buffer_write(lap_queue *queue, lap_buffer *buffer, size_t offset, const void *data,
                            size_t bytes, lap_error *err) {
    static const char call[] = "lap_buffer_write";
    LAP_TRY(check_copy(queue, buffer, offset, bytes, call, err));
    if (!data) return LAP_FAIL(err, LAP_E_ARG, "%s: data is NULL", call);
    LAP_TRY(lap_call_enter(queue->device, call, err));
    return done(
        queue, call,
        queue->device->ops->buffer_write(queue->handle, buffer->handle, offset, data, bytes, err));
}

lap_status lap_buffer_read(lap_queue *queue, const lap_buffer *buffer, size_t offset, void *data,
                           size_t bytes, lap_error *err) {
    static const char call[] = "lap_buffer_read";
    LAP_TRY(check_copy(queue, buffer, offset, bytes, call, err));
    if (!data) return LAP_FAIL(err, LAP_E_ARG, "%s: data is NULL", call);
    LAP_TRY(lap_call_enter(queue->device, call, err));
    return done(
        queue, call,
        queue->device->ops->buffer_read(queue->handle, buffer->handle, offset, data, bytes, err));
}

lap_status lap_buffer_fill(lap_queue *queue, lap_buffer *buffer, size_t offset, size_t bytes,
                           uint32_t pattern, lap_error *err) {
    static const char call[] = "lap_buffer_fill";
    LAP_TRY(check_copy(queue, buffer, offset, bytes, call, err));
    if (offset % 4 != 0 || bytes % 4 != 0)
        return LAP_FAIL(err, LAP_E_ARG, "%s: %zu bytes at offset %zu: both must be multiples of 4",
                        call, bytes, offset);
    LAP_TRY(lap_call_enter(queue->device, call, err));
    return done(queue, call,
                queue->device->ops->buffer_fill(queue->handle, buffer->handle, offset, bytes,
                                                pattern, err));
}

/* ---- asynchronous copies and pinned memory -------------------------------------------------- */

bool lap_device_has_async(const lap_device *device) {
    if (!device) return false;
    const lap_device_ops *ops = device->ops;
    return ops->buffer_write_async && ops->buffer_read_async && ops->queue_wait_event;
}

static lap_status need_async(const lap_device *device, const char *call, lap_error *err) {
    if (lap_device_has_async(device)) return LAP_OK;
    return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s: %s has no asynchronous copies", call,
                    device->ops->name);
}

lap_status lap_buffer_write_async(lap_queue *queue, lap_buffer *buffer, size_t offset,
                                  const void *data, size_t bytes, lap_error *err) {
    static const char call[] = "lap_buffer_write_async";
    LAP_TRY(check_copy(queue, buffer, offset, bytes, call, err));
    if (!data) return LAP_FAIL(err, LAP_E_ARG, "%s: data is NULL", call);
    LAP_TRY(need_async(queue->device, call, err));
    LAP_TRY(lap_call_enter(queue->device, call, err));
    return done(queue, call,
                queue->device->ops->buffer_write_async(queue->handle, buffer->handle, offset, data,
                                                       bytes, err));
}

lap_status lap_buffer_read_async(lap_queue *queue, const lap_buffer *buffer, size_t offset,
                                 void *data, size_t bytes, lap_error *err) {
    static const char call[] = "lap_buffer_read_async";
    LAP_TRY(check_copy(queue, buffer, offset, bytes, call, err));
    if (!data) return LAP_FAIL(err, LAP_E_ARG, "%s: data is NULL", call);
    LAP_TRY(need_async(queue->device, call, err));
    LAP_TRY(lap_call_enter(queue->device, call, err));
    return done(queue, call,
                queue->device->ops->buffer_read_async(queue->handle, buffer->handle, offset, data,
                                                      bytes, err));
}

bool lap_device_has_pinned(const lap_device *device) {
    return device && device->ops->pinned_new && device->ops->pinned_free;
}

lap_status lap_pinned_new(lap_device *device, size_t bytes, lap_pinned **out, lap_error *err) {
    static const char call[] = "lap_pinned_new";
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "%s: out is NULL", call);
    *out = NULL;
    if (!device) return LAP_FAIL(err, LAP_E_ARG, "%s: device is NULL", call);
    if (bytes == 0) return LAP_FAIL(err, LAP_E_ARG, "%s: 0 bytes, at least 1 needed", call);
    if (!lap_device_has_pinned(device))
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s: %s has no pinned host memory", call,
                        device->ops->name);
    lap_pinned *pinned = calloc(1, sizeof *pinned);
    if (!pinned) return LAP_FAIL(err, LAP_E_NOMEM, "%s: out of memory", call);
    pinned->device = device;
    lap_status status = lap_call_enter(device, call, err);
    if (status == LAP_OK)
        status = lap_call_leave(
            device, call,
            device->ops->pinned_new(device->handle, bytes, &pinned->handle, &pinned->data, err));
    if (status != LAP_OK) {
        free(pinned);
        return status;
    }
    device->pinned++;
    *out = pinned;
    return LAP_OK;
}

void *lap_pinned_data(const lap_pinned *pinned) {
    return pinned ? pinned->data : NULL;
}

void lap_pinned_free(lap_pinned *pinned) {
    if (!pinned) return;
    pinned->device->ops->pinned_free(pinned->handle);
    pinned->device->pinned--;
    free(pinned);
}

/* ---- library GEMM --------------------------------------------------------------------------- */

/* The library's name; NULL, and why, where there is none. */
static const char *gemm_name(const lap_device *device, const char **why) {
    *why = "this build has no matrix product library for the device";
    if (!device || !device->ops->gemm || !device->ops->gemm_name) return NULL;
    return device->ops->gemm_name(device->handle, why);
}

const char *lap_device_gemm_name(const lap_device *device) {
    const char *why, *name = gemm_name(device, &why);
    return name ? name : "";
}

const char *lap_device_gemm_lacking(const lap_device *device) {
    const char *why;
    return gemm_name(device, &why) ? "" : why;
}

bool lap_device_has_gemm(const lap_device *device) {
    return lap_device_gemm_name(device)[0] != '\0';
}

/* rows x cols floats, ld apart, from element offset on, must lie inside the buffer. */
static lap_status check_matrix(const lap_queue *queue, char name, const lap_buffer *buffer,
                               size_t rows, size_t cols, size_t ld, size_t offset, lap_error *err) {
    if (!buffer || buffer->device != queue->device)
        return LAP_FAIL(err, LAP_E_ARG, "GEMM: matrix %c is NULL or on another device", name);
    if (ld < cols)
        return LAP_FAIL(err, LAP_E_ARG, "GEMM: rows of %c are %zu apart but %zu long", name, ld,
                        cols);
    size_t most = buffer->bytes / sizeof(float);
    bool fits = offset <= most && cols <= most - offset &&
                (rows - 1 == 0 || (most - offset - cols) / (rows - 1) >= ld);
    if (!fits)
        return LAP_FAIL(err, LAP_E_ARG,
                        "GEMM: matrix %c, %zu x %zu with rows %zu apart from element %zu on, is "
                        "larger than its buffer of %zu elements",
                        name, rows, cols, ld, offset, most);
    return LAP_OK;
}

lap_status lap_gemm_enqueue(lap_queue *queue, const lap_gemm *gemm, lap_error *err) {
    static const char call[] = "lap_gemm_enqueue";
    if (!queue || !gemm) return LAP_FAIL(err, LAP_E_ARG, "%s: an argument is NULL", call);
    lap_device *device = queue->device;
    if (!lap_device_has_gemm(device))
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s has no GEMM library on %s", device->ops->name,
                        device->info.selector);
    const lap_gemm *g = gemm;
    if (g->m == 0 || g->n == 0 || g->k == 0 || !isfinite(g->beta))
        return LAP_FAIL(err, LAP_E_ARG,
                        "GEMM: m, n, k = %zu, %zu, %zu must be at least 1 and beta finite", g->m,
                        g->n, g->k);
    size_t b_rows = g->b_transposed ? g->n : g->k, b_cols = g->b_transposed ? g->k : g->n;
    LAP_TRY(check_matrix(queue, 'A', g->a, g->m, g->k, g->lda, g->a_offset, err));
    LAP_TRY(check_matrix(queue, 'B', g->b, b_rows, b_cols, g->ldb, g->b_offset, err));
    LAP_TRY(check_matrix(queue, 'C', g->c, g->m, g->n, g->ldc, g->c_offset, err));
    LAP_TRY(lap_call_enter(device, call, err));
    lap_raw_gemm raw = {.m = g->m,
                        .n = g->n,
                        .k = g->k,
                        .a = g->a->handle,
                        .b = g->b->handle,
                        .c = g->c->handle,
                        .a_offset = g->a_offset,
                        .b_offset = g->b_offset,
                        .c_offset = g->c_offset,
                        .lda = g->lda,
                        .ldb = g->ldb,
                        .ldc = g->ldc,
                        .b_transposed = g->b_transposed,
                        .beta = g->beta};
    lap_status status = device->ops->gemm(queue->handle, &raw, err);
    if (queue->capturing) return lap_call_leave(device, call, status);
    return done(queue, call, status);
}
