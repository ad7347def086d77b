/* Verdicts: is what the device computed right? Gates every time that is reported.
 *
 * Three independent checks, all against src/ref (double):
 *  exact  - each op alone, integer inputs and weights small enough that every partial sum is exact
 *           in fp32 in any order: the result must equal the reference bit for bit. Not so: average
 *           pool, within 4 units in the last place, because OpenCL does not promise a correctly
 *           rounded division; SiLU and sigmoid, within 16 u of the result; pairs with two of these,
 *           and rows with an error_factor, within the bound of the real check.
 *  real   - each op on the network's own weights and real activations, per element |y - y64| <=
 *           c * u * B, B = sum|x||w| + |b| + |res|, u = 2^-24, c = 4 * sqrt(K), times the row's
 *           error_factor. With narrower operands u = 2^-11 (tf32, fp16) or 2^-8 (bf16), and c = 8.
 *           Behind SiLU B is 1.1 B + 2 |y|, behind a sigmoid B / 4 + 2 |y|.
 *           Values stored as halves may be off by 2^-24 more, the step of the smallest.
 *  logits - the whole network at the measured batch: relative L2 error of every image's logits.
 * Outputs are poisoned with NaN first; a NaN or Inf fails every comparison; guard words around
 * every buffer must be untouched; padding channels must be zero; a second run must give the same
 * bits.
 */
#ifndef LAP_CHECK_CHECK_H
#define LAP_CHECK_CHECK_H

#include "plan/plan.h"

typedef enum lap_check_mode {
    LAP_CHECK_FULL = 0, /* exact and real on every layer, logits */
    LAP_CHECK_QUICK,    /* exact once per distinct kernel build and flags, logits */
    LAP_CHECK_OFF       /* nothing: the row says so */
} lap_check_mode;

typedef struct lap_check_report {
    lap_check_mode mode;
    bool passed;
    int exact_layers, exact_wanted; /* passed, and planned */
    int real_layers, real_wanted;
    bool has_logits;
    double logits_rel_l2; /* the worst image's */
    double limit;
    uint64_t images;       /* logits compared */
    char first_wrong[100]; /* step name, "logits", or "" */
    char detail[768];      /* how it is wrong, for people */
} lap_check_report;

/* Reference logits of a set of images, kept by the caller across rows. Zero-initialise. */
typedef struct lap_expected {
    float *images;  /* [count][c][h][w], NCHW */
    double *logits; /* [count][classes] */
    size_t count;
    int classes;
} lap_expected;

/* Read (or generate) the first count images of input (fewer when the file has fewer distinct ones)
 * and compute their reference logits, double. images_only leaves logits NULL (nothing will be
 * checked). interrupt is asked before each image; NULL: never. */
lap_status lap_expected_new(const lap_net *net, const lap_weights *weights, const lap_input *input,
                            size_t count, bool images_only, lap_progress progress, void *context,
                            const lap_interrupt *interrupt, lap_expected *out, lap_error *err);
void lap_expected_free(lap_expected *expected);

/* Limit on the relative L2 error of the logits for a precision. */
double lap_check_limit(lap_precision precision);

/* Exact and real checks of every op (as mode says), with rows and parameters chosen as for
 * options->batch. Returns LAP_E_VERIFY when something is wrong (report says what), another status
 * when the device failed, LAP_E_INTERRUPTED when options->interrupt says so between two steps.
 * image: one NCHW image for the real check. */
lap_status lap_check_layers(lap_session *session, const lap_net *net, const lap_weights *weights,
                            const lap_plan_options *options, const float *image,
                            lap_check_mode mode, lap_progress progress, void *context,
                            lap_check_report *report, lap_error *err);

/* The same for one step only, and harder: exact, real, and at the whole batch, whose images
 * alternate between two, every output held to the bound. images: two NCHW images. report->passed
 * says that all was done. */
lap_status lap_check_step(lap_session *session, const lap_net *net, const lap_weights *weights,
                          const lap_plan_options *options, const float *images, int step,
                          lap_check_report *report, lap_error *err);

/* Run a bound plan on expected's images (image i of the batch is i % count), compare all logits,
 * check guards, run again and compare bits. On success *logits (if not NULL) receives the malloc'ed
 * logits [batch][classes] for lap_check_unchanged. */
lap_status lap_check_logits(lap_plan *plan, const lap_net *net, const lap_expected *expected,
                            uint64_t batch, lap_precision precision, float **logits,
                            lap_check_report *report, lap_error *err);

/* After timed runs: the logits now on the device must be bitwise those of before, and those of one
 * more run, into poisoned memory, too; and no run has touched a guard. */
lap_status lap_check_unchanged(lap_plan *plan, const lap_net *net, uint64_t batch,
                               const float *before, lap_check_report *report, lap_error *err);

#endif
