/* Streams, device memory and pinned host memory. Copies wait for their end unless they are called
 * async; fills do not wait. */
#include "cuda_backend.h"

#include <stdlib.h>

/* ---- queues --------------------------------------------------------------------------------- */

lap_status lap_cuda_queue_new(void *device, void **queue, lap_error *err) {
    *queue = NULL;
    lap_cuda_device *d = device;
    LAP_TRY(lap_cuda_use(d, err));
    lap_cuda_queue *q = calloc(1, sizeof *q);
    if (!q) return LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for a queue", d->index);
    q->device = d;
    /* Non-blocking: nothing waits for the legacy stream, which nobody here uses. */
    lap_status status = LAP_CUDA(err, cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking),
                                 "making a stream on cuda:%d", d->index);
    if (status != LAP_OK) {
        free(q);
        return status;
    }
    *queue = q;
    return LAP_OK;
}

/* An abandoned capture would make the stream impossible to wait for. */
static void drop_capture(lap_cuda_queue *q) {
    cudaGraph_t graph = NULL;
    LAP_CUDA_IGNORE(cudaStreamEndCapture(q->stream, &graph));
    if (graph) LAP_CUDA_IGNORE(cudaGraphDestroy(graph));
    q->capturing = false;
}

void lap_cuda_queue_free(void *queue) {
    lap_cuda_queue *q = queue;
    if (!q) return;
    (void)lap_cuda_use(q->device, NULL);
    if (q->capturing) drop_capture(q);
    LAP_CUDA_IGNORE(cudaStreamSynchronize(q->stream));
    LAP_CUDA_IGNORE(cudaStreamDestroy(q->stream));
    free(q);
}

lap_status lap_cuda_queue_finish(void *queue, lap_error *err) {
    lap_cuda_queue *q = queue;
    LAP_TRY(lap_cuda_not_capturing(q, "waiting", err));
    LAP_TRY(lap_cuda_use(q->device, err));
    return LAP_CUDA(err, cudaStreamSynchronize(q->stream), "waiting for the commands of cuda:%d",
                    q->device->index);
}

/* Streams start by themselves on Linux; a query makes a driver that batches (WDDM, WSL) submit. */
lap_status lap_cuda_queue_flush(void *queue, lap_error *err) {
    lap_cuda_queue *q = queue;
    LAP_TRY(lap_cuda_not_capturing(q, "flushing", err));
    LAP_TRY(lap_cuda_use(q->device, err));
    cudaError_t code = cudaStreamQuery(q->stream);
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return LAP_OK;
    }
    return lap_cuda_check(code, "cudaStreamQuery(q->stream)", __FILE__, __LINE__, err,
                          "flushing the commands of cuda:%d", q->device->index);
}

/* ---- buffers -------------------------------------------------------------------------------- */

static lap_status buffer_object(lap_cuda_device *device, lap_cuda_buffer **out, lap_error *err) {
    *out = calloc(1, sizeof **out);
    if (!*out)
        return LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for a buffer", device->index);
    (*out)->device = device;
    return LAP_OK;
}

lap_status lap_cuda_buffer_new(void *device, size_t bytes, void **buffer, lap_error *err) {
    *buffer = NULL;
    lap_cuda_device *d = device;
    LAP_TRY(lap_cuda_use(d, err));
    lap_cuda_buffer *b;
    LAP_TRY(buffer_object(d, &b, err));
    lap_status status = LAP_CUDA(err, cudaMalloc(&b->pointer, bytes),
                                 "allocating %zu bytes on cuda:%d", bytes, d->index);
    if (status != LAP_OK) {
        free(b);
        return status;
    }
    *buffer = b;
    return LAP_OK;
}

lap_status lap_cuda_buffer_view(void *parent, size_t offset, size_t bytes, void **buffer,
                                lap_error *err) {
    (void)bytes; /* the wrapper knows and checks the range */
    *buffer = NULL;
    const lap_cuda_buffer *p = parent;
    lap_cuda_buffer *b;
    LAP_TRY(buffer_object(p->device, &b, err));
    b->pointer = (char *)p->pointer + offset;
    b->view = true;
    *buffer = b;
    return LAP_OK;
}

void lap_cuda_buffer_free(void *buffer) {
    lap_cuda_buffer *b = buffer;
    if (!b) return;
    if (!b->view) {
        (void)lap_cuda_use(b->device, NULL);
        LAP_CUDA_IGNORE(cudaFree(b->pointer));
    }
    free(b);
}

lap_status lap_cuda_buffer_write_async(void *queue, void *buffer, size_t offset, const void *data,
                                       size_t bytes, lap_error *err) {
    lap_cuda_queue *q = queue;
    char *to = (char *)((lap_cuda_buffer *)buffer)->pointer + offset;
    LAP_TRY(lap_cuda_not_capturing(q, "writing a buffer", err));
    LAP_TRY(lap_cuda_use(q->device, err));
    return LAP_CUDA(err, cudaMemcpyAsync(to, data, bytes, cudaMemcpyHostToDevice, q->stream),
                    "writing %zu bytes to cuda:%d", bytes, q->device->index);
}

lap_status lap_cuda_buffer_read_async(void *queue, void *buffer, size_t offset, void *data,
                                      size_t bytes, lap_error *err) {
    lap_cuda_queue *q = queue;
    const char *from = (const char *)((lap_cuda_buffer *)buffer)->pointer + offset;
    LAP_TRY(lap_cuda_not_capturing(q, "reading a buffer", err));
    LAP_TRY(lap_cuda_use(q->device, err));
    return LAP_CUDA(err, cudaMemcpyAsync(data, from, bytes, cudaMemcpyDeviceToHost, q->stream),
                    "reading %zu bytes from cuda:%d", bytes, q->device->index);
}

lap_status lap_cuda_buffer_write(void *queue, void *buffer, size_t offset, const void *data,
                                 size_t bytes, lap_error *err) {
    lap_cuda_queue *q = queue;
    LAP_TRY(lap_cuda_buffer_write_async(queue, buffer, offset, data, bytes, err));
    return LAP_CUDA(err, cudaStreamSynchronize(q->stream), "writing %zu bytes to cuda:%d", bytes,
                    q->device->index);
}

lap_status lap_cuda_buffer_read(void *queue, void *buffer, size_t offset, void *data, size_t bytes,
                                lap_error *err) {
    lap_cuda_queue *q = queue;
    LAP_TRY(lap_cuda_buffer_read_async(queue, buffer, offset, data, bytes, err));
    return LAP_CUDA(err, cudaStreamSynchronize(q->stream), "reading %zu bytes from cuda:%d", bytes,
                    q->device->index);
}

/* ---- pinned host memory --------------------------------------------------------------------- */

lap_status lap_cuda_pinned_new(void *device, size_t bytes, void **pinned, void **data,
                               lap_error *err) {
    *pinned = *data = NULL;
    lap_cuda_device *d = device;
    LAP_TRY(lap_cuda_use(d, err));
    lap_cuda_pinned *p = calloc(1, sizeof *p);
    if (!p)
        return LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for pinned memory", d->index);
    p->device = d;
    lap_status status = LAP_CUDA(err, cudaMallocHost(&p->pointer, bytes),
                                 "pinning %zu bytes of host memory for cuda:%d", bytes, d->index);
    if (status != LAP_OK) {
        free(p);
        return status;
    }
    *pinned = p;
    *data = p->pointer;
    return LAP_OK;
}

void lap_cuda_pinned_free(void *pinned) {
    lap_cuda_pinned *p = pinned;
    if (!p) return;
    (void)lap_cuda_use(p->device, NULL);
    LAP_CUDA_IGNORE(cudaFreeHost(p->pointer));
    free(p);
}

/* The runtime sets bytes only. A pattern of four different bytes is laid down once, byte by byte,
 * then doubled by copies on the device: no kernel, no host memory that must outlive the call, so it
 * works without NVRTC and inside a capture. Costs 4 + log2(words) commands. */
static lap_status fill_words(lap_cuda_queue *q, char *to, size_t bytes, uint32_t pattern,
                             lap_error *err) {
    const unsigned char *byte = (const unsigned char *)&pattern;
    for (size_t i = 0; i < 4; i++)
        LAP_TRY(LAP_CUDA(err, cudaMemsetAsync(to + i, byte[i], 1, q->stream),
                         "filling %zu bytes on cuda:%d", bytes, q->device->index));
    for (size_t done = 4, next; done < bytes; done += next) {
        next = done < bytes - done ? done : bytes - done;
        LAP_TRY(LAP_CUDA(err,
                         cudaMemcpyAsync(to + done, to, next, cudaMemcpyDeviceToDevice, q->stream),
                         "filling %zu bytes on cuda:%d", bytes, q->device->index));
    }
    return LAP_OK;
}

lap_status lap_cuda_buffer_fill(void *queue, void *buffer, size_t offset, size_t bytes,
                                uint32_t pattern, lap_error *err) {
    lap_cuda_queue *q = queue;
    char *to = (char *)((lap_cuda_buffer *)buffer)->pointer + offset;
    LAP_TRY(lap_cuda_use(q->device, err));
    int low = (int)(pattern & 0xffu);
    if (pattern != (pattern & 0xffu) * 0x01010101u) return fill_words(q, to, bytes, pattern, err);
    return LAP_CUDA(err, cudaMemsetAsync(to, low, bytes, q->stream), "filling %zu bytes on cuda:%d",
                    bytes, q->device->index);
}
