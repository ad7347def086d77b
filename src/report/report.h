/* What every renderer is given. Renderers only render: each value is in the rows already, and one
 * that is absent there is shown as absent (null, an empty field, "n/a").
 *
 * Each renderer appends to a lap_text; writing it somewhere is src/report/output.h. Nothing here
 * depends on the locale except the width of characters in the table (LC_CTYPE).
 */
#ifndef LAP_REPORT_REPORT_H
#define LAP_REPORT_REPORT_H

#include "base/text.h"
#include "measure/sets.h"
#include "report/host.h"

#define LAP_SCHEMA "warmlap/1"

typedef struct lap_report_setting {
    const char *section, *key, *value; /* the effective value, as text */
} lap_report_setting;

typedef struct lap_report_library {
    const char *name, *version;
} lap_report_library;

/* A document. Everything is borrowed. */
typedef struct lap_report {
    const lap_host_info *host;
    const lap_report_setting *settings; /* those of one section need not be neighbours */
    size_t setting_count;
    const lap_report_library *libraries;
    size_t library_count;
    const char *run_id;        /* from lap_report_run_id; NULL or "": unknown */
    const char *started;       /* from lap_report_time */
    const char (*resumed)[32]; /* when the run was taken up again */
    size_t resumed_count;
    bool unfinished; /* rows are still being worked on */
    const lap_row *rows;
    size_t row_count;
    const lap_set *sets; /* rows at the same time, added up */
    size_t set_count;
    const char *host_name; /* of a fleet's rank; NULL: no fleet */
    size_t rank;
    bool samples; /* put every sample into the JSON document */
} lap_report;

/* Now, as "2026-03-01T12:00:00Z". */
void lap_report_time(char out[32]);
/* A new random UUID: what tells the runs of all machines apart. */
void lap_report_run_id(char out[40]);

/* The result file, ending with a newline. Schema: docs/RESULTS.md. */
lap_status lap_report_json(const lap_report *report, lap_text *out, lap_error *err);

/* RFC 4180: a fixed header, then one record per row and one per sum, CRLF ends; absent values are
 * empty. */
lap_status lap_report_csv(const lap_report *report, lap_text *out, lap_error *err);

/* A Markdown table, one line per row, the reasons and notes beneath, and the sentence. */
lap_status lap_report_markdown(const lap_report *report, lap_text *out, lap_error *err);

#endif
