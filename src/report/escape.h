/* Texts from outside made harmless for one kind of document each. Shared by every renderer.
 *
 * All first clean the text as lap_text_clean does: one line, no control characters, none that
 * change its direction, bytes that are not UTF-8 become '?'. CSV keeps blanks at the ends. */
#ifndef LAP_REPORT_ESCAPE_H
#define LAP_REPORT_ESCAPE_H

#include "base/text.h"

/* A function that appends text, escaped. */
typedef void lap_escape(lap_text *out, const char *text);

/* Neither leaves a table's cell nor becomes markup, raw HTML included. */
lap_escape lap_escape_markdown;
/* For element content and for attributes in double quotes. */
lap_escape lap_escape_html;
/* For running text and for cells of a tabular. */
lap_escape lap_escape_latex;

/* One field of RFC 4180, in quotes where it needs them. NULL is the empty field. A text that a
 * spreadsheet would take for a formula (it begins with = + - or @ and is no number) gets an
 * apostrophe before it. */
void lap_escape_csv(lap_text *out, const char *text);

#endif
