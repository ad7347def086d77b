/* Metrics from run to run (see trend.h). Ratios are those of src/compare. */
#include "history/trend.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const names[LAP_METRICS] = {"latency", "p50", "fps", "throughput"};

const char *lap_metric_name(lap_metric metric) {
    return names[metric];
}

bool lap_metric_parse(const char *name, lap_metric *out) {
    for (int i = 0; i < LAP_METRICS; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (lap_metric)i;
        return true;
    }
    return false;
}

lap_optional lap_metric_of(lap_metric metric, const lap_history_row *row) {
    switch (metric) {
    case LAP_METRIC_LATENCY:
        return row->latency.mean_s;
    case LAP_METRIC_P50:
        return row->latency.p50_s;
    case LAP_METRIC_FPS:
        return lap_ratio(row->batch ? lap_some((double)row->batch) : lap_none(),
                         row->latency.mean_s);
    default:
        return row->images_per_s;
    }
}

/* Where less is better. */
static bool is_time(lap_metric metric) {
    return metric == LAP_METRIC_LATENCY || metric == LAP_METRIC_P50;
}

/* ---- gathering ------------------------------------------------------------------------------ */

typedef struct member {
    size_t trend, row; /* offsets of a text in both */
} member;

#define TEXT(trend_member, row_member)                                                             \
    { offsetof(lap_trend, trend_member), offsetof(lap_history_row, row_member) }

/* Texts that are the same in all rows of a case, */
static const member common[] = {
    TEXT(device, device),   TEXT(backend, backend), TEXT(platform, platform),   TEXT(host, host),
    TEXT(machine, machine), TEXT(network, network), TEXT(precision, precision), TEXT(clock, clock),
    TEXT(weights, weights), TEXT(beside, beside),   TEXT(cache, cache)};
/* and those that tell its device. */
static const member identity[] = {TEXT(selector, selector), TEXT(uuid, uuid), TEXT(pci, pci)};
enum { COMMON = sizeof common / sizeof *common, IDENTITY = sizeof identity / sizeof *identity };

static char **own(lap_trend *t, const member *m) {
    return (char **)(void *)((char *)t + m->trend);
}

static const char *of_row(const lap_history_row *r, const member *m) {
    const char *text = *(const char *const *)(const void *)((const char *)r + m->row);
    return text ? text : "";
}

/* Rows of an older version may lack an identity that later ones have. */
static bool same_device(const lap_trend *t, const lap_history_row *r) {
    const char *uuid = r->uuid ? r->uuid : "", *pci = r->pci ? r->pci : "";
    if (*t->uuid && *uuid) return strcasecmp(t->uuid, uuid) == 0;
    if (*t->pci && *pci) return strcasecmp(t->pci, pci) == 0;
    return strcmp(t->selector, r->selector) == 0;
}

static bool same_case(lap_trend *t, const lap_history_row *r) {
    if (t->height != r->height || t->width != r->width || t->batch != r->batch ||
        t->others != r->others || t->proof != r->proof)
        return false;
    for (int i = 0; i < COMMON; i++)
        if (strcmp(*own(t, &common[i]), of_row(r, &common[i])) != 0) return false;
    return same_device(t, r);
}

static void free_trend(lap_trend *t) {
    for (int i = 0; i < COMMON; i++)
        free(*own(t, &common[i]));
    for (int i = 0; i < IDENTITY; i++)
        free(*own(t, &identity[i]));
    free(t->points);
}

static bool copy_text(lap_trend *t, const lap_history_row *r, const member *m) {
    char *copy = strdup(of_row(r, m));
    if (!copy) return false;
    free(*own(t, m));
    *own(t, m) = copy;
    return true;
}

/* What the case's device is called by now, as far as the row says it. */
static bool learn(lap_trend *t, const lap_history_row *r) {
    for (int i = 0; i < IDENTITY; i++)
        if ((*of_row(r, &identity[i]) || !*own(t, &identity[i])) && !copy_text(t, r, &identity[i]))
            return false;
    return true;
}

static bool begin_trend(lap_trend *t, const lap_history_row *r) {
    *t = (lap_trend){.height = r->height,
                     .width = r->width,
                     .batch = r->batch,
                     .others = r->others,
                     .proof = r->proof};
    bool good = learn(t, r);
    for (int i = 0; good && i < COMMON; i++)
        good = copy_text(t, r, &common[i]);
    if (!good) free_trend(t);
    return good;
}

static lap_trend *find(lap_trends *all, const lap_history_row *r) {
    /* The latest cases first: rows of a run follow each other. */
    for (size_t i = all->count; i-- > 0;)
        if (same_case(&all->trends[i], r)) return &all->trends[i];
    lap_trend *longer = realloc(all->trends, (all->count + 1) * sizeof *longer);
    if (!longer) return NULL;
    all->trends = longer;
    return begin_trend(&longer[all->count], r) ? &longer[all->count++] : NULL;
}

static lap_trend_point *add_point(lap_trend *t) {
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 8;
        lap_trend_point *longer = realloc(t->points, capacity * sizeof *longer);
        if (!longer) return NULL;
        t->points = longer;
        t->capacity = capacity;
    }
    return &t->points[t->count++];
}

lap_status lap_trends_add(lap_trends *trends, lap_metric metric, const lap_history_row *row,
                          lap_error *err) {
    lap_optional value = lap_metric_of(metric, row);
    if (strcmp(row->status, "ok") != 0 || row->proof == LAP_PROOF_FAILED || !value.has ||
        !(value.value > 0))
        return LAP_OK;
    lap_trend *t = find(trends, row);
    if (t && t->count > 0 && strcmp(t->points[t->count - 1].run_id, row->run_id) == 0) {
        t->repeats++; /* a run is not compared with itself */
        return LAP_OK;
    }
    lap_trend_point *p = t && learn(t, row) ? add_point(t) : NULL;
    if (!p) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the trend");
    bool of_mean = metric == LAP_METRIC_LATENCY || metric == LAP_METRIC_FPS;
    *p = (lap_trend_point){.value = value.value,
                           .relative_error = of_mean ? row->latency.relative_error : lap_none(),
                           .n = of_mean ? row->latency.n : 1};
    snprintf(p->started, sizeof p->started, "%s", row->started);
    snprintf(p->run_id, sizeof p->run_id, "%s", row->run_id);
    return LAP_OK;
}

/* ---- judging -------------------------------------------------------------------------------- */

static void finish(lap_trend *t, lap_metric metric, double margin) {
    for (size_t i = 0; i < t->count; i++) {
        double v = t->points[i].value;
        if (i > 0 && (is_time(metric) ? v >= t->best : v <= t->best)) continue;
        t->best = v;
        t->best_at = i;
    }
    if (t->count < 2) return;
    const lap_trend_point *now = &t->points[t->count - 1], *before = now - 1;
    lap_mean a = {now->value, now->relative_error, now->n};
    lap_mean b = {before->value, before->relative_error, before->n};
    t->change = is_time(metric) ? lap_ratio_of_means(&b, &a) : lap_ratio_of_means(&a, &b);
    t->judgement = lap_judge(&t->change, margin);
}

void lap_trends_finish(lap_trends *trends, lap_metric metric, double margin) {
    for (size_t i = 0; i < trends->count; i++)
        finish(&trends->trends[i], metric, margin);
}

void lap_trends_free(lap_trends *trends) {
    for (size_t i = 0; i < trends->count; i++)
        free_trend(&trends->trends[i]);
    free(trends->trends);
    *trends = (lap_trends){0};
}
