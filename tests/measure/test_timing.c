/* The protocol over real queue objects of the fake backend: events, waits, and a failure at every
 * device call. */
#include "../device/fixture.h"
#include "measure/protocol.h"

#include <stdio.h>

static lap_error err;

typedef struct rig {
    lap_device *device;
    lap_queue *queue;
    lap_buffer *buffer;
    lap_kernel *kernel;
    lap_timing timing;
} rig;

static lap_status run(void *context, lap_error *detail) {
    rig *r = context;
    LAP_TRY(enqueue_add(r->queue, r->kernel, r->buffer, 1, detail));
    return enqueue_add(r->queue, r->kernel, r->buffer, 1, detail);
}

static void open_rig(rig *r) {
    *r = (rig){.device = open_fake(0)};
    assert_ok(lap_queue_new(r->device, &r->queue, &err));
    assert_ok(lap_buffer_new(r->device, 64, &r->buffer, &err));
    assert_ok(build_add(r->device, 16, &r->kernel, &err));
    assert_ok(lap_timing_open(r->queue, &r->timing, &err));
}

static void close_rig(rig *r) {
    lap_timing_close(&r->timing);
    lap_timing_close(&r->timing); /* again is allowed */
    lap_kernel_free(r->kernel);
    lap_buffer_free(r->buffer);
    lap_queue_free(r->queue);
    assert_ok(lap_device_close(r->device, &err));
    assert_int_equal(fake_alive(), 0);
}

static lap_status measure(rig *r, size_t warmup, size_t repetitions, lap_latency *out) {
    lap_workload workload = {run, r};
    lap_latency_options options = {.warmup_count = warmup, .repetitions = repetitions};
    lap_error_clear(&err);
    return lap_measure_latency(&workload, &r->timing, &options, out, &err);
}

static void device_spans(void **state) {
    (void)state;
    fake_setup();
    fake.launch_s = 100e-6;
    fake.real_time = true;
    rig r;
    open_rig(&r);
    lap_latency l;
    assert_int_equal(measure(&r, 2, 5, &l), LAP_OK);
    assert_int_equal(l.n, 5);
    assert_int_equal(l.clock, LAP_CLOCK_DEVICE);
    assert_int_equal(fake.launches, 2 * 7);
    for (size_t i = 0; i < l.n; i++) {
        double span = l.samples[i].device_s.value;
        assert_true(span > 199.9e-6 && span < 200.1e-6);
        assert_true(l.samples[i].wall_s >= span);
        assert_true(l.samples[i].submit_s <= l.samples[i].wall_s);
    }
    lap_latency_free(&l);
    close_rig(&r);
}

static void stamps_that_lie(void **state) {
    (void)state;
    const fake_timer timers[] = {FAKE_TIMER_ZERO, FAKE_TIMER_REVERSED, FAKE_TIMER_MISSING};
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        fake_setup();
        fake.timer = timers[i];
        rig r;
        open_rig(&r);
        lap_latency l;
        assert_int_equal(measure(&r, 1, 5, &l), LAP_OK);
        assert_int_equal(l.n, 5);
        assert_int_equal(l.bad_stamps, 5);
        assert_int_equal(l.clock, LAP_CLOCK_WALL);
        assert_true(l.clock_reason[0] != '\0');
        assert_true(l.stats.mean.has && l.stats.mean.value > 0);
        lap_latency_free(&l);
        close_rig(&r);
    }
}

/* Walks a failure through every device call of a measurement: it is reported, or it is a stamp and
 * counted, and nothing leaks. */
static void failure_at_every_call(void **state) {
    (void)state;
    const lap_status failures[] = {LAP_E_LAUNCH, LAP_E_DEVICE, LAP_E_OOM, LAP_E_TIMER};
    for (size_t f = 0; f < sizeof failures / sizeof failures[0]; f++) {
        size_t counted = 0, reported = 0;
        for (uint64_t at = 1; at < 100; at++) {
            fake_setup();
            rig r;
            open_rig(&r);
            lap_device_fault_arm(at, failures[f]);
            lap_latency l;
            lap_status status = measure(&r, 1, 2, &l);
            uint64_t calls = lap_device_fault_arm(0, LAP_OK);
            if (status == LAP_OK) {
                counted += l.bad_stamps;
                assert_int_equal(l.n, 2);
            } else {
                reported++;
                assert_int_equal(status, failures[f]);
                assert_int_equal(err.status, failures[f]);
                assert_false(l.has);
            }
            lap_latency_free(&l);
            close_rig(&r);
            if (calls < at) break; /* past the last call */
        }
        /* warm-up: 2 launches and a wait; each repetition: 2 more events and the elapsed time */
        size_t elapsed = failures[f] == LAP_E_TIMER ? 2 : 0;
        assert_int_equal(counted, elapsed);
        assert_int_equal(reported, 3 + 2 * 6 - elapsed);
    }
}

static void failure_at_opening(void **state) {
    (void)state;
    for (uint64_t at = 1; at <= 2; at++) {
        fake_setup();
        lap_device *device = open_fake(0);
        lap_queue *queue;
        assert_ok(lap_queue_new(device, &queue, &err));
        lap_timing timing;
        lap_device_fault_arm(at, LAP_E_DEVICE);
        lap_error_clear(&err);
        assert_int_equal(lap_timing_open(queue, &timing, &err), LAP_E_DEVICE);
        lap_device_fault_arm(0, LAP_OK);
        lap_timing_close(&timing); /* zeroed: allowed */
        lap_queue_free(queue);
        assert_ok(lap_device_close(device, &err));
        assert_int_equal(fake_alive(), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_spans),
        cmocka_unit_test(stamps_that_lie),
        cmocka_unit_test(failure_at_every_call),
        cmocka_unit_test(failure_at_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
