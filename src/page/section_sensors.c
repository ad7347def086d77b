/* Clocks, power and temperature: over the run where the document has readings, else by row. */
#include "page/canvas.h"

#include <stdlib.h>
#include <string.h>

static bool has_sensors(const lap_detail *d) {
    return d->sensors.source[0] != '\0';
}

static bool has_series(const lap_detail *d) {
    return has_sensors(d) && d->sensors.count > 1;
}

/* ---- over the run --------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b) {
    double x = ((const lap_sensor_detail *)a)->at_s.value;
    double y = ((const lap_sensor_detail *)b)->at_s.value;
    return (x > y) - (x < y);
}

static bool same_device(const lap_record *a, const lap_record *b) {
    return a->document == b->document && strcmp(a->selector, b->selector) == 0 &&
           strcmp(a->device, b->device) == 0 && strcmp(a->host, b->host) == 0;
}

static bool is_first_of_device(const canvas *c, const lap_detail *d) {
    canvas_walk at = {0};
    const lap_detail *other;
    while ((other = canvas_next(c, &at)))
        if (has_series(other) && same_device(other->record, d->record)) return other == d;
    return false;
}

/* The readings of all rows of the device, in order of time: rows may have taken turns. NULL on a
 * lack of memory. */
static lap_sensor_detail *gather(const canvas *c, const lap_record *head, size_t *count) {
    canvas_walk at = {0};
    const lap_detail *d;
    size_t n = 0;
    while ((d = canvas_next(c, &at)))
        if (has_series(d) && same_device(d->record, head)) n += d->sensors.count;
    lap_sensor_detail *all = malloc((n + 1) * sizeof *all);
    *count = 0;
    for (at = (canvas_walk){0}; all && (d = canvas_next(c, &at));) {
        if (!has_series(d) || !same_device(d->record, head)) continue;
        memcpy(all + *count, d->sensors.points, d->sensors.count * sizeof *all);
        *count += d->sensors.count;
    }
    if (all) qsort(all, *count, sizeof *all, by_time);
    return all;
}

static void add_series_table(canvas *c, const lap_sensor_detail *all, size_t n) {
    static const char *const headers[] = {"#Second", "#Clock MHz", "#Power W", "#Temperature C",
                                          NULL};
    canvas_table(c, NULL, headers, false);
    /* The table is for reading: at most 200 lines of it, evenly spread. */
    size_t step = n / 200 + 1;
    for (size_t i = 0; i < n; i += step) {
        canvas_row(c);
        canvas_fixed(c, 2, all[i].at_s);
        canvas_fixed(c, 0, all[i].clock_mhz);
        canvas_fixed(c, 1, all[i].power_w);
        canvas_fixed(c, 0, all[i].temperature_c);
    }
    canvas_table_end(c);
}

static void add_series(canvas *c, const lap_detail *first) {
    size_t n;
    lap_sensor_detail *all = gather(c, first->record, &n);
    if (!all) {
        c->html.failed = true;
        return;
    }
    json_t *data = json_object(), *at = json_array(), *clock = json_array(), *power = json_array(),
           *temperature = json_array();
    for (size_t i = 0; i < n; i++) {
        push(&c->json, at, real_value(all[i].at_s));
        push(&c->json, clock, real_value(all[i].clock_mhz));
        push(&c->json, power, real_value(all[i].power_w));
        push(&c->json, temperature, real_value(all[i].temperature_c));
    }
    set(&c->json, data, "at", at);
    set(&c->json, data, "clock", clock);
    set(&c->json, data, "power", power);
    set(&c->json, data, "temperature", temperature);
    lap_text title = {0};
    canvas_label(c, &title, first->record);
    lap_text_add(&title, " over the run");
    canvas_figure(c, "sensors", lap_text_get(&title),
                  "Readings while rows were being timed; the device is not read in between.", data);
    add_series_table(c, all, n);
    canvas_figure_end(c);
    lap_text_free(&title);
    free(all);
}

/* ---- by row --------------------------------------------------------------------------------- */

static void add_table(canvas *c) {
    static const char *const headers[] = {
        "Device and route", "Case",         "#Batch",      "Source",   "#Clock min MHz",
        "#Mean MHz",        "#Max MHz",     "#Memory MHz", "#Power W", "#Energy/image mJ",
        "#Highest C",       "#Throttled %", "Why",         NULL};
    canvas_table(c, NULL, headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        const lap_sensors_detail *s = &d->sensors;
        if (!has_sensors(d)) continue;
        lap_text name = {0};
        canvas_case(&name, d->record, false);
        canvas_row(c);
        canvas_label_cell(c, d->record);
        canvas_cell(c, lap_text_get(&name));
        canvas_count(c, d->record->batch);
        canvas_cell(c, s->source);
        canvas_fixed(c, 0, s->clock_min_mhz);
        canvas_fixed(c, 0, s->clock_mean_mhz);
        canvas_fixed(c, 0, s->clock_max_mhz);
        canvas_fixed(c, 0, s->memory_clock_mhz);
        canvas_fixed(c, 1, s->power_w);
        canvas_fixed(c, 2,
                     s->energy_per_image_j.has ? lap_some(s->energy_per_image_j.value * 1e3)
                                               : lap_none());
        canvas_fixed(c, 0, s->temperature_c);
        canvas_percent(c, s->throttled_share);
        canvas_cell(c, s->reasons);
        lap_text_free(&name);
    }
    canvas_table_end(c);
}

static void add_rows(canvas *c) {
    json_t *data = json_object(), *categories = json_array(), *clock = json_array(),
           *power = json_array();
    canvas_walk at = {0};
    const lap_detail *d;
    size_t shown = 0;
    while ((d = canvas_next(c, &at))) {
        const lap_sensors_detail *s = &d->sensors;
        if (!has_sensors(d) || shown++ >= 3 * CANVAS_CHARTS) continue;
        lap_text label = {0};
        canvas_label(c, &label, d->record);
        lap_text_addf(&label, ", %s batch %llu", d->record->precision,
                      (unsigned long long)d->record->batch);
        json_t *range = json_array();
        push(&c->json, range, real_value(s->clock_min_mhz));
        push(&c->json, range, real_value(s->clock_mean_mhz));
        push(&c->json, range, real_value(s->clock_max_mhz));
        push(&c->json, categories, text_value(lap_text_get(&label)));
        push(&c->json, clock, range);
        push(&c->json, power, real_value(s->power_w));
        lap_text_free(&label);
    }
    set(&c->json, data, "categories", categories);
    set(&c->json, data, "clock", clock);
    set(&c->json, data, "power", power);
    canvas_figure(c, "clocks", "Clock and power of every row, in the order of the run",
                  "Bars: lowest to highest clock, a tick at the mean. Diamonds: mean power, where "
                  "the row was timed for at least half a second.",
                  data);
    add_table(c);
    canvas_figure_end(c);
}

void section_sensors(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    bool any = false;
    while (!any && (d = canvas_next(c, &at)))
        any = has_sensors(d);
    if (!any) return;
    canvas_section(c, "sensors", "Clocks and power",
                   "Read about 20 times a second during timed blocks, where there is a sensor.");
    for (at = (canvas_walk){0}; (d = canvas_next(c, &at));)
        if (has_series(d) && is_first_of_device(c, d)) add_series(c, d);
    add_rows(c);
    canvas_section_end(c);
}
