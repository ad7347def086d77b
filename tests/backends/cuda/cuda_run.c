/* The working path: memory, launches with their arguments in order, events, graphs. */
#include "collect.h"

#include <stdlib.h>

/* What the stand-in kernel "lap_record" was given, launch by launch. */
static struct {
    struct dim3 grid, block;
    size_t shared;
    void *first, *third;
    int32_t second, fourth;
} seen[8];
static size_t seen_count;

static void record(struct dim3 grid, struct dim3 block, size_t shared, void **args) {
    assert_true(seen_count < 8);
    seen[seen_count].grid = grid;
    seen[seen_count].block = block;
    seen[seen_count].shared = shared;
    memcpy(&seen[seen_count].first, args[0], sizeof(void *));
    memcpy(&seen[seen_count].second, args[1], 4);
    memcpy(&seen[seen_count].third, args[2], sizeof(void *));
    memcpy(&seen[seen_count].fourth, args[3], 4);
    seen_count++;
}

/* to[0] = to[0] * 3 + by: the order of launches shows. */
static void step(struct dim3 grid, struct dim3 block, size_t shared, void **args) {
    (void)grid, (void)block, (void)shared;
    int32_t *to = *(int32_t **)args[0];
    *to = *to * 3 + *(int32_t *)args[1];
}

static void *device, *queue;
static const lap_device_ops *ops = &lap_cuda_ops;
static lap_error err;

static int setup(void **state) {
    (void)state;
    standin_reset();
    use_nvrtc(NVRTC_STANDIN);
    standin_register("lap_record", "pipi", record);
    standin_register("lap_step", "pi", step);
    seen_count = 0;
    open_both(&device, &queue);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    close_both(device, queue);
    assert_nothing_alive();
    return 0;
}

static void test_memory(void **state) {
    (void)state;
    void *buffer, *view;
    assert_ok(ops->buffer_new(device, 1024, &buffer, &err));
    assert_ok(ops->buffer_view(buffer, 256, 512, &view, &err));
    assert_ptr_equal(((lap_cuda_buffer *)view)->pointer,
                     (char *)((lap_cuda_buffer *)buffer)->pointer + 256);
    unsigned char out[1024], in[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_ok(ops->buffer_fill(queue, buffer, 0, 1024, 0xeeeeeeee, &err));
    assert_ok(ops->buffer_write(queue, view, 8, in, 8, &err));
    assert_ok(ops->buffer_read(queue, buffer, 0, out, 1024, &err));
    assert_memory_equal(out + 264, in, 8);
    assert_int_equal(out[263], 0xee);
    assert_int_equal(out[272], 0xee);
    memset(in, 0, sizeof in);
    assert_ok(ops->buffer_read(queue, view, 8, in, 8, &err));
    assert_int_equal(in[7], 8);
    ops->buffer_free(view); /* frees the window only */
    assert_int_equal(standin_live().buffers, 1);
    assert_ok(ops->buffer_view(buffer, 0, 512, &view, &err));
    ops->buffer_free(view);
    assert_int_equal(standin_live().buffers, 1);
    uint64_t available, total;
    assert_ok(ops->memory(device, &available, &total, &err));
    assert_int_equal(total, (uint64_t)1 << 30);
    assert_int_equal(available, total - 1024);
    ops->buffer_free(buffer);
    ops->buffer_free(NULL);
}

/* Every length and pattern: exactly the asked range holds the pattern. */
static void test_fill(void **state) {
    (void)state;
    enum { WORDS = 40 };
    const uint32_t patterns[] = {0, 0x7f7f7f7f, 0x7fc00001, 0x01020304, 0xffff0000};
    void *buffer;
    assert_ok(ops->buffer_new(device, WORDS * 4, &buffer, &err));
    for (size_t p = 0; p < 5; p++)
        for (size_t length = 1; length <= WORDS - 2; length++) {
            assert_ok(ops->buffer_fill(queue, buffer, 0, WORDS * 4, 0xaaaaaaaa, &err));
            assert_ok(ops->buffer_fill(queue, buffer, 4, length * 4, patterns[p], &err));
            uint32_t out[WORDS];
            assert_ok(ops->buffer_read(queue, buffer, 0, out, sizeof out, &err));
            for (size_t i = 0; i < WORDS; i++)
                assert_int_equal(out[i], i >= 1 && i <= length ? patterns[p] : 0xaaaaaaaa);
        }
    ops->buffer_free(buffer);
}

static void test_arguments(void **state) {
    (void)state;
    void *kernel = build_entry(device, "lap_record"), *buffer, *view;
    assert_ok(ops->buffer_new(device, 1024, &buffer, &err));
    assert_ok(ops->buffer_view(buffer, 512, 256, &view, &err));
    lap_raw_launch launch = {.groups = {5, 6, 7},
                             .local = {8, 4, 2},
                             .dynamic_local_bytes = 300,
                             .args = {{.kind = LAP_ARG_BUFFER, .buffer = view},
                                      {.kind = LAP_ARG_I32, .i32 = -17},
                                      {.kind = LAP_ARG_BUFFER, .buffer = NULL},
                                      {.kind = LAP_ARG_I32, .i32 = INT32_MAX}},
                             .arg_count = 4};
    assert_ok(ops->enqueue(queue, kernel, &launch, &err));
    assert_ok(ops->queue_flush(queue, &err));
    assert_ok(ops->queue_finish(queue, &err));
    assert_int_equal(seen_count, 1);
    assert_int_equal(seen[0].grid.x, 5);
    assert_int_equal(seen[0].grid.y, 6);
    assert_int_equal(seen[0].grid.z, 7);
    assert_int_equal(seen[0].block.x, 8);
    assert_int_equal(seen[0].block.y, 4);
    assert_int_equal(seen[0].block.z, 2);
    assert_int_equal(seen[0].shared, 300);
    assert_ptr_equal(seen[0].first, (char *)((lap_cuda_buffer *)buffer)->pointer + 512);
    assert_int_equal(seen[0].second, -17);
    assert_null(seen[0].third);
    assert_int_equal(seen[0].fourth, INT32_MAX);
    ops->buffer_free(view);
    ops->buffer_free(buffer);
    ops->kernel_free(kernel);
}

static void test_dynamic_local(void **state) {
    (void)state;
    void *kernel = build_entry(device, "lap_none");
    lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {1, 1, 1}};
    launch.dynamic_local_bytes = 48 << 10;
    assert_ok(ops->enqueue(queue, kernel, &launch, &err));
    assert_int_equal(standin_calls("cudaFuncSetAttribute"), 0);
    launch.dynamic_local_bytes = 200 << 10;
    assert_ok(ops->enqueue(queue, kernel, &launch, &err));
    assert_ok(ops->enqueue(queue, kernel, &launch, &err)); /* asked for once */
    launch.dynamic_local_bytes = 100 << 10;
    assert_ok(ops->enqueue(queue, kernel, &launch, &err));
    assert_int_equal(standin_calls("cudaFuncSetAttribute"), 1);
    launch.dynamic_local_bytes = 227 << 10; /* with 1 KiB of static memory it is too much */
    assert_int_equal(ops->enqueue(queue, kernel, &launch, &err), LAP_E_LAUNCH);
    assert_contains(err.message, "232448 bytes of dynamic and 1024 of static");
    ops->kernel_free(kernel);
}

static void run_step(void *kernel, void *buffer, int32_t by) {
    lap_raw_launch launch = {
        .groups = {1, 1, 1},
        .local = {1, 1, 1},
        .args = {{.kind = LAP_ARG_BUFFER, .buffer = buffer}, {.kind = LAP_ARG_I32, .i32 = by}},
        .arg_count = 2};
    assert_ok(ops->enqueue(queue, kernel, &launch, &err));
}

static void test_elapsed(void **state) {
    (void)state;
    void *kernel = build_entry(device, "lap_none"), *a, *b;
    lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {32, 1, 1}};
    assert_ok(ops->event_new(device, &a, &err));
    assert_ok(ops->event_new(device, &b, &err));
    double seconds = 7;
    assert_int_equal(ops->event_elapsed(a, b, &seconds, &err), LAP_E_TIMER);
    assert_contains(err.message, "first event of the interval was never recorded");
    assert_true(seconds >= 0 && seconds <= 0);
    assert_int_equal(ops->event_wait(a, &err), LAP_E_TIMER);
    assert_ok(ops->event_record(a, queue, &err));
    assert_int_equal(ops->event_elapsed(a, b, &seconds, &err), LAP_E_TIMER);
    assert_contains(err.message, "second event of the interval was never recorded");
    for (int i = 0; i < 3; i++)
        assert_ok(ops->enqueue(queue, kernel, &launch, &err));
    assert_ok(ops->event_record(b, queue, &err));
    assert_ok(ops->event_wait(b, &err));
    assert_ok(ops->event_elapsed(a, b, &seconds, &err));
    assert_true(seconds > 29.99e-6 && seconds < 30.01e-6);
    for (standin_timer t = STANDIN_TIMER_ZERO; t <= STANDIN_TIMER_NAN; t++) {
        standin.timer = t;
        seconds = 7;
        assert_int_equal(ops->event_elapsed(a, b, &seconds, &err), LAP_E_TIMER);
        assert_contains(err.message, "must be positive and finite");
        assert_true(seconds >= 0 && seconds <= 0);
    }
    standin.timer = STANDIN_TIMER_NORMAL;
    standin_fail("cudaEventElapsedTime", 1, cudaErrorNotReady);
    assert_int_equal(ops->event_elapsed(a, b, &seconds, &err), LAP_E_TIMER);
    assert_int_equal(err.status, LAP_E_TIMER);
    assert_contains(err.message, "wait for the second one first");
    standin_fail("cudaEventRecord", 1, cudaErrorInvalidResourceHandle);
    assert_int_equal(ops->event_record(b, queue, &err), LAP_E_LAUNCH);
    /* The stamp of the earlier record does not stand for the one that failed. */
    assert_int_equal(ops->event_elapsed(a, b, &seconds, &err), LAP_E_TIMER);
    ops->event_free(a);
    ops->event_free(b);
    ops->kernel_free(kernel);
}

static void test_graph(void **state) {
    (void)state;
    void *kernel = build_entry(device, "lap_step"), *buffer, *graph, *a, *b;
    assert_ok(ops->buffer_new(device, 4, &buffer, &err));
    assert_ok(ops->buffer_fill(queue, buffer, 0, 4, 1, &err));
    assert_ok(ops->event_new(device, &a, &err));
    assert_ok(ops->event_new(device, &b, &err));
    assert_ok(ops->graph_begin(queue, &err));
    run_step(kernel, buffer, 1);
    run_step(kernel, buffer, 2);
    assert_ok(ops->graph_end(queue, &graph, &err));
    int32_t value = 0;
    assert_ok(ops->buffer_read(queue, buffer, 0, &value, 4, &err));
    assert_int_equal(value, 1); /* recorded, not run */
    assert_ok(ops->event_record(a, queue, &err));
    assert_ok(ops->graph_launch(graph, queue, &err));
    assert_ok(ops->graph_launch(graph, queue, &err));
    assert_ok(ops->event_record(b, queue, &err));
    assert_ok(ops->queue_finish(queue, &err));
    assert_ok(ops->buffer_read(queue, buffer, 0, &value, 4, &err));
    assert_int_equal(value, (((1 * 3 + 1) * 3 + 2) * 3 + 1) * 3 + 2);
    double seconds;
    assert_ok(ops->event_elapsed(a, b, &seconds, &err));
    assert_true(seconds > 39.9e-6 && seconds < 40.1e-6);
    ops->graph_free(graph);
    ops->graph_free(NULL);
    ops->event_free(a);
    ops->event_free(b);
    ops->buffer_free(buffer);
    ops->kernel_free(kernel);
}

/* What cannot be captured is refused before it breaks the capture. */
static void test_capture_rules(void **state) {
    (void)state;
    void *buffer, *event, *graph;
    uint32_t word = 0;
    assert_ok(ops->buffer_new(device, 64, &buffer, &err));
    assert_ok(ops->event_new(device, &event, &err));
    assert_int_equal(ops->graph_end(queue, &graph, &err), LAP_E_ARG);
    assert_null(graph);
    assert_ok(ops->graph_begin(queue, &err));
    assert_int_equal(ops->graph_begin(queue, &err), LAP_E_ARG);
    assert_int_equal(ops->queue_finish(queue, &err), LAP_E_ARG);
    assert_int_equal(ops->queue_flush(queue, &err), LAP_E_ARG);
    assert_int_equal(ops->buffer_write(queue, buffer, 0, &word, 4, &err), LAP_E_ARG);
    assert_int_equal(ops->buffer_read(queue, buffer, 0, &word, 4, &err), LAP_E_ARG);
    assert_contains(err.message, "end the graph first");
    assert_int_equal(ops->event_record(event, queue, &err), LAP_E_ARG);
    assert_ok(ops->buffer_fill(queue, buffer, 0, 64, 0x01020304, &err));
    assert_ok(ops->graph_end(queue, &graph, &err));
    assert_ok(ops->graph_launch(graph, queue, &err));
    assert_ok(ops->buffer_read(queue, buffer, 60, &word, 4, &err));
    assert_int_equal(word, 0x01020304);
    ops->graph_free(graph);
    ops->event_free(event);
    ops->buffer_free(buffer);
    assert_ok(ops->graph_begin(queue, &err)); /* left open: the queue's end cleans it up */
}

static void test_async(void **state) {
    (void)state;
    void *buffer, *second, *event, *pinned, *address;
    assert_ok(ops->buffer_new(device, 64, &buffer, &err));
    assert_ok(ops->queue_new(device, &second, &err));
    assert_ok(ops->event_new(device, &event, &err));
    assert_ok(ops->pinned_new(device, 64, &pinned, &address, &err));
    assert_int_equal(standin_live().pinned, 1);
    memset(address, 7, 64);
    int waits = standin_calls("cudaStreamSynchronize");
    assert_ok(ops->buffer_write_async(queue, buffer, 32, address, 32, &err));
    assert_int_equal(ops->queue_wait_event(second, event, &err), LAP_E_ARG); /* not recorded */
    assert_ok(ops->event_record(event, queue, &err));
    assert_ok(ops->queue_wait_event(second, event, &err));
    memset(address, 0, 64);
    assert_ok(ops->buffer_read_async(second, buffer, 32, address, 32, &err));
    assert_int_equal(standin_calls("cudaStreamSynchronize"), waits); /* nothing waited */
    assert_int_equal(((char *)address)[31], 7);
    assert_int_equal(((char *)address)[32], 0);
    standin_fail("cudaStreamWaitEvent", 1, cudaErrorUnknown);
    assert_true(ops->queue_wait_event(second, event, &err) != LAP_OK);
    void *none = &none, *nothing = &none;
    standin_fail("cudaMallocHost", 1, cudaErrorMemoryAllocation);
    assert_int_equal(ops->pinned_new(device, 64, &none, &nothing, &err), LAP_E_OOM);
    assert_null(none);
    assert_null(nothing);
    assert_ok(ops->graph_begin(queue, &err));
    assert_int_equal(ops->buffer_write_async(queue, buffer, 0, address, 8, &err), LAP_E_ARG);
    assert_int_equal(ops->queue_wait_event(queue, event, &err), LAP_E_ARG);
    void *graph;
    assert_ok(ops->graph_end(queue, &graph, &err));
    ops->graph_free(graph);
    ops->pinned_free(pinned);
    ops->event_free(event);
    ops->queue_free(second);
    ops->buffer_free(buffer);
}

/* A kernel's image, taken once, makes the same kernel again, without a compiler. */
static void test_binary(void **state) {
    (void)state;
    void *kernel = build_entry(device, "lap_step"), *again, *bytes = NULL, *buffer;
    size_t size = 0;
    lap_kernel_info info;
    lap_build build = {.stem = "stem", .source = "not needed", .entry = "lap_step"};
    assert_ok(ops->kernel_binary(kernel, &bytes, &size, &err));
    assert_non_null(bytes);
    assert_true(size > 0);
    void *second = NULL;
    assert_int_equal(ops->kernel_binary(kernel, &second, &size, &err), LAP_E_UNSUPPORTED);
    assert_null(second);
    ops->kernel_free(kernel);
    use_nvrtc("/nowhere/libnvrtc.so");
    assert_ok(ops->kernel_load(device, &build, bytes, size, &again, &info, &err));
    assert_true(info.max_group_size > 0);
    assert_ok(ops->buffer_new(device, 4, &buffer, &err));
    assert_ok(ops->buffer_fill(queue, buffer, 0, 4, 1, &err));
    run_step(again, buffer, 2);
    int32_t value = 0;
    assert_ok(ops->buffer_read(queue, buffer, 0, &value, 4, &err));
    assert_int_equal(value, 5);
    ops->kernel_free(again);
    standin_fail("cudaLibraryLoadData", 1, cudaErrorInvalidKernelImage);
    assert_int_not_equal(ops->kernel_load(device, &build, bytes, size, &again, &info, &err),
                         LAP_OK);
    assert_null(again);
    free(bytes);
    ops->buffer_free(buffer);
}

static void *build_text(const char *source) {
    lap_build build = {.stem = "stem", .source = source, .entry = "lap_step"};
    lap_kernel_info info;
    void *kernel = NULL;
    assert_ok(ops->kernel_build(device, &build, &kernel, &info, &err));
    return kernel;
}

/* Three launches in a row, the second and third as asked: how many had the attribute. */
static int overlaps_of(void *kernel, bool asked) {
    void *buffer;
    assert_ok(ops->buffer_new(device, 4, &buffer, &err));
    assert_ok(ops->buffer_fill(queue, buffer, 0, 4, 1, &err));
    lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {1, 1, 1}, .arg_count = 2};
    launch.args[0] = (lap_raw_arg){.kind = LAP_ARG_BUFFER, .buffer = buffer};
    launch.args[1] = (lap_raw_arg){.kind = LAP_ARG_I32, .i32 = 2};
    int calls = standin_calls("cudaLaunchKernelExC");
    for (int i = 0; i < 3; i++) {
        launch.overlap = asked && i > 0;
        assert_ok(ops->enqueue(queue, kernel, &launch, &err));
    }
    int32_t value = 0;
    assert_ok(ops->buffer_read(queue, buffer, 0, &value, 4, &err));
    assert_int_equal(value, ((1 * 3 + 2) * 3 + 2) * 3 + 2);
    ops->buffer_free(buffer);
    return standin_calls("cudaLaunchKernelExC") - calls;
}

/* The attribute of an early start: where it is asked for, where the kernel's code waits, and on a
 * device that has it. The stand-in refuses it elsewhere. */
static void test_overlap(void **state) {
    (void)state;
    static const char plain[] = "extern \"C\" __global__ void lap_step() {}";
    static const char waiting[] = "extern \"C\" __device__ char warmlap_waits_for_earlier;\n"
                                  "extern \"C\" __global__ void lap_step() {\n"
                                  "    asm volatile(\"griddepcontrol.wait;\");\n}";
    void *kernel = build_text(plain), *again, *bytes;
    assert_int_equal(overlaps_of(kernel, true), 0);
    ops->kernel_free(kernel);
    kernel = build_text(waiting);
    assert_int_equal(overlaps_of(kernel, false), 0);
    assert_int_equal(overlaps_of(kernel, true), 2);
    size_t size;
    assert_ok(ops->kernel_binary(kernel, &bytes, &size, &err));
    ops->kernel_free(kernel);
    lap_build build = {.stem = "stem", .source = "not needed", .entry = "lap_step"};
    lap_kernel_info info;
    assert_ok(ops->kernel_load(device, &build, bytes, size, &again, &info, &err));
    assert_int_equal(overlaps_of(again, true), 2);
    ops->kernel_free(again);
    free(bytes);

    close_both(device, queue);
    standin.cc_major = 8;
    open_both(&device, &queue);
    kernel = build_text(waiting);
    assert_int_equal(overlaps_of(kernel, true), 0);
    ops->kernel_free(kernel);
}

#define RUN(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        RUN(test_memory),  RUN(test_fill),   RUN(test_arguments),     RUN(test_dynamic_local),
        RUN(test_elapsed), RUN(test_graph),  RUN(test_capture_rules), RUN(test_async),
        RUN(test_binary),  RUN(test_overlap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
