/* Tables for the terminal, with libsmartcols: at most `width` columns of it, long names cut with a
 * mark, reasons and notes beneath, a sentence to quote at the end.
 */
#ifndef LAP_REPORT_TABLE_H
#define LAP_REPORT_TABLE_H

#include "report/report.h"
#include "report/terminal.h"

/* Every row; then the reasons of those that are not ok, the notes, and a sentence per device
 * route. style may be NULL: 100 columns, plain ASCII. */
lap_status lap_report_table(const lap_report *report, const lap_style *style, lap_text *out,
                            lap_error *err);

/* The layer table of one row (--layers); an explanation when the row has none. */
lap_status lap_report_layers(const lap_row *row, const lap_style *style, lap_text *out,
                             lap_error *err);

/* Beneath a layer table: the sum of the layers against the whole, and the ceilings that the shares
 * are of. */
void lap_report_ceilings(const lap_row *row, const lap_style *style, lap_text *out);
/* Where the time of one of the report's rows goes: copies, submission, compute; the knee of the
 * batch search, the pipeline and the queues at once. Nothing for a row that has none of it. style
 * as above. */
lap_status lap_report_extras(const lap_report *report, const lap_row *row, const lap_style *style,
                             lap_text *out, lap_error *err);

/* "NVIDIA H200 through CUDA runs ResNet-18 (224x224, fp32, batch 1) in 0.250 ms ± 0.002 (4000
 * images/s), verified to 2.1e-07; throughput 12,000 images/s at batch 256." For a row that is not
 * ok: what happened instead. utf8 chooses "±" or "+-". */
void lap_report_sentence(const lap_row *row, bool utf8, lap_text *out);
/* One line per device route: its first ok row's latency with the best throughput of its rows; where
 * no row is ok, what happened to the first. */
void lap_report_sentences(const lap_report *report, bool utf8, lap_text *out);

#endif
