/* Private to src/report: a table of texts that is fitted to a width and printed with libsmartcols.
 */
#ifndef LAP_REPORT_SHEET_H
#define LAP_REPORT_SHEET_H

#include "base/text.h"
#include "report/terminal.h"

enum { LAP_SHEET_COLUMNS = 20 };

typedef enum lap_tone { LAP_TONE_PLAIN = 0, LAP_TONE_GOOD, LAP_TONE_BAD, LAP_TONE_DIM } lap_tone;

typedef struct lap_sheet_column {
    const char *header;
    bool right;   /* aligned to the right */
    size_t least; /* may be cut down to this width; 0: never cut */
    int drop;     /* left out where space lacks, highest first; 0: never */
} lap_sheet_column;

typedef struct lap_sheet lap_sheet;

/* columns is static. NULL on a lack of memory; the calls below accept that. */
lap_sheet *lap_sheet_new(const lap_sheet_column *columns, size_t count);
/* One text per column. Every text is cleaned: one line, no control characters. */
void lap_sheet_add(lap_sheet *sheet, const char *const *cells, lap_tone tone);
/* Leave a column out. */
void lap_sheet_hide(lap_sheet *sheet, size_t column);
lap_status lap_sheet_print(lap_sheet *sheet, const lap_style *style, lap_text *out, lap_error *err);
void lap_sheet_free(lap_sheet *sheet);

#endif
