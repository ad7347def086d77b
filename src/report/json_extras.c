/* The parts of a row that are about where the time goes: cache, copies, ceilings, the sum of the
 * layers, pipeline and streams. Renders only. */
#include "measure/result.h"
#include "report/json_build.h"

static json_t *copy_value(builder *b, const lap_copy_time *c) {
    if (!c->median_s.has) return json_null();
    json_t *o = json_object();
    set_count(b, o, "bytes", c->bytes);
    set_count(b, o, "n", c->n);
    set_real(b, o, "p50_s", c->median_s);
    set_real(b, o, "std_s", c->std_s);
    set_real(b, o, "bytes_per_s", c->bytes_per_s);
    return o;
}

static json_t *copies_value(builder *b, const lap_copies *c) {
    if (!c->has) return json_null();
    json_t *o = json_object();
    set(b, o, "upload_pageable", copy_value(b, &c->upload_pageable));
    set(b, o, "upload_pinned", copy_value(b, &c->upload_pinned));
    set(b, o, "download_pageable", copy_value(b, &c->download_pageable));
    set(b, o, "download_pinned", copy_value(b, &c->download_pinned));
    set_known(b, o, "reason", c->reason);
    return o;
}

static json_t *ceilings_value(builder *b, const lap_ceilings *c) {
    if (!c->has && !c->reason[0]) return json_null();
    json_t *o = json_object(), *flops = json_object();
    for (int p = 0; p < LAP_PRECISION_COUNT; p++)
        set_real(b, flops, lap_precision_name((lap_precision)p), c->flops_per_s[p]);
    set(b, o, "flops_per_s", flops);
    set_real(b, o, "memory_bytes_per_s", c->memory_bytes_per_s);
    set_real(b, o, "cache_bytes_per_s", c->cache_bytes_per_s);
    set_size(b, o, "memory_copy_bytes", c->memory_bytes);
    set_size(b, o, "cache_copy_bytes", c->cache_bytes);
    set_flag(b, o, "stored", c->stored);
    set_known(b, o, "reason", c->reason);
    return o;
}

static json_t *layer_sum_value(builder *b, const lap_layer_sum *s) {
    if (!s->sum_s.has && !s->pass_s.has) return json_null();
    json_t *o = json_object();
    set_real(b, o, "sum_s", s->sum_s);
    set_real(b, o, "pass_s", s->pass_s);
    set_real(b, o, "whole_s", s->whole_s);
    set_real(b, o, "difference_s", s->difference_s);
    return o;
}

static json_t *pipeline_value(builder *b, const lap_pipeline *p) {
    if (!p->has) return json_null();
    json_t *o = json_object();
    set_size(b, o, "batch", p->batch);
    set_size(b, o, "batches", p->batches);
    set_real(b, o, "images_per_s", p->images_per_s);
    set_real(b, o, "serial_images_per_s", p->serial_images_per_s);
    set_real(b, o, "compute_images_per_s", p->compute_images_per_s);
    set_flag(b, o, "pinned", p->pinned);
    set_known(b, o, "reason", p->reason);
    return o;
}

static json_t *streams_value(builder *b, const lap_streams *s) {
    if (s->count == 0) return json_null();
    json_t *a = json_array();
    for (size_t i = 0; i < s->count; i++) {
        const lap_stream_point *p = &s->points[i];
        json_t *o = json_object();
        set_count(b, o, "streams", p->streams);
        set_count(b, o, "batch", p->batch);
        set_size(b, o, "batches", p->batches);
        set_real(b, o, "images_per_s", p->images_per_s);
        set_real(b, o, "latency_mean_s", p->latency_mean_s);
        set_real(b, o, "latency_p50_s", p->latency_p50_s);
        set_real(b, o, "latency_p99_s", p->latency_p99_s);
        set_real(b, o, "latency_max_s", p->latency_max_s);
        set_text(b, o, "status", lap_status_name(p->status));
        set_known(b, o, "reason", p->reason);
        push(b, a, o);
    }
    return a;
}

void lap_json_extras(builder *b, json_t *o, const lap_row *row) {
    set_known(b, o, "cache", row->cache);
    set_size(b, o, "flush_bytes", row->flush_bytes);
    set(b, o, "copies", copies_value(b, &row->copies));
    set(b, o, "ceilings", ceilings_value(b, &row->ceilings));
    set(b, o, "layer_sum", layer_sum_value(b, &row->layer_sum));
    set(b, o, "pipeline", pipeline_value(b, &row->pipeline));
    set(b, o, "streams", streams_value(b, &row->streams));
}
