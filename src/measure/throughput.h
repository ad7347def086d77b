/* Throughput: search for the batch size with the most images per second, then measure it well.
 *
 * How a batch is allocated, run and freed is the callback's business; here is only the search. A
 * batch that does not fit (LAP_E_OOM, LAP_E_NOMEM, LAP_E_LAUNCH, LAP_E_UNSUPPORTED) ends the search
 * upwards and is kept as a point of the curve; the callback has freed everything by then.
 */
#ifndef LAP_MEASURE_THROUGHPUT_H
#define LAP_MEASURE_THROUGHPUT_H

#include "measure/result.h"

typedef enum lap_search {
    LAP_SEARCH_DOUBLING = 0, /* 1, 2, 4, … and max_batch itself, until one fails */
    LAP_SEARCH_LINEAR,       /* 1, 2, 3, … until one fails */
    LAP_SEARCH_BINARY,       /* doubling, then bisection for the largest batch that fits */
    LAP_SEARCH_SWEEP         /* 1, 2, 3, 4, 6, 8, 12, … until one fails, then bisection */
} lap_search;

const char *lap_search_name(lap_search search);
bool lap_search_parse(const char *name, lap_search *out);

/* What a short look at one batch gives. */
typedef struct lap_trial {
    double images_per_s;
    double batch_s; /* one batch under this load; 0: images_per_s tells */
    double timed_s; /* spent in timed runs: what counts as the search's cost */
    double build_s; /* spent building kernels: not counted against max_seconds. Read after a
                       failure too */
} lap_trial;

/* A batch is at the knee when it has this share of the fastest rate. */
#define LAP_KNEE 0.97

typedef struct lap_throughput_options {
    lap_search search;
    uint64_t first_batch;   /* 0 means 1 */
    uint64_t max_batch;     /* at least first_batch */
    uint64_t batches;       /* of the final measurement, at least 1 */
    double max_seconds;     /* no new batch size is begun after this, building kernels apart; 0: no
                               limit */
    double latency_limit_s; /* larger batches are not sought beyond one that takes longer, and the
                               final one is within it; 0: no limit */
    double search_cost;     /* the timed part of the search ends when it took so many times as long
                               as the final measurement will; 0: no limit */
    bool (*interrupted)(void *context); /* NULL: never */
    /* NULL for none. */
    void (*progress)(void *context, const char *what, size_t done, size_t total);
    /* Set up this batch, time it briefly, free everything. A request above the safe memory share
     * returns LAP_E_OOM before it allocates. A rate that is zero, negative or not finite is
     * recorded as LAP_E_TIMER. */
    lap_status (*try_batch)(void *context, uint64_t batch, lap_trial *out, lap_error *err);
    /* Time `batches` runs of this batch, back to back: total host seconds. */
    lap_status (*measure)(void *context, uint64_t batch, uint64_t batches, double *seconds,
                          lap_error *err);
    void *context;       /* of all callbacks */
    double (*now)(void); /* host clock for max_seconds; NULL: lap_clock_now */
} lap_throughput_options;

/* Fill out->curve, best_batch, largest_batch and knee_batch (out is overwritten;
 * lap_throughput_free it). LAP_OK when at least one batch worked. Otherwise the failure of the
 * smallest batch, or LAP_E_DEVICE (the context is lost; open a new one before measuring),
 * LAP_E_INTERRUPTED, LAP_E_BUILD, …: the curve found so far stays in out in every case. */
lap_status lap_throughput_search(const lap_throughput_options *options, lap_throughput *out,
                                 lap_error *err);

/* The final measurement at best_batch; when it fails for memory, the next best batch of the curve
 * is taken, and the point is marked. Sets batch, batches, seconds, images_per_s. Fewer batches than
 * asked are timed where the search's rate says that max_seconds would not be enough (at least 1).
 */
lap_status lap_throughput_measure(const lap_throughput_options *options, lap_throughput *out,
                                  lap_error *err);

#endif
