/* The latency protocol (see protocol.h). Knows a workload and a timing, no device and no network;
 * keeps every sample and throws away no time. */
#include "measure/protocol.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A wait after so many runs bounds the queue; the wait's cost is shared by as many runs. */
enum { RUNS_PER_WAIT = 128 };

/* Device clock and host clock may drift apart by this much. */
static const double CLOCK_DRIFT = 1.05;
/* Below this difference a wall span may be much longer than a device span: submission and waking
 * up cost something. Above it, with this ratio, the device's clock ticks in another unit. */
static const double OVERHEAD_S = 2e-3, UNIT_RATIO = 3.0;

static bool stopped(const lap_latency_options *options) {
    return options->interrupted && options->interrupted(options->context);
}

static void tell(const lap_latency_options *options, const char *what, size_t done, size_t total) {
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

static lap_status repeat_once(const lap_workload *workload, const lap_timing *timing,
                              lap_latency *out, lap_sample *sample, lap_error *err) {
    void *context = timing->context;
    double a = timing->now(context);
    LAP_TRY(timing->before(context, err));
    LAP_TRY(workload->run(workload->context, err));
    LAP_TRY(timing->after(context, err));
    double b = timing->now(context);
    LAP_TRY(timing->finish(context, err));
    double c = timing->now(context);

    *sample = (lap_sample){.wall_s = c - a, .submit_s = b - a};
    double device_s = 0;
    lap_error detail = {0}; /* a bad stamp is counted, not reported as an error */
    lap_status status = timing->elapsed(context, &device_s, &detail);
    if (status != LAP_OK && status != LAP_E_TIMER) {
        if (err) *err = detail;
        return status;
    }
    double slack = 2 * timing->resolution_s + 1e-6;
    if (status == LAP_E_TIMER || !(device_s > 0) || !isfinite(device_s))
        out->bad_stamps++;
    else if (device_s > sample->wall_s * CLOCK_DRIFT + slack)
        out->impossible++;
    else
        sample->device_s = lap_some(device_s);
    return LAP_OK;
}

/* ---- warm-up and repetitions ---------------------------------------------------------------- */

static lap_status warm_up(const lap_workload *workload, const lap_timing *timing,
                          const lap_latency_options *options, lap_latency *out, lap_error *err) {
    double start = timing->now(timing->context), spent = 0;
    while (out->warmup_n < options->warmup_count || spent < options->warmup_seconds) {
        if (stopped(options))
            return interrupted_error(err, "warm-up", out->warmup_n, options->warmup_count);
        if (options->max_seconds > 0 && out->warmup_n > 0 && spent >= options->max_seconds) break;
        double wall_s;
        LAP_TRY(lap_measure_once(workload, timing, &wall_s, err));
        out->warmup_n++;
        double now_spent = timing->now(timing->context) - start;
        /* A clock that stands still must not make the warm-up endless. */
        if (!(now_spent > spent) && out->warmup_n >= options->warmup_count) break;
        spent = now_spent;
        tell(options, "warm-up", out->warmup_n,
             options->warmup_seconds > 0 ? 0 : options->warmup_count);
    }
    out->warmup_s = spent;
    return LAP_OK;
}

static bool reserve(lap_latency *out, size_t *capacity) {
    if (out->n < *capacity) return true;
    size_t more = *capacity ? *capacity * 2 : 128;
    if (more > SIZE_MAX / sizeof *out->samples) return false;
    lap_sample *samples = realloc(out->samples, more * sizeof *samples);
    if (!samples) return false;
    out->samples = samples;
    *capacity = more;
    return true;
}

static lap_status repeat(const lap_workload *workload, const lap_timing *timing,
                         const lap_latency_options *options, lap_latency *out, lap_error *err) {
    size_t capacity = 0;
    double start = timing->now(timing->context);
    while (out->n < options->repetitions) {
        if (stopped(options)) {
            out->interrupted = true;
            return interrupted_error(err, "repetitions", out->n, options->repetitions);
        }
        double spent = timing->now(timing->context) - start;
        if (options->max_seconds > 0 && out->n > 0 && spent >= options->max_seconds) {
            out->time_limit = true;
            break;
        }
        if (!reserve(out, &capacity))
            return LAP_FAIL(err, LAP_E_NOMEM, "no memory for more than %zu samples", out->n);
        LAP_TRY(repeat_once(workload, timing, out, &out->samples[out->n], err));
        out->n++;
        tell(options, "repetitions", out->n, options->repetitions);
    }
    return LAP_OK;
}

/* ---- which clock ---------------------------------------------------------------------------- */

static void decide_clock(lap_latency *out) {
    char *reason = out->clock_reason;
    size_t size = sizeof out->clock_reason;
    double wall = out->wall.p50.value, device = out->device.p50.value;
    out->clock = LAP_CLOCK_WALL;
    if (out->bad_stamps > 0)
        snprintf(reason, size, "%zu of %zu device time stamps were missing, zero or reversed",
                 out->bad_stamps, out->n);
    else if (out->impossible > 0)
        snprintf(reason, size, "%zu of %zu device spans were longer than the wall span around them",
                 out->impossible, out->n);
    else if (wall > device * UNIT_RATIO && wall - device > OVERHEAD_S)
        snprintf(reason, size,
                 "the median device span is %.1f times shorter than the wall span, more than "
                 "overhead explains",
                 wall / device);
    else
        out->clock = LAP_CLOCK_DEVICE;
}

static lap_status summarise(lap_latency *out, lap_error *err) {
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
    decide_clock(out);
    out->stats = out->clock == LAP_CLOCK_WALL ? out->wall : out->device;
    return LAP_OK;
}

/* ---- public --------------------------------------------------------------------------------- */

lap_status lap_measure_latency(const lap_workload *workload, const lap_timing *timing,
                               const lap_latency_options *options, lap_latency *out,
                               lap_error *err) {
    memset(out, 0, sizeof *out);
    if (!workload || !workload->run || !timing || !timing->now)
        return LAP_FAIL(err, LAP_E_ARG, "latency: a workload and an open timing are needed");
    if (options->repetitions == 0)
        return LAP_FAIL(err, LAP_E_ARG, "latency: repetitions is 0, at least 1 is needed");
    out->planned = options->repetitions;
    lap_status status = warm_up(workload, timing, options, out, err);
    if (status == LAP_OK) status = repeat(workload, timing, options, out, err);
    if (status == LAP_E_INTERRUPTED) out->interrupted = true;
    if (status == LAP_OK || status == LAP_E_INTERRUPTED) {
        lap_status summary = summarise(out, err);
        if (summary != LAP_OK) status = summary;
    }
    if (status != LAP_OK && status != LAP_E_INTERRUPTED) lap_latency_free(out);
    return status;
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
