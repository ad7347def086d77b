/* A Markdown table of the rows, the reasons and notes beneath, and sentences to quote. Everything
 * that came from outside is escaped: it can neither leave its cell nor become markup. */
#include "report/escape.h"
#include "report/format.h"
#include "report/report.h"
#include "report/table.h"

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
            lap_text_add(out, "- ");
            lap_escape_markdown(out, row->device.selector);
            lap_text_addf(out, ", batch %llu: ", (unsigned long long)row->batch);
            if (reason) lap_text_addf(out, "%s: ", lap_row_status_name(row->status));
            lap_escape_markdown(out, reason ? lap_row_reason(row) : row->notes[note]);
            lap_text_add(out, "\n");
        }
    }
}

lap_status lap_report_markdown(const lap_report *report, lap_text *out, lap_error *err) {
    lap_text_add(out,
                 "| Device | Route | Network | Size | Precision | Batch | Latency (ms, median "
                 "± std) | FPS | Throughput (images/s @ batch) | FLOP/s | Verified | Verdict | "
                 "Status |\n|---|---|---|---|---|--:|--:|--:|--:|--:|--:|---|---|\n");
    for (size_t i = 0; i < report->row_count; i++)
        add_row(out, &report->rows[i]);
    add_remarks(out, report);
    lap_text sentences = {0};
    lap_report_sentences(report, true, &sentences);
    for (char *line = sentences.data; line && *line;) {
        char *end = strchr(line, '\n');
        if (end) *end = '\0';
        lap_text_add(out, "\n"); /* a paragraph each */
        lap_escape_markdown(out, line);
        lap_text_add(out, "\n");
        line = end ? end + 1 : NULL;
    }
    if (sentences.failed) out->failed = true;
    lap_text_free(&sentences);
    if (out->failed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the Markdown document");
    return LAP_OK;
}
