/* Fault injection: the same small scenario with a fault at every single device call, one after the
 * other, until none is hit. Each time the fault must come out as it went in and nothing may leak.
 */
#include "fixture.h"

#include <stdio.h>

static lap_error err;

typedef struct objects {
    lap_device *device;
    lap_queue *queue;
    lap_buffer *buffer, *view;
    lap_kernel *kernel;
    lap_event *a, *b;
    lap_graph *graph;
    lap_queue *second;
    lap_pinned *pinned;
} objects;

static lap_status work(const lap_device_info *info, objects *o, lap_error *error) {
    float data[64] = {0};
    double span;
    uint64_t have, total;
    lap_gemm gemm = {.m = 1, .n = 1, .k = 1, .lda = 1, .ldb = 1, .ldc = 1};
    LAP_TRY(lap_device_open(info, &o->device, error));
    LAP_TRY(lap_device_memory(o->device, &have, &total, error));
    LAP_TRY(lap_queue_new(o->device, &o->queue, error));
    LAP_TRY(lap_buffer_new(o->device, sizeof data, &o->buffer, error));
    LAP_TRY(lap_buffer_view(o->buffer, 128, 128, &o->view, error));
    LAP_TRY(lap_buffer_write(o->queue, o->buffer, 0, data, sizeof data, error));
    LAP_TRY(lap_buffer_fill(o->queue, o->view, 0, 128, 0, error));
    LAP_TRY(build_add(o->device, 32, &o->kernel, error));
    LAP_TRY(lap_event_new(o->device, &o->a, error));
    LAP_TRY(lap_event_new(o->device, &o->b, error));
    LAP_TRY(lap_event_record(o->a, o->queue, error));
    LAP_TRY(enqueue_add(o->queue, o->kernel, o->view, 1, error));
    LAP_TRY(lap_event_record(o->b, o->queue, error));
    LAP_TRY(lap_queue_flush(o->queue, error));
    LAP_TRY(lap_event_wait(o->b, error));
    LAP_TRY(lap_event_elapsed(o->a, o->b, &span, error));
    LAP_TRY(lap_queue_new(o->device, &o->second, error));
    LAP_TRY(lap_pinned_new(o->device, sizeof data, &o->pinned, error));
    memset(lap_pinned_data(o->pinned), 0, sizeof data);
    LAP_TRY(lap_queue_wait_event(o->second, o->b, error));
    LAP_TRY(lap_buffer_write_async(o->second, o->buffer, 0, lap_pinned_data(o->pinned), 4, error));
    LAP_TRY(lap_buffer_read_async(o->second, o->buffer, 0, lap_pinned_data(o->pinned), 4, error));
    LAP_TRY(lap_queue_finish(o->second, error));
    gemm.a = gemm.b = gemm.c = o->buffer;
    LAP_TRY(lap_gemm_enqueue(o->queue, &gemm, error));
    LAP_TRY(lap_graph_begin(o->queue, error));
    LAP_TRY(enqueue_add(o->queue, o->kernel, o->view, 1, error));
    LAP_TRY(lap_graph_end(o->queue, &o->graph, error));
    LAP_TRY(lap_graph_launch(o->graph, o->queue, error));
    LAP_TRY(lap_queue_finish(o->queue, error));
    return lap_buffer_read(o->queue, o->buffer, 0, data, sizeof data, error);
}

static lap_status scenario(const lap_device_info *info, lap_error *error) {
    objects o = {0};
    lap_status status = work(info, &o, error);
    lap_pinned_free(o.pinned);
    lap_queue_free(o.second);
    lap_graph_free(o.graph);
    lap_event_free(o.a);
    lap_event_free(o.b);
    lap_kernel_free(o.kernel);
    lap_buffer_free(o.view);
    lap_buffer_free(o.buffer);
    lap_queue_free(o.queue);
    assert_int_equal(lap_device_close(o.device, NULL), LAP_OK);
    return status;
}

enum { CALLS = 29 }; /* fallible calls in work(), counted by hand */

static void test_every_call(void **state) {
    (void)state;
    static const lap_status kinds[] = {LAP_E_OOM, LAP_E_LAUNCH, LAP_E_DEVICE, LAP_E_BUILD,
                                       LAP_E_TIMER};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        fake_setup();
        fake.gemm = "Fake BLAS";
        uint64_t nth = 0, calls;
        do {
            lap_device_fault_arm(++nth, kinds[k]);
            lap_error_clear(&err);
            lap_status status = scenario(&fake.devices[0], &err);
            calls = lap_device_fault_arm(0, LAP_OK);
            assert_int_equal(status, nth <= calls ? kinds[k] : LAP_OK);
            assert_int_equal(err.status, status);
            if (status) assert_non_null(strstr(err.message, "planted fault"));
            assert_int_equal(fake_alive(), 0);
            assert_int_equal(fake.used_bytes[0], 0);
        } while (nth <= calls);
        printf("%s planted at each of %llu device calls\n", lap_status_name(kinds[k]),
               (unsigned long long)calls);
        assert_int_equal(calls, CALLS);
    }
}

/* Only the nth call fails, except for a lost device, which stays lost. */
static void test_once_or_sticky(void **state) {
    (void)state;
    fake_setup();
    lap_device *device = open_fake(0);
    lap_queue *queue;
    assert_ok(lap_queue_new(device, &queue, &err));
    lap_device_fault_arm(2, LAP_E_LAUNCH);
    assert_ok(lap_queue_finish(queue, &err));
    assert_fails(lap_queue_finish(queue, &err), LAP_E_LAUNCH, "device call 2");
    assert_ok(lap_queue_finish(queue, &err));
    assert_int_equal(lap_device_fault_arm(1, LAP_E_DEVICE), 3);
    assert_fails(lap_queue_finish(queue, &err), LAP_E_DEVICE, "planted");
    assert_fails(lap_queue_finish(queue, &err), LAP_E_DEVICE, "lost since lap_queue_finish");
    lap_queue_free(queue);
    assert_ok(lap_device_close(device, &err));
    assert_int_equal(lap_device_fault_arm(0, LAP_OK), 1); /* what is refused is not counted */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call),
        cmocka_unit_test(test_once_or_sticky),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
