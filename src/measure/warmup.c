/* What comes before the first sample: burn-in, warm-up (a fixed amount, or until the spans are
 * steady), and finding how many passes the timer needs. Keeps no sample. */
#include "measure/protocol_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- steadiness ----------------------------------------------------------------------------- */

static const double CLOSE = 0.01, TREND = 0.6, SMALL_TREND = 0.0025, SPREAD_PART = 0.5;

/* First index of the window that ends before `end`. SIZE_MAX: too few runs for a window. */
static size_t window_start(const double *ends, size_t end) {
    if (end < LAP_STEADY_RUNS + 1) return SIZE_MAX; /* the first run has no beginning */
    size_t start = end - LAP_STEADY_RUNS;
    while (start > 0 && ends[end - 1] - ends[start - 1] < LAP_STEADY_S)
        start--;
    return start > 0 ? start : SIZE_MAX;
}

/* Median of x, and 1.4826 times its MAD. work has room for n. */
static double middle(const double *x, size_t n, double *work, double *spread) {
    memcpy(work, x, n * sizeof *work);
    lap_sort(work, n);
    double median = lap_quantile(work, n, 0.5).value;
    for (size_t i = 0; i < n; i++)
        work[i] = fabs(x[i] - median);
    lap_sort(work, n);
    *spread = 1.4826 * lap_quantile(work, n, 0.5).value;
    return median;
}

static bool compare_windows(const double *spans, size_t first, size_t second, size_t n,
                            double *work, double *typical) {
    double spread_a, spread_b, rho;
    double a = middle(spans + first, second - first, work, &spread_a);
    double b = middle(spans + second, n - second, work, &spread_b);
    double apart = fabs(b - a), spread = (spread_a + spread_b) / 2;
    *typical = b;
    bool close = apart <= CLOSE * b || apart <= SPREAD_PART * spread;
    if (!close || !lap_rank_correlation(spans + first, n - first, &rho)) return false;
    return fabs(rho) <= TREND || apart <= SMALL_TREND * b;
}

bool lap_steady(const double *spans, const double *ends, size_t n, double *typical) {
    *typical = 0;
    size_t second = window_start(ends, n);
    size_t first = second == SIZE_MAX ? SIZE_MAX : window_start(ends, second);
    if (first == SIZE_MAX) return false;
    double *work = malloc(n * sizeof *work);
    bool steady = work && compare_windows(spans, first, second, n, work, typical);
    free(work);
    return steady;
}

/* ---- warm-up -------------------------------------------------------------------------------- */

static double since(const lap_latency_run *run, double start) {
    return run->timing.now(run->timing.context) - start;
}

static lap_status check_stop(const lap_latency_run *run, const char *what, size_t done,
                             lap_error *err) {
    if (!lap_latency_stopped(&run->options)) return LAP_OK;
    return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted in the %s, after %zu runs", what, done);
}

static lap_status burn_in(lap_latency_run *run, lap_error *err) {
    double start = run->timing.now(run->timing.context), spent = 0;
    for (size_t n = 0; spent < run->options.burn_in_seconds; n++) {
        double wall_s, now_spent;
        LAP_TRY(check_stop(run, "burn-in", n, err));
        LAP_TRY(lap_measure_once(&run->workload, &run->timing, &wall_s, err));
        now_spent = since(run, start);
        if (!(now_spent > spent)) break; /* a clock that stands still */
        spent = now_spent;
        lap_latency_tell(&run->options, "burn-in", n + 1, 0);
    }
    run->out->burn_in_s = spent;
    return LAP_OK;
}

static lap_status fixed_warm_up(lap_latency_run *run, lap_error *err) {
    const lap_latency_options *o = &run->options;
    lap_latency *out = run->out;
    double start = run->timing.now(run->timing.context), spent = 0;
    while (out->warmup_n < o->warmup_count || spent < o->warmup_seconds) {
        LAP_TRY(check_stop(run, "warm-up", out->warmup_n, err));
        if (o->max_seconds > 0 && out->warmup_n > 0 && spent >= o->max_seconds) break;
        double wall_s;
        LAP_TRY(lap_measure_once(&run->workload, &run->timing, &wall_s, err));
        out->warmup_n++;
        double now_spent = since(run, start);
        /* A clock that stands still must not make the warm-up endless. */
        if (!(now_spent > spent) && out->warmup_n >= o->warmup_count) break;
        spent = now_spent;
        lap_latency_tell(o, "warm-up", out->warmup_n, o->warmup_seconds > 0 ? 0 : o->warmup_count);
    }
    out->warmup_s = spent;
    return LAP_OK;
}

typedef struct history {
    double *spans, *ends;
    size_t capacity;
    bool wall; /* a device stamp was bad: wall spans from here on would mix two kinds */
} history;

static bool reserve(history *h, size_t n) {
    if (n < h->capacity) return true;
    size_t more = h->capacity ? h->capacity * 2 : 256;
    double *spans = realloc(h->spans, more * sizeof *spans);
    if (spans) h->spans = spans;
    double *ends = spans ? realloc(h->ends, more * sizeof *ends) : NULL;
    if (!ends) return false;
    h->ends = ends;
    h->capacity = more;
    return true;
}

static lap_status warm_up_once(lap_latency_run *run, history *h, double start, lap_error *err) {
    lap_latency *out = run->out;
    lap_sample sample;
    lap_span_fault fault;
    if (!reserve(h, out->warmup_n))
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for %zu warm-up spans", out->warmup_n);
    LAP_TRY(lap_latency_sample(run, 1, &sample, &fault, err));
    if (fault != LAP_SPAN_GOOD) h->wall = true;
    out->untimed_bad += fault != LAP_SPAN_GOOD;
    /* With bad stamps both kinds may be in one history: then nothing is steady for two windows. */
    h->spans[out->warmup_n] = h->wall ? sample.wall_s : sample.device_s.value;
    out->warmup_s = h->ends[out->warmup_n] = since(run, start);
    out->warmup_n++;
    return LAP_OK;
}

static lap_status until_steady(lap_latency_run *run, history *h, lap_error *err) {
    const lap_latency_options *o = &run->options;
    lap_latency *out = run->out;
    double start = run->timing.now(run->timing.context), typical = 0;
    size_t next_check = 2 * LAP_STEADY_RUNS;
    while (!out->warmup_steady && out->warmup_n < LAP_WARMUP_MOST) {
        LAP_TRY(check_stop(run, "warm-up", out->warmup_n, err));
        if (o->max_seconds > 0 && out->warmup_n > 0 && out->warmup_s >= o->max_seconds) break;
        LAP_TRY(warm_up_once(run, h, start, err));
        lap_latency_tell(o, "warm-up", out->warmup_n, 0);
        if (out->warmup_n < next_check) continue;
        next_check = out->warmup_n + out->warmup_n / 10 + 1;
        out->warmup_steady = lap_steady(h->spans, h->ends, out->warmup_n, &typical);
    }
    if (out->warmup_n > 0 && typical > 0)
        out->warmup_first_ratio = lap_ratio(lap_some(h->spans[0]), lap_some(typical));
    return LAP_OK;
}

lap_status lap_latency_warm_up(lap_latency_run *run, lap_error *err) {
    LAP_TRY(burn_in(run, err));
    if (!run->options.warmup_auto) return fixed_warm_up(run, err);
    run->out->warmup_auto = true;
    history h = {0};
    lap_status status = until_steady(run, &h, err);
    free(h.spans);
    free(h.ends);
    return status;
}

/* ---- passes --------------------------------------------------------------------------------- */

enum { TICKS_PER_SAMPLE = 100, TICKS_PER_QUIET_SAMPLE = 1000 };
enum { CHECK_SAMPLES = 3, CHECKS_MOST = 4 };

/* How many of the timer's steps a sample should have, and why; 0: a single pass will do. */
static double steps_needed(double median_s, double spread_s, double resolution_s,
                           const char **why) {
    if (!(resolution_s > 0) || !(median_s > 0)) return 0;
    bool brief = median_s < TICKS_PER_SAMPLE * resolution_s;
    bool hidden = spread_s < resolution_s && median_s < TICKS_PER_QUIET_SAMPLE * resolution_s;
    *why = brief ? "is shorter than 100 x" : "varies by less than";
    return hidden ? TICKS_PER_QUIET_SAMPLE : brief ? TICKS_PER_SAMPLE : 0;
}

static size_t passes_of(double wanted) {
    return wanted < LAP_PASSES_MOST ? (size_t)ceil(wanted - 1e-6) : LAP_PASSES_MOST;
}

size_t lap_passes_needed(double median_s, double spread_s, double resolution_s, char *reason,
                         size_t size) {
    const char *why;
    if (size > 0) reason[0] = '\0';
    double steps = steps_needed(median_s, spread_s, resolution_s, &why);
    if (!(steps > 0)) return 1;
    snprintf(reason, size, "a pass of %.3g us %s the timer's resolution of %.3g us", median_s * 1e6,
             why, resolution_s * 1e6);
    return passes_of(steps * resolution_s / median_s);
}

/* Device spans of a few samples; *good: all had one. */
static lap_status pilot(lap_latency_run *run, size_t passes, double *spans, size_t n, bool *good,
                        lap_error *err) {
    *good = true;
    for (size_t i = 0; i < n && *good; i++) {
        lap_sample sample;
        lap_span_fault fault;
        LAP_TRY(check_stop(run, "calibration", i, err));
        LAP_TRY(lap_latency_sample(run, passes, &sample, &fault, err));
        *good = fault == LAP_SPAN_GOOD; /* else wall spans are likely to be used */
        run->out->untimed_bad += !*good;
        spans[i] = sample.device_s.value;
    }
    return LAP_OK;
}

/* Passes in a row share the gap before the first, so that many take less than as many times one. */
static lap_status grow_passes(lap_latency_run *run, double wanted_s, lap_error *err) {
    lap_latency *out = run->out;
    double spans[CHECK_SAMPLES], work[CHECK_SAMPLES], spread;
    for (int i = 0; i < CHECKS_MOST && out->passes < LAP_PASSES_MOST; i++) {
        bool good;
        LAP_TRY(pilot(run, out->passes, spans, CHECK_SAMPLES, &good, err));
        double seen = middle(spans, CHECK_SAMPLES, work, &spread) * (double)out->passes;
        if (!good || !(seen > 0) || seen >= wanted_s * (1 - 1e-6)) break;
        out->passes = passes_of((double)out->passes * 1.05 * wanted_s / seen);
    }
    return LAP_OK;
}

lap_status lap_latency_calibrate(lap_latency_run *run, double resolution_s, lap_error *err) {
    double spans[LAP_PILOT_SAMPLES], work[LAP_PILOT_SAMPLES], spread;
    lap_latency *out = run->out;
    const char *why;
    bool good;
    out->passes = 1;
    if (!(resolution_s > 0)) return LAP_OK;
    LAP_TRY(pilot(run, 1, spans, LAP_PILOT_SAMPLES, &good, err));
    if (!good) return LAP_OK;
    double median = middle(spans, LAP_PILOT_SAMPLES, work, &spread);
    out->passes = lap_passes_needed(median, spread, resolution_s, out->passes_reason,
                                    sizeof out->passes_reason);
    double steps = steps_needed(median, spread, resolution_s, &why);
    return out->passes > 1 ? grow_passes(run, steps * resolution_s, err) : LAP_OK;
}
