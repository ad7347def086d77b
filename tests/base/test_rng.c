/* The generator: published vectors, accuracy of the normal quantile, and pinned bits. */
#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Known answers published with the generator (Random123's kat_vectors, "philox4x32 10"). */
static void philox_known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t seed, stream, index;
        uint32_t out[4];
    } cases[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822,
         0x0370734413198a2e,
         0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t out[4];
        lap_rng_block(cases[i].seed, cases[i].stream, cases[i].index, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static void stream_is_fnv1a(void **state) {
    (void)state;
    /* Published FNV-1a 64 test vectors. */
    assert_true(lap_rng_stream("") == 0xcbf29ce484222325u);
    assert_true(lap_rng_stream("a") == 0xaf63dc4c8601ec8cu);
    assert_true(lap_rng_stream("foobar") == 0x85944171f73967e8u);
}

static void uniform_is_exact_and_open(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        uint32_t x[4];
        lap_rng_block(7, 3, i, x);
        uint64_t bits = ((uint64_t)x[1] << 32 | x[0]) >> 12;
        double u = lap_rng_uniform(7, 3, i);
        assert_true(u > 0.0 && u < 1.0);
        /* Recover the integer: nothing was rounded. */
        assert_true(u * 0x1p52 - 0.5 == (double)bits);
    }
}

/* The quantile's error, seen as a change of x and relative to |x|: (Phi(x) - p) / phi(x), with Phi
 * from libm's erfc. On the upper side the complements are compared, where the digits are. */
static double quantile_error(double p) {
    const double root_half = 0.70710678118654752440, root_two_pi = 2.50662827463100050242;
    double x = lap_rng_quantile(p), z = p < 0.5 ? x : -x;
    double cdf = 0.5 * erfc(-z * root_half), density = exp(-0.5 * z * z) / root_two_pi;
    return fabs((cdf - (p < 0.5 ? p : 1.0 - p)) / density) / (fabs(x) > 1.0 ? fabs(x) : 1.0);
}

static void quantile_inverts_the_cdf(void **state) {
    (void)state;
    /* Down to 2^-53, the smallest uniform there is; the last part is beyond sqrt(-log p) = 5. */
    for (double p = 0.5; p >= 0x1p-53; p *= 0.99) {
        assert_true(quantile_error(p) < 2e-15);
        assert_true(quantile_error(1.0 - p) < 2e-15);
        assert_true(lap_rng_quantile(p) <= 0.0);
    }
    /* 2^-53 is a known point: -8.2095361516013874 (to the digits of a double). */
    assert_true(fabs(lap_rng_quantile(0x1p-53) + 8.2095361516013874) < 1e-14);
}

static void normals_are_standard(void **state) {
    (void)state;
    double sum = 0.0, squares = 0.0, largest = 0.0;
    enum { N = 200000 };
    for (uint64_t i = 0; i < N; i++) {
        double x = lap_rng_normal(11, 5, i);
        sum += x;
        squares += x * x;
        if (fabs(x) > largest) largest = fabs(x);
    }
    /* Five standard errors. */
    assert_true(fabs(sum / N) < 0.0112);
    assert_true(fabs(squares / N - 1.0) < 0.0158);
    assert_true(largest > 4.0 && largest < 6.5);
}

/* Bits, not values: these must be the same on every machine and compiler. They were computed by the
 * independent implementation in tests/data/make_logits.py. */
static void pinned_bits(void **state) {
    (void)state;
    static const double p[] = {0x1p-53, 1e-12, 0.001, 0.3, 0.5, 0.9, 0.999999};
    static const uint64_t quantiles[] = {
        0xc0206b48528cea51u, 0xc01c234fba57a32au, 0xc008b8cbb7204470u, 0xbfe0c7e39582c5fau,
        0x0000000000000000u, 0x3ff4813c36e26d34u, 0x40130381a97985f1u};
    for (size_t i = 0; i < sizeof p / sizeof p[0]; i++) {
        double x = lap_rng_quantile(p[i]);
        assert_memory_equal(&x, &quantiles[i], sizeof x);
    }
    static const uint64_t normals[] = {0xbfa74e91aee9b86eu, 0xbfca5790097daf02u,
                                       0x40046cd798adda34u, 0x4003110b2601652eu,
                                       0x3ff0531d536277e3u, 0xbff2e433e5e279b0u};
    for (uint64_t i = 0; i < sizeof normals / sizeof normals[0]; i++) {
        double x = lap_rng_normal(1, lap_rng_stream("conv1.weight"), i);
        assert_memory_equal(&x, &normals[i], sizeof x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_known_answers),      cmocka_unit_test(stream_is_fnv1a),
        cmocka_unit_test(uniform_is_exact_and_open), cmocka_unit_test(quantile_inverts_the_cdf),
        cmocka_unit_test(normals_are_standard),      cmocka_unit_test(pinned_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
