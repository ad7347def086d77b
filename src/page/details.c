/* Rows of a result document in detail (see details.h). Reads and checks; statistics are those of
 * src/measure. */
#include "page/details.h"
#include "compare/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lap_fields within(const lap_fields *f, const char *name) {
    lap_fields inner = {f->path, "", f->err};
    snprintf(inner.place, sizeof inner.place, "%.40s.%s", f->place, name);
    return inner;
}

/* The place of an element of a list; its object, or LAP_E_FORMAT. */
static lap_status element(const lap_fields *list, const json_t *value, size_t i, lap_fields *out) {
    *out = *list;
    snprintf(out->place, sizeof out->place, "%.50s[%zu]", list->place, i);
    if (json_is_object(value)) return LAP_OK;
    return LAP_FAIL(list->err, LAP_E_FORMAT, "%s: %s is no object", list->path, out->place);
}

/* A value of a list of numbers; null is absent. */
static lap_status number(const lap_fields *f, const char *key, const json_t *list, size_t i,
                         lap_optional *out) {
    json_t *value = json_array_get(list, i);
    *out = lap_none();
    if (!value || json_is_null(value)) return LAP_OK;
    if (!json_is_number(value) || !(json_number_value(value) >= 0))
        return lap_field_wrong(f, key, value, "a list of numbers from 0 up");
    *out = lap_some(json_number_value(value));
    return LAP_OK;
}

static lap_status no_memory(const lap_fields *f) {
    return LAP_FAIL(f->err, LAP_E_NOMEM, "%s: no memory for %s", f->path, f->place);
}

/* ---- latency -------------------------------------------------------------------------------- */

static lap_status read_samples(const lap_fields *f, json_t *latency, lap_detail *d) {
    json_t *list;
    LAP_TRY(lap_field_array(f, latency, "samples_s", &list));
    size_t n = json_array_size(list);
    if (n == 0) return LAP_OK;
    d->samples = malloc(n * sizeof *d->samples);
    if (!d->samples) return no_memory(f);
    for (size_t i = 0; i < n; i++) {
        lap_optional value;
        LAP_TRY(number(f, "samples_s", list, i, &value));
        if (value.has) d->samples[d->sample_count++] = value.value;
    }
    return lap_stats_compute(d->samples, d->sample_count, &d->stats, f->err);
}

static lap_status read_latency(const lap_fields *row, json_t *object, lap_detail *d) {
    json_t *latency, *spans;
    LAP_TRY(lap_field_object(row, object, "latency", &latency));
    LAP_TRY(lap_field_object(row, object, "spans", &spans));
    lap_fields f = within(row, "latency");
    LAP_TRY(lap_field_real(&f, latency, "min_s", &d->min_s));
    LAP_TRY(lap_field_real(&f, latency, "p50_s", &d->p50_s));
    LAP_TRY(lap_field_real(&f, latency, "p90_s", &d->p90_s));
    LAP_TRY(lap_field_real(&f, latency, "p95_s", &d->p95_s));
    LAP_TRY(lap_field_real(&f, latency, "p99_s", &d->p99_s));
    LAP_TRY(lap_field_real(&f, latency, "max_s", &d->max_s));
    LAP_TRY(lap_field_text(&f, latency, "clock_reason", &d->clock_reason));
    LAP_TRY(read_samples(&f, latency, d));
    f = within(row, "spans");
    LAP_TRY(lap_field_real(&f, spans, "submit_s", &d->submit_s));
    LAP_TRY(lap_field_real(&f, spans, "wall_s", &d->wall_s));
    return lap_field_real(&f, spans, "device_s", &d->device_s);
}

/* ---- layers --------------------------------------------------------------------------------- */

static lap_status read_layer(const lap_fields *f, const json_t *o, lap_layer_detail *l) {
    LAP_TRY(lap_field_text(f, o, "name", &l->name));
    LAP_TRY(lap_field_text(f, o, "kind", &l->kind));
    LAP_TRY(lap_field_text(f, o, "kernel", &l->kernel));
    LAP_TRY(lap_field_text(f, o, "bound", &l->bound));
    LAP_TRY(lap_field_count(f, o, "flops", &l->flops));
    LAP_TRY(lap_field_count(f, o, "bytes", &l->bytes));
    LAP_TRY(lap_field_real(f, o, "device_s", &l->device_s));
    LAP_TRY(lap_field_real(f, o, "flops_per_s", &l->flops_per_s));
    LAP_TRY(lap_field_real(f, o, "intensity", &l->intensity));
    return lap_field_real(f, o, "roofline_share", &l->share);
}

static lap_status read_layers(const lap_fields *row, json_t *object, lap_detail *d) {
    json_t *list, *ceilings, *peaks;
    LAP_TRY(lap_field_array(row, object, "layers", &list));
    LAP_TRY(lap_field_object(row, object, "ceilings", &ceilings));
    lap_fields f = within(row, "ceilings");
    LAP_TRY(lap_field_object(&f, ceilings, "flops_per_s", &peaks));
    LAP_TRY(lap_field_real(&f, ceilings, "memory_bytes_per_s", &d->memory_bytes_per_s));
    LAP_TRY(lap_field_real(&f, ceilings, "cache_bytes_per_s", &d->cache_bytes_per_s));
    f = within(row, "ceilings.flops_per_s");
    LAP_TRY(lap_field_real(&f, peaks, d->record->precision, &d->peak_flops_per_s));
    size_t n = json_array_size(list);
    d->layers = calloc(n + 1, sizeof *d->layers);
    if (!d->layers) return no_memory(row);
    f = within(row, "layers");
    for (size_t i = 0; i < n; i++) {
        lap_fields at;
        LAP_TRY(element(&f, json_array_get(list, i), i, &at));
        LAP_TRY(read_layer(&at, json_array_get(list, i), &d->layers[i]));
        d->layer_count++;
    }
    return LAP_OK;
}

/* ---- throughput ----------------------------------------------------------------------------- */

static lap_status read_point(const lap_fields *f, const json_t *o, lap_point_detail *p) {
    p->over_limit = json_is_true(json_object_get(o, "over_limit"));
    LAP_TRY(lap_field_count(f, o, "batch", &p->batch));
    LAP_TRY(lap_field_real(f, o, "images_per_s", &p->images_per_s));
    LAP_TRY(lap_field_real(f, o, "batch_s", &p->batch_s));
    LAP_TRY(lap_field_text(f, o, "status", &p->status));
    return lap_field_text(f, o, "reason", &p->reason);
}

static lap_status read_throughput(const lap_fields *row, json_t *object, lap_detail *d) {
    json_t *throughput, *list;
    LAP_TRY(lap_field_object(row, object, "throughput", &throughput));
    lap_fields f = within(row, "throughput");
    LAP_TRY(lap_field_count(&f, throughput, "knee_batch", &d->knee_batch));
    LAP_TRY(lap_field_count(&f, throughput, "best_batch", &d->best_batch));
    LAP_TRY(lap_field_text(&f, throughput, "ended", &d->search_ended));
    LAP_TRY(lap_field_array(&f, throughput, "curve", &list));
    size_t n = json_array_size(list);
    d->curve = calloc(n + 1, sizeof *d->curve);
    if (!d->curve) return no_memory(&f);
    f = within(row, "throughput.curve");
    for (size_t i = 0; i < n; i++) {
        lap_fields at;
        LAP_TRY(element(&f, json_array_get(list, i), i, &at));
        LAP_TRY(read_point(&at, json_array_get(list, i), &d->curve[i]));
        d->curve_count++;
    }
    return LAP_OK;
}

/* ---- sensors -------------------------------------------------------------------------------- */

/* Lists of one length: the shortest counts. */
static lap_status read_series(const lap_fields *f, json_t *series, lap_sensors_detail *s) {
    json_t *at, *clock, *power, *temperature;
    LAP_TRY(lap_field_array(f, series, "at_s", &at));
    LAP_TRY(lap_field_array(f, series, "clock_mhz", &clock));
    LAP_TRY(lap_field_array(f, series, "power_w", &power));
    LAP_TRY(lap_field_array(f, series, "temperature_c", &temperature));
    size_t n = json_array_size(at);
    s->points = calloc(n + 1, sizeof *s->points);
    if (!s->points) return no_memory(f);
    for (size_t i = 0; i < n; i++) {
        lap_sensor_detail *p = &s->points[i];
        LAP_TRY(number(f, "at_s", at, i, &p->at_s));
        LAP_TRY(number(f, "clock_mhz", clock, i, &p->clock_mhz));
        LAP_TRY(number(f, "power_w", power, i, &p->power_w));
        LAP_TRY(number(f, "temperature_c", temperature, i, &p->temperature_c));
        if (p->at_s.has) s->points[s->count++] = *p;
    }
    return LAP_OK;
}

static lap_status read_sensors(const lap_fields *row, json_t *object, lap_sensors_detail *s) {
    json_t *o, *series;
    LAP_TRY(lap_field_object(row, object, "telemetry", &o));
    lap_fields f = within(row, "telemetry");
    LAP_TRY(lap_field_text(&f, o, "source", &s->source));
    LAP_TRY(lap_field_text(&f, o, "throttle_reasons", &s->reasons));
    LAP_TRY(lap_field_real(&f, o, "clock_min_mhz", &s->clock_min_mhz));
    LAP_TRY(lap_field_real(&f, o, "clock_mean_mhz", &s->clock_mean_mhz));
    LAP_TRY(lap_field_real(&f, o, "clock_max_mhz", &s->clock_max_mhz));
    LAP_TRY(lap_field_real(&f, o, "memory_clock_mhz", &s->memory_clock_mhz));
    LAP_TRY(lap_field_real(&f, o, "temperature_c", &s->temperature_c));
    LAP_TRY(lap_field_real(&f, o, "power_w", &s->power_w));
    LAP_TRY(lap_field_real(&f, o, "energy_per_image_j", &s->energy_per_image_j));
    LAP_TRY(lap_field_real(&f, o, "throttled_share", &s->throttled_share));
    LAP_TRY(lap_field_object(&f, o, "series", &series));
    f = within(row, "telemetry.series");
    return read_series(&f, series, s);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static lap_status read_circumstances(const lap_fields *row, json_t *object, lap_detail *d) {
    json_t *device, *cold, *verdict;
    LAP_TRY(lap_field_object(row, object, "device", &device));
    lap_fields f = within(row, "device");
    LAP_TRY(lap_field_text(&f, device, "vendor", &d->vendor));
    LAP_TRY(lap_field_text(&f, device, "toolchain", &d->toolchain));
    LAP_TRY(lap_field_count(&f, device, "memory_bytes", &d->memory_bytes));
    LAP_TRY(lap_field_count(&f, device, "units", &d->units));
    LAP_TRY(lap_field_object(row, object, "cold", &cold));
    f = within(row, "cold");
    LAP_TRY(lap_field_real(&f, cold, "open_s", &d->open_s));
    LAP_TRY(lap_field_real(&f, cold, "build_s", &d->build_s));
    LAP_TRY(lap_field_real(&f, cold, "upload_s", &d->upload_s));
    LAP_TRY(lap_field_real(&f, cold, "first_s", &d->first_s));
    LAP_TRY(lap_field_object(row, object, "verdict", &verdict));
    f = within(row, "verdict");
    LAP_TRY(lap_field_text(&f, verdict, "reason", &d->verdict_reason));
    LAP_TRY(lap_field_array(row, object, "notes", &d->notes));
    for (size_t i = 0; i < json_array_size(d->notes); i++)
        if (!json_is_string(json_array_get(d->notes, i)))
            return lap_field_wrong(row, "notes", json_array_get(d->notes, i), "a list of texts");
    return LAP_OK;
}

/* As in the record: wrong results have no time, whatever the file says. */
static void forget_times(lap_detail *d) {
    d->sample_count = d->layer_count = d->curve_count = 0;
    d->stats = (lap_stats){0};
    d->min_s = d->p50_s = d->p90_s = d->p95_s = d->p99_s = d->max_s = lap_none();
    d->submit_s = d->wall_s = d->device_s = lap_none();
}

static lap_status read_row(const lap_document *document, size_t i, lap_detail *d, lap_error *err) {
    lap_fields f = {document->path, "", err};
    snprintf(f.place, sizeof f.place, "rows[%zu]", i);
    json_t *row = json_array_get(json_object_get(document->json, "rows"), i);
    d->record = &document->rows[i];
    LAP_TRY(read_circumstances(&f, row, d));
    LAP_TRY(read_latency(&f, row, d));
    LAP_TRY(read_layers(&f, row, d));
    LAP_TRY(read_throughput(&f, row, d));
    LAP_TRY(read_sensors(&f, row, &d->sensors));
    if (d->record->proof == LAP_PROOF_FAILED) forget_times(d);
    return LAP_OK;
}

lap_status lap_details_read(const lap_document *document, lap_detail **out, lap_error *err) {
    *out = NULL;
    lap_detail *details = calloc(document->row_count + 1, sizeof *details);
    if (!details)
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for %zu rows", document->path,
                        document->row_count);
    for (size_t i = 0; i < document->row_count; i++) {
        lap_status status = read_row(document, i, &details[i], err);
        if (status != LAP_OK) {
            lap_details_free(details, i + 1);
            return status;
        }
    }
    *out = details;
    return LAP_OK;
}

void lap_details_free(lap_detail *details, size_t count) {
    if (!details) return;
    for (size_t i = 0; i < count; i++) {
        free(details[i].samples);
        free(details[i].layers);
        free(details[i].curve);
        free(details[i].sensors.points);
    }
    free(details);
}
