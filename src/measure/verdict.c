/* The verdict of a row (see verdict.h, docs/METHOD.md). Reads statistics; measures nothing. */
#include "measure/verdict.h"
#include "measure/result.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Each limit is named in docs/METHOD.md. */
enum { FEWEST = 10, TICKS = 100 };
static const double THROTTLED_SHARE = 0.05;
static const double DRIFT_P = 0.001, DRIFT_CHANGE = 0.01;
static const double MODES_SHARE = 0.85, MODES_APART = 0.02;
static const double WIDE_INTERVAL = 0.01, MANY_OUTLIERS = 0.10, WIDE_SPREAD = 0.10;

const char *lap_verdict_name(lap_verdict verdict) {
    switch (verdict) {
    case LAP_VERDICT_NONE:
        return "";
    case LAP_VERDICT_STABLE:
        return "stable";
    case LAP_VERDICT_NOISY:
        return "noisy";
    case LAP_VERDICT_DRIFTING:
        return "drifting";
    case LAP_VERDICT_THROTTLED:
        return "throttled";
    case LAP_VERDICT_BIMODAL:
        return "bimodal";
    case LAP_VERDICT_TOO_SHORT:
        return "too_short";
    }
    return "";
}

static void __attribute__((format(printf, 4, 5)))
give(lap_row *row, lap_verdict verdict, const char *advice, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(row->verdict_reason, sizeof row->verdict_reason, format, args);
    va_end(args);
    row->verdict = verdict;
    snprintf(row->verdict_advice, sizeof row->verdict_advice, "%s", advice);
}

static double resolution(const lap_row *row) {
    if (row->latency.clock == LAP_CLOCK_WALL) return row->floor.host_s.value;
    return lap_floor_resolution(&row->floor);
}

static bool too_short(lap_row *row) {
    const lap_latency *l = &row->latency;
    if (l->stats.n < FEWEST) {
        give(row, LAP_VERDICT_TOO_SHORT, "raise [latency] repetitions (and max_seconds)",
             "%zu samples; fewer than %d show neither drift nor spread", l->stats.n, FEWEST);
        return true;
    }
    double sample = l->stats.p50.value * (double)l->passes, tick = resolution(row);
    if (sample >= TICKS * tick && l->stats.p50.value > 0) return false;
    give(row, LAP_VERDICT_TOO_SHORT, "use a larger batch, or more [latency] passes a sample",
         "a sample of %.3g us is less than %d x the timer's resolution of %.3g us", sample * 1e6,
         TICKS, tick * 1e6);
    return true;
}

static bool throttled(lap_row *row) {
    const lap_telemetry_summary *t = &row->telemetry;
    if (!t->throttled_share.has || t->throttled_share.value < THROTTLED_SHARE) return false;
    give(row, LAP_VERDICT_THROTTLED,
         "let the device cool, improve cooling, or lock its clocks below the limit; else quote the "
         "number as one under throttling",
         "clocks were held back in %.0f %% of the telemetry samples%s%s",
         t->throttled_share.value * 100, t->reasons[0] ? ": " : "", t->reasons);
    return true;
}

static bool drifting(lap_row *row) {
    const lap_drift *d = &row->latency.stats.drift;
    if (!d->has || !(d->p < DRIFT_P) || !(fabs(d->relative) >= DRIFT_CHANGE)) return false;
    give(row, LAP_VERDICT_DRIFTING,
         d->relative < 0 ? "warm up longer: [latency] warmup = auto or burn_in"
                         : "use burn_in so that heat settles first, and check the cooling",
         "the last third is %.1f %% %s than the first (rank correlation with time %.2f, p = %.1g)",
         fabs(d->relative) * 100, d->relative < 0 ? "faster" : "slower", d->rho, d->p);
    return true;
}

static bool bimodal(lap_row *row) {
    const lap_stats *s = &row->latency.stats;
    const lap_modes *m = &s->modes;
    double apart = m->high - m->low;
    if (!m->has || !(m->share >= MODES_SHARE)) return false;
    /* Two neighbouring ticks of a coarse timer are not two states of the device. */
    double tick = resolution(row) / (double)row->latency.passes;
    if (!(apart >= MODES_APART * s->p50.value) || !(apart > 4 * tick)) return false;
    give(row, LAP_VERDICT_BIMODAL,
         "mean and median stand for neither group: look for a second clock state, another process "
         "or NUMA placement, and read the samples",
         "two groups: %.0f %% near %.4g ms, %.0f %% near %.4g ms", (1 - m->upper_part) * 100,
         m->low * 1e3, m->upper_part * 100, m->high * 1e3);
    return true;
}

static bool noisy(lap_row *row) {
    const lap_stats *s = &row->latency.stats;
    static const char advice[] = "more repetitions or stop = relative_noise; close other programs, "
                                 "fix the clocks";
    double median = s->p50.value;
    double half = s->p50_ci.has ? (s->p50_ci.high - s->p50_ci.low) / 2 : 0;
    if (half > median) {
        /* A share of the median above one says less than the ends. */
        give(row, LAP_VERDICT_NOISY, advice,
             "the median may be anything from %.4g to %.4g ms (95 %% interval)",
             s->p50_ci.low * 1e3, s->p50_ci.high * 1e3);
        return true;
    }
    if (half > WIDE_INTERVAL * median) {
        give(row, LAP_VERDICT_NOISY, advice,
             "the median is known to +-%.1f %% only (95 %% interval)", half / median * 100);
        return true;
    }
    double outliers = (double)(s->outliers_low + s->outliers_high) / (double)s->n;
    if (s->has_outliers && s->n >= LAP_MIN_N_MODES && outliers > MANY_OUTLIERS) {
        give(row, LAP_VERDICT_NOISY, advice, "%.0f %% of the samples are outliers", outliers * 100);
        return true;
    }
    if (s->std.has && s->std.value > WIDE_SPREAD * s->mean.value) {
        give(row, LAP_VERDICT_NOISY, advice, "the standard deviation is %.0f %% of the mean",
             s->std.value / s->mean.value * 100);
        return true;
    }
    return false;
}

void lap_verdict_decide(lap_row *row) {
    row->verdict = LAP_VERDICT_NONE;
    row->verdict_reason[0] = row->verdict_advice[0] = '\0';
    if (!row->latency.has) return;
    if (too_short(row) || throttled(row) || drifting(row) || bimodal(row) || noisy(row)) return;
    const lap_stats *s = &row->latency.stats;
    double half = s->p50_ci.has ? (s->p50_ci.high - s->p50_ci.low) / 2 : 0;
    give(row, LAP_VERDICT_STABLE, "", "the median is known to +-%.2g %% (95 %% interval)",
         half / s->p50.value * 100);
}
