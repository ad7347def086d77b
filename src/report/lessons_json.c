/* The JSON documents of spans and pitfalls (see lessons.h). Renders only. */
#include "report/format.h"
#include "report/json_build.h"
#include "report/lessons.h"

#include <stdio.h>

static json_t *case_head(builder *b, const lap_row *row) {
    json_t *o = json_object();
    set_text(b, o, "status", lap_row_status_name(row->status));
    set_known(b, o, "reason", lap_row_reason(row));
    set_text(b, o, "backend", row->device.backend);
    set_known(b, o, "selector", row->device.selector);
    set(b, o, "device", lap_json_device(b, &row->device));
    return o;
}

/* ---- spans ---------------------------------------------------------------------------------- */

static json_t *runs_value(builder *b, const lap_latency *l) {
    if (!l->has) return json_null();
    json_t *o = json_object(), *samples = json_array();
    set_count(b, o, "warmup", l->warmup_n);
    set_text(b, o, "clock", lap_clock_kind_name(l->clock));
    set_known(b, o, "clock_reason", l->clock_reason);
    set_real(b, o, "submit_mean_s", l->submit.mean);
    set_real(b, o, "wall_mean_s", l->wall.mean);
    set_real(b, o, "device_mean_s", l->device.mean);
    set_real(b, o, "submit_std_s", l->submit.std);
    set_real(b, o, "wall_std_s", l->wall.std);
    set_real(b, o, "device_std_s", l->device.std);
    for (size_t i = 0; i < l->n; i++) {
        json_t *s = json_object();
        set_real(b, s, "submit_s", lap_some(l->samples[i].submit_s));
        set_real(b, s, "wall_s", lap_some(l->samples[i].wall_s));
        set_real(b, s, "device_s", l->samples[i].device_s);
        push(b, samples, s);
    }
    set(b, o, "repeats", samples);
    return o;
}

static json_t *spans_row(builder *b, const lap_spans_row *row) {
    json_t *o = case_head(b, &row->head), *size = json_array(), *check = json_object();
    for (int i = 0; i < 3; i++)
        push(b, size, count_value(row->size[i]));
    set(b, o, "size", size);
    bool checked = row->check.compared > 0;
    set_size(b, check, "compared", row->check.compared);
    for (int op = 0; op < LAP_ELEMENTWISE_OPS; op++) {
        char key[32];
        snprintf(key, sizeof key, "%s_worst_ulp", lap_elementwise_name[op]);
        set_real(b, check, key, checked ? lap_some(row->check.worst_ulp[op]) : lap_none());
        snprintf(key, sizeof key, "%s_bound_ulp", lap_elementwise_name[op]);
        set_real(b, check, key, lap_some(lap_elementwise_bound[op]));
    }
    set(b, o, "verified", check);
    set(b, o, "without_warmup", runs_value(b, &row->cold));
    set(b, o, "with_warmup", runs_value(b, &row->warm));
    return o;
}

lap_status lap_spans_json(const lap_report *report, const lap_spans_row *rows, size_t count,
                          lap_text *out, lap_error *err) {
    builder b = {false};
    json_t *document = lap_json_head(&b, report, "warmlap-spans/1"), *list = json_array();
    for (size_t i = 0; i < count; i++)
        push(&b, list, spans_row(&b, &rows[i]));
    set(&b, document, "rows", list);
    return lap_json_finish(&b, document, out, err);
}

/* ---- pitfalls ------------------------------------------------------------------------------- */

static json_t *histogram_value(builder *b, const lap_histogram *h) {
    if (h->most == 0) return json_null();
    json_t *o = json_object(), *counts = json_array();
    set_real(b, o, "low_s", lap_some(h->low));
    set_real(b, o, "high_s", lap_some(h->high));
    for (int i = 0; i < LAP_HISTOGRAM_BINS; i++)
        push(b, counts, count_value(h->counts[i]));
    set(b, o, "counts", counts);
    return o;
}

static json_t *way_value(builder *b, lap_pitfall_kind kind, const lap_way *w, bool samples) {
    json_t *o = json_object();
    set_text(b, o, "way", lap_way_name(kind));
    set_size(b, o, "n", w->stats.n);
    set_real(b, o, "mean_s", w->stats.mean);
    set_real(b, o, "std_s", w->stats.std);
    set_real(b, o, "min_s", w->stats.min);
    set_real(b, o, "p50_s", w->stats.p50);
    set_real(b, o, "max_s", w->stats.max);
    set_real(b, o, "factor", w->factor);
    set(b, o, "histogram", histogram_value(b, &w->histogram));
    json_t *list = samples && w->has ? json_array() : json_null();
    for (size_t i = 0; samples && w->has && i < w->n; i++)
        push(b, list, real_value(lap_some(w->samples[i])));
    set(b, o, "samples_s", list);
    set_known(b, o, "reason", w->reason);
    return o;
}

static json_t *pitfalls_row(builder *b, const lap_pitfalls_row *row, bool samples) {
    json_t *o = case_head(b, &row->head), *ways = json_array();
    const lap_row *head = &row->head;
    const lap_pitfalls *p = &row->pitfalls;
    set_text(b, o, "network", head->network);
    set_size(b, o, "height", head->height > 0 ? (uint64_t)head->height : 0);
    set_size(b, o, "width", head->width > 0 ? (uint64_t)head->width : 0);
    set_size(b, o, "batch", head->batch);
    set_text(b, o, "precision", head->precision);
    set(b, o, "verified", head->verified.has ? json_boolean(head->verified.passed) : json_null());
    bool has = p->ways[LAP_WAY_RIGHT].has;
    set_text(b, o, "clock", has ? lap_clock_kind_name(p->clock) : NULL);
    set_known(b, o, "clock_reason", p->clock_reason);
    for (int i = 0; has && i < LAP_WAYS; i++)
        push(b, ways, way_value(b, (lap_pitfall_kind)i, &p->ways[i], samples));
    set(b, o, "ways", ways);
    return o;
}

lap_status lap_pitfalls_json(const lap_report *report, const lap_pitfalls_row *rows, size_t count,
                             lap_text *out, lap_error *err) {
    builder b = {false};
    json_t *document = lap_json_head(&b, report, "warmlap-pitfalls/1"), *list = json_array();
    for (size_t i = 0; i < count; i++)
        push(&b, list, pitfalls_row(&b, &rows[i], report->samples));
    set(&b, document, "rows", list);
    return lap_json_finish(&b, document, out, err);
}
