/* The three spans of one measurement: from documents of `warmlap spans`, and of every timed row. */
#include "page/canvas.h"

#include <string.h>

static const char *const names[LAP_SPANS] = {"submission", "wall", "device"};

/* ---- documents of spans --------------------------------------------------------------------- */

static json_t *side_value(canvas *c, const lap_spans_side *side) {
    json_t *o = json_object();
    for (int k = 0; k < LAP_SPANS; k++) {
        json_t *list = json_array();
        for (size_t i = 0; i < side->count; i++)
            push(&c->json, list, real_value(side->repeats[i][k]));
        set(&c->json, o, names[k], list);
    }
    return o;
}

static void add_side(canvas *c, const char *name, const lap_spans_side *side) {
    for (size_t i = 0; i < side->count; i++) {
        canvas_row(c);
        canvas_cell(c, name);
        canvas_count(c, i + 1);
        for (int k = 0; k < LAP_SPANS; k++)
            canvas_us(c, side->repeats[i][k]);
    }
    canvas_row(c);
    canvas_cell(c, name);
    canvas_cellf(c, "mean");
    for (int k = 0; k < LAP_SPANS; k++)
        canvas_us(c, side->mean_s[k]);
}

static void add_case(canvas *c, const lap_spans_case *row) {
    static const char *const headers[] = {"Warm-up",  "#Repeat",    "#Submission us",
                                          "#Wall us", "#Device us", NULL};
    lap_text title = {0};
    lap_text_addf(&title, "%s %s: mul, add, sin, cos of %llux%llux%llu", row->device, row->selector,
                  (unsigned long long)row->size[0], (unsigned long long)row->size[1],
                  (unsigned long long)row->size[2]);
    if (strcmp(row->status, "ok") != 0) {
        canvas_heading(c, lap_text_get(&title));
        canvas_paragraph(c, "note", row->reason[0] ? row->reason : row->status);
        lap_text_free(&title);
        return;
    }
    json_t *data = json_object();
    set(&c->json, data, "cold", side_value(c, &row->cold));
    set(&c->json, data, "warm", side_value(c, &row->warm));
    canvas_figure(c, "spans", lap_text_get(&title),
                  "Each repeat's submission (the call that enqueues returns), wall (until the host "
                  "knows it is done) and device (between two events) span; dashed without warm-up.",
                  data);
    canvas_table(c, NULL, headers, false);
    add_side(c, "without", &row->cold);
    add_side(c, "with", &row->warm);
    canvas_table_end(c);
    canvas_figure_end(c);
    lap_text_free(&title);
}

/* ---- timed rows ----------------------------------------------------------------------------- */

static bool has_spans(const lap_detail *d) {
    return d->wall_s.has;
}

static void add_parts_table(canvas *c) {
    static const char *const headers[] = {"Device and route",
                                          "Case",
                                          "#Batch",
                                          "#Submission us",
                                          "#Wall us",
                                          "#Device us",
                                          "#Empty kernel us",
                                          "Clock of the row",
                                          NULL};
    canvas_table(c, NULL, headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        if (!has_spans(d)) continue;
        lap_text name = {0};
        canvas_case(&name, d->record, false);
        canvas_row(c);
        canvas_label_cell(c, d->record);
        canvas_cell(c, lap_text_get(&name));
        canvas_count(c, d->record->batch);
        canvas_us(c, d->submit_s);
        canvas_us(c, d->wall_s);
        canvas_us(c, d->device_s);
        canvas_us(c, d->record->floor_s);
        canvas_cell(c, d->clock_reason[0] ? d->clock_reason : d->record->clock);
        lap_text_free(&name);
    }
    canvas_table_end(c);
}

static void add_parts(canvas *c) {
    json_t *data = json_object(), *categories = json_array();
    json_t *lists[LAP_SPANS] = {json_array(), json_array(), json_array()};
    canvas_walk at = {0};
    const lap_detail *d;
    size_t shown = 0;
    while ((d = canvas_next(c, &at))) {
        if (!has_spans(d) || shown++ >= 3 * CANVAS_CHARTS) continue;
        lap_text label = {0};
        canvas_label(c, &label, d->record);
        lap_text_addf(&label, ", %s batch %llu", d->record->precision,
                      (unsigned long long)d->record->batch);
        push(&c->json, categories, text_value(lap_text_get(&label)));
        push(&c->json, lists[LAP_SPAN_SUBMIT], real_value(d->submit_s));
        push(&c->json, lists[LAP_SPAN_WALL], real_value(d->wall_s));
        push(&c->json, lists[LAP_SPAN_DEVICE], real_value(d->device_s));
        lap_text_free(&label);
    }
    set(&c->json, data, "categories", categories);
    for (int k = 0; k < LAP_SPANS; k++)
        set(&c->json, data, names[k], lists[k]);
    canvas_figure(c, "parts", "The three spans of every timed row",
                  "Medians, on a logarithmic scale. A submission span is no time of the work.",
                  data);
    add_parts_table(c);
    canvas_figure_end(c);
}

void section_spans(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    bool rows = false, any = false;
    while (!rows && (d = canvas_next(c, &at)))
        rows = has_spans(d);
    for (size_t i = 0; i < c->input->spans_count; i++)
        any = any || c->input->spans[i]->row_count > 0;
    if (!rows && !any) return;
    canvas_section(c, "spans", "Three spans",
                   "One measurement, three clocks' worth of truth: what the host spent on "
                   "submission, until it knew of the end, and what the device spent.");
    for (size_t i = 0; i < c->input->spans_count; i++)
        for (size_t k = 0; k < c->input->spans[i]->row_count; k++)
            add_case(c, &c->input->spans[i]->rows[k]);
    if (rows) add_parts(c);
    canvas_section_end(c);
}
