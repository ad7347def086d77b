/* Shared parts of the OpenCL tests. */
#include "rig.h"

#include <stdio.h>
#include <string.h>

static lap_list_builder list;

lap_status lap_list_add_device(lap_list_builder *builder, const lap_device_info *info,
                               lap_error *err) {
    (void)err;
    if (builder->count < RIG_MAX) builder->devices[builder->count++] = *info;
    return LAP_OK;
}

lap_status lap_list_add_note(lap_list_builder *builder, const char *backend, const char *platform,
                             lap_error *err, const char *format, ...) {
    (void)err;
    if (builder->note_count == RIG_MAX) return LAP_OK;
    lap_device_note *note = &builder->notes[builder->note_count++];
    snprintf(note->backend, sizeof note->backend, "%s", backend);
    snprintf(note->platform, sizeof note->platform, "%s", platform);
    va_list args;
    va_start(args, format);
    vsnprintf(note->reason, sizeof note->reason, format, args);
    va_end(args);
    return LAP_OK;
}

const lap_list_builder *rig_enumerate(void) {
    lap_error err = {0};
    memset(&list, 0, sizeof list);
    if (lap_opencl_ops.enumerate(&list, &err) != LAP_OK) fprintf(stderr, "%s\n", err.message);
    return &list;
}

bool rig_has_device(void) {
    rig_enumerate();
    if (list.count > 0) return true;
    printf("skipped: %s\n", list.note_count ? list.notes[0].reason : "no OpenCL device");
    return false;
}

int rig_setup(void **state) {
    static rig r;
    memset(&r, 0, sizeof r);
    if (rig_enumerate()->count == 0) return -1;
    r.info = list.devices[0];
    if (lap_opencl_ops.open(&r.info, &r.device, &r.err) != LAP_OK ||
        lap_opencl_ops.queue_new(r.device, &r.queue, &r.err) != LAP_OK) {
        fprintf(stderr, "%s\n", r.err.message);
        return -1;
    }
    *state = &r;
    return 0;
}

int rig_teardown(void **state) {
    rig *r = *state;
    lap_opencl_ops.queue_free(r->queue);
    lap_opencl_ops.close(r->device);
    return 0;
}

int rig_unstage(void **state) {
    (void)state;
    staged = (staged_calls){0};
    return 0;
}

void rig_ok(const rig *r, lap_status status) {
    if (status == LAP_OK) return;
    char text[2048];
    lap_error_text(&r->err, text, sizeof text);
    fail_msg("%s: %s", lap_status_name(status), text);
}

void *rig_kernel(rig *r, const char *source, const char *entry, lap_kernel_info *info) {
    lap_build build = {.stem = "test", .source = source, .entry = entry};
    lap_kernel_info unused;
    void *kernel = NULL;
    rig_ok(r,
           lap_opencl_ops.kernel_build(r->device, &build, &kernel, info ? info : &unused, &r->err));
    assert_non_null(kernel);
    return kernel;
}

void *rig_buffer(rig *r, size_t bytes) {
    void *buffer = NULL;
    rig_ok(r, lap_opencl_ops.buffer_new(r->device, bytes, &buffer, &r->err));
    assert_non_null(buffer);
    return buffer;
}

lap_raw_arg rig_buffer_arg(void *buffer) {
    return (lap_raw_arg){.kind = LAP_ARG_BUFFER, .buffer = buffer};
}

lap_raw_arg rig_int_arg(int32_t value) {
    return (lap_raw_arg){.kind = LAP_ARG_I32, .i32 = value};
}
