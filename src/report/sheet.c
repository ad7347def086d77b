/* Fitting a table to a width (see sheet.h). libsmartcols aligns and colours; which text is cut, and
 * that a mark shows it, is decided here, because libsmartcols cuts without one. */
#include "report/sheet.h"
#include "report/format.h"

#include <libsmartcols.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 1 }; /* blanks between columns */

typedef struct sheet_row {
    char *cells[LAP_SHEET_COLUMNS];
    lap_tone tone;
} sheet_row;

struct lap_sheet {
    const lap_sheet_column *columns;
    size_t column_count;
    bool hidden[LAP_SHEET_COLUMNS];
    size_t width[LAP_SHEET_COLUMNS];
    sheet_row *rows;
    size_t row_count, row_capacity;
    bool failed;
};

lap_sheet *lap_sheet_new(const lap_sheet_column *columns, size_t count) {
    lap_sheet *sheet = count <= LAP_SHEET_COLUMNS ? calloc(1, sizeof *sheet) : NULL;
    if (!sheet) return NULL;
    sheet->columns = columns;
    sheet->column_count = count;
    return sheet;
}

void lap_sheet_free(lap_sheet *sheet) {
    if (!sheet) return;
    for (size_t r = 0; r < sheet->row_count; r++)
        for (size_t c = 0; c < sheet->column_count; c++)
            free(sheet->rows[r].cells[c]);
    free(sheet->rows);
    free(sheet);
}

void lap_sheet_hide(lap_sheet *sheet, size_t column) {
    if (sheet && column < sheet->column_count) sheet->hidden[column] = true;
}

void lap_sheet_add(lap_sheet *sheet, const char *const *cells, lap_tone tone) {
    if (!sheet || sheet->failed) return;
    if (sheet->row_count == sheet->row_capacity) {
        size_t more = sheet->row_capacity ? sheet->row_capacity * 2 : 16;
        sheet_row *rows = realloc(sheet->rows, more * sizeof *rows);
        if (!rows) {
            sheet->failed = true;
            return;
        }
        sheet->rows = rows;
        sheet->row_capacity = more;
    }
    sheet_row *row = &sheet->rows[sheet->row_count++];
    *row = (sheet_row){.tone = tone};
    for (size_t c = 0; c < sheet->column_count; c++) {
        size_t n = strlen(cells[c]) + 1;
        row->cells[c] = malloc(n);
        if (row->cells[c])
            memcpy(row->cells[c], cells[c], n);
        else
            sheet->failed = true;
    }
}

/* ---- fitting -------------------------------------------------------------------------------- */

static void natural_widths(lap_sheet *sheet, bool utf8) {
    for (size_t c = 0; c < sheet->column_count; c++) {
        sheet->width[c] = lap_line_width(sheet->columns[c].header);
        for (size_t r = 0; r < sheet->row_count; r++) {
            lap_line_clean(sheet->rows[r].cells[c], utf8);
            size_t width = lap_line_width(sheet->rows[r].cells[c]);
            if (width > sheet->width[c]) sheet->width[c] = width;
        }
    }
}

static size_t total_width(const lap_sheet *sheet) {
    size_t total = 0;
    for (size_t c = 0; c < sheet->column_count; c++)
        if (!sheet->hidden[c]) total += sheet->width[c] + (total ? GAP : 0);
    return total;
}

/* Take one column's width from the widest that may still be cut; false when none may. */
static bool shrink(lap_sheet *sheet) {
    size_t widest = LAP_SHEET_COLUMNS;
    for (size_t c = 0; c < sheet->column_count; c++) {
        size_t least = sheet->columns[c].least;
        size_t header = lap_line_width(sheet->columns[c].header); /* headers are not cut */
        if (sheet->hidden[c] || least == 0) continue;
        if (sheet->width[c] <= least || sheet->width[c] <= header) continue;
        if (widest == LAP_SHEET_COLUMNS || sheet->width[c] > sheet->width[widest]) widest = c;
    }
    if (widest == LAP_SHEET_COLUMNS) return false;
    sheet->width[widest]--;
    return true;
}

static bool drop(lap_sheet *sheet) {
    size_t which = LAP_SHEET_COLUMNS;
    int highest = 0;
    for (size_t c = 0; c < sheet->column_count; c++) {
        if (sheet->hidden[c] || sheet->columns[c].drop <= highest) continue;
        highest = sheet->columns[c].drop;
        which = c;
    }
    if (which == LAP_SHEET_COLUMNS) return false;
    sheet->hidden[which] = true;
    return true;
}

static void fit(lap_sheet *sheet, size_t width) {
    while (total_width(sheet) > width) {
        if (!shrink(sheet) && !drop(sheet)) return;
    }
}

static void cut_cells(lap_sheet *sheet, bool utf8) {
    for (size_t r = 0; r < sheet->row_count; r++)
        for (size_t c = 0; c < sheet->column_count; c++) {
            char *cell = sheet->rows[r].cells[c];
            size_t size = strlen(cell) + 5;
            if (lap_line_width(cell) <= sheet->width[c]) continue;
            char *cut = malloc(size);
            if (!cut) {
                sheet->failed = true;
                return;
            }
            lap_line_cut(cell, sheet->width[c], utf8, cut, size);
            free(cell);
            sheet->rows[r].cells[c] = cut;
        }
}

/* ---- printing ------------------------------------------------------------------------------- */

static const char *tone_colour(lap_tone tone) {
    static const char *const colours[] = {NULL, "green", "red", "darkgray"};
    return colours[tone];
}

/* 0 or a negative libsmartcols error. */
static int fill(struct libscols_table *table, const lap_sheet *sheet) {
    for (size_t c = 0; c < sheet->column_count; c++) {
        if (sheet->hidden[c]) continue;
        int flags = sheet->columns[c].right ? SCOLS_FL_RIGHT : 0;
        struct libscols_column *column =
            scols_table_new_column(table, sheet->columns[c].header, (double)sheet->width[c], flags);
        if (!column) return -1;
    }
    for (size_t r = 0; r < sheet->row_count; r++) {
        struct libscols_line *line = scols_table_new_line(table, NULL);
        if (!line) return -1;
        size_t at = 0;
        for (size_t c = 0; c < sheet->column_count; c++) {
            if (sheet->hidden[c]) continue;
            int rc = scols_line_set_data(line, at++, sheet->rows[r].cells[c]);
            if (rc) return rc;
        }
        const char *colour = tone_colour(sheet->rows[r].tone);
        if (colour) scols_line_set_color(line, colour);
    }
    return 0;
}

/* libsmartcols pads the last column; nobody needs blanks at the end of a line. */
static void add_trimmed(lap_text *out, const char *text) {
    while (*text) {
        size_t n = strcspn(text, "\n"), kept = n;
        while (kept > 0 && text[kept - 1] == ' ')
            kept--;
        lap_text_addn(out, text, kept);
        lap_text_add(out, "\n");
        text += n + (text[n] == '\n');
    }
}

lap_status lap_sheet_print(lap_sheet *sheet, const lap_style *style, lap_text *out,
                           lap_error *err) {
    if (sheet && !sheet->failed) {
        natural_widths(sheet, style->utf8);
        fit(sheet, style->width);
        cut_cells(sheet, style->utf8);
    }
    struct libscols_table *table = sheet && !sheet->failed ? scols_new_table() : NULL;
    char *text = NULL;
    int rc = -1;
    if (table) {
        scols_table_enable_colors(table, style->colour);
        scols_table_set_termforce(table, SCOLS_TERMFORCE_ALWAYS);
        scols_table_set_termwidth(table, style->width);
        scols_table_enable_noencoding(table, 1); /* cleaned above */
        rc = fill(table, sheet);
        if (rc == 0) rc = scols_print_table_to_string(table, &text);
        scols_unref_table(table);
    }
    if (rc == 0 && text) add_trimmed(out, text);
    free(text);
    if (rc != 0 || out->failed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table");
    return LAP_OK;
}
