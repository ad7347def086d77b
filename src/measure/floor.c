/* Timer resolution and empty-kernel floor (see floor.h). Launches one kernel that does nothing. */
#include "measure/floor.h"
#include "kernel/kernel.h"

#include <math.h>
#include <string.h>

/* One, two and three empty kernels between two events take turns, so that spans begin anywhere in a
 * tick; only the single ones are the floor. Differences within one length are the timer's step or
 * jitter; a length whose spans are all equal shows no step at all. */
enum { WARMUP = 5, LENGTHS = 3, EACH = 15, SPANS = LENGTHS * EACH, CLOCK_READS = 1000 };

typedef struct span {
    double device_s, wall_s, submit_s;
    bool stamped;
} span;

static lap_status one(const lap_empty *empty, const lap_timing *timing, int launches, span *out,
                      lap_error *err) {
    void *context = timing->context;
    double a = timing->now(context);
    LAP_TRY(timing->before(context, err));
    for (int i = 0; i < launches; i++)
        LAP_TRY(empty->run(empty->context, err));
    LAP_TRY(timing->after(context, err));
    double b = timing->now(context);
    LAP_TRY(timing->finish(context, err));
    *out = (span){.wall_s = timing->now(context) - a, .submit_s = b - a};
    lap_error detail = {0};
    lap_status status = timing->elapsed(context, &out->device_s, &detail);
    out->stamped = status == LAP_OK && out->device_s > 0 && isfinite(out->device_s);
    if (status == LAP_OK || status == LAP_E_TIMER) return LAP_OK;
    if (err) *err = detail;
    return status;
}

/* Smallest difference above zero between two values; sorts. Differences below a picosecond are
 * rounding of the subtraction, not a step. */
static lap_optional smallest_step(double *values, size_t n) {
    double least = INFINITY;
    lap_sort(values, n);
    for (size_t i = 1; i < n; i++) {
        double step = values[i] - values[i - 1];
        if (step > 1e-12 && step < least) least = step;
    }
    return lap_some(least);
}

static lap_optional clock_step(const lap_timing *timing) {
    double least = INFINITY, last = timing->now(timing->context);
    for (int i = 0; i < CLOCK_READS; i++) {
        double next = timing->now(timing->context);
        if (next > last && next - last < least) least = next - last;
        last = next;
    }
    return lap_some(least);
}

static lap_optional median(double *values, size_t n) {
    lap_sort(values, n);
    return lap_quantile(values, n, 0.5);
}

lap_status lap_floor_measure(const lap_empty *empty, const lap_timing *timing, lap_floor *out,
                             lap_error *err) {
    double device[LENGTHS][EACH], wall[EACH], submit[EACH];
    memset(out, 0, sizeof *out);
    span s;
    for (int i = 0; i < WARMUP; i++)
        LAP_TRY(one(empty, timing, 1, &s, err));
    for (int i = 0; i < SPANS; i++) {
        int length = i % LENGTHS, at = i / LENGTHS;
        LAP_TRY(one(empty, timing, length + 1, &s, err));
        out->bad_stamps += !s.stamped;
        device[length][at] = s.device_s;
        if (length > 0) continue;
        wall[at] = s.wall_s;
        submit[at] = s.submit_s;
    }
    out->has = true;
    out->claimed_s = timing->resolution_s > 0 ? lap_some(timing->resolution_s) : lap_none();
    /* A few bad stamps spoil the floor as they spoil a row. */
    for (int i = 0; i < LENGTHS && out->bad_stamps == 0; i++) {
        lap_optional step = smallest_step(device[i], EACH);
        if (step.has && (!out->measured_s.has || step.value < out->measured_s.value))
            out->measured_s = step;
    }
    if (out->bad_stamps == 0) out->device_s = median(device[0], EACH);
    out->host_s = clock_step(timing);
    out->wall_s = median(wall, EACH);
    out->submit_s = median(submit, EACH);
    return LAP_OK;
}

double lap_floor_resolution(const lap_floor *floor) {
    return floor->measured_s.has ? floor->measured_s.value : floor->claimed_s.value;
}

/* ---- on a queue ----------------------------------------------------------------------------- */

typedef struct nop {
    lap_queue *queue;
    lap_kernel *kernel;
} nop;

static lap_status launch(void *context, lap_error *err) {
    const nop *n = context;
    lap_launch launch_one = {.kernel = n->kernel, .groups = {1, 1, 1}, .local = {1, 1, 1}};
    return lap_enqueue(n->queue, &launch_one, err);
}

lap_status lap_floor_of_queue(lap_queue *queue, const lap_timing *timing, lap_floor *out,
                              lap_error *err) {
    memset(out, 0, sizeof *out);
    lap_device *device = lap_queue_device(queue);
    const char *language = lap_device_get_info(device)->language;
    lap_build build = {.stem = "nop", .entry = "nop", .source = lap_kernel_source(language, "nop")};
    if (!build.source)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "no empty kernel in the language \"%s\"", language);
    nop n = {.queue = queue};
    LAP_TRY(lap_kernel_build(device, &build, &n.kernel, err));
    lap_empty empty = {launch, &n};
    lap_status status = lap_floor_measure(&empty, timing, out, err);
    lap_kernel_free(n.kernel);
    return status;
}
