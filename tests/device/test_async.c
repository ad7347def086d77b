/* Asynchronous copies, queues that wait for each other, pinned memory: the wrappers on the fake
 * backend. */
#include "fixture.h"

#include <math.h>

static lap_error err;

typedef struct fixture {
    lap_device *device;
    lap_queue *copies, *work;
    lap_buffer *buffer;
    lap_event *event;
    lap_kernel *kernel;
    lap_pinned *pinned;
} fixture;

static fixture begin(void) {
    fake_setup();
    fixture f = {.device = open_fake(0)};
    assert_ok(lap_queue_new(f.device, &f.copies, &err));
    assert_ok(lap_queue_new(f.device, &f.work, &err));
    assert_ok(lap_buffer_new(f.device, 1024, &f.buffer, &err));
    assert_ok(lap_event_new(f.device, &f.event, &err));
    assert_ok(build_add(f.device, 256, &f.kernel, &err));
    assert_ok(lap_pinned_new(f.device, 1024, &f.pinned, &err));
    return f;
}

static void end(fixture *f) {
    lap_pinned_free(f->pinned);
    lap_kernel_free(f->kernel);
    lap_event_free(f->event);
    lap_buffer_free(f->buffer);
    lap_queue_free(f->copies);
    lap_queue_free(f->work);
    assert_ok(lap_device_close(f->device, &err));
    assert_int_equal(fake_alive(), 0);
}

/* Nothing runs before it must: upload on one queue, work on another, download on the first. */
static void test_order(void **state) {
    (void)state;
    fixture f = begin();
    fake.deferred = true;
    float *host = lap_pinned_data(f.pinned);
    for (int i = 0; i < 256; i++)
        host[i] = (float)i;
    assert_ok(lap_buffer_write_async(f.copies, f.buffer, 0, host, 1024, &err));
    assert_ok(lap_event_record(f.event, f.copies, &err));
    assert_ok(lap_queue_wait_event(f.work, f.event, &err));
    assert_ok(enqueue_add(f.work, f.kernel, f.buffer, 5, &err));
    assert_ok(lap_event_record(f.event, f.work, &err));
    assert_ok(lap_queue_wait_event(f.copies, f.event, &err));
    assert_ok(lap_buffer_read_async(f.copies, f.buffer, 4, host, 8, &err));
    assert_true(host[0] == 0.0f && host[1] == 1.0f); /* nobody waited yet */
    assert_ok(lap_queue_finish(f.copies, &err));
    assert_true(host[0] == 6.0f && host[1] == 7.0f && host[2] == 2.0f);
    assert_int_equal(fake.queue_waits, 2);
    end(&f);
}

/* A queue that waits starts no sooner than what it waits for ends. */
static void test_clock(void **state) {
    (void)state;
    fixture f = begin();
    lap_event *a, *b;
    assert_ok(lap_event_new(f.device, &a, &err));
    assert_ok(lap_event_new(f.device, &b, &err));
    fake.launch_s = 1.0;
    fake.copy_bytes_per_s = 1024;
    for (int i = 0; i < 3; i++)
        assert_ok(enqueue_add(f.work, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_record(f.event, f.work, &err));
    assert_ok(lap_event_record(a, f.copies, &err));
    assert_ok(lap_queue_wait_event(f.copies, f.event, &err));
    assert_ok(lap_buffer_read_async(f.copies, f.buffer, 0, lap_pinned_data(f.pinned), 1024, &err));
    assert_ok(lap_event_record(b, f.copies, &err));
    assert_ok(lap_queue_finish(f.copies, &err));
    double seconds = 0;
    assert_ok(lap_event_elapsed(a, b, &seconds, &err));
    assert_true(fabs(seconds - (3.0 + 1.0 + fake.command_s)) < 1e-9);
    lap_event_free(a);
    lap_event_free(b);
    end(&f);
}

static void test_arguments(void **state) {
    (void)state;
    fixture f = begin();
    char bytes[8];
    assert_fails(lap_buffer_write_async(NULL, f.buffer, 0, bytes, 8, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_buffer_write_async(f.work, f.buffer, 0, NULL, 8, &err), LAP_E_ARG, "data");
    assert_fails(lap_buffer_read_async(f.work, f.buffer, 1020, bytes, 8, &err), LAP_E_ARG, "1020");
    assert_fails(lap_buffer_read_async(f.work, f.buffer, 0, NULL, 8, &err), LAP_E_ARG, "data");
    assert_fails(lap_queue_wait_event(f.work, NULL, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_queue_wait_event(f.work, f.event, &err), LAP_E_ARG, "never recorded");
    assert_fails(lap_pinned_new(f.device, 8, NULL, &err), LAP_E_ARG, "out");
    lap_pinned *pinned = (lap_pinned *)bytes;
    assert_fails(lap_pinned_new(f.device, 0, &pinned, &err), LAP_E_ARG, "0 bytes");
    assert_null(pinned);
    assert_fails(lap_pinned_new(NULL, 8, &pinned, &err), LAP_E_ARG, "device");
    lap_pinned_free(NULL);
    assert_null(lap_pinned_data(NULL));
    assert_ok(lap_graph_begin(f.work, &err));
    assert_fails(lap_buffer_write_async(f.work, f.buffer, 0, bytes, 8, &err), LAP_E_ARG, "graph");
    lap_graph *graph;
    assert_ok(lap_graph_end(f.work, &graph, &err));
    lap_graph_free(graph);
    end(&f);
}

static void test_foreign(void **state) {
    (void)state;
    fixture f = begin();
    fake.device_count = 2;
    lap_device *other = open_fake(1);
    lap_queue *queue;
    assert_ok(lap_queue_new(other, &queue, &err));
    assert_ok(lap_event_record(f.event, f.work, &err));
    assert_fails(lap_queue_wait_event(queue, f.event, &err), LAP_E_ARG, "fake:1");
    assert_fails(lap_buffer_write_async(queue, f.buffer, 0, "abcdefgh", 8, &err), LAP_E_ARG,
                 "fake:1");
    lap_queue_free(queue);
    assert_ok(lap_device_close(other, &err));
    end(&f);
}

/* A backend without them: said so, not crashed. */
static void test_absent(void **state) {
    (void)state;
    fixture f = begin();
    lap_device_ops saved = fake_ops;
    char bytes[8];
    assert_true(lap_device_has_async(f.device) && lap_device_has_pinned(f.device));
    assert_ok(lap_event_record(f.event, f.work, &err));
    fake_ops.queue_wait_event = NULL;
    fake_ops.pinned_free = NULL;
    assert_false(lap_device_has_async(f.device) || lap_device_has_pinned(f.device));
    assert_fails(lap_buffer_write_async(f.work, f.buffer, 0, bytes, 8, &err), LAP_E_UNSUPPORTED,
                 "fake");
    assert_fails(lap_buffer_read_async(f.work, f.buffer, 0, bytes, 8, &err), LAP_E_UNSUPPORTED,
                 "fake");
    assert_fails(lap_queue_wait_event(f.work, f.event, &err), LAP_E_UNSUPPORTED, "fake");
    lap_pinned *pinned;
    assert_fails(lap_pinned_new(f.device, 8, &pinned, &err), LAP_E_UNSUPPORTED, "pinned");
    fake_ops = saved;
    end(&f);
}

/* Pinned memory is a live object like any other. */
static void test_live(void **state) {
    (void)state;
    fixture f = begin();
    lap_pinned *kept = f.pinned;
    lap_kernel_free(f.kernel);
    lap_event_free(f.event);
    lap_buffer_free(f.buffer);
    lap_queue_free(f.copies);
    lap_queue_free(f.work);
    assert_fails(lap_device_close(f.device, &err), LAP_E_INTERNAL, "1 pieces of pinned");
    lap_pinned_free(kept);
    assert_ok(lap_device_close(f.device, &err));
    assert_int_equal(fake_alive(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_clock),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_absent),    cmocka_unit_test(test_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
