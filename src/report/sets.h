/* Tables of devices at work at the same time. Render only. */
#ifndef LAP_REPORT_SETS_H
#define LAP_REPORT_SETS_H

#include "report/report.h"
#include "report/terminal.h"

/* A table for every set of the report, the sum as its last line, a sentence, and what failed.
 * Nothing for a report without sets. style may be NULL. */
lap_status lap_report_sets(const lap_report *report, const lap_style *style, lap_text *out,
                           lap_error *err);
void lap_report_sets_markdown(const lap_report *report, lap_text *out);

/* The sets as they stand in a result file; NULL on a lack of memory. The caller owns it. */
struct json_t *lap_report_sets_json(const lap_set *sets, size_t count);

/* "2 devices at once run resnet18 (224x224, fp32) at 23456 ± 12 images/s, 0.998 ± 0.002 of what
 * they do alone." */
void lap_report_set_sentence(const lap_set *set, bool utf8, lap_text *out);

#endif
