/* The launch floor: on a scripted timer with ticks and jitter, with bad stamps, on the fake device.
 */
#include "base/rng.h"
#include "fake/fake_backend.h"
#include "measure/floor.h"
#include "near.h"

typedef struct script {
    double now, pending, span, tick, jitter;
    size_t launches, stamps, bad_at;
    lap_status fail, fail_stamp;
    bool zero;
    size_t in_span, singles; /* launches since `before`; device spans of one launch so far */
    double single[32];
} script;

static double now(void *context) {
    script *s = context;
    return s->now += 2e-8; /* the host clock steps as it is read */
}
static lap_status before(void *context, lap_error *err) {
    (void)err;
    ((script *)context)->span = 0;
    ((script *)context)->in_span = 0;
    return LAP_OK;
}
static lap_status after(void *context, lap_error *err) {
    (void)context, (void)err;
    return LAP_OK;
}
static lap_status finish(void *context, lap_error *err) {
    script *s = context;
    s->now += s->pending + 1e-5;
    s->pending = 0;
    return s->fail == LAP_OK ? LAP_OK : LAP_FAIL(err, s->fail, "scripted");
}
static lap_status elapsed(void *context, double *seconds, lap_error *err) {
    script *s = context;
    if (++s->stamps == s->bad_at && s->fail_stamp) return LAP_FAIL(err, s->fail_stamp, "scripted");
    if (s->stamps == s->bad_at && s->zero) return LAP_OK;
    if (s->stamps == s->bad_at) return LAP_FAIL(err, LAP_E_TIMER, "scripted");
    *seconds = s->tick > 0 ? round(s->span / s->tick) * s->tick : s->span;
    if (s->in_span == 1 && s->singles < 32) s->single[s->singles++] = *seconds;
    return LAP_OK;
}
static lap_status launch(void *context, lap_error *err) {
    (void)err;
    script *s = context;
    s->in_span++;
    double span = 2e-6 + s->jitter * lap_rng_uniform(1, 1, s->launches++);
    s->span += span;
    s->pending += span;
    s->now += 3e-6;
    return LAP_OK;
}

static lap_status measure(script *s, lap_floor *out) {
    lap_timing timing = {now, before, after, finish, elapsed, s, 1e-9};
    lap_empty empty = {launch, s};
    return lap_floor_measure(&empty, &timing, out, NULL);
}

static void ticks_are_seen(void **state) {
    (void)state;
    script s = {.tick = 32e-9, .jitter = 1e-6};
    lap_floor f;
    assert_int_equal(measure(&s, &f), LAP_OK);
    assert_some(f.claimed_s, 1e-9);
    assert_true(f.measured_s.has && fabs(f.measured_s.value - 32e-9) < 1e-15);
    assert_true(lap_floor_resolution(&f) == f.measured_s.value);
    assert_true(f.host_s.has && fabs(f.host_s.value - 2e-8) < 1e-12);
    assert_true(f.device_s.value > 2e-6 && f.device_s.value < 3e-6);
    assert_true(f.submit_s.value > 3e-6 && f.submit_s.value < 4e-6);
    assert_true(f.wall_s.value > 1.4e-5 && f.wall_s.value < 1.8e-5);
    assert_int_equal(f.bad_stamps, 0);
}

/* Of 15 single launches behind 5 that warm up; those of two and three are between them. */
static void floor_is_the_median(void **state) {
    (void)state;
    script s = {.jitter = 1e-6};
    lap_floor f;
    assert_int_equal(measure(&s, &f), LAP_OK);
    assert_int_equal(s.singles, 5 + 15);
    assert_int_equal(s.launches, 5 + 15 * (1 + 2 + 3));
    int below = 0, above = 0;
    for (size_t i = 5; i < s.singles; i++) {
        below += s.single[i] < f.device_s.value;
        above += s.single[i] > f.device_s.value;
    }
    assert_int_equal(below, 7);
    assert_int_equal(above, 7);
}

/* Spans that never differ show no step: the claim stays. */
static void no_jitter_no_step(void **state) {
    (void)state;
    script s = {0};
    lap_floor f;
    assert_int_equal(measure(&s, &f), LAP_OK);
    assert_none(f.measured_s);
    assert_some(f.device_s, 2e-6);
    assert_true(lap_floor_resolution(&f) == 1e-9);
}

static void bad_stamps_cost_the_device_part(void **state) {
    (void)state;
    script s = {.bad_at = 20, .jitter = 1e-6};
    lap_floor f;
    assert_int_equal(measure(&s, &f), LAP_OK);
    assert_true(f.has);
    assert_int_equal(f.bad_stamps, 1);
    assert_none(f.measured_s);
    assert_none(f.device_s);
    assert_true(f.wall_s.has);
    s = (script){.bad_at = 20, .jitter = 1e-6, .zero = true};
    assert_int_equal(measure(&s, &f), LAP_OK);
    assert_int_equal(f.bad_stamps, 1);
    assert_none(f.device_s);
    s = (script){.bad_at = 20, .fail_stamp = LAP_E_DEVICE}; /* no bad stamp: a lost device */
    assert_int_equal(measure(&s, &f), LAP_E_DEVICE);
    assert_false(f.has);
    s = (script){.fail = LAP_E_DEVICE};
    assert_int_equal(measure(&s, &f), LAP_E_DEVICE);
    assert_false(f.has);
}

static void on_a_device(void **state) {
    (void)state;
    fake_reset();
    lap_registry_add(&fake_ops);
    lap_device *device;
    lap_queue *queue;
    lap_timing timing;
    lap_floor f;
    assert_int_equal(lap_device_open(&fake.devices[0], &device, NULL), LAP_OK);
    assert_int_equal(lap_queue_new(device, &queue, NULL), LAP_OK);
    assert_int_equal(lap_timing_open(queue, &timing, NULL), LAP_OK);
    assert_int_equal(lap_floor_of_queue(queue, &timing, &f, NULL), LAP_OK);
    assert_true(f.has && fake.launches > 0);
    assert_true(fabs(f.device_s.value - 10e-6) < 1e-12);
    fake.fail_build_stem = "nop";
    assert_int_equal(lap_floor_of_queue(queue, &timing, &f, NULL), LAP_E_BUILD);
    assert_false(f.has);
    lap_timing_close(&timing);
    lap_queue_free(queue);
    assert_int_equal(lap_device_close(device, NULL), LAP_OK);
    assert_int_equal(fake_alive(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_seen),    cmocka_unit_test(floor_is_the_median),
        cmocka_unit_test(no_jitter_no_step), cmocka_unit_test(bad_stamps_cost_the_device_part),
        cmocka_unit_test(on_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
