/* Private to src/page: the page being written: sections, tables, figures. Every text that comes
 * from a document goes through here and is escaped here. */
#ifndef LAP_PAGE_CANVAS_H
#define LAP_PAGE_CANVAS_H

#include "page/details.h"
#include "page/page.h"
#include "report/json_build.h"

typedef struct canvas {
    lap_text html;
    builder json;
    json_t *charts; /* data of the figures, in order */
    const lap_page_input *input;
    lap_detail *const *details; /* per document; NULL for a duplicate */
    bool drawn;                 /* there will be charts */
} canvas;

/* ---- texts ---------------------------------------------------------------------------------- */

void canvas_section(canvas *c, const char *id, const char *title, const char *lead);
void canvas_section_end(canvas *c);
void canvas_heading(canvas *c, const char *text);
void canvas_paragraph(canvas *c, const char *class_name, const char *text);
void canvas_plain(canvas *c, const char *text); /* escaped, without an element */
void canvas_item(canvas *c, const char *text);  /* of a list that the caller opens and closes */

/* ---- tables --------------------------------------------------------------------------------- */

/* Headers end with NULL; one that begins with '#' is of a column of numbers. */
void canvas_table(canvas *c, const char *caption, const char *const *headers, bool sortable);
void canvas_row(canvas *c);
void canvas_cell(canvas *c, const char *text); /* "" shows as - */
void canvas_cellf(canvas *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Cells of numbers; absent shows as -. */
void canvas_count(canvas *c, uint64_t value); /* 0 is absent */
void canvas_ms(canvas *c, lap_optional seconds);
/* With so many decimals, down to nanoseconds, that two digits of step can be told. */
void canvas_ms_by(canvas *c, lap_optional seconds, double step);
void canvas_us(canvas *c, lap_optional seconds);
void canvas_rate(canvas *c, lap_optional value);
void canvas_si(canvas *c, lap_optional value);
void canvas_percent(canvas *c, lap_optional share);
void canvas_fixed(canvas *c, int decimals, lap_optional value);
void canvas_label_cell(canvas *c, const lap_record *r);
void canvas_table_end(canvas *c);

/* ---- figures -------------------------------------------------------------------------------- */

/* data becomes the page's. Between figure and figure_end: the figure's table. */
void canvas_figure(canvas *c, const char *kind, const char *title, const char *caption,
                   json_t *data);
void canvas_figure_end(canvas *c);

/* ---- rows ----------------------------------------------------------------------------------- */

/* Walks the rows of all documents that are no duplicates: start with {0}. NULL at the end. */
typedef struct canvas_walk {
    size_t document, row;
} canvas_walk;
const lap_detail *canvas_next(const canvas *c, canvas_walk *at);

/* What makes one chart of several rows: the case without batch, or with it. */
bool canvas_same_case(const lap_record *a, const lap_record *b, bool with_batch);
/* The first row for which `wanted` holds and that has this case. */
typedef bool canvas_wanted(const lap_detail *d);
bool canvas_is_first(const canvas *c, const lap_detail *d, bool with_batch, canvas_wanted *wanted);
/* Is there an earlier row of the same device, route, driver and system? */
bool canvas_seen(const canvas *c, const lap_detail *d);
/* "resnet18 224x224 fp32", "..., batch 1" */
void canvas_case(lap_text *out, const lap_record *r, bool with_batch);
/* "NVIDIA H200 cuda:0", "... cuda:0 +1" at the same time as one other; with host and file where
 * those of another row of this name and case differ. */
void canvas_label(const canvas *c, lap_text *out, const lap_record *r);

enum { CANVAS_SERIES = 8, CANVAS_CHARTS = 12 }; /* in a chart; in a section, of one row each */

/* The sections. */
void section_summary(canvas *c);
void section_speed(canvas *c);
void section_latency(canvas *c);
void section_throughput(canvas *c);
void section_layers(canvas *c);
void section_spans(canvas *c);
void section_sensors(canvas *c);
void section_environment(canvas *c);
void section_configuration(canvas *c);
void section_method(canvas *c);

#endif
