/* A report: one page of HTML that needs nothing else and can be mailed. Tables are in the page;
 * charts are drawn from its data by Chart.js, which is embedded where the build found it.
 *
 * Texts from documents are data: in the page they are escaped, for the charts they are JSON in
 * which no '<' can end the element. The page's content security policy names its own scripts by
 * their hashes and allows nothing else, connections least of all. */
#ifndef LAP_PAGE_PAGE_H
#define LAP_PAGE_PAGE_H

#include "compare/compare.h"
#include "page/spans.h"

/* Something embedded: its text, and its SHA-256 as hexadecimal digits. */
typedef struct lap_page_asset {
    const char *text;
    size_t length; /* 0: the build had none */
    const char *sha256;
} lap_page_asset;

typedef struct lap_page_assets {
    lap_page_asset style, script, chart; /* ours, ours, Chart.js */
} lap_page_assets;

/* What this program was built with. */
extern const lap_page_assets lap_page_embedded;

typedef struct lap_page_input {
    /* Loaded whole; those that the comparison calls duplicates are left out. */
    const lap_comparison *comparison;
    const lap_spans_document *const *spans;
    size_t spans_count;
    const lap_page_assets *assets;
    bool charts;       /* false: tables only, although there is Chart.js */
    const char *title; /* of the page */
} lap_page_input;

/* LAP_E_FORMAT when a document has a value of the wrong type, LAP_E_NOMEM. */
lap_status lap_page_render(const lap_page_input *input, lap_text *out, lap_error *err);

#endif
