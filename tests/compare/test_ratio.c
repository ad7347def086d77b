/* Ratios and their intervals against values from an independent computation, both directions. */
#include "base/rng.h"
#include "compare/ratio.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void near(double got, double want) {
    if (!(fabs(got - want) <= 1e-7 * fabs(want))) fail_msg("got %.12g, want %.12g", got, want);
}

static lap_mean mean_of(double mean, double std, uint64_t n) {
    return (lap_mean){mean, lap_some(std / sqrt((double)n) / mean), n};
}

static void known_values(void **state) {
    (void)state;
    /* Degrees of freedom 10.47 -> 10, t = 2.22813885. */
    lap_mean a = mean_of(2, 0.1, 10), b = mean_of(1, 0.02, 20);
    lap_estimate e = lap_ratio_of_means(&a, &b);
    assert_true(e.has && e.has_interval);
    near(e.ratio, 2);
    near(e.low, 1.9281001179652781);
    near(e.high, 2.0745810669941744);
    near(lap_estimate_half(&e), (2.0745810669941744 - 1.9281001179652781) / 2);
    /* 1.47 -> 1 degree of freedom, t = 12.7062047. */
    a = mean_of(3, 0.3, 2), b = mean_of(2, 0.1, 2);
    e = lap_ratio_of_means(&a, &b);
    near(e.low, 0.5493340368763653);
    near(e.high, 4.095868540740708);
    /* A real pair of runs: 100.8 -> 100. */
    a = mean_of(0.000267736960948, 1.55060265981e-06, 100);
    b = mean_of(0.00044605312, 2.69049764558e-05, 100);
    e = lap_ratio_of_means(&a, &b);
    near(e.ratio, 0.6002355973835584);
    near(e.low, 0.5930628084705067);
    near(e.high, 0.6074951374805594);
}

/* What stands for "faster than" and "slower than" must be the same statement. */
static void both_directions_agree(void **state) {
    (void)state;
    lap_mean a = mean_of(2, 0.1, 10), b = mean_of(1.3, 0.2, 17);
    lap_estimate there = lap_ratio_of_means(&a, &b), back = lap_ratio_of_means(&b, &a);
    lap_estimate inverse = lap_estimate_invert(&there);
    near(inverse.ratio, back.ratio);
    near(inverse.low, back.low);
    near(inverse.high, back.high);
    assert_true(inverse.low < inverse.ratio && inverse.ratio < inverse.high);
    assert_true(inverse.has_interval);
    lap_estimate again = lap_estimate_invert(&inverse);
    near(again.low, there.low);
    near(again.high, there.high);
}

static void nothing_is_made_up(void **state) {
    (void)state;
    lap_mean good = mean_of(2, 0.1, 10), zero = {0, lap_some(0.1), 10};
    lap_mean unsure = {2, lap_none(), 10}, single = {2, lap_some(0.1), 1};
    lap_mean nan = {NAN, lap_some(0.1), 10}, tiny = {5e-324, lap_some(0.1), 10},
             huge = {1e308, lap_some(0.1), 10};
    assert_false(lap_ratio_of_means(&good, &zero).has);
    assert_false(lap_ratio_of_means(&zero, &good).has);
    assert_false(lap_ratio_of_means(&nan, &good).has);
    assert_false(lap_ratio_of_means(&huge, &tiny).has);
    assert_false(lap_ratio_of_means(&tiny, &huge).has);
    lap_estimate e = lap_ratio_of_means(&good, &unsure);
    assert_true(e.has && !e.has_interval);
    assert_true(lap_ratio_of_means(&single, &good).has);
    assert_false(lap_ratio_of_means(&single, &good).has_interval);
    e = lap_estimate_invert(&e);
    assert_true(e.has && !e.has_interval);
    /* An error beyond all measure makes no infinite interval. */
    lap_mean wild = {2, lap_some(1e6), 3};
    assert_false(lap_ratio_of_means(&wild, &good).has_interval);
}

static void no_spread_is_no_width(void **state) {
    (void)state;
    lap_mean a = mean_of(3, 0, 5), b = mean_of(2, 0, 5), c = mean_of(2, 0.1, 5);
    lap_estimate e = lap_ratio_of_means(&a, &b);
    assert_true(e.has_interval);
    near(e.low, 1.5);
    near(e.high, 1.5);
    /* One side without spread: the other's degrees of freedom, 4, t = 2.7764451. */
    e = lap_ratio_of_means(&a, &c);
    near(e.high / e.ratio, exp(2.7764451051977987 * 0.1 / sqrt(5) / 2));
}

/* The interval holds the true ratio in 95 of 100 cases: normal samples, unequal in number and
 * spread. */
static void covers_the_truth(void **state) {
    (void)state;
    enum { CASES = 4000 };
    size_t held = 0;
    for (size_t i = 0; i < CASES; i++) {
        double x[8], y[15];
        lap_stats a, b;
        for (size_t k = 0; k < 8; k++)
            x[k] = 10 + lap_rng_normal(1, i, k);
        for (size_t k = 0; k < 15; k++)
            y[k] = 7 + 0.2 * lap_rng_normal(2, i, k);
        assert_int_equal(lap_stats_compute(x, 8, &a, NULL), LAP_OK);
        assert_int_equal(lap_stats_compute(y, 15, &b, NULL), LAP_OK);
        lap_mean p = mean_of(a.mean.value, a.std.value, 8),
                 q = mean_of(b.mean.value, b.std.value, 15);
        lap_estimate e = lap_ratio_of_means(&p, &q);
        held += e.low <= 10.0 / 7 && 10.0 / 7 <= e.high;
    }
    if (held < 0.94 * CASES || held > 0.96 * CASES) fail_msg("%zu of %d", held, CASES);
}

static lap_estimate interval(double low, double high) {
    return (lap_estimate){true, sqrt(low * high), true, low, high};
}

static void judged_by_the_interval(void **state) {
    (void)state;
    static const struct {
        double low, high;
        lap_judgement want;
    } cases[] = {
        {1.06, 1.20, LAP_JUDGED_FASTER},   {0.80, 0.94, LAP_JUDGED_SLOWER},
        {0.97, 1.03, LAP_JUDGED_SAME},     {1.01, 1.03, LAP_JUDGED_SAME},
        {1.04, 1.08, LAP_JUDGED_UNCLEAR},  {0.90, 0.99, LAP_JUDGED_UNCLEAR},
        {0.80, 1.30, LAP_JUDGED_UNCLEAR},  {0.9523, 0.9524, LAP_JUDGED_UNCLEAR},
        {0.951, 0.952, LAP_JUDGED_SLOWER}, /* 5 % more time is 1/1.05 = 0.95238 of the speed */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_estimate e = interval(cases[i].low, cases[i].high);
        assert_int_equal(lap_judge(&e, 0.05), cases[i].want);
    }
    lap_estimate none = {0}, point = {true, 0.5, false, 0, 0};
    assert_int_equal(lap_judge(&none, 0.05), LAP_JUDGED_UNCLEAR);
    assert_int_equal(lap_judge(&point, 0.05), LAP_JUDGED_UNCLEAR);
    lap_estimate slower = interval(0.99, 0.999);
    assert_int_equal(lap_judge(&slower, 0), LAP_JUDGED_SLOWER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),           cmocka_unit_test(both_directions_agree),
        cmocka_unit_test(nothing_is_made_up),     cmocka_unit_test(no_spread_is_no_width),
        cmocka_unit_test(judged_by_the_interval), cmocka_unit_test(covers_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
