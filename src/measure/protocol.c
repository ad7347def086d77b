/* The latency protocol (see protocol.h). Knows a workload and a timing, no device and no network;
 * keeps every sample and throws away no time. */
#include "measure/protocol.h"
#include "measure/protocol_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A wait after so many runs bounds the queue; the wait's cost is shared by as many runs. */
enum { RUNS_PER_WAIT = 128 };

/* Device clock and host clock may drift apart by this much. */
static const double CLOCK_DRIFT = 1.05;
/* Below this difference a wall span may be much longer than a device span: submission and waking
 * up cost something. Above it, with this ratio, the device's clock ticks in another unit. Where the
 * overhead was measured, it is 10 times that, within bounds. */
static const double OVERHEAD_S = 2e-3, OVERHEAD_LEAST_S = 1e-4, OVERHEAD_TIMES = 10,
                    UNIT_RATIO = 3.0;

bool lap_latency_stopped(const lap_latency_options *options) {
    return options->interrupted && options->interrupted(options->context);
}

void lap_latency_tell(const lap_latency_options *options, const char *what, size_t done,
                      size_t total) {
    if (options->progress) options->progress(options->context, what, done, total);
}

static lap_status interrupted_error(lap_error *err, const char *what, size_t done, size_t total) {
    return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted in the %s, after %zu of %zu runs", what,
                    done, total);
}

/* ---- single runs ---------------------------------------------------------------------------- */

lap_status lap_measure_once(const lap_workload *workload, const lap_timing *timing, double *wall_s,
                            lap_error *err) {
    *wall_s = 0;
    double start = timing->now(timing->context);
    LAP_TRY(workload->run(workload->context, err));
    LAP_TRY(timing->finish(timing->context, err));
    *wall_s = timing->now(timing->context) - start;
    return LAP_OK;
}

static double resolution(const lap_latency_run *run) {
    return run->options.tick_s > 0 ? run->options.tick_s : run->timing.resolution_s;
}

lap_status lap_latency_sample(lap_latency_run *run, size_t passes, lap_sample *sample,
                              lap_span_fault *fault, lap_error *err) {
    const lap_timing *timing = &run->timing;
    void *context = timing->context;
    const lap_latency_options *o = &run->options;
    if (o->prepare) LAP_TRY(o->prepare(o->prepare_context, err));
    double a = timing->now(context);
    LAP_TRY(timing->before(context, err));
    for (size_t i = 0; i < passes; i++)
        LAP_TRY(run->workload.run(run->workload.context, err));
    LAP_TRY(timing->after(context, err));
    double b = timing->now(context);
    LAP_TRY(timing->finish(context, err));
    double c = timing->now(context);

    double wall_s = c - a, device_s = 0, each = (double)passes;
    *sample =
        (lap_sample){.wall_s = wall_s / each, .submit_s = (b - a) / each, .at_s = a - run->origin};
    lap_error detail = {0}; /* a bad stamp is counted, not reported as an error */
    lap_status status = timing->elapsed(context, &device_s, &detail);
    if (status != LAP_OK && status != LAP_E_TIMER) {
        if (err) *err = detail;
        return status;
    }
    double slack = 2 * resolution(run) + 1e-6;
    *fault = LAP_SPAN_GOOD;
    if (status == LAP_E_TIMER || !(device_s > 0) || !isfinite(device_s))
        *fault = LAP_SPAN_BAD;
    else if (device_s > wall_s * CLOCK_DRIFT + slack)
        *fault = LAP_SPAN_IMPOSSIBLE;
    else
        sample->device_s = lap_some(device_s / each);
    return LAP_OK;
}

/* ---- repetitions ---------------------------------------------------------------------------- */

static bool reserve(lap_latency_run *run) {
    lap_latency *out = run->out;
    if (out->n < run->capacity) return true;
    size_t more = run->capacity ? run->capacity * 2 : 128;
    if (more > SIZE_MAX / sizeof *out->samples) return false;
    lap_sample *samples = realloc(out->samples, more * sizeof *samples);
    if (!samples) return false;
    out->samples = samples;
    run->capacity = more;
    return true;
}

static lap_status add_sample(lap_latency_run *run, lap_error *err) {
    lap_latency *out = run->out;
    lap_span_fault fault;
    if (!reserve(run))
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for more than %zu samples", out->n);
    LAP_TRY(lap_latency_sample(run, out->passes, &out->samples[out->n], &fault, err));
    out->bad_stamps += fault == LAP_SPAN_BAD;
    out->impossible += fault == LAP_SPAN_IMPOSSIBLE;
    out->n++;
    lap_latency_tell(&run->options, "repetitions", out->n, run->options.repetitions);
    return LAP_OK;
}

static lap_status summarise(lap_latency_run *run, lap_error *err);

/* Looked at whenever the samples have grown by a tenth: their statistics cost a sort. */
static lap_status quiet_enough(lap_latency_run *run, bool *quiet, lap_error *err) {
    const lap_latency_options *o = &run->options;
    lap_latency *out = run->out;
    *quiet = false;
    if (!(o->noise_target > 0) || out->n < o->min_samples || out->n < run->next_check)
        return LAP_OK;
    run->next_check = out->n + out->n / 10 + 1;
    LAP_TRY(summarise(run, err));
    *quiet = out->noise.has && out->noise.value <= o->noise_target;
    return LAP_OK;
}

static void ended(lap_latency *out, const char *why) {
    snprintf(out->ended, sizeof out->ended, "%s", why);
}

static lap_status take_block(lap_latency_run *run, size_t count, bool *done, lap_error *err) {
    const lap_latency_options *o = &run->options;
    lap_latency *out = run->out;
    double start = run->timing.now(run->timing.context), before = out->timed_s;
    for (size_t i = 0;; i++) {
        bool quiet;
        LAP_TRY(quiet_enough(run, &quiet, err));
        if (quiet) {
            ended(out, "noise_target");
            break;
        }
        if (out->n >= o->repetitions) {
            ended(out, o->noise_target > 0 ? "max_samples" : "fixed");
            break;
        }
        if (o->max_seconds > 0 && out->n > 0 && out->timed_s >= o->max_seconds) {
            out->time_limit = true;
            ended(out, "max_seconds");
            break;
        }
        if (i == count) return LAP_OK;
        if (lap_latency_stopped(o)) {
            out->interrupted = true;
            return interrupted_error(err, "repetitions", out->n, o->repetitions);
        }
        LAP_TRY(add_sample(run, err));
        out->timed_s = before + (run->timing.now(run->timing.context) - start);
    }
    *done = true;
    return LAP_OK;
}

static lap_status rewarm(lap_latency_run *run, lap_error *err) {
    double start = run->timing.now(run->timing.context), wall_s;
    if (run->out->blocks == 0 || !(run->options.rewarm_seconds > 0)) return LAP_OK;
    for (int i = 0; i < LAP_WARMUP_MOST; i++) {
        LAP_TRY(lap_measure_once(&run->workload, &run->timing, &wall_s, err));
        if (run->timing.now(run->timing.context) - start >= run->options.rewarm_seconds) break;
    }
    return LAP_OK;
}

lap_status lap_latency_block(lap_latency_run *run, size_t count, bool *done, lap_error *err) {
    *done = false;
    LAP_TRY(rewarm(run, err));
    run->out->blocks++;
    lap_telemetry_resume(run->options.telemetry);
    lap_status status = take_block(run, count, done, err);
    lap_telemetry_pause(run->options.telemetry);
    return status;
}

/* ---- which clock ---------------------------------------------------------------------------- */

static double most_overhead(const lap_latency_run *run) {
    double times = run->options.overhead_s.value * OVERHEAD_TIMES;
    if (!run->options.overhead_s.has || times > OVERHEAD_S) return OVERHEAD_S;
    return times > OVERHEAD_LEAST_S ? times : OVERHEAD_LEAST_S;
}

static void decide_clock(const lap_latency_run *run) {
    lap_latency *out = run->out;
    char *reason = out->clock_reason;
    size_t size = sizeof out->clock_reason;
    double wall = out->wall.p50.value, device = out->device.p50.value;
    double between = (wall - device) * (double)out->passes;
    out->clock = LAP_CLOCK_WALL;
    reason[0] = '\0';
    if (out->bad_stamps > 0)
        snprintf(reason, size, "%zu of %zu device time stamps were missing, zero or reversed",
                 out->bad_stamps, out->n);
    else if (out->impossible > 0)
        snprintf(reason, size, "%zu of %zu device spans were longer than the wall span around them",
                 out->impossible, out->n);
    else if (wall > device * UNIT_RATIO && between > most_overhead(run))
        snprintf(reason, size,
                 "the median device span is %.1f times shorter than the wall span, more than "
                 "overhead explains",
                 wall / device);
    else
        out->clock = LAP_CLOCK_DEVICE;
    out->comparable = out->clock == LAP_CLOCK_DEVICE;
}

static lap_status summarise(lap_latency_run *run, lap_error *err) {
    lap_latency *out = run->out;
    size_t n = out->n, good = 0;
    out->has = n > 0;
    if (n == 0) return LAP_OK;
    double *x = malloc(n * sizeof *x);
    if (!x) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the statistics of %zu samples", n);
    for (size_t i = 0; i < n; i++)
        x[i] = out->samples[i].wall_s;
    lap_status status = lap_stats_compute(x, n, &out->wall, err);
    for (size_t i = 0; i < n; i++)
        x[i] = out->samples[i].submit_s;
    if (status == LAP_OK) status = lap_stats_compute(x, n, &out->submit, err);
    for (size_t i = 0; i < n; i++)
        if (out->samples[i].device_s.has) x[good++] = out->samples[i].device_s.value;
    if (status == LAP_OK) status = lap_stats_compute(x, good, &out->device, err);
    free(x);
    LAP_TRY(status);
    decide_clock(run);
    out->stats = out->clock == LAP_CLOCK_WALL ? out->wall : out->device;
    out->noise = lap_relative_error(&out->stats);
    return LAP_OK;
}

/* ---- public --------------------------------------------------------------------------------- */

static lap_status check_options(const lap_workload *workload, const lap_timing *timing,
                                const lap_latency_options *options, lap_error *err) {
    if (!workload || !workload->run || !timing || !timing->now)
        return LAP_FAIL(err, LAP_E_ARG, "latency: a workload and an open timing are needed");
    if (options->repetitions == 0)
        return LAP_FAIL(err, LAP_E_ARG, "latency: repetitions is 0, at least 1 is needed");
    return LAP_OK;
}

lap_status lap_latency_begin(lap_latency_run *run, const lap_workload *workload,
                             const lap_timing *timing, const lap_latency_options *options,
                             lap_latency *out, lap_error *err) {
    memset(out, 0, sizeof *out);
    memset(run, 0, sizeof *run);
    run->out = out;
    LAP_TRY(check_options(workload, timing, options, err));
    run->workload = *workload;
    run->timing = *timing;
    run->options = *options;
    run->origin = timing->now(timing->context);
    out->planned = options->repetitions;
    out->passes = options->passes > 0 ? options->passes : 1;
    if (out->passes > 1) snprintf(out->passes_reason, sizeof out->passes_reason, "as configured");
    bool noise = options->noise_target > 0;
    snprintf(out->stop, sizeof out->stop, "%s", noise ? "relative_noise" : "fixed");
    out->noise_target = noise ? options->noise_target : 0;
    LAP_TRY(lap_latency_warm_up(run, err));
    /* What is prepared before a sample, a cold cache say, is gone after its first pass. */
    if (!options->passes_auto || options->prepare) return LAP_OK;
    return lap_latency_calibrate(run, resolution(run), err);
}

lap_status lap_latency_end(lap_latency_run *run, lap_status status, lap_error *err) {
    lap_latency *out = run->out;
    if (status == LAP_E_INTERRUPTED) {
        out->interrupted = true;
        ended(out, "interrupted");
    }
    if (status == LAP_OK || status == LAP_E_INTERRUPTED) {
        lap_status summary = summarise(run, err);
        if (summary != LAP_OK) status = summary;
    }
    if (status != LAP_OK && status != LAP_E_INTERRUPTED) lap_latency_free(out);
    return status;
}

lap_status lap_measure_latency(const lap_workload *workload, const lap_timing *timing,
                               const lap_latency_options *options, lap_latency *out,
                               lap_error *err) {
    lap_latency_run run;
    lap_status status = lap_latency_begin(&run, workload, timing, options, out, err);
    for (bool done = false; status == LAP_OK && !done;)
        status = lap_latency_block(&run, options->repetitions, &done, err);
    return lap_latency_end(&run, status, err);
}

lap_status lap_measure_batches(const lap_workload *workload, const lap_timing *timing,
                               uint64_t count, bool (*interrupted)(void *context), void *context,
                               double *seconds, lap_error *err) {
    *seconds = 0;
    if (count == 0) return LAP_FAIL(err, LAP_E_ARG, "throughput: 0 batches, at least 1 is needed");
    double start = timing->now(timing->context);
    for (uint64_t i = 0; i < count; i++) {
        if (interrupted && interrupted(context)) {
            /* What is enqueued must be done before the caller frees its memory. */
            timing->finish(timing->context, NULL);
            return interrupted_error(err, "throughput", (size_t)i, (size_t)count);
        }
        LAP_TRY(workload->run(workload->context, err));
        if ((i + 1) % RUNS_PER_WAIT == 0) LAP_TRY(timing->finish(timing->context, err));
    }
    LAP_TRY(timing->finish(timing->context, err));
    double spent = timing->now(timing->context) - start;
    if (!(spent > 0) || !isfinite(spent))
        return LAP_FAIL(err, LAP_E_TIMER, "throughput: the host clock shows %g s for %llu batches",
                        spent, (unsigned long long)count);
    *seconds = spent;
    return LAP_OK;
}
