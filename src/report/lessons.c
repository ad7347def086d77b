/* The texts of spans and pitfalls (see lessons.h). Renders only. */
#include "report/lessons.h"
#include "report/format.h"
#include "report/sheet.h"

#include <inttypes.h>
#include <stdio.h>

static const lap_style plain_style = {.width = LAP_TABLE_WIDTH};

static void add_wrapped(lap_text *out, const char *text, size_t indent, const lap_style *style) {
    lap_text clean = {0};
    lap_text_add(&clean, text);
    if (clean.data) lap_line_clean(clean.data, style->utf8);
    lap_line_wrap(out, lap_text_get(&clean), indent, style->width);
    if (clean.failed) out->failed = true;
    lap_text_free(&clean);
}

static void ms_cell(char *buffer, size_t size, lap_optional seconds) {
    snprintf(buffer, size, "n/a");
    if (seconds.has) lap_format_ms(buffer, size, seconds.value);
}

static lap_status finished(const lap_text *out, lap_error *err) {
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
}

/* The title line, and for a row that is not ok what happened; false when nothing else follows. */
static bool add_title(const lap_row *head, const char *what, const lap_style *style,
                      lap_text *out) {
    char title[LAP_DEVICE_NAME + 512];
    snprintf(title, sizeof title, "%.40s %s: %s", head->device.selector, head->device.name, what);
    add_wrapped(out, title, 4, style);
    if (head->status == LAP_ROW_OK) return true;
    lap_text line = {0};
    lap_text_addf(&line, "%s: %s", lap_row_status_name(head->status), lap_row_reason(head));
    if (line.failed) out->failed = true;
    add_wrapped(out, lap_text_get(&line), 4, style);
    lap_text_free(&line);
    return false;
}

/* ---- spans ---------------------------------------------------------------------------------- */

static const lap_sheet_column spans_columns[] = {
    {"Repeat", true, 0, 0},      {"cold B-A ms", true, 0, 0}, {"cold C-A ms", true, 0, 0},
    {"cold E-D ms", true, 0, 0}, {"warm B-A ms", true, 0, 0}, {"warm C-A ms", true, 0, 0},
    {"warm E-D ms", true, 0, 0},
};
enum { SPANS_COLUMNS = sizeof spans_columns / sizeof spans_columns[0] };

static void three_cells(char texts[][24], const lap_latency *l, size_t i) {
    bool has = i < l->n;
    ms_cell(texts[0], 24, has ? lap_some(l->samples[i].submit_s) : lap_none());
    ms_cell(texts[1], 24, has ? lap_some(l->samples[i].wall_s) : lap_none());
    ms_cell(texts[2], 24, has ? l->samples[i].device_s : lap_none());
}

static void three_means(char texts[][24], const lap_latency *l) {
    ms_cell(texts[0], 24, l->submit.mean);
    ms_cell(texts[1], 24, l->wall.mean);
    ms_cell(texts[2], 24, l->device.mean);
}

static void add_cells(lap_sheet *sheet, const char *first, char texts[][24]) {
    const char *const cells[] = {first, texts[0], texts[1], texts[2], texts[3], texts[4], texts[5]};
    lap_sheet_add(sheet, cells, LAP_TONE_PLAIN);
}

static void explain_check(const lap_elementwise_report *check, const lap_style *style,
                          lap_text *out) {
    lap_text line = {0}, bounds = {0};
    char number[32];
    lap_text_addf(&line, "verified: %" PRIu64 " elements of each operation; worst error",
                  check->compared);
    for (int op = 0; op < LAP_ELEMENTWISE_OPS; op++) {
        lap_format_fixed(number, sizeof number, 2, check->worst_ulp[op]);
        lap_text_addf(&line, "%s %s %s", op ? "," : "", lap_elementwise_name[op], number);
        lap_format_double(number, sizeof number, 3, lap_elementwise_bound[op]);
        lap_text_addf(&bounds, "%s%s", op ? ", " : "", number);
    }
    lap_text_addf(&line, " ulp (bounds %s)", lap_text_get(&bounds));
    if (line.failed || bounds.failed) out->failed = true;
    add_wrapped(out, lap_text_get(&line), 4, style);
    lap_text_free(&line);
    lap_text_free(&bounds);
}

static void explain_spans(const lap_spans_row *row, const lap_style *style, lap_text *out) {
    char line[512];
    add_wrapped(out,
                "A and B are the host's clock before and after the work was enqueued, C after the "
                "wait for it; D and E are device events around it.",
                4, style);
    add_wrapped(
        out,
        "B-A, submission: what the host spends on handing the work over. Fit for finding out "
        "whether the host keeps up; as the time of the work it is wrong on every device that "
        "runs asynchronously.",
        4, style);
    add_wrapped(
        out,
        "C-A, wall: from the call to the result, with submission, waiting and waking up. Fit "
        "for what a caller feels; too long for the work itself when that is short.",
        4, style);
    add_wrapped(out,
                "E-D, device: the work alone by the device's clock. Fit for comparing kernels and "
                "devices; blind to the host, and only as good as the device's stamps.",
                4, style);
    snprintf(line, sizeof line,
             "cold: a fresh session without warm-up, so that its first repeat has loading, "
             "first touches and low clocks in it. warm: a fresh session after %" PRIu64
             " runs that were not timed.",
             row->warmup);
    add_wrapped(out, line, 4, style);
    explain_check(&row->check, style, out);
}

lap_status lap_spans_text(const lap_spans_row *row, const lap_style *style, lap_text *out,
                          lap_error *err) {
    char what[128], first[24], texts[6][24];
    if (!style) style = &plain_style;
    snprintf(what, sizeof what,
             "mul, add, sin, cos on two %" PRIu64 "x%" PRIu64 "x%" PRIu64 " float tensors",
             row->size[0], row->size[1], row->size[2]);
    if (!add_title(&row->head, what, style, out)) return finished(out, err);
    lap_sheet *sheet = lap_sheet_new(spans_columns, SPANS_COLUMNS);
    size_t n = row->cold.n > row->warm.n ? row->cold.n : row->warm.n;
    for (size_t i = 0; i < n; i++) {
        snprintf(first, sizeof first, "%zu", i + 1);
        three_cells(texts, &row->cold, i);
        three_cells(texts + 3, &row->warm, i);
        add_cells(sheet, first, texts);
    }
    three_means(texts, &row->cold);
    three_means(texts + 3, &row->warm);
    add_cells(sheet, "mean", texts);
    lap_status status = lap_sheet_print(sheet, style, out, err);
    lap_sheet_free(sheet);
    LAP_TRY(status);
    explain_spans(row, style, out);
    for (size_t i = 0; i < row->head.note_count; i++)
        add_wrapped(out, row->head.notes[i], 4, style);
    return finished(out, err);
}

/* ---- pitfalls ------------------------------------------------------------------------------- */

static const lap_sheet_column ways_columns[] = {
    {"Way", false, 24, 0},  {"n", true, 0, 0},      {"Mean ms", true, 0, 0},
    {"Std ms", true, 0, 0}, {"Factor", true, 0, 0}, {"Histogram", false, 0, 1},
};
enum { WAYS_COLUMNS = sizeof ways_columns / sizeof ways_columns[0] };

/* A character for each bin. */
static void draw(const lap_histogram *h, bool utf8, char *out, size_t size) {
    static const char *const bars[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", ".", ".", ":", ":", "+", "+", "#", "#"};
    size_t used = 0;
    out[0] = '\0';
    for (int i = 0; i < LAP_HISTOGRAM_BINS && h->most > 0; i++) {
        /* A single sample must not vanish beside a thousand. */
        size_t level = h->counts[i] ? 1 + (size_t)h->counts[i] * 7 / h->most : 0;
        const char *bar = utf8 ? bars[level] : plain[level];
        used += (size_t)snprintf(out + used, size - used, "%s", bar);
    }
}

static void add_way(lap_sheet *sheet, lap_pitfall_kind kind, const lap_way *w, bool utf8) {
    char n[24], mean[24], std[24], factor[24], picture[4 * LAP_HISTOGRAM_BINS + 16], bars[160];
    snprintf(n, sizeof n, "%zu", w->stats.n);
    ms_cell(mean, sizeof mean, w->stats.mean);
    ms_cell(std, sizeof std, w->stats.std);
    snprintf(factor, sizeof factor, "n/a");
    if (w->factor.has) lap_format_fixed(factor, sizeof factor, 3, w->factor.value);
    draw(&w->histogram, utf8, bars, sizeof bars);
    snprintf(picture, sizeof picture, "|%s|", bars);
    const char *const cells[] = {lap_way_about(kind),         n, mean, std, factor,
                                 w->has ? picture : w->reason};
    lap_sheet_add(sheet, cells, kind == LAP_WAY_RIGHT ? LAP_TONE_GOOD : LAP_TONE_PLAIN);
}

lap_status lap_pitfalls_text(const lap_pitfalls_row *row, const lap_style *style, lap_text *out,
                             lap_error *err) {
    char what[160];
    const lap_row *head = &row->head;
    const lap_pitfalls *p = &row->pitfalls;
    if (!style) style = &plain_style;
    snprintf(what, sizeof what, "%s %dx%d %s, batch %" PRIu64, head->network, head->height,
             head->width, head->precision, head->batch);
    if (!add_title(head, what, style, out)) return finished(out, err);
    lap_sheet *sheet = lap_sheet_new(ways_columns, WAYS_COLUMNS);
    for (int i = 0; i < LAP_WAYS; i++)
        add_way(sheet, (lap_pitfall_kind)i, &p->ways[i], style->utf8);
    lap_status status = lap_sheet_print(sheet, style, out, err);
    lap_sheet_free(sheet);
    LAP_TRY(status);
    add_wrapped(out,
                "Factor: what the way would have reported over the right mean; of one sample, the "
                "sample that is furthest off. A histogram goes from the way's least sample to its "
                "greatest.",
                4, style);
    if (p->clock_reason[0]) {
        lap_text line = {0};
        lap_text_addf(&line, "The right way uses the host's clock here: %s", p->clock_reason);
        add_wrapped(out, lap_text_get(&line), 4, style);
        lap_text_free(&line);
    }
    for (size_t i = 0; i < head->note_count; i++)
        add_wrapped(out, head->notes[i], 4, style);
    return finished(out, err);
}
