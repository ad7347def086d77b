/* One result row: everything that is known about one planned case.
 *
 * Every planned case makes exactly one row, with a status and, where it is not ok, a reason. A row
 * is filled while the case is worked on, then lap_row_finish derives what follows from it (rates,
 * notes); renderers only read. Ownership: a row owns its arrays and texts; lap_row_init before use,
 * lap_row_free after. Times are seconds unless a name says otherwise; work counts are for ONE
 * image.
 */
#ifndef LAP_MEASURE_RESULT_H
#define LAP_MEASURE_RESULT_H

#include "device/device.h"
#include "measure/ceilings.h"
#include "measure/extras.h"
#include "measure/floor.h"
#include "measure/rounds.h"
#include "measure/stats.h"
#include "measure/telemetry.h"
#include "measure/verdict.h"
#include <stdint.h>

typedef enum lap_row_status {
    LAP_ROW_OK = 0,
    LAP_ROW_FAILED,
    LAP_ROW_UNSUPPORTED, /* this device or build cannot do the case */
    LAP_ROW_SKIPPED      /* not tried (interrupted, asked not to) */
} lap_row_status;

const char *lap_row_status_name(lap_row_status status); /* "ok", "failed", … */

enum { LAP_MODE_LATENCY = 1, LAP_MODE_THROUGHPUT = 2, LAP_MODE_VERIFY = 4 };

/* Which kernel ran a layer. */
typedef struct lap_row_kernel {
    char layer[48];
    char kernel[48];  /* row id in the kernel list */
    char params[192]; /* "PIXELS=14 BLOCKS=2"; "" without parameters */
    char choice[16];  /* "default", "tuned", "naive" */
} lap_row_kernel;

typedef struct lap_row_verified {
    bool has;      /* verification was done (passed or not) */
    bool passed;   /* everything compared was right */
    char mode[16]; /* "full", "logits", … as configured */
    lap_optional logits_rel_l2, limit;
    int exact_layers, real_layers; /* layers compared bit for bit, and within the bound */
    char first_wrong[256];         /* the first wrong layer and by how much; "" if none */
    bool rerun_same;               /* logits after the timed runs bitwise as before */
} lap_row_verified;

typedef struct lap_row_cold {
    /* On the host: weights and reference logits; absent where an earlier row's serve. */
    lap_optional weights_s, reference_s;
    lap_optional open_s, build_s, upload_s, first_s;
    /* Kernels of build_s: taken from the cache on disk, and compiled. */
    lap_optional build_cached, build_compiled;
} lap_row_cold;

/* One repetition: A host clock, D event, work enqueued, E event, B host clock, wait, C host clock.
 * Where several passes make one sample, the spans are those of the sample over the passes. */
typedef struct lap_sample {
    lap_optional device_s; /* E - D; absent when a stamp was missing, zero or reversed */
    double wall_s;         /* C - A */
    double submit_s;       /* B - A */
    double at_s;           /* A, since the row's warm-up began */
} lap_sample;

typedef enum lap_clock_kind { LAP_CLOCK_DEVICE = 0, LAP_CLOCK_WALL } lap_clock_kind;

const char *lap_clock_kind_name(lap_clock_kind clock); /* "device", "wall" */

typedef struct lap_latency {
    bool has;                /* at least one sample */
    lap_sample *samples;     /* every repetition, in order */
    size_t n;                /* samples kept */
    size_t planned;          /* repetitions asked for (stop = relative_noise: the most allowed);
                                n < planned: stopped early or interrupted */
    size_t passes;           /* of the network in one sample; at least 1 */
    char passes_reason[160]; /* why more than one; "" for one */
    double burn_in_s;        /* spent before the warm-up */
    size_t warmup_n;
    double warmup_s;
    bool warmup_auto, warmup_steady; /* steady is meaningful with auto only */
    lap_optional warmup_first_ratio; /* first span / median of the last window; auto only */
    char stop[20];                   /* "fixed", "relative_noise" */
    char ended[20];      /* "fixed", "noise_target", "max_samples", "max_seconds", "interrupted" */
    lap_optional noise;  /* standard error of the mean over the mean, of `stats` */
    double noise_target; /* 0 with stop = fixed */
    double timed_s;      /* host time of all timed blocks */
    size_t blocks;       /* timed blocks; more than 1 when interleaved with other rows */
    bool interleaved;
    bool comparable;        /* with rows timed by device events: the clock is the device's */
    size_t bad_stamps;      /* samples whose stamps were missing, zero or reversed */
    size_t untimed_bad;     /* the same in warm-up and calibration, where they cost no sample */
    size_t impossible;      /* samples whose device span was longer than the wall span around it */
    bool time_limit;        /* max_seconds ended it */
    bool interrupted;       /* the user ended it */
    lap_clock_kind clock;   /* which spans `stats` is about */
    char clock_reason[256]; /* why it is not the device's clock; "" when it is */
    lap_stats stats;        /* of the spans of `clock`: the row's latency */
    lap_stats device, wall, submit;
} lap_latency;

typedef struct lap_curve_point {
    uint64_t batch;
    lap_optional images_per_s;
    lap_optional batch_s; /* one batch */
    bool over_limit;      /* batch_s is above latency_limit_ms */
    lap_status status;    /* LAP_OK, or why this batch has no value */
    char reason[256];     /* "" when ok */
} lap_curve_point;

typedef struct lap_throughput {
    bool has;        /* a search was made */
    char search[16]; /* "linear", "binary", "doubling", "sweep" */
    lap_curve_point *curve;
    size_t curve_count, curve_capacity;
    uint64_t best_batch;    /* of the search, within the limit; 0 if no batch worked */
    uint64_t largest_batch; /* that ran; 0 if none did */
    bool largest_known;     /* one more did not fit, or was not to be tried */
    uint64_t knee_batch;    /* smallest with LAP_KNEE of the best rate; 0 without one */
    lap_optional latency_limit_s;
    double search_s;          /* timed runs of the search, without setting up and verifying */
    char ended[256];          /* why the search ended: "max_batch reached", … */
    uint64_t batch;           /* of the final measurement; 0 if there was none */
    uint64_t batches;         /* batches timed in it */
    uint64_t batches_planned; /* as asked for */
    lap_optional seconds;
    lap_optional images_per_s; /* batch * batches / seconds */
    lap_optional flops_per_s;  /* derived by lap_row_finish */
} lap_throughput;

typedef struct lap_row_work {
    uint64_t macs, flops, fvcore_flops; /* of one image */
} lap_row_work;

/* One line of the layer table. */
typedef struct lap_layer {
    char name[100], kind[16], kernel[48];
    uint64_t macs, flops;                  /* of one image */
    uint64_t bytes;                        /* least bytes moved, for the row's batch */
    lap_optional device_s;                 /* one run of the batch */
    lap_optional flops_per_s, bytes_per_s; /* derived by lap_row_finish, as are the next three */
    lap_optional intensity, share;         /* FLOPs per byte; share of the roofline */
    const char *bound;                     /* "compute", "cache", "memory"; NULL without a share */
} lap_layer;

typedef struct lap_row {
    lap_row_status status;
    lap_status cause; /* the status code behind it; LAP_E_VERIFY makes the exit status 4 */
    char *reason;     /* NULL when ok */
    lap_device_info device;
    char network[32]; /* "resnet18" */
    int height, width;
    uint64_t batch;
    char precision[16]; /* "fp32" */
    unsigned modes;     /* LAP_MODE_* */
    lap_row_kernel *kernels;
    size_t kernel_count, kernel_capacity;
    lap_row_verified verified;
    lap_row_cold cold;
    lap_latency latency;
    lap_throughput throughput;
    lap_floor floor;                 /* of the route: timer resolution, empty kernel */
    lap_telemetry_summary telemetry; /* of the timed blocks */
    lap_optional energy_j;           /* per image; derived by lap_row_finish */
    lap_verdict verdict;             /* derived by lap_row_finish; none without latency */
    char verdict_reason[256], verdict_advice[256];
    lap_row_work work;
    lap_optional fps;         /* batch / mean latency */
    lap_optional flops_per_s; /* work.flops * batch / mean latency */
    lap_layer *layers;        /* optional */
    size_t layer_count, layer_capacity;
    char **notes; /* remarks on how far the numbers can be trusted */
    size_t note_count, note_capacity;
    char cache[8];         /* "hot", "cold": the latency's; "" without latency */
    uint64_t flush_bytes;  /* touched before each repetition; 0 when hot */
    lap_copies copies;     /* optional, as all that follow */
    lap_ceilings ceilings; /* with layers */
    lap_layer_sum layer_sum;
    lap_pipeline pipeline;
    lap_streams streams;
    lap_concurrent concurrent; /* others = 0: nothing else was at work */
    /* Of a row from a result file: its JSON text there, shown as it is; else NULL. */
    char *document;
} lap_row;

void lap_row_init(lap_row *row);
void lap_row_free(lap_row *row); /* NULL is allowed; the row may be initialised again */

/* Set status, cause and reason. "failed" with LAP_E_UNSUPPORTED as cause becomes unsupported, with
 * LAP_E_INTERRUPTED skipped. A cause of LAP_E_VERIFY removes every time from the row: a wrong
 * result has no speed. err may be NULL. The first failure of a row is kept, later ones become
 * notes. */
void lap_row_fail(lap_row *row, lap_status cause, const lap_error *err);
/* Not tried: status skipped and the reason. */
void lap_row_skip(lap_row *row, const char *reason);

/* Append; false on a lack of memory (the row is unchanged then). */
bool lap_row_note(lap_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool lap_row_add_kernel(lap_row *row, const char *layer, const char *kernel, const char *params,
                        const char *choice);
bool lap_row_add_layer(lap_row *row, const lap_layer *layer);

/* Derive fps, flops_per_s, layer rates, and the notes that follow from what was measured (clock
 * fallback, rejected stamps, early stop, percentiles that n does not support, rates above what such
 * hardware can do). Call once, when the row is complete, whatever its status. */
void lap_row_finish(lap_row *row);

/* A generous upper bound on what such a device can do (FLOP/s): a measured rate above it means that
 * the work was not done or the clock is wrong. Never absent: without unit count or clock it is
 * 1e17. */
double lap_flops_ceiling(const lap_device_info *device, const char *precision);

/* Exit status of a run: 4 if any row failed verification, else 1 if any row failed, else 0.
 * Unsupported and skipped rows count as not ok (1) unless LAP_E_INTERRUPTED was the cause (the
 * caller exits 130 then). */
int lap_rows_exit_status(const lap_row *rows, size_t count);

void lap_latency_free(lap_latency *latency);
void lap_throughput_free(lap_throughput *throughput);

#endif
