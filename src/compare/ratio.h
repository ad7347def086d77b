/* How many times as fast: a ratio of two means with its 95 % interval. Pure arithmetic.
 *
 * Method (docs/COMPARE.md): on the logarithm, where a ratio and its inverse are alike. With r the
 * relative standard error of a mean, ln R has the variance ra^2 + rb^2 and, by Welch and
 * Satterthwaite, (ra^2 + rb^2)^2 / (ra^4 / (na - 1) + rb^4 / (nb - 1)) degrees of freedom, rounded
 * down. The interval is R e^-w .. R e^w with w = t sqrt(ra^2 + rb^2). */
#ifndef LAP_COMPARE_RATIO_H
#define LAP_COMPARE_RATIO_H

#include "compare/document.h"

typedef struct lap_estimate {
    bool has;
    double ratio;
    bool has_interval;
    double low, high; /* 95 %, around ratio */
} lap_estimate;

/* One side: a mean of n values and its relative standard error, if that is known. */
typedef struct lap_mean {
    double mean;
    lap_optional relative_error;
    uint64_t n;
} lap_mean;

/* a.mean / b.mean. Nothing when either is not above 0; no interval when an error is not known. */
lap_estimate lap_ratio_of_means(const lap_mean *a, const lap_mean *b);

/* The other direction: 1 / ratio, with the interval that belongs to it. */
lap_estimate lap_estimate_invert(const lap_estimate *e);

/* Half the interval's width: what stands behind "±". */
double lap_estimate_half(const lap_estimate *e);

typedef enum lap_judgement {
    LAP_JUDGED_NOTHING = 0, /* not compared */
    LAP_JUDGED_BASELINE,
    LAP_JUDGED_SAME,   /* the whole interval is within the margin */
    LAP_JUDGED_FASTER, /* the whole interval is beyond it */
    LAP_JUDGED_SLOWER,
    LAP_JUDGED_UNCLEAR /* neither, or there is no interval */
} lap_judgement;

const char *lap_judgement_name(lap_judgement judgement); /* "same", …; "" for nothing */

/* speed is how many times as fast as the baseline; margin is the change in time that counts: 0.05
 * means that slower is more than 5 % more time, faster more than 5 % more time for the baseline. */
lap_judgement lap_judge(const lap_estimate *speed, double margin);

#endif
