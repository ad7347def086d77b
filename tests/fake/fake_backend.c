/* The fake backend's table: devices, queues, memory, events and graphs; fake_run.c runs commands.
 * See fake_backend.h for what can be scripted. Relies on the wrappers for argument checks, as a
 * real backend does. */
#include "fake_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RED_ZONE = 256, RED_BYTE = 0xA5 };

/* ---- devices and queues --------------------------------------------------------------------- */

static void fake_version(char *buffer, size_t size) {
    snprintf(buffer, size, "Fake 1.0");
}

static lap_status fake_enumerate(lap_list_builder *builder, lap_error *err) {
    for (size_t i = 0; i < fake.device_count && i < FAKE_MAX_DEVICES; i++)
        LAP_TRY(lap_list_add_device(builder, &fake.devices[i], err));
    if (fake.note)
        LAP_TRY(lap_list_add_note(builder, "fake", "Fake Platform B", err, "%s", fake.note));
    if (fake.enumerate_status == LAP_OK) return LAP_OK;
    return LAP_FAIL_NATIVE(err, fake.enumerate_status, "fakeEnumerate", 100, "FAKE_NO_DRIVER",
                           "fake: no driver");
}

static lap_status fake_open(const lap_device_info *info, void **device, lap_error *err) {
    if (fake.open_status != LAP_OK)
        return LAP_FAIL(err, fake.open_status, "fake: %s cannot be opened", info->selector);
    fake_device *d = calloc(1, sizeof *d);
    if (!d) return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    d->index = (size_t)info->native[0];
    fake_object_count++;
    *device = d;
    return LAP_OK;
}

static void fake_close(void *device) {
    fake_object_count--;
    free(device);
}

static lap_status fake_memory(void *device, uint64_t *free_bytes, uint64_t *total_bytes,
                              lap_error *err) {
    const fake_device *d = device;
    LAP_TRY(fake_healthy(d, "fakeMemory", err));
    *total_bytes = fake.devices[d->index].memory_bytes;
    uint64_t used = fake.used_bytes[d->index];
    *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
    return LAP_OK;
}

static lap_status fake_queue_new(void *device, void **queue, lap_error *err) {
    fake_device *d = device;
    LAP_TRY(fake_healthy(d, "fakeQueueNew", err));
    fake_queue *q = calloc(1, sizeof *q);
    if (!q) return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    static uint64_t last_id;
    q->device = d;
    q->id = ++last_id;
    q->clock = 1;
    q->next = d->queues;
    d->queues = q;
    fake_object_count++;
    *queue = q;
    return LAP_OK;
}

static void fake_queue_free(void *queue) {
    fake_queue *q = queue, **link = &q->device->queues;
    while (*link != q)
        link = &(*link)->next;
    *link = q->next;
    fake_drain(q);
    free(q->pending.items);
    fake_object_count--;
    free(q);
}

static lap_status fake_queue_finish(void *queue, lap_error *err) {
    return fake_settle(queue, "fakeQueueFinish", err);
}

static lap_status fake_queue_flush(void *queue, lap_error *err) {
    return fake_healthy(((fake_queue *)queue)->device, "fakeQueueFlush", err);
}

/* ---- memory --------------------------------------------------------------------------------- */

static lap_status fake_buffer_new(void *device, size_t bytes, void **buffer, lap_error *err) {
    fake_device *d = device;
    LAP_TRY(fake_healthy(d, "fakeBufferNew", err));
    const lap_device_info *info = &fake.devices[d->index];
    uint64_t used = fake.used_bytes[d->index];
    bool fits = used <= info->memory_bytes && bytes <= info->memory_bytes - used;
    bool single = info->max_alloc_bytes == 0 || bytes <= info->max_alloc_bytes;
    if ((!fits || !single) && !fake.lazy_memory)
        return LAP_FAIL_NATIVE(err, LAP_E_OOM, "fakeBufferNew", 2, "FAKE_OUT_OF_MEMORY",
                               "fake: no room for %zu bytes", bytes);
    fake_buffer *b = calloc(1, sizeof *b);
    bool lazy = !fits || !single;
    bool pretend = fake.pretend_bytes && bytes > fake.pretend_bytes;
    size_t held = lazy || pretend ? 1 : bytes;
    unsigned char *base = b && held < SIZE_MAX - 2 * RED_ZONE ? malloc(held + 2 * RED_ZONE) : NULL;
    if (!base) {
        free(b);
        return LAP_FAIL(err, LAP_E_OOM, "fake: no host memory for %zu bytes", bytes);
    }
    memset(base, RED_BYTE, RED_ZONE);
    memset(base + RED_ZONE + held, RED_BYTE, RED_ZONE);
    /* Fresh device memory is not zero. */
    memset(base + RED_ZONE, 0xCD, held);
    *b = (fake_buffer){
        .device = d, .data = base + RED_ZONE, .bytes = bytes, .lazy = lazy, .pretend = pretend};
    if (bytes > fake.largest_buffer) fake.largest_buffer = bytes;
    fake.used_bytes[d->index] += bytes;
    if (fake.used_bytes[d->index] > fake.peak_bytes[d->index])
        fake.peak_bytes[d->index] = fake.used_bytes[d->index];
    fake_object_count++;
    *buffer = b;
    return LAP_OK;
}

static lap_status fake_buffer_view(void *parent, size_t offset, size_t bytes, void **buffer,
                                   lap_error *err) {
    fake_buffer *p = parent, *b = calloc(1, sizeof *b);
    if (!b) return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    *b = (fake_buffer){.device = p->device,
                       .parent = p,
                       .data = p->data + (p->lazy || p->pretend ? 0 : offset),
                       .bytes = bytes,
                       .lazy = p->lazy,
                       .pretend = p->pretend};
    fake_object_count++;
    *buffer = b;
    return LAP_OK;
}

static void fake_buffer_free(void *buffer) {
    fake_buffer *b = buffer;
    fake_drain_all(b->device);
    if (!b->parent) {
        for (size_t i = 1; !b->lazy && !b->pretend && i <= RED_ZONE; i++) {
            if (b->data[-(ptrdiff_t)i] != RED_BYTE || b->data[b->bytes + i - 1] != RED_BYTE) {
                fake.red_zone_hits++;
                break;
            }
        }
        fake.used_bytes[b->device->index] -= b->bytes;
        free(b->data - RED_ZONE);
    }
    fake_object_count--;
    free(b);
}

static lap_status fake_buffer_write(void *queue, void *buffer, size_t offset, const void *data,
                                    size_t bytes, lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_settle(q, "fakeBufferWrite", err));
    LAP_TRY(fake_touch(buffer, "fakeBufferWrite", err));
    fake_buffer *b = buffer;
    if (!b->pretend) memcpy(b->data + offset, data, bytes);
    if (offset + bytes > fake.furthest_write) fake.furthest_write = offset + bytes;
    fake_advance(q, fake_copy_cost(bytes));
    fake.copies++;
    return LAP_OK;
}

static lap_status fake_buffer_read(void *queue, void *buffer, size_t offset, void *data,
                                   size_t bytes, lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_settle(q, "fakeBufferRead", err));
    LAP_TRY(fake_touch(buffer, "fakeBufferRead", err));
    const fake_buffer *b = buffer;
    if (b->pretend)
        memset(data, 0, bytes);
    else
        memcpy(data, b->data + offset, bytes);
    fake_advance(q, fake_copy_cost(bytes));
    fake.copies++;
    return LAP_OK;
}

static lap_status fake_buffer_write_async(void *queue, void *buffer, size_t offset,
                                          const void *data, size_t bytes, lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeBufferWriteAsync", err));
    LAP_TRY(fake_touch(buffer, "fakeBufferWriteAsync", err));
    if (offset + bytes > fake.furthest_write) fake.furthest_write = offset + bytes;
    fake.copies++;
    command c = {.kind = WRITE, .buffer = buffer, .offset = offset, .bytes = bytes, .from = data};
    return fake_submit(q, &c, err);
}

static lap_status fake_buffer_read_async(void *queue, void *buffer, size_t offset, void *data,
                                         size_t bytes, lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeBufferReadAsync", err));
    LAP_TRY(fake_touch(buffer, "fakeBufferReadAsync", err));
    fake.copies++;
    command c = {.kind = READ, .buffer = buffer, .offset = offset, .bytes = bytes, .to = data};
    return fake_submit(q, &c, err);
}

static lap_status fake_pinned_new(void *device, size_t bytes, void **pinned, void **data,
                                  lap_error *err) {
    LAP_TRY(fake_healthy(device, "fakePinnedNew", err));
    fake_pinned *p = calloc(1, sizeof *p);
    if (p) p->data = malloc(bytes);
    if (!p || !p->data) {
        free(p);
        return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    }
    memset(p->data, 0xCD, bytes);
    p->device = device;
    fake_object_count++;
    *pinned = p;
    *data = p->data;
    return LAP_OK;
}

static void fake_pinned_free(void *pinned) {
    fake_pinned *p = pinned;
    fake_drain_all(p->device);
    fake_object_count--;
    free(p->data);
    free(p);
}

static lap_status fake_buffer_fill(void *queue, void *buffer, size_t offset, size_t bytes,
                                   uint32_t pattern, lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeBufferFill", err));
    LAP_TRY(fake_touch(buffer, "fakeBufferFill", err));
    command c = {
        .kind = FILL, .buffer = buffer, .offset = offset, .bytes = bytes, .pattern = pattern};
    return fake_submit(q, &c, err);
}

/* ---- kernels -------------------------------------------------------------------------------- */

static lap_status fake_kernel_build(void *device, const lap_build *build, void **kernel,
                                    lap_kernel_info *info, lap_error *err) {
    fake_device *d = device;
    LAP_TRY(fake_healthy(d, "fakeKernelBuild", err));
    fake_kernel_fn fn = fake_find_kernel(build->stem, build->entry);
    bool refused = fake.fail_build_stem && strcmp(fake.fail_build_stem, build->stem) == 0;
    if (!fn || refused || build->define_count > FAKE_MAX_DEFINES)
        return LAP_FAIL_NATIVE(err, LAP_E_BUILD, "fakeKernelBuild", 3, "FAKE_BUILD_FAILURE",
                               "fake: %s:%s: %s", build->stem, build->entry,
                               fn ? "error: planted build failure" : "error: no such function");
    fake_kernel *k = calloc(1, sizeof *k);
    if (!k) return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    k->device = d;
    k->fn = fn;
    snprintf(k->stem, sizeof k->stem, "%s", build->stem);
    if (build->define_count)
        memcpy(k->defines, build->defines, build->define_count * sizeof *build->defines);
    k->define_count = build->define_count;
    const lap_device_info *own = &fake.devices[d->index];
    uint32_t most = fake.kernel_group_limit ? fake.kernel_group_limit : own->max_group_size;
    *info = (lap_kernel_info){
        .max_group_size = most, .registers = 32, .preferred_multiple = own->simd_width};
    fake.builds++;
    fake_object_count++;
    *kernel = k;
    return LAP_OK;
}

static const char fake_binary_text[] = "fake kernel binary";

static lap_status fake_kernel_binary(void *kernel, void **bytes, size_t *size, lap_error *err) {
    LAP_TRY(fake_healthy(((fake_kernel *)kernel)->device, "fakeKernelBinary", err));
    *bytes = strdup(fake_binary_text);
    *size = sizeof fake_binary_text;
    return *bytes ? LAP_OK : LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
}

static lap_status fake_kernel_load(void *device, const lap_build *build, const void *bytes,
                                   size_t size, void **kernel, lap_kernel_info *info,
                                   lap_error *err) {
    if (fake.refuse_binaries || size != sizeof fake_binary_text ||
        memcmp(bytes, fake_binary_text, size) != 0)
        return LAP_FAIL(err, LAP_E_BUILD, "fake: %s: not a binary of this driver", build->stem);
    LAP_TRY(fake_kernel_build(device, build, kernel, info, err));
    fake.builds--;
    fake.loads++;
    return LAP_OK;
}

static void fake_kernel_free(void *kernel) {
    fake_drain_all(((fake_kernel *)kernel)->device);
    fake_object_count--;
    free(kernel);
}

static lap_status launch_fails(fake_queue *q, lap_error *err) {
    lap_status status = fake.fail_launch_status;
    if (fake.fail_at_finish) {
        q->late = status;
        return LAP_OK;
    }
    if (fake.sticky) q->device->lost = true;
    return LAP_FAIL_NATIVE(err, status, "fakeLaunch", 5, "FAKE_LAUNCH_FAILURE",
                           "fake: planted failure at launch %llu",
                           (unsigned long long)fake.launches);
}

static lap_status fake_enqueue(void *queue, void *kernel, const lap_raw_launch *launch,
                               lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeLaunch", err));
    fake.launches++;
    fake.overlaps += launch->overlap;
    if (fake.launches == fake.fail_launch) return launch_fails(q, err);
    for (size_t i = 0; i < launch->arg_count; i++)
        LAP_TRY(fake_touch(launch->args[i].buffer, "fakeLaunch", err));
    command c = {.kind = RUN, .kernel = kernel, .launch = *launch};
    return fake_submit(q, &c, err);
}

static const char *fake_gemm_name(void *device, const char **why) {
    (void)device;
    *why = "told to have no library";
    return fake.gemm;
}

static lap_status fake_gemm(void *queue, const lap_raw_gemm *gemm, lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeGemm", err));
    LAP_TRY(fake_touch(gemm->a, "fakeGemm", err));
    LAP_TRY(fake_touch(gemm->b, "fakeGemm", err));
    LAP_TRY(fake_touch(gemm->c, "fakeGemm", err));
    fake.gemms++;
    command c = {.kind = GEMM, .gemm = *gemm};
    return fake_submit(q, &c, err);
}

/* ---- events --------------------------------------------------------------------------------- */

static lap_status fake_event_new(void *device, void **event, lap_error *err) {
    LAP_TRY(fake_healthy(device, "fakeEventNew", err));
    fake_event *e = calloc(1, sizeof *e);
    if (!e) return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    e->device = device;
    fake_object_count++;
    *event = e;
    return LAP_OK;
}

static void fake_event_free(void *event) {
    fake_object_count--;
    free(event);
}

/* The queue an event was recorded on; NULL when it is gone, and so finished. */
static fake_queue *queue_of(const fake_event *e) {
    fake_queue *q = e->device->queues;
    while (q && q->id != e->queue_id)
        q = q->next;
    return q;
}

static lap_status fake_event_record(void *event, void *queue, lap_error *err) {
    fake_event *e = event;
    const fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeEventRecord", err));
    e->queue_id = q->id;
    e->clock = q->clock;
    return LAP_OK;
}

static lap_status fake_event_wait(void *event, lap_error *err) {
    const fake_event *e = event;
    fake_queue *q = queue_of(e);
    return q ? fake_settle(q, "fakeEventWait", err) : fake_healthy(e->device, "fakeEventWait", err);
}

/* Work waited for has run when what waits for it runs, and ends before that starts. */
static lap_status fake_queue_wait_event(void *queue, void *event, lap_error *err) {
    fake_queue *q = queue;
    const fake_event *e = event;
    LAP_TRY(fake_healthy(q->device, "fakeQueueWaitEvent", err));
    fake_queue *other = queue_of(e);
    if (other && other != q) fake_drain(other);
    if (e->clock > q->clock) q->clock = e->clock;
    fake.queue_waits++;
    return LAP_OK;
}

static lap_status fake_event_elapsed(void *a, void *b, double *seconds, lap_error *err) {
    const fake_event *first = a, *last = b;
    LAP_TRY(fake_healthy(first->device, "fakeEventElapsed", err));
    const fake_queue *q = queue_of(last);
    if (q && q->pending.count > 0)
        return LAP_FAIL(err, LAP_E_TIMER, "fake: commands between the events have not run yet");
    double span = last->clock - first->clock;
    switch (fake.timer) {
    case FAKE_TIMER_OK:
        *seconds = span;
        return LAP_OK;
    case FAKE_TIMER_ZERO:
        *seconds = 0;
        return LAP_OK;
    case FAKE_TIMER_REVERSED:
        *seconds = -span;
        return LAP_OK;
    case FAKE_TIMER_MISSING:
        break;
    }
    return LAP_FAIL_NATIVE(err, LAP_E_TIMER, "fakeEventElapsed", -7, "FAKE_NOT_AVAILABLE",
                           "fake: the time stamps are missing");
}

/* ---- graphs --------------------------------------------------------------------------------- */

static lap_status fake_graph_begin(void *queue, lap_error *err) {
    fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeGraphBegin", err));
    q->graph = calloc(1, sizeof *q->graph);
    return q->graph ? LAP_OK : LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
}

static void fake_graph_free(void *graph) {
    commands *g = graph;
    free(g->items);
    fake_object_count--;
    free(g);
}

static lap_status fake_graph_end(void *queue, void **graph, lap_error *err) {
    fake_queue *q = queue;
    commands *g = q->graph;
    q->graph = NULL;
    fake_object_count++;
    lap_status status = fake_healthy(q->device, "fakeGraphEnd", err);
    if (status != LAP_OK) {
        fake_graph_free(g);
        return status;
    }
    *graph = g;
    return LAP_OK;
}

static lap_status fake_graph_launch(void *graph, void *queue, lap_error *err) {
    const commands *g = graph;
    fake_queue *q = queue;
    LAP_TRY(fake_healthy(q->device, "fakeGraphLaunch", err));
    for (size_t i = 0; i < g->count; i++)
        LAP_TRY(fake_submit(q, &g->items[i], err));
    return LAP_OK;
}

lap_device_ops fake_ops = {.name = "fake",
                           .version = fake_version,
                           .enumerate = fake_enumerate,
                           .open = fake_open,
                           .close = fake_close,
                           .memory = fake_memory,
                           .queue_new = fake_queue_new,
                           .queue_free = fake_queue_free,
                           .queue_finish = fake_queue_finish,
                           .queue_flush = fake_queue_flush,
                           .buffer_new = fake_buffer_new,
                           .buffer_view = fake_buffer_view,
                           .buffer_free = fake_buffer_free,
                           .buffer_write = fake_buffer_write,
                           .buffer_read = fake_buffer_read,
                           .buffer_fill = fake_buffer_fill,
                           .buffer_write_async = fake_buffer_write_async,
                           .buffer_read_async = fake_buffer_read_async,
                           .queue_wait_event = fake_queue_wait_event,
                           .pinned_new = fake_pinned_new,
                           .pinned_free = fake_pinned_free,
                           .kernel_build = fake_kernel_build,
                           .kernel_binary = fake_kernel_binary,
                           .kernel_load = fake_kernel_load,
                           .kernel_free = fake_kernel_free,
                           .enqueue = fake_enqueue,
                           .gemm_name = fake_gemm_name,
                           .gemm = fake_gemm,
                           .event_new = fake_event_new,
                           .event_free = fake_event_free,
                           .event_record = fake_event_record,
                           .event_wait = fake_event_wait,
                           .event_elapsed = fake_event_elapsed,
                           .graph_begin = fake_graph_begin,
                           .graph_end = fake_graph_end,
                           .graph_launch = fake_graph_launch,
                           .graph_free = fake_graph_free};
