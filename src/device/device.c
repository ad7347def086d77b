/* The wrappers over a backend's table: devices, queues and kernel launches (builds are in build.c,
 * memory in buffer.c, time stamps and graphs in event.c). They check arguments, keep live counts
 * and inject faults, so that no backend has to; they never do a backend's work. */
#include "device/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lap_device_type_name(lap_device_type type) {
    switch (type) {
    case LAP_DEVICE_GPU:
        return "gpu";
    case LAP_DEVICE_CPU:
        return "cpu";
    case LAP_DEVICE_ACCELERATOR:
        return "accelerator";
    case LAP_DEVICE_OTHER:
        break;
    }
    return "other";
}

/* ---- the two steps around a backend call ---------------------------------------------------- */

lap_status lap_call_enter(lap_device *device, const char *call, lap_error *err) {
    /* A device fault is sticky on every API; here it is so even where a driver pretends otherwise,
     * because whatever is measured after a fault cannot be trusted. */
    if (device->lost)
        return LAP_FAIL(err, LAP_E_DEVICE, "%s: %s (%s) is lost since %s failed; open it anew",
                        call, device->info.selector, device->info.name, device->lost);
    return lap_call_leave(device, call, lap_fault_check(call, err));
}

lap_status lap_call_leave(lap_device *device, const char *call, lap_status status) {
    if (status == LAP_E_DEVICE && !device->lost) device->lost = call;
    return status;
}

/* ---- devices -------------------------------------------------------------------------------- */

lap_status lap_device_open(const lap_device_info *info, lap_device **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_device_open: out is NULL");
    *out = NULL;
    if (!info) return LAP_FAIL(err, LAP_E_ARG, "lap_device_open: info is NULL");
    LAP_TRY(lap_fault_config(err));
    const lap_device_ops *ops = lap_registry_find(info->backend);
    if (!ops || !ops->open)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s: this build has no backend \"%s\"",
                        info->selector, info->backend);
    lap_device *device = calloc(1, sizeof *device);
    if (!device) return LAP_FAIL(err, LAP_E_NOMEM, "opening %s: out of memory", info->selector);
    device->ops = ops;
    device->info = *info;
    if (device->info.base_align_bytes == 0) device->info.base_align_bytes = 1;
    lap_status status = lap_fault_check("lap_device_open", err);
    if (status == LAP_OK) status = ops->open(&device->info, &device->handle, err);
    if (status != LAP_OK) {
        free(device);
        return status;
    }
    *out = device;
    return LAP_OK;
}

lap_status lap_device_close(lap_device *device, lap_error *err) {
    if (!device) return LAP_OK;
    if (device->queues || device->buffers || device->pinned || device->kernels || device->events ||
        device->graphs)
        return LAP_FAIL(err, LAP_E_INTERNAL,
                        "closing %s with live objects: %zu queues, %zu buffers, %zu kernels, %zu "
                        "events, %zu graphs, %zu pieces of pinned memory; free them first",
                        device->info.selector, device->queues, device->buffers, device->kernels,
                        device->events, device->graphs, device->pinned);
    device->ops->close(device->handle);
    free(device);
    return LAP_OK;
}

const lap_device_info *lap_device_get_info(const lap_device *device) {
    return device ? &device->info : NULL;
}

lap_status lap_device_memory(lap_device *device, uint64_t *free_bytes, uint64_t *total_bytes,
                             lap_error *err) {
    if (!device || !free_bytes || !total_bytes)
        return LAP_FAIL(err, LAP_E_ARG, "lap_device_memory: an argument is NULL");
    *free_bytes = *total_bytes = 0;
    if (!device->ops->memory)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s cannot tell how much memory is free",
                        device->ops->name);
    LAP_TRY(lap_call_enter(device, "lap_device_memory", err));
    uint64_t have = 0, total = 0;
    LAP_TRY(lap_call_leave(device, "lap_device_memory",
                           device->ops->memory(device->handle, &have, &total, err)));
    *free_bytes = have;
    *total_bytes = total;
    return LAP_OK;
}

/* ---- queues --------------------------------------------------------------------------------- */

lap_status lap_queue_new(lap_device *device, lap_queue **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_queue_new: out is NULL");
    *out = NULL;
    if (!device) return LAP_FAIL(err, LAP_E_ARG, "lap_queue_new: device is NULL");
    lap_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return LAP_FAIL(err, LAP_E_NOMEM, "lap_queue_new: out of memory");
    queue->device = device;
    queue->id = ++device->next_queue_id;
    lap_status status = lap_call_enter(device, "lap_queue_new", err);
    if (status == LAP_OK)
        status = lap_call_leave(device, "lap_queue_new",
                                device->ops->queue_new(device->handle, &queue->handle, err));
    if (status != LAP_OK) {
        free(queue);
        return status;
    }
    device->queues++;
    *out = queue;
    return LAP_OK;
}

void lap_queue_free(lap_queue *queue) {
    if (!queue) return;
    const lap_device_ops *ops = queue->device->ops;
    if (queue->capturing) { /* nothing can be waited for while a graph is being recorded */
        void *graph = NULL;
        if (ops->graph_end(queue->handle, &graph, NULL) == LAP_OK) ops->graph_free(graph);
    }
    (void)ops->queue_finish(queue->handle, NULL); /* commands may still use buffers */
    ops->queue_free(queue->handle);
    queue->device->queues--;
    free(queue);
}

lap_device *lap_queue_device(const lap_queue *queue) {
    return queue ? queue->device : NULL;
}

lap_status lap_queue_check_idle(const lap_queue *queue, const char *call, lap_error *err) {
    if (!queue->capturing) return LAP_OK;
    return LAP_FAIL(err, LAP_E_ARG, "%s: the queue is recording a graph; call lap_graph_end first",
                    call);
}

static lap_status drain(lap_queue *queue, const char *call, lap_status (*slot)(void *, lap_error *),
                        lap_error *err) {
    LAP_TRY(lap_queue_check_idle(queue, call, err));
    LAP_TRY(lap_call_enter(queue->device, call, err));
    return lap_call_leave(queue->device, call, slot(queue->handle, err));
}

lap_status lap_queue_finish(lap_queue *queue, lap_error *err) {
    if (!queue) return LAP_FAIL(err, LAP_E_ARG, "lap_queue_finish: queue is NULL");
    return drain(queue, "lap_queue_finish", queue->device->ops->queue_finish, err);
}

lap_status lap_queue_flush(lap_queue *queue, lap_error *err) {
    if (!queue) return LAP_FAIL(err, LAP_E_ARG, "lap_queue_flush: queue is NULL");
    return drain(queue, "lap_queue_flush", queue->device->ops->queue_flush, err);
}

/* ---- launches ------------------------------------------------------------------------------- */

static lap_status check_group(const lap_kernel *kernel, const lap_launch *launch, lap_error *err) {
    const lap_device_info *info = &kernel->device->info;
    uint64_t product = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->groups[i] == 0 || launch->local[i] == 0)
            return LAP_FAIL(err, LAP_E_ARG,
                            "launch of %s: groups and local sizes must be at least 1, dimension %d "
                            "has %u groups of %u",
                            kernel->stem, i, launch->groups[i], launch->local[i]);
        uint32_t most = info->max_group_dim[i];
        if (most != 0 && launch->local[i] > most)
            return LAP_FAIL(err, LAP_E_LAUNCH,
                            "launch of %s: local size %u in dimension %d, at most %u on %s",
                            kernel->stem, launch->local[i], i, most, info->selector);
        /* Capped: three 32-bit sizes do not fit 64 bits, and anything this large is refused. */
        if (product <= UINT32_MAX) product *= launch->local[i];
    }
    uint32_t most = kernel->info.max_group_size;
    if (most != 0 && product > most)
        return LAP_FAIL(err, LAP_E_LAUNCH,
                        "launch of %s: a group of %llu work-items, at most %u for this kernel on "
                        "%s",
                        kernel->stem, (unsigned long long)product, most, info->selector);
    return LAP_OK;
}

/* Dynamic local memory exists in one kernel language only; where it does, the opt-in is its limit.
 */
static lap_status check_dynamic(const lap_kernel *kernel, size_t bytes, lap_error *err) {
    const lap_device_info *info = &kernel->device->info;
    if (bytes == 0) return LAP_OK;
    if (strcmp(info->language, "cu") != 0)
        return LAP_FAIL(err, LAP_E_ARG,
                        "launch of %s: %zu bytes of dynamic local memory, must be 0 on %s",
                        kernel->stem, bytes, info->backend);
    uint64_t most =
        info->local_optin_bytes > info->local_bytes ? info->local_optin_bytes : info->local_bytes;
    if (most != 0 && bytes > most)
        return LAP_FAIL(err, LAP_E_LAUNCH,
                        "launch of %s: %zu bytes of dynamic local memory, at most %llu on %s",
                        kernel->stem, bytes, (unsigned long long)most, info->selector);
    return LAP_OK;
}

static lap_status translate_args(const lap_queue *queue, const lap_launch *launch,
                                 lap_raw_launch *raw, lap_error *err) {
    const char *stem = launch->kernel->stem;
    if (launch->arg_count > LAP_MAX_ARGS)
        return LAP_FAIL(err, LAP_E_ARG, "launch of %s: %zu arguments, at most %d", stem,
                        launch->arg_count, LAP_MAX_ARGS);
    if (launch->arg_count > 0 && !launch->args)
        return LAP_FAIL(err, LAP_E_ARG, "launch of %s: args is NULL, arg_count is %zu", stem,
                        launch->arg_count);
    for (size_t i = 0; i < launch->arg_count; i++) {
        const lap_arg *arg = &launch->args[i];
        if (arg->kind != LAP_ARG_BUFFER && arg->kind != LAP_ARG_I32)
            return LAP_FAIL(err, LAP_E_ARG, "launch of %s: argument %zu has the unknown kind %d",
                            stem, i, (int)arg->kind);
        raw->args[i].kind = arg->kind;
        if (arg->kind == LAP_ARG_I32) {
            raw->args[i].i32 = arg->i32;
        } else if (arg->buffer) {
            if (arg->buffer->device != queue->device)
                return LAP_FAIL(err, LAP_E_ARG,
                                "launch of %s: argument %zu is a buffer of another device (%s, the "
                                "queue is on %s)",
                                stem, i, arg->buffer->device->info.selector,
                                queue->device->info.selector);
            raw->args[i].buffer = arg->buffer->handle;
        }
    }
    raw->arg_count = launch->arg_count;
    return LAP_OK;
}

lap_status lap_enqueue(lap_queue *queue, const lap_launch *launch, lap_error *err) {
    if (!queue || !launch || !launch->kernel)
        return LAP_FAIL(err, LAP_E_ARG, "lap_enqueue: queue, launch or its kernel is NULL");
    const lap_kernel *kernel = launch->kernel;
    if (kernel->device != queue->device)
        return LAP_FAIL(err, LAP_E_ARG,
                        "launch of %s: the kernel was built for %s, the queue is on %s",
                        kernel->stem, kernel->device->info.selector, queue->device->info.selector);
    LAP_TRY(check_group(kernel, launch, err));
    LAP_TRY(check_dynamic(kernel, launch->dynamic_local_bytes, err));
    lap_raw_launch raw = {.dynamic_local_bytes = launch->dynamic_local_bytes,
                          .overlap = launch->overlap,
                          .unstamped = launch->unstamped};
    memcpy(raw.groups, launch->groups, sizeof raw.groups);
    memcpy(raw.local, launch->local, sizeof raw.local);
    LAP_TRY(translate_args(queue, launch, &raw, err));
    LAP_TRY(lap_call_enter(queue->device, "lap_enqueue", err));
    LAP_TRY(lap_call_leave(queue->device, "lap_enqueue",
                           queue->device->ops->enqueue(queue->handle, kernel->handle, &raw, err)));
    if (queue->capturing) return LAP_OK;
    queue->commands++;
    queue->unstamped = launch->unstamped;
    return LAP_OK;
}
