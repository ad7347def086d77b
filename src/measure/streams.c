/* See streams.h. One host thread serves all queues. */
#include "measure/streams.h"
#include "base/clock.h"

#include <stdlib.h>

typedef struct stream {
    lap_plan *plan;
    lap_event *done;
    double began;
    bool busy;
} stream;

typedef struct load {
    const lap_streams_job *job;
    stream streams[LAP_MAX_STREAMS];
    double *latencies;
    size_t n, capacity;
    double (*now)(void);
} load;

static lap_status enqueue(load *l, stream *s, lap_error *err) {
    s->began = l->now();
    LAP_TRY(lap_plan_run(s->plan, err));
    LAP_TRY(lap_event_record(s->done, lap_plan_queue(s->plan), err));
    LAP_TRY(lap_queue_flush(lap_plan_queue(s->plan), err));
    s->busy = true;
    return LAP_OK;
}

static lap_status collect(load *l, stream *s, lap_error *err) {
    if (!s->busy) return LAP_OK;
    s->busy = false;
    LAP_TRY(lap_event_wait(s->done, err));
    if (l->n < l->capacity) l->latencies[l->n++] = l->now() - s->began;
    return LAP_OK;
}

static lap_status drain(load *l, lap_error *err) {
    for (size_t i = 0; i < l->job->count; i++)
        LAP_TRY(collect(l, &l->streams[i], err));
    return LAP_OK;
}

static lap_status run_load(load *l, uint64_t *done, double *seconds, lap_error *err) {
    const lap_streams_job *job = l->job;
    for (size_t i = 0; i < job->count; i++) /* warm */
        LAP_TRY(enqueue(l, &l->streams[i], err));
    LAP_TRY(drain(l, err));
    l->n = 0;
    double start = l->now();
    uint64_t i = 0;
    for (; i < job->batches || i < job->count; i++) {
        if (job->interrupted && job->interrupted(job->context))
            return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted with %zu queues", job->count);
        if (job->max_seconds > 0 && i >= job->count && l->now() - start > job->max_seconds) break;
        stream *s = &l->streams[i % job->count];
        LAP_TRY(collect(l, s, err));
        LAP_TRY(enqueue(l, s, err));
    }
    LAP_TRY(drain(l, err));
    *seconds = l->now() - start;
    *done = i;
    return LAP_OK;
}

static lap_status open_events(load *l, lap_error *err) {
    for (size_t i = 0; i < l->job->count; i++) {
        l->streams[i].plan = l->job->plans[i];
        lap_device *device = lap_queue_device(lap_plan_queue(l->job->plans[i]));
        LAP_TRY(lap_event_new(device, &l->streams[i].done, err));
    }
    return LAP_OK;
}

static lap_status summarise(load *l, uint64_t done, double seconds, lap_stream_point *out,
                            lap_error *err) {
    lap_stats stats;
    LAP_TRY(lap_stats_compute(l->latencies, l->n, &stats, err));
    if (!(seconds > 0))
        return LAP_FAIL(err, LAP_E_TIMER, "%zu queues: the host clock shows no time",
                        l->job->count);
    out->batches = done;
    out->images_per_s = lap_ratio(lap_some((double)(done * l->job->batch)), lap_some(seconds));
    out->latency_mean_s = stats.mean;
    out->latency_p50_s = stats.p50;
    out->latency_p99_s = stats.p99;
    out->latency_max_s = stats.max;
    return LAP_OK;
}

lap_status lap_streams_measure(const lap_streams_job *job, lap_stream_point *out, lap_error *err) {
    *out = (lap_stream_point){.streams = job->count, .batch = job->batch};
    if (job->count == 0 || job->count > LAP_MAX_STREAMS)
        return LAP_FAIL(err, LAP_E_ARG, "%zu queues: expected 1 to %d", job->count,
                        LAP_MAX_STREAMS);
    load l = {.job = job, .now = job->now ? job->now : lap_clock_now};
    l.capacity = (size_t)(job->batches > job->count ? job->batches : job->count);
    l.latencies = calloc(l.capacity, sizeof *l.latencies);
    lap_status status = l.latencies
                            ? open_events(&l, err)
                            : LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu latencies", l.capacity);
    uint64_t done = 0;
    double seconds = 0;
    if (status == LAP_OK) status = run_load(&l, &done, &seconds, err);
    if (status == LAP_OK) status = summarise(&l, done, seconds, out, err);
    for (size_t i = 0; i < job->count; i++) {
        /* What is enqueued must be done before the caller frees its memory. */
        if (status != LAP_OK) lap_queue_finish(lap_plan_queue(job->plans[i]), NULL);
        lap_event_free(l.streams[i].done);
    }
    free(l.latencies);
    return status;
}
