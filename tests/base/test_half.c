/* 16-bit floats: every pattern there and back, rounding at every boundary, specials. */
#include "base/half.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_half_survives(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        float value = lap_half_to_float((uint16_t)i);
        if (isnan(value)) {
            assert_true(isnan(lap_half_to_float(lap_half_from_float(value))));
            continue;
        }
        assert_int_equal(lap_half_from_float(value), i);
        value = lap_bf16_to_float((uint16_t)i);
        if (!isnan(value)) assert_int_equal(lap_bf16_from_float(value), i);
    }
}

/* Between two neighbours a and b the middle goes to the even one, anything off it to the nearer. */
static void halves_round_to_nearest_even(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 0x7BFF; i++) {
        double a = (double)lap_half_to_float((uint16_t)i);
        double b = (double)lap_half_to_float((uint16_t)(i + 1));
        float middle = (float)((a + b) / 2);
        assert_int_equal(lap_half_from_float(middle), i % 2 ? i + 1 : i);
        assert_int_equal(lap_half_from_float(nextafterf(middle, 0)), i);
        assert_int_equal(lap_half_from_float(nextafterf(middle, INFINITY)), i + 1);
        assert_int_equal(lap_half_from_float(-middle), 0x8000 | (i % 2 ? i + 1 : i));
    }
}

static void limits(void **state) {
    (void)state;
    assert_int_equal(lap_half_from_float(65504.0f), 0x7BFF);
    assert_int_equal(lap_half_from_float(65519.0f), 0x7BFF);
    assert_int_equal(lap_half_from_float(65520.0f), 0x7C00);
    assert_int_equal(lap_half_from_float(1e30f), 0x7C00);
    assert_int_equal(lap_half_from_float(-INFINITY), 0xFC00);
    assert_int_equal(lap_half_from_float(0x1p-25f), 0);
    assert_int_equal(lap_half_from_float(0x1.8p-25f), 1);
    assert_int_equal(lap_half_from_float(-0.0f), 0x8000);
    assert_true(isnan(lap_half_to_float(lap_half_from_float(NAN))));
    assert_true(isnan(lap_bf16_to_float(lap_bf16_from_float(NAN))));
    assert_int_equal(lap_bf16_from_float(1.00390625f), 0x3F80); /* tie: to even */
    assert_int_equal(lap_bf16_from_float(1.01171875f), 0x3F82);
    assert_true(lap_tf32_round(1.00048828125f) == 1.0f); /* 1 + 2^-11, a tie */
    assert_true(lap_tf32_round(1.0009765625f) == 1.0009765625f);
    assert_true(lap_tf32_round(1.0007f) == 1.0009765625f);
    assert_true(isnan(lap_tf32_round(NAN)) && isinf(lap_tf32_round(INFINITY)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
