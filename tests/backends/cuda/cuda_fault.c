/* Failures: which status each kind becomes, that one refused call does not poison the next, that a
 * lost context stays lost, and that no single failing call leaks. */
#include "collect.h"

#include <stdio.h>

static const lap_device_ops *ops = &lap_cuda_ops;
static lap_error err;

static int setup(void **state) {
    (void)state;
    standin_reset();
    memset(&err, 0, sizeof err);
    use_nvrtc(NVRTC_STANDIN);
    return 0;
}

static void test_out_of_memory(void **state) {
    (void)state;
    standin.memory_bytes = 1000;
    void *device, *queue, *buffer = &device;
    open_both(&device, &queue);
    assert_int_equal(ops->buffer_new(device, 1001, &buffer, &err), LAP_E_OOM);
    assert_null(buffer);
    assert_int_equal(err.native, 2);
    assert_string_equal(err.native_name, "cudaErrorMemoryAllocation");
    assert_contains(err.call, "cudaMalloc(");
    assert_contains(err.message, "allocating 1001 bytes on cuda:0");
    assert_contains(err.message, "smaller batch");
    /* It does not stick, and is not found by anybody later. */
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_ok(ops->buffer_new(device, 1000, &buffer, &err));
    ops->buffer_free(buffer);
    close_both(device, queue);
    assert_nothing_alive();
}

static void test_sticky(void **state) {
    (void)state;
    const int codes[] = {700, 716, 710, 719, 702, 214, 999};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        standin_reset();
        void *device, *queue, *buffer, *event;
        open_both(&device, &queue);
        void *kernel = build_entry(device, "lap_x");
        assert_ok(ops->event_new(device, &event, &err));
        lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {1, 1, 1}};
        standin.fault = codes[i];
        assert_ok(ops->enqueue(queue, kernel, &launch, &err)); /* asynchronous */
        assert_ok(ops->event_record(event, queue, &err));
        assert_int_equal(ops->queue_finish(queue, &err), LAP_E_DEVICE);
        assert_int_equal(err.native, codes[i]);
        assert_contains(err.call, "cudaStreamSynchronize");
        assert_contains(err.message, "waiting for the commands of cuda:0");
        assert_contains(err.message, "context is lost");
        double seconds;
        assert_int_equal(ops->buffer_new(device, 16, &buffer, &err), LAP_E_DEVICE);
        assert_int_equal(ops->enqueue(queue, kernel, &launch, &err), LAP_E_DEVICE);
        assert_int_equal(ops->event_wait(event, &err), LAP_E_DEVICE);
        assert_int_equal(ops->event_elapsed(event, event, &seconds, &err), LAP_E_DEVICE);
        ops->event_free(event);
        ops->kernel_free(kernel);
        close_both(device, queue);
        assert_nothing_alive();
    }
}

static void test_launch_refused(void **state) {
    (void)state;
    void *device, *queue;
    open_both(&device, &queue);
    void *kernel = build_entry(device, "lap_x");
    lap_raw_launch launch = {.groups = {1, 2, 3}, .local = {2048, 1, 1}};
    assert_int_equal(ops->enqueue(queue, kernel, &launch, &err), LAP_E_LAUNCH);
    assert_int_equal(err.native, 9);
    assert_contains(err.message, "launching stem.cu (lap_x) on cuda:0 with 1x2x3 groups of "
                                 "2048x1x1");
    launch.local[0] = 64;
    standin_fail("cudaLaunchKernel", 1, 701);
    assert_int_equal(ops->enqueue(queue, kernel, &launch, &err), LAP_E_LAUNCH);
    assert_contains(err.message, "more registers or shared memory");
    standin_fail("cudaLaunchKernel", 1, 2);
    assert_int_equal(ops->enqueue(queue, kernel, &launch, &err), LAP_E_OOM);
    assert_ok(ops->enqueue(queue, kernel, &launch, &err));
    assert_ok(ops->queue_finish(queue, &err));
    ops->kernel_free(kernel);
    close_both(device, queue);
    assert_nothing_alive();
}

static void test_flush_not_ready(void **state) {
    (void)state;
    void *device, *queue;
    open_both(&device, &queue);
    standin_fail("cudaStreamQuery", 1, cudaErrorNotReady);
    assert_ok(ops->queue_flush(queue, &err));
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    standin_fail("cudaStreamQuery", 1, 700);
    assert_int_equal(ops->queue_flush(queue, &err), LAP_E_DEVICE);
    close_both(device, queue);
}

static void test_open(void **state) {
    (void)state;
    lap_list_builder list;
    collect(&list);
    void *device = &list;
    list.devices[0].native[0] = 5;
    assert_int_equal(ops->open(&list.devices[0], &device, &err), LAP_E_NODEVICE);
    assert_null(device);
    list.devices[0].native[0] = 0;
    standin_fail("cudaFree", 1, cudaErrorDevicesUnavailable);
    assert_int_equal(ops->open(&list.devices[0], &device, &err), LAP_E_DEVICE);
    assert_contains(err.message, "opening cuda:0 (Stand-in GPU)");
    assert_contains(err.message, "exclusively");
}

/* One pass over everything; stops at the first failure, frees all that it got. */
static lap_status everything(void *device) {
    void *queue = NULL, *buffer = NULL, *kernel = NULL, *graph = NULL, *a = NULL, *b = NULL;
    const lap_build build = {"stem", "lap_x", "lap_x", NULL, 0};
    lap_raw_launch launch = {
        .groups = {1, 1, 1}, .local = {1, 1, 1}, .dynamic_local_bytes = 64 << 10};
    lap_kernel_info info;
    uint64_t available, total;
    uint32_t word = 1;
    double seconds;
    lap_status status;
#define STEP(call)                                                                                 \
    if ((status = (call)) != LAP_OK) goto out
    STEP(ops->memory(device, &available, &total, &err));
    STEP(ops->queue_new(device, &queue, &err));
    STEP(ops->buffer_new(device, 64, &buffer, &err));
    STEP(ops->buffer_fill(queue, buffer, 0, 64, 0x01020304, &err));
    STEP(ops->buffer_fill(queue, buffer, 0, 64, 0, &err));
    STEP(ops->buffer_write(queue, buffer, 0, &word, 4, &err));
    STEP(ops->buffer_read(queue, buffer, 0, &word, 4, &err));
    STEP(ops->kernel_build(device, &build, &kernel, &info, &err));
    STEP(ops->event_new(device, &a, &err));
    STEP(ops->event_new(device, &b, &err));
    STEP(ops->graph_begin(queue, &err));
    STEP(ops->enqueue(queue, kernel, &launch, &err));
    STEP(ops->graph_end(queue, &graph, &err));
    STEP(ops->event_record(a, queue, &err));
    STEP(ops->graph_launch(graph, queue, &err));
    STEP(ops->event_record(b, queue, &err));
    STEP(ops->queue_flush(queue, &err));
    STEP(ops->event_wait(b, &err));
    STEP(ops->event_elapsed(a, b, &seconds, &err));
    STEP(ops->queue_finish(queue, &err));
#undef STEP
out:
    ops->graph_free(graph);
    ops->event_free(a);
    ops->event_free(b);
    ops->kernel_free(kernel);
    ops->buffer_free(buffer);
    ops->queue_free(queue);
    return status;
}

/* Fail every call of every function in turn: it is reported, with its code, and nothing leaks. */
static void test_any_call_fails(void **state) {
    (void)state;
    static const char *const functions[] = {"cudaSetDevice",
                                            "cudaMemGetInfo",
                                            "cudaStreamCreateWithFlags",
                                            "cudaMalloc",
                                            "cudaMemsetAsync",
                                            "cudaMemcpyAsync",
                                            "cudaStreamSynchronize",
                                            "cudaLibraryLoadData",
                                            "cudaLibraryGetKernel",
                                            "cudaFuncGetAttributes",
                                            "cudaEventCreate",
                                            "cudaStreamBeginCapture",
                                            "cudaFuncSetAttribute",
                                            "cudaLaunchKernel",
                                            "cudaStreamEndCapture",
                                            "cudaGraphInstantiate",
                                            "cudaEventRecord",
                                            "cudaGraphLaunch",
                                            "cudaStreamQuery",
                                            "cudaEventSynchronize",
                                            "cudaEventElapsedTime"};
    void *device, *queue;
    open_both(&device, &queue);
    assert_ok(everything(device));
    ops->queue_free(queue);
    assert_nothing_alive();
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
        int before = standin_calls(functions[f]);
        assert_ok(everything(device));
        int calls = standin_calls(functions[f]) - before, failed = 0;
        assert_true(calls > 0);
        for (int n = 1; n <= calls; n++) {
            memset(&err, 0, sizeof err);
            standin_fail(functions[f], n, cudaErrorNotPermitted);
            lap_status status = everything(device);
            assert_nothing_alive();
            assert_int_equal(cudaGetLastError(), cudaSuccess);
            if (status == LAP_OK) continue; /* it hit the clean-up, which cannot tell */
            failed++;
            assert_int_equal(status, err.status);
            assert_int_equal(err.native, cudaErrorNotPermitted);
            assert_true(err.call[0] && err.message[0]);
        }
        if (!failed) fail_msg("no failure of %s was noticed", functions[f]);
    }
    ops->close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_out_of_memory, setup),
        cmocka_unit_test_setup(test_sticky, setup),
        cmocka_unit_test_setup(test_launch_refused, setup),
        cmocka_unit_test_setup(test_flush_not_ready, setup),
        cmocka_unit_test_setup(test_open, setup),
        cmocka_unit_test_setup(test_any_call_fails, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
