/* The result document, with jansson. Keys and units are those of docs/RESULTS.md; a value that does
 * not exist is null. Renders only. */
#include "report/format.h"
#include "report/json_build.h"
#include "report/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts of a row ------------------------------------------------------------------------- */

json_t *lap_json_device(builder *b, const lap_device_info *d) {
    char uuid[48], pci[32];
    lap_format_uuid(uuid, sizeof uuid, d);
    lap_format_pci(pci, sizeof pci, d);
    json_t *o = json_object();
    set_text(b, o, "name", d->name);
    set_text(b, o, "type", lap_device_type_name(d->type));
    set_known(b, o, "vendor", d->vendor);
    set_known(b, o, "driver", d->driver);
    set_known(b, o, "toolchain", d->toolchain);
    set_known(b, o, "api", d->api);
    set_known(b, o, "uuid", uuid);
    set_known(b, o, "pci", pci);
    set_size(b, o, "memory_bytes", d->memory_bytes);
    set_size(b, o, "units", d->units);
    set_size(b, o, "clock_mhz", d->clock_mhz);
    return o;
}

static json_t *modes_value(builder *b, unsigned modes) {
    json_t *a = json_array();
    for (unsigned mode = LAP_MODE_LATENCY; mode <= LAP_MODE_VERIFY; mode <<= 1) {
        char name[32];
        lap_format_modes(name, sizeof name, modes & mode, "");
        if (name[0]) push(b, a, text_value(name));
    }
    return a;
}

static json_t *kernels_value(builder *b, const lap_row *row) {
    json_t *a = json_array();
    for (size_t i = 0; i < row->kernel_count; i++) {
        const lap_row_kernel *k = &row->kernels[i];
        json_t *o = json_object();
        set_text(b, o, "layer", k->layer);
        set_text(b, o, "kernel", k->kernel);
        set_text(b, o, "params", k->params);
        set_text(b, o, "choice", k->choice);
        push(b, a, o);
    }
    return a;
}

static json_t *verified_value(builder *b, const lap_row_verified *v) {
    if (!v->has) return json_null();
    json_t *o = json_object();
    set_flag(b, o, "passed", v->passed);
    set_known(b, o, "mode", v->mode);
    set_real(b, o, "logits_rel_l2", v->logits_rel_l2);
    set_real(b, o, "limit", v->limit);
    set(b, o, "exact_layers", json_integer(v->exact_layers));
    set(b, o, "real_layers", json_integer(v->real_layers));
    set_known(b, o, "first_wrong", v->first_wrong);
    set_flag(b, o, "rerun_same", v->rerun_same);
    return o;
}

static json_t *cold_value(builder *b, const lap_row_cold *c) {
    json_t *o = json_object();
    set_real(b, o, "weights_s", c->weights_s);
    set_real(b, o, "reference_s", c->reference_s);
    set_real(b, o, "open_s", c->open_s);
    set_real(b, o, "build_s", c->build_s);
    set_real(b, o, "build_cached", c->build_cached);
    set_real(b, o, "build_compiled", c->build_compiled);
    set_real(b, o, "upload_s", c->upload_s);
    set_real(b, o, "first_s", c->first_s);
    return o;
}

enum span { SPAN_DEVICE, SPAN_WALL, SPAN_SUBMIT, SPAN_AT };

static json_t *samples_value(builder *b, const lap_latency *l, enum span span) {
    json_t *a = json_array();
    for (size_t i = 0; i < l->n; i++) {
        const lap_sample *s = &l->samples[i];
        lap_optional value = span == SPAN_DEVICE ? s->device_s
                             : span == SPAN_WALL ? lap_some(s->wall_s)
                             : span == SPAN_AT   ? lap_some(s->at_s)
                                                 : lap_some(s->submit_s);
        push(b, a, real_value(value));
    }
    return a;
}

static json_t *interval_value(builder *b, lap_interval i) {
    if (!i.has) return json_null();
    json_t *a = json_array();
    push(b, a, real_value(lap_some(i.low)));
    push(b, a, real_value(lap_some(i.high)));
    return a;
}

static json_t *drift_value(builder *b, const lap_drift *d) {
    if (!d->has) return json_null();
    json_t *o = json_object();
    set_real(b, o, "rho", lap_some(d->rho));
    set_real(b, o, "p", lap_some(d->p));
    set_real(b, o, "relative", lap_some(d->relative));
    return o;
}

static json_t *modes_found_value(builder *b, const lap_modes *m) {
    if (!m->has) return json_null();
    json_t *o = json_object();
    set_real(b, o, "share", lap_some(m->share));
    set_real(b, o, "low_s", lap_some(m->low));
    set_real(b, o, "high_s", lap_some(m->high));
    set_real(b, o, "upper_part", lap_some(m->upper_part));
    return o;
}

/* Percentiles with fewer than five samples beyond them. */
static json_t *starred_value(builder *b, const lap_stats *s) {
    json_t *a = json_array();
    if (s->p90.has && s->n < LAP_STAR_N_P90) push(b, a, json_string("p90_s"));
    if (s->p95.has && s->n < LAP_STAR_N_P95) push(b, a, json_string("p95_s"));
    if (s->p99.has && s->n < LAP_STAR_N_P99) push(b, a, json_string("p99_s"));
    return a;
}

static void set_more_stats(builder *b, json_t *o, const lap_stats *s) {
    set_real(b, o, "mad_s", s->mad);
    set(b, o, "mean_ci_s", interval_value(b, s->mean_ci));
    set(b, o, "p50_ci_s", interval_value(b, s->p50_ci));
    set_real(b, o, "autocorrelation", s->autocorrelation);
    set_real(b, o, "mean_ci_widening", s->mean_ci.has ? lap_some(s->widening) : lap_none());
    set_real(b, o, "p50_ci_widening", s->p50_ci.has ? lap_some(s->p50_widening) : lap_none());
    lap_optional low = lap_some((double)s->outliers_low), high = lap_some((double)s->outliers_high);
    set_real(b, o, "outliers_low", s->has_outliers ? low : lap_none());
    set_real(b, o, "outliers_high", s->has_outliers ? high : lap_none());
    set(b, o, "starred", starred_value(b, s));
    set(b, o, "drift", drift_value(b, &s->drift));
    set(b, o, "split", modes_found_value(b, &s->modes));
}

static void set_stats(builder *b, json_t *o, const lap_stats *s) {
    set_real(b, o, "mean_s", s->mean);
    set_real(b, o, "std_s", s->std);
    set_real(b, o, "min_s", s->min);
    set_real(b, o, "p50_s", s->p50);
    set_real(b, o, "p90_s", s->p90);
    set_real(b, o, "p95_s", s->p95);
    set_real(b, o, "p99_s", s->p99);
    set_real(b, o, "max_s", s->max);
}

static json_t *latency_value(builder *b, const lap_latency *l, bool samples) {
    if (!l->has) return json_null();
    json_t *o = json_object();
    set_count(b, o, "n", l->stats.n);
    set_stats(b, o, &l->stats);
    set_more_stats(b, o, &l->stats);
    set_text(b, o, "clock", lap_clock_kind_name(l->clock));
    set_known(b, o, "clock_reason", l->clock_reason);
    set_count(b, o, "planned", l->planned);
    set_flag(b, o, "comparable", l->comparable);
    set_count(b, o, "passes_per_sample", l->passes);
    set_known(b, o, "passes_reason", l->passes_reason);
    set_known(b, o, "stop", l->stop);
    set_known(b, o, "ended", l->ended);
    set_real(b, o, "noise_target", l->noise_target > 0 ? lap_some(l->noise_target) : lap_none());
    set_real(b, o, "relative_noise", l->noise);
    set_text(b, o, "order", l->interleaved ? "interleaved" : "sequential");
    set_count(b, o, "blocks", l->blocks);
    set_real(b, o, "timed_s", lap_some(l->timed_s));
    set_real(b, o, "burn_in_s", lap_some(l->burn_in_s));
    set(b, o, "warmup_steady", l->warmup_auto ? json_boolean(l->warmup_steady) : json_null());
    set_real(b, o, "warmup_first_ratio", l->warmup_first_ratio);
    set_count(b, o, "warmup_n", l->warmup_n);
    set_real(b, o, "warmup_s", lap_some(l->warmup_s));
    set_count(b, o, "bad_stamps", l->bad_stamps);
    set_count(b, o, "impossible_spans", l->impossible);
    set_flag(b, o, "interrupted", l->interrupted);
    enum span span = l->clock == LAP_CLOCK_WALL ? SPAN_WALL : SPAN_DEVICE;
    set(b, o, "samples_s", samples ? samples_value(b, l, span) : json_null());
    return o;
}

/* Medians under the plain names, then mean and deviation of each. */
static json_t *spans_value(builder *b, const lap_latency *l, bool samples) {
    if (!l->has) return json_null();
    json_t *o = json_object();
    set_real(b, o, "submit_s", l->submit.p50);
    set_real(b, o, "wall_s", l->wall.p50);
    set_real(b, o, "device_s", l->device.p50);
    set_real(b, o, "submit_mean_s", l->submit.mean);
    set_real(b, o, "submit_std_s", l->submit.std);
    set_real(b, o, "wall_mean_s", l->wall.mean);
    set_real(b, o, "wall_std_s", l->wall.std);
    set_real(b, o, "device_mean_s", l->device.mean);
    set_real(b, o, "device_std_s", l->device.std);
    set(b, o, "submit_samples_s", samples ? samples_value(b, l, SPAN_SUBMIT) : json_null());
    set(b, o, "wall_samples_s", samples ? samples_value(b, l, SPAN_WALL) : json_null());
    set(b, o, "device_samples_s", samples ? samples_value(b, l, SPAN_DEVICE) : json_null());
    set(b, o, "at_samples_s", samples ? samples_value(b, l, SPAN_AT) : json_null());
    return o;
}

static json_t *timer_value(builder *b, const lap_floor *f) {
    if (!f->has) return json_null();
    json_t *o = json_object();
    set_real(b, o, "claimed_s", f->claimed_s);
    set_real(b, o, "measured_s", f->measured_s);
    set_real(b, o, "host_s", f->host_s);
    set_real(b, o, "empty_device_s", f->device_s);
    set_real(b, o, "empty_wall_s", f->wall_s);
    set_real(b, o, "empty_submit_s", f->submit_s);
    set_count(b, o, "bad_stamps", f->bad_stamps);
    return o;
}

static void set_switch(builder *b, json_t *o, const char *key, lap_optional value) {
    set(b, o, key, value.has ? json_boolean(value.value > 0) : json_null());
}

/* Lists of one length; times since the run's first reading. */
static json_t *series_value(builder *b, const lap_telemetry_summary *t, double origin) {
    if (t->point_count == 0) return json_null();
    json_t *o = json_object(), *at = json_array(), *clock = json_array(), *power = json_array(),
           *temperature = json_array();
    for (size_t i = 0; i < t->point_count; i++) {
        const lap_telemetry_point *p = &t->points[i];
        push(b, at, real_value(lap_some(p->at_s - origin)));
        push(b, clock, real_value(p->clock_mhz));
        push(b, power, real_value(p->power_w));
        push(b, temperature, real_value(p->temperature_c));
    }
    set(b, o, "at_s", at);
    set(b, o, "clock_mhz", clock);
    set(b, o, "power_w", power);
    set(b, o, "temperature_c", temperature);
    return o;
}

static double first_reading(const lap_report *report) {
    bool any = false;
    double first = 0;
    for (size_t i = 0; i < report->row_count; i++) {
        const lap_telemetry_summary *t = &report->rows[i].telemetry;
        if (!t->has || t->point_count == 0) continue;
        if (!any || t->points[0].at_s < first) first = t->points[0].at_s;
        any = true;
    }
    return first;
}

static json_t *telemetry_value(builder *b, const lap_row *row, double origin) {
    const lap_telemetry_summary *t = &row->telemetry;
    if (!t->has) return json_null();
    json_t *o = json_object();
    set_text(b, o, "source", t->source);
    set_count(b, o, "samples", t->samples);
    set_real(b, o, "seconds", lap_some(t->seconds));
    set_real(b, o, "clock_min_mhz", t->clock_min_mhz);
    set_real(b, o, "clock_mean_mhz", t->clock_mean_mhz);
    set_real(b, o, "clock_max_mhz", t->clock_max_mhz);
    set_real(b, o, "memory_clock_mhz", t->memory_clock_mhz);
    set_real(b, o, "temperature_c", t->temperature_c);
    set_real(b, o, "power_w", t->power_w);
    set_real(b, o, "energy_per_image_j", row->energy_j);
    set_real(b, o, "throttled_share", t->throttled_share);
    set_known(b, o, "throttle_reasons", t->reasons);
    set_switch(b, o, "persistence", t->persistence);
    set_switch(b, o, "ecc", t->ecc);
    set_real(b, o, "other_processes", t->other_processes);
    set(b, o, "series", series_value(b, t, origin));
    return o;
}

static json_t *verdict_value(builder *b, const lap_row *row) {
    if (row->verdict == LAP_VERDICT_NONE) return json_null();
    json_t *o = json_object();
    set_text(b, o, "word", lap_verdict_name(row->verdict));
    set_known(b, o, "reason", row->verdict_reason);
    set_known(b, o, "advice", row->verdict_advice);
    return o;
}

static json_t *curve_value(builder *b, const lap_throughput *t) {
    json_t *a = json_array();
    for (size_t i = 0; i < t->curve_count; i++) {
        const lap_curve_point *p = &t->curve[i];
        json_t *o = json_object();
        set_count(b, o, "batch", p->batch);
        set_real(b, o, "images_per_s", p->images_per_s);
        set_real(b, o, "batch_s", p->batch_s);
        set_flag(b, o, "over_limit", p->over_limit);
        set_text(b, o, "status", lap_status_name(p->status));
        set_known(b, o, "reason", p->reason);
        push(b, a, o);
    }
    return a;
}

static json_t *throughput_value(builder *b, const lap_throughput *t) {
    if (!t->has) return json_null();
    json_t *o = json_object();
    set_text(b, o, "search", t->search);
    set_size(b, o, "batch", t->batch);
    set_real(b, o, "images_per_s", t->images_per_s);
    set_size(b, o, "batches", t->batches);
    set_real(b, o, "seconds", t->seconds);
    set_real(b, o, "flops_per_s", t->flops_per_s);
    set_size(b, o, "best_batch", t->best_batch);
    set_size(b, o, "largest_batch", t->largest_batch);
    set_flag(b, o, "largest_known", t->largest_known);
    set_size(b, o, "knee_batch", t->knee_batch);
    set_real(b, o, "latency_limit_s", t->latency_limit_s);
    set_real(b, o, "search_s", lap_some(t->search_s));
    set_known(b, o, "ended", t->ended);
    set(b, o, "curve", curve_value(b, t));
    return o;
}

static json_t *work_value(builder *b, const lap_row_work *w) {
    json_t *o = json_object();
    set_size(b, o, "macs", w->macs);
    set_size(b, o, "flops", w->flops);
    set_size(b, o, "fvcore_flops", w->fvcore_flops);
    return o;
}

static json_t *layers_value(builder *b, const lap_row *row) {
    if (row->layer_count == 0) return json_null();
    json_t *a = json_array();
    for (size_t i = 0; i < row->layer_count; i++) {
        const lap_layer *l = &row->layers[i];
        json_t *o = json_object();
        set_text(b, o, "name", l->name);
        set_text(b, o, "kind", l->kind);
        set_text(b, o, "kernel", l->kernel);
        set_count(b, o, "macs", l->macs);
        set_count(b, o, "flops", l->flops);
        set_count(b, o, "bytes", l->bytes);
        set_real(b, o, "device_s", l->device_s);
        set_real(b, o, "flops_per_s", l->flops_per_s);
        set_real(b, o, "bytes_per_s", l->bytes_per_s);
        set_real(b, o, "intensity", l->intensity);
        set_real(b, o, "roofline_share", l->share);
        set_text(b, o, "bound", l->bound);
        push(b, a, o);
    }
    return a;
}

static json_t *notes_value(builder *b, const lap_row *row) {
    json_t *a = json_array();
    for (size_t i = 0; i < row->note_count; i++)
        push(b, a, text_value(row->notes[i]));
    return a;
}

static json_t *row_value(builder *b, const lap_report *report, const lap_row *row, double origin) {
    bool samples = report->samples;
    if (row->document) return json_loads(row->document, 0, NULL);
    json_t *o = json_object();
    set_text(b, o, "status", lap_row_status_name(row->status));
    set_known(b, o, "reason", lap_row_reason(row));
    set_text(b, o, "cause", row->cause != LAP_OK ? lap_status_name(row->cause) : NULL);
    set_text(b, o, "backend", row->device.backend);
    set_known(b, o, "selector", row->device.selector);
    set_known(b, o, "platform", row->device.platform);
    set(b, o, "device", lap_json_device(b, &row->device));
    set_text(b, o, "network", row->network);
    set_size(b, o, "height", row->height > 0 ? (uint64_t)row->height : 0);
    set_size(b, o, "width", row->width > 0 ? (uint64_t)row->width : 0);
    set_size(b, o, "batch", row->batch);
    set_text(b, o, "precision", row->precision);
    set(b, o, "modes", modes_value(b, row->modes));
    set(b, o, "kernels", kernels_value(b, row));
    set(b, o, "verified", verified_value(b, &row->verified));
    set(b, o, "cold", cold_value(b, &row->cold));
    set(b, o, "latency", latency_value(b, &row->latency, samples));
    set(b, o, "spans", spans_value(b, &row->latency, samples));
    set(b, o, "timer", timer_value(b, &row->floor));
    set(b, o, "telemetry", telemetry_value(b, row, origin));
    set(b, o, "verdict", verdict_value(b, row));
    set_real(b, o, "fps", row->fps);
    set(b, o, "throughput", throughput_value(b, &row->throughput));
    set(b, o, "work", work_value(b, &row->work));
    set_real(b, o, "flops_per_s", row->flops_per_s);
    set(b, o, "layers", layers_value(b, row));
    lap_json_extras(b, o, row);
    lap_json_concurrent(b, o, row);
    set(b, o, "rank", report->host_name ? count_value(report->rank) : json_null());
    set_text(b, o, "host_name", report->host_name);
    set(b, o, "notes", notes_value(b, row));
    return o;
}

/* ---- the document --------------------------------------------------------------------------- */

static json_t *tool_value(builder *b, const lap_report *report) {
    json_t *o = json_object(), *libraries = json_object();
    set_text(b, o, "name", "warmlap");
    set_text(b, o, "version", LAP_VERSION);
    for (size_t i = 0; i < report->library_count; i++)
        set_text(b, libraries, report->libraries[i].name, report->libraries[i].version);
    set(b, o, "libraries", libraries);
    return o;
}

static json_t *host_value(builder *b, const lap_host_info *host) {
    if (!host) return json_null();
    json_t *o = json_object();
    set_known(b, o, "cpu", host->cpu);
    set_size(b, o, "cores", host->cores);
    set_known(b, o, "os", host->os);
    set_known(b, o, "kernel", host->kernel);
    set_size(b, o, "memory_bytes", host->memory_bytes);
    return o;
}

static json_t *config_value(builder *b, const lap_report *report) {
    json_t *o = json_object();
    for (size_t i = 0; i < report->setting_count; i++) {
        const lap_report_setting *s = &report->settings[i];
        json_t *section = json_object_get(o, s->section);
        if (!section) {
            section = json_object();
            set(b, o, s->section, section);
        }
        set_text(b, section, s->key, s->value);
    }
    return o;
}

/* The devices of the rows, each once. */
static json_t *devices_value(builder *b, const lap_report *report) {
    json_t *a = json_array();
    for (size_t i = 0; i < report->row_count; i++) {
        const lap_row *row = &report->rows[i];
        bool known = false;
        for (size_t k = 0; k < json_array_size(a) && !known; k++) {
            json_t *other = json_object_get(json_array_get(a, k), "selector");
            known = json_is_string(other) &&
                    strcmp(json_string_value(other), row->device.selector) == 0;
        }
        if (known) continue;
        /* The row of it that has the floor, if any. */
        const lap_floor *floor = &row->floor;
        for (size_t k = i; k < report->row_count && !floor->has; k++)
            if (strcmp(report->rows[k].device.selector, row->device.selector) == 0)
                floor = &report->rows[k].floor;
        json_t *o = json_object();
        set_text(b, o, "selector", row->device.selector);
        set_text(b, o, "name", row->device.name);
        set(b, o, "timer", timer_value(b, floor));
        push(b, a, o);
    }
    return a;
}

json_t *lap_json_head(builder *b, const lap_report *report, const char *schema) {
    json_t *o = json_object();
    set_text(b, o, "schema", schema);
    set(b, o, "tool", tool_value(b, report));
    set(b, o, "host", host_value(b, report->host));
    set(b, o, "config", config_value(b, report));
    set_text(b, o, "started", report->started);
    json_t *resumed = json_array();
    for (size_t i = 0; i < report->resumed_count; i++)
        push(b, resumed, text_value(report->resumed[i]));
    set(b, o, "resumed", resumed);
    set_flag(b, o, "finished", !report->unfinished);
    return o;
}

lap_status lap_json_finish(builder *b, json_t *document, lap_text *out, lap_error *err) {
    char *text = NULL;
    if (document && !b->failed)
        text = json_dumps(document, JSON_INDENT(1) | JSON_REAL_PRECISION(LAP_REAL_DIGITS));
    json_decref(document);
    if (!text) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the JSON document");
    lap_text_add(out, text);
    lap_text_add(out, "\n");
    free(text);
    if (out->failed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the JSON document");
    return LAP_OK;
}

lap_status lap_report_json(const lap_report *report, lap_text *out, lap_error *err) {
    builder b = {false};
    json_t *document = lap_json_head(&b, report, LAP_SCHEMA), *rows = json_array();
    double origin = first_reading(report);
    set_text(&b, document, "run_id", report->run_id && report->run_id[0] ? report->run_id : NULL);
    set(&b, document, "devices", devices_value(&b, report));
    for (size_t i = 0; i < report->row_count; i++)
        push(&b, rows, row_value(&b, report, &report->rows[i], origin));
    set(&b, document, "rows", rows);
    set(&b, document, "sets", lap_json_sets(&b, report->sets, report->set_count));
    set(&b, document, "fleet", json_null()); /* the merged document of a fleet has it */
    return lap_json_finish(&b, document, out, err);
}
