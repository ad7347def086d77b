/* The comparisons behind every verdict. What is not a number must never pass. */
#include "check/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_exact(void **state) {
    (void)state;
    const float got[] = {1, -2, 0, -0.0f, 5};
    const double same[] = {1, -2, -0.0, 0, 5};
    lap_mismatch m = lap_compare_exact(got, same, 5);
    assert_false(m.found);
    assert_int_equal(m.count, 0);
    assert_true(m.worst == 0);
    /* The smallest difference that a double can tell from a float counts. */
    const double other[] = {1, -2 + 0x1p-51, 0, 0, 7};
    m = lap_compare_exact(got, other, 5);
    assert_true(m.found);
    assert_int_equal(m.index, 1);
    assert_int_equal(m.count, 2);
    assert_true(m.got == -2.0f && m.want == -2 + 0x1p-51 && m.allowed == 0);
    assert_true(m.worst == 2);
    assert_false(lap_compare_exact(got, other, 1).found);
    assert_false(lap_compare_exact(got, other, 0).found);
}

static void test_bound(void **state) {
    (void)state;
    const float got[] = {1.0f, 2.0f, 3.0f};
    const double want[] = {1.5, 2, 3}, wide[] = {1, 0, 1}, narrow[] = {0.99, 0, 1};
    assert_false(lap_compare_bound(got, want, wide, 0.5, 3).found); /* on the bound is inside */
    lap_mismatch m = lap_compare_bound(got, want, narrow, 0.5, 3);
    assert_true(m.found);
    assert_int_equal(m.index, 0);
    assert_int_equal(m.count, 1);
    assert_true(m.allowed == 0.5 * 0.99);
    assert_true(m.worst > 1 && m.worst < 1.02);
    /* Without bounds: relative to the value. */
    assert_true(lap_compare_bound(got, want, NULL, 0.33, 3).found);
    assert_false(lap_compare_bound(got, want, NULL, 0.34, 3).found);
    /* No slack at all, nothing but equality. */
    const double zero[] = {0, 0, 0}, equal[] = {1, 2, 3};
    assert_false(lap_compare_bound(got, equal, zero, 1, 3).found);
    assert_true(lap_compare_bound(got, want, zero, 1, 3).found);
    const float minus[] = {-0.0f};
    assert_false(lap_compare_bound(minus, zero, zero, 1, 1).found);
}

static void test_not_finite(void **state) {
    (void)state;
    const float values[] = {NAN, INFINITY, -INFINITY};
    const double ones[] = {1, 1, 1}, same[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const double wide[] = {1e300, 1e300, 1e300};
    const double *const wants[] = {ones, same};
    for (size_t w = 0; w < 2; w++)
        for (size_t i = 0; i < 3; i++) {
            /* Even where the reference is not finite either. */
            lap_mismatch m = lap_compare_exact(values + i, wants[w] + i, 1);
            assert_true(m.found);
            assert_true(isinf(m.worst));
            m = lap_compare_bound(values + i, wants[w] + i, wide, 1, 1);
            assert_true(m.found);
            assert_true(isinf(m.worst));
            assert_true(lap_compare_bound(values + i, wants[w] + i, NULL, 1, 1).found);
            assert_true(isinf(lap_relative_l2(values + i, wants[w] + i, 1)));
        }
    /* A wrong reference or bound must not wave good values through. */
    const float good[] = {1};
    const double nan_bound[] = {(double)NAN};
    assert_true(lap_compare_exact(good, same, 1).found);
    assert_true(lap_compare_bound(good, same, wide, 1, 1).found);
    assert_true(lap_compare_bound(good, ones, nan_bound, 1, 1).found);
    assert_true(lap_compare_bound(good, ones, wide, (double)NAN, 1).found);
    assert_true(isinf(lap_relative_l2(good, same, 1)));
}

static void test_nan_is_counted_once_seen(void **state) {
    (void)state;
    const float got[] = {1, NAN, 3, 5};
    const double want[] = {1, 2, 3, 4};
    lap_mismatch m = lap_compare_exact(got, want, 4);
    assert_int_equal(m.index, 1);
    assert_int_equal(m.count, 2);
    assert_true(isinf(m.worst)); /* a later, finite difference does not replace it */
    assert_true(isinf(lap_relative_l2(got, want, 4)));
}

static void test_relative_l2(void **state) {
    (void)state;
    const float got[] = {3, 5};
    const double want[] = {3, 4}, zeros[] = {0, 0};
    assert_true(fabs(lap_relative_l2(got, want, 2) - 0.2) < 1e-15);
    assert_true(lap_relative_l2(got, (const double[]){3, 5}, 2) == 0);
    assert_true(isinf(lap_relative_l2(got, zeros, 2)));
    const float nothing[] = {0, -0.0f};
    assert_true(lap_relative_l2(nothing, zeros, 2) == 0);
    /* Squares beyond double's range are no agreement. */
    assert_true(isinf(lap_relative_l2(got, (const double[]){1e200, 1}, 2)) ||
                lap_relative_l2(got, (const double[]){1e200, 1}, 2) >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),       cmocka_unit_test(test_bound),
        cmocka_unit_test(test_not_finite),  cmocka_unit_test(test_nan_is_counted_once_seen),
        cmocka_unit_test(test_relative_l2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
