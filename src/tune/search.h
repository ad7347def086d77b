/* Finds the best kernel and parameters for every step of a network on one device.
 *
 * Everything that may fail, fault or hang runs in a worker process; this one opens no device. Per
 * step (steps of one signature once): the default and a seeded selection of the space are timed in
 * small interleaved groups, each with the default in it; then neighbours of the best; then the
 * leaders again for longer. The fastest that passes verification is timed against the default once
 * more, and is kept only if it is faster by more than the noise. The budget is the same whatever
 * the device's API.
 */
#ifndef LAP_TUNE_SEARCH_H
#define LAP_TUNE_SEARCH_H

#include "tune/space.h"

typedef struct lap_tune_job {
    const lap_device_info *device;
    const char *model;
    int height, width;
    lap_precision precision;
    uint64_t batch; /* as asked for; tuned is its bucket */
    bool use_cache;
    double seconds;    /* for all steps together; the rest of a step's share goes to the others */
    size_t candidates; /* most of one step, the default not counted */
    double limit_s;    /* silence of the worker after which it counts as hung */
    uint64_t seed;
    bool (*interrupted)(void *context);                                           /* NULL: never */
    void (*progress)(void *context, const char *what, size_t done, size_t total); /* NULL: none */
    void *interrupt_context, *progress_context;
} lap_tune_job;

/* What came of one step. Pointers in c are into the job's device and the tuning's network. */
typedef struct lap_tune_outcome {
    lap_case c; /* params: the default's */
    char name[100];
    lap_candidate standard, best;
    double standard_s, best_s;                        /* medians of the last comparison; 0: none */
    size_t space, tried, unfit, failed, wrong, steps; /* steps: of this signature */
    char note[400]; /* what went wrong with the candidate that looked best, or "" */
} lap_tune_outcome;

typedef struct lap_tuning {
    lap_net *net;
    lap_tune_outcome *outcomes;
    size_t count;
} lap_tuning;

/* On LAP_E_INTERRUPTED the outcomes so far are in out. Free out in any case. */
lap_status lap_tune(const lap_tune_job *job, lap_tuning *out, lap_error *err);
void lap_tuning_free(lap_tuning *tuning);

#endif
