/* Event and graph rules: what cannot give a time is an error, never a number. */
#include "fixture.h"

typedef struct fixture {
    lap_device *device;
    lap_queue *queue, *other;
    lap_buffer *buffer;
    lap_kernel *kernel;
    lap_event *a, *b;
} fixture;

static lap_error err;

static fixture begin(void) {
    fake_setup();
    fixture f = {.device = open_fake(0)};
    assert_ok(lap_queue_new(f.device, &f.queue, &err));
    assert_ok(lap_queue_new(f.device, &f.other, &err));
    assert_ok(lap_buffer_new(f.device, 64, &f.buffer, &err));
    assert_ok(build_add(f.device, 16, &f.kernel, &err));
    assert_ok(lap_event_new(f.device, &f.a, &err));
    assert_ok(lap_event_new(f.device, &f.b, &err));
    return f;
}

static void end(fixture *f) {
    lap_event_free(f->a);
    lap_event_free(f->b);
    lap_kernel_free(f->kernel);
    lap_buffer_free(f->buffer);
    lap_queue_free(f->queue);
    lap_queue_free(f->other);
    assert_ok(lap_device_close(f->device, &err));
    assert_int_equal(fake_alive(), 0);
}

static void assert_near(double got, double wanted) {
    if (!(got > wanted * 0.999999 && got < wanted * 1.000001))
        fail_msg("%.12g is not %.12g", got, wanted);
}

static void test_span(void **state) {
    (void)state;
    fixture f = begin();
    double span;
    fake.launch_s = 2e-3;
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_record(f.a, f.queue, &err));
    for (int i = 0; i < 3; i++)
        assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_wait(f.b, &err));
    assert_ok(lap_event_elapsed(f.a, f.b, &span, &err));
    assert_near(span, 6e-3);
    /* Events may be used again. */
    assert_ok(lap_event_record(f.a, f.queue, &err));
    assert_ok(lap_buffer_fill(f.queue, f.buffer, 0, 4, 0, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_ok(lap_queue_finish(f.queue, &err));
    assert_ok(lap_event_elapsed(f.a, f.b, &span, &err));
    assert_near(span, 1e-6);
    end(&f);
}

static void test_refused(void **state) {
    (void)state;
    fixture f = begin();
    double span = 5;
    assert_fails(lap_event_wait(f.a, &err), LAP_E_ARG, "never recorded");
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "first event");
    assert_true(span == 0);
    assert_ok(lap_event_record(f.a, f.queue, &err));
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "second event");
    assert_fails(lap_event_elapsed(f.a, f.a, &span, &err), LAP_E_TIMER, "before the second");
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "no command");
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_fails(lap_event_elapsed(f.b, f.a, &span, &err), LAP_E_TIMER, "before the second");
    assert_ok(lap_event_record(f.b, f.other, &err));
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_ARG, "two queues");
    assert_fails(lap_event_elapsed(f.a, f.b, NULL, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_event_elapsed(NULL, f.b, &span, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_event_record(f.a, NULL, &err), LAP_E_ARG, "NULL");
    /* A new queue may get the address of a freed one; it is another queue all the same. */
    lap_queue_free(f.other);
    assert_ok(lap_queue_new(f.device, &f.other, &err));
    assert_ok(lap_event_record(f.a, f.other, &err));
    assert_fails(lap_event_elapsed(f.b, f.a, &span, &err), LAP_E_ARG, "two queues");
    assert_ok(lap_event_wait(f.b, &err)); /* its queue finished when it was freed */
    end(&f);
}

/* A launch that was to have no stamp ends no span, on any backend; anything behind it does. */
static void test_unstamped(void **state) {
    (void)state;
    fixture f = begin();
    double span = 5;
    lap_arg args[2] = {{.kind = LAP_ARG_BUFFER, .buffer = f.buffer},
                       {.kind = LAP_ARG_I32, .i32 = 1}};
    lap_launch launch = {.kernel = f.kernel,
                         .groups = {1, 1, 1},
                         .local = {1, 1, 1},
                         .args = args,
                         .arg_count = 2,
                         .unstamped = true};
    assert_ok(lap_event_record(f.a, f.queue, &err));
    assert_ok(lap_enqueue(f.queue, &launch, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_ok(lap_event_wait(f.b, &err));
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "no time stamp");
    assert_true(span == 0);
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_ok(lap_event_elapsed(f.a, f.b, &span, &err));
    assert_ok(lap_enqueue(f.queue, &launch, &err));
    assert_ok(lap_buffer_fill(f.queue, f.buffer, 0, 4, 0, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_ok(lap_event_elapsed(f.a, f.b, &span, &err));
    end(&f);
}

static void test_bad_stamps(void **state) {
    (void)state;
    fixture f = begin();
    double span = 5;
    assert_ok(lap_event_record(f.a, f.queue, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    fake.timer = FAKE_TIMER_ZERO;
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "fake gave 0 s");
    fake.timer = FAKE_TIMER_REVERSED;
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "fake gave -1e-05 s");
    fake.timer = FAKE_TIMER_MISSING;
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "missing");
    assert_int_equal(err.native, -7);
    assert_true(span == 0);
    fake.timer = FAKE_TIMER_OK;
    assert_ok(lap_event_elapsed(f.a, f.b, &span, &err));
    fake.deferred = true;
    assert_ok(lap_event_record(f.a, f.queue, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "not run yet");
    /* A record that failed leaves no stamp behind. */
    assert_ok(lap_event_wait(f.b, &err));
    lap_device_fault_arm(1, LAP_E_LAUNCH);
    assert_fails(lap_event_record(f.b, f.queue, &err), LAP_E_LAUNCH, "planted");
    assert_fails(lap_event_elapsed(f.a, f.b, &span, &err), LAP_E_TIMER, "second event");
    end(&f);
}

static void test_graphs(void **state) {
    (void)state;
    fixture f = begin();
    lap_graph *graph;
    float zero[16] = {0}, got = -1;
    assert_ok(lap_buffer_write(f.queue, f.buffer, 0, zero, sizeof zero, &err));
    assert_fails(lap_graph_end(f.queue, &graph, &err), LAP_E_ARG, "not recording");
    assert_ok(lap_graph_begin(f.queue, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 1, &err));
    assert_ok(enqueue_add(f.queue, f.kernel, f.buffer, 2, &err));
    static const char want[] = "recording a graph";
    assert_fails(lap_graph_begin(f.queue, &err), LAP_E_ARG, want);
    assert_fails(lap_queue_finish(f.queue, &err), LAP_E_ARG, want);
    assert_fails(lap_buffer_read(f.queue, f.buffer, 0, &got, 4, &err), LAP_E_ARG, want);
    assert_fails(lap_buffer_fill(f.queue, f.buffer, 0, 4, 0, &err), LAP_E_ARG, want);
    assert_fails(lap_event_record(f.a, f.queue, &err), LAP_E_ARG, want);
    assert_ok(lap_graph_end(f.queue, &graph, &err));
    assert_ok(lap_buffer_read(f.queue, f.buffer, 0, &got, 4, &err));
    assert_true(got == 0.0f); /* recorded, not run */
    double span;
    assert_ok(lap_event_record(f.a, f.queue, &err));
    assert_ok(lap_graph_launch(graph, f.queue, &err));
    assert_ok(lap_event_record(f.b, f.queue, &err));
    assert_ok(lap_graph_launch(graph, f.queue, &err));
    assert_ok(lap_buffer_read(f.queue, f.buffer, 0, &got, 4, &err));
    assert_true(got == 6.0f);
    assert_ok(lap_event_elapsed(f.a, f.b, &span, &err));
    assert_near(span, 2 * fake.launch_s);
    lap_graph_free(graph);
    /* A failed end leaves a usable queue and nothing alive. */
    assert_ok(lap_graph_begin(f.queue, &err));
    lap_device_fault_arm(1, LAP_E_OOM);
    assert_fails(lap_graph_end(f.queue, &graph, &err), LAP_E_OOM, "planted");
    assert_null(graph);
    assert_ok(lap_queue_finish(f.queue, &err));
    assert_ok(lap_graph_begin(f.queue, &err)); /* freed while recording */
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_span),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unstamped), cmocka_unit_test(test_bad_stamps),
        cmocka_unit_test(test_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
