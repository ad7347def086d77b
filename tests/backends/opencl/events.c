/* Events: spans that are sane on a real device, refusals that are never a number, no leaks. */
#include "rig.h"

#include "base/clock.h"
#include "opencl.h"

#include <string.h>

static const char source[] = "__kernel void spin(__global float *x, int n) {\n"
                             "    float v = x[get_global_id(0)];\n"
                             "    for (int i = 0; i < n; i++) v = v * 0.999f + 0.5f;\n"
                             "    x[get_global_id(0)] = v;\n"
                             "}\n";

typedef struct scene {
    rig *r;
    void *kernel, *buffer, *events[8];
} scene;

static scene begin(void **state) {
    scene s = {.r = *state};
    s.kernel = rig_kernel(s.r, source, "spin", NULL);
    s.buffer = rig_buffer(s.r, 4 * 4096);
    rig_ok(s.r, lap_opencl_ops.buffer_fill(s.r->queue, s.buffer, 0, 4 * 4096, 0, &s.r->err));
    for (size_t i = 0; i < 8; i++)
        rig_ok(s.r, lap_opencl_ops.event_new(s.r->device, &s.events[i], &s.r->err));
    return s;
}

static void end(scene *s) {
    for (size_t i = 0; i < 8; i++)
        lap_opencl_ops.event_free(s->events[i]);
    lap_opencl_ops.buffer_free(s->buffer);
    lap_opencl_ops.kernel_free(s->kernel);
}

static void launch(scene *s, int32_t n, bool unstamped) {
    lap_raw_launch launch = {
        .groups = {64, 1, 1}, .local = {64, 1, 1}, .arg_count = 2, .unstamped = unstamped};
    launch.args[0] = rig_buffer_arg(s->buffer);
    launch.args[1] = rig_int_arg(n);
    rig_ok(s->r, lap_opencl_ops.enqueue(s->r->queue, s->kernel, &launch, &s->r->err));
}

static void spin(scene *s, int32_t n) {
    launch(s, n, false);
}

static void record(scene *s, size_t i) {
    rig_ok(s->r, lap_opencl_ops.event_record(s->events[i], s->r->queue, &s->r->err));
}

static void finish(scene *s) {
    rig_ok(s->r, lap_opencl_ops.queue_finish(s->r->queue, &s->r->err));
}

static double span(scene *s, size_t a, size_t b) {
    double seconds = -1;
    rig_ok(s->r, lap_opencl_ops.event_elapsed(s->events[a], s->events[b], &seconds, &s->r->err));
    return seconds;
}

static void expect_timer_error(scene *s, size_t a, size_t b, const char *text) {
    double seconds = -1;
    assert_int_equal(lap_opencl_ops.event_elapsed(s->events[a], s->events[b], &seconds, &s->r->err),
                     LAP_E_TIMER);
    assert_true(seconds == 0);
    if (!strstr(s->r->err.message, text))
        fail_msg("\"%s\" does not say \"%s\"", s->r->err.message, text);
}

static void test_spans(void **state) {
    scene s = begin(state);
    spin(&s, 10); /* compile and warm up outside of the spans */
    finish(&s);
    double wall = lap_clock_now();
    record(&s, 0);
    spin(&s, 20000);
    record(&s, 1);
    spin(&s, 60000);
    record(&s, 2);
    rig_ok(s.r, lap_opencl_ops.event_wait(s.events[2], &s.r->err));
    wall = lap_clock_now() - wall;
    double first = span(&s, 0, 1), second = span(&s, 1, 2), both = span(&s, 0, 2);
    assert_true(first > 0 && second > 0);
    assert_true(both >= first + second);
    assert_true(both <= wall);
    assert_true(both >= 0.02 * wall); /* the device's clock ticks in the unit it claims */
    end(&s);
}

/* With known stamps the span is end(last before b) - start(first after a), exactly. */
static void test_arithmetic(void **state) {
    scene s = begin(state);
    record(&s, 0);
    spin(&s, 1);
    record(&s, 1);
    finish(&s);
    staged.stamps = STAMPS_FIXED;
    assert_true(span(&s, 0, 1) == 2500 * 1e-9);
    end(&s);
}

static void test_refusals(void **state) {
    scene s = begin(state);
    record(&s, 0);
    expect_timer_error(&s, 0, 1, "second event was never recorded");
    expect_timer_error(&s, 1, 0, "first event was never recorded");
    record(&s, 1);
    expect_timer_error(&s, 0, 1, "no command between");
    expect_timer_error(&s, 0, 0, "no command between");
    spin(&s, 10);
    record(&s, 2);
    finish(&s);
    expect_timer_error(&s, 2, 0, "reversed order");
    expect_timer_error(&s, 2, 2, "no command between");
    assert_true(span(&s, 1, 2) > 0);
    /* Nothing was enqueued after 2: a record there is still "nothing between". */
    record(&s, 3);
    expect_timer_error(&s, 2, 3, "no command between");

    void *other = NULL;
    rig_ok(s.r, lap_opencl_ops.queue_new(s.r->device, &other, &s.r->err));
    rig_ok(s.r, lap_opencl_ops.event_record(s.events[4], other, &s.r->err));
    expect_timer_error(&s, 0, 4, "different queues");
    assert_ptr_equal(((lap_cl_event *)s.events[4])->waiting, other);
    lap_opencl_ops.queue_free(other); /* while event 4 still waits for its first command */
    assert_null(((lap_cl_event *)s.events[4])->waiting);
    spin(&s, 1);
    finish(&s);
    end(&s);
}

static void test_bad_stamps(void **state) {
    scene s = begin(state);
    record(&s, 0);
    spin(&s, 10);
    record(&s, 1);
    finish(&s);
    staged.stamps = STAMPS_ZERO;
    expect_timer_error(&s, 0, 1, "stamp of zero");
    staged.stamps = STAMPS_REVERSED;
    expect_timer_error(&s, 0, 1, "reversed stamps");
    staged.stamps = STAMPS_EQUAL;
    expect_timer_error(&s, 0, 1, "same stamp");
    staged.stamps = STAMPS_MISSING;
    expect_timer_error(&s, 0, 1, "no time stamps");
    assert_int_equal(s.r->err.native, CL_PROFILING_INFO_NOT_AVAILABLE);
    assert_string_equal(s.r->err.call, "clGetEventProfilingInfo");
    end(&s);
}

static void test_no_profiling_queue(void **state) {
    scene s = begin(state);
    void *plain = NULL;
    staged.profiling_code = CL_INVALID_QUEUE_PROPERTIES;
    rig_ok(s.r, lap_opencl_ops.queue_new(s.r->device, &plain, &s.r->err));
    void *usual = s.r->queue;
    s.r->queue = plain;
    record(&s, 0);
    spin(&s, 10);
    record(&s, 1);
    rig_ok(s.r, lap_opencl_ops.event_wait(s.events[1], &s.r->err));
    expect_timer_error(&s, 0, 1, "refused a queue with time stamps");
    assert_int_equal(s.r->err.native, CL_INVALID_QUEUE_PROPERTIES);
    s.r->queue = usual;
    lap_opencl_ops.queue_free(plain);
    end(&s);
}

static void test_wait(void **state) {
    scene s = begin(state);
    assert_int_equal(lap_opencl_ops.event_wait(s.events[0], &s.r->err), LAP_E_ARG);
    void *fresh = NULL;
    rig_ok(s.r, lap_opencl_ops.queue_new(s.r->device, &fresh, &s.r->err));
    rig_ok(s.r, lap_opencl_ops.event_record(s.events[0], fresh, &s.r->err));
    rig_ok(s.r, lap_opencl_ops.event_wait(s.events[0], &s.r->err)); /* nothing before it */
    lap_opencl_ops.queue_free(fresh);
    end(&s);
}

/* Only launches next to a record get an event; a record behind one without can be waited for, and
 * gives no time. */
static void test_unstamped(void **state) {
    scene s = begin(state);
    spin(&s, 10);
    finish(&s);
    staged.events_made = 0;
    record(&s, 0);
    launch(&s, 20000, true);
    launch(&s, 20000, true);
    launch(&s, 20000, true);
    launch(&s, 10, false);
    record(&s, 1);
    launch(&s, 10, true);
    rig_ok(s.r, lap_opencl_ops.event_wait(s.events[1], &s.r->err));
    assert_int_equal(staged.events_made, 3);
    double inner = span(&s, 0, 1);
    record(&s, 2);
    launch(&s, 20000, true);
    launch(&s, 10, false);
    record(&s, 3);
    finish(&s);
    assert_true(inner > span(&s, 2, 3)); /* of three such launches, and of one */

    record(&s, 4);
    launch(&s, 10, true);
    launch(&s, 20000, true);
    assert_int_equal(staged.barriers, 0);
    record(&s, 5);
    record(&s, 6);
    assert_int_equal(staged.barriers, 1); /* one serves both */
    float values[64];
    rig_ok(s.r, lap_opencl_ops.event_wait(s.events[6], &s.r->err));
    expect_timer_error(&s, 4, 5, "no event for a timed command");
    expect_timer_error(&s, 4, 6, "no event for a timed command");
    /* and what comes next has its times again */
    rig_ok(s.r,
           lap_opencl_ops.buffer_read(s.r->queue, s.buffer, 0, values, sizeof values, &s.r->err));
    record(&s, 7);
    assert_true(span(&s, 4, 7) > 0);
    assert_true(span(&s, 6, 7) > 0);
    end(&s);
}

/* Every cl_event made or retained is released, whatever order things are recorded and freed in. */
static void test_no_event_leaks(void **state) {
    rig *r = *state;
    rig_ok(r, lap_opencl_ops.queue_finish(r->queue, &r->err));
    void *usual = r->queue;
    staged = (staged_calls){0};
    rig_ok(r, lap_opencl_ops.queue_new(r->device, &r->queue, &r->err));
    scene s = begin(state);
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 8; i++) { /* re-recording while others are pending */
            record(&s, i);
            if (i % 3 != 1) launch(&s, 1, i % 2);
            record(&s, (i + 5) % 8);
        }
        float x;
        rig_ok(r, lap_opencl_ops.buffer_read(r->queue, s.buffer, 0, &x, 4, &r->err));
        rig_ok(r, lap_opencl_ops.buffer_write(r->queue, s.buffer, 0, &x, 4, &r->err));
    }
    lap_opencl_ops.event_free(s.events[0]); /* one before, the others after the queue */
    s.events[0] = NULL;
    lap_opencl_ops.queue_free(r->queue);
    r->queue = usual;
    end(&s);
    assert_true(staged.events_made > 300);
    assert_int_equal(staged.events_made + staged.events_retained, staged.events_released);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(test_spans, rig_unstage),
    cmocka_unit_test_teardown(test_arithmetic, rig_unstage),
    cmocka_unit_test_teardown(test_refusals, rig_unstage),
    cmocka_unit_test_teardown(test_bad_stamps, rig_unstage),
    cmocka_unit_test_teardown(test_no_profiling_queue, rig_unstage),
    cmocka_unit_test_teardown(test_wait, rig_unstage),
    cmocka_unit_test_teardown(test_unstamped, rig_unstage),
    cmocka_unit_test_teardown(test_no_event_leaks, rig_unstage),
};

RIG_MAIN(tests)
