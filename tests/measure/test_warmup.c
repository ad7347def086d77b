/* Warm-up until steady, noise as the end, passes for coarse timers, clock bands that know the
 * overhead, and blocks: all against a scripted device. */
#include "base/rng.h"
#include "measure/protocol.h"
#include "near.h"

#include <stdlib.h>
#include <string.h>

/* Run i takes seconds(i); stamps are cut to ticks. */
typedef struct script {
    double now, pending, spans;
    double (*seconds)(size_t run);
    double tick, wake_s, stamp_scale;
    double gap_s; /* in a device span before its first run */
    bool between, bad;
    size_t runs, interrupt_after;
    bool telemetry_on;
} script;

static double noisy_ms(size_t i) {
    return 1e-3 * (1 + 0.01 * lap_rng_normal(1, 1, i));
}
static double settling(size_t i) { /* 5 x slower at first, within 1 % after 92 runs of 20 */
    return 1e-3 * (1 + 4 * exp(-(double)i / 20)) * (1 + 0.002 * lap_rng_normal(2, 2, i));
}
static double restless(size_t i) {
    return 1e-3 * (1 + (double)i / 100);
}
static double constant(size_t i) {
    (void)i;
    return 20e-6;
}

static script new_script(double (*seconds)(size_t)) {
    return (script){.seconds = seconds, .wake_s = 5e-5, .stamp_scale = 1};
}

static double now(void *context) {
    return ((script *)context)->now;
}
static lap_status before(void *context, lap_error *err) {
    (void)err;
    script *s = context;
    s->between = true;
    s->spans = 0;
    return LAP_OK;
}
static lap_status after(void *context, lap_error *err) {
    (void)err;
    ((script *)context)->between = false;
    return LAP_OK;
}
static lap_status finish(void *context, lap_error *err) {
    (void)err;
    script *s = context;
    s->now += s->pending + s->wake_s;
    s->pending = 0;
    return LAP_OK;
}
static lap_status elapsed(void *context, double *seconds, lap_error *err) {
    script *s = context;
    if (s->bad) return LAP_FAIL(err, LAP_E_TIMER, "scripted stamp");
    double span = s->spans * s->stamp_scale;
    *seconds = s->tick > 0 ? round(span / s->tick) * s->tick : span;
    return LAP_OK;
}
static lap_status run(void *context, lap_error *err) {
    (void)err;
    script *s = context;
    double span = s->seconds(s->runs++);
    if (s->between && s->spans == 0) span += s->gap_s;
    s->pending += span;
    if (s->between) s->spans += span;
    return LAP_OK;
}
static bool interrupted(void *context) {
    script *s = context;
    return s->interrupt_after > 0 && s->runs >= s->interrupt_after;
}

static lap_timing timing_of(script *s) {
    return (lap_timing){now, before, after, finish, elapsed, s, s->tick};
}

static lap_status measure(script *s, lap_latency_options o, lap_latency *out) {
    lap_workload workload = {run, s};
    lap_timing timing = timing_of(s);
    o.interrupted = interrupted;
    o.context = s;
    return lap_measure_latency(&workload, &timing, &o, out, NULL);
}

/* ---- warm-up -------------------------------------------------------------------------------- */

static void settles_and_says_when(void **state) {
    (void)state;
    script s = new_script(settling);
    lap_latency l;
    lap_latency_options o = {.warmup_auto = true, .repetitions = 50, .max_seconds = 60};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_true(l.warmup_auto && l.warmup_steady);
    assert_in_range(l.warmup_n, 100, 400);
    assert_true(l.warmup_first_ratio.has && l.warmup_first_ratio.value > 4.5);
    assert_true(l.stats.max.value < 1.03e-3); /* nothing of the settling is in the samples */
    assert_int_equal(l.n, 50);
    lap_latency_free(&l);
}

static void steady_at_once(void **state) {
    (void)state;
    script s = new_script(noisy_ms);
    lap_latency l;
    lap_latency_options o = {.warmup_auto = true, .repetitions = 5, .max_seconds = 60};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_true(l.warmup_steady);
    assert_in_range(l.warmup_n, 190, 400); /* two windows of 0.1 s at 1 ms */
    assert_true(fabs(l.warmup_first_ratio.value - 1) < 0.05);
    lap_latency_free(&l);
}

static void never_steady_is_bounded(void **state) {
    (void)state;
    script s = new_script(restless);
    lap_latency l;
    lap_latency_options o = {.warmup_auto = true, .repetitions = 5, .max_seconds = 2};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_false(l.warmup_steady);
    assert_true(l.warmup_s >= 2 && l.warmup_s < 2.1);
    assert_int_equal(l.n, 5); /* and it is measured all the same */
    lap_latency_free(&l);
    s = new_script(noisy_ms); /* a clock that stands still: bounded by count */
    s.seconds = constant;
    s.wake_s = 0;
    o.max_seconds = 0;
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_true(l.warmup_n <= LAP_WARMUP_MOST);
    lap_latency_free(&l);
}

static void warm_up_without_stamps(void **state) {
    (void)state;
    script s = new_script(settling);
    s.bad = true;
    lap_latency l;
    lap_latency_options o = {.warmup_auto = true, .repetitions = 5, .max_seconds = 60};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_true(l.warmup_steady); /* by wall spans */
    assert_true(l.untimed_bad == l.warmup_n);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_false(l.comparable);
    lap_latency_free(&l);
    s = new_script(settling);
    s.interrupt_after = 50;
    assert_int_equal(measure(&s, o, &l), LAP_E_INTERRUPTED);
    assert_false(l.has);
    lap_latency_free(&l);
}

static void burn_in_by_seconds(void **state) {
    (void)state;
    script s = new_script(noisy_ms);
    lap_latency l;
    lap_latency_options o = {.burn_in_seconds = 0.5, .warmup_count = 3, .repetitions = 5};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_true(l.burn_in_s >= 0.5 && l.burn_in_s < 0.51);
    assert_int_equal(l.warmup_n, 3);
    assert_true(l.samples[0].at_s > 0.5);
    lap_latency_free(&l);
}

static void steadiness_by_itself(void **state) {
    (void)state;
    double spans[100], ends[100], typical;
    for (size_t i = 0; i < 100; i++) {
        spans[i] = i < 50 ? 2 : 1;
        ends[i] = (double)(i + 1);
    }
    assert_false(lap_steady(spans, ends, 20, &typical)); /* a run short of two windows */
    assert_true(lap_steady(spans, ends, 21, &typical));
    assert_true(typical == 2);
    assert_false(lap_steady(spans, ends, 60, &typical));
    assert_true(lap_steady(spans, ends, 71, &typical));
    for (size_t i = 0; i < 100; i++) /* a step of 1.5 % in spans that scatter by 1 % */
        spans[i] = (i < 50 ? 1 : 1.015) + (i % 2 ? 0.01 : -0.01);
    assert_false(lap_steady(spans, ends, 60, &typical));
    assert_true(lap_steady(spans, ends, 50, &typical));
    for (size_t i = 0; i < 100; i++) /* 0.8 % a window, steadily: close, but a trend */
        spans[i] = 1 + 0.0008 * (double)i;
    assert_false(lap_steady(spans, ends, 60, &typical));
    for (size_t i = 0; i < 100; i++)
        spans[i] = 1 + 0.00001 * (double)i;
    assert_true(lap_steady(spans, ends, 60, &typical));
}

/* The medians of the windows count, not only the trend, and a trend only if it is one of more than
 * a quarter of a percent. */
static void steadiness_by_medians(void **state) {
    (void)state;
    enum { N = 21 }; /* 20 runs of 20 ms: two windows of ten */
    double spans[N] = {1e-3}, ends[N], typical;
    const struct {
        double first, second; /* the medians */
        bool mixed, steady;   /* mixed: four of ten lie far on the other side, so no trend */
    } cases[] = {{1.00, 1.02, true, false},   {1.00, 1.009, true, true},
                 {1.00, 1.009, false, false}, {1.00, 1.002, false, true},
                 {1.00, 1.003, false, false}, {1.02, 1.00, true, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double way = cases[k].second > cases[k].first ? 0.1 : -0.1;
        for (int i = 0; i < N; i++)
            ends[i] = 0.02 * i;
        for (int i = 1; i < N; i++) {
            bool late = i > 10, odd = cases[k].mixed && (i % 5 == 2 || i % 5 == 4);
            spans[i] = 1e-3 * (late ? cases[k].second : cases[k].first);
            if (odd) spans[i] += 1e-3 * (late ? -way : way);
        }
        if (lap_steady(spans, ends, N, &typical) != cases[k].steady)
            fail_msg("case %zu: %s", k, cases[k].steady ? "not steady" : "steady");
        assert_near(typical, 1e-3 * cases[k].second);
    }
}

/* ---- noise ---------------------------------------------------------------------------------- */

static void stops_when_quiet(void **state) {
    (void)state;
    script s = new_script(noisy_ms);
    lap_latency l;
    lap_latency_options o = {
        .repetitions = 10000, .min_samples = 20, .noise_target = 1e-3, .max_seconds = 60};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_string_equal(l.ended, "noise_target");
    assert_string_equal(l.stop, "relative_noise");
    assert_in_range(l.n, 60, 180); /* (1 % / 0.1 %)^2 = 100 */
    assert_true(l.noise.has && l.noise.value <= 1e-3);
    lap_latency_free(&l);
    o.noise_target = 0.5;
    s = new_script(noisy_ms);
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_int_equal(l.n, 20); /* never fewer */
    lap_latency_free(&l);
    o.noise_target = 1e-6;
    o.repetitions = 40;
    s = new_script(noisy_ms);
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_string_equal(l.ended, "max_samples");
    assert_int_equal(l.n, 40);
    lap_latency_free(&l);
    o.max_seconds = 0.03;
    s = new_script(noisy_ms);
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_string_equal(l.ended, "max_seconds");
    assert_true(l.time_limit && l.n < 40);
    lap_latency_free(&l);
}

/* ---- passes --------------------------------------------------------------------------------- */

static void passes_by_rule(void **state) {
    (void)state;
    char why[160];
    assert_int_equal(lap_passes_needed(1e-3, 1e-5, 1e-6, why, sizeof why), 1);
    assert_string_equal(why, "");
    assert_int_equal(lap_passes_needed(20e-6, 2e-6, 1e-6, why, sizeof why), 5);
    assert_non_null(strstr(why, "shorter than 100 x the timer's resolution of 1 us"));
    assert_int_equal(lap_passes_needed(250e-6, 0, 1e-6, why, sizeof why), 4);
    assert_non_null(strstr(why, "varies by less"));
    assert_int_equal(lap_passes_needed(2e-3, 0, 1e-6, why, sizeof why), 1);
    assert_int_equal(lap_passes_needed(1e-9, 0, 1e-3, why, sizeof why), LAP_PASSES_MOST);
    assert_int_equal(lap_passes_needed(1e-3, 1e-5, 0, why, sizeof why), 1); /* unknown timer */
    assert_int_equal(lap_passes_needed(0, 0, 1e-6, why, sizeof why), 1);
}

static lap_status prepare(void *context, lap_error *err) {
    (void)context, (void)err;
    return LAP_OK;
}

static void coarse_timer_gets_passes(void **state) {
    (void)state;
    script s = new_script(constant);
    s.tick = 1e-6;
    lap_latency l;
    lap_latency_options o = {.warmup_count = 1, .repetitions = 10, .passes_auto = true};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_int_equal(l.passes, 50);
    assert_true(l.passes_reason[0]);
    assert_int_equal(s.runs, 1 + LAP_PILOT_SAMPLES + 3 * 50 + 10 * 50); /* 3: seen to be enough */
    assert_true(fabs(l.stats.mean.value - 20e-6) < 1e-12);              /* of one pass */
    assert_true(fabs(l.wall.mean.value - (20e-6 + 5e-5 / 50)) < 1e-12);
    lap_latency_free(&l);
    s = new_script(constant);
    s.tick = 1e-6;
    o.prepare = prepare; /* a cold cache serves one pass */
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_int_equal(l.passes, 1);
    lap_latency_free(&l);
    o.prepare = NULL;
    s = new_script(constant);
    s.tick = 1e-6;
    o.passes_auto = false;
    o.passes = 3;
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_int_equal(l.passes, 3);
    assert_string_equal(l.passes_reason, "as configured");
    assert_int_equal(s.runs, 1 + 10 * 3);
    lap_latency_free(&l);
}

/* Passes in a row share what stands before the first: as many as a single one suggests are too
 * short a sample, which the verdict would then call so. */
static double two_us(size_t i) {
    return 2e-6 + 0.3e-6 * (double)(i % 2);
}

static void enough_passes_in_a_row(void **state) {
    (void)state;
    const double ticks[] = {1e-6, 1e-7, 2e-8, 1e-5};
    for (size_t i = 0; i < sizeof ticks / sizeof *ticks; i++) {
        script s = new_script(two_us);
        s.tick = ticks[i];
        s.gap_s = 5e-6;
        lap_latency l;
        lap_latency_options o = {.warmup_count = 1, .repetitions = 20, .passes_auto = true};
        assert_int_equal(measure(&s, o, &l), LAP_OK);
        double steps = l.stats.p50.value * (double)l.passes / ticks[i];
        bool most = i == 3; /* a timer so coarse that no number of passes is enough */
        assert_int_equal(l.passes == LAP_PASSES_MOST, most);
        if (!most && !(steps >= 99.9 && steps < 1300)) fail_msg("%zu passes: %g steps", i, steps);
        lap_latency_free(&l);
    }
}

/* ---- clocks --------------------------------------------------------------------------------- */

/* Stamps 42 times too short on a pass of 1 ms: less than 2 ms apart, so only a measured overhead
 * tells. */
static void scaled_stamps_of_short_passes(void **state) {
    (void)state;
    script s = new_script(noisy_ms);
    s.stamp_scale = 1.0 / 42;
    lap_latency l;
    lap_latency_options o = {.repetitions = 20, .overhead_s = lap_some(2e-5)};
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_false(l.comparable);
    assert_non_null(strstr(l.clock_reason, "shorter than the wall span"));
    lap_latency_free(&l);
    s = new_script(constant); /* 20 us under 500 us of waking up, as the empty kernel has it */
    s.wake_s = 5e-4;
    o.overhead_s = lap_some(5e-4);
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_int_equal(l.clock, LAP_CLOCK_DEVICE);
    assert_true(l.comparable);
    lap_latency_free(&l);
    o.repetitions = 2; /* two samples */
    s = new_script(noisy_ms);
    s.stamp_scale = -1;
    assert_int_equal(measure(&s, o, &l), LAP_OK);
    assert_int_equal(l.bad_stamps, 2);
    assert_int_equal(l.clock, LAP_CLOCK_WALL);
    assert_true(l.stats.std.has && l.stats.mean_ci.has && !l.stats.p50_ci.has);
    lap_latency_free(&l);
}

/* ---- blocks --------------------------------------------------------------------------------- */

static void blocks_make_the_same_row(void **state) {
    (void)state;
    script s = new_script(noisy_ms);
    lap_workload workload = {run, &s};
    lap_timing timing = timing_of(&s);
    lap_latency_options o = {.warmup_count = 2, .repetitions = 25, .rewarm_seconds = 0.0035};
    lap_latency l;
    lap_latency_run r;
    assert_int_equal(lap_latency_begin(&r, &workload, &timing, &o, &l, NULL), LAP_OK);
    bool done = false;
    size_t blocks = 0;
    for (; !done; blocks++)
        assert_int_equal(lap_latency_block(&r, 10, &done, NULL), LAP_OK);
    assert_int_equal(lap_latency_end(&r, LAP_OK, NULL), LAP_OK);
    assert_int_equal(blocks, 3);
    assert_int_equal(l.blocks, 3);
    assert_int_equal(l.n, 25);
    assert_string_equal(l.ended, "fixed");
    assert_int_equal(s.runs, 2 + 25 + 2 * 4); /* 4 runs before the second and the third block */
    assert_true(l.timed_s > 25e-3 && l.timed_s < 28e-3);
    for (size_t i = 1; i < l.n; i++)
        assert_true(l.samples[i].at_s > l.samples[i - 1].at_s);
    lap_latency_free(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settles_and_says_when),    cmocka_unit_test(steady_at_once),
        cmocka_unit_test(never_steady_is_bounded),  cmocka_unit_test(warm_up_without_stamps),
        cmocka_unit_test(burn_in_by_seconds),       cmocka_unit_test(steadiness_by_itself),
        cmocka_unit_test(steadiness_by_medians),    cmocka_unit_test(stops_when_quiet),
        cmocka_unit_test(passes_by_rule),           cmocka_unit_test(coarse_timer_gets_passes),
        cmocka_unit_test(enough_passes_in_a_row),   cmocka_unit_test(scaled_stamps_of_short_passes),
        cmocka_unit_test(blocks_make_the_same_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
