/* Throughput against batch size, with the knee. */
#include "page/canvas.h"

static bool has_curve(const lap_detail *d) {
    return d->curve_count > 0;
}

static json_t *curve_value(canvas *c, const lap_detail *d) {
    json_t *o = json_object(), *points = json_array();
    lap_text label = {0};
    canvas_label(c, &label, d->record);
    set_text(&c->json, o, "label", lap_text_get(&label));
    for (size_t i = 0; i < d->curve_count; i++) {
        const lap_point_detail *p = &d->curve[i];
        if (!p->images_per_s.has || p->batch == 0) continue;
        json_t *point = json_array();
        push(&c->json, point, json_integer((json_int_t)p->batch));
        push(&c->json, point, real_value(p->images_per_s));
        push(&c->json, point, json_boolean(p->over_limit));
        push(&c->json, points, point);
    }
    set(&c->json, o, "points", points);
    set(&c->json, o, "knee", json_integer((json_int_t)d->knee_batch));
    set(&c->json, o, "best", json_integer((json_int_t)d->best_batch));
    if (label.failed) c->html.failed = true;
    lap_text_free(&label);
    return o;
}

static const char *mark_of(const lap_detail *d, const lap_point_detail *p) {
    bool knee = p->batch == d->knee_batch, best = p->batch == d->best_batch;
    if (p->over_limit) return "over the latency limit";
    return knee && best ? "knee, best" : knee ? "knee" : best ? "best" : "";
}

static void add_table(canvas *c, const lap_record *head) {
    static const char *const headers[] = {
        "Device and route", "#Batch", "#Images/s", "#Batch ms", "Mark", "Outcome", NULL};
    canvas_table(c, NULL, headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        if (!has_curve(d) || !canvas_same_case(d->record, head, false)) continue;
        for (size_t i = 0; i < d->curve_count; i++) {
            const lap_point_detail *p = &d->curve[i];
            canvas_row(c);
            canvas_label_cell(c, d->record);
            canvas_count(c, p->batch);
            canvas_rate(c, p->images_per_s);
            canvas_ms(c, p->batch_s);
            canvas_cell(c, mark_of(d, p));
            canvas_cell(c, p->reason[0] ? p->reason : p->status);
        }
    }
    canvas_table_end(c);
}

static void add_chart(canvas *c, const lap_record *head) {
    json_t *data = json_object(), *series = json_array();
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at)))
        if (has_curve(d) && canvas_same_case(d->record, head, false) &&
            json_array_size(series) < CANVAS_SERIES)
            push(&c->json, series, curve_value(c, d));
    set(&c->json, data, "series", series);
    lap_text title = {0};
    canvas_case(&title, head, false);
    canvas_figure(c, "throughput", lap_text_get(&title),
                  "Ring: the knee, the smallest batch with 97 % of the best throughput. Hollow "
                  "points are over the latency limit. Eight routes at most; the table has all.",
                  data);
    add_table(c, head);
    canvas_figure_end(c);
    lap_text_free(&title);
}

void section_throughput(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    bool any = false;
    while ((d = canvas_next(c, &at))) {
        if (!has_curve(d) || !canvas_is_first(c, d, false, has_curve)) continue;
        if (!any)
            canvas_section(c, "throughput", "Throughput against batch",
                           "Batches back to back, the batch size searched for.");
        any = true;
        add_chart(c, d->record);
    }
    if (any) canvas_section_end(c);
}
