/* 16-bit float conversions on bit patterns; no floating-point environment is involved. */
#include "base/half.h"

#include <string.h>

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Drop `drop` low bits, to nearest, ties to even. The carry may run into the exponent: right too.
 */
static uint32_t round_off(uint32_t value, unsigned drop) {
    uint32_t half = 1u << (drop - 1), odd = value >> drop & 1u;
    return (value + half - 1 + odd) >> drop;
}

uint16_t lap_half_from_float(float value) {
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return (uint16_t)(sign | 0x7E00u);  /* NaN */
    if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7C00u); /* 65536 and more */
    if (magnitude >= 0x38800000u) /* normal: rebias the exponent by 112 */
        return (uint16_t)(sign | round_off(magnitude - 0x38000000u, 13));
    uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return (uint16_t)sign; /* less than half the smallest subnormal */
    uint32_t fraction = (magnitude & 0x7FFFFFu) | 0x800000u;
    return (uint16_t)(sign | round_off(fraction, 126 - exponent));
}

float lap_half_to_float(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, exponent = bits >> 10 & 0x1Fu;
    uint32_t fraction = bits & 0x3FFu;
    if (exponent == 0x1F) return of_bits(sign | 0x7F800000u | fraction << 13);
    if (exponent) return of_bits(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

uint16_t lap_bf16_from_float(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)round_off(bits, 16);
}

float lap_bf16_to_float(uint16_t bits) {
    return of_bits((uint32_t)bits << 16);
}

float lap_tf32_round(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7F800000u) == 0x7F800000u) return value;
    return of_bits(round_off(bits, 13) << 13);
}
