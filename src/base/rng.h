/* Counter-based random numbers with the same bits on every machine.
 *
 * The generator is Philox4x32-10 (Salmon et al., SC'11; constants 0xD2511F53, 0xCD9E8D57, Weyl
 * 0x9E3779B9, 0xBB67AE85). key = (seed low, seed high), counter = (index low, index high, stream
 * low, stream high), so any element of any stream can be computed on its own. From the four 32-bit
 * words x0..x3 of a block: uniform = (((x1 << 32 | x0) >> 12) + 0.5) * 2^-52, exact, in (0, 1).
 * normal = inverse normal CDF of that uniform by Wichura's AS 241 (PPND16), with a logarithm of our
 * own (in rng.c) and the IEEE-exact operations + - * / sqrt only (the build forbids FMA
 * contraction), because libm's log differs between machines.
 */
#ifndef LAP_BASE_RNG_H
#define LAP_BASE_RNG_H

#include <stdint.h>

void lap_rng_block(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]);
double lap_rng_uniform(uint64_t seed, uint64_t stream, uint64_t index);
double lap_rng_normal(uint64_t seed, uint64_t stream, uint64_t index);
/* The inverse normal CDF that lap_rng_normal uses; p in (0, 1). */
double lap_rng_quantile(double p);
/* 64-bit FNV-1a of a name: the documented way from a tensor's name to a stream number. */
uint64_t lap_rng_stream(const char *name);

#endif
