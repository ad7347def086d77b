/* The wrappers over a backend's table for time stamps and graphs. A pair of events that cannot give
 * a time (other queue, reversed, nothing between) is refused here, so that no backend can turn it
 * into a number. */
#include "device/objects.h"

#include <math.h>
#include <stdlib.h>

lap_status lap_event_new(lap_device *device, lap_event **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_event_new: out is NULL");
    *out = NULL;
    if (!device) return LAP_FAIL(err, LAP_E_ARG, "lap_event_new: device is NULL");
    lap_event *event = calloc(1, sizeof *event);
    if (!event) return LAP_FAIL(err, LAP_E_NOMEM, "lap_event_new: out of memory");
    event->device = device;
    lap_status status = lap_call_enter(device, "lap_event_new", err);
    if (status == LAP_OK)
        status = lap_call_leave(device, "lap_event_new",
                                device->ops->event_new(device->handle, &event->handle, err));
    if (status != LAP_OK) {
        free(event);
        return status;
    }
    device->events++;
    *out = event;
    return LAP_OK;
}

void lap_event_free(lap_event *event) {
    if (!event) return;
    event->device->ops->event_free(event->handle);
    event->device->events--;
    free(event);
}

lap_status lap_event_record(lap_event *event, lap_queue *queue, lap_error *err) {
    static const char call[] = "lap_event_record";
    if (!event || !queue) return LAP_FAIL(err, LAP_E_ARG, "%s: event or queue is NULL", call);
    if (event->device != queue->device)
        return LAP_FAIL(err, LAP_E_ARG, "%s: the event is of %s, the queue on %s", call,
                        event->device->info.selector, queue->device->info.selector);
    LAP_TRY(lap_queue_check_idle(queue, call, err));
    event->recorded = false; /* whatever happens next, the old stamp is gone */
    LAP_TRY(lap_call_enter(event->device, call, err));
    LAP_TRY(lap_call_leave(event->device, call,
                           event->device->ops->event_record(event->handle, queue->handle, err)));
    event->recorded = true;
    event->queue_id = queue->id;
    event->commands = queue->commands;
    event->unstamped = queue->unstamped;
    event->mark = ++queue->marks;
    return LAP_OK;
}

lap_status lap_queue_wait_event(lap_queue *queue, lap_event *event, lap_error *err) {
    static const char call[] = "lap_queue_wait_event";
    if (!queue || !event) return LAP_FAIL(err, LAP_E_ARG, "%s: queue or event is NULL", call);
    if (event->device != queue->device)
        return LAP_FAIL(err, LAP_E_ARG, "%s: the event is of %s, the queue on %s", call,
                        event->device->info.selector, queue->device->info.selector);
    if (!event->recorded) return LAP_FAIL(err, LAP_E_ARG, "%s: the event was never recorded", call);
    LAP_TRY(lap_queue_check_idle(queue, call, err));
    if (!lap_device_has_async(queue->device))
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s: queues of %s cannot wait for each other", call,
                        queue->device->ops->name);
    LAP_TRY(lap_call_enter(queue->device, call, err));
    return lap_call_leave(queue->device, call,
                          queue->device->ops->queue_wait_event(queue->handle, event->handle, err));
}

lap_status lap_event_wait(lap_event *event, lap_error *err) {
    static const char call[] = "lap_event_wait";
    if (!event) return LAP_FAIL(err, LAP_E_ARG, "%s: event is NULL", call);
    if (!event->recorded) return LAP_FAIL(err, LAP_E_ARG, "%s: the event was never recorded", call);
    LAP_TRY(lap_call_enter(event->device, call, err));
    return lap_call_leave(event->device, call, event->device->ops->event_wait(event->handle, err));
}

static lap_status check_pair(const lap_event *a, const lap_event *b, lap_error *err) {
    static const char call[] = "lap_event_elapsed";
    if (a->device != b->device)
        return LAP_FAIL(err, LAP_E_ARG, "%s: the events are of two devices, %s and %s", call,
                        a->device->info.selector, b->device->info.selector);
    if (!a->recorded || !b->recorded)
        return LAP_FAIL(err, LAP_E_TIMER, "%s: the %s event was not recorded", call,
                        a->recorded ? "second" : "first");
    if (a->queue_id != b->queue_id)
        return LAP_FAIL(err, LAP_E_ARG, "%s: the events were recorded on two queues", call);
    if (a->mark >= b->mark)
        return LAP_FAIL(err, LAP_E_TIMER, "%s: the first event was not recorded before the second",
                        call);
    if (a->commands == b->commands)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "%s: no command lies between the events, so there is no time to tell",
                        call);
    if (b->unstamped)
        return LAP_FAIL(err, LAP_E_TIMER,
                        "%s: the launch before the second event was to have no time stamp", call);
    return LAP_OK;
}

lap_status lap_event_elapsed(const lap_event *a, const lap_event *b, double *seconds,
                             lap_error *err) {
    static const char call[] = "lap_event_elapsed";
    if (seconds) *seconds = 0;
    if (!a || !b || !seconds) return LAP_FAIL(err, LAP_E_ARG, "%s: an argument is NULL", call);
    LAP_TRY(check_pair(a, b, err));
    LAP_TRY(lap_call_enter(a->device, call, err));
    double span = 0;
    LAP_TRY(lap_call_leave(a->device, call,
                           a->device->ops->event_elapsed(a->handle, b->handle, &span, err)));
    if (!isfinite(span) || !(span > 0))
        return LAP_FAIL(err, LAP_E_TIMER, "%s: %s gave %g s between two events, not a time", call,
                        a->device->ops->name, span);
    *seconds = span;
    return LAP_OK;
}

/* ---- graphs --------------------------------------------------------------------------------- */

bool lap_device_has_graphs(const lap_device *device) {
    if (!device) return false;
    const lap_device_ops *ops = device->ops;
    return ops->graph_begin && ops->graph_end && ops->graph_launch && ops->graph_free;
}

static lap_status need_graphs(const lap_device *device, lap_error *err) {
    if (lap_device_has_graphs(device)) return LAP_OK;
    return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s has no graphs", device->ops->name);
}

lap_status lap_graph_begin(lap_queue *queue, lap_error *err) {
    static const char call[] = "lap_graph_begin";
    if (!queue) return LAP_FAIL(err, LAP_E_ARG, "%s: queue is NULL", call);
    LAP_TRY(need_graphs(queue->device, err));
    LAP_TRY(lap_queue_check_idle(queue, call, err));
    LAP_TRY(lap_call_enter(queue->device, call, err));
    LAP_TRY(
        lap_call_leave(queue->device, call, queue->device->ops->graph_begin(queue->handle, err)));
    queue->capturing = true;
    return LAP_OK;
}

lap_status lap_graph_end(lap_queue *queue, lap_graph **out, lap_error *err) {
    static const char call[] = "lap_graph_end";
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "%s: out is NULL", call);
    *out = NULL;
    if (!queue) return LAP_FAIL(err, LAP_E_ARG, "%s: queue is NULL", call);
    lap_device *device = queue->device;
    LAP_TRY(need_graphs(device, err));
    if (!queue->capturing)
        return LAP_FAIL(err, LAP_E_ARG, "%s: the queue is not recording; call lap_graph_begin",
                        call);
    lap_graph *graph = calloc(1, sizeof *graph);
    lap_status status = graph ? lap_call_enter(device, call, err)
                              : LAP_FAIL(err, LAP_E_NOMEM, "%s: out of memory", call);
    /* The backend's recording ends whatever happened, or the queue would stay unusable. */
    void *handle = NULL;
    lap_status ended = device->ops->graph_end(queue->handle, &handle, status ? NULL : err);
    queue->capturing = false;
    if (status == LAP_OK) {
        status = lap_call_leave(device, call, ended);
    } else if (ended == LAP_OK) {
        device->ops->graph_free(handle);
    }
    if (status != LAP_OK) {
        free(graph);
        return status;
    }
    graph->device = device;
    graph->handle = handle;
    device->graphs++;
    *out = graph;
    return LAP_OK;
}

lap_status lap_graph_launch(lap_graph *graph, lap_queue *queue, lap_error *err) {
    static const char call[] = "lap_graph_launch";
    if (!graph || !queue) return LAP_FAIL(err, LAP_E_ARG, "%s: graph or queue is NULL", call);
    if (graph->device != queue->device)
        return LAP_FAIL(err, LAP_E_ARG, "%s: the graph is of %s, the queue on %s", call,
                        graph->device->info.selector, queue->device->info.selector);
    LAP_TRY(lap_queue_check_idle(queue, call, err));
    LAP_TRY(lap_call_enter(queue->device, call, err));
    LAP_TRY(lap_call_leave(queue->device, call,
                           queue->device->ops->graph_launch(graph->handle, queue->handle, err)));
    queue->commands++;
    queue->unstamped = false;
    return LAP_OK;
}

void lap_graph_free(lap_graph *graph) {
    if (!graph) return;
    graph->device->ops->graph_free(graph->handle);
    graph->device->graphs--;
    free(graph);
}
