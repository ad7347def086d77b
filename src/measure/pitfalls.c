/* See pitfalls.h. Each wrong way differs from the right one in one thing only, as far as that can
 * be.
 */
#include "measure/pitfalls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLD_RUNS = 10 };

static const struct {
    const char *name, *about;
} texts[LAP_WAYS] = {
    [LAP_WAY_RIGHT] = {"right", "right: warm, device events, waited"},
    [LAP_WAY_COPIES_PAGEABLE] = {"copies_pageable", "copies timed too, pageable memory"},
    [LAP_WAY_COPIES_PINNED] = {"copies_pinned", "copies timed too, pinned memory"},
    [LAP_WAY_NO_WARMUP] = {"no_warmup", "no warm-up: the first runs count"},
    [LAP_WAY_NO_WAIT] = {"no_wait", "host clock, device not waited for"},
    [LAP_WAY_ONE_SAMPLE] = {"one_sample", "one sample: one of these"},
};

const char *lap_way_name(lap_pitfall_kind kind) {
    return texts[kind].name;
}

const char *lap_way_about(lap_pitfall_kind kind) {
    return texts[kind].about;
}

void lap_histogram_fill(const double *samples, size_t n, lap_histogram *out) {
    *out = (lap_histogram){0};
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(samples[i])) continue;
        if (out->most == 0) out->low = out->high = samples[i];
        out->most = 1;
        if (samples[i] < out->low) out->low = samples[i];
        if (samples[i] > out->high) out->high = samples[i];
    }
    double width = (out->high - out->low) / LAP_HISTOGRAM_BINS;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(samples[i])) continue;
        double at = width > 0 ? (samples[i] - out->low) / width : 0;
        size_t bin = at < LAP_HISTOGRAM_BINS ? (size_t)at : LAP_HISTOGRAM_BINS - 1;
        if (++out->counts[bin] > out->most) out->most = out->counts[bin];
    }
}

void lap_pitfalls_free(lap_pitfalls *p) {
    for (int i = 0; i < LAP_WAYS; i++)
        free(p->ways[i].samples);
    *p = (lap_pitfalls){0};
}

/* ---- taking samples ------------------------------------------------------------------------- */

typedef struct copying {
    const lap_pitfalls_job *job;
    void *in, *out; /* host memory */
} copying;

typedef lap_status (*sampler)(const lap_pitfalls_job *job, copying *host, double *seconds,
                              lap_error *err);

static lap_status sample_wall(const lap_pitfalls_job *job, copying *host, double *seconds,
                              lap_error *err) {
    const lap_timing *t = job->timing;
    (void)host;
    double start = t->now(t->context);
    LAP_TRY(lap_plan_run(job->plan, err));
    LAP_TRY(t->finish(t->context, err));
    *seconds = t->now(t->context) - start;
    return LAP_OK;
}

static lap_status sample_no_wait(const lap_pitfalls_job *job, copying *host, double *seconds,
                                 lap_error *err) {
    const lap_timing *t = job->timing;
    (void)host;
    double start = t->now(t->context);
    LAP_TRY(lap_plan_run(job->plan, err));
    *seconds = t->now(t->context) - start;
    return t->finish(t->context, err); /* the next sample starts on an idle device */
}

static lap_status sample_copies(const lap_pitfalls_job *job, copying *host, double *seconds,
                                lap_error *err) {
    const lap_timing *t = job->timing;
    lap_queue *queue = lap_plan_queue(job->plan);
    double start = t->now(t->context);
    LAP_TRY(lap_buffer_write(queue, lap_plan_input_buffer(job->plan), 0, host->in,
                             lap_plan_input_bytes(job->plan), err));
    LAP_TRY(lap_plan_run(job->plan, err));
    LAP_TRY(lap_buffer_read(queue, lap_plan_output_buffer(job->plan), 0, host->out,
                            lap_plan_output_bytes(job->plan), err));
    *seconds = t->now(t->context) - start;
    return LAP_OK;
}

static lap_status summarise(lap_way *way, lap_error *err) {
    LAP_TRY(lap_stats_compute(way->samples, way->n, &way->stats, err));
    lap_histogram_fill(way->samples, way->n, &way->histogram);
    way->has = way->n > 0;
    return LAP_OK;
}

static lap_status collect(const lap_pitfalls_job *job, sampler take, copying *host, size_t warm,
                          size_t count, lap_way *way, lap_error *err) {
    const lap_timing *t = job->timing;
    double began = t->now(t->context);
    way->samples = calloc(count, sizeof *way->samples);
    if (!way->samples) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu samples", count);
    for (size_t i = 0; i < warm + count; i++) {
        if (job->interrupted && job->interrupted(job->context))
            return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted after %zu samples", way->n);
        double spent = t->now(t->context) - began;
        if (job->max_seconds > 0 && way->n > 0 && spent >= job->max_seconds) break;
        double seconds;
        LAP_TRY(take(job, host, &seconds, err));
        if (i >= warm) way->samples[way->n++] = seconds;
    }
    return summarise(way, err);
}

/* ---- the ways ------------------------------------------------------------------------------- */

lap_status lap_pitfalls_cold(const lap_pitfalls_job *job, lap_pitfalls *out, lap_error *err) {
    *out = (lap_pitfalls){0};
    size_t count = job->repetitions < COLD_RUNS ? job->repetitions : COLD_RUNS;
    lap_pitfalls_job patient = *job; /* the first run may take longer than all others together */
    patient.max_seconds *= 10;
    return collect(&patient, sample_wall, NULL, 0, count, &out->ways[LAP_WAY_NO_WARMUP], err);
}

static lap_status run_plan(void *context, lap_error *err) {
    return lap_plan_run(context, err);
}

static lap_status keep_right(const lap_latency *latency, lap_pitfalls *out, lap_error *err) {
    lap_way *right = &out->ways[LAP_WAY_RIGHT], *one = &out->ways[LAP_WAY_ONE_SAMPLE];
    right->samples = calloc(latency->n, sizeof *right->samples);
    one->samples = calloc(latency->n, sizeof *one->samples);
    if (!right->samples || !one->samples)
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu samples", latency->n);
    for (size_t i = 0; i < latency->n; i++) {
        const lap_sample *s = &latency->samples[i];
        bool wall = latency->clock == LAP_CLOCK_WALL;
        if (!wall && !s->device_s.has) continue;
        double seconds = wall ? s->wall_s : s->device_s.value;
        right->samples[right->n++] = one->samples[one->n++] = seconds;
    }
    out->clock = latency->clock;
    snprintf(out->clock_reason, sizeof out->clock_reason, "%s", latency->clock_reason);
    LAP_TRY(summarise(right, err));
    LAP_TRY(summarise(one, err));
    /* What it would have reported is its first sample, without any deviation. */
    return lap_stats_compute(one->samples, one->n ? 1 : 0, &one->stats, err);
}

static lap_status right_way(const lap_pitfalls_job *job, lap_pitfalls *out, lap_error *err) {
    lap_latency_options options = {.warmup_count = job->warmup_count,
                                   .warmup_seconds = job->warmup_seconds,
                                   .repetitions = job->repetitions,
                                   .max_seconds = job->max_seconds,
                                   .interrupted = job->interrupted,
                                   .context = job->context};
    lap_workload workload = {.run = run_plan, .context = job->plan};
    lap_latency latency;
    lap_status status = lap_measure_latency(&workload, job->timing, &options, &latency, err);
    if (status == LAP_OK) status = keep_right(&latency, out, err);
    lap_latency_free(&latency);
    return status;
}

static lap_status with_copies(const lap_pitfalls_job *job, bool pinned, lap_way *way,
                              lap_error *err) {
    size_t in = lap_plan_input_bytes(job->plan), out = lap_plan_output_bytes(job->plan);
    lap_pinned *memory = NULL;
    char *host = NULL;
    if (pinned) {
        lap_error detail = {0};
        lap_device *device = lap_queue_device(lap_plan_queue(job->plan));
        lap_status status = lap_pinned_new(device, in + out, &memory, &detail);
        if (status == LAP_E_DEVICE && err) *err = detail;
        if (status == LAP_E_DEVICE) return status;
        if (status != LAP_OK) {
            lap_error_text(&detail, way->reason, sizeof way->reason);
            return LAP_OK;
        }
        host = lap_pinned_data(memory);
    } else {
        host = malloc(in + out);
        if (!host) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for copies");
    }
    memcpy(host, job->packed, in);
    memset(host + in, 0, out);
    copying copies = {job, host, host + in};
    lap_status status = collect(job, sample_copies, &copies, 2, job->repetitions, way, err);
    if (!pinned) free(host);
    lap_pinned_free(memory);
    return status;
}

static void derive_factors(lap_pitfalls *p) {
    lap_optional right = p->ways[LAP_WAY_RIGHT].stats.mean;
    for (int i = 0; i < LAP_WAYS; i++)
        if (p->ways[i].has) p->ways[i].factor = lap_ratio(p->ways[i].stats.mean, right);
    lap_way *one = &p->ways[LAP_WAY_ONE_SAMPLE];
    double furthest = 0;
    for (size_t i = 0; i < one->n; i++) {
        lap_optional ratio = lap_ratio(lap_some(one->samples[i]), right);
        if (!ratio.has || !(ratio.value > 0)) continue;
        if (fabs(log(ratio.value)) < furthest) continue;
        furthest = fabs(log(ratio.value));
        one->factor = ratio;
    }
}

lap_status lap_pitfalls_measure(const lap_pitfalls_job *job, lap_pitfalls *out, lap_error *err) {
    LAP_TRY(right_way(job, out, err));
    LAP_TRY(with_copies(job, false, &out->ways[LAP_WAY_COPIES_PAGEABLE], err));
    LAP_TRY(with_copies(job, true, &out->ways[LAP_WAY_COPIES_PINNED], err));
    LAP_TRY(
        collect(job, sample_no_wait, NULL, 2, job->repetitions, &out->ways[LAP_WAY_NO_WAIT], err));
    derive_factors(out);
    return LAP_OK;
}
