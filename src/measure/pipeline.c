/* See pipeline.h. Slot s = batch number mod 2 has a plan, host memory and three events of its own.
 * The order that events force: upload i after compute i - 2 (it reads that input), compute i after
 * upload i and download i - 2 (it overwrites that output), download i after compute i. The host
 * waits for download i - 2 before it hands out slot s again, which also bounds the queues. */
#include "measure/pipeline.h"
#include "base/clock.h"

#include <stdio.h>

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    lap_plan *plan;
    lap_pinned *pinned;
    void *host; /* input, then output */
    bool allocated;
    lap_event *uploaded, *computed, *downloaded;
    bool used;
} slot;

typedef struct pipe {
    const lap_pipeline_job *job;
    lap_queue *up, *compute, *down;
    slot slots[2];
    size_t in_bytes, out_bytes;
    void *reference; /* output of a run on its own */
    double (*now)(void);
} pipe;

static bool stop_asked(const pipe *p) {
    return p->job->interrupted && p->job->interrupted(p->job->context);
}

static lap_status stopped(lap_error *err) {
    return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted in the pipeline");
}

static char *output_of(const pipe *p, const slot *s) {
    return (char *)s->host + p->in_bytes;
}

/* ---- setting up ----------------------------------------------------------------------------- */

static lap_status slot_open(pipe *p, slot *s, bool *pinned, lap_error *err) {
    lap_device *device = lap_queue_device(p->compute);
    size_t bytes = p->in_bytes + p->out_bytes;
    lap_status status = lap_pinned_new(device, bytes, &s->pinned, err);
    if (status == LAP_E_DEVICE) return status;
    s->allocated = status != LAP_OK;
    if (s->allocated) *pinned = false;
    s->host = !s->allocated ? lap_pinned_data(s->pinned) : malloc(bytes);
    if (!s->host) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the pipeline");
    memcpy(s->host, p->job->input, p->in_bytes);
    memset(output_of(p, s), 0xFF, p->out_bytes); /* NaN: what is never written shows */
    LAP_TRY(lap_event_new(device, &s->uploaded, err));
    LAP_TRY(lap_event_new(device, &s->computed, err));
    return lap_event_new(device, &s->downloaded, err);
}

static void slot_close(slot *s) {
    lap_event_free(s->uploaded);
    lap_event_free(s->computed);
    lap_event_free(s->downloaded);
    if (s->allocated) free(s->host);
    lap_pinned_free(s->pinned);
}

static lap_status pipe_open(pipe *p, bool *pinned, lap_error *err) {
    lap_device *device = lap_queue_device(p->compute);
    p->reference = malloc(p->out_bytes);
    if (!p->reference) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the pipeline");
    LAP_TRY(lap_queue_new(device, &p->up, err));
    LAP_TRY(lap_queue_new(device, &p->down, err));
    for (int i = 0; i < 2; i++) {
        p->slots[i].plan = p->job->plans[i];
        LAP_TRY(slot_open(p, &p->slots[i], pinned, err));
    }
    LAP_TRY(lap_buffer_write(p->compute, lap_plan_input_buffer(p->job->plans[0]), 0, p->job->input,
                             p->in_bytes, err));
    LAP_TRY(lap_plan_run(p->job->plans[0], err));
    return lap_buffer_read(p->compute, lap_plan_output_buffer(p->job->plans[0]), 0, p->reference,
                           p->out_bytes, err);
}

/* Whatever was enqueued must be done before its memory goes. */
static void pipe_close(pipe *p) {
    lap_queue *queues[] = {p->up, p->compute, p->down};
    for (size_t i = 0; i < 3; i++)
        if (queues[i]) lap_queue_finish(queues[i], NULL);
    for (int i = 0; i < 2; i++)
        slot_close(&p->slots[i]);
    lap_queue_free(p->up);
    lap_queue_free(p->down);
    free(p->reference);
}

/* ---- the three ways ------------------------------------------------------------------------- */

static lap_status piped(pipe *p, slot *s, lap_error *err) {
    if (s->used) LAP_TRY(lap_event_wait(s->downloaded, err));
    if (s->used) LAP_TRY(lap_queue_wait_event(p->up, s->computed, err));
    LAP_TRY(lap_buffer_write_async(p->up, lap_plan_input_buffer(s->plan), 0, s->host, p->in_bytes,
                                   err));
    LAP_TRY(lap_event_record(s->uploaded, p->up, err));
    LAP_TRY(lap_queue_flush(p->up, err));
    LAP_TRY(lap_queue_wait_event(p->compute, s->uploaded, err));
    if (s->used) LAP_TRY(lap_queue_wait_event(p->compute, s->downloaded, err));
    LAP_TRY(lap_plan_run(s->plan, err));
    LAP_TRY(lap_event_record(s->computed, p->compute, err));
    LAP_TRY(lap_queue_flush(p->compute, err));
    LAP_TRY(lap_queue_wait_event(p->down, s->computed, err));
    LAP_TRY(lap_buffer_read_async(p->down, lap_plan_output_buffer(s->plan), 0, output_of(p, s),
                                  p->out_bytes, err));
    LAP_TRY(lap_event_record(s->downloaded, p->down, err));
    LAP_TRY(lap_queue_flush(p->down, err));
    s->used = true;
    return LAP_OK;
}

static lap_status serial(pipe *p, slot *s, lap_error *err) {
    LAP_TRY(
        lap_buffer_write(p->compute, lap_plan_input_buffer(s->plan), 0, s->host, p->in_bytes, err));
    LAP_TRY(lap_plan_run(s->plan, err));
    return lap_buffer_read(p->compute, lap_plan_output_buffer(s->plan), 0, output_of(p, s),
                           p->out_bytes, err);
}

static lap_status computed(pipe *p, slot *s, lap_error *err) {
    LAP_TRY(lap_plan_run(s->plan, err));
    return lap_queue_flush(p->compute, err);
}

/* Backwards: a queue that should have waited for one of the others has to have done so by itself.
 */
static lap_status finish_all(pipe *p, lap_error *err) {
    LAP_TRY(lap_queue_finish(p->down, err));
    LAP_TRY(lap_queue_finish(p->compute, err));
    return lap_queue_finish(p->up, err);
}

enum { LEAST_BATCHES = 2, PER_WAIT = 32 };

static lap_status timed(pipe *p, lap_status (*one)(pipe *, slot *, lap_error *), bool waits,
                        uint64_t *done, lap_optional *rate, lap_error *err) {
    const lap_pipeline_job *job = p->job;
    for (uint64_t i = 0; i < 2; i++) /* warm */
        LAP_TRY(one(p, &p->slots[i], err));
    LAP_TRY(finish_all(p, err));
    double start = p->now();
    uint64_t n = 0;
    for (; n < job->batches || n < LEAST_BATCHES; n++) {
        if (stop_asked(p)) return stopped(err);
        bool late = job->max_seconds > 0 && p->now() - start > job->max_seconds;
        if (late && n >= LEAST_BATCHES) break;
        LAP_TRY(one(p, &p->slots[n % 2], err));
        if (waits && n % PER_WAIT == PER_WAIT - 1) LAP_TRY(lap_queue_finish(p->compute, err));
    }
    LAP_TRY(finish_all(p, err));
    *rate = lap_ratio(lap_some((double)(n * job->batch)), lap_some(p->now() - start));
    *done = n;
    return LAP_OK;
}

static lap_status check(pipe *p, lap_error *err) {
    for (int i = 0; i < 2; i++)
        if (memcmp(output_of(p, &p->slots[i]), p->reference, p->out_bytes) != 0)
            return LAP_FAIL(err, LAP_E_VERIFY,
                            "pipeline: the results of slot %d are not those of a run on its own",
                            i);
    return LAP_OK;
}

static void forget_outputs(pipe *p) {
    for (int i = 0; i < 2; i++)
        memset(output_of(p, &p->slots[i]), 0xFF, p->out_bytes);
}

/* Two batches over inputs and outputs that hold NaN: what is computed before its upload, or
 * downloaded before it is computed, shows. */
static lap_status check_order(pipe *p, lap_error *err) {
    forget_outputs(p);
    for (int i = 0; i < 2; i++) {
        lap_plan *plan = p->slots[i].plan;
        LAP_TRY(lap_buffer_fill(p->compute, lap_plan_input_buffer(plan), 0, p->in_bytes / 4 * 4,
                                0x7FFF7FFFu, err));
        LAP_TRY(lap_buffer_fill(p->compute, lap_plan_output_buffer(plan), 0, p->out_bytes / 4 * 4,
                                0x7FFF7FFFu, err));
    }
    LAP_TRY(lap_queue_finish(p->compute, err));
    for (int i = 0; i < 2; i++)
        LAP_TRY(piped(p, &p->slots[i], err));
    LAP_TRY(finish_all(p, err));
    return check(p, err);
}

static lap_status run_ways(pipe *p, lap_pipeline *out, lap_error *err) {
    uint64_t ignored;
    lap_device *device = lap_queue_device(p->compute);
    out->pinned = true;
    LAP_TRY(pipe_open(p, &out->pinned, err));
    LAP_TRY(timed(p, computed, true, &ignored, &out->compute_images_per_s, err));
    LAP_TRY(timed(p, serial, false, &out->batches, &out->serial_images_per_s, err));
    LAP_TRY(check(p, err));
    if (!lap_device_has_async(device)) {
        snprintf(out->reason, sizeof out->reason, "%s cannot copy asynchronously",
                 lap_device_get_info(device)->selector);
        return LAP_OK;
    }
    LAP_TRY(check_order(p, err));
    forget_outputs(p);
    LAP_TRY(timed(p, piped, false, &out->batches, &out->images_per_s, err));
    return check(p, err);
}

lap_status lap_pipeline_measure(const lap_pipeline_job *job, lap_pipeline *out, lap_error *err) {
    *out = (lap_pipeline){.batch = job->batch};
    pipe p = {.job = job,
              .compute = lap_plan_queue(job->plans[0]),
              .in_bytes = lap_plan_input_bytes(job->plans[0]),
              .out_bytes = lap_plan_output_bytes(job->plans[0]),
              .now = job->now ? job->now : lap_clock_now};
    lap_status status = run_ways(&p, out, err);
    pipe_close(&p);
    if (status != LAP_OK)
        *out = (lap_pipeline){0};
    else
        out->has = true;
    return status;
}
