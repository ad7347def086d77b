/* Members that measure at the same time: threads of one process (below), or processes (src/fleet).
 *
 * Every member goes through the same meeting points in the same order. At a point it either waits
 * idle, or keeps its device under load until the last one has come, so that nobody is timed while
 * others already rest. A member that fails leaves; the others go on without it. No point is waited
 * for without end: a member that was given up is named by whoever made the team.
 */
#ifndef LAP_MEASURE_TEAM_H
#define LAP_MEASURE_TEAM_H

#include "measure/protocol.h"

typedef struct lap_team {
    void *context;
    size_t turn, turns; /* when this member is measured alone, of how many such times */
    /* Come to the next point. */
    lap_status (*arrive)(void *context, lap_error *err);
    /* Has everybody come to the point that was arrived at? Returns at once when wait is false; else
     * when the answer is yes, or after a short while. */
    lap_status (*passed)(void *context, bool wait, bool *yes, lap_error *err);
    /* No more points for this member. */
    void (*leave)(void *context);
    /* After waiting so long at one point the member no longer asks whether it is interrupted, which
     * is a sign of life: one that hangs must not seem alive for ever. 0: it always asks. */
    double silent_after_s;
} lap_team;

/* What a member measures with. */
typedef struct lap_team_work {
    lap_workload workload;
    const lap_timing *timing;
    bool (*interrupted)(void *context); /* NULL: never */
    void *context;
} lap_team_work;

/* Meet, idle or with the device under load. LAP_E_INTERRUPTED when asked to stop meanwhile. */
lap_status lap_team_meet(const lap_team *team, const lap_team_work *work, bool under_load,
                         lap_error *err);

typedef struct lap_rounds_options {
    size_t rounds;   /* 1..LAP_ROUNDS_MOST */
    double seconds;  /* each timed part lasts about so long, and two batches at least */
    double batch_s;  /* one batch, as known before; above 0 */
    double rewarm_s; /* untimed runs before each timed part: the device stood idle */
    uint64_t batch;
} lap_rounds_options;

/* What the whole team does at the same time: in every round each turn alone, then all together (in
 * odd rounds the other way round). out has the rounds that are complete, whatever happens. */
lap_status lap_team_rounds(const lap_team *team, const lap_team_work *work,
                           const lap_rounds_options *options, lap_rounds *out, lap_error *err);

/* Latency of all members at once: warm-up and timed blocks like lap_measure_latency, met under load
 * before and after the timed part. run is begun here; lap_latency_end is the caller's, as after
 * lap_latency_begin. *started_s: host time of the first sample. */
lap_status lap_team_latency(const lap_team *team, const lap_team_work *work,
                            const lap_latency_options *options, lap_latency_run *run,
                            lap_latency *out, double *started_s, lap_error *err);

/* A team of threads: one lap_team for each of them, made before they start and freed after all
 * have ended. Each member takes a turn of its own. */
typedef struct lap_team_threads lap_team_threads;
lap_status lap_team_threads_new(size_t members, lap_team_threads **out, lap_error *err);
const lap_team *lap_team_threads_member(lap_team_threads *team, size_t index);
void lap_team_threads_free(lap_team_threads *team);

#endif
