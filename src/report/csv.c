/* Comma-separated values as RFC 4180 has them: one record per row, a header that never changes
 * with the data, CRLF, quotes where needed. Renders only. */
#include "report/escape.h"
#include "report/format.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

static const char *const header[] = {"status",
                                     "reason",
                                     "backend",
                                     "selector",
                                     "platform",
                                     "device",
                                     "type",
                                     "driver",
                                     "toolchain",
                                     "uuid",
                                     "pci",
                                     "network",
                                     "height",
                                     "width",
                                     "batch",
                                     "precision",
                                     "modes",
                                     "verified",
                                     "logits_rel_l2",
                                     "limit",
                                     "exact_layers",
                                     "real_layers",
                                     "open_s",
                                     "build_s",
                                     "upload_s",
                                     "first_s",
                                     "clock",
                                     "n",
                                     "mean_s",
                                     "std_s",
                                     "min_s",
                                     "p50_s",
                                     "p90_s",
                                     "p95_s",
                                     "p99_s",
                                     "max_s",
                                     "submit_s",
                                     "wall_s",
                                     "device_s",
                                     "fps",
                                     "throughput_search",
                                     "throughput_batch",
                                     "throughput_batches",
                                     "throughput_images_per_s",
                                     "macs",
                                     "flops",
                                     "fvcore_flops",
                                     "flops_per_s",
                                     "notes",
                                     "verdict",
                                     "mad_s",
                                     "mean_ci_low_s",
                                     "mean_ci_high_s",
                                     "p50_ci_low_s",
                                     "p50_ci_high_s",
                                     "outliers",
                                     "drift_relative",
                                     "drift_p",
                                     "comparable",
                                     "passes_per_sample",
                                     "order",
                                     "timer_s",
                                     "empty_device_s",
                                     "empty_wall_s",
                                     "clock_min_mhz",
                                     "clock_max_mhz",
                                     "temperature_c",
                                     "power_w",
                                     "energy_per_image_j",
                                     "throttled_share",
                                     "kind",
                                     "concurrent_others",
                                     "set",
                                     "alone_images_per_s",
                                     "images_per_s_half",
                                     "scaling",
                                     "scaling_half",
                                     "rank",
                                     "host_name"};

enum { COLUMNS = sizeof header / sizeof header[0], SET_COLUMNS = 9 };

/* Fields of one record are added one after the other. */
typedef struct record {
    lap_text *out;
    size_t fields;
} record;

static void add_text(record *r, const char *s) {
    if (r->fields++ > 0) lap_text_add(r->out, ",");
    lap_escape_csv(r->out, s);
}

static void add_real(record *r, lap_optional value) {
    char number[40] = "";
    if (value.has && lap_some(value.value).has)
        lap_format_double(number, sizeof number, LAP_REAL_DIGITS, value.value);
    add_text(r, number);
}

/* Zero means unknown or none. */
static void add_count(record *r, uint64_t value) {
    char number[32] = "";
    if (value) snprintf(number, sizeof number, "%llu", (unsigned long long)value);
    add_text(r, number);
}

static void add_identity(record *r, const lap_row *row) {
    const lap_device_info *d = &row->device;
    char uuid[48], pci[32], modes[64];
    lap_format_uuid(uuid, sizeof uuid, d);
    lap_format_pci(pci, sizeof pci, d);
    lap_format_modes(modes, sizeof modes, row->modes, "+");
    add_text(r, lap_row_status_name(row->status));
    add_text(r, lap_row_reason(row));
    add_text(r, d->backend);
    add_text(r, d->selector);
    add_text(r, d->platform);
    add_text(r, d->name);
    add_text(r, lap_device_type_name(d->type));
    add_text(r, d->driver);
    add_text(r, d->toolchain);
    add_text(r, uuid);
    add_text(r, pci);
    add_text(r, row->network);
    add_count(r, row->height > 0 ? (uint64_t)row->height : 0);
    add_count(r, row->width > 0 ? (uint64_t)row->width : 0);
    add_count(r, row->batch);
    add_text(r, row->precision);
    add_text(r, modes);
}

static void add_verified(record *r, const lap_row_verified *v) {
    add_text(r, !v->has ? "" : v->passed ? "yes" : "no");
    add_real(r, v->has ? v->logits_rel_l2 : lap_none());
    add_real(r, v->has ? v->limit : lap_none());
    /* Zero layers is a fact once something was verified. */
    add_real(r, v->has ? lap_some(v->exact_layers) : lap_none());
    add_real(r, v->has ? lap_some(v->real_layers) : lap_none());
}

static void add_latency(record *r, const lap_row *row) {
    const lap_latency *l = &row->latency;
    const lap_stats *s = &l->stats;
    add_text(r, l->has ? lap_clock_kind_name(l->clock) : "");
    add_count(r, s->n);
    add_real(r, s->mean);
    add_real(r, s->std);
    add_real(r, s->min);
    add_real(r, s->p50);
    add_real(r, s->p90);
    add_real(r, s->p95);
    add_real(r, s->p99);
    add_real(r, s->max);
    add_real(r, l->submit.p50);
    add_real(r, l->wall.p50);
    add_real(r, l->device.p50);
    add_real(r, row->fps);
}

static void add_notes(record *r, const lap_row *row) {
    lap_text notes = {0};
    for (size_t i = 0; i < row->note_count; i++)
        lap_text_addf(&notes, "%s%s", i ? "; " : "", row->notes[i]);
    if (notes.failed) r->out->failed = true;
    add_text(r, lap_text_get(&notes));
    lap_text_free(&notes);
}

static void add_interval(record *r, lap_interval i) {
    add_real(r, i.has ? lap_some(i.low) : lap_none());
    add_real(r, i.has ? lap_some(i.high) : lap_none());
}

/* How far the latency can be believed. */
static void add_trust(record *r, const lap_row *row) {
    const lap_latency *l = &row->latency;
    const lap_stats *s = &l->stats;
    const lap_telemetry_summary *t = &row->telemetry;
    lap_optional outliers = lap_some((double)(s->outliers_low + s->outliers_high));
    double timer = lap_floor_resolution(&row->floor);
    add_text(r, lap_verdict_name(row->verdict));
    add_real(r, s->mad);
    add_interval(r, s->mean_ci);
    add_interval(r, s->p50_ci);
    add_real(r, s->has_outliers ? outliers : lap_none());
    add_real(r, s->drift.has ? lap_some(s->drift.relative) : lap_none());
    add_real(r, s->drift.has ? lap_some(s->drift.p) : lap_none());
    add_text(r, !l->has ? "" : l->comparable ? "yes" : "no");
    add_count(r, l->passes);
    add_text(r, !l->has ? "" : l->interleaved ? "interleaved" : "sequential");
    add_real(r, timer > 0 ? lap_some(timer) : lap_none());
    add_real(r, row->floor.device_s);
    add_real(r, row->floor.wall_s);
    add_real(r, t->clock_min_mhz);
    add_real(r, t->clock_max_mhz);
    add_real(r, t->temperature_c);
    add_real(r, t->power_w);
    add_real(r, row->energy_j);
    add_real(r, t->throttled_share);
}

/* The member of a set that a row is; NULL for a row alone. */
static const lap_set_member *member_of(const lap_report *report, size_t index) {
    size_t number = report->rows[index].concurrent.set;
    if (number == 0 || number > report->set_count) return NULL;
    const lap_set *set = &report->sets[number - 1];
    for (size_t i = 0; i < set->count; i++)
        if (set->members[i].row == index) return &set->members[i];
    return NULL;
}

static void add_set_values(record *r, const char *kind, lap_optional others, uint64_t number,
                           lap_margin alone, lap_margin rate, lap_margin scaling) {
    add_text(r, kind);
    add_real(r, others);
    add_count(r, number);
    add_real(r, alone.value);
    add_real(r, rate.half);
    add_real(r, scaling.value);
    add_real(r, scaling.half);
}

/* A sum has what can be added up, and who it is of. */
static void add_sum(lap_text *out, const lap_set *set, size_t number) {
    record r = {.out = out};
    lap_text who = {0};
    size_t counted = set->rated > 0 ? set->rated : set->timed;
    for (size_t i = 0; i < set->count; i++)
        lap_text_addf(&who, "%s%s", i ? "+" : "", set->members[i].selector);
    if (who.failed) out->failed = true;
    for (size_t i = 0; i < COLUMNS - SET_COLUMNS; i++) {
        const char *name = header[i];
        if (strcmp(name, "status") == 0)
            add_text(&r, counted == set->count ? "ok" : "failed");
        else if (strcmp(name, "selector") == 0)
            add_text(&r, lap_text_get(&who));
        else if (strcmp(name, "network") == 0)
            add_text(&r, set->network);
        else if (strcmp(name, "height") == 0)
            add_count(&r, (uint64_t)set->height);
        else if (strcmp(name, "width") == 0)
            add_count(&r, (uint64_t)set->width);
        else if (strcmp(name, "batch") == 0)
            add_count(&r, set->batch);
        else if (strcmp(name, "precision") == 0)
            add_text(&r, set->precision);
        else if (strcmp(name, "fps") == 0)
            add_real(&r, set->fps.value);
        else if (strcmp(name, "throughput_images_per_s") == 0)
            add_real(&r, set->rate.value);
        else
            add_text(&r, "");
    }
    lap_text_free(&who);
    add_set_values(&r, "sum", lap_none(), number, set->alone_rate, set->rate,
                   set->rated > 0 ? set->scaling : set->fps_scaling);
    add_text(&r, "");
    add_text(&r, "");
    lap_text_add(out, "\r\n");
}

static void add_row(lap_text *out, const lap_report *report, size_t index) {
    const lap_row *row = &report->rows[index];
    record r = {.out = out};
    add_identity(&r, row);
    add_verified(&r, &row->verified);
    add_real(&r, row->cold.open_s);
    add_real(&r, row->cold.build_s);
    add_real(&r, row->cold.upload_s);
    add_real(&r, row->cold.first_s);
    add_latency(&r, row);
    add_text(&r, row->throughput.search);
    add_count(&r, row->throughput.batch);
    add_count(&r, row->throughput.batches);
    add_real(&r, row->throughput.images_per_s);
    add_count(&r, row->work.macs);
    add_count(&r, row->work.flops);
    add_count(&r, row->work.fvcore_flops);
    add_real(&r, row->flops_per_s);
    add_notes(&r, row);
    add_trust(&r, row);
    const lap_set_member none = {0}, *m = member_of(report, index);
    if (!m) m = &none;
    add_set_values(&r, "device", lap_some((double)row->concurrent.others), row->concurrent.set,
                   m->alone_rate, m->rate, m->scaling);
    add_real(&r, report->host_name ? lap_some((double)report->rank) : lap_none());
    add_text(&r, report->host_name);
    lap_text_add(out, "\r\n");
}

lap_status lap_report_csv(const lap_report *report, lap_text *out, lap_error *err) {
    record r = {.out = out};
    for (size_t i = 0; i < COLUMNS; i++)
        add_text(&r, header[i]);
    lap_text_add(out, "\r\n");
    for (size_t i = 0; i < report->row_count; i++)
        add_row(out, report, i);
    for (size_t i = 0; i < report->set_count; i++)
        add_sum(out, &report->sets[i], i + 1);
    if (out->failed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the CSV document");
    return LAP_OK;
}
