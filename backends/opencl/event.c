/* Events: points between two commands of a queue.
 *
 * No stamps of markers and barriers: on several drivers they are zero, missing or out of order. A
 * record keeps the cl_event of the command before it and is given that of the command after it;
 * both are real commands with real stamps. Differences are taken of unsigned 64-bit nanoseconds
 * only after every way in which they could be wrong was tested, so no giant or zero time leaves.
 */
#include "opencl.h"

#include <inttypes.h>
#include <stdlib.h>

lap_status lap_cl_event_new(void *device, void **out, lap_error *err) {
    (void)device;
    lap_cl_event *event = calloc(1, sizeof *event);
    *out = event;
    if (!event) return LAP_FAIL(err, LAP_E_NOMEM, "making an event: no memory");
    return LAP_OK;
}

void lap_cl_event_unlink(lap_cl_event *event) {
    if (!event->waiting) return;
    lap_cl_event **link = &event->waiting->pending;
    while (*link && *link != event)
        link = &(*link)->next;
    if (*link) *link = event->next;
    event->next = NULL;
    event->waiting = NULL;
}

static void forget(lap_cl_event *event) {
    lap_cl_event_unlink(event);
    if (event->before) LAP_CL_IGNORE(clReleaseEvent(event->before));
    if (event->after) LAP_CL_IGNORE(clReleaseEvent(event->after));
    *event = (lap_cl_event){0};
}

void lap_cl_event_free(void *handle) {
    if (!handle) return;
    forget(handle);
    free(handle);
}

/* Something to wait for behind a command that has no event. */
static lap_status place_barrier(lap_cl_queue *queue, lap_error *err) {
    LAP_TRY(LAP_CL(err, LAP_CL_ENQUEUE, "recording an event",
                   clEnqueueBarrierWithWaitList(queue->handle, 0, NULL, &queue->last)));
    queue->barrier = queue->last != NULL;
    return LAP_OK;
}

lap_status lap_cl_event_record(void *handle, void *queue_handle, lap_error *err) {
    lap_cl_event *event = handle;
    lap_cl_queue *queue = queue_handle;
    forget(event);
    if (!queue->last && queue->commands > 0) LAP_TRY(place_barrier(queue, err));
    if (queue->last) {
        LAP_TRY(LAP_CL(err, LAP_CL_ENQUEUE, "recording an event", clRetainEvent(queue->last)));
        event->before = queue->last;
    }
    event->recorded = true;
    event->barrier = queue->barrier;
    event->queue_id = queue->id;
    event->profiling_code = queue->profiling_code;
    event->position = queue->commands;
    event->waiting = queue;
    event->next = queue->pending;
    queue->pending = event;
    return LAP_OK;
}

/* A barrier with one event to wait for. It gets no event of its own: its stamps would be none. */
lap_status lap_cl_queue_wait_event(void *queue_handle, void *handle, lap_error *err) {
    lap_cl_queue *queue = queue_handle;
    lap_cl_event *event = handle;
    if (!event->recorded)
        return LAP_FAIL(err, LAP_E_ARG, "waiting for an event that was never recorded");
    if (!event->before) return LAP_OK; /* nothing was enqueued before the record */
    /* A command that was never flushed may never start: the other queue would wait for ever. */
    cl_command_queue other = NULL;
    LAP_TRY(
        LAP_CL(err, LAP_CL_ENQUEUE, "asking an event's queue",
               clGetEventInfo(event->before, CL_EVENT_COMMAND_QUEUE, sizeof other, &other, NULL)));
    if (other && other != queue->handle)
        LAP_TRY(LAP_CL(err, LAP_CL_ENQUEUE, "starting the queue waited for", clFlush(other)));
    return LAP_CL(err, LAP_CL_ENQUEUE, "waiting for another queue",
                  clEnqueueBarrierWithWaitList(queue->handle, 1, &event->before, NULL));
}

/* The status of one command: negative when it failed. CL_COMPLETE when the driver will not say: its
 * stamps then decide. */
static cl_int command_status(cl_event event) {
    cl_int status = CL_COMPLETE;
    if (LAP_CL(NULL, LAP_CL_QUERY, "asking a command's status",
               clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                              NULL)) != LAP_OK)
        return CL_COMPLETE;
    return status;
}

lap_status lap_cl_event_wait(void *handle, lap_error *err) {
    lap_cl_event *event = handle;
    if (!event->recorded)
        return LAP_FAIL(err, LAP_E_ARG, "waiting for an event that was never recorded");
    if (!event->before) return LAP_OK; /* nothing was enqueued before the record */
    cl_int code;
    LAP_CL_IGNORE((code = clWaitForEvents(1, &event->before)));
    /* -14 only says that the command failed; its own status says how. */
    if (code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
        cl_int status = command_status(event->before);
        if (status < 0) code = status;
    }
    return lap_cl_check(err, LAP_CL_WAIT, "waiting for an event", "clWaitForEvents", code, __FILE__,
                        __LINE__);
}

/* Read one stamp of a command that is said to be done. */
static lap_status read_stamp(cl_event event, cl_profiling_info which, const char *name,
                             uint64_t *stamp, lap_error *err) {
    cl_int status = command_status(event);
    if (status < 0)
        return lap_cl_check(err, LAP_CL_WAIT, "a timed command", "clGetEventInfo", status, __FILE__,
                            __LINE__);
    if (status != CL_COMPLETE)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "a timed command is not done yet (status %d): wait for it first", status);
    cl_ulong value = 0;
    lap_status result = LAP_CL(err, LAP_CL_TIMER, "reading a time stamp",
                               clGetEventProfilingInfo(event, which, sizeof value, &value, NULL));
    if (result != LAP_OK) {
        lap_error_prefix(err, "%s stamp: ", name);
        return result;
    }
    if (value == 0)
        return LAP_FAIL(err, LAP_E_TIMER, "the driver gave a %s stamp of zero: it has no time",
                        name);
    *stamp = value;
    return LAP_OK;
}

static lap_status check_pair(const lap_cl_event *a, const lap_cl_event *b, lap_error *err) {
    if (!a->recorded || !b->recorded)
        return LAP_FAIL(err, LAP_E_TIMER, "the %s event was never recorded",
                        a->recorded ? "second" : "first");
    if (a->queue_id != b->queue_id)
        return LAP_FAIL(err, LAP_E_TIMER, "the two events are of different queues");
    if (a->position > b->position)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "the events are in reversed order: the first must be recorded first");
    if (a->position == b->position)
        return LAP_FAIL(err, LAP_E_TIMER, "there is no command between the two events");
    if (a->profiling_code != CL_SUCCESS)
        return lap_fail_native_at(err, LAP_E_TIMER, __FILE__, __LINE__, "clCreateCommandQueue",
                                  a->profiling_code, lap_cl_error_name(a->profiling_code),
                                  "the driver refused a queue with time stamps");
    if (!a->after || !b->before || b->barrier)
        return LAP_FAIL(err, LAP_E_TIMER, "the driver gave no event for a timed command");
    return LAP_OK;
}

lap_status lap_cl_event_elapsed(void *a_handle, void *b_handle, double *seconds, lap_error *err) {
    const lap_cl_event *a = a_handle, *b = b_handle;
    *seconds = 0;
    LAP_TRY(check_pair(a, b, err));
    uint64_t start = 0, end = 0;
    LAP_TRY(read_stamp(a->after, CL_PROFILING_COMMAND_START, "start", &start, err));
    LAP_TRY(read_stamp(b->before, CL_PROFILING_COMMAND_END, "end", &end, err));
    if (end < start)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "reversed stamps: the end (%" PRIu64 " ns) is before the start (%" PRIu64
                        " ns)",
                        end, start);
    if (end == start)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "start and end have the same stamp (%" PRIu64 " ns): too short for this "
                        "device's timer",
                        start);
    *seconds = (double)(end - start) * 1e-9;
    return LAP_OK;
}
