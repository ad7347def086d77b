/* Comparing doubles in tests: includes cmocka with what it needs. */
#ifndef LAP_TESTS_MEASURE_NEAR_H
#define LAP_TESTS_MEASURE_NEAR_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Written so that NaN fails. */
static inline int lap_near(double got, double want, const char *file, int line) {
    double scale = fabs(want) > 1e-300 ? fabs(want) : 1.0;
    if (fabs(got - want) <= 1e-12 * scale) return 1;
    print_error("%s:%d: got %.17g, want %.17g\n", file, line, got, want);
    return 0;
}

#define assert_near(got, want) assert_true(lap_near((got), (want), __FILE__, __LINE__))
#define assert_some(optional, want)                                                                \
    do {                                                                                           \
        assert_true((optional).has);                                                               \
        assert_near((optional).value, (want));                                                     \
    } while (0)
#define assert_none(optional) assert_false((optional).has)

#endif
