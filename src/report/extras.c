/* Lines about where the time goes, beneath the tables. Renders only. */
#include "report/format.h"
#include "report/table.h"

#include <inttypes.h>
#include <stdio.h>

static const lap_style plain_style = {.width = LAP_TABLE_WIDTH};

static void add_line(lap_text *out, lap_text *line, const lap_style *style) {
    if (line->data) lap_line_clean(line->data, style->utf8);
    lap_line_wrap(out, lap_text_get(line), 4, style->width);
    if (line->failed) out->failed = true;
    lap_text_free(line);
}

static void add_ms(lap_text *line, lap_optional seconds) {
    char text[32] = "n/a";
    if (seconds.has) lap_format_ms(text, sizeof text, seconds.value);
    lap_text_addf(line, "%s ms", text);
}

static void add_si(lap_text *line, lap_optional value, const char *unit) {
    char text[32] = "n/a";
    if (value.has) lap_format_si(text, sizeof text, value.value);
    lap_text_addf(line, "%s%s", text, value.has ? unit : "");
}

static void add_rate(lap_text *line, lap_optional rate) {
    char text[32] = "n/a";
    if (rate.has) lap_format_rate(text, sizeof text, rate.value, false);
    lap_text_add(line, text);
}

void lap_report_ceilings(const lap_row *row, const lap_style *style, lap_text *out) {
    const lap_layer_sum *s = &row->layer_sum;
    const lap_ceilings *c = &row->ceilings;
    if (!style) style = &plain_style;
    lap_text line = {0};
    lap_text_add(&line, "sum of the layers ");
    add_ms(&line, s->sum_s);
    lap_text_add(&line, ", their pass with events between layers ");
    add_ms(&line, s->pass_s);
    lap_text_add(&line, ", the whole without events ");
    add_ms(&line, s->whole_s);
    if (s->difference_s.has && s->whole_s.has && s->whole_s.value > 0)
        lap_text_addf(&line, " (the sum is %+.1f %% off)",
                      s->difference_s.value / s->whole_s.value * 100);
    add_line(out, &line, style);
    if (!c->has) return;
    line = (lap_text){0};
    lap_text_add(&line, "Roof: share of the least time that the ceilings allow. Measured ceilings");
    lap_text_add(&line, c->stored ? " (the best that was seen with this driver): " : ": ");
    for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
        if (!c->flops_per_s[p].has) continue;
        add_si(&line, c->flops_per_s[p], "FLOP/s ");
        lap_text_addf(&line, "%s, ", lap_precision_name((lap_precision)p));
    }
    lap_text_add(&line, "memory ");
    add_si(&line, c->memory_bytes_per_s, "B/s");
    lap_text_add(&line, ", last-level cache ");
    add_si(&line, c->cache_bytes_per_s, "B/s");
    lap_text_add(&line, ". Kernels that need fewer multiplications than are counted (Winograd) can "
                        "be above 100 %, and so can layers that mostly read from the cache, whose "
                        "ceiling is a copy's.");
    add_line(out, &line, style);
}

static void add_copy(lap_text *line, const char *what, const lap_copy_time *pageable,
                     const lap_copy_time *pinned) {
    lap_text_addf(line, "%s ", what);
    add_ms(line, pageable->median_s);
    lap_text_add(line, " pageable (");
    add_si(line, pageable->bytes_per_s, "B/s");
    lap_text_add(line, "), ");
    add_ms(line, pinned->median_s);
    lap_text_add(line, " pinned (");
    add_si(line, pinned->bytes_per_s, "B/s");
    lap_text_add(line, ")");
}

static void add_where(const lap_row *row, const char *who, const lap_style *style, lap_text *out) {
    const lap_copies *c = &row->copies;
    if (!c->has) return;
    lap_text line = {0};
    lap_text_addf(&line, "%s: where the time goes: ", who);
    add_copy(&line, "upload", &c->upload_pageable, &c->upload_pinned);
    lap_text_add(&line, "; submission ");
    add_ms(&line, row->latency.submit.p50);
    lap_text_add(&line, "; compute ");
    add_ms(&line, row->latency.stats.p50);
    lap_text_addf(&line, " (%s cache); ", row->cache[0] ? row->cache : "hot");
    add_copy(&line, "download", &c->download_pageable, &c->download_pinned);
    if (c->reason[0]) lap_text_addf(&line, "; pinned: %s", c->reason);
    add_line(out, &line, style);
}

static void add_batches(const lap_row *row, const char *who, const lap_style *style,
                        lap_text *out) {
    const lap_throughput *t = &row->throughput;
    if (!t->has || t->best_batch == 0) return;
    lap_text line = {0};
    lap_text_addf(&line,
                  "%s: batches: fastest %" PRIu64 ", knee (97 %% of it) %" PRIu64
                  ", largest that ran %" PRIu64 "%s; the search ended: %s",
                  who, t->best_batch, t->knee_batch, t->largest_batch,
                  t->largest_known ? "" : " (larger ones were not tried)", t->ended);
    add_line(out, &line, style);
}

static void add_pipeline(const lap_row *row, const char *who, const lap_style *style,
                         lap_text *out) {
    const lap_pipeline *p = &row->pipeline;
    if (!p->has) return;
    lap_text line = {0};
    lap_text_addf(&line, "%s: end to end at batch %" PRIu64 ": ", who, p->batch);
    add_rate(&line, p->images_per_s);
    lap_text_add(&line, " images/s with copies beside compute, ");
    add_rate(&line, p->serial_images_per_s);
    lap_text_add(&line, " one after the other, ");
    add_rate(&line, p->compute_images_per_s);
    lap_text_addf(&line, " without copies (%s host memory)", p->pinned ? "pinned" : "pageable");
    if (p->reason[0]) lap_text_addf(&line, "; %s", p->reason);
    add_line(out, &line, style);
}

static void add_streams(const lap_row *row, const char *who, const lap_style *style,
                        lap_text *out) {
    for (size_t i = 0; i < row->streams.count; i++) {
        const lap_stream_point *p = &row->streams.points[i];
        lap_text line = {0};
        lap_text_addf(&line, "%s: %" PRIu64 " queue%s, batch %" PRIu64 ": ", who, p->streams,
                      p->streams == 1 ? "" : "s at once", p->batch);
        if (p->status == LAP_OK) {
            add_rate(&line, p->images_per_s);
            lap_text_add(&line, " images/s, a batch takes ");
            add_ms(&line, p->latency_p50_s);
            lap_text_add(&line, " (mean ");
            add_ms(&line, p->latency_mean_s);
            lap_text_add(&line, ", longest ");
            add_ms(&line, p->latency_max_s);
            lap_text_add(&line, ")");
        } else {
            lap_text_add(&line, p->reason);
        }
        add_line(out, &line, style);
    }
}

lap_status lap_report_extras(const lap_report *report, const lap_row *row, const lap_style *style,
                             lap_text *out, lap_error *err) {
    char who[200];
    if (!style) style = &plain_style;
    lap_format_row(who, sizeof who, report->rows, report->row_count, row);
    if (row->concurrent.set > 0) return LAP_OK; /* what is here is of the device alone */
    add_where(row, who, style, out);
    add_batches(row, who, style, out);
    add_pipeline(row, who, style, out);
    add_streams(row, who, style, out);
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
}
