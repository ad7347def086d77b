/* Timing over a real queue: two reusable events and the host clock. */
#include "measure/timing.h"
#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

typedef struct queue_timing {
    lap_queue *queue;
    lap_event *before, *after;
} queue_timing;

static double host_now(void *context) {
    (void)context;
    return lap_clock_now();
}

static lap_status record_before(void *context, lap_error *err) {
    queue_timing *t = context;
    return lap_event_record(t->before, t->queue, err);
}

static lap_status record_after(void *context, lap_error *err) {
    queue_timing *t = context;
    return lap_event_record(t->after, t->queue, err);
}

static lap_status finish(void *context, lap_error *err) {
    queue_timing *t = context;
    return lap_queue_finish(t->queue, err);
}

static lap_status elapsed(void *context, double *seconds, lap_error *err) {
    queue_timing *t = context;
    return lap_event_elapsed(t->before, t->after, seconds, err);
}

lap_status lap_timing_open(lap_queue *queue, lap_timing *out, lap_error *err) {
    memset(out, 0, sizeof *out);
    queue_timing *t = calloc(1, sizeof *t);
    if (!t) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the timing of a queue");
    lap_device *device = lap_queue_device(queue);
    t->queue = queue;
    lap_timing timing = {.now = host_now,
                         .before = record_before,
                         .after = record_after,
                         .finish = finish,
                         .elapsed = elapsed,
                         .context = t,
                         .resolution_s = lap_device_get_info(device)->timer_resolution_s};
    lap_status status = lap_event_new(device, &t->before, err);
    if (status == LAP_OK) status = lap_event_new(device, &t->after, err);
    if (status != LAP_OK)
        lap_timing_close(&timing);
    else
        *out = timing;
    return status;
}

void lap_timing_close(lap_timing *timing) {
    if (!timing || !timing->context) return;
    queue_timing *t = timing->context;
    lap_event_free(t->before);
    lap_event_free(t->after);
    free(t);
    memset(timing, 0, sizeof *timing);
}
