/* Documents and texts of `warmlap spans` and `warmlap pitfalls`. Render only. */
#ifndef LAP_REPORT_LESSONS_H
#define LAP_REPORT_LESSONS_H

#include "measure/elementwise.h"
#include "measure/pitfalls.h"
#include "report/report.h"
#include "report/terminal.h"

/* One device's spans: the same workload in a fresh session without and with warm-up. */
typedef struct lap_spans_row {
    lap_row head; /* device, status, reason */
    uint64_t size[3];
    lap_latency cold, warm;
    uint64_t warmup; /* runs before `warm` */
    lap_elementwise_report check;
} lap_spans_row;

/* One device's mistakes; head also has network, size, batch, precision and verification. */
typedef struct lap_pitfalls_row {
    lap_row head;
    lap_pitfalls pitfalls;
} lap_pitfalls_row;

/* report has everything but rows. Schemas: docs/RESULTS.md. */
lap_status lap_spans_json(const lap_report *report, const lap_spans_row *rows, size_t count,
                          lap_text *out, lap_error *err);
lap_status lap_pitfalls_json(const lap_report *report, const lap_pitfalls_row *rows, size_t count,
                             lap_text *out, lap_error *err);
/* Text for a terminal; style may be NULL. */
lap_status lap_spans_text(const lap_spans_row *row, const lap_style *style, lap_text *out,
                          lap_error *err);
lap_status lap_pitfalls_text(const lap_pitfalls_row *row, const lap_style *style, lap_text *out,
                             lap_error *err);

#endif
