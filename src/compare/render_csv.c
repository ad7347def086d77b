/* A comparison as comma-separated values (see render.h). */
#include "compare/render.h"
#include "report/escape.h"

lap_status lap_compare_csv(const lap_comparison *c, const lap_selection *columns, lap_text *out,
                           lap_error *err) {
    lap_text cell = {0};
    for (size_t i = 0; i < columns->count; i++) {
        if (i) lap_text_add(out, ",");
        lap_escape_csv(out, columns->columns[i]->name);
    }
    lap_text_add(out, "\r\n");
    for (size_t r = 0; r < c->line_count; r++) {
        for (size_t i = 0; i < columns->count; i++) {
            cell.length = 0;
            if (cell.data) cell.data[0] = '\0';
            columns->columns[i]->cell(&cell, c, &c->lines[r], true);
            if (i) lap_text_add(out, ",");
            /* A record of one empty field would be an empty line, which is no record. */
            if (columns->count == 1 && cell.length == 0)
                lap_text_add(out, "\"\"");
            else
                lap_escape_csv(out, lap_text_get(&cell));
        }
        lap_text_add(out, "\r\n");
    }
    bool failed = cell.failed || out->failed;
    lap_text_free(&cell);
    return failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the CSV document") : LAP_OK;
}
