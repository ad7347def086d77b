/* A table for people and for programs at once: every cell has a text to read and a value. Renders
 * only. */
#ifndef LAP_HISTORY_GRID_H
#define LAP_HISTORY_GRID_H

#include "measure/stats.h"
#include "report/sheet.h"
#include <stdint.h>

typedef struct lap_grid_column {
    const char *key; /* in CSV and JSON */
    lap_sheet_column shown;
} lap_grid_column;

typedef struct lap_grid lap_grid;

/* columns is static, at most LAP_SHEET_COLUMNS. NULL on a lack of memory; the calls accept that. */
lap_grid *lap_grid_new(const lap_grid_column *columns, size_t count);
/* Leave a column out of the table for people. */
void lap_grid_hide(lap_grid *grid, size_t column);
void lap_grid_row(lap_grid *grid, lap_tone tone);
/* The next cell of the row: shown is for people, NULL for what the value says itself. */
void lap_grid_text(lap_grid *grid, const char *value, const char *shown);
void lap_grid_real(lap_grid *grid, lap_optional value, const char *shown);
void lap_grid_count(lap_grid *grid, uint64_t value, const char *shown); /* 0 is absent */

lap_status lap_grid_table(const lap_grid *grid, const lap_style *style, lap_text *out,
                          lap_error *err);
lap_status lap_grid_csv(const lap_grid *grid, lap_text *out, lap_error *err);
/* A list of objects. */
lap_status lap_grid_json(const lap_grid *grid, lap_text *out, lap_error *err);
void lap_grid_free(lap_grid *grid);

#endif
