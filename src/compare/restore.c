/* The reverse of src/report/json.c (see restore.h): one table of members, and the lists. */
#include "compare/restore.h"

#include "base/text.h"
#include "compare/fields.h"
#include "measure/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS_MOST = 4096, LAYERS_MOST = 4096, NOTES_MOST = 4096 };

/* ---- members -------------------------------------------------------------------------------- */

typedef enum type { TEXT, REAL, COUNT, SIZE, WHOLE, FLAG, PLAIN } type;

/* key is a path of objects; `into` begins at the structure of the table. */
typedef struct member {
    const char *key;
    type type;
    size_t into, size;
} member;

#define IN(s, field) offsetof(s, field), sizeof(((s *)0)->field)
#define ROW(field) IN(lap_row, field)

static const member row_members[] = {
    {"network", TEXT, ROW(network)},
    {"height", WHOLE, ROW(height)},
    {"width", WHOLE, ROW(width)},
    {"batch", COUNT, ROW(batch)},
    {"precision", TEXT, ROW(precision)},
    {"verified.passed", FLAG, ROW(verified.passed)},
    {"verified.mode", TEXT, ROW(verified.mode)},
    {"verified.logits_rel_l2", REAL, ROW(verified.logits_rel_l2)},
    {"verified.limit", REAL, ROW(verified.limit)},
    {"verified.exact_layers", WHOLE, ROW(verified.exact_layers)},
    {"verified.real_layers", WHOLE, ROW(verified.real_layers)},
    {"verified.first_wrong", TEXT, ROW(verified.first_wrong)},
    {"verified.rerun_same", FLAG, ROW(verified.rerun_same)},
    {"cold.weights_s", REAL, ROW(cold.weights_s)},
    {"cold.reference_s", REAL, ROW(cold.reference_s)},
    {"cold.open_s", REAL, ROW(cold.open_s)},
    {"cold.build_s", REAL, ROW(cold.build_s)},
    {"cold.build_cached", REAL, ROW(cold.build_cached)},
    {"cold.build_compiled", REAL, ROW(cold.build_compiled)},
    {"cold.upload_s", REAL, ROW(cold.upload_s)},
    {"cold.first_s", REAL, ROW(cold.first_s)},
    {"latency.n", SIZE, ROW(latency.stats.n)},
    {"latency.mean_s", REAL, ROW(latency.stats.mean)},
    {"latency.std_s", REAL, ROW(latency.stats.std)},
    {"latency.min_s", REAL, ROW(latency.stats.min)},
    {"latency.p50_s", REAL, ROW(latency.stats.p50)},
    {"latency.p90_s", REAL, ROW(latency.stats.p90)},
    {"latency.p95_s", REAL, ROW(latency.stats.p95)},
    {"latency.p99_s", REAL, ROW(latency.stats.p99)},
    {"latency.max_s", REAL, ROW(latency.stats.max)},
    {"latency.mad_s", REAL, ROW(latency.stats.mad)},
    {"latency.outliers_low", SIZE, ROW(latency.stats.outliers_low)},
    {"latency.outliers_high", SIZE, ROW(latency.stats.outliers_high)},
    {"latency.drift.rho", PLAIN, ROW(latency.stats.drift.rho)},
    {"latency.drift.p", PLAIN, ROW(latency.stats.drift.p)},
    {"latency.drift.relative", PLAIN, ROW(latency.stats.drift.relative)},
    {"latency.clock_reason", TEXT, ROW(latency.clock_reason)},
    {"latency.planned", SIZE, ROW(latency.planned)},
    {"latency.comparable", FLAG, ROW(latency.comparable)},
    {"latency.passes_per_sample", SIZE, ROW(latency.passes)},
    {"latency.warmup_n", SIZE, ROW(latency.warmup_n)},
    {"latency.warmup_s", PLAIN, ROW(latency.warmup_s)},
    {"latency.bad_stamps", SIZE, ROW(latency.bad_stamps)},
    {"latency.impossible_spans", SIZE, ROW(latency.impossible)},
    {"latency.interrupted", FLAG, ROW(latency.interrupted)},
    {"spans.submit_s", REAL, ROW(latency.submit.p50)},
    {"spans.wall_s", REAL, ROW(latency.wall.p50)},
    {"spans.device_s", REAL, ROW(latency.device.p50)},
    {"timer.claimed_s", REAL, ROW(floor.claimed_s)},
    {"timer.measured_s", REAL, ROW(floor.measured_s)},
    {"timer.host_s", REAL, ROW(floor.host_s)},
    {"timer.empty_device_s", REAL, ROW(floor.device_s)},
    {"timer.empty_wall_s", REAL, ROW(floor.wall_s)},
    {"timer.empty_submit_s", REAL, ROW(floor.submit_s)},
    {"timer.bad_stamps", SIZE, ROW(floor.bad_stamps)},
    {"telemetry.source", TEXT, ROW(telemetry.source)},
    {"telemetry.samples", SIZE, ROW(telemetry.samples)},
    {"telemetry.clock_min_mhz", REAL, ROW(telemetry.clock_min_mhz)},
    {"telemetry.clock_mean_mhz", REAL, ROW(telemetry.clock_mean_mhz)},
    {"telemetry.clock_max_mhz", REAL, ROW(telemetry.clock_max_mhz)},
    {"telemetry.temperature_c", REAL, ROW(telemetry.temperature_c)},
    {"telemetry.power_w", REAL, ROW(telemetry.power_w)},
    {"telemetry.throttled_share", REAL, ROW(telemetry.throttled_share)},
    {"telemetry.throttle_reasons", TEXT, ROW(telemetry.reasons)},
    {"telemetry.energy_per_image_j", REAL, ROW(energy_j)},
    {"verdict.reason", TEXT, ROW(verdict_reason)},
    {"verdict.advice", TEXT, ROW(verdict_advice)},
    {"work.macs", COUNT, ROW(work.macs)},
    {"work.flops", COUNT, ROW(work.flops)},
    {"work.fvcore_flops", COUNT, ROW(work.fvcore_flops)},
    {"fps", REAL, ROW(fps)},
    {"flops_per_s", REAL, ROW(flops_per_s)},
    {"throughput.search", TEXT, ROW(throughput.search)},
    {"throughput.batch", COUNT, ROW(throughput.batch)},
    {"throughput.images_per_s", REAL, ROW(throughput.images_per_s)},
    {"throughput.batches", COUNT, ROW(throughput.batches)},
    {"throughput.seconds", REAL, ROW(throughput.seconds)},
    {"throughput.flops_per_s", REAL, ROW(throughput.flops_per_s)},
    {"throughput.best_batch", COUNT, ROW(throughput.best_batch)},
    {"throughput.largest_batch", COUNT, ROW(throughput.largest_batch)},
    {"throughput.largest_known", FLAG, ROW(throughput.largest_known)},
    {"throughput.knee_batch", COUNT, ROW(throughput.knee_batch)},
    {"throughput.latency_limit_s", REAL, ROW(throughput.latency_limit_s)},
    {"throughput.ended", TEXT, ROW(throughput.ended)},
    {"cache", TEXT, ROW(cache)},
    {"flush_bytes", COUNT, ROW(flush_bytes)},
#define COPY(name)                                                                                 \
    {"copies." #name ".bytes", COUNT, ROW(copies.name.bytes)},                                     \
        {"copies." #name ".n", SIZE, ROW(copies.name.n)},                                          \
        {"copies." #name ".p50_s", REAL, ROW(copies.name.median_s)},                               \
        {"copies." #name ".std_s", REAL, ROW(copies.name.std_s)}, {                                \
        "copies." #name ".bytes_per_s", REAL, ROW(copies.name.bytes_per_s)                         \
    }
    COPY(upload_pageable),
    COPY(upload_pinned),
    COPY(download_pageable),
    COPY(download_pinned),
#undef COPY
    {"copies.reason", TEXT, ROW(copies.reason)},
    {"ceilings.flops_per_s.fp32", REAL, ROW(ceilings.flops_per_s[LAP_FP32])},
    {"ceilings.flops_per_s.fp32x3", REAL, ROW(ceilings.flops_per_s[LAP_FP32X3])},
    {"ceilings.flops_per_s.tf32", REAL, ROW(ceilings.flops_per_s[LAP_TF32])},
    {"ceilings.flops_per_s.fp16", REAL, ROW(ceilings.flops_per_s[LAP_FP16])},
    {"ceilings.flops_per_s.bf16", REAL, ROW(ceilings.flops_per_s[LAP_BF16])},
    {"ceilings.memory_bytes_per_s", REAL, ROW(ceilings.memory_bytes_per_s)},
    {"ceilings.cache_bytes_per_s", REAL, ROW(ceilings.cache_bytes_per_s)},
    {"ceilings.memory_copy_bytes", COUNT, ROW(ceilings.memory_bytes)},
    {"ceilings.cache_copy_bytes", COUNT, ROW(ceilings.cache_bytes)},
    {"ceilings.stored", FLAG, ROW(ceilings.stored)},
    {"ceilings.reason", TEXT, ROW(ceilings.reason)},
    {"layer_sum.sum_s", REAL, ROW(layer_sum.sum_s)},
    {"layer_sum.pass_s", REAL, ROW(layer_sum.pass_s)},
    {"layer_sum.whole_s", REAL, ROW(layer_sum.whole_s)},
    {"layer_sum.difference_s", REAL, ROW(layer_sum.difference_s)},
    {"pipeline.batch", COUNT, ROW(pipeline.batch)},
    {"pipeline.batches", COUNT, ROW(pipeline.batches)},
    {"pipeline.images_per_s", REAL, ROW(pipeline.images_per_s)},
    {"pipeline.serial_images_per_s", REAL, ROW(pipeline.serial_images_per_s)},
    {"pipeline.compute_images_per_s", REAL, ROW(pipeline.compute_images_per_s)},
    {"pipeline.pinned", FLAG, ROW(pipeline.pinned)},
    {"pipeline.reason", TEXT, ROW(pipeline.reason)},
    {"concurrent.others", SIZE, ROW(concurrent.others)},
    {"concurrent.set", SIZE, ROW(concurrent.set)},
    {"concurrent.alone_row", SIZE, ROW(concurrent.alone_row)},
    {"concurrent.devices", TEXT, ROW(concurrent.devices)},
    {"concurrent.batch", COUNT, ROW(concurrent.rounds.batch)},
    {"concurrent.batches", COUNT, ROW(concurrent.rounds.batches)},
};

static const member kernel_members[] = {
    {"layer", TEXT, IN(lap_row_kernel, layer)},
    {"kernel", TEXT, IN(lap_row_kernel, kernel)},
    {"params", TEXT, IN(lap_row_kernel, params)},
    {"choice", TEXT, IN(lap_row_kernel, choice)},
};

static const member layer_members[] = {
    {"name", TEXT, IN(lap_layer, name)},
    {"kind", TEXT, IN(lap_layer, kind)},
    {"kernel", TEXT, IN(lap_layer, kernel)},
    {"macs", COUNT, IN(lap_layer, macs)},
    {"flops", COUNT, IN(lap_layer, flops)},
    {"bytes", COUNT, IN(lap_layer, bytes)},
    {"device_s", REAL, IN(lap_layer, device_s)},
    {"flops_per_s", REAL, IN(lap_layer, flops_per_s)},
    {"bytes_per_s", REAL, IN(lap_layer, bytes_per_s)},
    {"intensity", REAL, IN(lap_layer, intensity)},
    {"roofline_share", REAL, IN(lap_layer, share)},
};

static const member stream_members[] = {
    {"streams", COUNT, IN(lap_stream_point, streams)},
    {"batch", COUNT, IN(lap_stream_point, batch)},
    {"batches", COUNT, IN(lap_stream_point, batches)},
    {"images_per_s", REAL, IN(lap_stream_point, images_per_s)},
    {"latency_mean_s", REAL, IN(lap_stream_point, latency_mean_s)},
    {"latency_p50_s", REAL, IN(lap_stream_point, latency_p50_s)},
    {"latency_p99_s", REAL, IN(lap_stream_point, latency_p99_s)},
    {"latency_max_s", REAL, IN(lap_stream_point, latency_max_s)},
    {"reason", TEXT, IN(lap_stream_point, reason)},
};

#define MEMBERS(table) (table), sizeof(table) / sizeof *(table)

/* The value at a path of keys; NULL where there is none or a null. */
static json_t *at(json_t *object, const char *path) {
    char key[64];
    while (object) {
        size_t n = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, path);
        object = json_object_get(object, key);
        if (!path[n]) break;
        path += n + 1;
    }
    return json_is_null(object) ? NULL : object;
}

static bool whole(const json_t *value, uint64_t most, uint64_t *out) {
    /* Counts that were derived are written as reals. */
    double real = json_number_value(value);
    if (json_is_integer(value) && json_integer_value(value) >= 0)
        *out = (uint64_t)json_integer_value(value);
    else if (json_is_real(value) && real >= 0 && real <= 0x1p64)
        *out = real < 0x1p64 ? (uint64_t)real : UINT64_MAX;
    else
        return false;
    return *out <= most;
}

static lap_status take_one(const lap_fields *f, const member *m, json_t *value, void *to) {
    uint64_t count = 0;
    bool good;
    switch (m->type) {
    case TEXT:
        good = json_is_string(value);
        if (good) lap_text_clean(strncpy(to, json_string_value(value), m->size - 1));
        return good ? LAP_OK : lap_field_wrong(f, m->key, value, "text or null");
    case FLAG:
        *(bool *)to = json_is_true(value);
        return json_is_boolean(value) ? LAP_OK : lap_field_wrong(f, m->key, value, "true or false");
    case REAL:
        *(lap_optional *)to = lap_some(json_number_value(value));
        return json_is_number(value) ? LAP_OK : lap_field_wrong(f, m->key, value, "a number");
    case PLAIN:
        *(double *)to = json_number_value(value);
        return json_is_number(value) ? LAP_OK : lap_field_wrong(f, m->key, value, "a number");
    case COUNT:
        good = whole(value, UINT64_MAX, (uint64_t *)to);
        return good ? LAP_OK : lap_field_wrong(f, m->key, value, "a whole number");
    case SIZE:
        good = whole(value, SIZE_MAX, &count);
        *(size_t *)to = (size_t)count;
        return good ? LAP_OK : lap_field_wrong(f, m->key, value, "a whole number");
    case WHOLE:
        break;
    }
    good = whole(value, INT32_MAX, &count);
    *(int *)to = (int)count;
    return good ? LAP_OK : lap_field_wrong(f, m->key, value, "a whole number");
}

static lap_status take(const lap_fields *f, json_t *object, const member *members, size_t count,
                       void *out) {
    for (size_t i = 0; i < count; i++) {
        json_t *value = at(object, members[i].key);
        if (value) LAP_TRY(take_one(f, &members[i], value, (char *)out + members[i].into));
    }
    return LAP_OK;
}

/* ---- what is more than a member ------------------------------------------------------------- */

static bool is_text(json_t *object, const char *path, const char *text) {
    const char *value = json_string_value(at(object, path));
    return value && strcmp(value, text) == 0;
}

static bool find_status(json_t *object, lap_row *row) {
    for (int s = LAP_ROW_OK; s <= LAP_ROW_SKIPPED; s++) {
        row->status = (lap_row_status)s;
        if (is_text(object, "status", lap_row_status_name(row->status))) return true;
    }
    return false;
}

static void find_words(json_t *object, lap_row *row) {
    json_t *modes = at(object, "modes");
    for (int s = LAP_OK; s <= LAP_E_INTERNAL; s++)
        if (is_text(object, "cause", lap_status_name((lap_status)s))) row->cause = (lap_status)s;
    for (int v = LAP_VERDICT_NONE; lap_verdict_name((lap_verdict)v)[0] || v == LAP_VERDICT_NONE;
         v++)
        if (is_text(object, "verdict.word", lap_verdict_name((lap_verdict)v)))
            row->verdict = (lap_verdict)v;
    for (size_t i = 0; i < json_array_size(modes); i++) {
        const char *word = json_string_value(json_array_get(modes, i));
        if (!word) continue;
        row->modes |= strcmp(word, "latency") == 0      ? LAP_MODE_LATENCY
                      : strcmp(word, "throughput") == 0 ? LAP_MODE_THROUGHPUT
                      : strcmp(word, "verify") == 0     ? LAP_MODE_VERIFY
                                                        : 0u;
    }
    if (is_text(object, "latency.clock", lap_clock_kind_name(LAP_CLOCK_WALL)))
        row->latency.clock = LAP_CLOCK_WALL;
    row->latency.interleaved = is_text(object, "latency.order", "interleaved");
}

static void find_interval(json_t *object, const char *path, lap_interval *out) {
    json_t *pair = at(object, path);
    out->has = json_array_size(pair) == 2 && json_is_number(json_array_get(pair, 0)) &&
               json_is_number(json_array_get(pair, 1));
    if (!out->has) return;
    out->low = json_number_value(json_array_get(pair, 0));
    out->high = json_number_value(json_array_get(pair, 1));
}

static void find_presence(json_t *object, lap_row *row) {
    row->verified.has = at(object, "verified") != NULL;
    row->latency.has = at(object, "latency") != NULL;
    row->latency.stats.has_outliers = at(object, "latency.outliers_low") != NULL;
    row->latency.stats.drift.has = at(object, "latency.drift") != NULL;
    row->throughput.has = at(object, "throughput") != NULL;
    row->floor.has = at(object, "timer") != NULL;
    row->telemetry.has = at(object, "telemetry") != NULL;
    row->copies.has = at(object, "copies") != NULL;
    row->ceilings.has = at(object, "ceilings") != NULL;
    row->pipeline.has = at(object, "pipeline") != NULL;
    find_interval(object, "latency.mean_ci_s", &row->latency.stats.mean_ci);
    find_interval(object, "latency.p50_ci_s", &row->latency.stats.p50_ci);
}

/* ---- lists ---------------------------------------------------------------------------------- */

static lap_status list_of(const lap_fields *f, json_t *object, const char *key, size_t most,
                          json_t **out) {
    *out = at(object, key);
    if (!*out || (json_is_array(*out) && json_array_size(*out) <= most)) return LAP_OK;
    return lap_field_wrong(f, key, *out, "a list that is not too long, or null");
}

static lap_status no_memory(const lap_fields *f) {
    return LAP_FAIL(f->err, LAP_E_NOMEM, "%s: no memory for its rows", f->path);
}

static lap_status take_kernels(const lap_fields *f, json_t *object, lap_row *row) {
    json_t *list;
    LAP_TRY(list_of(f, object, "kernels", KERNELS_MOST, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        lap_row_kernel k = {0};
        LAP_TRY(take(f, json_array_get(list, i), MEMBERS(kernel_members), &k));
        if (!lap_row_add_kernel(row, k.layer, k.kernel, k.params, k.choice)) return no_memory(f);
    }
    return LAP_OK;
}

static lap_status take_layers(const lap_fields *f, json_t *object, lap_row *row) {
    static const char *const bounds[] = {"compute", "cache", "memory"};
    json_t *list;
    LAP_TRY(list_of(f, object, "layers", LAYERS_MOST, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *from = json_array_get(list, i);
        lap_layer layer = {0};
        LAP_TRY(take(f, from, MEMBERS(layer_members), &layer));
        for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++)
            if (is_text(from, "bound", bounds[k])) layer.bound = bounds[k];
        if (!lap_row_add_layer(row, &layer)) return no_memory(f);
    }
    return LAP_OK;
}

static lap_status take_notes(const lap_fields *f, json_t *object, lap_row *row) {
    json_t *list;
    LAP_TRY(list_of(f, object, "notes", NOTES_MOST, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *note = json_string_value(json_array_get(list, i));
        if (!note) return lap_field_wrong(f, "notes", json_array_get(list, i), "text");
        if (!lap_row_note(row, "%s", note)) return no_memory(f);
        lap_text_clean(row->notes[row->note_count - 1]);
    }
    return LAP_OK;
}

static lap_status take_streams(const lap_fields *f, json_t *object, lap_row *row) {
    json_t *list;
    LAP_TRY(list_of(f, object, "streams", LAP_MAX_STREAM_POINTS, &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        lap_stream_point *p = &row->streams.points[row->streams.count++];
        LAP_TRY(take(f, json_array_get(list, i), MEMBERS(stream_members), p));
        for (int s = LAP_OK; s <= LAP_E_INTERNAL; s++)
            if (is_text(json_array_get(list, i), "status", lap_status_name((lap_status)s)))
                p->status = (lap_status)s;
    }
    return LAP_OK;
}

/* Rates by round: as many alone as together. */
static lap_status take_rounds(const lap_fields *f, json_t *object, lap_row *row) {
    lap_rounds *rounds = &row->concurrent.rounds;
    json_t *alone, *together, *concurrent = at(object, "concurrent");
    LAP_TRY(list_of(f, concurrent, "alone_images_per_s", LAP_ROUNDS_MOST, &alone));
    LAP_TRY(list_of(f, concurrent, "images_per_s", LAP_ROUNDS_MOST, &together));
    if (json_array_size(alone) != json_array_size(together))
        return lap_field_wrong(f, "images_per_s", together, "as many rates as alone");
    for (size_t i = 0; i < json_array_size(alone); i++) {
        json_t *a = json_array_get(alone, i), *b = json_array_get(together, i);
        if (!json_is_number(a) || !json_is_number(b))
            return lap_field_wrong(f, "images_per_s", together, "numbers");
        rounds->alone[i] = json_number_value(a);
        rounds->together[i] = json_number_value(b);
        rounds->n = i + 1;
    }
    return LAP_OK;
}

/* The row's own text, which is what documents show; and its reason. */
static lap_status take_texts(const lap_fields *f, json_t *object, lap_row *row) {
    const char *reason = json_string_value(at(object, "reason"));
    row->document = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    row->reason = reason ? strdup(reason) : NULL;
    if (row->reason) lap_text_clean(row->reason);
    return row->document && (!reason || row->reason) ? LAP_OK : no_memory(f);
}

lap_status lap_row_restore(const char *path, size_t index, json_t *object,
                           const lap_device_info *device, lap_row *row, lap_error *err) {
    lap_fields f = {path, "", err};
    snprintf(f.place, sizeof f.place, "rows[%zu]", index);
    lap_row_init(row);
    row->device = *device;
    lap_status status = json_is_object(object) && find_status(object, row)
                            ? LAP_OK
                            : LAP_FAIL(err, LAP_E_FORMAT, "%s: %s has no status", path, f.place);
    if (status == LAP_OK) status = take(&f, object, MEMBERS(row_members), row);
    find_words(object, row);
    find_presence(object, row);
    if (status == LAP_OK) status = take_kernels(&f, object, row);
    if (status == LAP_OK) status = take_layers(&f, object, row);
    if (status == LAP_OK) status = take_notes(&f, object, row);
    if (status == LAP_OK) status = take_streams(&f, object, row);
    if (status == LAP_OK) status = take_rounds(&f, object, row);
    if (status == LAP_OK) status = take_texts(&f, object, row);
    if (status != LAP_OK) lap_row_free(row);
    return status;
}
