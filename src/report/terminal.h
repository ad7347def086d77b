/* What may be written to a stream: its width, colours, characters. Reads the environment (NO_COLOR,
 * TERM, COLUMNS) and the locale's LC_CTYPE (the program calls setlocale(LC_CTYPE, "") at start, and
 * never sets LC_NUMERIC).
 */
#ifndef LAP_REPORT_TERMINAL_H
#define LAP_REPORT_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lap_style {
    bool terminal; /* the stream is a terminal */
    bool colour;   /* a terminal, NO_COLOR is not set (or empty), TERM is not "dumb" */
    bool utf8;     /* characters beyond ASCII may be written */
    size_t width;  /* columns; 100 when it is not a terminal, else between 40 and 100 */
} lap_style;

/* The widest that any table gets. */
enum { LAP_TABLE_WIDTH = 100 };

/* fd: 1 or 2 in practice. */
void lap_style_query(int fd, lap_style *out);

#endif
