/* Latency: percentiles of every row, and how the samples of a row are distributed. */
#include "page/canvas.h"
#include "page/shape.h"
#include "report/format.h"

#include <stdio.h>

static bool has_latency(const lap_detail *d) {
    return d->record->latency.mean_s.has;
}

static void add_percentiles(canvas *c) {
    static const char *const headers[] = {
        "Device and route", "Case",    "#Batch",     "#Samples",    "#Mean ms",
        "#Std ms",          "#Min ms", "#Median ms", "#p90 ms",     "#p95 ms",
        "#p99 ms",          "#Max ms", "Clock",      "Measurement", NULL};
    canvas_table(c, "Percentiles that the number of samples does not support are left out.",
                 headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        const lap_record *r = d->record;
        if (!has_latency(d)) continue;
        lap_text name = {0};
        canvas_case(&name, r, false);
        canvas_row(c);
        canvas_label_cell(c, r);
        canvas_cell(c, lap_text_get(&name));
        canvas_count(c, r->batch);
        canvas_count(c, r->latency.n);
        const lap_optional times[] = {r->latency.mean_s, r->latency.std_s, d->min_s, d->p50_s,
                                      d->p90_s,          d->p95_s,         d->p99_s, d->max_s};
        for (size_t i = 0; i < sizeof times / sizeof *times; i++)
            canvas_ms_by(c, times[i], r->latency.std_s.value);
        canvas_cell(c, r->clock);
        canvas_cell(c, r->trust);
        lap_text_free(&name);
    }
    canvas_table_end(c);
}

static void add_mark(canvas *c, json_t *marks, const char *name, lap_optional value) {
    if (!value.has) return;
    json_t *mark = json_array();
    push(&c->json, mark, json_string(name));
    push(&c->json, mark, json_real(value.value));
    push(&c->json, marks, mark);
}

static json_t *shape_value(canvas *c, const lap_detail *d, const lap_shape *s) {
    json_t *o = json_object(), *counts = json_array(), *curve = json_array(), *marks = json_array();
    for (size_t i = 0; i < s->bins; i++)
        push(&c->json, counts, json_integer((json_int_t)s->counts[i]));
    for (size_t i = 0; i < s->steps; i++) {
        json_t *step = json_array();
        push(&c->json, step, json_real(s->value[i]));
        push(&c->json, step, json_real(s->share[i]));
        push(&c->json, curve, step);
    }
    add_mark(c, marks, "p50", d->stats.p50);
    add_mark(c, marks, "p90", d->stats.p90);
    add_mark(c, marks, "p99", d->stats.p99);
    set(&c->json, o, "low", json_real(s->low));
    set(&c->json, o, "high", json_real(s->high));
    set(&c->json, o, "counts", counts);
    set(&c->json, o, "curve", curve);
    set(&c->json, o, "marks", marks);
    set(&c->json, o, "beyond", json_integer((json_int_t)s->beyond));
    set(&c->json, o, "most", json_real(s->most));
    return o;
}

static void add_bins(canvas *c, const lap_shape *s) {
    static const char *const headers[] = {"#From ms", "#To ms", "#Samples", "#Up to here %", NULL};
    canvas_table(c, NULL, headers, false);
    size_t sum = 0;
    double width = (s->high - s->low) / (double)s->bins;
    for (size_t i = 0; i < s->bins; i++) {
        sum += s->counts[i];
        canvas_row(c);
        canvas_ms_by(c, lap_some(s->low + width * (double)i), width);
        canvas_ms_by(c, lap_some(s->low + width * (double)(i + 1)), width);
        canvas_cellf(c, "%zu", s->counts[i]);
        canvas_percent(c, lap_some((double)sum / (double)s->n));
    }
    if (s->beyond > 0) {
        canvas_row(c);
        canvas_ms_by(c, lap_some(s->high), width);
        canvas_ms_by(c, lap_some(s->most), width);
        canvas_cellf(c, "%zu", s->beyond);
        canvas_percent(c, lap_some(1));
    }
    canvas_table_end(c);
}

static void add_chart(canvas *c, const lap_detail *d) {
    lap_shape shape;
    lap_error ignored = {0};
    if (lap_shape_of(d->samples, d->sample_count, &shape, &ignored) != LAP_OK) {
        c->html.failed = true;
        return;
    }
    lap_text title = {0};
    canvas_label(c, &title, d->record);
    lap_text_add(&title, ": ");
    canvas_case(&title, d->record, true);
    char caption[200] = "Bars: samples. Line: share of the samples up to here.", slowest[40];
    lap_format_ms(slowest, sizeof slowest, shape.most);
    if (shape.beyond > 0)
        snprintf(caption, sizeof caption,
                 "Bars: samples. Line: share of the samples up to here. %zu of %zu samples are "
                 "beyond the right edge, the slowest at %s ms.",
                 shape.beyond, shape.n, slowest);
    canvas_figure(c, "latency", lap_text_get(&title), caption, shape_value(c, d, &shape));
    add_bins(c, &shape);
    canvas_figure_end(c);
    lap_text_free(&title);
}

void section_latency(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    size_t rows = 0, shown = 0, more = 0;
    while ((d = canvas_next(c, &at)))
        rows += has_latency(d);
    if (rows == 0) return;
    canvas_section(c, "latency", "Latency",
                   "One sample is one pass of the network, or the mean of several where one is too "
                   "short for the clock. None is dropped.");
    add_percentiles(c);
    lap_text_add(&c->html, "<div class=\"grid\">\n");
    for (at = (canvas_walk){0}; (d = canvas_next(c, &at));) {
        if (d->sample_count < 2) continue;
        if (shown++ < CANVAS_CHARTS)
            add_chart(c, d);
        else
            more++;
    }
    lap_text_add(&c->html, "</div>\n");
    if (more > 0) {
        char text[120];
        snprintf(text, sizeof text, "%zu more rows have samples; their percentiles are above.",
                 more);
        canvas_paragraph(c, "note", text);
    }
    canvas_section_end(c);
}
