/* A comparison as a JSON document, with jansson (see render.h, docs/COMPARE.md). */
#include "compare/render.h"
#include "compare/words.h"
#include "report/json_build.h"

#define COMPARE_SCHEMA "warmlap-compare/1"

static json_t *estimate_value(builder *b, const lap_estimate *e) {
    if (!e->has) return json_null();
    json_t *o = json_object();
    set_real(b, o, "ratio", lap_some(e->ratio));
    set_real(b, o, "low", e->has_interval ? lap_some(e->low) : lap_none());
    set_real(b, o, "high", e->has_interval ? lap_some(e->high) : lap_none());
    return o;
}

static json_t *document_value(builder *b, const lap_comparison *c, size_t i) {
    const lap_document *d = c->documents[i];
    json_t *o = json_object();
    set(b, o, "path", text_value(d->path));
    set_known(b, o, "started", d->started);
    set_known(b, o, "version", d->version);
    set_known(b, o, "cpu", d->cpu);
    set_known(b, o, "os", d->os);
    set_known(b, o, "kernel", d->kernel);
    set_count(b, o, "rows", d->row_count);
    set(b, o, "duplicate_of",
        c->duplicate_of[i] == i ? json_null() : json_integer((json_int_t)c->duplicate_of[i]));
    return o;
}

static size_t document_index(const lap_comparison *c, const lap_record *r) {
    size_t i = 0;
    while (c->documents[i] != r->document)
        i++;
    return i;
}

static void set_identity(builder *b, json_t *o, const lap_comparison *c, const lap_record *r) {
    set_count(b, o, "file", document_index(c, r));
    set_count(b, o, "row", r->index);
    set_known(b, o, "status", r->status);
    set_known(b, o, "reason", r->reason);
    set_known(b, o, "device", r->device);
    set_known(b, o, "selector", r->selector);
    set_known(b, o, "backend", r->backend);
    set_known(b, o, "platform", r->platform);
    set_known(b, o, "api", r->api);
    set_known(b, o, "driver", r->driver);
    set_known(b, o, "uuid", r->uuid);
    set_known(b, o, "pci", r->pci);
    set_known(b, o, "network", r->network);
    set_size(b, o, "height", r->height);
    set_size(b, o, "width", r->width);
    set_size(b, o, "batch", r->batch);
    set_known(b, o, "precision", r->precision);
    set_known(b, o, "weights", r->weights);
    set(b, o, "verified",
        r->proof == LAP_PROOF_NONE ? json_null() : json_boolean(r->proof == LAP_PROOF_PASSED));
}

static json_t *baseline_value(builder *b, const lap_comparison *c, const lap_line *line) {
    const lap_record *r = line->baseline;
    if (!r || line->judgement <= LAP_JUDGED_BASELINE) return json_null();
    json_t *o = json_object();
    set_count(b, o, "file", document_index(c, r));
    set_count(b, o, "row", r->index);
    set_known(b, o, "precision", r->precision);
    return o;
}

static json_t *line_value(builder *b, const lap_comparison *c, const lap_line *line) {
    const lap_record *r = line->record;
    const lap_span *span = lap_record_span(r, c->options->wall);
    json_t *o = json_object();
    set_identity(b, o, c, r);
    set_known(b, o, "clock", c->options->wall && span->mean_s.has ? "wall" : r->clock);
    set_size(b, o, "n", span->n);
    set_real(b, o, "mean_s", span->mean_s);
    set_real(b, o, "std_s", span->std_s);
    set_real(b, o, "p50_s", span->p50_s);
    set_real(b, o, "relative_error", span->relative_error);
    set(b, o, "from_samples", json_boolean(span->from_samples));
    set_size(b, o, "throughput_batch", r->throughput_batch);
    set_real(b, o, "images_per_s", r->images_per_s);
    set_real(b, o, "floor_s", r->floor_s);
    set_known(b, o, "measurement", r->trust);
    set_count(b, o, "group", line->group);
    set(b, o, "compared_with", baseline_value(b, c, line));
    set(b, o, "speed", estimate_value(b, &line->speed));
    set(b, o, "throughput", estimate_value(b, &line->throughput));
    set_known(b, o, "verdict", lap_judgement_name(line->judgement));
    set_known(b, o, "apart", line->apart);
    set_known(b, o, "remark", r->remark);
    return o;
}

static json_t *pair_value(builder *b, const lap_api_pair *pair) {
    json_t *o = json_object();
    set_known(b, o, "device", pair->a->device);
    set_known(b, o, "uuid", pair->a->uuid);
    set_known(b, o, "pci", pair->a->pci);
    set_known(b, o, "network", pair->a->network);
    set_size(b, o, "height", pair->a->height);
    set_size(b, o, "width", pair->a->width);
    set_known(b, o, "precision", pair->a->precision);
    set_known(b, o, "backend", pair->a->backend);
    set_known(b, o, "against", pair->b->backend);
    set_known(b, o, "against_precision", pair->b->precision);
    set(b, o, "throughput", estimate_value(b, &pair->throughput));
    set(b, o, "batch_1_latency", estimate_value(b, &pair->latency));
    set(b, o, "launch_floor", estimate_value(b, &pair->launch));
    set_known(b, o, "apart", pair->apart);
    set_known(b, o, "throughput_apart", pair->throughput_apart);
    return o;
}

static json_t *summary_value(builder *b, const lap_comparison *c) {
    json_t *o = json_object();
    set_count(b, o, "same", c->same);
    set_count(b, o, "faster", c->faster);
    set_count(b, o, "slower", c->slower);
    set_count(b, o, "unclear", c->unclear);
    set_count(b, o, "apart", c->apart);
    set_count(b, o, "not_compared", c->not_compared);
    set_count(b, o, "missing", c->missing);
    set_count(b, o, "not_verified", c->not_verified);
    bool gate = c->options->gate || c->options->require_verified;
    set(b, o, "gate", gate ? json_string(lap_gate_name(lap_gate_of(c))) : json_null());
    return o;
}

static json_t *root_value(builder *b, const lap_comparison *c) {
    const lap_compare_options *options = c->options;
    json_t *o = json_object(), *files = json_array(), *rows = json_array(), *pairs = json_array();
    set(b, o, "schema", json_string(COMPARE_SCHEMA));
    set(b, o, "version", json_string(LAP_VERSION));
    set(b, o, "by", json_string(lap_axis_name(options->axis)));
    set(b, o, "clock", json_string(options->wall ? "wall" : "row"));
    set_known(b, o, "baseline",
              options->baseline_document ? options->baseline_document->path
              : options->baseline        ? options->baseline
                                         : "");
    set_real(b, o, "margin_percent", lap_some(options->margin * 100));
    for (size_t i = 0; i < c->document_count; i++)
        push(b, files, document_value(b, c, i));
    for (size_t i = 0; i < c->line_count; i++)
        push(b, rows, line_value(b, c, &c->lines[i]));
    for (size_t i = 0; i < c->pair_count; i++)
        push(b, pairs, pair_value(b, &c->pairs[i]));
    set(b, o, "files", files);
    set(b, o, "rows", rows);
    set(b, o, "apis", pairs);
    set(b, o, "summary", summary_value(b, c));
    return o;
}

lap_status lap_compare_json(const lap_comparison *c, lap_text *out, lap_error *err) {
    builder b = {false};
    json_t *root = root_value(&b, c);
    return lap_json_finish(&b, root, out, err);
}
