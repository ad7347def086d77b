/* Reading sensors while a row is timed (see telemetry.h): one thread per row, asleep except for
 * short readings, and paused between timed blocks. */
#include "measure/telemetry.h"
#include "base/clock.h"
#include "measure/sensors.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sum, range and count of one quantity. */
typedef struct tally {
    double sum, least, most;
    size_t n;
} tally;

struct lap_telemetry {
    lap_sensors sensors;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* guards all that follows */
    pthread_cond_t wake;
    bool active, stop;
    tally clock, memory_clock, temperature, power, throttled;
    unsigned reasons;
    size_t samples;
    double block_start, seconds;
    lap_optional block_energy, energy; /* counter at the block's begin; sum over all blocks */
    lap_reading last;
    lap_telemetry_point points[LAP_TELEMETRY_POINTS];
    size_t point_count, stride; /* every stride-th reading is kept */
};

static void add(tally *t, lap_optional value) {
    if (!value.has) return;
    if (t->n == 0 || value.value < t->least) t->least = value.value;
    if (t->n == 0 || value.value > t->most) t->most = value.value;
    t->sum += value.value;
    t->n++;
}

static lap_optional mean(const tally *t) {
    return t->n ? lap_some(t->sum / (double)t->n) : lap_none();
}

/* When there is no room, every second point goes, and from now on half as many come. */
static void keep(lap_telemetry *t, const lap_reading *r) {
    if (t->stride == 0) t->stride = 1;
    if (t->samples % t->stride != 0) return;
    if (t->point_count == LAP_TELEMETRY_POINTS) {
        for (size_t i = 0; 2 * i < t->point_count; i++)
            t->points[i] = t->points[2 * i];
        t->point_count = (t->point_count + 1) / 2;
        t->stride *= 2;
        if (t->samples % t->stride != 0) return;
    }
    t->points[t->point_count++] =
        (lap_telemetry_point){lap_clock_now(), r->clock_mhz, r->power_w, r->temperature_c};
}

/* With the lock held. The first reading of a block: events since the one before it happened while
 * something else ran. */
static void take(lap_telemetry *t, bool first) {
    lap_reading r = {0};
    t->sensors.read(t->sensors.context, &r);
    if (first && t->sensors.since_last) {
        r.throttled = lap_none();
        r.reasons = 0;
    }
    add(&t->clock, r.clock_mhz);
    add(&t->memory_clock, r.memory_clock_mhz);
    add(&t->temperature, r.temperature_c);
    add(&t->power, r.power_w);
    add(&t->throttled, r.throttled);
    t->reasons |= r.reasons;
    keep(t, &r);
    t->samples++;
    t->last = r;
}

static void wait_a_period(lap_telemetry *t) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 1000000000L / LAP_TELEMETRY_HZ;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_cond_timedwait(&t->wake, &t->lock, &until);
}

static void *work(void *context) {
    lap_telemetry *t = context;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        if (!t->active) {
            pthread_cond_wait(&t->wake, &t->lock);
            continue;
        }
        double before = lap_clock_now();
        wait_a_period(t);
        /* Woken early: paused, stopped, or nothing at all. */
        bool full = lap_clock_now() - before >= 0.9 / LAP_TELEMETRY_HZ;
        if (t->active && !t->stop && full) take(t, false);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

static bool find_sensors(const lap_device_info *device, const char *root, lap_sensors *out) {
    return lap_sensors_nvml(device, out) || lap_sensors_hwmon(device, root, out) ||
           lap_sensors_cpu(device, root, out);
}

lap_status lap_telemetry_start(const lap_device_info *device, const char *root, lap_telemetry **out,
                               lap_error *err) {
    *out = NULL;
    lap_sensors sensors = {0};
    if (!find_sensors(device, root, &sensors)) return LAP_OK;
    lap_telemetry *t = calloc(1, sizeof *t);
    if (!t) {
        sensors.close(sensors.context);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for telemetry");
    }
    t->sensors = sensors;
    pthread_mutex_init(&t->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    /* Without the thread there are still the readings around each block. */
    t->has_thread = pthread_create(&t->thread, NULL, work, t) == 0;
    *out = t;
    return LAP_OK;
}

void lap_telemetry_resume(lap_telemetry *t) {
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    if (!t->active) {
        take(t, true);
        t->block_energy = t->last.energy_j;
        t->block_start = lap_clock_now();
        t->active = true;
        pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->lock);
}

void lap_telemetry_pause(lap_telemetry *t) {
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    if (t->active) {
        t->active = false;
        t->seconds += lap_clock_now() - t->block_start;
        take(t, false);
        bool counted = t->last.energy_j.has && t->block_energy.has;
        double used = t->last.energy_j.value - t->block_energy.value;
        /* A counter that wrapped or was not there tells nothing of this block, nor then of their
         * sum. */
        t->energy = counted && used >= 0 && (t->energy.has || t->energy.value == 0)
                        ? lap_some(t->energy.value + used)
                        : (lap_optional){false, -1};
        pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->lock);
}

static void name_reasons(unsigned reasons, char *out, size_t size) {
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{LAP_THROTTLE_THERMAL, "thermal"},
                 {LAP_THROTTLE_POWER_CAP, "power cap"},
                 {LAP_THROTTLE_POWER_BRAKE, "power brake"},
                 {LAP_THROTTLE_HARDWARE, "hardware slowdown"}};
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(reasons & names[i].bit)) continue;
        int n = snprintf(out + used, size - used, "%s%s", used ? ", " : "", names[i].name);
        if (n > 0 && (size_t)n < size - used) used += (size_t)n;
    }
}

static void summarise(const lap_telemetry *t, lap_telemetry_summary *out) {
    out->has = true;
    snprintf(out->source, sizeof out->source, "%s", t->sensors.name);
    out->samples = t->samples;
    out->seconds = t->seconds;
    out->clock_mean_mhz = mean(&t->clock);
    out->clock_min_mhz = t->clock.n ? lap_some(t->clock.least) : lap_none();
    out->clock_max_mhz = t->clock.n ? lap_some(t->clock.most) : lap_none();
    out->memory_clock_mhz = mean(&t->memory_clock);
    out->temperature_c = t->temperature.n ? lap_some(t->temperature.most) : lap_none();
    out->throttled_share = mean(&t->throttled);
    name_reasons(t->reasons, out->reasons, sizeof out->reasons);
    out->persistence = t->last.persistence;
    out->ecc = t->last.ecc;
    out->other_processes = t->last.other_processes;
    memcpy(out->points, t->points, t->point_count * sizeof *out->points);
    out->point_count = t->point_count;
    if (!(t->seconds >= LAP_TELEMETRY_POWER_S)) return;
    bool counted = t->energy.has && t->energy.value > 0;
    out->power_w = counted ? lap_some(t->energy.value / t->seconds) : mean(&t->power);
    if (out->power_w.has) out->energy_j = lap_some(out->power_w.value * t->seconds);
}

void lap_telemetry_stop(lap_telemetry *t, lap_telemetry_summary *out) {
    memset(out, 0, sizeof *out);
    if (!t) return;
    lap_telemetry_pause(t);
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (t->has_thread) pthread_join(t->thread, NULL);
    if (t->samples > 0) summarise(t, out);
    t->sensors.close(t->sensors.context);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
