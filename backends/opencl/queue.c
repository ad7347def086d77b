/* In-order queues whose commands carry time stamps, and the bookkeeping that events rest on.
 *
 * Commands get a cl_event, but for launches that nothing is recorded next to: a stamp costs the
 * device and the host something. The queue owns the newest one; records own the ones next to them;
 * all others are released at once, so that the driver can drop them.
 */
#include "opencl.h"

#include <stdlib.h>

lap_status lap_cl_queue_new(void *handle, void **out, lap_error *err) {
    lap_cl_device *device = handle;
    *out = NULL;
    lap_cl_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return LAP_FAIL(err, LAP_E_NOMEM, "making a queue: no memory");
    queue->device = device;
    queue->id = ++device->next_id;

    cl_int code;
    lap_status status = LAP_CL(err, LAP_CL_OPEN, "making a profiling queue",
                               (queue->handle = clCreateCommandQueue(
                                    device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code),
                                code));
    if (code == CL_INVALID_QUEUE_PROPERTIES || code == CL_INVALID_VALUE) {
        /* Some drivers have no profiling. Work without: event_elapsed then says why. */
        queue->profiling_code = code;
        status = LAP_CL(
            err, LAP_CL_OPEN, "making a queue without profiling",
            (queue->handle = clCreateCommandQueue(device->context, device->id, 0, &code), code));
        if (status == LAP_OK) lap_error_clear(err);
    }
    if (status != LAP_OK) {
        free(queue);
        return status;
    }
    *out = queue;
    return LAP_OK;
}

void lap_cl_queue_free(void *handle) {
    lap_cl_queue *queue = handle;
    if (!queue) return;
    LAP_CL_IGNORE(clFinish(queue->handle));
    while (queue->pending)
        lap_cl_event_unlink(queue->pending);
    if (queue->last) LAP_CL_IGNORE(clReleaseEvent(queue->last));
    LAP_CL_IGNORE(clReleaseCommandQueue(queue->handle));
    free(queue);
}

lap_status lap_cl_queue_finish(void *handle, lap_error *err) {
    lap_cl_queue *queue = handle;
    return LAP_CL(err, LAP_CL_WAIT, "waiting for the queue", clFinish(queue->handle));
}

lap_status lap_cl_queue_flush(void *handle, lap_error *err) {
    lap_cl_queue *queue = handle;
    return LAP_CL(err, LAP_CL_ENQUEUE, "starting the queue", clFlush(queue->handle));
}

void lap_cl_queue_push(lap_cl_queue *queue, cl_event event) {
    queue->commands++;
    while (queue->pending) {
        lap_cl_event *record = queue->pending;
        lap_cl_event_unlink(record);
        if (event && LAP_CL(NULL, LAP_CL_ENQUEUE, "", clRetainEvent(event)) == LAP_OK)
            record->after = event;
    }
    if (queue->last) LAP_CL_IGNORE(clReleaseEvent(queue->last));
    queue->last = event;
    queue->barrier = false;
}
