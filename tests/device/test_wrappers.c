/* The device wrappers on the fake backend: argument checks, live counts, views, launches, copies.
 */
#include "fixture.h"

#include <math.h>

typedef struct fixture {
    lap_device *device;
    lap_queue *queue;
    lap_buffer *buffer; /* 1024 bytes */
    lap_kernel *kernel;
} fixture;

static lap_error err;

static fixture begin(void) {
    fake_setup();
    fixture f = {.device = open_fake(0)};
    assert_ok(lap_queue_new(f.device, &f.queue, &err));
    assert_ok(lap_buffer_new(f.device, 1024, &f.buffer, &err));
    assert_ok(build_add(f.device, 256, &f.kernel, &err));
    return f;
}

static void end(fixture *f) {
    lap_kernel_free(f->kernel);
    lap_buffer_free(f->buffer);
    lap_queue_free(f->queue);
    assert_ok(lap_device_close(f->device, &err));
    assert_int_equal(fake_alive(), 0);
    assert_int_equal(fake.used_bytes[0], 0);
    assert_int_equal(fake.red_zone_hits, 0);
}

static void test_round_trip(void **state) {
    (void)state;
    fixture f = begin();
    float data[256], back[256];
    for (int i = 0; i < 256; i++)
        data[i] = (float)i;
    assert_ok(lap_buffer_write(f.queue, f.buffer, 0, data, sizeof data, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 3, &err));
    assert_ok(lap_queue_flush(f.queue, &err));
    assert_ok(lap_queue_finish(f.queue, &err));
    assert_ok(lap_buffer_read(f.queue, f.buffer, 0, back, sizeof back, &err));
    for (int i = 0; i < 256; i++)
        assert_true(back[i] == (float)(i + 3));
    assert_ok(lap_buffer_fill(f.queue, f.buffer, 8, 4, 0x3F800000u, &err));
    assert_ok(lap_buffer_read(f.queue, f.buffer, 4, back, 12, &err));
    assert_true(back[0] == 4.0f && back[1] == 1.0f && back[2] == 6.0f);
    uint64_t have, total;
    assert_ok(lap_device_memory(f.device, &have, &total, &err));
    assert_int_equal(total - have, 1024);
    assert_int_equal(lap_buffer_bytes(f.buffer), 1024);
    assert_ptr_equal(lap_queue_device(f.queue), f.device);
    assert_string_equal(lap_device_get_info(f.device)->selector, "fake:0");
    end(&f);
}

static void test_null(void **state) {
    (void)state;
    fixture f = begin();
    lap_queue *queue;
    lap_buffer *buffer;
    lap_kernel *kernel;
    uint64_t have;
    char byte = 0;
    assert_fails(lap_device_enumerate(NULL, &err), LAP_E_ARG, "out is NULL");
    assert_fails(lap_device_open(NULL, &f.device, &err), LAP_E_ARG, "info is NULL");
    f.device = lap_queue_device(f.queue); /* the failed open cleared it */
    assert_fails(lap_device_open(lap_device_get_info(f.device), NULL, &err), LAP_E_ARG, "out");
    assert_fails(lap_queue_new(NULL, &queue, &err), LAP_E_ARG, "device is NULL");
    assert_fails(lap_queue_new(f.device, NULL, &err), LAP_E_ARG, "out is NULL");
    assert_fails(lap_queue_finish(NULL, &err), LAP_E_ARG, "queue is NULL");
    assert_fails(lap_queue_flush(NULL, &err), LAP_E_ARG, "queue is NULL");
    assert_fails(lap_buffer_new(NULL, 1, &buffer, &err), LAP_E_ARG, "device is NULL");
    assert_null(buffer);
    assert_fails(lap_buffer_new(f.device, 0, &buffer, &err), LAP_E_ARG, "0 bytes");
    assert_fails(lap_buffer_new(f.device, 1, NULL, &err), LAP_E_ARG, "out is NULL");
    assert_fails(lap_buffer_view(NULL, 0, 1, &buffer, &err), LAP_E_ARG, "parent is NULL");
    assert_fails(lap_buffer_write(NULL, f.buffer, 0, &byte, 1, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_buffer_write(f.queue, NULL, 0, &byte, 1, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_buffer_write(f.queue, f.buffer, 0, NULL, 1, &err), LAP_E_ARG, "data is NULL");
    assert_fails(lap_buffer_read(f.queue, f.buffer, 0, NULL, 1, &err), LAP_E_ARG, "data is NULL");
    assert_fails(lap_kernel_build(f.device, NULL, &kernel, &err), LAP_E_ARG, "NULL");
    assert_null(kernel);
    assert_fails(lap_enqueue(f.queue, NULL, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_device_memory(f.device, &have, NULL, &err), LAP_E_ARG, "NULL");
    /* Frees and getters take NULL; an error record is not required. */
    lap_queue_free(NULL);
    lap_buffer_free(NULL);
    lap_kernel_free(NULL);
    lap_event_free(NULL);
    lap_graph_free(NULL);
    lap_device_list_free(NULL);
    assert_ok(lap_device_close(NULL, &err));
    assert_int_equal(lap_buffer_bytes(NULL), 0);
    assert_null(lap_queue_device(NULL));
    assert_null(lap_device_get_info(NULL));
    assert_null(lap_kernel_get_info(NULL));
    assert_false(lap_device_has_gemm(NULL));
    assert_false(lap_device_has_graphs(NULL));
    assert_int_equal(lap_buffer_new(f.device, 0, &buffer, NULL), LAP_E_ARG);
    end(&f);
}

static void test_ranges(void **state) {
    (void)state;
    fixture f = begin();
    static char data[2048];
    static const struct {
        size_t offset, bytes;
    } bad[] = {{0, 1025},        {1024, 1},     {1025, 1},
               {1, 1024},        {0, 0},        {1024, 0},
               {SIZE_MAX, 1},    {1, SIZE_MAX}, {SIZE_MAX, SIZE_MAX},
               {4, SIZE_MAX - 3}};
    lap_buffer *view;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t o = bad[i].offset, n = bad[i].bytes;
        assert_fails(lap_buffer_write(f.queue, f.buffer, o, data, n, &err), LAP_E_ARG, "bytes");
        assert_fails(lap_buffer_read(f.queue, f.buffer, o, data, n, &err), LAP_E_ARG, "bytes");
        assert_fails(lap_buffer_fill(f.queue, f.buffer, o, n, 0, &err), LAP_E_ARG, "bytes");
        assert_fails(lap_buffer_view(f.buffer, o, n, &view, &err), LAP_E_ARG, "bytes");
        assert_null(view);
    }
    assert_fails(lap_buffer_fill(f.queue, f.buffer, 2, 4, 0, &err), LAP_E_ARG, "multiples of 4");
    assert_fails(lap_buffer_fill(f.queue, f.buffer, 4, 6, 0, &err), LAP_E_ARG, "multiples of 4");
    assert_ok(lap_buffer_write(f.queue, f.buffer, 1023, data, 1, &err));
    assert_ok(lap_buffer_write(f.queue, f.buffer, 0, data, 1024, &err));
    end(&f);
}

static void test_views(void **state) {
    (void)state;
    fixture f = begin();
    lap_buffer *view, *other;
    assert_fails(lap_buffer_view(f.buffer, 64, 4, &view, &err), LAP_E_ARG, "multiple of 128");
    assert_ok(lap_buffer_view(f.buffer, 128, 256, &view, &err));
    assert_fails(lap_buffer_view(view, 0, 4, &other, &err), LAP_E_ARG, "is a view itself");
    float one = 1, got = 0;
    assert_ok(lap_buffer_write(f.queue, view, 4, &one, 4, &err));
    assert_ok(lap_buffer_read(f.queue, f.buffer, 132, &got, 4, &err));
    assert_true(got == 1.0f);
    assert_fails(lap_buffer_read(f.queue, view, 256, &got, 4, &err), LAP_E_ARG, "256 bytes");
    /* The parent's owner lets go first: the memory stays until the view goes. */
    lap_buffer_free(f.buffer);
    f.buffer = NULL;
    assert_ok(lap_buffer_read(f.queue, view, 4, &got, 4, &err));
    assert_true(got == 1.0f);
    assert_int_equal(fake.used_bytes[0], 1024);
    lap_buffer_free(view);
    assert_int_equal(fake.used_bytes[0], 0);
    end(&f);
}

static void test_live_counts(void **state) {
    (void)state;
    fixture f = begin();
    lap_buffer *view;
    lap_event *event;
    lap_graph *graph;
    assert_ok(lap_buffer_view(f.buffer, 0, 4, &view, &err));
    assert_ok(lap_event_new(f.device, &event, &err));
    assert_ok(lap_graph_begin(f.queue, &err));
    assert_ok(lap_graph_end(f.queue, &graph, &err));
    assert_fails(lap_device_close(f.device, &err), LAP_E_INTERNAL,
                 "1 queues, 2 buffers, 1 kernels, 1 events, 1 graphs");
    lap_graph_free(graph);
    assert_fails(lap_device_close(f.device, &err), LAP_E_INTERNAL, "0 graphs");
    lap_event_free(event);
    assert_fails(lap_device_close(f.device, &err), LAP_E_INTERNAL, "0 events");
    lap_buffer_free(view);
    assert_fails(lap_device_close(f.device, &err), LAP_E_INTERNAL, "1 buffers");
    end(&f);
}

static lap_build good_build(void) {
    return (lap_build){.stem = "add", .source = "add", .entry = "add"};
}

static void test_build(void **state) {
    (void)state;
    fixture f = begin();
    lap_kernel *k;
    lap_build b = good_build();
    b.source = "";
    assert_fails(lap_kernel_build(f.device, &b, &k, &err), LAP_E_ARG, "no source text");
    b = good_build();
    b.entry = "a b";
    assert_fails(lap_kernel_build(f.device, &b, &k, &err), LAP_E_ARG, "\"a b\"");
    b = good_build();
    b.define_count = 1;
    assert_fails(lap_kernel_build(f.device, &b, &k, &err), LAP_E_ARG, "defines is NULL");
    static const char *const names[] = {"", "1A", "A B", "A=1", "-D", "A;rm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lap_define d = {.value = 1};
        strcpy(d.name, names[i]);
        b.defines = &d;
        assert_fails(lap_kernel_build(f.device, &b, &k, &err), LAP_E_ARG, "not an identifier");
    }
    lap_define full = {.value = 1};
    memset(full.name, 'A', sizeof full.name); /* not terminated */
    b.defines = &full;
    assert_fails(lap_kernel_build(f.device, &b, &k, &err), LAP_E_ARG, "not an identifier");
    b = good_build();
    b.stem = "missing";
    assert_fails(lap_kernel_build(f.device, &b, &k, &err), LAP_E_BUILD, "no such function");
    fake.fail_build_stem = "add";
    b = good_build();
    assert_fails(lap_kernel_build(f.device, &b, &k, &err), LAP_E_BUILD, "planted build failure");
    assert_null(k);
    end(&f);
}

static void test_launch(void **state) {
    (void)state;
    fixture f = begin();
    lap_arg args[LAP_MAX_ARGS + 1] = {{.kind = LAP_ARG_BUFFER}, {.kind = LAP_ARG_I32}};
    const lap_launch good = {
        .kernel = f.kernel, .groups = {1, 1, 1}, .local = {1, 1, 1}, .args = args, .arg_count = 2};
    assert_ok(lap_enqueue(f.queue, &good, &err)); /* a null buffer is allowed */
    lap_launch bad = good;
    bad.groups[1] = 0;
    assert_fails(lap_enqueue(f.queue, &bad, &err), LAP_E_ARG, "dimension 1 has 0 groups");
    bad = good;
    bad.local[2] = 0;
    assert_fails(lap_enqueue(f.queue, &bad, &err), LAP_E_ARG, "at least 1");
    bad = good;
    bad.local[0] = 64;
    bad.local[1] = 17;
    assert_fails(lap_enqueue(f.queue, &bad, &err), LAP_E_LAUNCH, "1088 work-items, at most 1024");
    bad.local[1] = 16;
    assert_ok(lap_enqueue(f.queue, &bad, &err));
    bad = good;
    bad.local[2] = 65;
    assert_fails(lap_enqueue(f.queue, &bad, &err), LAP_E_LAUNCH, "65 in dimension 2, at most 64");
    bad = good;
    bad.arg_count = LAP_MAX_ARGS + 1;
    assert_fails(lap_enqueue(f.queue, &bad, &err), LAP_E_ARG, "17 arguments, at most 16");
    bad = good;
    bad.args = NULL;
    assert_fails(lap_enqueue(f.queue, &bad, &err), LAP_E_ARG, "args is NULL");
    bad = good;
    bad.dynamic_local_bytes = 16;
    assert_fails(lap_enqueue(f.queue, &bad, &err), LAP_E_ARG, "must be 0 on fake");
    args[1].kind = (lap_arg_kind)7;
    assert_fails(lap_enqueue(f.queue, &good, &err), LAP_E_ARG, "unknown kind 7");
    end(&f);
}

/* No device limit known: products near and above 2^64 and 2^32 must still be refused by the
 * kernel's limit, never wrap around to a small number. */
static void test_launch_no_wrap(void **state) {
    (void)state;
    fake_setup();
    memset(fake.devices[0].max_group_dim, 0, sizeof fake.devices[0].max_group_dim);
    lap_device *device = open_fake(0);
    lap_queue *queue;
    lap_kernel *kernel;
    assert_ok(lap_queue_new(device, &queue, &err));
    assert_ok(build_add(device, 0, &kernel, &err));
    static const uint32_t locals[][3] = {{65536, 65536, 1},
                                         {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                         {1u << 31, 1u << 31, 4},
                                         {1u << 22, 1u << 21, 1u << 21}};
    for (size_t i = 0; i < sizeof locals / sizeof locals[0]; i++) {
        lap_launch launch = {.kernel = kernel, .groups = {1, 1, 1}};
        memcpy(launch.local, locals[i], sizeof launch.local);
        assert_fails(lap_enqueue(queue, &launch, &err), LAP_E_LAUNCH, "at most 1024");
    }
    lap_kernel_free(kernel);
    lap_queue_free(queue);
    assert_ok(lap_device_close(device, &err));
}

static void test_foreign(void **state) {
    (void)state;
    fixture f = begin();
    fake.device_count = 2;
    lap_device *two = open_fake(1);
    lap_queue *queue;
    lap_event *event;
    char byte = 0;
    assert_ok(lap_queue_new(two, &queue, &err));
    assert_ok(lap_event_new(two, &event, &err));
    assert_fails(lap_buffer_write(queue, f.buffer, 0, &byte, 1, &err), LAP_E_ARG,
                 "the queue is on fake:1, the buffer on fake:0");
    assert_fails(enqueue_add(queue, f.kernel, f.buffer, 1, &err), LAP_E_ARG, "built for fake:0");
    assert_fails(lap_event_record(event, f.queue, &err), LAP_E_ARG, "fake:1");
    lap_kernel *kernel;
    assert_ok(build_add(two, 1, &kernel, &err));
    assert_fails(enqueue_add(queue, kernel, f.buffer, 1, &err), LAP_E_ARG, "argument 0");
    lap_kernel_free(kernel);
    lap_event_free(event);
    lap_queue_free(queue);
    assert_ok(lap_device_close(two, &err));
    end(&f);
}

static void test_memory_limit(void **state) {
    (void)state;
    fixture f = begin();
    lap_buffer *a, *b;
    fake.devices[0].memory_bytes = 4096;
    assert_ok(lap_buffer_new(f.device, 3072, &a, &err));
    assert_fails(lap_buffer_new(f.device, 1, &b, &err), LAP_E_OOM, "no room for 1 bytes");
    lap_buffer_free(a);
    fake.devices[0].max_alloc_bytes = 2048;
    assert_fails(lap_buffer_new(f.device, 2049, &a, &err), LAP_E_OOM, "2049");
    /* The lazy kind: granted, then missing when it is used. */
    fake.lazy_memory = true;
    assert_ok(lap_buffer_new(f.device, (size_t)1 << 40, &a, &err));
    assert_fails(enqueue_add(f.queue, f.kernel, a, 1, &err), LAP_E_OOM, "promised");
    lap_buffer_free(a);
    assert_int_equal(fake.used_bytes[0], 1024);
    end(&f);
}

static void test_lost(void **state) {
    (void)state;
    fixture f = begin();
    fake.fail_launch = 1;
    fake.fail_launch_status = LAP_E_DEVICE;
    fake.fail_at_finish = true;
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_fails(lap_queue_finish(f.queue, &err), LAP_E_DEVICE, "an earlier launch failed");
    /* The fake recovers; the wrappers do not believe it. */
    assert_fails(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err), LAP_E_DEVICE,
                 "is lost since lap_queue_finish failed");
    uint64_t have, total;
    assert_fails(lap_device_memory(f.device, &have, &total, &err), LAP_E_DEVICE, "lost");
    lap_device *again = open_fake(0);
    assert_ok(lap_device_close(again, &err));
    end(&f);
}

static void test_optional(void **state) {
    (void)state;
    fixture f = begin();
    const lap_device_ops all = fake_ops;
    lap_graph *graph;
    lap_gemm gemm = {0};
    uint64_t have, total;
    fake_ops.memory = NULL;
    fake_ops.graph_end = NULL;
    assert_fails(lap_device_memory(f.device, &have, &total, &err), LAP_E_UNSUPPORTED, "fake");
    assert_false(lap_device_has_graphs(f.device));
    assert_fails(lap_graph_begin(f.queue, &err), LAP_E_UNSUPPORTED, "fake has no graphs");
    assert_fails(lap_graph_end(f.queue, &graph, &err), LAP_E_UNSUPPORTED, "fake has no graphs");
    fake_ops = all;
    assert_false(lap_device_has_gemm(f.device));
    assert_string_equal(lap_device_gemm_name(f.device), "");
    assert_fails(lap_gemm_enqueue(f.queue, &gemm, &err), LAP_E_UNSUPPORTED, "fake has no GEMM");
    lap_device_info info = *lap_device_get_info(f.device);
    strcpy(info.backend, "absent");
    lap_device *device;
    assert_fails(lap_device_open(&info, &device, &err), LAP_E_UNSUPPORTED, "\"absent\"");
    assert_null(device);
    fake.open_status = LAP_E_DEVICE;
    assert_fails(lap_device_open(lap_device_get_info(f.device), &device, &err), LAP_E_DEVICE,
                 "cannot be opened");
    end(&f);
}

static void test_gemm(void **state) {
    (void)state;
    fixture f = begin();
    fake.gemm = "Fake BLAS 1.0";
    assert_true(lap_device_has_gemm(f.device));
    float in[10] = {1, 2, 3, 4, /* B, transposed: */ 5, 6, 7, 8, 0, 0}, out[4];
    assert_ok(lap_buffer_write(f.queue, f.buffer, 0, in, sizeof in, &err));
    lap_gemm g = {.m = 2,
                  .n = 2,
                  .k = 2,
                  .a = f.buffer,
                  .b = f.buffer,
                  .c = f.buffer,
                  .b_offset = 4,
                  .c_offset = 16,
                  .lda = 2,
                  .ldb = 2,
                  .ldc = 2};
    g.b_transposed = true;
    assert_ok(lap_gemm_enqueue(f.queue, &g, &err));
    assert_ok(lap_buffer_read(f.queue, f.buffer, 64, out, sizeof out, &err));
    assert_true(out[0] == 17 && out[1] == 23 && out[2] == 39 && out[3] == 53);
    lap_gemm bad = g;
    bad.m = 0;
    assert_fails(lap_gemm_enqueue(f.queue, &bad, &err), LAP_E_ARG, "at least 1");
    bad = g;
    bad.beta = NAN;
    assert_fails(lap_gemm_enqueue(f.queue, &bad, &err), LAP_E_ARG, "beta finite");
    bad = g;
    bad.ldc = 1;
    assert_fails(lap_gemm_enqueue(f.queue, &bad, &err), LAP_E_ARG, "rows of C are 1 apart");
    bad = g;
    bad.c_offset = 253; /* 256 elements: the last one would be the 257th */
    assert_fails(lap_gemm_enqueue(f.queue, &bad, &err), LAP_E_ARG, "matrix C");
    bad.c_offset = 252;
    assert_ok(lap_gemm_enqueue(f.queue, &bad, &err));
    bad = g;
    bad.lda = SIZE_MAX;
    assert_fails(lap_gemm_enqueue(f.queue, &bad, &err), LAP_E_ARG, "matrix A");
    bad = g;
    bad.b = NULL;
    assert_fails(lap_gemm_enqueue(f.queue, &bad, &err), LAP_E_ARG, "matrix B is NULL");
    end(&f);
}

/* Deferred commands see the memory they were given, whatever the host does next. */
static void test_deferred(void **state) {
    (void)state;
    fixture f = begin();
    fake.deferred = true;
    float zero[256] = {0}, got = -1;
    assert_ok(lap_buffer_write(f.queue, f.buffer, 0, zero, sizeof zero, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 2, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 5, &err));
    assert_ok(lap_buffer_read(f.queue, f.buffer, 0, &got, 4, &err));
    assert_true(got == 7.0f);
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 5, &err));
    end(&f); /* frees the kernel while its launch is waiting */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_null),
        cmocka_unit_test(test_ranges),      cmocka_unit_test(test_views),
        cmocka_unit_test(test_live_counts), cmocka_unit_test(test_build),
        cmocka_unit_test(test_launch),      cmocka_unit_test(test_launch_no_wrap),
        cmocka_unit_test(test_foreign),     cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_lost),        cmocka_unit_test(test_optional),
        cmocka_unit_test(test_gemm),        cmocka_unit_test(test_deferred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
