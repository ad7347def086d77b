/* Statistics against known values, and what is absent for few samples. */
#include "measure/stats.h"
#include "near.h"

#include <stdlib.h>

static lap_stats stats_of(const double *x, size_t n) {
    lap_stats s;
    assert_int_equal(lap_stats_compute(x, n, &s, NULL), LAP_OK);
    return s;
}

static void none_for_no_samples(void **state) {
    (void)state;
    lap_stats s = stats_of(NULL, 0);
    assert_int_equal(s.n, 0);
    assert_none(s.mean);
    assert_none(s.std);
    assert_none(s.min);
    assert_none(s.p50);
    assert_none(s.p99);
    assert_none(s.max);
}

static void one_sample_has_no_deviation(void **state) {
    (void)state;
    lap_stats s = stats_of((double[]){0.25}, 1);
    assert_int_equal(s.n, 1);
    assert_some(s.mean, 0.25);
    assert_none(s.std);
    assert_some(s.min, 0.25);
    assert_some(s.p50, 0.25);
    assert_some(s.max, 0.25);
    assert_none(s.p90);
}

static void two_and_three_samples(void **state) {
    (void)state;
    lap_stats s = stats_of((double[]){3, 1}, 2);
    assert_some(s.mean, 2);
    assert_some(s.std, sqrt(2.0));
    assert_some(s.p50, 2);
    s = stats_of((double[]){5, 1, 3}, 3);
    assert_some(s.mean, 3);
    assert_some(s.std, 2);
    assert_some(s.p50, 3);
    assert_some(s.min, 1);
    assert_some(s.max, 5);
    assert_none(s.p90);
    assert_none(s.p95);
    assert_none(s.p99);
}

/* 1..n shuffled: the quantile q of 1..n in definition 7 is 1 + (n - 1) q. */
static lap_stats stats_of_range(size_t n) {
    double *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (double)(i * 7 % n + 1); /* a permutation: 7 does not divide the n used here */
    lap_stats s = stats_of(x, n);
    free(x);
    return s;
}

static void percentiles_need_samples(void **state) {
    (void)state;
    lap_stats s = stats_of_range(9);
    assert_none(s.p90);
    s = stats_of_range(10);
    assert_some(s.p50, 5.5);
    assert_some(s.p90, 9.1);
    assert_none(s.p95);
    assert_some(s.std, sqrt(110.0 / 12.0)); /* n (n + 1) / 12 */
    s = stats_of_range(19);
    assert_none(s.p95);
    s = stats_of_range(20);
    assert_some(s.p95, 19.05);
    assert_none(s.p99);
    s = stats_of_range(99);
    assert_none(s.p99);
    s = stats_of_range(100);
    assert_some(s.p90, 90.1);
    assert_some(s.p95, 95.05);
    assert_some(s.p99, 99.01);
    assert_some(s.mean, 50.5);
}

/* numpy.quantile([1, 2, 4, 8], q) with its default method. */
static void quantile_is_definition_7(void **state) {
    (void)state;
    const double x[] = {1, 2, 4, 8};
    assert_some(lap_quantile(x, 4, 0), 1);
    assert_some(lap_quantile(x, 4, 0.25), 1.75);
    assert_some(lap_quantile(x, 4, 0.5), 3);
    assert_some(lap_quantile(x, 4, 0.9), 6.8);
    assert_some(lap_quantile(x, 4, 1), 8);
    assert_none(lap_quantile(x, 4, -0.01));
    assert_none(lap_quantile(x, 4, 1.01));
    assert_none(lap_quantile(x, 4, NAN));
    assert_none(lap_quantile(x, 0, 0.5));
}

/* The textbook formula mean(x^2) - mean(x)^2 loses everything here. */
static void deviation_survives_an_offset(void **state) {
    (void)state;
    double x[4] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    lap_stats s = stats_of(x, 4);
    assert_some(s.mean, 1e9 + 10);
    assert_some(s.std, sqrt(30.0));
}

static void equal_samples_have_no_spread(void **state) {
    (void)state;
    double x[100];
    for (int i = 0; i < 100; i++)
        x[i] = 0.1;
    lap_stats s = stats_of(x, 100);
    assert_true(s.std.has && s.std.value >= 0 && s.std.value < 1e-16);
    assert_true(s.p99.value == 0.1);
}

static void not_finite_is_left_out(void **state) {
    (void)state;
    lap_stats s = stats_of((double[]){NAN, 1, INFINITY, 3, -INFINITY}, 5);
    assert_int_equal(s.n, 2);
    assert_some(s.mean, 2);
    assert_some(s.max, 3);
    s = stats_of((double[]){NAN}, 1);
    assert_int_equal(s.n, 0);
    assert_none(s.mean);
}

static void samples_stay_as_they_are(void **state) {
    (void)state;
    double x[3] = {3, 1, 2};
    stats_of(x, 3);
    assert_true(x[0] == 3 && x[1] == 1 && x[2] == 2);
}

static void ratios_are_finite_or_absent(void **state) {
    (void)state;
    assert_some(lap_ratio(lap_some(6), lap_some(3)), 2);
    assert_none(lap_ratio(lap_some(6), lap_some(0)));
    assert_none(lap_ratio(lap_some(6), lap_some(-1)));
    assert_none(lap_ratio(lap_none(), lap_some(1)));
    assert_none(lap_ratio(lap_some(1), lap_none()));
    assert_none(lap_ratio(lap_some(1e300), lap_some(1e-300)));
    assert_none(lap_some(NAN));
    assert_none(lap_some(INFINITY));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_for_no_samples),
        cmocka_unit_test(one_sample_has_no_deviation),
        cmocka_unit_test(two_and_three_samples),
        cmocka_unit_test(percentiles_need_samples),
        cmocka_unit_test(quantile_is_definition_7),
        cmocka_unit_test(deviation_survives_an_offset),
        cmocka_unit_test(equal_samples_have_no_spread),
        cmocka_unit_test(not_finite_is_left_out),
        cmocka_unit_test(samples_stay_as_they_are),
        cmocka_unit_test(ratios_are_finite_or_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
