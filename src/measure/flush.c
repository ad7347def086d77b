/* See flush.h. Reading and writing both, since some caches keep lines that are only written, and
 * others only those that are read. */
#include "measure/flush.h"
#include "kernel/tools.h"

#include <stdlib.h>

struct lap_flush {
    lap_queue *queue;
    lap_kernel *kernel;
    lap_buffer *from, *to;
    size_t half;
    lap_arg args[5];
    lap_launch launch;
};

/* What drivers tell of a GPU's cache is not to be relied on (NVIDIA's OpenCL: 4 MiB of 60; others
 * leave out the outermost level), so there it is at least more than any has, as the memory allows.
 */
static size_t half_bytes(const lap_device_info *info) {
    uint64_t half = info->cache_bytes ? info->cache_bytes : 64ull << 20;
    if (info->type != LAP_DEVICE_CPU) {
        uint64_t least = 256ull << 20;
        if (info->memory_bytes && least > info->memory_bytes / 16) least = info->memory_bytes / 16;
        if (info->max_alloc_bytes && least > info->max_alloc_bytes) least = info->max_alloc_bytes;
        half = info->cache_bytes > least ? info->cache_bytes : least;
    }
    return (size_t)((half + 4095) & ~4095ull);
}

static lap_status prepare(lap_flush *f, lap_error *err) {
    lap_device *device = lap_queue_device(f->queue);
    const lap_device_info *info = lap_device_get_info(device);
    bool cpu = info->type == LAP_DEVICE_CPU;
    int v = lap_tool_vector(info, 4);
    lap_define defines[] = {{"V", v}, {"CHUNKED", cpu}};
    f->half = half_bytes(info);
    LAP_TRY(lap_tool_build(device, "stream_copy", "stream_copy", defines, 2, &f->kernel, err));
    LAP_TRY(lap_buffer_new(device, f->half, &f->from, err));
    LAP_TRY(lap_buffer_new(device, f->half, &f->to, err));
    LAP_TRY(lap_buffer_fill(f->queue, f->from, 0, f->half, 0x3F800000u, err));
    int32_t n = (int32_t)(f->half / ((size_t)v * sizeof(float)));
    f->args[0] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = f->from};
    f->args[1] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = f->to};
    f->args[2] = (lap_arg){.kind = LAP_ARG_I32, .i32 = n};
    f->args[3] = (lap_arg){.kind = LAP_ARG_I32, .i32 = 1};
    f->args[4] = (lap_arg){.kind = LAP_ARG_I32, .i32 = 1};
    uint32_t most = lap_kernel_get_info(f->kernel)->max_group_size;
    uint32_t group = cpu ? 1 : most && most < 256 ? most : 256;
    uint32_t units = info->units ? info->units : 16;
    f->launch = (lap_launch){.kernel = f->kernel,
                             .groups = {units * (cpu ? 4 : 16), 1, 1},
                             .local = {group, 1, 1},
                             .args = f->args,
                             .arg_count = 5};
    return lap_flush_run(f, err);
}

lap_status lap_flush_open(lap_queue *queue, lap_flush **out, lap_error *err) {
    *out = NULL;
    lap_flush *f = calloc(1, sizeof *f);
    if (!f) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for flushing the cache");
    f->queue = queue;
    lap_status status = prepare(f, err);
    if (status != LAP_OK) {
        lap_error_prefix(err, "flushing the cache: ");
        lap_flush_close(f);
        return status;
    }
    *out = f;
    return LAP_OK;
}

uint64_t lap_flush_bytes(const lap_flush *flush) {
    return 2 * (uint64_t)flush->half;
}

lap_status lap_flush_run(void *context, lap_error *err) {
    lap_flush *f = context;
    LAP_TRY(lap_enqueue(f->queue, &f->launch, err));
    return lap_queue_finish(f->queue, err);
}

void lap_flush_close(lap_flush *f) {
    if (!f) return;
    lap_buffer_free(f->from);
    lap_buffer_free(f->to);
    lap_kernel_free(f->kernel);
    free(f);
}
