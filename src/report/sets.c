/* Devices at work at the same time: a table for each set, its sum beneath, and a sentence. Renders
 * only. */
#include "report/sets.h"
#include "report/escape.h"
#include "report/format.h"
#include "report/sheet.h"
#include "report/table.h"

#include <stdio.h>
#include <string.h>

static const lap_style plain_style = {.width = LAP_TABLE_WIDTH};

/* More members than this are a matter for the result file. */
enum { MOST_SHOWN = 40 };

enum {
    COL_WHO,
    COL_HOST,
    COL_DEVICE,
    COL_ALONE_MS,
    COL_MS,
    COL_FPS,
    COL_ALONE_RATE,
    COL_RATE,
    COL_SCALING,
    COL_COUNT
};

static const lap_sheet_column set_columns[COL_COUNT] = {
    [COL_WHO] = {"Route", false, 13, 0},
    [COL_HOST] = {"Rank, host", false, 8, 0},
    [COL_DEVICE] = {"Device", false, 10, 1},
    [COL_ALONE_MS] = {"Alone ms", true, 0, 3},
    [COL_MS] = {"At once ms", true, 0, 2},
    [COL_FPS] = {"FPS at once", true, 0, 4},
    [COL_ALONE_RATE] = {"Alone img/s", true, 0, 0},
    [COL_RATE] = {"At once img/s", true, 0, 0},
    [COL_SCALING] = {"Scaling", true, 0, 0},
};

typedef struct cells {
    char texts[COL_COUNT][LAP_DEVICE_NAME];
} cells;

static void put_margin(char *out, size_t size, lap_margin m, int decimals, bool utf8) {
    char value[48], half[48];
    snprintf(out, size, "-");
    if (!m.value.has) return;
    lap_format_fixed(value, sizeof value, decimals, m.value.value);
    snprintf(out, size, "%s", value);
    if (!m.half.has) return;
    lap_format_fixed(half, sizeof half, decimals, m.half.value);
    snprintf(out, size, "%s %s %s", value, utf8 ? "±" : "+-", half);
}

static int rate_decimals(lap_margin m) {
    return !m.value.has || m.value.value >= 100 ? 0 : m.value.value >= 10 ? 1 : 3;
}

static void put_rate(char *out, size_t size, lap_margin m, bool utf8) {
    put_margin(out, size, m, rate_decimals(m), utf8);
}

static void put_ms(char *out, size_t size, lap_optional seconds) {
    snprintf(out, size, "-");
    if (seconds.has) lap_format_ms(out, size, seconds.value);
}

#define PUT(column) c->texts[column], sizeof c->texts[column]

static void member_cells(const lap_set *set, const lap_set_member *m, bool utf8, cells *c) {
    memset(c, 0, sizeof *c);
    snprintf(PUT(COL_WHO), "%s", m->selector);
    if (set->fleet) snprintf(PUT(COL_HOST), "%zu %s", m->rank, m->host);
    snprintf(PUT(COL_DEVICE), "%s", m->ok ? m->device : "(failed)");
    put_ms(PUT(COL_ALONE_MS), m->alone_mean_s);
    put_ms(PUT(COL_MS), m->mean_s);
    put_rate(PUT(COL_FPS), m->fps, utf8);
    put_rate(PUT(COL_ALONE_RATE), m->alone_rate, utf8);
    put_rate(PUT(COL_RATE), m->rate, utf8);
    put_margin(PUT(COL_SCALING), m->scaling, 3, utf8);
}

static void sum_cells(const lap_set *set, bool utf8, cells *c) {
    size_t counted = set->rated > 0 ? set->rated : set->timed;
    memset(c, 0, sizeof *c);
    if (counted == set->count)
        snprintf(PUT(COL_WHO), "sum of %zu", counted);
    else
        snprintf(PUT(COL_WHO), "sum of %zu of %zu", counted, set->count);
    put_ms(PUT(COL_ALONE_MS), lap_none());
    put_ms(PUT(COL_MS), lap_none());
    put_rate(PUT(COL_FPS), set->fps, utf8);
    put_rate(PUT(COL_ALONE_RATE), set->alone_rate, utf8);
    put_rate(PUT(COL_RATE), set->rate, utf8);
    put_margin(PUT(COL_SCALING), set->rated > 0 ? set->scaling : set->fps_scaling, 3, utf8);
}

/* ---- sentences ------------------------------------------------------------------------------ */

static void add_number(lap_text *out, lap_margin m, int decimals, bool utf8) {
    char text[120];
    put_margin(text, sizeof text, m, decimals, utf8);
    lap_text_add(out, text);
}

void lap_report_set_sentence(const lap_set *set, bool utf8, lap_text *out) {
    bool rated = set->rated > 0;
    size_t counted = rated ? set->rated : set->timed;
    lap_margin rate = rated ? set->rate : set->fps;
    lap_margin scaling = rated ? set->scaling : set->fps_scaling;
    const char *what = set->fleet ? "ranks" : "devices";
    if (counted == 1) {
        lap_text_addf(out, "Only one of %zu %s has a rate for %s (%dx%d, %s) at the same time.",
                      set->count, what, set->network, set->height, set->width, set->precision);
        return;
    }
    if (counted == 0) {
        lap_text_addf(out, "None of %zu %s has a rate for %s (%dx%d, %s) at the same time.",
                      set->count, what, set->network, set->height, set->width, set->precision);
        return;
    }
    lap_text_addf(out, "%zu %s at once run %s (%dx%d, %s", counted, what, set->network, set->height,
                  set->width, set->precision);
    if (!rated) lap_text_addf(out, ", batch %llu", (unsigned long long)set->batch);
    lap_text_add(out, ") at ");
    add_number(out, rate, rate_decimals(rate), utf8);
    lap_text_add(out, " images/s");
    if (scaling.value.has) {
        lap_text_add(out, ", ");
        add_number(out, scaling, 3, utf8);
        lap_text_add(out, " of what they do alone");
    }
    lap_text_add(out, ".");
    if (counted < set->count)
        lap_text_addf(out, " %zu of %zu %s are not in the sum.", set->count - counted, set->count,
                      what);
}

/* Where the sum comes from. */
static void add_spread(const lap_set *set, lap_text *out) {
    char rate[32];
    if (set->slowest < 0 || !set->spread.has) return;
    const lap_set_member *m = &set->members[set->slowest];
    lap_format_rate(rate, sizeof rate, set->slowest_rate.value, false);
    lap_text_add(out, "Slowest: ");
    if (set->fleet) lap_text_addf(out, "rank %zu on %s, ", m->rank, m->host);
    lap_text_addf(out, "%s, %s images/s", m->selector, rate);
    lap_format_rate(rate, sizeof rate, set->fastest_rate.value, false);
    lap_text_addf(out, "; fastest %s; standard deviation between %s ", rate,
                  set->fleet ? "ranks" : "devices");
    lap_format_rate(rate, sizeof rate, set->spread.value * 100, false);
    lap_text_addf(out, "%s %% of the mean", rate);
    if (set->rounds > 0) lap_text_addf(out, "; %zu rounds", set->rounds);
    if (set->skew_s.has) {
        lap_format_ms(rate, sizeof rate, set->skew_s.value);
        lap_text_addf(out, "; first timed runs %s ms apart", rate);
    }
    lap_text_add(out, ".");
}

static void add_failed(const lap_set_member *m, bool fleet, lap_text *out) {
    if (fleet) lap_text_addf(out, "rank %zu on %s, ", m->rank, m->host);
    lap_text_addf(out, "%s: %s", m->selector, m->reason);
}

/* ---- terminal ------------------------------------------------------------------------------- */

static void add_wrapped(lap_text *out, lap_text *line, const lap_style *style) {
    if (line->data && line->length > 0) {
        lap_line_clean(line->data, style->utf8);
        lap_line_wrap(out, line->data, 4, style->width);
    }
    if (line->failed) out->failed = true;
    lap_text_free(line);
}

static void add_cells(lap_sheet *sheet, const cells *c, lap_tone tone) {
    const char *texts[COL_COUNT];
    for (size_t i = 0; i < COL_COUNT; i++)
        texts[i] = c->texts[i];
    lap_sheet_add(sheet, texts, tone);
}

/* The first ones, and the slowest wherever it is. */
static bool shown(const lap_set *set, size_t index) {
    return index < MOST_SHOWN || (long)index == set->slowest;
}

static lap_status add_table(const lap_set *set, const lap_style *style, lap_text *out,
                            lap_error *err) {
    cells c;
    lap_sheet *sheet = lap_sheet_new(set_columns, COL_COUNT);
    if (!set->fleet) lap_sheet_hide(sheet, COL_HOST);
    if (set->rated == 0) {
        lap_sheet_hide(sheet, COL_ALONE_RATE);
        lap_sheet_hide(sheet, COL_RATE);
    }
    if (set->timed == 0)
        for (size_t k = COL_ALONE_MS; k <= COL_FPS; k++)
            lap_sheet_hide(sheet, k);
    for (size_t i = 0; i < set->count; i++) {
        if (!shown(set, i)) continue;
        member_cells(set, &set->members[i], style->utf8, &c);
        add_cells(sheet, &c, set->members[i].ok ? LAP_TONE_PLAIN : LAP_TONE_BAD);
    }
    sum_cells(set, style->utf8, &c);
    add_cells(sheet, &c, LAP_TONE_GOOD);
    lap_status status = lap_sheet_print(sheet, style, out, err);
    lap_sheet_free(sheet);
    return status;
}

static lap_status add_set(const lap_set *set, const lap_style *style, lap_text *out,
                          lap_error *err) {
    lap_text line = {0};
    lap_text_addf(&line, "At the same time: %zu %s, %s %dx%d %s, batch %llu", set->count,
                  set->fleet ? "ranks" : "devices", set->network, set->height, set->width,
                  set->precision, (unsigned long long)set->batch);
    add_wrapped(out, &line, style);
    LAP_TRY(add_table(set, style, out, err));
    if (set->count > MOST_SHOWN)
        lap_text_addf(out, "%zu more are in the result file.\n", set->count - MOST_SHOWN);
    lap_report_set_sentence(set, style->utf8, &line);
    add_wrapped(out, &line, style);
    add_spread(set, &line);
    add_wrapped(out, &line, style);
    for (size_t i = 0; i < set->count; i++) {
        if (set->members[i].ok) continue;
        add_failed(&set->members[i], set->fleet, &line);
        add_wrapped(out, &line, style);
    }
    lap_text_add(out, "\n");
    return LAP_OK;
}

lap_status lap_report_sets(const lap_report *report, const lap_style *style, lap_text *out,
                           lap_error *err) {
    if (!style) style = &plain_style;
    for (size_t i = 0; i < report->set_count; i++)
        LAP_TRY(add_set(&report->sets[i], style, out, err));
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
}

/* ---- Markdown ------------------------------------------------------------------------------- */

static void add_markdown_row(lap_text *out, const lap_set *set, const cells *c) {
    lap_text_add(out, "|");
    for (size_t i = 0; i < COL_COUNT; i++) {
        if (i == COL_HOST && !set->fleet) continue;
        lap_text_add(out, " ");
        lap_escape_markdown(out, c->texts[i][0] ? c->texts[i] : "-");
        lap_text_add(out, " |");
    }
    lap_text_add(out, "\n");
}

static void add_markdown_line(lap_text *out, lap_text *line) {
    if (line->length > 0) {
        lap_text_add(out, "\n");
        lap_escape_markdown(out, lap_text_get(line));
        lap_text_add(out, "\n");
    }
    if (line->failed) out->failed = true;
    lap_text_free(line);
}

void lap_report_sets_markdown(const lap_report *report, lap_text *out) {
    for (size_t s = 0; s < report->set_count; s++) {
        const lap_set *set = &report->sets[s];
        cells c;
        lap_text line = {0};
        lap_text_addf(out, "\nAt the same time: %zu %s, ", set->count,
                      set->fleet ? "ranks" : "devices");
        lap_escape_markdown(out, set->network);
        lap_text_addf(out, " %dx%d %s, batch %llu\n\n|", set->height, set->width, set->precision,
                      (unsigned long long)set->batch);
        for (size_t i = 0; i < COL_COUNT; i++)
            if (i != COL_HOST || set->fleet) lap_text_addf(out, " %s |", set_columns[i].header);
        lap_text_add(out, "\n|");
        for (size_t i = 0; i < COL_COUNT; i++)
            if (i != COL_HOST || set->fleet)
                lap_text_add(out, set_columns[i].right ? "--:|" : "---|");
        lap_text_add(out, "\n");
        for (size_t i = 0; i < set->count; i++) {
            member_cells(set, &set->members[i], true, &c);
            add_markdown_row(out, set, &c);
        }
        sum_cells(set, true, &c);
        add_markdown_row(out, set, &c);
        lap_report_set_sentence(set, true, &line);
        add_markdown_line(out, &line);
        add_spread(set, &line);
        add_markdown_line(out, &line);
        for (size_t i = 0; i < set->count; i++) {
            if (set->members[i].ok) continue;
            add_failed(&set->members[i], set->fleet, &line);
            add_markdown_line(out, &line);
        }
    }
}
