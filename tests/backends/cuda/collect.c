/* See collect.h. */
#include "collect.h"

#include <stdio.h>
#include <stdlib.h>

lap_status lap_list_add_device(lap_list_builder *builder, const lap_device_info *info,
                               lap_error *err) {
    (void)err;
    assert_true(builder->count < COLLECT_MAX);
    builder->devices[builder->count++] = *info;
    return LAP_OK;
}

lap_status lap_list_add_note(lap_list_builder *builder, const char *backend, const char *platform,
                             lap_error *err, const char *format, ...) {
    (void)err;
    assert_true(builder->note_count < COLLECT_MAX);
    lap_device_note *note = &builder->notes[builder->note_count++];
    snprintf(note->backend, sizeof note->backend, "%s", backend);
    snprintf(note->platform, sizeof note->platform, "%s", platform);
    va_list args;
    va_start(args, format);
    vsnprintf(note->reason, sizeof note->reason, format, args);
    va_end(args);
    return LAP_OK;
}

void collect(lap_list_builder *builder) {
    memset(builder, 0, sizeof *builder);
    lap_error err = {0};
    assert_ok(lap_cuda_ops.enumerate(builder, &err));
}

void use_nvrtc(const char *path) {
    lap_cuda_nvrtc_forget();
    setenv("LAP_NVRTC", path, 1);
}

void open_both(void **device, void **queue) {
    lap_list_builder builder;
    collect(&builder);
    assert_true(builder.count > 0);
    lap_error err = {0};
    assert_ok(lap_cuda_ops.open(&builder.devices[0], device, &err));
    assert_ok(lap_cuda_ops.queue_new(*device, queue, &err));
}

void close_both(void *device, void *queue) {
    lap_cuda_ops.queue_free(queue);
    lap_cuda_ops.close(device);
}

void *build_entry(void *device, const char *entry) {
    char source[256];
    snprintf(source, sizeof source, "extern \"C\" __global__ void %s() {}", entry);
    lap_build build = {.stem = "stem", .source = source, .entry = entry};
    lap_kernel_info info;
    lap_error err = {0};
    void *kernel = NULL;
    assert_ok(lap_cuda_ops.kernel_build(device, &build, &kernel, &info, &err));
    assert_non_null(kernel);
    return kernel;
}

void assert_nothing_alive(void) {
    standin_counts live = standin_live();
    assert_int_equal(live.buffers, 0);
    assert_int_equal(live.bytes, 0);
    assert_int_equal(live.bad_frees, 0);
    assert_int_equal(live.streams, 0);
    assert_int_equal(live.events, 0);
    assert_int_equal(live.graphs, 0);
    assert_int_equal(live.execs, 0);
    assert_int_equal(live.libraries, 0);
    assert_int_equal(live.pinned, 0);
}
