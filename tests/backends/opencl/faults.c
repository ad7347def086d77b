/* What OpenCL's error codes become, and that a failed call leaves a usable backend behind. */
#include "rig.h"

#include "opencl.h"

#include <string.h>

static void test_too_large(void **state) {
    rig *r = *state;
    void *buffer = state;
    assert_int_equal(lap_opencl_ops.buffer_new(r->device, (size_t)1 << 50, &buffer, &r->err),
                     LAP_E_OOM);
    assert_null(buffer);
    assert_true(r->err.native == CL_INVALID_BUFFER_SIZE ||
                r->err.native == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    assert_string_equal(r->err.call, "clCreateBuffer");
    assert_non_null(strstr(r->err.message, "1125899906842624 bytes"));
}

static void expect_alloc(rig *r, cl_int code, lap_status status, const char *name) {
    void *buffer = NULL;
    staged.alloc_code = code;
    assert_int_equal(lap_opencl_ops.buffer_new(r->device, 64, &buffer, &r->err), status);
    assert_null(buffer);
    assert_int_equal(r->err.native, code);
    assert_string_equal(r->err.native_name, name);
    staged.alloc_code = CL_SUCCESS;
}

static void test_allocation_codes(void **state) {
    rig *r = *state;
    expect_alloc(r, CL_MEM_OBJECT_ALLOCATION_FAILURE, LAP_E_OOM,
                 "CL_MEM_OBJECT_ALLOCATION_FAILURE");
    expect_alloc(r, CL_OUT_OF_RESOURCES, LAP_E_OOM, "CL_OUT_OF_RESOURCES");
    expect_alloc(r, CL_INVALID_BUFFER_SIZE, LAP_E_OOM, "CL_INVALID_BUFFER_SIZE");
    expect_alloc(r, CL_OUT_OF_HOST_MEMORY, LAP_E_NOMEM, "CL_OUT_OF_HOST_MEMORY");
    expect_alloc(r, CL_INVALID_CONTEXT, LAP_E_DEVICE, "CL_INVALID_CONTEXT");
    expect_alloc(r, -31337, LAP_E_LAUNCH, "unknown OpenCL error");
}

static void expect_launch(rig *r, void *kernel, cl_int code, lap_status status) {
    lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {1, 1, 1}};
    staged.launch_fail_at = 2;
    staged.launch_code = code;
    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err));
    assert_int_equal(lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err), status);
    assert_int_equal(r->err.native, code);
    assert_string_equal(r->err.call, "clEnqueueNDRangeKernel");
    assert_non_null(strstr(r->err.message, "nop"));
    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err));
    rig_ok(r, lap_opencl_ops.queue_finish(r->queue, &r->err));
}

static void test_launch_codes(void **state) {
    rig *r = *state;
    void *kernel = rig_kernel(r, "__kernel void nop(void) {}", "nop", NULL);
    expect_launch(r, kernel, CL_OUT_OF_RESOURCES, LAP_E_OOM);
    expect_launch(r, kernel, CL_MEM_OBJECT_ALLOCATION_FAILURE, LAP_E_OOM);
    expect_launch(r, kernel, CL_INVALID_WORK_GROUP_SIZE, LAP_E_LAUNCH);
    expect_launch(r, kernel, CL_OUT_OF_HOST_MEMORY, LAP_E_NOMEM);
    expect_launch(r, kernel, CL_INVALID_COMMAND_QUEUE, LAP_E_DEVICE);
    expect_launch(r, kernel, -9999, LAP_E_DEVICE);
    lap_opencl_ops.kernel_free(kernel);
}

static void expect_finish(rig *r, cl_int code, lap_status status) {
    staged.finish_code = code;
    assert_int_equal(lap_opencl_ops.queue_finish(r->queue, &r->err), status);
    assert_int_equal(r->err.native, code);
    assert_string_equal(r->err.call, "clFinish");
}

static void test_finish_codes(void **state) {
    rig *r = *state;
    expect_finish(r, CL_OUT_OF_RESOURCES, LAP_E_OOM);
    expect_finish(r, CL_INVALID_COMMAND_QUEUE, LAP_E_DEVICE);
    expect_finish(r, -9999, LAP_E_DEVICE);
    expect_finish(r, CL_INVALID_VALUE, LAP_E_DEVICE);
    expect_finish(r, CL_OUT_OF_HOST_MEMORY, LAP_E_NOMEM);
}

static void test_wait_codes(void **state) {
    rig *r = *state;
    void *event = NULL, *buffer = rig_buffer(r, 64);
    rig_ok(r, lap_opencl_ops.event_new(r->device, &event, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, buffer, 0, 64, 0, &r->err));
    rig_ok(r, lap_opencl_ops.event_record(event, r->queue, &r->err));
    staged.wait_code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    assert_int_equal(lap_opencl_ops.event_wait(event, &r->err), LAP_E_DEVICE);
    assert_string_equal(r->err.call, "clWaitForEvents");
    assert_non_null(strstr(r->err.message, "has failed"));
    staged.wait_code = CL_SUCCESS;
    rig_ok(r, lap_opencl_ops.event_wait(event, &r->err));
    lap_opencl_ops.event_free(event);
    lap_opencl_ops.buffer_free(buffer);
}

static void test_misaligned_view(void **state) {
    rig *r = *state;
    if (r->info.base_align_bytes < 8) skip();
    void *parent = rig_buffer(r, 4096), *view = NULL;
    assert_true(lap_opencl_ops.buffer_view(parent, 4, 64, &view, &r->err) != LAP_OK);
    assert_null(view);
    assert_non_null(strstr(r->err.message, "offset 4"));
    lap_opencl_ops.buffer_free(parent);
}

/* A NULL error record loses the detail, never the status. */
static void test_no_error_record(void **state) {
    rig *r = *state;
    void *buffer = NULL;
    staged.alloc_code = CL_OUT_OF_RESOURCES;
    assert_int_equal(lap_opencl_ops.buffer_new(r->device, 64, &buffer, NULL), LAP_E_OOM);
}

static void test_memory(void **state) {
    rig *r = *state;
    uint64_t free_bytes = 1, total = 1;
    lap_status status = lap_opencl_ops.memory(r->device, &free_bytes, &total, &r->err);
    if (status == LAP_OK)
        assert_true(free_bytes <= total);
    else
        assert_int_equal(status, LAP_E_UNSUPPORTED);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(lap_cl_error_name(CL_SUCCESS), "CL_SUCCESS");
    assert_string_equal(lap_cl_error_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_string_equal(lap_cl_error_name(-54), "CL_INVALID_WORK_GROUP_SIZE");
    assert_string_equal(lap_cl_error_name(77), "unknown OpenCL error");
    assert_int_equal(lap_cl_status(LAP_CL_TIMER, CL_PROFILING_INFO_NOT_AVAILABLE), LAP_E_TIMER);
    assert_int_equal(lap_cl_status(LAP_CL_BUILD, CL_INVALID_BINARY), LAP_E_BUILD);
    assert_int_equal(lap_cl_status(LAP_CL_BUILD, CL_OUT_OF_HOST_MEMORY), LAP_E_NOMEM);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(test_too_large, rig_unstage),
    cmocka_unit_test_teardown(test_allocation_codes, rig_unstage),
    cmocka_unit_test_teardown(test_launch_codes, rig_unstage),
    cmocka_unit_test_teardown(test_finish_codes, rig_unstage),
    cmocka_unit_test_teardown(test_wait_codes, rig_unstage),
    cmocka_unit_test_teardown(test_misaligned_view, rig_unstage),
    cmocka_unit_test_teardown(test_no_error_record, rig_unstage),
    cmocka_unit_test_teardown(test_memory, rig_unstage),
    cmocka_unit_test_teardown(test_names, rig_unstage),
};

RIG_MAIN(tests)
