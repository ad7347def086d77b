/* Shared by the device tests: cmocka's includes, and one opened fake device with what a scenario
 * needs. Header only, so that every test program stays one source file. */
#ifndef DEVICE_TEST_FIXTURE_H
#define DEVICE_TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/device_ops.h"
#include "fake_backend.h"
#include <stdlib.h>
#include <string.h>

/* The status is the expected one, and an error comes with a message that holds the text. */
#define assert_fails(expression, wanted, text)                                                     \
    do {                                                                                           \
        lap_error_clear(&err);                                                                     \
        assert_int_equal((expression), (wanted));                                                  \
        assert_int_equal(err.status, (wanted));                                                    \
        if (!strstr(err.message, (text))) fail_msg("\"%s\" is not in: %s", (text), err.message);   \
    } while (0)
#define assert_ok(expression)                                                                      \
    do {                                                                                           \
        lap_error_clear(&err);                                                                     \
        if ((expression) != LAP_OK) fail_msg("%s: %s", #expression, err.message);                  \
    } while (0)

static inline void fake_setup(void) {
    lap_device_fault_arm(0, LAP_OK);
    fake_reset();
    lap_registry_add(NULL);
    lap_registry_add(&fake_ops);
}

static inline lap_device *open_fake(size_t index) {
    lap_error err;
    lap_device_list *list;
    assert_ok(lap_device_enumerate(&list, &err));
    assert_true(index < list->count);
    lap_device *device;
    assert_ok(lap_device_open(&list->devices[index], &device, &err));
    lap_device_list_free(list);
    return device;
}

/* Adds the integer argument 1 to every float of buffer argument 0. */
static inline void add_kernel(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                              void *const *pointers) {
    float *data = pointers[0];
    size_t n = (size_t)fake_define(defines, count, "COUNT", 0);
    for (size_t i = 0; data && i < n; i++)
        data[i] += (float)launch->args[1].i32;
}

static inline lap_status build_add(lap_device *device, int64_t count, lap_kernel **out,
                                   lap_error *err) {
    lap_define define = {"COUNT", count};
    lap_build build = {
        .stem = "add", .source = "add", .entry = "add", .defines = &define, .define_count = 1};
    fake_register("add", "add", add_kernel);
    return lap_kernel_build(device, &build, out, err);
}

static inline lap_status enqueue_add(lap_queue *queue, lap_kernel *kernel, lap_buffer *buffer,
                                     int32_t amount, lap_error *err) {
    lap_arg args[2] = {{.kind = LAP_ARG_BUFFER, .buffer = buffer},
                       {.kind = LAP_ARG_I32, .i32 = amount}};
    lap_launch launch = {
        .kernel = kernel, .groups = {1, 1, 1}, .local = {1, 1, 1}, .args = args, .arg_count = 2};
    return lap_enqueue(queue, &launch, err);
}

#endif
