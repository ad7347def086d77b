/* Device memory. The driver may hand it out lazily: making a buffer too large can succeed and the
 * first command that uses it fail. That is left as it is (touching every page would cost more than
 * it tells); both places report LAP_E_OOM.
 */
#include "opencl.h"

#include <stdlib.h>

static lap_cl_buffer *new_buffer(lap_cl_device *device, lap_error *err) {
    lap_cl_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer) {
        (void)LAP_FAIL(err, LAP_E_NOMEM, "making a buffer: no memory");
        return NULL;
    }
    buffer->device = device;
    buffer->id = ++device->next_id;
    return buffer;
}

lap_status lap_cl_buffer_new(void *handle, size_t bytes, void **out, lap_error *err) {
    lap_cl_device *device = handle;
    *out = NULL;
    lap_cl_buffer *buffer = new_buffer(device, err);
    if (!buffer) return LAP_E_NOMEM;
    cl_int code;
    lap_status status = LAP_CL(
        err, LAP_CL_ALLOC, "making the buffer",
        (buffer->memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE, bytes, NULL, &code),
         code));
    if (status != LAP_OK) {
        lap_error_prefix(err, "allocating %zu bytes: ", bytes);
        free(buffer);
        return status;
    }
    *out = buffer;
    return LAP_OK;
}

lap_status lap_cl_buffer_view(void *handle, size_t offset, size_t bytes, void **out,
                              lap_error *err) {
    lap_cl_buffer *parent = handle;
    *out = NULL;
    lap_cl_buffer *buffer = new_buffer(parent->device, err);
    if (!buffer) return LAP_E_NOMEM;
    cl_buffer_region region = {.origin = offset, .size = bytes};
    cl_int code;
    lap_status status =
        LAP_CL(err, LAP_CL_ALLOC, "making the sub-buffer",
               (buffer->memory = clCreateSubBuffer(parent->memory, CL_MEM_READ_WRITE,
                                                   CL_BUFFER_CREATE_TYPE_REGION, &region, &code),
                code));
    if (status != LAP_OK) {
        lap_error_prefix(err, "view of %zu bytes at offset %zu: ", bytes, offset);
        free(buffer);
        return status;
    }
    *out = buffer;
    return LAP_OK;
}

void lap_cl_buffer_free(void *handle) {
    lap_cl_buffer *buffer = handle;
    if (!buffer) return;
    LAP_CL_IGNORE(clReleaseMemObject(buffer->memory));
    free(buffer);
}

/* Blocking copies also report what went wrong in commands before them: hence LAP_CL_WAIT. */
static lap_status write_buffer(lap_cl_queue *queue, lap_cl_buffer *buffer, bool wait, size_t offset,
                               const void *data, size_t bytes, lap_error *err) {
    cl_event event = NULL;
    lap_status status = LAP_CL(err, wait ? LAP_CL_WAIT : LAP_CL_ENQUEUE, "writing a buffer",
                               clEnqueueWriteBuffer(queue->handle, buffer->memory, wait, offset,
                                                    bytes, data, 0, NULL, &event));
    if (status == LAP_OK)
        lap_cl_queue_push(queue, event);
    else
        lap_error_prefix(err, "%zu bytes at offset %zu: ", bytes, offset);
    return status;
}

static lap_status read_buffer(lap_cl_queue *queue, lap_cl_buffer *buffer, bool wait, size_t offset,
                              void *data, size_t bytes, lap_error *err) {
    cl_event event = NULL;
    lap_status status = LAP_CL(err, wait ? LAP_CL_WAIT : LAP_CL_ENQUEUE, "reading a buffer",
                               clEnqueueReadBuffer(queue->handle, buffer->memory, wait, offset,
                                                   bytes, data, 0, NULL, &event));
    if (status == LAP_OK)
        lap_cl_queue_push(queue, event);
    else
        lap_error_prefix(err, "%zu bytes at offset %zu: ", bytes, offset);
    return status;
}

lap_status lap_cl_buffer_write(void *queue, void *buffer, size_t offset, const void *data,
                               size_t bytes, lap_error *err) {
    return write_buffer(queue, buffer, true, offset, data, bytes, err);
}

lap_status lap_cl_buffer_read(void *queue, void *buffer, size_t offset, void *data, size_t bytes,
                              lap_error *err) {
    return read_buffer(queue, buffer, true, offset, data, bytes, err);
}

lap_status lap_cl_buffer_write_async(void *queue, void *buffer, size_t offset, const void *data,
                                     size_t bytes, lap_error *err) {
    return write_buffer(queue, buffer, false, offset, data, bytes, err);
}

lap_status lap_cl_buffer_read_async(void *queue, void *buffer, size_t offset, void *data,
                                    size_t bytes, lap_error *err) {
    return read_buffer(queue, buffer, false, offset, data, bytes, err);
}

lap_status lap_cl_buffer_fill(void *queue_handle, void *buffer_handle, size_t offset, size_t bytes,
                              uint32_t pattern, lap_error *err) {
    lap_cl_queue *queue = queue_handle;
    lap_cl_buffer *buffer = buffer_handle;
    cl_event event = NULL;
    lap_status status = LAP_CL(err, LAP_CL_ENQUEUE, "filling a buffer",
                               clEnqueueFillBuffer(queue->handle, buffer->memory, &pattern,
                                                   sizeof pattern, offset, bytes, 0, NULL, &event));
    if (status == LAP_OK)
        lap_cl_queue_push(queue, event);
    else
        lap_error_prefix(err, "%zu bytes at offset %zu: ", bytes, offset);
    return status;
}
