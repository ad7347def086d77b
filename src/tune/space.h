/* What can be tuned: the parameter vectors that may run a step, and the texts that name step and
 * vector in the store and between processes. Pure: no device, no files. */
#ifndef LAP_TUNE_SPACE_H
#define LAP_TUNE_SPACE_H

#include "kernel/kernel.h"

#define LAP_TUNE_TEXT 256 /* a signature, a parameter text */

/* A row with parameters for it. */
typedef struct lap_candidate {
    const lap_kernel_row *row;
    lap_params params;
} lap_candidate;

bool lap_candidate_same(const lap_candidate *a, const lap_candidate *b);

/* The power of two that a batch is tuned as: the largest not above it. */
uint64_t lap_tune_bucket(uint64_t batch);

/* What is computed, whatever the layer's name: "conv 64x56x56 64x56x56 3x3/1+1 add". Steps of one
 * signature are tuned once. */
void lap_tune_signature(const lap_case *c, char *buffer, size_t size);

/* 64-bit hash of the sources of a row in one language; 0 when it has none there. */
uint64_t lap_tune_source_hash(const lap_kernel_row *row, const char *language);

/* Parameters as lap_kernel_params_text writes them, each once, in any order; "" for none. Values
 * outside the declared space are allowed (defaults may lie there), other names are not. */
bool lap_tune_params_parse(const lap_kernel_row *row, const char *text, lap_params *out);

/* "conv_igemm:BM=64,BN=32", "fc_naive": one word. */
void lap_candidate_text(const lap_candidate *candidate, char *buffer, size_t size);
bool lap_candidate_parse(const char *word, lap_candidate *out);

/* Every row that can run the case and is not a variant, with every valid parameter vector of its
 * declared space, in an order that depends on seed only; the rows take turns. Of a row with more
 * than LAP_SPACE_ROW_MOST vectors so many are drawn. Naive rows come last. c->params is ignored.
 * The array is malloc'ed. */
#define LAP_SPACE_ROW_MOST 65536u
lap_status lap_space_new(const lap_case *c, bool has_gemm, uint64_t seed, lap_candidate **out,
                         size_t *count, lap_error *err);

/* Valid vectors that differ from `from` in one parameter, by one place in its list of values.
 * Returns how many; out has room for 2 * LAP_MAX_TUNABLES. */
size_t lap_space_neighbours(const lap_case *c, const lap_candidate *from, lap_candidate *out);

#endif
