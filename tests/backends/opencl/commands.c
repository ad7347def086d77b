/* Buffers, views, fills, copies and launches on a real device. */
#include "rig.h"

#include <string.h>

static const char source[] =
    "__kernel void add(__global const int *a, __global const int *b, __global int *out, int n,\n"
    "                  int bias) {\n"
    "    int i = (int)get_global_id(0);\n"
    "    if (i < n) out[i] = (a ? a[i] : 1000) + (b ? b[i] : 0) + bias;\n"
    "}\n"
    "__kernel void where(__global int *out) {\n"
    "    int group = (int)(get_group_id(0) + get_num_groups(0) * (get_group_id(1) +\n"
    "                get_num_groups(1) * get_group_id(2)));\n"
    "    int item = (int)(get_local_id(0) + get_local_size(0) * (get_local_id(1) +\n"
    "               get_local_size(1) * get_local_id(2)));\n"
    "    int size = (int)(get_local_size(0) * get_local_size(1) * get_local_size(2));\n"
    "    out[group * size + item] = group * 1000 + item;\n"
    "}\n";

enum { N = 1000 };

static void launch_add(rig *r, void *kernel, void *a, void *b, void *out, int32_t n, int32_t bias) {
    lap_raw_launch launch = {.groups = {(N + 31) / 32, 1, 1}, .local = {32, 1, 1}, .arg_count = 5};
    launch.args[0] = rig_buffer_arg(a);
    launch.args[1] = rig_buffer_arg(b);
    launch.args[2] = rig_buffer_arg(out);
    launch.args[3] = rig_int_arg(n);
    launch.args[4] = rig_int_arg(bias);
    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err));
}

static void read_ints(rig *r, void *buffer, size_t first, int32_t *to, size_t count) {
    rig_ok(r, lap_opencl_ops.buffer_read(r->queue, buffer, first * 4, to, count * 4, &r->err));
}

static void test_add(void **state) {
    rig *r = *state;
    int32_t a[N], b[N], out[N];
    for (int i = 0; i < N; i++) {
        a[i] = i * 7;
        b[i] = -i * 3;
    }
    void *kernel = rig_kernel(r, source, "add", NULL);
    void *da = rig_buffer(r, sizeof a), *db = rig_buffer(r, sizeof b), *dout = rig_buffer(r, 4 * N);
    rig_ok(r, lap_opencl_ops.buffer_write(r->queue, da, 0, a, sizeof a, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_write(r->queue, db, 0, b, sizeof b, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, dout, 0, 4 * N, 0xDEADBEEFu, &r->err));
    launch_add(r, kernel, da, db, dout, N - 1, 5);
    read_ints(r, dout, 0, out, N);
    for (int i = 0; i < N - 1; i++)
        assert_int_equal(out[i], a[i] + b[i] + 5);
    assert_int_equal((uint32_t)out[N - 1], 0xDEADBEEFu); /* not written: the fill shows */

    launch_add(r, kernel, NULL, db, dout, N, 0); /* null pointers reach the kernel */
    read_ints(r, dout, 0, out, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(out[i], 1000 + b[i]);
    launch_add(r, kernel, da, NULL, dout, N, -1);
    read_ints(r, dout, 0, out, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(out[i], a[i] - 1);

    lap_opencl_ops.buffer_free(da);
    lap_opencl_ops.buffer_free(db);
    lap_opencl_ops.buffer_free(dout);
    lap_opencl_ops.kernel_free(kernel);
}

/* Only what changed is told to the driver, and a new buffer is never taken for a freed one. */
static void test_arguments_are_cached(void **state) {
    rig *r = *state;
    int32_t out[N];
    void *kernel = rig_kernel(r, source, "add", NULL);
    void *dout = rig_buffer(r, 4 * N), *a = rig_buffer(r, 4 * N);
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, a, 0, 4 * N, 1, &r->err));
    staged.args_set = 0;
    launch_add(r, kernel, a, NULL, dout, N, 0);
    assert_int_equal(staged.args_set, 5);
    launch_add(r, kernel, a, NULL, dout, N, 0);
    assert_int_equal(staged.args_set, 5);
    launch_add(r, kernel, a, NULL, dout, N, 9);
    assert_int_equal(staged.args_set, 6);
    read_ints(r, dout, 0, out, 1);
    assert_int_equal(out[0], 10);
    for (uint32_t round = 2; round < 10; round++) {
        lap_opencl_ops.buffer_free(a);
        a = rig_buffer(r, 4 * N); /* often at the same address */
        rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, a, 0, 4 * N, round, &r->err));
        size_t before = staged.args_set;
        launch_add(r, kernel, a, NULL, dout, N, 0);
        assert_true(staged.args_set > before);
        read_ints(r, dout, N - 1, out, 1);
        assert_int_equal(out[0], round);
    }
    lap_opencl_ops.buffer_free(a);
    lap_opencl_ops.buffer_free(dout);
    lap_opencl_ops.kernel_free(kernel);
}

static void test_groups_in_three_dimensions(void **state) {
    rig *r = *state;
    lap_raw_launch launch = {.groups = {3, 2, 4}, .local = {4, 2, 1}, .arg_count = 1};
    int32_t out[24 * 8];
    void *kernel = rig_kernel(r, source, "where", NULL), *dout = rig_buffer(r, sizeof out);
    launch.args[0] = rig_buffer_arg(dout);
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, dout, 0, sizeof out, 0xFFFFFFFFu, &r->err));
    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err));
    read_ints(r, dout, 0, out, 24 * 8);
    for (int group = 0; group < 24; group++)
        for (int item = 0; item < 8; item++)
            assert_int_equal(out[group * 8 + item], group * 1000 + item);
    lap_opencl_ops.buffer_free(dout);
    lap_opencl_ops.kernel_free(kernel);
}

static void test_views_and_partial_copies(void **state) {
    rig *r = *state;
    const size_t align = r->info.base_align_bytes < 4 ? 4 : r->info.base_align_bytes;
    const size_t total = 4 * align;
    void *parent = rig_buffer(r, total), *view = NULL;
    rig_ok(r, lap_opencl_ops.buffer_view(parent, align, 2 * align, &view, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, parent, 0, total, 0x11111111u, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, view, 0, 2 * align, 0x22222222u, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, view, 4, 4, 0x33333333u, &r->err));
    const int32_t word = 0x44444444;
    rig_ok(r, lap_opencl_ops.buffer_write(r->queue, view, 8, &word, 4, &r->err));
    int32_t got[4];
    read_ints(r, parent, align / 4 - 1, got, 4);
    assert_int_equal(got[0], 0x11111111);
    assert_int_equal(got[1], 0x22222222);
    assert_int_equal(got[2], 0x33333333);
    assert_int_equal(got[3], 0x44444444);
    read_ints(r, parent, 3 * align / 4 - 1, got, 2);
    assert_int_equal(got[0], 0x22222222);
    assert_int_equal(got[1], 0x11111111);
    read_ints(r, view, 2, got, 1);
    assert_int_equal(got[0], 0x44444444);
    lap_opencl_ops.buffer_free(view);
    lap_opencl_ops.buffer_free(parent);
}

static void test_refused_launches(void **state) {
    rig *r = *state;
    void *kernel = rig_kernel(r, source, "where", NULL), *dout = rig_buffer(r, 4096);
    lap_raw_launch good = {.groups = {1, 1, 1}, .local = {4, 1, 1}, .arg_count = 1};
    good.args[0] = rig_buffer_arg(dout);

    lap_raw_launch launch = good;
    launch.local[0] = 1u << 20;
    assert_int_equal(lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err), LAP_E_LAUNCH);
    assert_non_null(strstr(r->err.message, "where"));
    assert_non_null(strstr(r->err.message, "limit"));

    launch = good;
    launch.dynamic_local_bytes = 16;
    assert_int_equal(lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err), LAP_E_UNSUPPORTED);

    launch = good;
    launch.arg_count = 2;
    assert_int_equal(lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err), LAP_E_LAUNCH);
    assert_non_null(strstr(r->err.message, "takes 1 arguments, not 2"));

    launch = good;
    launch.args[0] = rig_int_arg(3); /* a number where a pointer belongs */
    assert_int_equal(lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err), LAP_E_LAUNCH);
    assert_string_equal(r->err.call, "clSetKernelArg");

    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &good, &r->err)); /* still usable */
    rig_ok(r, lap_opencl_ops.queue_finish(r->queue, &r->err));
    lap_opencl_ops.buffer_free(dout);
    lap_opencl_ops.kernel_free(kernel);
}

/* The kernel's limit may be far below the device's. */
static void test_kernel_limit(void **state) {
    rig *r = *state;
    lap_kernel_info info;
    staged.group_limit = 2;
    void *kernel = rig_kernel(r, source, "where", &info), *dout = rig_buffer(r, 4096);
    assert_int_equal(info.max_group_size, 2);
    lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {1, 1, 3}, .arg_count = 1};
    launch.args[0] = rig_buffer_arg(dout);
    assert_int_equal(lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err), LAP_E_LAUNCH);
    assert_non_null(strstr(r->err.message, "limit of 2"));
    launch.local[2] = 2;
    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err));
    rig_ok(r, lap_opencl_ops.queue_finish(r->queue, &r->err));
    lap_opencl_ops.buffer_free(dout);
    lap_opencl_ops.kernel_free(kernel);
}

/* Upload from pinned memory on one queue, add on a second, download on the first: right only if
 * each waits for the other. Many rounds, since a missing wait is a matter of luck. */
static void test_queues_wait(void **state) {
    rig *r = *state;
    enum { COUNT = 1 << 16, ROUNDS = 20 };
    const char *text = "__kernel void bump(__global int *a, const int n) {"
                       " int s = 0; for (int i = 0; i < 200; i++) s += n;"
                       " a[get_global_id(0)] += s / 200; }";
    lap_kernel_info info;
    void *kernel = rig_kernel(r, text, "bump", &info);
    void *buffer = rig_buffer(r, COUNT * sizeof(int32_t)), *second, *uploaded, *computed;
    void *pinned[2];
    int32_t *data[2];
    for (int i = 0; i < 2; i++) {
        void *address;
        rig_ok(r, lap_opencl_ops.pinned_new(r->device, COUNT * sizeof(int32_t), &pinned[i],
                                            &address, &r->err));
        assert_non_null(address);
        data[i] = address;
    }
    rig_ok(r, lap_opencl_ops.queue_new(r->device, &second, &r->err));
    rig_ok(r, lap_opencl_ops.event_new(r->device, &uploaded, &r->err));
    rig_ok(r, lap_opencl_ops.event_new(r->device, &computed, &r->err));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            data[0][i] = i + round;
        memset(data[1], 0, COUNT * sizeof(int32_t));
        rig_ok(r, lap_opencl_ops.buffer_write_async(r->queue, buffer, 0, data[0],
                                                    COUNT * sizeof(int32_t), &r->err));
        rig_ok(r, lap_opencl_ops.event_record(uploaded, r->queue, &r->err));
        rig_ok(r, lap_opencl_ops.queue_wait_event(second, uploaded, &r->err));
        lap_raw_launch launch = {.groups = {COUNT / 64, 1, 1},
                                 .local = {64, 1, 1},
                                 .args = {rig_buffer_arg(buffer), rig_int_arg(7)},
                                 .arg_count = 2};
        rig_ok(r, lap_opencl_ops.enqueue(second, kernel, &launch, &r->err));
        rig_ok(r, lap_opencl_ops.event_record(computed, second, &r->err));
        rig_ok(r, lap_opencl_ops.queue_wait_event(r->queue, computed, &r->err));
        rig_ok(r, lap_opencl_ops.buffer_read_async(r->queue, buffer, 0, data[1],
                                                   COUNT * sizeof(int32_t), &r->err));
        rig_ok(r, lap_opencl_ops.queue_finish(r->queue, &r->err));
        for (int i = 0; i < COUNT; i++)
            if (data[1][i] != i + round + 7)
                fail_msg("round %d: %d instead of %d", round, data[1][i], i + round + 7);
    }
    lap_opencl_ops.event_free(uploaded);
    lap_opencl_ops.event_free(computed);
    lap_opencl_ops.queue_free(second);
    lap_opencl_ops.buffer_free(buffer);
    lap_opencl_ops.kernel_free(kernel);
    for (int i = 0; i < 2; i++)
        lap_opencl_ops.pinned_free(pinned[i]);
}

/* No memory for pinning is LAP_E_OOM, and nothing is left behind. */
static void test_pinned_refused(void **state) {
    rig *r = *state;
    void *pinned = r, *address = r;
    staged.alloc_code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
    assert_int_equal(lap_opencl_ops.pinned_new(r->device, 64, &pinned, &address, &r->err),
                     LAP_E_OOM);
    assert_null(pinned);
    assert_null(address);
    assert_non_null(strstr(r->err.message, "pinning 64 bytes"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(test_add, rig_unstage),
    cmocka_unit_test_teardown(test_arguments_are_cached, rig_unstage),
    cmocka_unit_test_teardown(test_groups_in_three_dimensions, rig_unstage),
    cmocka_unit_test_teardown(test_views_and_partial_copies, rig_unstage),
    cmocka_unit_test_teardown(test_refused_launches, rig_unstage),
    cmocka_unit_test_teardown(test_kernel_limit, rig_unstage),
    cmocka_unit_test_teardown(test_queues_wait, rig_unstage),
    cmocka_unit_test_teardown(test_pinned_refused, rig_unstage),
};

RIG_MAIN(tests)
