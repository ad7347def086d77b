/* Result documents from files (see load.h). Reads and checks; compares nothing. */
#include "compare/load.h"
#include "compare/record.h"
#include "compare/source.h"
#include "report/report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 10000 };

/* ---- the document --------------------------------------------------------------------------- */

static lap_status check_schema(const char *name, json_t *root, lap_error *err) {
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (!schema)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: has no schema: not a result document of warmlap (run --json FILE "
                        "writes one)",
                        name);
    if (strcmp(schema, LAP_SCHEMA) == 0) return LAP_OK;
    char shown[64];
    snprintf(shown, sizeof shown, "%.60s", schema);
    lap_text_clean(shown);
    uint64_t version;
    const char *kind = "is not a result document of warmlap";
    if (strncmp(schema, "warmlap/", 8) == 0 && lap_parse_u64(schema + 8, &version))
        kind = version > 1 ? "is of a newer warmlap; use that one to read it"
                           : "is of an older warmlap, and cannot be read any more";
    return LAP_FAIL(err, LAP_E_FORMAT, "%s: schema '%s' %s; expected " LAP_SCHEMA, name, shown,
                    kind);
}

/* Which of its name's routes a row belongs to: the count of other selectors seen before it. */
static void count_ordinals(lap_document *d) {
    for (size_t i = 0; i < d->row_count; i++) {
        lap_record *r = &d->rows[i];
        for (size_t k = 0; k < i; k++) {
            const lap_record *s = &d->rows[k];
            if (strcmp(r->device, s->device) != 0 || strcmp(r->backend, s->backend) != 0 ||
                strcmp(r->platform, s->platform) != 0)
                continue;
            if (strcmp(r->selector, s->selector) == 0) {
                r->ordinal = s->ordinal;
                break;
            }
            if (s->ordinal + 1 > r->ordinal) r->ordinal = s->ordinal + 1;
        }
    }
}

static lap_status read_rows(lap_document *d, json_t *rows, const char *weights, lap_error *err) {
    size_t n = json_array_size(rows);
    if (n > ROWS)
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: %zu rows; expected at most %d in one document",
                        d->path, n, ROWS);
    d->rows = calloc(n ? n : 1, sizeof *d->rows);
    if (!d->rows) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for %zu rows", d->path, n);
    for (size_t i = 0; i < n; i++) {
        lap_fields f = {d->path, "", err};
        snprintf(f.place, sizeof f.place, "rows[%zu]", i);
        d->rows[i].document = d;
        d->rows[i].index = i;
        LAP_TRY(lap_record_read(&f, json_array_get(rows, i), weights, &d->rows[i]));
        d->row_count++;
    }
    count_ordinals(d);
    return LAP_OK;
}

static lap_status read_document(lap_document *d, lap_error *err) {
    json_t *root = d->json, *host, *tool, *config, *network, *run, *rows;
    const char *weights;
    lap_fields f = {d->path, "", err};
    LAP_TRY(check_schema(d->path, root, err));
    LAP_TRY(lap_field_text(&f, root, "started", &d->started));
    LAP_TRY(lap_field_object(&f, root, "tool", &tool));
    LAP_TRY(lap_field_object(&f, root, "host", &host));
    LAP_TRY(lap_field_object(&f, root, "config", &config));
    LAP_TRY(lap_field_array(&f, root, "rows", &rows));
    if (!rows)
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: has no rows; expected a list, if an empty one",
                        d->path);
    LAP_TRY(lap_field_text(&(lap_fields){d->path, "tool", err}, tool, "version", &d->version));
    lap_fields h = {d->path, "host", err};
    LAP_TRY(lap_field_text(&h, host, "cpu", &d->cpu));
    LAP_TRY(lap_field_text(&h, host, "os", &d->os));
    LAP_TRY(lap_field_text(&h, host, "kernel", &d->kernel));
    LAP_TRY(lap_field_count(&h, host, "memory_bytes", &d->memory_bytes));
    LAP_TRY(lap_field_object(&(lap_fields){d->path, "config", err}, config, "network", &network));
    lap_fields n = {d->path, "config.network", err};
    LAP_TRY(lap_field_text(&n, network, "weights", &weights));
    LAP_TRY(lap_field_object(&(lap_fields){d->path, "config", err}, config, "run", &run));
    lap_fields r = {d->path, "config.run", err};
    LAP_TRY(lap_field_text(&r, run, "kernels", &d->kernels));
    LAP_TRY(lap_field_text(&r, run, "prefer", &d->prefer));
    LAP_TRY(lap_field_text(&r, run, "exclude", &d->exclude));
    LAP_TRY(lap_field_text(&r, run, "overlap", &d->overlap));
    return read_rows(d, rows, weights, err);
}

/* The lists were read: what is left of the document is small. */
static void drop_lists(json_t *root) {
    static const char *const gone[] = {"kernels", "layers", "notes", "cold"};
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(root, "rows"), i, row) {
        for (size_t k = 0; k < sizeof gone / sizeof *gone; k++)
            json_object_del(row, gone[k]);
        json_object_del(json_object_get(row, "latency"), "samples_s");
        json_object_del(row, "spans");
        json_object_del(row, "telemetry");
    }
}

lap_status lap_document_take(const char *name, json_t *root, bool whole, lap_document **out,
                             lap_error *err) {
    *out = NULL;
    lap_document *d = calloc(1, sizeof *d);
    if (d) d->path = strdup(name);
    if (!d || !d->path) {
        json_decref(root);
        free(d);
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", name);
    }
    d->json = root;
    lap_status status =
        json_is_object(root)
            ? read_document(d, err)
            : LAP_FAIL(err, LAP_E_FORMAT, "%s: is not a JSON object; expected a result document",
                       name);
    if (status != LAP_OK) {
        lap_document_free(d);
        return status;
    }
    if (!whole) drop_lists(root);
    *out = d;
    return LAP_OK;
}

lap_status lap_document_parse(const char *name, const char *text, size_t length, lap_document **out,
                              lap_error *err) {
    json_t *root;
    *out = NULL;
    LAP_TRY(lap_source_json(name, text, length, &root, err));
    return lap_document_take(name, root, false, out, err);
}

static lap_status load(const char *path, bool whole, lap_document **out, lap_error *err) {
    *out = NULL;
    lap_text text = {0};
    json_t *root = NULL;
    lap_status status = lap_source_read(path, &text, err);
    if (status == LAP_OK) status = lap_source_json(path, text.data, text.length, &root, err);
    lap_text_free(&text);
    return status == LAP_OK ? lap_document_take(path, root, whole, out, err) : status;
}

lap_status lap_document_load(const char *path, lap_document **out, lap_error *err) {
    return load(path, false, out, err);
}

lap_status lap_document_load_whole(const char *path, lap_document **out, lap_error *err) {
    return load(path, true, out, err);
}

void lap_document_free(lap_document *document) {
    if (!document) return;
    json_decref(document->json);
    free(document->rows);
    free(document->path);
    free(document);
}

/* ---- what documents have in common ---------------------------------------------------------- */

const char *lap_precision_class(const char *precision) {
    return strcmp(precision, "fp32x3") == 0 ? "fp32" : precision;
}

static bool same_real(lap_optional a, lap_optional b) {
    return a.has == b.has && a.value == b.value;
}

static bool same_row(const lap_record *a, const lap_record *b) {
    return strcmp(a->status, b->status) == 0 && strcmp(a->selector, b->selector) == 0 &&
           strcmp(a->device, b->device) == 0 && strcmp(a->network, b->network) == 0 &&
           strcmp(a->precision, b->precision) == 0 && a->height == b->height &&
           a->width == b->width && a->batch == b->batch && same_real(a->fps, b->fps) &&
           same_real(a->images_per_s, b->images_per_s);
}

bool lap_document_same(const lap_document *a, const lap_document *b) {
    if (strcmp(a->started, b->started) != 0 || strcmp(a->cpu, b->cpu) != 0 ||
        strcmp(a->kernel, b->kernel) != 0 || a->memory_bytes != b->memory_bytes ||
        strcmp(a->version, b->version) != 0 || a->row_count != b->row_count)
        return false;
    for (size_t i = 0; i < a->row_count; i++)
        if (!same_row(&a->rows[i], &b->rows[i])) return false;
    return true;
}
