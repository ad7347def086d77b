/* The summary: the comparison's table and what is to be said about it; bars of speed. */
#include "compare/columns.h"
#include "compare/words.h"
#include "page/canvas.h"
#include "page/rate.h"
#include "report/format.h"

#include <string.h>

/* ---- the table ------------------------------------------------------------------------------ */

static void add_headers(canvas *c, const lap_selection *columns) {
    const char *headers[LAP_COLUMNS_MAX + 1];
    char numbers[LAP_COLUMNS_MAX][32];
    for (size_t i = 0; i < columns->count; i++) {
        const lap_column *column = columns->columns[i];
        snprintf(numbers[i], sizeof numbers[i], "#%s", column->header);
        headers[i] = column->right ? numbers[i] : column->header;
    }
    headers[columns->count] = NULL;
    canvas_table(c, NULL, headers, true);
}

static void add_line(canvas *c, const lap_selection *columns, const lap_line *line) {
    lap_text cell = {0};
    canvas_row(c);
    for (size_t i = 0; i < columns->count; i++) {
        cell.length = 0;
        if (cell.data) cell.data[0] = '\0';
        columns->columns[i]->cell(&cell, c->input->comparison, line, true);
        if (columns->columns[i]->right)
            canvas_cellf(c, "%s", cell.length ? cell.data : "-");
        else
            canvas_cell(c, lap_text_get(&cell));
    }
    if (cell.failed) c->html.failed = true;
    lap_text_free(&cell);
}

typedef struct listing {
    canvas *c;
    const char *title;
    bool any;
} listing;

static void add_item(void *context, const char *text) {
    listing *l = context;
    if (!l->any) {
        canvas_heading(l->c, l->title);
        lap_text_add(&l->c->html, "<ul>\n");
    }
    l->any = true;
    canvas_item(l->c, text);
}

/* ---- key figures ---------------------------------------------------------------------------- */

static void add_tile(canvas *c, const char *name, const char *value, const char *of) {
    lap_text_add(&c->html, "<div><dt>");
    canvas_plain(c, name);
    lap_text_add(&c->html, "</dt><dd>");
    canvas_plain(c, value);
    lap_text_add(&c->html, "</dd><dd>");
    canvas_plain(c, of);
    lap_text_add(&c->html, "</dd></div>\n");
}

static void add_best(canvas *c, const char *name, const char *value, const lap_record *r,
                     uint64_t batch, const char *how) {
    lap_text of = {0};
    canvas_label(c, &of, r);
    lap_text_add(&of, ", ");
    canvas_case(&of, r, false);
    lap_text_addf(&of, ", batch %llu%s", (unsigned long long)batch, how);
    add_tile(c, name, value, lap_text_get(&of));
    lap_text_free(&of);
}

/* Without copies of others. */
static size_t count_files(const lap_comparison *all) {
    size_t files = 0;
    for (size_t i = 0; i < all->document_count; i++)
        files += all->duplicate_of[i] == i;
    return files;
}

static void add_tiles(canvas *c) {
    const lap_record *quickest = NULL, *highest = NULL;
    size_t files = count_files(c->input->comparison), rows = 0, verified = 0, devices = 0;
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        const lap_record *r = d->record;
        rows++;
        verified += r->proof == LAP_PROOF_PASSED;
        devices += !canvas_seen(c, d);
        if (!r->ok) continue;
        if (r->latency.mean_s.value > 0 &&
            (!quickest || r->latency.mean_s.value < quickest->latency.mean_s.value))
            quickest = r;
        /* A throughput is measured as such: one over a latency is another thing. */
        if (r->images_per_s.value > 0 &&
            (!highest || r->images_per_s.value > highest->images_per_s.value))
            highest = r;
    }
    char value[400], text[120];
    lap_text_add(&c->html, "<dl class=\"tiles\">\n");
    if (quickest) {
        lap_format_ms(text, sizeof text, quickest->latency.mean_s.value);
        snprintf(value, sizeof value, "%s ms", text);
        add_best(c, "Shortest latency", value, quickest, quickest->batch, " (mean)");
    }
    if (highest) {
        lap_format_rate(text, sizeof text, highest->images_per_s.value, true);
        snprintf(value, sizeof value, "%s images/s", text);
        add_best(c, "Highest throughput", value, highest, highest->throughput_batch,
                 ", batches back to back");
    }
    snprintf(value, sizeof value, "%zu of %zu", verified, rows);
    add_tile(c, "Verified rows", value, "agree with a reference in double precision");
    snprintf(value, sizeof value, "%zu", devices);
    snprintf(text, sizeof text, "from %zu file%s", files, files == 1 ? "" : "s");
    add_tile(c, devices == 1 ? "Device and route" : "Devices and routes", value, text);
    lap_text_add(&c->html, "</dl>\n");
}

void section_summary(canvas *c) {
    const lap_comparison *all = c->input->comparison;
    if (all->line_count == 0) return;
    lap_selection columns;
    lap_text shared = {0}, lead = {0}, legend = {0};
    lap_columns_for_people(all, &columns);
    lap_words_case(&shared, all, &columns);
    lap_words_legend(&legend, all, &columns, true);
    lap_text_addf(&lead,
                  "One row for each measured case%s%s. A click on a column's name sorts by it.",
                  shared.length ? ": " : "", lap_text_get(&shared));
    canvas_section(c, "summary", "Summary", lap_text_get(&lead));
    add_tiles(c);
    add_headers(c, &columns);
    for (size_t i = 0; i < all->line_count; i++)
        add_line(c, &columns, &all->lines[i]);
    canvas_table_end(c);
    canvas_paragraph(c, "note", lap_text_get(&legend));
    if (shared.failed || lead.failed || legend.failed) c->html.failed = true;
    lap_text_free(&shared);
    lap_text_free(&lead);
    lap_text_free(&legend);
    for (int topic = 0; topic < LAP_TOPICS; topic++) {
        listing l = {c, lap_topic_title((lap_topic)topic), false};
        if (!lap_words_each(all, (lap_topic)topic, true, add_item, &l)) c->html.failed = true;
        if (l.any) lap_text_add(&c->html, "</ul>\n");
    }
    canvas_section_end(c);
}

/* ---- bars ----------------------------------------------------------------------------------- */

static bool is_timed(const lap_detail *d) {
    const lap_span *span = &d->record->latency;
    return d->record->ok && span->mean_s.has && span->mean_s.value > 0 && d->record->batch > 0;
}

/* Of one chart: its categories are batches, its series labels, each in order of appearance. */
typedef struct bars {
    uint64_t batches[32];
    size_t batch_count;
    json_t *categories, *series;
    bool more; /* than a chart can show */
} bars;

/* The batches of the chart, ascending: its categories. */
static void find_categories(canvas *c, bars *b, const lap_record *head) {
    enum { MOST = sizeof b->batches / sizeof *b->batches };
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        uint64_t batch = d->record->batch;
        size_t i = 0;
        if (!is_timed(d) || !canvas_same_case(d->record, head, false)) continue;
        while (i < b->batch_count && b->batches[i] < batch)
            i++;
        if ((i < b->batch_count && b->batches[i] == batch) || b->batch_count == MOST) continue;
        memmove(&b->batches[i + 1], &b->batches[i], (b->batch_count - i) * sizeof *b->batches);
        b->batches[i] = batch;
        b->batch_count++;
    }
    for (size_t i = 0; i < b->batch_count; i++) {
        char name[40];
        snprintf(name, sizeof name, "batch %llu", (unsigned long long)b->batches[i]);
        push(&c->json, b->categories, json_string(name));
    }
}

static size_t category_of(const bars *b, uint64_t batch) {
    for (size_t i = 0; i < b->batch_count; i++)
        if (b->batches[i] == batch) return i;
    return SIZE_MAX;
}

static json_t *series_of(canvas *c, json_t *list, const char *label) {
    size_t i;
    json_t *s;
    json_array_foreach(list, i, s) {
        const char *other = json_string_value(json_object_get(s, "label"));
        if (other && strcmp(other, label) == 0) return s;
    }
    if (json_array_size(list) >= CANVAS_SERIES) return NULL;
    s = json_object();
    set_text(&c->json, s, "label", label);
    set(&c->json, s, "values", json_array());
    push(&c->json, list, s);
    return s;
}

/* [category, value, low, high] */
static void add_bar(canvas *c, bars *b, const lap_detail *d) {
    const lap_rate rate = lap_rate_of(&d->record->latency, d->record->batch);
    size_t category = category_of(b, d->record->batch);
    if (category == SIZE_MAX) return;
    lap_text label = {0};
    canvas_label(c, &label, d->record);
    json_t *series = series_of(c, b->series, lap_text_get(&label)), *bar;
    if (label.failed) c->html.failed = true;
    lap_text_free(&label);
    if (!series) {
        b->more = true;
        return;
    }
    bar = json_array();
    push(&c->json, bar, json_integer((json_int_t)category));
    push(&c->json, bar, json_real(rate.value));
    push(&c->json, bar, real_value(rate.has_interval ? lap_some(rate.low) : lap_none()));
    push(&c->json, bar, real_value(rate.has_interval ? lap_some(rate.high) : lap_none()));
    push(&c->json, json_object_get(series, "values"), bar);
}

static void add_bar_table(canvas *c, const lap_record *head) {
    static const char *const headers[] = {
        "Device and route", "#Batch", "#Images/s", "#95 % from", "#to", "#Samples", NULL};
    canvas_table(c, NULL, headers, true);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at))) {
        if (!is_timed(d) || !canvas_same_case(d->record, head, false)) continue;
        const lap_rate rate = lap_rate_of(&d->record->latency, d->record->batch);
        canvas_row(c);
        canvas_label_cell(c, d->record);
        canvas_count(c, d->record->batch);
        canvas_rate(c, lap_some(rate.value));
        canvas_rate(c, rate.has_interval ? lap_some(rate.low) : lap_none());
        canvas_rate(c, rate.has_interval ? lap_some(rate.high) : lap_none());
        canvas_count(c, d->record->latency.n);
    }
    canvas_table_end(c);
}

static void add_bars(canvas *c, const lap_record *head) {
    bars b = {.categories = json_array(), .series = json_array()};
    find_categories(c, &b, head);
    canvas_walk at = {0};
    const lap_detail *d;
    while ((d = canvas_next(c, &at)))
        if (is_timed(d) && canvas_same_case(d->record, head, false)) add_bar(c, &b, d);
    json_t *data = json_object();
    set(&c->json, data, "categories", b.categories);
    set(&c->json, data, "series", b.series);
    lap_text title = {0};
    canvas_case(&title, head, false);
    canvas_figure(c, "bars", lap_text_get(&title),
                  b.more ? "Images per second at each batch size (batch over mean latency) of the "
                           "first eight devices and routes. Whiskers: 95 % interval of the mean."
                         : "Images per second at each batch size (batch over mean latency). "
                           "Whiskers: 95 % interval of the mean.",
                  data);
    add_bar_table(c, head);
    canvas_figure_end(c);
    lap_text_free(&title);
}

void section_speed(canvas *c) {
    canvas_walk at = {0};
    const lap_detail *d;
    bool any = false;
    while ((d = canvas_next(c, &at))) {
        if (!is_timed(d) || !canvas_is_first(c, d, false, is_timed)) continue;
        if (!any) canvas_section(c, "speed", "Speed across devices", "Longer bars are faster.");
        any = true;
        add_bars(c, d->record);
    }
    if (any) canvas_section_end(c);
}
