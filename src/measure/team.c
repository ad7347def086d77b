/* What members of a team do between their meeting points (see team.h). Knows neither threads nor
 * processes. */
#include "measure/team.h"
#include "base/clock.h"

#include <math.h>
#include <string.h>

static bool stopped(const lap_team_work *work) {
    return work->interrupted && work->interrupted(work->context);
}

lap_status lap_team_meet(const lap_team *team, const lap_team_work *work, bool under_load,
                         lap_error *err) {
    bool yes = false;
    double ignored, begun = lap_clock_now();
    LAP_TRY(team->arrive(team->context, err));
    for (;;) {
        LAP_TRY(team->passed(team->context, !under_load, &yes, err));
        if (yes) return LAP_OK;
        bool silent = team->silent_after_s > 0 && lap_clock_now() - begun > team->silent_after_s;
        if (!silent && stopped(work))
            return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted while others were waited for");
        if (under_load) LAP_TRY(lap_measure_once(&work->workload, work->timing, &ignored, err));
    }
}

/* ---- latency -------------------------------------------------------------------------------- */

static lap_status latency(const lap_team *team, const lap_team_work *work,
                          const lap_latency_options *options, lap_latency_run *run,
                          lap_latency *out, double *started_s, lap_error *err) {
    LAP_TRY(lap_latency_begin(run, &work->workload, work->timing, options, out, err));
    LAP_TRY(lap_team_meet(team, work, true, err));
    *started_s = work->timing->now(work->timing->context);
    for (bool done = false; !done;)
        LAP_TRY(lap_latency_block(run, options->repetitions, &done, err));
    return lap_team_meet(team, work, true, err);
}

lap_status lap_team_latency(const lap_team *team, const lap_team_work *work,
                            const lap_latency_options *options, lap_latency_run *run,
                            lap_latency *out, double *started_s, lap_error *err) {
    *started_s = 0;
    lap_status status = latency(team, work, options, run, out, started_s, err);
    if (status != LAP_OK) team->leave(team->context);
    return status;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static uint64_t batches_for(const lap_rounds_options *o) {
    double wanted = ceil(o->seconds / o->batch_s);
    return wanted > 2 ? (wanted < 1e6 ? (uint64_t)wanted : 1000000) : 2;
}

static lap_status rewarm(const lap_team_work *work, double seconds, lap_error *err) {
    const lap_timing *timing = work->timing;
    double start = timing->now(timing->context), ignored;
    for (int i = 0; i < LAP_WARMUP_MOST; i++) {
        LAP_TRY(lap_measure_once(&work->workload, timing, &ignored, err));
        if (timing->now(timing->context) - start >= seconds) break;
    }
    return LAP_OK;
}

static lap_status timed(const lap_team_work *work, const lap_rounds *rounds, double *rate,
                        double *seconds, lap_error *err) {
    LAP_TRY(lap_measure_batches(&work->workload, work->timing, rounds->batches, work->interrupted,
                                work->context, seconds, err));
    *rate = (double)rounds->batch * (double)rounds->batches / *seconds;
    return LAP_OK;
}

static lap_status one_part(const lap_team *team, const lap_team_work *work,
                           const lap_rounds_options *o, size_t part, lap_rounds *out,
                           lap_error *err) {
    double seconds;
    LAP_TRY(lap_team_meet(team, work, false, err));
    if (part < team->turns) {
        if (part != team->turn) return LAP_OK;
        LAP_TRY(rewarm(work, o->rewarm_s, err));
        return timed(work, out, &out->alone[out->n], &seconds, err);
    }
    LAP_TRY(rewarm(work, o->rewarm_s, err));
    LAP_TRY(lap_team_meet(team, work, true, err));
    LAP_TRY(timed(work, out, &out->together[out->n], &seconds, err));
    LAP_TRY(lap_team_meet(team, work, true, err));
    out->seconds += seconds;
    return LAP_OK;
}

static lap_status all_rounds(const lap_team *team, const lap_team_work *work,
                             const lap_rounds_options *o, lap_rounds *out, lap_error *err) {
    size_t parts = team->turns + 1;
    while (out->n < o->rounds) {
        for (size_t k = 0; k < parts; k++)
            LAP_TRY(one_part(team, work, o, out->n % 2 ? parts - 1 - k : k, out, err));
        out->n++;
    }
    return LAP_OK;
}

lap_status lap_team_rounds(const lap_team *team, const lap_team_work *work,
                           const lap_rounds_options *options, lap_rounds *out, lap_error *err) {
    memset(out, 0, sizeof *out);
    lap_status status = LAP_OK;
    if (options->rounds == 0 || options->rounds > LAP_ROUNDS_MOST || !(options->batch_s > 0))
        status = LAP_FAIL(err, LAP_E_ARG, "rounds: %zu of batches of %g s; expected 1 to %d",
                          options->rounds, options->batch_s, LAP_ROUNDS_MOST);
    if (status == LAP_OK) {
        out->batch = options->batch;
        out->batches = batches_for(options);
        status = all_rounds(team, work, options, out, err);
    }
    if (status != LAP_OK) team->leave(team->context);
    return status;
}
