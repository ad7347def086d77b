/* 16-bit floats as bit patterns. Rounding is to nearest, ties to even; NaN stays NaN, what is too
 * large becomes infinite, subnormal numbers are kept. Also the rounding to tf32 (10 fraction bits).
 */
#ifndef LAP_BASE_HALF_H
#define LAP_BASE_HALF_H

#include <stdint.h>

uint16_t lap_half_from_float(float value); /* IEEE binary16 */
float lap_half_to_float(uint16_t bits);    /* exact */
uint16_t lap_bf16_from_float(float value);
float lap_bf16_to_float(uint16_t bits); /* exact */
float lap_tf32_round(float value);      /* ties to even */

#endif
