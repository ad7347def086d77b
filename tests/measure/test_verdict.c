/* Verdicts: each word from samples that deserve it, and their order. */
#include "base/rng.h"
#include "measure/result.h"
#include "near.h"

#include <stdlib.h>
#include <string.h>

static lap_row row;

/* A row of n spans of 1 ms with a deviation of 0.1 %, before f changes them. */
static void make(size_t n, double (*f)(double x, size_t i, size_t n)) {
    lap_row_init(&row);
    row.batch = 1;
    lap_latency *l = &row.latency;
    l->samples = calloc(n, sizeof *l->samples);
    double *x = calloc(n, sizeof *x);
    assert_true(l->samples && x);
    for (size_t i = 0; i < n; i++) {
        x[i] = 1e-3 * (1 + 1e-3 * lap_rng_normal(1, 1, i));
        if (f) x[i] = f(x[i], i, n);
        l->samples[i].device_s = lap_some(x[i]);
    }
    l->has = true;
    l->n = l->planned = n;
    l->passes = 1;
    assert_int_equal(lap_stats_compute(x, n, &l->stats, NULL), LAP_OK);
    row.floor = (lap_floor){.has = true, .claimed_s = lap_some(1e-9), .host_s = lap_some(1e-8)};
    free(x);
}

static void expect(lap_verdict want, const char *reason) {
    lap_row_finish(&row);
    if (row.verdict != want || !strstr(row.verdict_reason, reason))
        fail_msg("%s: %s", lap_verdict_name(row.verdict), row.verdict_reason);
    bool noted = false;
    for (size_t i = 0; i < row.note_count; i++)
        noted |= strncmp(row.notes[i], lap_verdict_name(want), strlen(lap_verdict_name(want))) == 0;
    assert_int_equal(noted, want != LAP_VERDICT_STABLE);
    assert_int_equal(row.verdict_advice[0] != '\0', want != LAP_VERDICT_STABLE);
    lap_row_free(&row);
}

static double ramp(double x, size_t i, size_t n) {
    return x * (1 + 0.03 * (double)i / (double)n);
}
static double cooling(double x, size_t i, size_t n) {
    return x * (1 + 0.2 * exp(-5.0 * (double)i / (double)n));
}
static double small_ramp(double x, size_t i, size_t n) {
    return x * (1 + 0.005 * (double)i / (double)n);
}
static double two(double x, size_t i, size_t n) {
    (void)n;
    return lap_rng_uniform(2, 2, i) < 0.3 ? x * 1.1 : x;
}
static double wild(double x, size_t i, size_t n) {
    (void)n;
    return x * (1 + 0.2 * lap_rng_uniform(3, 3, i));
}
static double spikes(double x, size_t i, size_t n) {
    (void)n;
    if (i % 14 == 10) return x * 0.5; /* a seventh of the samples, half of them below */
    return i % 14 == 3 ? x * (1.1 + 3 * lap_rng_uniform(3, 3, i)) : x;
}
static double quantised(double x, size_t i, size_t n) {
    (void)x, (void)n;
    return lap_rng_uniform(4, 4, i) < 0.5 ? 1.00e-3 : 1.03e-3;
}

static void steady_is_stable(void **state) {
    (void)state;
    make(100, NULL);
    expect(LAP_VERDICT_STABLE, "known to +-");
    make(1000, small_ramp); /* significant, but half a percent in all */
    expect(LAP_VERDICT_STABLE, "");
}

static void few_samples(void **state) {
    (void)state;
    for (size_t n = 1; n < 10; n++) {
        make(n, NULL);
        expect(LAP_VERDICT_TOO_SHORT, "samples; fewer than 10");
    }
    make(10, NULL);
    expect(LAP_VERDICT_STABLE, "");
}

static void coarse_timer(void **state) {
    (void)state;
    make(100, NULL);
    row.floor.claimed_s = lap_some(2e-5); /* 1 ms is 50 steps */
    expect(LAP_VERDICT_TOO_SHORT, "100 x the timer's resolution of 20 us");
    make(100, NULL);
    row.floor.claimed_s = lap_some(2e-5);
    row.latency.passes = 2; /* 2 ms are 100 */
    expect(LAP_VERDICT_STABLE, "");
    make(100, NULL); /* what was measured outweighs the claim */
    row.floor.claimed_s = lap_some(2e-5);
    row.floor.measured_s = lap_some(1e-7);
    expect(LAP_VERDICT_STABLE, "");
    make(100, NULL); /* wall spans: the host's clock counts */
    row.floor.claimed_s = lap_some(1);
    row.latency.clock = LAP_CLOCK_WALL;
    expect(LAP_VERDICT_STABLE, "");
}

static void drifts(void **state) {
    (void)state;
    make(100, ramp);
    expect(LAP_VERDICT_DRIFTING, "slower than the first");
    make(100, cooling);
    lap_row_finish(&row);
    assert_int_equal(row.verdict, LAP_VERDICT_DRIFTING);
    assert_non_null(strstr(row.verdict_advice, "warm up longer"));
    lap_row_free(&row);
}

static void two_states(void **state) {
    (void)state;
    make(200, two);
    expect(LAP_VERDICT_BIMODAL, "two groups");
    make(200, quantised);
    expect(LAP_VERDICT_BIMODAL, "two groups");
    make(200, quantised); /* the same, but the timer has such steps */
    row.floor.claimed_s = lap_some(8e-6);
    lap_row_finish(&row);
    assert_int_not_equal(row.verdict, LAP_VERDICT_BIMODAL);
    lap_row_free(&row);
}

static void noise(void **state) {
    (void)state;
    make(30, wild);
    row.latency.stats.p50_ci.low = 0.1e-3;
    row.latency.stats.p50_ci.high = 7.5e-3;
    expect(LAP_VERDICT_NOISY, "the median may be anything from 0.1 to 7.5 ms (95 % interval)");
    make(30, wild);
    expect(LAP_VERDICT_NOISY, "the median is known to +-");
    make(100, spikes);
    expect(LAP_VERDICT_NOISY, "outliers");
    make(100, NULL);
    row.latency.stats.has_outliers = true;
    row.latency.stats.outliers_low = 5;
    row.latency.stats.outliers_high = 7;
    expect(LAP_VERDICT_NOISY, "12 % of the samples are outliers");
    make(100, NULL);
    row.latency.stats.p50 = lap_some(2e-3);
    row.latency.stats.p50_ci = (lap_interval){true, 1.9e-3, 2.1e-3};
    expect(LAP_VERDICT_NOISY, "the median is known to +-5.0 % only (95 % interval)");
    make(100, NULL);
    row.latency.stats.p50 = lap_some(2e-3);
    row.latency.stats.p50_ci = (lap_interval){true, 1.99e-3, 2.01e-3};
    expect(LAP_VERDICT_STABLE, "the median is known to +-0.5 % (95 % interval)");
    for (int i = 0; i < 2; i++) { /* 9 % and 11 %, everything else quiet */
        make(100, NULL);
        row.latency.stats.std = lap_some((i ? 0.11 : 0.09) * row.latency.stats.mean.value);
        expect(i ? LAP_VERDICT_NOISY : LAP_VERDICT_STABLE,
               i ? "the standard deviation is 11 % of the mean" : "known to +-");
    }
}

/* What is not a rule's business leaves the next ones theirs: groups too near each other or a share
 * too small, a trend without a value for it. */
static void rules_that_do_not_apply(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        make(100, NULL);
        lap_stats *s = &row.latency.stats;
        s->modes = (lap_modes){.has = i != 0,
                               .share = i == 1 ? 0.84 : 0.9,
                               .low = 1e-3,
                               .high = i == 2 ? 1.019e-3 : 2e-3,
                               .upper_part = 0.5};
        if (i == 3) s->modes.high = 1.03e-3;
        if (i == 3) row.floor.claimed_s = lap_some(8e-6); /* 30 us: less than four steps */
        if (i == 4) s->modes.has = false;
        s->drift = (lap_drift){.has = i != 4, .p = i == 4 ? 0 : 0.01, .relative = 0.5};
        s->std = lap_some(s->mean.value);
        expect(LAP_VERDICT_NOISY, "the standard deviation is 100 % of the mean");
    }
    make(100, NULL);
    row.latency.stats.modes =
        (lap_modes){.has = true, .share = 0.86, .low = 1e-3, .high = 1.021e-3, .upper_part = 0.25};
    expect(LAP_VERDICT_BIMODAL, "two groups: 75 % near 1 ms, 25 % near 1.021 ms");
}

/* Every rule applies; one after the other is taken away. The first that is left is the verdict. */
static void first_that_applies(void **state) {
    (void)state;
    static const lap_verdict order[] = {LAP_VERDICT_TOO_SHORT, LAP_VERDICT_THROTTLED,
                                        LAP_VERDICT_DRIFTING,  LAP_VERDICT_BIMODAL,
                                        LAP_VERDICT_NOISY,     LAP_VERDICT_STABLE};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        make(100, NULL);
        lap_stats *s = &row.latency.stats;
        if (i < 1) row.floor.claimed_s = lap_some(2e-5);
        if (i < 2)
            row.telemetry = (lap_telemetry_summary){.has = true, .throttled_share = lap_some(0.06)};
        if (i < 3) s->drift = (lap_drift){.has = true, .rho = 0.9, .p = 1e-9, .relative = 0.1};
        if (i < 4)
            s->modes = (lap_modes){
                .has = true, .share = 0.9, .low = 1e-3, .high = 2e-3, .upper_part = 0.5};
        if (i < 5) s->std = lap_some(s->mean.value);
        expect(order[i], "");
    }
}

/* Throttled all of the time: the row keeps every sample and says it. */
static void throttled_throughout(void **state) {
    (void)state;
    make(100, NULL);
    row.telemetry = (lap_telemetry_summary){.has = true, .throttled_share = lap_some(1)};
    strcpy(row.telemetry.reasons, "power cap");
    lap_row_finish(&row);
    assert_int_equal(row.latency.n, 100);
    assert_true(row.fps.has);
    expect(LAP_VERDICT_THROTTLED, "held back in 100 % of the telemetry samples: power cap");
    make(100, NULL);
    row.telemetry = (lap_telemetry_summary){.has = true, .throttled_share = lap_some(0.04)};
    expect(LAP_VERDICT_STABLE, "");
    make(100, NULL); /* no such source: nothing is claimed */
    row.telemetry.has = true;
    expect(LAP_VERDICT_STABLE, "");
}

static void no_latency_no_verdict(void **state) {
    (void)state;
    lap_row_init(&row);
    lap_row_finish(&row);
    assert_int_equal(row.verdict, LAP_VERDICT_NONE);
    assert_int_equal(row.note_count, 0);
    lap_row_free(&row);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_is_stable),
        cmocka_unit_test(few_samples),
        cmocka_unit_test(coarse_timer),
        cmocka_unit_test(drifts),
        cmocka_unit_test(two_states),
        cmocka_unit_test(noise),
        cmocka_unit_test(rules_that_do_not_apply),
        cmocka_unit_test(first_that_applies),
        cmocka_unit_test(throttled_throughout),
        cmocka_unit_test(no_latency_no_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
