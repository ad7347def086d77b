/* How a metric of one case has moved from run to run. Computes; shows nothing. */
#ifndef LAP_HISTORY_TREND_H
#define LAP_HISTORY_TREND_H

#include "compare/ratio.h"
#include "history/history.h"

typedef enum lap_metric {
    LAP_METRIC_LATENCY = 0, /* mean, seconds */
    LAP_METRIC_P50,         /* median, seconds */
    LAP_METRIC_FPS,         /* batch over mean latency */
    LAP_METRIC_THROUGHPUT,  /* images per second of the batch search */
    LAP_METRICS
} lap_metric;

const char *lap_metric_name(lap_metric metric);
bool lap_metric_parse(const char *name, lap_metric *out);

/* The row's value, if it has one. */
lap_optional lap_metric_of(lap_metric metric, const lap_history_row *row);

typedef struct lap_trend_point {
    char started[32], run_id[72];
    double value;
    lap_optional relative_error; /* of the mean; none for metrics without an interval */
    uint64_t n;
} lap_trend_point;

/* What may be compared from run to run: the same physical device (by UUID, else by PCI address,
 * else by selector; driver left aside) on the same host, platform and backend, as many other
 * devices at work beside it, network, size, precision and batch; and all that lap_difference asks
 * for. */
typedef struct lap_trend {
    /* own texts */
    char *device, *backend, *platform, *host, *machine, *network, *precision;
    char *clock, *weights, *beside, *cache;
    char *selector, *uuid, *pci; /* as far as rows have said them; the selector is the latest's */
    uint64_t height, width, batch, others;
    lap_proof proof;
    lap_trend_point *points; /* one for each run, in order of start */
    size_t count, capacity;
    size_t repeats; /* further rows of the same runs, left out */
    double best;
    size_t best_at;
    lap_estimate change;     /* the latest as many times as fast as the one before */
    lap_judgement judgement; /* of change */
} lap_trend;

typedef struct lap_trends {
    lap_trend *trends;
    size_t count;
} lap_trends;

/* Add a row, in order of start; rows that failed, that are wrong or that lack the metric are left
 * out. LAP_E_NOMEM. */
lap_status lap_trends_add(lap_trends *trends, lap_metric metric, const lap_history_row *row,
                          lap_error *err);
/* Fill best, change and judgement; margin as for lap_judge. */
void lap_trends_finish(lap_trends *trends, lap_metric metric, double margin);
void lap_trends_free(lap_trends *trends);

#endif
