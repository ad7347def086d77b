/* Works on one planned case from opening the device to a finished row. Prints nothing but progress.
 *
 * Every case opens its own session, so that cold costs are real, a fault of one case cannot spoil
 * the next, and nothing is left on the device in between.
 */
#ifndef LAP_APP_RUNNER_H
#define LAP_APP_RUNNER_H

#include "app/config.h"
#include "check/check.h"
#include "measure/result.h"
#include "measure/team.h"
#include "report/progress.h"
#include "tune/store.h"

typedef struct lap_run_case {
    const lap_device_info *device;
    const char *model;
    int height, width;
    lap_precision precision;
    uint64_t batch;
    bool latency, throughput; /* what to measure; neither: verify only */
    /* Cases with the same set above 0 run at the same time; alone is the index of the same case
     * for the device alone. */
    size_t set, alone;
} lap_run_case;

/* What a runner tells while it works: events of one row come in this order. A row is finished once,
 * whatever happens to it. */
typedef enum lap_runner_event {
    LAP_ROW_BEGUN = 0,
    LAP_ROW_SO_FAR,  /* more was measured, and verified; read it, do not change it */
    LAP_ROW_FINISHED /* complete; the row may be moved away */
} lap_runner_event;
/* Other processes that run the same sets at the same time: a fleet (src/fleet). */
typedef struct lap_runner_team {
    void *context;
    /* The team for a part of a set; every member joins every part, if only to leave it. */
    const lap_team *(*join)(void *context, size_t set, size_t part);
    size_t others;
    const char *devices; /* names of all, as lap_concurrent has them */
} lap_runner_team;

/* What cases share: references are computed once per network and size. Zero-initialise, set the
 * first four, free with lap_runner_free. */
typedef struct lap_runner {
    const lap_config *config;
    lap_meter *meter;
    bool (*interrupted)(void *context);
    lap_tune_store *tuned;         /* for [run] kernels = tuned; may be NULL otherwise */
    struct lap_build_cache *cache; /* of built kernels; NULL for none */
    const char *logits_path; /* where to write the logits of the first row; NULL for nowhere */
    void (*event)(void *context, lap_runner_event event, const lap_run_case *c, lap_row *row);
    void *event_context; /* event may be NULL */
    double rewarm_s;     /* untimed runs before each block of rows that take turns; 0: 0.05 s */
    const lap_runner_team *team; /* of a fleet; NULL: the devices of this process are the set */
    /* After a case that lost its device begin no other: the caller has a fresh process for them.
     * Some drivers' contexts are one for all of a process, and lost until it ends. */
    bool leave_when_lost;
    bool lost; /* set by a case that lost its device */
    /* private */
    lap_net *net;
    lap_weights *weights;
    lap_expected expected;
    struct {
        char selector[40];
        lap_floor floor;
    } floors[32]; /* of the routes seen so far */
    size_t floor_count;
    bool cache_problem_told;
    lap_optional weights_s, reference_s; /* of the last preparation */
} lap_runner;

void lap_runner_free(lap_runner *runner);

/* Fills row (initialised by the callee), whatever happens. */
void lap_runner_case(lap_runner *runner, const lap_run_case *c, lap_row *row);

/* All cases, in turn or interleaved as [run] order says (runner_group.c). Cases that are not begun
 * because of an interruption are skipped. */
void lap_runner_cases(lap_runner *runner, const lap_run_case *cases, lap_row *rows, size_t count);

/* What the row of a device alone says to the row beside others. */
typedef struct lap_alone {
    lap_row_status status;
    lap_status cause;
    char reason[512];
    uint64_t batch, batches; /* of its throughput; 0: none */
    double seconds;
} lap_alone;

void lap_alone_of(const lap_row *row, lap_alone *out);

/* Cases with sets, set by set: every case of a set at the same time, each device driven by a thread
 * of its own. alone[case.alone] tells of the device alone. */
void lap_runner_sets(lap_runner *runner, const lap_run_case *cases, lap_row *rows, size_t count,
                     const lap_alone *alone);

/* "2 x NVIDIA H200 + 1 x AMD EPYC": names in alphabetical order, counted. Sorts names. */
void lap_runner_count_names(const char **names, size_t count, char *out, size_t size);

/* Fill what identifies a case, for rows that are never worked on. */
void lap_runner_describe(const lap_run_case *c, lap_row *row);

#endif
