/* Sections, tables and figures as HTML (see canvas.h). Knows no section's content. */
#include "page/canvas.h"
#include "report/escape.h"
#include "report/format.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- texts ---------------------------------------------------------------------------------- */

static void element(canvas *c, const char *begin, const char *text, const char *end) {
    lap_text_add(&c->html, begin);
    lap_escape_html(&c->html, text);
    lap_text_add(&c->html, end);
}

void canvas_section(canvas *c, const char *id, const char *title, const char *lead) {
    lap_text_addf(&c->html, "<section id=\"%s\">\n", id);
    element(c, "<h2>", title, "</h2>\n");
    if (lead) canvas_paragraph(c, "lead", lead);
}

void canvas_section_end(canvas *c) {
    lap_text_add(&c->html, "</section>\n");
}

void canvas_heading(canvas *c, const char *text) {
    element(c, "<h3>", text, "</h3>\n");
}

void canvas_paragraph(canvas *c, const char *class_name, const char *text) {
    lap_text_addf(&c->html, "<p class=\"%s\">", class_name);
    element(c, "", text, "</p>\n");
}

void canvas_plain(canvas *c, const char *text) {
    lap_escape_html(&c->html, text);
}

void canvas_item(canvas *c, const char *text) {
    element(c, "<li>", text, "</li>\n");
}

/* ---- tables --------------------------------------------------------------------------------- */

void canvas_table(canvas *c, const char *caption, const char *const *headers, bool sortable) {
    lap_text_addf(&c->html, "<div class=\"scroll\"><table%s>\n",
                  sortable ? " class=\"sortable\"" : "");
    if (caption) element(c, "<caption>", caption, "</caption>\n");
    lap_text_add(&c->html, "<thead><tr>");
    for (; *headers; headers++) {
        bool is_number = **headers == '#';
        lap_text_addf(&c->html, "<th scope=\"col\"%s>", is_number ? " class=\"n\"" : "");
        element(c, "", *headers + is_number, "</th>");
    }
    lap_text_add(&c->html, "</tr></thead>\n<tbody>\n");
}

/* A row's end tag is optional in HTML: rows are only begun. */
void canvas_row(canvas *c) {
    lap_text_add(&c->html, "<tr>");
}

void canvas_cell(canvas *c, const char *text) {
    element(c, "<td>", text[0] ? text : "-", "</td>");
}

static void numeral(canvas *c, const char *text) {
    element(c, "<td class=\"n\">", text, "</td>");
}

void canvas_cellf(canvas *c, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    numeral(c, text);
}

void canvas_count(canvas *c, uint64_t value) {
    if (value)
        canvas_cellf(c, "%llu", (unsigned long long)value);
    else
        numeral(c, "-");
}

void canvas_ms(canvas *c, lap_optional seconds) {
    char text[400] = "-";
    if (seconds.has) lap_format_ms(text, sizeof text, seconds.value);
    numeral(c, text);
}

void canvas_ms_by(canvas *c, lap_optional seconds, double step) {
    enum { NANOSECONDS = 6 };
    int decimals = lap_ms_decimals(seconds.value);
    double two_digits = step > 0 ? ceil(1 - log10(step * 1e3)) : 0;
    if (two_digits > decimals) decimals = (int)fmin(two_digits, NANOSECONDS);
    canvas_fixed(c, decimals, seconds.has ? lap_some(seconds.value * 1e3) : seconds);
}

void canvas_us(canvas *c, lap_optional seconds) {
    canvas_fixed(c, seconds.value < 1e-4 ? 2 : 1,
                 seconds.has ? lap_some(seconds.value * 1e6) : seconds);
}

void canvas_rate(canvas *c, lap_optional value) {
    char text[400] = "-";
    if (value.has) lap_format_rate(text, sizeof text, value.value, false);
    numeral(c, text);
}

void canvas_si(canvas *c, lap_optional value) {
    char text[400] = "-";
    if (value.has) lap_format_si(text, sizeof text, value.value);
    numeral(c, text);
}

void canvas_percent(canvas *c, lap_optional share) {
    canvas_fixed(c, 1, share.has ? lap_some(share.value * 100) : share);
}

void canvas_fixed(canvas *c, int decimals, lap_optional value) {
    char text[400] = "-";
    if (value.has) lap_format_fixed(text, sizeof text, decimals, value.value);
    numeral(c, text);
}

void canvas_label_cell(canvas *c, const lap_record *r) {
    lap_text label = {0};
    canvas_label(c, &label, r);
    canvas_cell(c, lap_text_get(&label));
    if (label.failed) c->html.failed = true;
    lap_text_free(&label);
}

void canvas_table_end(canvas *c) {
    lap_text_add(&c->html, "</tbody>\n</table></div>\n");
}

/* ---- figures -------------------------------------------------------------------------------- */

/* Tables are open, so that they are there without scripts; the script closes them beside a chart.
 */
void canvas_figure(canvas *c, const char *kind, const char *title, const char *caption,
                   json_t *data) {
    set_text(&c->json, data, "kind", kind);
    set_text(&c->json, data, "title", title);
    lap_text_addf(&c->html, "<figure data-kind=\"%s\" data-chart=\"%zu\">\n", kind,
                  json_array_size(c->charts));
    element(c, "<h3>", title, "</h3>\n");
    if (c->drawn) {
        lap_text_add(&c->html, "<div class=\"canvas\"><canvas role=\"img\" aria-label=\"");
        element(c, "Chart: ", title, ". Its table is below.\"></canvas></div>\n");
    }
    if (caption) element(c, "<figcaption>", caption, "</figcaption>\n");
    lap_text_add(&c->html, "<details open><summary>Table</summary>\n");
    push(&c->json, c->charts, data);
}

void canvas_figure_end(canvas *c) {
    lap_text_add(&c->html, "</details>\n</figure>\n");
}

/* ---- rows ----------------------------------------------------------------------------------- */

const lap_detail *canvas_next(const canvas *c, canvas_walk *at) {
    const lap_comparison *all = c->input->comparison;
    for (; at->document < all->document_count; at->document++, at->row = 0)
        if (c->details[at->document] && at->row < all->documents[at->document]->row_count)
            return &c->details[at->document][at->row++];
    return NULL;
}

bool canvas_same_case(const lap_record *a, const lap_record *b, bool with_batch) {
    return strcmp(a->network, b->network) == 0 && a->height == b->height && a->width == b->width &&
           strcmp(a->precision, b->precision) == 0 && (!with_batch || a->batch == b->batch);
}

bool canvas_is_first(const canvas *c, const lap_detail *d, bool with_batch, canvas_wanted *wanted) {
    canvas_walk at = {0};
    const lap_detail *other;
    while ((other = canvas_next(c, &at)))
        if (wanted(other) && canvas_same_case(other->record, d->record, with_batch))
            return other == d;
    return false;
}

bool canvas_seen(const canvas *c, const lap_detail *d) {
    canvas_walk at = {0};
    const lap_detail *other;
    while ((other = canvas_next(c, &at)) && other != d) {
        const lap_record *a = other->record, *b = d->record;
        if (strcmp(a->device, b->device) == 0 && strcmp(a->selector, b->selector) == 0 &&
            strcmp(a->driver, b->driver) == 0 && strcmp(a->uuid, b->uuid) == 0 &&
            strcmp(a->host, b->host) == 0 && strcmp(a->document->kernel, b->document->kernel) == 0)
            return true;
    }
    return false;
}

void canvas_case(lap_text *out, const lap_record *r, bool with_batch) {
    lap_text_addf(out, "%s %llux%llu %s", r->network, (unsigned long long)r->height,
                  (unsigned long long)r->width, r->precision);
    if (with_batch) lap_text_addf(out, ", batch %llu", (unsigned long long)r->batch);
}

void canvas_label(const canvas *c, lap_text *out, const lap_record *r) {
    lap_text_addf(out, "%s %s", r->device, r->selector);
    if (r->others) lap_text_addf(out, " +%llu", (unsigned long long)r->others);
    bool host = false, file = false;
    canvas_walk at = {0};
    const lap_detail *other;
    while ((other = canvas_next(c, &at))) {
        const lap_record *o = other->record;
        if (strcmp(o->device, r->device) != 0 || strcmp(o->selector, r->selector) != 0 ||
            o->others != r->others || !canvas_same_case(o, r, false))
            continue;
        host = host || strcmp(o->host, r->host) != 0;
        file = file || o->document != r->document;
    }
    const char *slash = strrchr(r->document->path, '/');
    if (host && r->host[0]) lap_text_addf(out, " of %s", r->host);
    if (file) lap_text_addf(out, " (%s)", slash && slash[1] ? slash + 1 : r->document->path);
}
