/* Layers: the time of each by route, and where each stands under the measured roof. */
#include "page/canvas.h"

#include <string.h>

static bool has_layers(const lap_detail *d) {
    return d->layer_count > 0;
}

/* ---- bars by route -------------------------------------------------------------------------- */

/* The index of name among texts, which it joins if it is new. */
static size_t index_of(canvas *c, json_t *names, const char *name) {
    size_t i;
    json_t *value;
    json_array_foreach(names, i, value) if (strcmp(json_string_value(value), name) == 0) return i;
    push(&c->json, names, json_string(name));
    return json_array_size(names) - 1;
}

static json_t *times_value(canvas *c, const lap_detail *d, json_t *names) {
    json_t *o = json_object(), *values = json_array();
    lap_text label = {0};
    canvas_label(c, &label, d->record);
    set_text(&c->json, o, "label", lap_text_get(&label));
    for (size_t i = 0; i < d->layer_count; i++) {
        const lap_layer_detail *l = &d->layers[i];
        json_t *bar = json_array();
        push(&c->json, bar, json_integer((json_int_t)index_of(c, names, l->name)));
        push(&c->json, bar, real_value(l->device_s));
        push(&c->json, bar, text_value(l->kernel));
        push(&c->json, values, bar);
    }
    set(&c->json, o, "values", values);
    if (label.failed) c->html.failed = true;
    lap_text_free(&label);
    return o;
}

static void add_table(canvas *c, const lap_record *head) {
    static const char *const headers[] = {"Device and route", "Layer",    "Kind",    "Kernel",
                                          "#Time us",         "#FLOP",    "#FLOP/s", "#FLOP/byte",
                                          "#Roof %",          "Bound by", NULL};
    canvas_table(c, NULL, headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        if (!has_layers(d) || !canvas_same_case(d->record, head, true)) continue;
        for (size_t i = 0; i < d->layer_count; i++) {
            const lap_layer_detail *l = &d->layers[i];
            canvas_row(c);
            canvas_label_cell(c, d->record);
            canvas_cell(c, l->name);
            canvas_cell(c, l->kind);
            canvas_cell(c, l->kernel);
            canvas_us(c, l->device_s);
            canvas_si(c, l->flops ? lap_some((double)l->flops * (double)head->batch) : lap_none());
            canvas_si(c, l->flops_per_s);
            canvas_fixed(c, 2, l->intensity);
            canvas_percent(c, l->share);
            canvas_cell(c, l->bound);
        }
    }
    canvas_table_end(c);
}

static void add_bars(canvas *c, const lap_record *head) {
    json_t *data = json_object(), *series = json_array(), *names = json_array();
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at)))
        if (has_layers(d) && canvas_same_case(d->record, head, true) &&
            json_array_size(series) < CANVAS_SERIES)
            push(&c->json, series, times_value(c, d, names));
    set(&c->json, data, "categories", names);
    set(&c->json, data, "series", series);
    lap_text title = {0};
    lap_text_add(&title, "Time of each layer: ");
    canvas_case(&title, head, true);
    canvas_figure(c, "layers", lap_text_get(&title),
                  "Device time of each step, median of the passes that have events between layers. "
                  "Shorter is faster. Eight routes at most; the table has all.",
                  data);
    add_table(c, head);
    canvas_figure_end(c);
    lap_text_free(&title);
}

/* ---- roofline ------------------------------------------------------------------------------- */

static bool has_roof(const lap_detail *d) {
    return has_layers(d) && d->peak_flops_per_s.has &&
           (d->memory_bytes_per_s.has || d->cache_bytes_per_s.has);
}

static json_t *roof_value(canvas *c, const lap_detail *d) {
    json_t *o = json_object(), *points = json_array();
    set_real(&c->json, o, "peak", d->peak_flops_per_s);
    set_real(&c->json, o, "memory", d->memory_bytes_per_s);
    set_real(&c->json, o, "cache", d->cache_bytes_per_s);
    for (size_t i = 0; i < d->layer_count; i++) {
        const lap_layer_detail *l = &d->layers[i];
        if (!l->intensity.has || !l->flops_per_s.has || !(l->intensity.value > 0) ||
            !(l->flops_per_s.value > 0))
            continue;
        json_t *p = json_object();
        set_text(&c->json, p, "name", l->name);
        set_text(&c->json, p, "sort", l->kind);
        set_real(&c->json, p, "x", l->intensity);
        set_real(&c->json, p, "y", l->flops_per_s);
        set_real(&c->json, p, "time", l->device_s);
        set_real(&c->json, p, "share", l->share);
        push(&c->json, points, p);
    }
    set(&c->json, o, "points", points);
    return o;
}

static void add_roof_table(canvas *c, const lap_detail *d) {
    static const char *const headers[] = {"Roof", "#Measured", "Unit", NULL};
    const struct {
        const char *name, *unit;
        lap_optional value;
    } roofs[] = {{"Arithmetic", "FLOP/s", d->peak_flops_per_s},
                 {"Memory", "B/s", d->memory_bytes_per_s},
                 {"Last-level cache", "B/s", d->cache_bytes_per_s}};
    canvas_table(c, "The layers are in the table above; these are the roofs.", headers, false);
    for (size_t i = 0; i < sizeof roofs / sizeof *roofs; i++) {
        canvas_row(c);
        canvas_cell(c, roofs[i].name);
        canvas_si(c, roofs[i].value);
        canvas_cell(c, roofs[i].unit);
    }
    canvas_table_end(c);
}

static void add_roofs(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    size_t shown = 0;
    lap_text_add(&c->html, "<div class=\"grid\">\n");
    while ((d = canvas_next(c, &at))) {
        if (!has_roof(d) || shown++ >= CANVAS_CHARTS) continue;
        lap_text title = {0};
        lap_text_add(&title, "Roofline: ");
        canvas_label(c, &title, d->record);
        lap_text_add(&title, ", ");
        canvas_case(&title, d->record, true);
        canvas_figure(c, "roofline", lap_text_get(&title),
                      "Each point is a layer, its area the layer's share of the time. Lines: "
                      "measured ceilings. FLOPs are those of a direct convolution, so a Winograd "
                      "kernel can be above the roof.",
                      roof_value(c, d));
        add_roof_table(c, d);
        canvas_figure_end(c);
        lap_text_free(&title);
    }
    lap_text_add(&c->html, "</div>\n");
    if (shown > CANVAS_CHARTS)
        canvas_paragraph(c, "note", "Further rows have layers as well; their tables are above.");
}

void section_layers(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    bool any = false;
    while ((d = canvas_next(c, &at))) {
        if (!has_layers(d) || !canvas_is_first(c, d, true, has_layers)) continue;
        if (!any)
            canvas_section(c, "layers", "Layers",
                           "From rows measured with --layers. Layers that one kernel computes "
                           "together are one step.");
        any = true;
        add_bars(c, d->record);
    }
    if (!any) return;
    add_roofs(c);
    canvas_section_end(c);
}
