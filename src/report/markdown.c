/* A Markdown table of the rows, the reasons and notes beneath, and sentences to quote. Everything
 * that came from outside is escaped: it can neither leave its cell nor become markup. */
#include "report/escape.h"
#include "report/format.h"
#include "report/report.h"
#include "report/sets.h"
#include "report/table.h"
#include "report/terminal.h"

#include <string.h>

static void add_cell(lap_text *out, const char *s) {
    lap_text_add(out, " ");
    lap_escape_markdown(out, s[0] ? s : "-");
    lap_text_add(out, " |");
}

static void add_row(lap_text *out, const lap_row *row) {
    lap_cells c;
    lap_cells_fill(row, true, &c);
    const char *const cells[] = {c.device,   c.route,      c.network, c.size,       c.precision,
                                 c.batch,    c.latency_ms, c.fps,     c.throughput, c.flops_per_s,
                                 c.verified, c.verdict,    c.status};
    lap_text_add(out, "|");
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        add_cell(out, cells[i]);
    lap_text_add(out, "\n");
}

static void add_remarks(lap_text *out, const lap_report *report) {
    bool any = false;
    for (size_t i = 0; i < report->row_count; i++) {
        const lap_row *row = &report->rows[i];
        size_t remarks = row->note_count + (row->status != LAP_ROW_OK);
        for (size_t k = 0; k < remarks; k++) {
            size_t note = row->status != LAP_ROW_OK ? k - 1 : k;
            bool reason = row->status != LAP_ROW_OK && k == 0;
            if (!any) lap_text_add(out, "\n");
            any = true;
            char who[200];
            lap_format_row(who, sizeof who, report->rows, report->row_count, row);
            lap_text_add(out, "- ");
            lap_escape_markdown(out, who);
            lap_text_add(out, ": ");
            if (reason) lap_text_addf(out, "%s: ", lap_row_status_name(row->status));
            lap_escape_markdown(out, reason ? lap_row_reason(row) : row->notes[note]);
            lap_text_add(out, "\n");
        }
    }
}

/* Escapes one line (which is cut from what follows); what follows, NULL at the end. */
static char *add_line(lap_text *out, char *line) {
    char *end = strchr(line, '\n');
    if (end) *end = '\0';
    lap_escape_markdown(out, line);
    lap_text_add(out, "\n");
    return end ? end + 1 : NULL;
}

static void add_layer(lap_text *out, const lap_layer *l) {
    lap_layer_cells c;
    lap_layer_cells_fill(l, &c);
    const char *const cells[] = {l->name,       l->kernel,     c.flops,     c.bytes, c.time_ms,
                                 c.flops_per_s, c.bytes_per_s, c.intensity, c.share, c.bound};
    lap_text_add(out, "|");
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        add_cell(out, cells[i]);
    lap_text_add(out, "\n");
}

/* A table for each row whose layers were timed. */
static void add_layers(lap_text *out, const lap_row *row) {
    static const lap_style style = {.utf8 = true, .width = 4000}; /* lines as long as they are */
    lap_cells c;
    lap_cells_fill(row, true, &c);
    lap_text_add(out, "\n### Layers: ");
    const char *const title[] = {c.device, c.route, c.network, c.size, c.precision};
    for (size_t i = 0; i < sizeof title / sizeof title[0]; i++) {
        lap_escape_markdown(out, title[i]);
        lap_text_add(out, ", ");
    }
    lap_text_addf(out, "batch %s", c.batch);
    lap_text_add(out, "\n\nFLOPs are of one image; bytes, times and rates of the batch.\n\n"
                      "| Layer | Kernel | FLOPs | Bytes | Time (ms) | FLOP/s | B/s | FLOP/B | "
                      "Share of the roofline | Bound by |\n"
                      "|---|---|--:|--:|--:|--:|--:|--:|--:|---|\n");
    for (size_t i = 0; i < row->layer_count; i++)
        add_layer(out, &row->layers[i]);
    lap_layer total = lap_layer_total(row);
    add_layer(out, &total);
    lap_text below = {0};
    lap_report_ceilings(row, &style, &below);
    lap_text_add(out, "\n");
    for (char *line = below.data; line && *line;)
        line = add_line(out, line);
    if (below.failed) out->failed = true;
    lap_text_free(&below);
}

lap_status lap_report_markdown(const lap_report *report, lap_text *out, lap_error *err) {
    lap_text_add(out,
                 "| Device | Route | Network | Size | Precision | Batch | Latency (ms, median "
                 "± std) | FPS | Throughput (images/s @ batch) | FLOP/s | Verified | Verdict | "
                 "Status |\n|---|---|---|---|---|--:|--:|--:|--:|--:|--:|---|---|\n");
    for (size_t i = 0; i < report->row_count; i++)
        add_row(out, &report->rows[i]);
    add_remarks(out, report);
    lap_report_sets_markdown(report, out);
    lap_text sentences = {0};
    lap_report_sentences(report, true, &sentences);
    for (char *line = sentences.data; line && *line;) {
        lap_text_add(out, "\n"); /* a paragraph each */
        line = add_line(out, line);
    }
    if (sentences.failed) out->failed = true;
    lap_text_free(&sentences);
    for (size_t i = 0; i < report->row_count; i++)
        if (report->rows[i].layer_count > 0) add_layers(out, &report->rows[i]);
    if (out->failed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the Markdown document");
    return LAP_OK;
}
