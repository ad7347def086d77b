/* A comparison as a document. Renderers only render; each appends to a lap_text, ends with a
 * newline and makes every text from a file harmless in its own way. */
#ifndef LAP_COMPARE_RENDER_H
#define LAP_COMPARE_RENDER_H

#include "compare/columns.h"
#include "report/terminal.h"

/* The terminal's table, at most style->width wide; style may be NULL (100 columns, plain ASCII).
 * At most 20 columns: LAP_SHEET_COLUMNS. */
lap_status lap_compare_table(const lap_comparison *c, const lap_selection *columns,
                             const lap_style *style, lap_text *out, lap_error *err);
lap_status lap_compare_markdown(const lap_comparison *c, const lap_selection *columns,
                                lap_text *out, lap_error *err);
/* One page that needs nothing else; no script. */
lap_status lap_compare_html(const lap_comparison *c, const lap_selection *columns, lap_text *out,
                            lap_error *err);
/* A tabular and lists, to be \input into a document in UTF-8; no package is needed. */
lap_status lap_compare_latex(const lap_comparison *c, const lap_selection *columns, lap_text *out,
                             lap_error *err);
/* RFC 4180: a header, one record a line. */
lap_status lap_compare_csv(const lap_comparison *c, const lap_selection *columns, lap_text *out,
                           lap_error *err);
/* Schema warmlap-compare/1 (docs/COMPARE.md): everything, whatever the columns. */
lap_status lap_compare_json(const lap_comparison *c, lap_text *out, lap_error *err);

#endif
