/* Rows of a result document (see record.h). Statistics of samples are those of src/measure. */
#include "compare/record.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where the members of a span are: latency and spans name them differently. */
typedef struct span_keys {
    const char *mean, *std, *p50, *samples;
} span_keys;

static const span_keys latency_keys = {"mean_s", "std_s", "p50_s", "samples_s"};
static const span_keys wall_keys = {"wall_mean_s", "wall_std_s", "wall_s", "wall_samples_s"};

/* A repetition without a stamp is null in the list. */
static lap_status from_samples(const lap_fields *f, const char *key, json_t *list, lap_span *out) {
    size_t n = json_array_size(list), kept = 0;
    double *x = malloc(n * sizeof *x); /* n elements are in memory already, and are larger */
    if (!x) return LAP_FAIL(f->err, LAP_E_NOMEM, "%s: no memory for %zu samples", f->path, n);
    lap_status status = LAP_OK;
    for (size_t i = 0; i < n && status == LAP_OK; i++) {
        json_t *value = json_array_get(list, i);
        if (json_is_null(value)) continue;
        if (!json_is_number(value) || !(json_number_value(value) >= 0))
            status = lap_field_wrong(f, key, value, "a list of numbers from 0 up");
        else
            x[kept++] = json_number_value(value);
    }
    lap_stats stats = {0};
    if (status == LAP_OK) status = lap_stats_compute(x, kept, &stats, f->err);
    free(x);
    if (status != LAP_OK || kept == 0) return status;
    *out = (lap_span){stats.n, stats.mean, stats.std, stats.p50, lap_relative_error(&stats), true};
    return LAP_OK;
}

/* A summary's widening is that of the row's own clock; wall spans are as correlated as far as
 * anybody knows. */
static lap_status read_span(const lap_fields *f, json_t *object, const span_keys *keys, uint64_t n,
                            lap_optional widening, lap_span *out) {
    json_t *list;
    out->n = n;
    LAP_TRY(lap_field_real(f, object, keys->mean, &out->mean_s));
    LAP_TRY(lap_field_real(f, object, keys->std, &out->std_s));
    LAP_TRY(lap_field_real(f, object, keys->p50, &out->p50_s));
    LAP_TRY(lap_field_array(f, object, keys->samples, &list));
    /* A factor below 1 would claim more than independent samples can tell. */
    double factor = widening.has && widening.value > 1 ? widening.value : 1;
    if (n >= 2 && out->std_s.has)
        out->relative_error =
            lap_ratio(lap_some(out->std_s.value / sqrt((double)n) * factor), out->mean_s);
    if (list && json_array_size(list) > 0) return from_samples(f, keys->samples, list, out);
    return LAP_OK;
}

static lap_fields within(const lap_fields *f, const char *name) {
    lap_fields inner = {f->path, "", f->err};
    snprintf(inner.place, sizeof inner.place, "%.40s.%s", f->place, name);
    return inner;
}

/* The list wins over the summary; a reader should know when they disagree. */
static void check_summary(lap_record *r, lap_optional told) {
    if (!told.has || !r->latency.from_samples) return;
    double seen = r->latency.mean_s.value;
    if (fabs(told.value - seen) <= 1e-6 * seen) return;
    snprintf(r->remark, sizeof r->remark,
             "the file's mean latency is not that of its samples; the samples are used");
}

static lap_status read_times(const lap_fields *f, json_t *row, lap_record *r) {
    json_t *latency, *spans;
    r->clock = "";
    LAP_TRY(lap_field_object(f, row, "latency", &latency));
    LAP_TRY(lap_field_object(f, row, "spans", &spans));
    LAP_TRY(lap_field_real(f, row, "fps", &r->fps));
    if (!latency) return LAP_OK;
    lap_fields in = within(f, "latency");
    uint64_t n;
    lap_optional told, widening;
    LAP_TRY(lap_field_count(&in, latency, "n", &n));
    LAP_TRY(lap_field_text(&in, latency, "clock", &r->clock));
    LAP_TRY(lap_field_count(&in, latency, "passes_per_sample", &r->passes));
    LAP_TRY(lap_field_real(&in, latency, "mean_s", &told));
    LAP_TRY(lap_field_real(&in, latency, "mean_ci_widening", &widening));
    LAP_TRY(read_span(&in, latency, &latency_keys, n, widening, &r->latency));
    check_summary(r, told);
    in = within(f, "spans");
    return spans ? read_span(&in, spans, &wall_keys, n, widening, &r->wall) : LAP_OK;
}

static lap_status read_device(const lap_fields *f, json_t *row, lap_record *r) {
    json_t *device, *timer;
    LAP_TRY(lap_field_object(f, row, "device", &device));
    lap_fields in = within(f, "device");
    LAP_TRY(lap_field_text(&in, device, "name", &r->device));
    LAP_TRY(lap_field_text(&in, device, "type", &r->type));
    LAP_TRY(lap_field_text(&in, device, "driver", &r->driver));
    LAP_TRY(lap_field_text(&in, device, "api", &r->api));
    LAP_TRY(lap_field_text(&in, device, "uuid", &r->uuid));
    LAP_TRY(lap_field_text(&in, device, "pci", &r->pci));
    LAP_TRY(lap_field_object(f, row, "timer", &timer));
    in = within(f, "timer");
    return lap_field_real(&in, timer, "empty_device_s", &r->floor_s);
}

static lap_status read_case(const lap_fields *f, json_t *row, lap_record *r) {
    LAP_TRY(lap_field_text(f, row, "backend", &r->backend));
    LAP_TRY(lap_field_text(f, row, "selector", &r->selector));
    LAP_TRY(lap_field_text(f, row, "platform", &r->platform));
    LAP_TRY(lap_field_text(f, row, "host_name", &r->host));
    LAP_TRY(lap_field_text(f, row, "network", &r->network));
    LAP_TRY(lap_field_text(f, row, "precision", &r->precision));
    LAP_TRY(lap_field_text(f, row, "cache", &r->cache));
    LAP_TRY(lap_field_count(f, row, "height", &r->height));
    LAP_TRY(lap_field_count(f, row, "width", &r->width));
    return lap_field_count(f, row, "batch", &r->batch);
}

static lap_status read_verified(const lap_fields *f, json_t *row, lap_record *r) {
    json_t *verified;
    LAP_TRY(lap_field_object(f, row, "verified", &verified));
    if (!verified) return LAP_OK;
    json_t *passed = json_object_get(verified, "passed");
    if (!passed || json_is_null(passed)) return LAP_OK;
    lap_fields in = within(f, "verified");
    if (!json_is_boolean(passed)) return lap_field_wrong(&in, "passed", passed, "true or false");
    r->proof = json_is_true(passed) ? LAP_PROOF_PASSED : LAP_PROOF_FAILED;
    return LAP_OK;
}

static lap_status read_throughput(const lap_fields *f, json_t *row, lap_record *r) {
    json_t *throughput;
    LAP_TRY(lap_field_object(f, row, "throughput", &throughput));
    lap_fields in = within(f, "throughput");
    LAP_TRY(lap_field_count(&in, throughput, "batch", &r->throughput_batch));
    return lap_field_real(&in, throughput, "images_per_s", &r->images_per_s);
}

/* The row's own verdict on its measurement. */
static lap_status read_trust(const lap_fields *f, json_t *row, lap_record *r) {
    json_t *verdict;
    LAP_TRY(lap_field_object(f, row, "verdict", &verdict));
    lap_fields in = within(f, "verdict");
    return lap_field_text(&in, verdict, "word", &r->trust);
}

/* Whether others were at work at the same time. */
static lap_status read_concurrent(const lap_fields *f, json_t *row, lap_record *r) {
    json_t *concurrent;
    LAP_TRY(lap_field_object(f, row, "concurrent", &concurrent));
    lap_fields in = within(f, "concurrent");
    LAP_TRY(lap_field_count(&in, concurrent, "others", &r->others));
    return lap_field_text(&in, concurrent, "devices", &r->beside);
}

/* Wrong results have no time, also in a file that has one. */
static void forget_times(lap_record *r) {
    r->latency = r->wall = (lap_span){0};
    r->fps = r->images_per_s = lap_none();
    r->throughput_batch = 0;
}

lap_status lap_record_read(const lap_fields *f, json_t *row, const char *weights, lap_record *out) {
    static const char *const statuses[] = {"ok", "failed", "unsupported", "skipped"};
    if (!json_is_object(row))
        return LAP_FAIL(f->err, LAP_E_FORMAT, "%s: %s is no object", f->path, f->place);
    LAP_TRY(lap_field_text(f, row, "status", &out->status));
    LAP_TRY(lap_field_text(f, row, "reason", &out->reason));
    bool known = false;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        known = known || strcmp(out->status, statuses[i]) == 0;
    if (!known) {
        char shown[48];
        snprintf(shown, sizeof shown, "%.40s", out->status);
        return LAP_FAIL(f->err, LAP_E_FORMAT,
                        "%s: %s.status is '%s'; expected ok, failed, unsupported or skipped",
                        f->path, f->place, lap_text_clean(shown));
    }
    out->ok = strcmp(out->status, "ok") == 0;
    out->weights = weights;
    LAP_TRY(read_case(f, row, out));
    LAP_TRY(read_trust(f, row, out));
    LAP_TRY(read_concurrent(f, row, out));
    LAP_TRY(read_device(f, row, out));
    LAP_TRY(read_verified(f, row, out));
    LAP_TRY(read_times(f, row, out));
    LAP_TRY(read_throughput(f, row, out));
    if (out->proof == LAP_PROOF_FAILED) forget_times(out);
    return LAP_OK;
}
