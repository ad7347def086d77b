/* Shared parts of the OpenCL tests. */
#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lap_device_list *list;

const lap_device_list *rig_enumerate(void) {
    lap_error err = {0};
    lap_device_list_free(list);
    list = NULL;
    staged_install();
    if (lap_device_enumerate(&list, &err) != LAP_OK) fail_msg("%s", err.message);
    return list;
}

static void drop_list(void) {
    lap_device_list_free(list);
}

bool rig_has_device(void) {
    atexit(drop_list);
    rig_enumerate();
    if (list->count > 0) return true;
    printf("skipped: %s\n", list->note_count ? list->notes[0].reason : "no OpenCL device");
    return false;
}

int rig_setup(void **state) {
    static rig r;
    memset(&r, 0, sizeof r);
    if (rig_enumerate()->count == 0) return -1;
    r.info = list->devices[0];
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
