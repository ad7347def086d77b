/* Devices at work at the same time, as JSON: what a row says of it, and the sums of a document. */
#include "report/json_build.h"
#include "report/sets.h"

/* An interval stands beside its value, as [low, high]. */
static void set_margin(builder *b, json_t *o, const char *key, lap_margin m) {
    char name[64];
    json_t *interval = json_null();
    set_real(b, o, key, m.value);
    if (m.value.has && m.half.has) {
        interval = json_array();
        push(b, interval, json_real(m.value.value - m.half.value));
        push(b, interval, json_real(m.value.value + m.half.value));
    }
    snprintf(name, sizeof name, "%s_ci", key);
    set(b, o, name, interval);
}

static json_t *rates(builder *b, const double *values, size_t n) {
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        push(b, a, real_value(lap_some(values[i])));
    return a;
}

void lap_json_concurrent(builder *b, json_t *row_object, const lap_row *row) {
    const lap_concurrent *c = &row->concurrent;
    if (c->set == 0) {
        set(b, row_object, "concurrent", json_null());
        return;
    }
    json_t *o = json_object();
    set_count(b, o, "others", c->others);
    set_count(b, o, "set", c->set);
    set_count(b, o, "alone_row", c->alone_row);
    set_known(b, o, "devices", c->devices);
    set_size(b, o, "batch", c->rounds.batch);
    set_size(b, o, "batches", c->rounds.batches);
    set(b, o, "alone_images_per_s", rates(b, c->rounds.alone, c->rounds.n));
    set(b, o, "images_per_s", rates(b, c->rounds.together, c->rounds.n));
    set(b, row_object, "concurrent", o);
}

static json_t *member_value(builder *b, const lap_set *set_of, const lap_set_member *m) {
    json_t *o = json_object();
    set_count(b, o, "row", m->row);
    set_count(b, o, "alone_row", m->alone);
    set(b, o, "rank", set_of->fleet ? count_value(m->rank) : json_null());
    set_known(b, o, "host_name", m->host);
    set_known(b, o, "selector", m->selector);
    set_known(b, o, "device", m->device);
    set_flag(b, o, "ok", m->ok);
    set_known(b, o, "reason", m->reason);
    set_real(b, o, "mean_s", m->mean_s);
    set_real(b, o, "alone_mean_s", m->alone_mean_s);
    set_margin(b, o, "slowdown", m->slowdown);
    set_margin(b, o, "fps", m->fps);
    set_margin(b, o, "alone_fps", m->alone_fps);
    set_margin(b, o, "images_per_s", m->rate);
    set_margin(b, o, "alone_images_per_s", m->alone_rate);
    set_margin(b, o, "scaling", m->scaling);
    return o;
}

static json_t *set_value(builder *b, const lap_set *s) {
    json_t *o = json_object(), *members = json_array();
    set_text(b, o, "network", s->network);
    set_count(b, o, "height", (uint64_t)s->height);
    set_count(b, o, "width", (uint64_t)s->width);
    set_text(b, o, "precision", s->precision);
    set_count(b, o, "batch", s->batch);
    set_count(b, o, "members_planned", s->count);
    set_count(b, o, "members_rated", s->rated);
    set_count(b, o, "members_timed", s->timed);
    set_count(b, o, "rounds", s->rounds);
    set_margin(b, o, "images_per_s", s->rate);
    set_margin(b, o, "alone_images_per_s", s->alone_rate);
    set_margin(b, o, "scaling", s->scaling);
    set_margin(b, o, "fps", s->fps);
    set_margin(b, o, "alone_fps", s->alone_fps);
    set_margin(b, o, "fps_scaling", s->fps_scaling);
    set(b, o, "slowest", s->slowest >= 0 ? json_integer(s->slowest) : json_null());
    set_real(b, o, "slowest_images_per_s", s->slowest_rate);
    set_real(b, o, "fastest_images_per_s", s->fastest_rate);
    set_real(b, o, "spread", s->spread);
    set_real(b, o, "start_skew_s", s->skew_s);
    for (size_t i = 0; i < s->count; i++)
        push(b, members, member_value(b, s, &s->members[i]));
    set(b, o, "members", members);
    return o;
}

json_t *lap_json_sets(builder *b, const lap_set *sets, size_t count) {
    json_t *a = json_array();
    for (size_t i = 0; i < count; i++)
        push(b, a, set_value(b, &sets[i]));
    return a;
}

json_t *lap_report_sets_json(const lap_set *sets, size_t count) {
    builder b = {false};
    json_t *list = lap_json_sets(&b, sets, count);
    if (!b.failed) return list;
    json_decref(list);
    return NULL;
}
