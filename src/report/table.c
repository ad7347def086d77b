/* The result table and the layer table (see table.h). Chooses columns and lines; every value comes
 * from the rows. */
#include "report/table.h"
#include "report/format.h"
#include "report/sheet.h"

#include <stdio.h>
#include <string.h>

static const lap_style plain_style = {.width = LAP_TABLE_WIDTH};

/* ---- the result table ----------------------------------------------------------------------- */

enum {
    COL_ROUTE,
    COL_DEVICE,
    COL_NETWORK,
    COL_SIZE,
    COL_PRECISION,
    COL_BATCH,
    COL_LATENCY,
    COL_FPS,
    COL_THROUGHPUT,
    COL_FLOPS,
    COL_VERIFIED,
    COL_VERDICT,
    COL_STATUS,
    COL_COUNT
};

static const lap_sheet_column result_columns[COL_COUNT] = {
    [COL_ROUTE] = {"Route", false, 6, 0},
    [COL_DEVICE] = {"Device", false, 10, 4},
    [COL_NETWORK] = {"Network", false, 8, 6},
    [COL_SIZE] = {"Size", false, 9, 5},
    [COL_PRECISION] = {"Prec", false, 0, 7},
    [COL_BATCH] = {"Batch", true, 6, 0},
    [COL_LATENCY] = {"Latency ms", true, 14, 0},
    [COL_FPS] = {"FPS", true, 6, 3},
    [COL_THROUGHPUT] = {"Img/s @ batch", true, 13, 1},
    [COL_FLOPS] = {"FLOP/s", true, 6, 8},
    [COL_VERIFIED] = {"Verified", true, 0, 2},
    [COL_VERDICT] = {"Verdict", false, 0, 1},
    [COL_STATUS] = {"Status", false, 0, 0},
};

static void row_cells(const lap_cells *c, const char **cells) {
    cells[COL_ROUTE] = c->route;
    cells[COL_DEVICE] = c->device;
    cells[COL_NETWORK] = c->network;
    cells[COL_SIZE] = c->size;
    cells[COL_PRECISION] = c->precision;
    cells[COL_BATCH] = c->batch;
    cells[COL_LATENCY] = c->latency_ms;
    cells[COL_FPS] = c->fps;
    cells[COL_THROUGHPUT] = c->throughput;
    cells[COL_FLOPS] = c->flops_per_s;
    cells[COL_VERIFIED] = c->verified;
    cells[COL_VERDICT] = c->verdict;
    cells[COL_STATUS] = c->status;
}

/* Network, size and precision stand above the table where all rows share them. */
static void add_title(const lap_report *report, lap_sheet *sheet, lap_text *out) {
    static const int columns[] = {COL_NETWORK, COL_SIZE, COL_PRECISION};
    const lap_row *rows = report->rows;
    bool same[3] = {true, true, true};
    for (size_t i = 1; i < report->row_count; i++) {
        same[0] = same[0] && strcmp(rows[i].network, rows[0].network) == 0;
        same[1] = same[1] && rows[i].height == rows[0].height && rows[i].width == rows[0].width;
        same[2] = same[2] && strcmp(rows[i].precision, rows[0].precision) == 0;
    }
    lap_cells c;
    lap_cells_fill(&rows[0], false, &c);
    lap_line_clean(c.network, false);
    const char *const texts[] = {c.network, c.size, c.precision};
    bool any = false;
    for (int k = 0; k < 3; k++) {
        if (!same[k]) continue;
        lap_sheet_hide(sheet, (size_t)columns[k]);
        lap_text_addf(out, "%s%s", any ? " " : "", texts[k]);
        any = true;
    }
    if (any) lap_text_add(out, "\n");
}

static unsigned modes_of(const lap_report *report) {
    unsigned modes = 0;
    for (size_t i = 0; i < report->row_count; i++)
        modes |= report->rows[i].modes;
    return modes;
}

/* Where nothing was to be timed, no columns of times. */
static void hide_times(const lap_report *report, lap_sheet *sheet) {
    static const size_t columns[] = {COL_LATENCY, COL_FPS, COL_THROUGHPUT, COL_FLOPS, COL_VERDICT};
    if (modes_of(report) != LAP_MODE_VERIFY) return;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        lap_sheet_hide(sheet, columns[i]);
}

static void add_legend(const lap_report *report, const lap_style *style, lap_text *out) {
    bool concurrent = false;
    for (size_t i = 0; i < report->row_count; i++)
        concurrent = concurrent || report->rows[i].concurrent.others > 0;
    if (concurrent) lap_line_wrap(out, "+N: at the same time as N other devices.", 4, style->width);
    if (modes_of(report) & LAP_MODE_LATENCY)
        lap_line_wrap(out,
                      style->utf8 ? "Latency: median ± standard deviation. FPS: batch / mean."
                                  : "Latency: median +- standard deviation. FPS: batch / mean.",
                      4, style->width);
}

static void add_wrapped(lap_text *out, const char *first, const char *text, size_t indent,
                        const lap_style *style) {
    lap_text clean = {0};
    lap_text_addf(&clean, "%s%s", first, text);
    if (clean.data) lap_line_clean(clean.data, style->utf8);
    lap_line_wrap(out, lap_text_get(&clean), indent, style->width);
    if (clean.failed) out->failed = true;
    lap_text_free(&clean);
}

static void add_remarks(const lap_report *report, const lap_style *style, lap_text *out) {
    bool any = false;
    for (size_t i = 0; i < report->row_count; i++) {
        const lap_row *row = &report->rows[i];
        char first[240], who[200];
        lap_format_row(who, sizeof who, report->rows, report->row_count, row);
        if (!any && (row->status != LAP_ROW_OK || row->note_count > 0)) {
            lap_text_add(out, "\n");
            any = true;
        }
        if (row->status != LAP_ROW_OK) {
            snprintf(first, sizeof first, "%s %s: ", who, lap_row_status_name(row->status));
            add_wrapped(out, first, lap_row_reason(row), 4, style);
        }
        for (size_t k = 0; k < row->note_count; k++) {
            snprintf(first, sizeof first, "%s: ", who);
            add_wrapped(out, first, row->notes[k], 4, style);
        }
    }
}

static void add_sentences(const lap_report *report, const lap_style *style, lap_text *out) {
    lap_text sentences = {0};
    lap_report_sentences(report, style->utf8, &sentences);
    for (char *line = sentences.data; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        lap_text_add(out, "\n");
        add_wrapped(out, "", line, 0, style);
        line = end ? end + 1 : NULL;
    }
    if (sentences.failed) out->failed = true;
    lap_text_free(&sentences);
}

lap_status lap_report_table(const lap_report *report, const lap_style *style, lap_text *out,
                            lap_error *err) {
    if (!style) style = &plain_style;
    if (report->row_count == 0) {
        lap_text_add(out, "no rows: nothing was planned\n");
        return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
    }
    lap_sheet *sheet = lap_sheet_new(result_columns, COL_COUNT);
    add_title(report, sheet, out);
    hide_times(report, sheet);
    for (size_t i = 0; i < report->row_count; i++) {
        lap_cells c;
        const char *cells[COL_COUNT];
        lap_cells_fill(&report->rows[i], style->utf8, &c);
        row_cells(&c, cells);
        lap_row_status status = report->rows[i].status;
        lap_sheet_add(sheet, cells,
                      status == LAP_ROW_OK       ? LAP_TONE_PLAIN
                      : status == LAP_ROW_FAILED ? LAP_TONE_BAD
                                                 : LAP_TONE_DIM);
    }
    lap_status status = lap_sheet_print(sheet, style, out, err);
    lap_sheet_free(sheet);
    LAP_TRY(status);
    add_legend(report, style, out);
    add_remarks(report, style, out);
    add_sentences(report, style, out);
    if (out->failed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table");
    return LAP_OK;
}

/* ---- the layer table ------------------------------------------------------------------------ */

/* FLOPs is work, FLOP/s a rate. */
static const lap_sheet_column layer_columns[] = {
    {"Layer", false, 8, 0}, {"Kind", false, 4, 2},  {"Kernel", false, 8, 3}, {"MACs", true, 0, 4},
    {"FLOPs", true, 0, 0},  {"Bytes", true, 0, 5},  {"Time ms", true, 0, 0}, {"FLOP/s", true, 0, 0},
    {"B/s", true, 0, 1},    {"FLOP/B", true, 0, 6}, {"Roof", true, 0, 0},    {"Bound", false, 0, 7},
};

enum { LAYER_COLUMNS = sizeof layer_columns / sizeof layer_columns[0] };

static void add_layer(lap_sheet *sheet, const lap_layer *l) {
    lap_layer_cells c;
    lap_layer_cells_fill(l, &c);
    const char *const cells[] = {l->name,       l->kind,     l->kernel, c.macs,
                                 c.flops,       c.bytes,     c.time_ms, c.flops_per_s,
                                 c.bytes_per_s, c.intensity, c.share,   c.bound};
    lap_sheet_add(sheet, cells, LAP_TONE_PLAIN);
}

lap_status lap_report_layers(const lap_row *row, const lap_style *style, lap_text *out,
                             lap_error *err) {
    if (!style) style = &plain_style;
    lap_cells c;
    char title[LAP_DEVICE_NAME + 256];
    lap_cells_fill(row, style->utf8, &c);
    snprintf(title, sizeof title, "%s %s: %s %s %s, batch %s", c.route, c.device, c.network, c.size,
             c.precision, c.batch);
    add_wrapped(out, "", title, 4, style);
    if (row->layer_count == 0) {
        add_wrapped(out, "  ", "no layer was timed in this row", 2, style);
        return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
    }
    lap_text_add(out, "MACs and FLOPs are of one image; bytes, times and rates of the batch.\n");
    lap_sheet *sheet = lap_sheet_new(layer_columns, LAYER_COLUMNS);
    for (size_t i = 0; i < row->layer_count; i++)
        add_layer(sheet, &row->layers[i]);
    lap_layer total = lap_layer_total(row);
    add_layer(sheet, &total);
    lap_status status = lap_sheet_print(sheet, style, out, err);
    lap_sheet_free(sheet);
    LAP_TRY(status);
    lap_report_ceilings(row, style, out);
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
}
