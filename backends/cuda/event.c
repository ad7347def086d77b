/* Events: a point of a stream between two commands, stamped by the device when it passes there.
 * An interval that could be anything but a real one is an error, never a number: a launch that
 * failed leaves stamps 0 ms apart, which would look like infinite speed.
 */
#include "cuda_backend.h"

#include <math.h>
#include <stdlib.h>

lap_status lap_cuda_event_new(void *device, void **event, lap_error *err) {
    *event = NULL;
    lap_cuda_device *d = device;
    LAP_TRY(lap_cuda_use(d, err));
    lap_cuda_event *e = calloc(1, sizeof *e);
    if (!e) return LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for an event", d->index);
    e->device = d;
    lap_status status =
        LAP_CUDA(err, cudaEventCreate(&e->event), "making an event on cuda:%d", d->index);
    if (status != LAP_OK) {
        free(e);
        return status;
    }
    *event = e;
    return LAP_OK;
}

void lap_cuda_event_free(void *event) {
    lap_cuda_event *e = event;
    if (!e) return;
    (void)lap_cuda_use(e->device, NULL);
    LAP_CUDA_IGNORE(cudaEventDestroy(e->event));
    free(e);
}

lap_status lap_cuda_event_record(void *event, void *queue, lap_error *err) {
    lap_cuda_event *e = event;
    lap_cuda_queue *q = queue;
    LAP_TRY(lap_cuda_not_capturing(q, "recording an event", err));
    LAP_TRY(lap_cuda_use(q->device, err));
    e->recorded = false; /* a failed record must not leave the stamp of the last one */
    LAP_TRY(LAP_CUDA(err, cudaEventRecord(e->event, q->stream), "recording an event on cuda:%d",
                     q->device->index));
    e->recorded = true;
    return LAP_OK;
}

lap_status lap_cuda_event_wait(void *event, lap_error *err) {
    lap_cuda_event *e = event;
    if (!e->recorded)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "cuda:%d: waiting for an event that was never recorded; record it first",
                        e->device->index);
    LAP_TRY(lap_cuda_use(e->device, err));
    return LAP_CUDA(err, cudaEventSynchronize(e->event), "waiting for an event of cuda:%d",
                    e->device->index);
}

lap_status lap_cuda_queue_wait_event(void *queue, void *event, lap_error *err) {
    lap_cuda_queue *q = queue;
    lap_cuda_event *e = event;
    LAP_TRY(lap_cuda_not_capturing(q, "waiting for another stream", err));
    if (!e->recorded)
        return LAP_FAIL(err, LAP_E_ARG,
                        "cuda:%d: a stream cannot wait for an event that was never recorded",
                        e->device->index);
    LAP_TRY(lap_cuda_use(q->device, err));
    return LAP_CUDA(err, cudaStreamWaitEvent(q->stream, e->event, 0),
                    "making a stream of cuda:%d wait for another", q->device->index);
}

lap_status lap_cuda_event_elapsed(void *a, void *b, double *seconds, lap_error *err) {
    lap_cuda_event *first = a, *last = b;
    int index = first->device->index;
    *seconds = 0;
    if (!first->recorded || !last->recorded)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "cuda:%d: the %s event of the interval was never recorded; record both",
                        index, first->recorded ? "second" : "first");
    LAP_TRY(lap_cuda_use(first->device, err));
    float ms = 0;
    cudaError_t code = cudaEventElapsedTime(&ms, first->event, last->event);
    if (code != cudaSuccess) {
        lap_status status =
            lap_cuda_check(code, "cudaEventElapsedTime", __FILE__, __LINE__, err,
                           "cuda:%d: the time between two events%s", index,
                           code == cudaErrorNotReady ? " (wait for the second one first)" : "");
        if (status == LAP_E_DEVICE) return status;
        if (err) err->status = LAP_E_TIMER;
        return LAP_E_TIMER;
    }
    double value = (double)ms * 1e-3;
    if (!isfinite(value) || !(value > 0))
        return LAP_FAIL(err, LAP_E_TIMER,
                        "cuda:%d: the device says %g ms between two events; a time must be "
                        "positive and finite: the events were recorded in the wrong order, nothing "
                        "ran between them, or the device's timer is broken",
                        index, (double)ms);
    *seconds = value;
    return LAP_OK;
}
