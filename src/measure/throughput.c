/* The batch search and the final measurement (see throughput.h). Knows no device: batches are tried
 * and timed by callbacks. */
#include "measure/throughput.h"
#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"doubling", "linear", "binary", "sweep"};

const char *lap_search_name(lap_search search) {
    return names[search];
}

bool lap_search_parse(const char *name, lap_search *out) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (lap_search)i;
        return true;
    }
    return false;
}

/* ---- one batch ------------------------------------------------------------------------------ */

typedef struct search_state {
    const lap_throughput_options *options;
    lap_throughput *out;
    double (*now)(void);
    double started;
    double built_s;           /* building kernels, which the batch size does not make slow */
    lap_status first_failure; /* of the smallest batch that had no value */
    lap_error first_error, last_error;
} search_state;

/* What a probe means for the search. */
typedef enum verdict {
    FITS,    /* ran, with or without a rate */
    TOO_BIG, /* memory or limits: smaller ones may still work */
    STOP     /* the search cannot go on */
} verdict;

static verdict verdict_of(lap_status status) {
    switch (status) {
    case LAP_OK:
    case LAP_E_TIMER:
        return FITS;
    case LAP_E_OOM:
    case LAP_E_NOMEM:
    case LAP_E_LAUNCH:
    case LAP_E_UNSUPPORTED:
        return TOO_BIG;
    default:
        return STOP;
    }
}

static bool append(lap_throughput *out, const lap_curve_point *point) {
    if (out->curve_count == out->curve_capacity) {
        size_t more = out->curve_capacity ? out->curve_capacity * 2 : 16;
        lap_curve_point *curve = realloc(out->curve, more * sizeof *curve);
        if (!curve) return false;
        out->curve = curve;
        out->curve_capacity = more;
    }
    out->curve[out->curve_count++] = *point;
    return true;
}

static lap_status try_one(search_state *s, uint64_t batch) {
    const lap_throughput_options *o = s->options;
    lap_trial trial = {0};
    lap_error_clear(&s->last_error);
    lap_status status = o->try_batch(o->context, batch, &trial, &s->last_error);
    double rate = trial.images_per_s;
    if (trial.build_s > 0 && isfinite(trial.build_s)) s->built_s += trial.build_s;
    if (status == LAP_OK && (!(rate > 0) || !isfinite(rate)))
        status = LAP_FAIL(&s->last_error, LAP_E_TIMER, "batch %llu: the clock shows no time",
                          (unsigned long long)batch);
    if (status == LAP_E_INTERRUPTED) return status; /* says nothing about this batch */
    lap_curve_point point = {.batch = batch, .status = status};
    if (status == LAP_OK) {
        point.images_per_s = lap_some(rate);
        point.batch_s = lap_some(trial.batch_s > 0 ? trial.batch_s : (double)batch / rate);
        point.over_limit = o->latency_limit_s > 0 && point.batch_s.value > o->latency_limit_s;
        if (trial.timed_s > 0 && isfinite(trial.timed_s)) s->out->search_s += trial.timed_s;
    } else if (lap_error_text(&s->last_error, point.reason, sizeof point.reason) == 0) {
        snprintf(point.reason, sizeof point.reason, "%s", lap_status_name(status));
    }
    if (!append(s->out, &point))
        return LAP_FAIL(&s->last_error, LAP_E_INTERNAL, "no memory for the curve of batch sizes");
    if (status != LAP_OK && s->first_failure == LAP_OK) {
        s->first_failure = status;
        s->first_error = s->last_error;
    }
    if (o->progress) o->progress(o->context, "batch search", (size_t)batch, (size_t)o->max_batch);
    return status;
}

/* The newest point: a batch over the latency limit is too big, though it ran. */
static verdict verdict_of_last(const search_state *s, lap_status status) {
    size_t n = s->out->curve_count;
    if (status == LAP_OK && n > 0 && s->out->curve[n - 1].over_limit) return TOO_BIG;
    return verdict_of(status);
}

/* The point with the most images per second within the latency limit; NULL if there is none. */
static lap_curve_point *best_point(lap_throughput *t) {
    lap_curve_point *best = NULL;
    for (size_t i = 0; i < t->curve_count; i++) {
        lap_curve_point *p = &t->curve[i];
        if (p->status != LAP_OK || !p->images_per_s.has || p->over_limit) continue;
        if (!best || p->images_per_s.value > best->images_per_s.value) best = p;
    }
    return best;
}

static bool any_over_limit(const lap_throughput *t) {
    for (size_t i = 0; i < t->curve_count; i++)
        if (t->curve[i].status == LAP_OK && t->curve[i].over_limit) return true;
    return false;
}

/* How long the final measurement will take at a point. */
static double final_seconds(const lap_throughput_options *o, const lap_curve_point *p) {
    double seconds = (double)o->batches * (double)p->batch / p->images_per_s.value;
    return o->max_seconds > 0 && seconds > o->max_seconds ? o->max_seconds : seconds;
}

/* False with LAP_OK where the search has had its time: what the last batch said is not its result.
 */
static bool may_go_on(search_state *s, lap_status *status) {
    *status = LAP_OK;
    const lap_throughput_options *o = s->options;
    char *ended = s->out->ended;
    size_t size = sizeof s->out->ended;
    if (o->interrupted && o->interrupted(o->context)) {
        *status = LAP_FAIL(&s->last_error, LAP_E_INTERRUPTED, "interrupted in the batch search");
        snprintf(ended, size, "interrupted");
        return false;
    }
    double spent = s->now() - s->started - s->built_s;
    if (o->max_seconds > 0 && s->out->curve_count > 0 && spent >= o->max_seconds) {
        snprintf(ended, size, "max_seconds reached");
        return false;
    }
    const lap_curve_point *best = best_point(s->out);
    if (o->search_cost > 0 && best && s->out->search_s > o->search_cost * final_seconds(o, best)) {
        snprintf(ended, size, "search_cost reached: %.3g s, %g times the final measurement",
                 s->out->search_s, o->search_cost);
        return false;
    }
    return true;
}

/* ---- the ways to search --------------------------------------------------------------------- */

static uint64_t next_batch(const lap_throughput_options *o, uint64_t batch) {
    uint64_t room = o->max_batch - batch;
    uint64_t step = batch;
    if (o->search == LAP_SEARCH_LINEAR || batch == 1) step = 1;
    if (o->search == LAP_SEARCH_SWEEP &&
        batch > 1) { /* half way to the next power of two, or to it */
        bool power = (batch & (batch - 1)) == 0;
        uint64_t above = 1;
        while (above <= batch && above < (uint64_t)1 << 62)
            above *= 2;
        step = power ? batch / 2 : above - batch;
    }
    return step < room ? batch + step : o->max_batch; /* cannot wrap; ends on max_batch itself */
}

/* Grow until a batch fails or max_batch is done. *good is the largest that fits, *bad the one that
 * did not (0 if none). */
static lap_status grow_batch(search_state *s, uint64_t *good, uint64_t *bad) {
    const lap_throughput_options *o = s->options;
    uint64_t batch = o->first_batch ? o->first_batch : 1;
    lap_status status = LAP_OK;
    for (;;) {
        if (!may_go_on(s, &status)) return status;
        status = try_one(s, batch);
        verdict v = verdict_of_last(s, status);
        if (v == FITS) *good = batch;
        if (v == TOO_BIG) *bad = batch;
        if (v != FITS) {
            snprintf(s->out->ended, sizeof s->out->ended, "batch %llu: %s",
                     (unsigned long long)batch,
                     status == LAP_OK ? "over latency_limit_ms" : lap_status_name(status));
            return v == STOP ? status : LAP_OK;
        }
        if (batch == o->max_batch) {
            snprintf(s->out->ended, sizeof s->out->ended, "max_batch reached");
            return LAP_OK;
        }
        batch = next_batch(o, batch);
    }
}

/* Halve the gap between what fits and what does not until the largest that fits is known. */
static lap_status bisect(search_state *s, uint64_t good, uint64_t bad) {
    lap_status status = LAP_OK;
    while (bad - good > 1) {
        if (!may_go_on(s, &status)) return status;
        uint64_t middle = good + (bad - good) / 2;
        status = try_one(s, middle);
        verdict v = verdict_of_last(s, status);
        if (v == STOP) {
            snprintf(s->out->ended, sizeof s->out->ended, "batch %llu: %s",
                     (unsigned long long)middle, lap_status_name(status));
            return status;
        }
        if (v == FITS)
            good = middle;
        else
            bad = middle;
    }
    snprintf(s->out->ended, sizeof s->out->ended, "%llu is the largest batch that fits%s",
             (unsigned long long)good,
             s->options->latency_limit_s > 0 ? " and is within latency_limit_ms" : "");
    return LAP_OK;
}

static lap_status check_options(const lap_throughput_options *o, lap_error *err) {
    if (!o->try_batch || !o->measure)
        return LAP_FAIL(err, LAP_E_ARG, "batch search: a callback is missing");
    if (o->max_batch < (o->first_batch ? o->first_batch : 1))
        return LAP_FAIL(err, LAP_E_ARG, "batch search: max_batch %llu is below the first batch",
                        (unsigned long long)o->max_batch);
    if (o->batches == 0) return LAP_FAIL(err, LAP_E_ARG, "throughput: batches is 0");
    return LAP_OK;
}

/* What the curve says besides the best batch. */
static void read_curve(const lap_throughput_options *o, lap_throughput *out) {
    const lap_curve_point *best = best_point(out);
    uint64_t smallest_bad = 0;
    out->best_batch = best ? best->batch : 0;
    for (size_t i = 0; i < out->curve_count; i++) {
        const lap_curve_point *p = &out->curve[i];
        if (p->status != LAP_OK) {
            if (verdict_of(p->status) == TOO_BIG && (!smallest_bad || p->batch < smallest_bad))
                smallest_bad = p->batch;
            continue;
        }
        if (p->batch > out->largest_batch) out->largest_batch = p->batch;
        bool near =
            best && !p->over_limit && p->images_per_s.value >= LAP_KNEE * best->images_per_s.value;
        if (near && (!out->knee_batch || p->batch < out->knee_batch)) out->knee_batch = p->batch;
    }
    out->largest_known = out->largest_batch > 0 && (smallest_bad == out->largest_batch + 1 ||
                                                    out->largest_batch == o->max_batch);
}

lap_status lap_throughput_search(const lap_throughput_options *options, lap_throughput *out,
                                 lap_error *err) {
    memset(out, 0, sizeof *out);
    LAP_TRY(check_options(options, err));
    search_state s = {.options = options, .out = out};
    s.now = options->now ? options->now : lap_clock_now;
    s.started = s.now();
    out->has = true;
    if (options->latency_limit_s > 0) out->latency_limit_s = lap_some(options->latency_limit_s);
    snprintf(out->search, sizeof out->search, "%s", lap_search_name(options->search));

    uint64_t good = 0, bad = 0;
    lap_status status = grow_batch(&s, &good, &bad);
    bool bisects = options->search == LAP_SEARCH_BINARY || options->search == LAP_SEARCH_SWEEP;
    if (status == LAP_OK && bisects && good > 0 && bad > 0) status = bisect(&s, good, bad);
    const lap_curve_point *best = best_point(out);
    read_curve(options, out);
    if (status == LAP_E_INTERRUPTED) snprintf(out->ended, sizeof out->ended, "interrupted");
    if (status == LAP_OK && !best && !any_over_limit(out)) {
        if (err) *err = s.first_error;
        return s.first_failure != LAP_OK
                   ? s.first_failure
                   : LAP_FAIL(err, LAP_E_INTERNAL, "batch search: nothing was tried");
    }
    if (status != LAP_OK && err) *err = s.last_error;
    return status;
}

/* ---- the final measurement ------------------------------------------------------------------ */

static uint64_t batches_in_time(const lap_throughput_options *o, const lap_curve_point *point) {
    if (!(o->max_seconds > 0)) return o->batches;
    double fit = o->max_seconds * point->images_per_s.value / (double)point->batch;
    if (!(fit < (double)o->batches)) return o->batches;
    return fit < 1 ? 1 : (uint64_t)fit;
}

lap_status lap_throughput_measure(const lap_throughput_options *options, lap_throughput *out,
                                  lap_error *err) {
    LAP_TRY(check_options(options, err));
    out->batches_planned = options->batches;
    lap_status status = LAP_E_ARG;
    for (lap_curve_point *point; (point = best_point(out));) {
        uint64_t batches = batches_in_time(options, point);
        double seconds = 0;
        lap_error local = {0};
        status = options->measure(options->context, point->batch, batches, &seconds, &local);
        if (status == LAP_OK && (!(seconds > 0) || !isfinite(seconds)))
            status = LAP_FAIL(&local, LAP_E_TIMER, "throughput of batch %llu: no time measured",
                              (unsigned long long)point->batch);
        if (status == LAP_OK) {
            out->batch = point->batch;
            out->batches = batches;
            out->seconds = lap_some(seconds);
            double images = (double)point->batch * (double)batches;
            out->images_per_s = lap_ratio(lap_some(images), out->seconds);
            return LAP_OK;
        }
        if (err) *err = local;
        if (verdict_of(status) != TOO_BIG) return status;
        /* It worked in the search and does not now (fragmented memory, a neighbour's needs). */
        point->status = status;
        point->images_per_s = lap_none();
        if (lap_error_text(&local, point->reason, sizeof point->reason) == 0)
            snprintf(point->reason, sizeof point->reason, "%s", lap_status_name(status));
    }
    if (status != LAP_E_ARG) return status;
    if (any_over_limit(out)) return LAP_OK; /* the search's answer: there is nothing to measure */
    return LAP_FAIL(err, LAP_E_ARG, "throughput: no batch size of the search worked");
}
