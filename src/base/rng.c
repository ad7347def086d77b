/* Philox4x32-10 and the inverse normal CDF, written so that the same bits come out everywhere: only
 * integer operations and the IEEE-exact + - * / sqrt. Nothing here calls libm's transcendentals. */
#include "base/rng.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* x87-style excess precision would change the bits. */
static_assert(FLT_EVAL_METHOD == 0, "warmlap needs float and double arithmetic without excess "
                                    "precision (on 32-bit x86: -msse2 -mfpmath=sse)");

void lap_rng_block(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]) {
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    uint32_t x0 = (uint32_t)index, x1 = (uint32_t)(index >> 32);
    uint32_t x2 = (uint32_t)stream, x3 = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)x0 * 0xD2511F53u, p1 = (uint64_t)x2 * 0xCD9E8D57u;
        uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        uint32_t y2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x1 = (uint32_t)p1;
        x3 = (uint32_t)p0;
        x0 = y0;
        x2 = y2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

double lap_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index) {
    uint32_t x[4];
    lap_rng_block(seed, stream, index, x);
    uint64_t bits = ((uint64_t)x[1] << 32 | x[0]) >> 12;
    /* 52 bits, not 53: adding one half must be exact, or the largest value would round to 1. */
    return ((double)bits + 0.5) * 0x1p-52;
}

/* Natural logarithm of a normal x > 0. x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log(m) =
 * 2 atanh(t), t = (m - 1) / (m + 1), by its series: |t| < 0.1716, so 12 terms reach 2^-60. */
static double exact_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1022;
    bits = (bits & 0x000FFFFFFFFFFFFFu) | 0x3FE0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m); /* in [1/2, 1) */
    if (m < 0.70710678118654752440) {
        m *= 2.0;
        e--;
    }
    double t = (m - 1.0) / (m + 1.0), z = t * t;
    double sum = 0.0;
    for (int n = 23; n >= 3; n -= 2)
        sum = (sum + 1.0 / n) * z;
    /* ln 2 in two parts: the first has its low 32 bits zero, so e times it is exact. */
    double low = 2.0 * (t * sum) + e * 1.90821492927058770002e-10;
    return e * 6.93147180369123816490e-01 + (2.0 * t + low);
}

static double horner(const double *coefficients, double x) {
    double y = coefficients[7];
    for (int i = 6; i >= 0; i--)
        y = y * x + coefficients[i];
    return y;
}

/* M. J. Wichura, Algorithm AS 241 (PPND16), Applied Statistics 37 (1988): numerators and
 * denominators of the three rational approximations, lowest power first. */
static const double centre_num[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                     1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                     4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3};
static const double centre_den[8] = {1.0,
                                     4.2313330701600911252e+1,
                                     6.8718700749205790830e+2,
                                     5.3941960214247511077e+3,
                                     2.1213794301586595867e+4,
                                     3.9307895800092710610e+4,
                                     2.8729085735721942674e+4,
                                     5.2264952788528545610e+3};
static const double middle_num[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                     5.76949722146069140550e0,  3.64784832476320460504e0,
                                     1.27045825245236838258e0,  2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
static const double middle_den[8] = {1.0,
                                     2.05319162663775882187e0,
                                     1.67638483018380384940e0,
                                     6.89767334985100004550e-1,
                                     1.48103976427480074590e-1,
                                     1.51986665636164571966e-2,
                                     5.47593808499534494600e-4,
                                     1.05075007164441684324e-9};
static const double tail_num[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                   1.78482653991729133580e0,  2.96560571828504891230e-1,
                                   2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7};
static const double tail_den[8] = {1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};

double lap_rng_quantile(double p) {
    double q = p - 0.5;
    if (q >= -0.425 && q <= 0.425) {
        double r = 0.180625 - q * q;
        return q * horner(centre_num, r) / horner(centre_den, r);
    }
    double r = sqrt(-exact_log(q < 0.0 ? p : 1.0 - p));
    double x;
    if (r <= 5.0) {
        x = horner(middle_num, r - 1.6) / horner(middle_den, r - 1.6);
    } else {
        x = horner(tail_num, r - 5.0) / horner(tail_den, r - 5.0);
    }
    return q < 0.0 ? -x : x;
}

double lap_rng_normal(uint64_t seed, uint64_t stream, uint64_t index) {
    return lap_rng_quantile(lap_rng_uniform(seed, stream, index));
}

uint64_t lap_rng_stream(const char *name) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++)
        hash = (hash ^ *p) * 0x100000001B3u;
    return hash;
}
