/* Histograms and cumulative curves of known samples. */
#include "page/rate.h"
#include "page/shape.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static size_t sum(const lap_shape *s) {
    size_t n = s->beyond;
    for (size_t i = 0; i < s->bins; i++)
        n += s->counts[i];
    return n;
}

static void every_sample_is_in_one_bin(void **state) {
    (void)state;
    double x[500];
    unsigned seed = 7;
    for (int i = 0; i < 500; i++) {
        seed = seed * 1103515245u + 12345u;
        x[i] = 1e-3 + 1e-6 * (double)(seed >> 16 & 1023);
    }
    lap_shape s;
    assert_int_equal(lap_shape_of(x, 500, &s, NULL), LAP_OK);
    assert_int_equal(s.n, 500);
    assert_int_equal(sum(&s), 500);
    assert_int_equal(s.beyond, 0);
    assert_in_range(s.bins, 8, LAP_SHAPE_BINS);
    assert_int_equal(s.steps, LAP_SHAPE_STEPS);
    for (size_t i = 1; i < s.steps; i++)
        assert_true(s.value[i] >= s.value[i - 1] && s.share[i] > s.share[i - 1]);
    assert_true(s.share[s.steps - 1] == 1 && s.value[s.steps - 1] == s.most);
    assert_true(s.low == s.value[0] && s.high == s.most);
}

static void counts_are_right(void **state) {
    (void)state;
    /* Quartiles 2.75 and 6.25 of 1..8: bins of 3.5, so the least number of bins: 8, each 7/8. */
    const double x[] = {8, 1, 7, 2, 6, 3, 5, 4};
    lap_shape s;
    assert_int_equal(lap_shape_of(x, 8, &s, NULL), LAP_OK);
    assert_int_equal(s.bins, 8);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(s.counts[i], 1);
    assert_int_equal(s.steps, 8);
    assert_true(s.value[3] == 4 && s.share[3] == 0.5);
}

static void a_far_outlier_is_beyond(void **state) {
    (void)state;
    double x[101];
    for (int i = 0; i < 100; i++)
        x[i] = 1 + 0.001 * i;
    x[100] = 50;
    lap_shape s;
    assert_int_equal(lap_shape_of(x, 101, &s, NULL), LAP_OK);
    assert_int_equal(s.beyond, 1);
    assert_true(s.high < 2 && s.most == 50);
    assert_int_equal(sum(&s), 101);
}

static void all_alike_and_none(void **state) {
    (void)state;
    const double x[] = {0.25, 0.25, 0.25}, zero[] = {0, 0};
    lap_shape s;
    assert_int_equal(lap_shape_of(x, 3, &s, NULL), LAP_OK);
    assert_int_equal(s.bins, 1);
    assert_int_equal(s.counts[0], 3);
    assert_true(s.low < 0.25 && s.high > 0.25);
    assert_int_equal(lap_shape_of(zero, 2, &s, NULL), LAP_OK);
    assert_int_equal(s.counts[0], 2);
    assert_true(s.high > s.low);
    assert_int_equal(lap_shape_of(NULL, 0, &s, NULL), LAP_OK);
    assert_int_equal(s.bins, 0);
}

static void rates(void **state) {
    (void)state;
    lap_span span = {.n = 4, .mean_s = lap_some(0.5), .relative_error = lap_some(0.1)};
    lap_rate r = lap_rate_of(&span, 8);
    assert_true(r.value == 16 && r.has_interval);
    /* Student's t of 3 degrees is 3.1824. */
    assert_true(fabs(r.high - 16 * exp(0.31824)) < 1e-3);
    assert_true(fabs(r.low * r.high - 256) < 1e-9);
    span.n = 1;
    assert_false(lap_rate_of(&span, 8).has_interval);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_is_in_one_bin),
        cmocka_unit_test(counts_are_right),
        cmocka_unit_test(a_far_outlier_is_beyond),
        cmocka_unit_test(all_alike_and_none),
        cmocka_unit_test(rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
