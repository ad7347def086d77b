/* Sentences a person can quote. They say what was measured, through what, and whether it was
 * verified; nothing in them is computed here. */
#include "report/format.h"
#include "report/table.h"

#include "net/op.h"

#include <string.h>

static void add_failure(const lap_row *row, lap_text *out) {
    char api[64];
    lap_format_api(api, sizeof api, &row->device);
    lap_text_addf(out, "%s through %s has no result for %s (%dx%d, %s, batch %llu): %s: %s.",
                  row->device.name, api, lap_net_title(row->network), row->height, row->width,
                  row->precision, (unsigned long long)row->batch, lap_row_status_name(row->status),
                  lap_row_reason(row));
}

static void add_latency(const lap_row *row, bool utf8, lap_text *out) {
    const lap_stats *s = &row->latency.stats;
    char median[24], deviation[24], rate[32];
    lap_format_ms(median, sizeof median, s->p50.value);
    lap_text_addf(out, " in %s ms", median);
    if (s->std.has) {
        lap_format_fixed(deviation, sizeof deviation, lap_ms_decimals(s->p50.value),
                         s->std.value * 1e3);
        lap_text_addf(out, " %s %s", utf8 ? "±" : "+-", deviation);
    }
    if (row->fps.has) {
        lap_format_rate(rate, sizeof rate, row->fps.value, true);
        lap_text_addf(out, " (%s images/s)", rate);
    }
    if (row->latency.clock == LAP_CLOCK_WALL) lap_text_add(out, " by the host's clock");
}

static void add_verified(const lap_row_verified *v, lap_text *out) {
    char error[32];
    if (!v->has || !v->passed) {
        lap_text_add(out, ", not verified");
        return;
    }
    lap_text_add(out, ", verified");
    if (!v->logits_rel_l2.has) return;
    lap_format_double(error, sizeof error, 2, v->logits_rel_l2.value);
    lap_text_addf(out, " to %s", error);
}

static void add_throughput(const lap_throughput *t, lap_text *out) {
    char rate[32];
    lap_format_rate(rate, sizeof rate, t->images_per_s.value, true);
    lap_text_addf(out, "throughput %s images/s at batch %llu", rate, (unsigned long long)t->batch);
}

/* latency and throughput are rows of one route; either may be without its value. */
static void add_sentence(const lap_row *row, const lap_row *best, bool utf8, lap_text *out) {
    char api[64];
    if (row->status != LAP_ROW_OK) {
        add_failure(row, out);
        return;
    }
    bool timed = row->latency.has && row->latency.stats.p50.has;
    bool fast = best && best->throughput.images_per_s.has;
    lap_format_api(api, sizeof api, &row->device);
    lap_text_addf(out, "%s through %s runs %s (%dx%d, %s", row->device.name, api,
                  lap_net_title(row->network), row->height, row->width, row->precision);
    if (timed || !fast) lap_text_addf(out, ", batch %llu", (unsigned long long)row->batch);
    lap_text_add(out, ")");
    if (timed) add_latency(row, utf8, out);
    add_verified(&row->verified, out);
    if (fast) {
        lap_text_add(out, "; ");
        add_throughput(&best->throughput, out);
    }
    lap_text_add(out, ".");
}

void lap_report_sentence(const lap_row *row, bool utf8, lap_text *out) {
    add_sentence(row, row, utf8, out);
}

static bool same_case(const lap_row *a, const lap_row *b) {
    return strcmp(a->device.selector, b->device.selector) == 0 &&
           strcmp(a->network, b->network) == 0 && strcmp(a->precision, b->precision) == 0 &&
           a->height == b->height && a->width == b->width;
}

/* Which rows speak for rows[first]'s route: fills row and best. */
static void choose(const lap_report *report, size_t first, const lap_row **row,
                   const lap_row **best) {
    const lap_row *rows = report->rows, *ok = NULL;
    *row = *best = NULL;
    for (size_t i = first; i < report->row_count; i++) {
        if (!same_case(&rows[first], &rows[i]) || rows[i].status != LAP_ROW_OK) continue;
        if (rows[i].concurrent.set > 0) continue; /* sets have a sentence of their own */
        if (!ok) ok = &rows[i];
        if (!*row && rows[i].latency.has) *row = &rows[i];
        lap_optional rate = rows[i].throughput.images_per_s;
        if (rate.has && (!*best || rate.value > (*best)->throughput.images_per_s.value))
            *best = &rows[i];
    }
    if (!*row) *row = *best ? *best : ok ? ok : &rows[first];
}

void lap_report_sentences(const lap_report *report, bool utf8, lap_text *out) {
    for (size_t i = 0; i < report->row_count; i++) {
        bool told = report->rows[i].concurrent.set > 0;
        for (size_t k = 0; k < i && !told; k++)
            told = same_case(&report->rows[k], &report->rows[i]);
        if (told) continue;
        const lap_row *row, *best;
        choose(report, i, &row, &best);
        lap_text one = {0};
        add_sentence(row, best, utf8, &one);
        if (one.failed) out->failed = true;
        /* One line each, whatever a reason holds. */
        if (one.data) lap_text_clean(one.data);
        lap_text_addf(out, "%s\n", lap_text_get(&one));
        lap_text_free(&one);
    }
}
