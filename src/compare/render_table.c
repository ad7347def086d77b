/* The comparison on a terminal (see render.h). */
#include "compare/render.h"
#include "compare/words.h"
#include "report/format.h"
#include "report/sheet.h"

#include <string.h>

static const lap_style plain_style = {.width = LAP_TABLE_WIDTH};

static lap_tone tone_of(const lap_line *line) {
    switch (line->judgement) {
    case LAP_JUDGED_FASTER:
        return LAP_TONE_GOOD;
    case LAP_JUDGED_SLOWER:
        return LAP_TONE_BAD;
    case LAP_JUDGED_NOTHING:
        return line->record->ok ? LAP_TONE_DIM : LAP_TONE_BAD;
    default:
        return LAP_TONE_PLAIN;
    }
}

static void add_line(lap_sheet *sheet, const lap_comparison *c, const lap_selection *columns,
                     const lap_line *line, bool utf8, lap_text *out) {
    lap_text cells[LAP_SHEET_COLUMNS] = {0};
    const char *texts[LAP_SHEET_COLUMNS];
    for (size_t i = 0; i < columns->count; i++) {
        columns->columns[i]->cell(&cells[i], c, line, utf8);
        if (cells[i].failed) out->failed = true;
        texts[i] = cells[i].length ? cells[i].data : "-";
    }
    lap_sheet_add(sheet, texts, tone_of(line));
    for (size_t i = 0; i < columns->count; i++)
        lap_text_free(&cells[i]);
}

typedef struct page {
    lap_text *out;
    const lap_style *style;
    bool any;
} page;

static void add_wrapped(void *context, const char *text) {
    page *p = context;
    lap_text clean = {0};
    if (!p->any) lap_text_add(p->out, "\n");
    p->any = true;
    lap_text_add(&clean, text);
    if (clean.data) lap_line_clean(clean.data, p->style->utf8);
    lap_line_wrap(p->out, lap_text_get(&clean), 4, p->style->width);
    if (clean.failed) p->out->failed = true;
    lap_text_free(&clean);
}

static lap_status add_sheet(const lap_comparison *c, const lap_selection *columns,
                            const lap_style *style, lap_text *out, lap_error *err) {
    lap_sheet_column shape[LAP_SHEET_COLUMNS];
    for (size_t i = 0; i < columns->count; i++) {
        const lap_column *column = columns->columns[i];
        shape[i] = (lap_sheet_column){column->header, column->right, column->least, column->drop};
    }
    lap_sheet *sheet = lap_sheet_new(shape, columns->count);
    for (size_t i = 0; i < c->line_count; i++)
        add_line(sheet, c, columns, &c->lines[i], style->utf8, out);
    lap_status status = lap_sheet_print(sheet, style, out, err);
    lap_sheet_free(sheet);
    return status;
}

lap_status lap_compare_table(const lap_comparison *c, const lap_selection *columns,
                             const lap_style *style, lap_text *out, lap_error *err) {
    if (!style) style = &plain_style;
    if (columns->count > LAP_SHEET_COLUMNS)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--columns: %zu columns; a table has at most %d (csv takes all)",
                        columns->count, LAP_SHEET_COLUMNS);
    if (c->line_count == 0) {
        lap_text_add(out, "no rows: nothing to compare\n");
    } else {
        lap_text around = {0};
        page p = {out, style, true};
        lap_words_case(&around, c, columns);
        if (around.length) add_wrapped(&p, lap_text_get(&around));
        lap_status status = add_sheet(c, columns, style, out, err);
        around.length = 0;
        lap_words_legend(&around, c, columns, style->utf8);
        if (around.length) add_wrapped(&p, lap_text_get(&around));
        if (around.failed) out->failed = true;
        lap_text_free(&around);
        LAP_TRY(status);
    }
    for (int topic = 0; topic < LAP_TOPICS; topic++) {
        page p = {out, style, false};
        if (!lap_words_each(c, (lap_topic)topic, style->utf8, add_wrapped, &p)) out->failed = true;
    }
    lap_text summary = {0};
    page p = {out, style, false};
    lap_words_summary(&summary, c);
    add_wrapped(&p, lap_text_get(&summary));
    if (summary.failed) out->failed = true;
    lap_text_free(&summary);
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
}
