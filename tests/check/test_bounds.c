/* How far off a right result may be, by value: for each kind of step, precision and factor of a
 * row; and the integers whose sums are exact. What the checks make of them is in
 * test_small_floats.c and test_planted.c. */
#include "check/step.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const lap_op conv = {.kind = LAP_OP_CONV, .in = {.c = 16}, .r = 3, .s = 3};
static const lap_op depthwise = {
    .kind = LAP_OP_DWCONV, .in = {.c = 16, .h = 9, .w = 9}, .r = 5, .s = 5};
static const lap_op pool = {.kind = LAP_OP_AVGPOOL, .in = {.c = 16, .h = 6, .w = 8}};
static const lap_op fc = {.kind = LAP_OP_FC, .in = {.c = 49, .h = 2, .w = 3}};
static const lap_op maxpool = {.kind = LAP_OP_MAXPOOL, .in = {.c = 16}, .r = 3, .s = 3};
static const lap_op scale = {.kind = LAP_OP_SCALE, .in = {.c = 16}};

static void test_sum_length(void **state) {
    (void)state;
    const struct {
        const lap_op *op, *partner, *means;
        double terms;
    } cases[] = {
        {&conv, NULL, NULL, 144},
        {&depthwise, NULL, NULL, 25},
        {&pool, NULL, NULL, 48},
        {&fc, NULL, NULL, 294},
        {&scale, NULL, NULL, 1},
        {&maxpool, NULL, NULL, 0},
        {&conv, &maxpool, NULL, 144},
        {&conv, &scale, NULL, 145},
        {&pool, &fc, NULL, 48 + 294},
        {&depthwise, &pool, &pool, 25 + 48}, /* the partner makes the means: once */
        {&conv, &depthwise, &pool, 144 + 25 + 48},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int factor = 0; factor < 3; factor++) {
            check_step io = {.op = cases[i].op,
                             .partner = cases[i].partner,
                             .means = cases[i].means,
                             .error_factor = factor};
            double times = factor ? factor : 1, sums = 4 * sqrt(cases[i].terms);
            const double wanted[LAP_PRECISION_COUNT] = {[LAP_FP32] = sums * ldexp(1, -24),
                                                        [LAP_FP32X3] = sums * ldexp(1, -24),
                                                        [LAP_TF32] = 8 * ldexp(1, -11),
                                                        [LAP_FP16] = 8 * ldexp(1, -11),
                                                        [LAP_BF16] = 8 * ldexp(1, -8)};
            for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
                io.precision = (lap_precision)p;
                double got = check_bound_factor(&io);
                if (!(fabs(got - times * wanted[p]) <= 1e-15 * got))
                    fail_msg("case %zu, factor %d, precision %d: %g", i, factor, p, got);
            }
        }
}

/* 1 + 2^-9 + 2^-12 lies between two halves, and between two bfloat16 further apart. */
static void test_stored(void **state) {
    (void)state;
    const double exact = 1 + ldexp(1, -9) + ldexp(1, -12);
    const double wanted[LAP_PRECISION_COUNT] = {[LAP_FP32] = exact,
                                                [LAP_FP32X3] = exact,
                                                [LAP_TF32] = exact,
                                                [LAP_FP16] = 1 + ldexp(1, -9),
                                                [LAP_BF16] = 1};
    for (int p = 0; p < LAP_PRECISION_COUNT; p++)
        for (int logits = 0; logits < 2; logits++) {
            check_step io = {.op = &conv, .precision = (lap_precision)p, .logits = logits};
            assert_true(check_stored(&io, exact) == (logits ? exact : wanted[p]));
        }
}

/* Halves have a smallest step, for which the limit times the bound has room; others have none. */
static void test_smallest_step(void **state) {
    (void)state;
    for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
        check_step io = {.op = &conv, .precision = (lap_precision)p, .error_factor = 2};
        double bound[] = {0, 3, 5};
        check_allow_small(&io, bound, 2);
        double step = p == LAP_FP16 ? ldexp(1, -24) : 0;
        assert_true(fabs(bound[0] * check_bound_factor(&io) - step) < 1e-15);
        assert_true(fabs((bound[1] - 3) * check_bound_factor(&io) - step) < 1e-15);
        assert_true(bound[2] == 5);
    }
}

/* ---- integers ------------------------------------------------------------------------------- */

/* The exact check finds a wrong index only if neighbours differ: all integers of the range come, in
 * about equal numbers, and other places and streams have others. */
static void test_integers_are_spread(void **state) {
    (void)state;
    enum { N = 20000 };
    const int ranges[] = {2, 8};
    for (int r = 0; r < 2; r++) {
        int range = ranges[r], counts[17] = {0}, as_the_last = 0, as_in_another = 0;
        float last = 0;
        for (uint64_t i = 0; i < N; i++) {
            float x = check_integer(7, i, range);
            assert_true(x == (float)(int)x && x >= (float)-range && x <= (float)range);
            counts[(int)x + range]++;
            as_the_last += i > 0 && x == last;
            as_in_another += x == check_integer(8, i, range);
            last = x;
        }
        int even = N / (2 * range + 1);
        for (int k = 0; k <= 2 * range; k++)
            assert_in_range(counts[k], even * 8 / 10, even * 12 / 10);
        assert_in_range(as_the_last, even * 8 / 10, even * 12 / 10);
        assert_in_range(as_in_another, even * 8 / 10, even * 12 / 10);
    }
}

/* Sums of the longest layer stay below 2^24 in fp32; narrow storage has smaller ones. */
static void test_integer_range(void **state) {
    (void)state;
    for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
        bool wide = p == LAP_FP32 || p == LAP_FP32X3;
        assert_int_equal(check_integer_range((lap_precision)p), wide ? 8 : 2);
    }
}

/* An average pool's inputs differ from pixel to pixel, and their mean is a whole number; others
 * are plain integers. Nothing is written behind them. */
static void test_inputs(void **state) {
    (void)state;
    const int sides[][2] = {{3, 3}, {2, 4}, {7, 7}, {1, 1}};
    enum { C = 5, IMAGES = 2, MOST = IMAGES * C * 49 };
    float x[MOST + 1];
    for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
        int h = sides[k][0], w = sides[k][1], pixels = h * w, differ = 0;
        lap_op op = {.kind = LAP_OP_AVGPOOL, .in = {.c = C, .h = h, .w = w, .cs = 8}};
        size_t count = (size_t)(IMAGES * C * pixels);
        x[count] = 123;
        check_fill_integers(&op, IMAGES, 8, 3, x);
        assert_true(x[count] == 123);
        float means[IMAGES * C];
        for (int i = 0; i < IMAGES * C; i++) {
            const float *first = x + i / C * C * pixels + i % C;
            float sum = 0;
            for (int p = 0; p < pixels; p++) {
                sum += first[p * C];
                differ += p > 0 && first[p * C] != first[(p - 1) * C];
            }
            means[i] = sum / (float)pixels;
            assert_true(means[i] == (float)(int)means[i] && fabsf(means[i]) <= 8);
        }
        int equal = 0;
        for (int i = 1; i < IMAGES * C; i++)
            equal += means[i] == means[i - 1];
        assert_true(equal <= 3); /* channels and images have means of their own */
        assert_int_equal(differ, IMAGES * C * (pixels - 1));
        op.kind = LAP_OP_CONV;
        x[count] = 123;
        check_fill_integers(&op, IMAGES, 8, 3, x);
        assert_true(x[count] == 123);
        for (size_t i = 0; i < count; i++)
            assert_true(x[i] == check_integer(3, i, 8));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_length),    cmocka_unit_test(test_stored),
        cmocka_unit_test(test_smallest_step), cmocka_unit_test(test_integers_are_spread),
        cmocka_unit_test(test_integer_range), cmocka_unit_test(test_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
