/* The common mistakes of timing a device, measured beside the right way on the same network: what
 * each would have reported, and by which factor that misleads. */
#ifndef LAP_MEASURE_PITFALLS_H
#define LAP_MEASURE_PITFALLS_H

#include "measure/protocol.h"
#include "plan/plan.h"

typedef enum lap_pitfall_kind {
    LAP_WAY_RIGHT = 0,       /* warm, inputs resident, device events, waited for, many samples */
    LAP_WAY_COPIES_PAGEABLE, /* uploads and downloads inside the timed region */
    LAP_WAY_COPIES_PINNED,
    LAP_WAY_NO_WARMUP, /* the first runs after the kernels were built */
    LAP_WAY_NO_WAIT,   /* host clock around the enqueueing only */
    LAP_WAY_ONE_SAMPLE,
    LAP_WAYS
} lap_pitfall_kind;

enum { LAP_HISTOGRAM_BINS = 32 };

typedef struct lap_histogram {
    double low, high; /* of the first and the last bin */
    uint32_t counts[LAP_HISTOGRAM_BINS];
    uint32_t most; /* the fullest bin; 0: nothing to show */
} lap_histogram;

/* Equal bins from the least to the greatest sample; all in the first bin when these are equal. */
void lap_histogram_fill(const double *samples, size_t n, lap_histogram *out);

typedef struct lap_way {
    bool has;
    lap_stats stats;     /* what it would have reported; one sample has no std */
    lap_optional factor; /* its mean over the right one's; of one sample: the sample that is
                            furthest off, over the right mean */
    double *samples;     /* in order; of one sample: those it could have been */
    size_t n;
    lap_histogram histogram;
    char reason[256]; /* why it was not measured; "" if it was */
} lap_way;

typedef struct lap_pitfalls {
    lap_way ways[LAP_WAYS];
    lap_clock_kind clock; /* of the right way */
    char clock_reason[256];
} lap_pitfalls;

const char *lap_way_name(lap_pitfall_kind kind);  /* "no_warmup": stable, for documents */
const char *lap_way_about(lap_pitfall_kind kind); /* a sentence for people */

typedef struct lap_pitfalls_job {
    lap_plan *plan;     /* bound; nothing was run on it before lap_pitfalls_cold */
    const void *packed; /* its input as lap_plan_pack_input gives it */
    const lap_timing *timing;
    size_t repetitions, warmup_count;
    double warmup_seconds, max_seconds;
    bool (*interrupted)(void *context); /* NULL: never */
    void *context;
} lap_pitfalls_job;

/* The runs without warm-up; call this first, then verify, then lap_pitfalls_measure. */
lap_status lap_pitfalls_cold(const lap_pitfalls_job *job, lap_pitfalls *out, lap_error *err);
/* Everything else, and the factors. A way that a device does not have (pinned memory) is a reason,
 * not a failure. out keeps what lap_pitfalls_cold put there. */
lap_status lap_pitfalls_measure(const lap_pitfalls_job *job, lap_pitfalls *out, lap_error *err);
void lap_pitfalls_free(lap_pitfalls *pitfalls);

#endif
