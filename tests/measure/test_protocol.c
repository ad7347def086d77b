/* The latency protocol against a scripted clock: a device that takes what the script says, stamps
 * that lie in the ways real ones do, failures at each call. No device, no waiting. */
#include "measure/protocol.h"
#include "near.h"

#include <string.h>

/* Time only passes where the script says so. */
typedef struct script {
    double now, pending;
    double submit_s, run_s, wake_s; /* enqueue, device work, waking up after it */
    double first_run_s;             /* extra on the very first run */
    double stamp_scale;             /* stamps tell run_s times this */
    double stamp_offset;
    size_t runs, finishes, stamps;
    size_t bad_from, bad_to; /* stamps (0-based) that are LAP_E_TIMER */
    size_t zero_at;          /* 1-based stamp that is 0 */
    size_t fail_run_at;      /* 1-based run that fails */
    size_t fail_finish_at;
    lap_status failure;
    size_t interrupt_after; /* runs */
    bool between;           /* between before and after */
    size_t outside;         /* runs that were not between two marks */
    size_t prepared;
    lap_status prepare_status; /* of the third */
} script;

static script new_script(void) {
    return (script){.submit_s = 1e-5,
                    .run_s = 1e-3,
                    .wake_s = 5e-5,
                    .stamp_scale = 1,
                    .bad_from = 1,
                    .bad_to = 0};
}

static double now(void *context) {
    return ((script *)context)->now;
}

static lap_status before(void *context, lap_error *err) {
    (void)err;
    ((script *)context)->between = true;
    return LAP_OK;
}

static lap_status after(void *context, lap_error *err) {
    (void)err;
    ((script *)context)->between = false;
    return LAP_OK;
}

static lap_status finish(void *context, lap_error *err) {
    script *s = context;
    s->finishes++;
    if (s->finishes == s->fail_finish_at) return LAP_FAIL(err, s->failure, "scripted finish");
    s->now += s->pending + s->wake_s;
    s->pending = 0;
    return LAP_OK;
}

static lap_status elapsed(void *context, double *seconds, lap_error *err) {
    script *s = context;
    size_t at = s->stamps++;
    *seconds = 0;
    if (at >= s->bad_from && at < s->bad_to) return LAP_FAIL(err, LAP_E_TIMER, "scripted stamp");
    if (s->stamps != s->zero_at) *seconds = s->run_s * s->stamp_scale + s->stamp_offset;
    return LAP_OK;
}

static lap_status run(void *context, lap_error *err) {
    script *s = context;
    s->runs++;
    if (!s->between) s->outside++;
    if (s->runs == s->fail_run_at) return LAP_FAIL(err, s->failure, "scripted run");
    s->now += s->submit_s;
    s->pending += s->run_s + (s->runs == 1 ? s->first_run_s : 0);
    return LAP_OK;
}

static bool interrupted(void *context) {
    script *s = context;
    return s->interrupt_after > 0 && s->runs >= s->interrupt_after;
}

static lap_timing timing_of(script *s) {
    return (lap_timing){now, before, after, finish, elapsed, s, 0};
}

static lap_status measure(script *s, const lap_latency_options *options, lap_latency *out) {
    lap_workload workload = {run, s};
    lap_timing timing = timing_of(s);
    lap_latency_options own = *options;
    own.interrupted = interrupted;
    own.context = s;
    lap_error err = {0};
    lap_status status = lap_measure_latency(&workload, &timing, &own, out, &err);
    assert_int_equal(err.status, status);
    return status;
}

static void spans_are_what_they_say(void **state) {
    (void)state;
    script s = new_script();
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.warmup_count = 3, .repetitions = 10}, &l),
                     LAP_OK);
    assert_int_equal(s.runs, 13);
    assert_int_equal(s.outside, 3); /* warm-up runs are not between events */
    assert_int_equal(l.n, 10);      /* every repetition is a sample */
    assert_int_equal(l.planned, 10);
    assert_int_equal(l.warmup_n, 3);
    assert_int_equal(l.clock, LAP_CLOCK_DEVICE);
    assert_string_equal(l.clock_reason, "");
    for (size_t i = 0; i < l.n; i++)
        assert_some(l.samples[i].device_s, 1e-3);
    assert_true(fabs(l.wall.mean.value - 1.06e-3) < 1e-9);
    assert_true(fabs(l.submit.mean.value - 1e-5) < 1e-9);
    assert_some(l.stats.mean, 1e-3);
    assert_true(l.stats.p90.has && !l.stats.p95.has && !l.stats.p99.has);
    lap_latency_free(&l);
}

static lap_status prepare(void *context, lap_error *err) {
    script *s = context;
    assert_false(s->between);
    assert_true(s->pending == 0);
    s->now += 1; /* never in a span */
    if (++s->prepared == 3 && s->prepare_status) return LAP_FAIL(err, s->prepare_status, "flush");
    return LAP_OK;
}

/* A cold cache: emptied before every sample and before it begins. */
static void prepared_before_each_sample(void **state) {
    (void)state;
    script s = new_script();
    lap_latency l;
    lap_latency_options o = {.warmup_count = 3,
                             .repetitions = 10,
                             .passes_auto = true,
                             .prepare = prepare,
                             .prepare_context = &s};
    assert_int_equal(measure(&s, &o, &l), LAP_OK);
    assert_int_equal(s.prepared, 10);
    assert_int_equal(l.passes, 1);
    assert_near(l.wall.max.value, 1.06e-3);
    for (size_t i = 1; i < l.n; i++) /* one of them before each */
        assert_true(l.samples[i].at_s - l.samples[i - 1].at_s > 1);
    lap_latency_free(&l);
    s = new_script();
    s.prepare_status = LAP_E_LAUNCH;
    assert_int_equal(measure(&s, &o, &l), LAP_E_LAUNCH);
    assert_int_equal(s.runs, 3 + 2);
    assert_false(l.has);
}

/* A first run that takes 5 s more is a cold cost, never part of the latency. */
static void first_run_stays_out(void **state) {
    (void)state;
    script s = new_script();
    s.first_run_s = 5;
    lap_workload workload = {run, &s};
    lap_timing timing = timing_of(&s);
    double first;
    assert_int_equal(lap_measure_once(&workload, &timing, &first, NULL), LAP_OK);
    assert_true(fabs(first - 5.00106) < 1e-6);
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 5}, &l), LAP_OK);
    assert_true(l.wall.max.value < 2e-3);
    lap_latency_free(&l);
}

static void warm_up_by_seconds(void **state) {
    (void)state;
    script s = new_script();
    lap_latency l;
    lap_latency_options o = {.warmup_seconds = 0.0105, .repetitions = 1};
    assert_int_equal(measure(&s, &o, &l), LAP_OK);
    assert_int_equal(l.warmup_n, 10); /* 10 runs of 1.06 ms */
    assert_int_equal(l.n, 1);
    assert_none(l.stats.std);
    lap_latency_free(&l);
    o = (lap_latency_options){.warmup_count = 20, .warmup_seconds = 0.0105, .repetitions = 1};
    s = new_script();
    assert_int_equal(measure(&s, &o, &l), LAP_OK);
    assert_int_equal(l.warmup_n, 20);
    lap_latency_free(&l);
}

/* A clock that stands still must end, and give no rates. */
static void clock_that_stands_still(void **state) {
    (void)state;
    script s = new_script();
    s.submit_s = s.run_s = s.wake_s = 0;
    lap_latency l;
    lap_latency_options o = {.warmup_count = 2, .warmup_seconds = 1, .repetitions = 3};
    assert_int_equal(measure(&s, &o, &l), LAP_OK);
    assert_int_equal(l.n, 3);
    assert_int_equal(l.bad_stamps, 3);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_some(l.stats.mean, 0);
    lap_latency_free(&l);
    lap_workload workload = {run, &s};
    lap_timing timing = timing_of(&s);
    double seconds = 1;
    assert_int_equal(lap_measure_batches(&workload, &timing, 5, NULL, NULL, &seconds, NULL),
                     LAP_E_TIMER);
    assert_true(seconds == 0);
}

static void max_seconds_stops_early(void **state) {
    (void)state;
    script s = new_script();
    lap_latency l;
    lap_latency_options o = {.repetitions = 1000, .max_seconds = 0.0105};
    assert_int_equal(measure(&s, &o, &l), LAP_OK);
    assert_int_equal(l.n, 10);
    assert_true(l.time_limit && !l.interrupted);
    lap_latency_free(&l);
    o.max_seconds = 1e-9; /* at least one sample */
    o.warmup_count = 1000000;
    s = new_script();
    assert_int_equal(measure(&s, &o, &l), LAP_OK);
    assert_int_equal(l.warmup_n, 1);
    assert_int_equal(l.n, 1);
    lap_latency_free(&l);
}

static void bad_stamp_falls_back_to_wall(void **state) {
    (void)state;
    script s = new_script();
    s.bad_from = 4;
    s.bad_to = 6;
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 10}, &l), LAP_OK);
    assert_int_equal(l.n, 10);
    assert_int_equal(l.bad_stamps, 2);
    assert_none(l.samples[4].device_s);
    assert_some(l.samples[6].device_s, 1e-3);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_non_null(strstr(l.clock_reason, "2 of 10"));
    assert_int_equal(l.stats.n, 10); /* of the wall spans */
    assert_near(l.stats.mean.value, l.wall.mean.value);
    assert_int_equal(l.device.n, 8);
    lap_latency_free(&l);
}

static void zero_stamp_is_a_bad_stamp(void **state) {
    (void)state;
    script s = new_script();
    s.zero_at = 2;
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 4}, &l), LAP_OK);
    assert_int_equal(l.bad_stamps, 1);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_some(l.device.min, 1e-3);
    lap_latency_free(&l);
}

/* END < START in unsigned arithmetic: 7.4e10 s. */
static void giant_span_is_rejected(void **state) {
    (void)state;
    script s = new_script();
    s.stamp_offset = 7.4e10;
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 3}, &l), LAP_OK);
    assert_int_equal(l.impossible, 3);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_non_null(strstr(l.clock_reason, "longer than the wall span"));
    assert_true(l.stats.max.value < 1e-2);
    assert_none(l.device.mean);
    lap_latency_free(&l);
}

static void span_longer_than_wall_is_rejected(void **state) {
    (void)state;
    script s = new_script();
    s.stamp_scale = 1.2;
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 3}, &l), LAP_OK);
    assert_int_equal(l.impossible, 3);
    lap_latency_free(&l);
    s = new_script();
    s.stamp_scale = 1.08; /* above wall = 1.06 ms, but within the drift of two clocks */
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 3}, &l), LAP_OK);
    assert_int_equal(l.impossible, 0);
    assert_int_equal(l.clock, LAP_CLOCK_DEVICE);
    lap_latency_free(&l);
}

/* Stamps in another unit: 42 times too short. */
static void span_in_another_unit_is_rejected(void **state) {
    (void)state;
    script s = new_script();
    s.run_s = 10e-3;
    s.stamp_scale = 1.0 / 42;
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 3}, &l), LAP_OK);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_non_null(strstr(l.clock_reason, "shorter than the wall span"));
    lap_latency_free(&l);
    /* A short kernel under a long wake-up is normal. */
    s = new_script();
    s.run_s = 20e-6;
    s.wake_s = 500e-6;
    assert_int_equal(measure(&s, &(lap_latency_options){.repetitions = 3}, &l), LAP_OK);
    assert_int_equal(l.clock, LAP_CLOCK_DEVICE);
    lap_latency_free(&l);
}

static void interrupted_keeps_what_there_is(void **state) {
    (void)state;
    script s = new_script();
    s.interrupt_after = 7;
    lap_latency l;
    lap_latency_options o = {.warmup_count = 2, .repetitions = 100};
    assert_int_equal(measure(&s, &o, &l), LAP_E_INTERRUPTED);
    assert_true(l.has && l.interrupted);
    assert_int_equal(l.n, 5);
    assert_some(l.stats.mean, 1e-3);
    lap_latency_free(&l);
    s = new_script();
    s.interrupt_after = 1;
    assert_int_equal(measure(&s, &o, &l), LAP_E_INTERRUPTED);
    assert_true(!l.has && l.interrupted);
    assert_int_equal(l.n, 0);
    lap_latency_free(&l);
}

static void failures_leave_nothing(void **state) {
    (void)state;
    const lap_status failures[] = {LAP_E_LAUNCH, LAP_E_DEVICE, LAP_E_OOM, LAP_E_TIMER};
    for (size_t f = 0; f < sizeof failures / sizeof failures[0]; f++)
        for (size_t at = 1; at <= 6; at++)
            for (int where = 0; where < 2; where++) {
                script s = new_script();
                s.failure = failures[f];
                if (where)
                    s.fail_run_at = at;
                else
                    s.fail_finish_at = at;
                lap_latency l;
                lap_latency_options o = {.warmup_count = 2, .repetitions = 4};
                assert_int_equal(measure(&s, &o, &l), failures[f]);
                assert_false(l.has);
                assert_null(l.samples);
                assert_int_equal(l.n, 0);
            }
}

static void zero_repetitions_is_refused(void **state) {
    (void)state;
    script s = new_script();
    lap_latency l;
    assert_int_equal(measure(&s, &(lap_latency_options){.warmup_count = 1}, &l), LAP_E_ARG);
    assert_int_equal(s.runs, 0);
}

static void batches_back_to_back(void **state) {
    (void)state;
    script s = new_script();
    lap_workload workload = {run, &s};
    lap_timing timing = timing_of(&s);
    double seconds;
    assert_int_equal(lap_measure_batches(&workload, &timing, 100, NULL, NULL, &seconds, NULL),
                     LAP_OK);
    assert_int_equal(s.runs, 100);
    assert_int_equal(s.finishes, 1);
    assert_true(fabs(seconds - (100 * 1.01e-3 + 5e-5)) < 1e-9);
    s = new_script();
    assert_int_equal(lap_measure_batches(&workload, &timing, 1000, NULL, NULL, &seconds, NULL),
                     LAP_OK);
    assert_int_equal(s.finishes, 8); /* the queue is bounded */
    s = new_script();
    s.interrupt_after = 3;
    assert_int_equal(lap_measure_batches(&workload, &timing, 1000, interrupted, &s, &seconds, NULL),
                     LAP_E_INTERRUPTED);
    assert_int_equal(s.runs, 3);
    assert_int_equal(s.finishes, 1); /* nothing is still running */
    assert_int_equal(lap_measure_batches(&workload, &timing, 0, NULL, NULL, &seconds, NULL),
                     LAP_E_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_are_what_they_say),
        cmocka_unit_test(prepared_before_each_sample),
        cmocka_unit_test(first_run_stays_out),
        cmocka_unit_test(warm_up_by_seconds),
        cmocka_unit_test(clock_that_stands_still),
        cmocka_unit_test(max_seconds_stops_early),
        cmocka_unit_test(bad_stamp_falls_back_to_wall),
        cmocka_unit_test(zero_stamp_is_a_bad_stamp),
        cmocka_unit_test(giant_span_is_rejected),
        cmocka_unit_test(span_longer_than_wall_is_rejected),
        cmocka_unit_test(span_in_another_unit_is_rejected),
        cmocka_unit_test(interrupted_keeps_what_there_is),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(zero_repetitions_is_refused),
        cmocka_unit_test(batches_back_to_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
