/* Times copies (see copies.h). Pageable memory is written to before it is used, so that no page is
 * mapped for the first time inside a timed copy. */
#include "measure/copies.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

enum { WARMUP = 2, LEAST = 3, MOST = 15 };
static const double MAX_SECONDS = 0.25; /* each of the four ways */

typedef struct way {
    const lap_copies_job *job;
    bool up;
    void *host;
    size_t bytes;
} way;

static lap_status copy_once(const way *w, lap_error *err) {
    const lap_copies_job *job = w->job;
    if (w->up) return lap_buffer_write(job->queue, job->input, 0, w->host, w->bytes, err);
    return lap_buffer_read(job->queue, job->output, 0, w->host, w->bytes, err);
}

static lap_status time_way(const way *w, lap_copy_time *out, lap_error *err) {
    double (*now)(void) = w->job->now ? w->job->now : lap_clock_now;
    double samples[MOST], began = now();
    size_t n = 0;
    for (int i = 0; i < WARMUP + MOST; i++) {
        if (w->job->interrupted && w->job->interrupted(w->job->context))
            return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted while copies were timed");
        if (n >= LEAST && now() - began > MAX_SECONDS) break;
        double start = now();
        LAP_TRY(copy_once(w, err));
        if (i >= WARMUP) samples[n++] = now() - start;
    }
    lap_stats stats;
    LAP_TRY(lap_stats_compute(samples, n, &stats, err));
    *out = (lap_copy_time){.bytes = w->bytes, .n = n, .std_s = stats.std};
    /* A clock that did not move gives no time and no rate. */
    if (stats.p50.has && stats.p50.value > 0) out->median_s = stats.p50;
    out->bytes_per_s = lap_ratio(lap_some((double)w->bytes), out->median_s);
    return LAP_OK;
}

static lap_status both(const lap_copies_job *job, void *host, lap_copy_time *up,
                       lap_copy_time *down, lap_error *err) {
    memcpy(host, job->data, job->input_bytes);
    way upload = {job, true, host, job->input_bytes};
    LAP_TRY(time_way(&upload, up, err));
    way download = {job, false, host, job->output_bytes};
    return time_way(&download, down, err);
}

lap_status lap_copies_measure(const lap_copies_job *job, lap_copies *out, lap_error *err) {
    *out = (lap_copies){0};
    size_t bytes = job->input_bytes > job->output_bytes ? job->input_bytes : job->output_bytes;
    void *host = malloc(bytes);
    if (!host) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for copies of %zu bytes", bytes);
    memset(host, 0, bytes);
    lap_status status = both(job, host, &out->upload_pageable, &out->download_pageable, err);
    free(host);
    LAP_TRY(status);
    out->has = true;
    lap_pinned *pinned = NULL;
    lap_error detail = {0};
    status = lap_pinned_new(lap_queue_device(job->queue), bytes, &pinned, &detail);
    if (status == LAP_E_DEVICE) {
        if (err) *err = detail;
        return status;
    }
    if (status != LAP_OK) {
        lap_error_text(&detail, out->reason, sizeof out->reason);
        return LAP_OK;
    }
    status = both(job, lap_pinned_data(pinned), &out->upload_pinned, &out->download_pinned, err);
    lap_pinned_free(pinned);
    return status;
}
