/* Documents of `warmlap spans` (see spans.h). Reads and checks. */
#include "page/spans.h"
#include "compare/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 10000 };

static lap_status read_repeats(const lap_fields *f, json_t *list, lap_spans_side *out) {
    static const char *const keys[LAP_SPANS] = {"submit_s", "wall_s", "device_s"};
    size_t n = json_array_size(list);
    out->repeats = calloc(n + 1, sizeof *out->repeats);
    if (!out->repeats) return LAP_FAIL(f->err, LAP_E_NOMEM, "%s: no memory", f->path);
    for (size_t i = 0; i < n; i++) {
        json_t *o = json_array_get(list, i);
        if (!json_is_object(o)) return lap_field_wrong(f, "repeats", o, "a list of objects");
        for (int k = 0; k < LAP_SPANS; k++)
            LAP_TRY(lap_field_real(f, o, keys[k], &out->repeats[i][k]));
        out->count++;
    }
    return LAP_OK;
}

static lap_status read_side(const lap_fields *row, json_t *object, const char *name,
                            lap_spans_side *out) {
    static const char *const means[LAP_SPANS] = {"submit_mean_s", "wall_mean_s", "device_mean_s"};
    static const char *const stds[LAP_SPANS] = {"submit_std_s", "wall_std_s", "device_std_s"};
    json_t *side, *list;
    lap_fields f = {row->path, "", row->err};
    snprintf(f.place, sizeof f.place, "%.40s.%s", row->place, name);
    LAP_TRY(lap_field_object(row, object, name, &side));
    for (int k = 0; k < LAP_SPANS; k++) {
        LAP_TRY(lap_field_real(&f, side, means[k], &out->mean_s[k]));
        LAP_TRY(lap_field_real(&f, side, stds[k], &out->std_s[k]));
    }
    LAP_TRY(lap_field_array(&f, side, "repeats", &list));
    return read_repeats(&f, list, out);
}

static lap_status read_row(const lap_spans_document *d, json_t *object, size_t i,
                           lap_spans_case *out, lap_error *err) {
    json_t *device, *size;
    lap_fields f = {d->path, "", err};
    snprintf(f.place, sizeof f.place, "rows[%zu]", i);
    if (!json_is_object(object))
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: %s is no object", d->path, f.place);
    LAP_TRY(lap_field_text(&f, object, "status", &out->status));
    LAP_TRY(lap_field_text(&f, object, "reason", &out->reason));
    LAP_TRY(lap_field_text(&f, object, "selector", &out->selector));
    LAP_TRY(lap_field_object(&f, object, "device", &device));
    LAP_TRY(lap_field_text(&f, device, "name", &out->device));
    LAP_TRY(lap_field_array(&f, object, "size", &size));
    for (size_t k = 0; k < 3 && k < json_array_size(size); k++) {
        json_t *value = json_array_get(size, k);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return lap_field_wrong(&f, "size", value, "three whole numbers");
        out->size[k] = (uint64_t)json_integer_value(value);
    }
    LAP_TRY(read_side(&f, object, "without_warmup", &out->cold));
    return read_side(&f, object, "with_warmup", &out->warm);
}

static lap_status read_document(lap_spans_document *d, lap_error *err) {
    json_t *tool, *host, *rows;
    lap_fields f = {d->path, "", err}, h = {d->path, "host", err};
    LAP_TRY(lap_field_text(&f, d->json, "started", &d->started));
    LAP_TRY(lap_field_object(&f, d->json, "tool", &tool));
    LAP_TRY(lap_field_object(&f, d->json, "host", &host));
    LAP_TRY(lap_field_array(&f, d->json, "rows", &rows));
    LAP_TRY(lap_field_text(&(lap_fields){d->path, "tool", err}, tool, "version", &d->version));
    LAP_TRY(lap_field_text(&h, host, "cpu", &d->cpu));
    LAP_TRY(lap_field_text(&h, host, "os", &d->os));
    LAP_TRY(lap_field_text(&h, host, "kernel", &d->kernel));
    size_t n = json_array_size(rows);
    if (n > ROWS)
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: %zu rows; expected at most %d in one document",
                        d->path, n, ROWS);
    d->rows = calloc(n + 1, sizeof *d->rows);
    if (!d->rows) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for %zu rows", d->path, n);
    for (size_t i = 0; i < n; i++) {
        d->row_count++; /* what was read of a row that fails is freed with it */
        LAP_TRY(read_row(d, json_array_get(rows, i), i, &d->rows[i], err));
    }
    return LAP_OK;
}

lap_status lap_spans_take(const char *name, json_t *root, lap_spans_document **out,
                          lap_error *err) {
    *out = NULL;
    lap_spans_document *d = calloc(1, sizeof *d);
    if (d) d->path = strdup(name);
    if (!d || !d->path) {
        json_decref(root);
        free(d);
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", name);
    }
    d->json = root;
    lap_status status = read_document(d, err);
    if (status == LAP_OK)
        *out = d;
    else
        lap_spans_free(d);
    return status;
}

void lap_spans_free(lap_spans_document *document) {
    if (!document) return;
    for (size_t i = 0; i < document->row_count; i++) {
        free(document->rows[i].cold.repeats);
        free(document->rows[i].warm.repeats);
    }
    free(document->rows);
    json_decref(document->json);
    free(document->path);
    free(document);
}
