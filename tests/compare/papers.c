/* Result documents made for tests (see papers.h). Texts are quoted by jansson, numbers by printf.
 */
#include "papers.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *either(const char *s, const char *otherwise) {
    return s ? s : otherwise;
}

static void add_quoted(lap_text *out, const char *key, const char *value) {
    json_t *text = value ? json_string(value) : json_null();
    assert_non_null(text);
    char *quoted = json_dumps(text, JSON_ENCODE_ANY);
    lap_text_addf(out, "\"%s\": %s, ", key, quoted);
    free(quoted);
    json_decref(text);
}

static void add_times(lap_text *out, const paper_row *r) {
    double std = r->std;
    char deviation[40] = "null";
    if (std >= 0) snprintf(deviation, sizeof deviation, "%.15g", std);
    if (!(r->mean > 0)) {
        lap_text_add(out, "\"latency\": null, \"spans\": null, ");
        return;
    }
    unsigned n = r->n ? r->n : 100;
    double wall = r->wall > 0 ? r->wall : 2 * r->mean;
    lap_text_addf(out,
                  "\"latency\": {\"n\": %u, \"mean_s\": %.15g, \"std_s\": %s, \"p50_s\": %.15g, "
                  "\"clock\": \"%s\", \"passes_per_sample\": %u, \"samples_s\": null}, ",
                  n, r->mean, deviation, r->p50 > 0 ? r->p50 : r->mean, either(r->clock, "device"),
                  r->passes ? r->passes : 1);
    lap_text_addf(out,
                  "\"spans\": {\"wall_s\": %.15g, \"wall_mean_s\": %.15g, \"wall_std_s\": %s}, ",
                  wall, wall, deviation);
}

static void add_row(lap_text *out, const paper_row *r) {
    char selector[64];
    const char *backend = either(r->backend, "cuda"), *verified = either(r->verified, "true");
    snprintf(selector, sizeof selector, "%s:0", backend);
    lap_text_add(out, "{");
    add_quoted(out, "status", either(r->status, "ok"));
    add_quoted(out, "reason", r->reason);
    add_quoted(out, "backend", backend);
    add_quoted(out, "selector", either(r->selector, selector));
    add_quoted(out, "network", either(r->network, "resnet18"));
    add_quoted(out, "precision", either(r->precision, "fp32"));
    if (r->trust) {
        lap_text_add(out, "\"verdict\": {");
        add_quoted(out, "word", r->trust);
        lap_text_add(out, "\"reason\": null}, ");
    }
    lap_text_add(out, "\"device\": {");
    add_quoted(out, "name", either(r->device, "NVIDIA H200"));
    add_quoted(out, "api",
               either(r->api, strcmp(backend, "cuda") == 0 ? "CUDA 13.0" : "OpenCL 3.0"));
    add_quoted(out, "uuid", r->uuid);
    add_quoted(out, "pci", r->pci);
    lap_text_add(out, "\"units\": 132}, ");
    if (strcmp(verified, "null") == 0)
        lap_text_add(out, "\"verified\": null, ");
    else
        lap_text_addf(out, "\"verified\": {\"passed\": %s}, ", verified);
    add_times(out, r);
    if (r->images_per_s > 0)
        lap_text_addf(out, "\"throughput\": {\"batch\": 256, \"images_per_s\": %.15g}, ",
                      r->images_per_s);
    if (r->others > 0) {
        lap_text_addf(out, "\"concurrent\": {\"others\": %u, ", r->others);
        add_quoted(out, "devices", either(r->beside, "2 x NVIDIA H200"));
        lap_text_add(out, "\"set\": 1}, ");
    }
    if (r->host) add_quoted(out, "host_name", r->host);
    if (r->cache) add_quoted(out, "cache", r->cache);
    if (r->floor > 0) lap_text_addf(out, "\"timer\": {\"empty_device_s\": %.15g}, ", r->floor);
    int size = r->size ? r->size : 224;
    lap_text_addf(out, "\"height\": %d, \"width\": %d, \"batch\": %u}", size,
                  r->width ? r->width : size, r->batch ? r->batch : 1);
}

void paper_text(const paper *p, const paper_row *rows, size_t count, lap_text *out) {
    lap_text_add(out, "{\"schema\": \"warmlap/1\", ");
    add_quoted(out, "started", either(p->started, "2026-03-01T12:00:00Z"));
    lap_text_add(out, "\"tool\": {");
    add_quoted(out, "version", either(p->version, "0.1.0"));
    lap_text_add(out, "\"name\": \"warmlap\"}, \"host\": {");
    add_quoted(out, "cpu", either(p->cpu, "a processor"));
    lap_text_add(out, "\"memory_bytes\": 1024}, \"config\": {\"network\": {");
    add_quoted(out, "weights", either(p->weights, "synthetic:1"));
    lap_text_add(out, "\"model\": \"resnet18\"}, \"run\": {");
    add_quoted(out, "kernels", either(p->kernels, "default"));
    lap_text_add(out, "\"overlap\": \"yes\"}}, \"rows\": [");
    for (size_t i = 0; i < count; i++) {
        if (i) lap_text_add(out, ", ");
        add_row(out, &rows[i]);
    }
    lap_text_add(out, "]}\n");
    assert_false(out->failed);
}

lap_document *paper_load(const paper *p, const paper_row *rows, size_t count) {
    lap_text text = {0};
    lap_document *d;
    lap_error err = {0};
    paper_text(p, rows, count, &text);
    if (lap_document_parse(either(p->name, "a.json"), text.data, text.length, &d, &err) != LAP_OK)
        fail_msg("%s", err.message);
    lap_text_free(&text);
    assert_int_equal(d->row_count, count);
    return d;
}

void papers_compare(const lap_document *const *documents, size_t count,
                    const lap_compare_options *options, lap_comparison *out) {
    lap_error err = {0};
    if (lap_compare(documents, count, options, out, &err) != LAP_OK) fail_msg("%s", err.message);
}

const lap_line *line_of(const lap_comparison *c, const lap_document *d, size_t row) {
    for (size_t i = 0; i < c->line_count; i++)
        if (c->lines[i].record == &d->rows[row]) return &c->lines[i];
    fail_msg("no line for row %zu of %s", row, d->path);
    return NULL;
}

const char *hostile_name(void) {
    static char name[257];
    static const char start[] = "A,B\"C\";'|<script>alert(1)</script>`_*[x](y)#$%&~^\\{}\n\t"
                                "\r=1+1 \xc2\xae \xe2\x82\xac \xf0\x9f\x9a\x80 --><!-- ";
    if (!name[0]) {
        memset(name, 'n', 256);
        memcpy(name, start, sizeof start - 1);
    }
    return name;
}
