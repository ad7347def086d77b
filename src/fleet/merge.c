/* Merging result documents (see merge.h). What other processes sent is read as carefully as a file
 * of somebody else's. */
#include "fleet/merge.h"
#include "report/format.h"
#include "report/json_build.h"
#include "report/sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MOST = 10000 };

typedef struct part {
    json_t *host, *started; /* of its document */
    size_t rows, first_row;
    bool added;
} part;

struct lap_merge {
    json_t *head; /* of the first document, without its lists */
    lap_text rows, devices;
    size_t row_count;
    part *parts;
    size_t ranks;
    lap_set *sets;
    size_t set_count;
};

lap_status lap_merge_new(size_t ranks, lap_merge **out, lap_error *err) {
    lap_merge *m = calloc(1, sizeof *m);
    *out = m;
    if (m) m->parts = calloc(ranks, sizeof *m->parts);
    if (m && m->parts) {
        m->ranks = ranks;
        return LAP_OK;
    }
    free(m);
    *out = NULL;
    return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the results of %zu ranks", ranks);
}

void lap_merge_free(lap_merge *m) {
    if (!m) return;
    for (size_t i = 0; i < m->ranks; i++) {
        json_decref(m->parts[i].host);
        json_decref(m->parts[i].started);
    }
    json_decref(m->head);
    lap_text_free(&m->rows);
    lap_text_free(&m->devices);
    lap_sets_free(m->sets, m->set_count);
    free(m->parts);
    free(m);
}

/* ---- reading one row ------------------------------------------------------------------------ */

static const char *word(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t number(const json_t *object, const char *key) {
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 ? (uint64_t)n : 0;
}

static lap_optional real(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? lap_some(json_number_value(value)) : lap_none();
}

static size_t read_rates(const json_t *list, double *out) {
    size_t n = json_array_size(list);
    if (n > LAP_ROUNDS_MOST) n = LAP_ROUNDS_MOST;
    for (size_t i = 0; i < n; i++) {
        double v = json_number_value(json_array_get(list, i));
        if (!(v > 0)) return i;
        out[i] = v;
    }
    return n;
}

static void read_rounds(const json_t *concurrent, lap_rounds *out) {
    size_t a = read_rates(json_object_get(concurrent, "alone_images_per_s"), out->alone);
    size_t b = read_rates(json_object_get(concurrent, "images_per_s"), out->together);
    out->n = a < b ? a : b;
    out->batch = number(concurrent, "batch");
    out->batches = number(concurrent, "batches");
}

static void read_member(const json_t *rows, json_t *row, const json_t *concurrent,
                        lap_set_member *m) {
    const json_t *latency = json_object_get(row, "latency");
    const json_t *alone = json_array_get(rows, number(concurrent, "alone_row"));
    const json_t *alone_latency = json_object_get(alone, "latency");
    m->ok = strcmp(word(row, "status"), "ok") == 0;
    snprintf(m->reason, sizeof m->reason, "%s", m->ok ? "" : word(row, "reason"));
    snprintf(m->selector, sizeof m->selector, "%s", word(row, "selector"));
    snprintf(m->device, sizeof m->device, "%s", word(json_object_get(row, "device"), "name"));
    read_rounds(concurrent, &m->rounds);
    m->mean_s = real(latency, "mean_s");
    m->mean_error = real(latency, "relative_noise");
    m->mean_n = (size_t)number(latency, "n");
    m->alone_mean_s = real(alone_latency, "mean_s");
    m->alone_mean_error = real(alone_latency, "relative_noise");
    m->alone_mean_n = (size_t)number(alone_latency, "n");
}

/* ---- sets ----------------------------------------------------------------------------------- */

static lap_status reserve_set(lap_merge *m, uint64_t number_of, const json_t *row, lap_set **out,
                              lap_error *err) {
    if (number_of > SETS_MOST)
        return LAP_FAIL(err, LAP_E_FORMAT, "set %llu of at most %d", (unsigned long long)number_of,
                        SETS_MOST);
    while (m->set_count < number_of) {
        lap_set *sets = realloc(m->sets, (m->set_count + 1) * sizeof *sets);
        if (!sets) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the sums");
        m->sets = sets;
        sets[m->set_count] = (lap_set){.fleet = true, .count = m->ranks};
        sets[m->set_count].members = calloc(m->ranks, sizeof *sets->members);
        if (!sets[m->set_count].members)
            return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the sums");
        m->set_count++;
    }
    lap_set *set = &m->sets[number_of - 1];
    if (!set->network[0]) {
        snprintf(set->network, sizeof set->network, "%s", word(row, "network"));
        snprintf(set->precision, sizeof set->precision, "%s", word(row, "precision"));
        set->height = (int)(number(row, "height") & 0xfffff);
        set->width = (int)(number(row, "width") & 0xfffff);
        set->batch = number(row, "batch");
    }
    *out = set;
    return LAP_OK;
}

static lap_status add_member(lap_merge *m, size_t rank, const char *host, json_t *rows, json_t *row,
                             size_t index, lap_error *err) {
    json_t *concurrent = json_object_get(row, "concurrent");
    uint64_t set_number = number(concurrent, "set");
    lap_set *set = NULL;
    if (set_number == 0) return LAP_OK;
    LAP_TRY(reserve_set(m, set_number, row, &set, err));
    lap_set_member *member = &set->members[rank];
    *member = (lap_set_member){.rank = rank, .row = index};
    snprintf(member->host, sizeof member->host, "%s", host);
    read_member(rows, row, concurrent, member);
    member->alone = m->row_count + number(concurrent, "alone_row");
    /* Indices are those of the whole document from now on. */
    json_object_set_new(concurrent, "alone_row", json_integer((json_int_t)member->alone));
    return LAP_OK;
}

/* ---- documents ------------------------------------------------------------------------------ */

static lap_status append(lap_text *out, json_t *value, lap_error *err) {
    char *text = json_dumps(value, JSON_INDENT(1) | JSON_REAL_PRECISION(LAP_REAL_DIGITS));
    if (!text) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the fleet's document");
    if (out->length) lap_text_add(out, ",\n");
    lap_text_add(out, text);
    free(text);
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the fleet's document") : LAP_OK;
}

static void say_who(builder *b, json_t *object, size_t rank, const char *host) {
    set_count(b, object, "rank", rank);
    set_text(b, object, "host_name", host);
}

static lap_status add_lists(lap_merge *m, size_t rank, const char *host, json_t *root,
                            lap_error *err) {
    json_t *rows = json_object_get(root, "rows"), *devices = json_object_get(root, "devices");
    builder b = {false};
    json_t *value;
    size_t i;
    json_array_foreach(rows, i, value) {
        if (!json_is_object(value)) return LAP_FAIL(err, LAP_E_FORMAT, "row %zu is no object", i);
        say_who(&b, value, rank, host);
        LAP_TRY(add_member(m, rank, host, rows, value, m->row_count + i, err));
    }
    json_array_foreach(rows, i, value) LAP_TRY(append(&m->rows, value, err));
    json_array_foreach(devices, i, value) {
        if (!json_is_object(value)) continue;
        say_who(&b, value, rank, host);
        LAP_TRY(append(&m->devices, value, err));
    }
    return b.failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the fleet's document") : LAP_OK;
}

lap_status lap_merge_add(lap_merge *m, size_t rank, const char *host, const char *json, size_t size,
                         lap_error *err) {
    json_error_t where;
    if (rank >= m->ranks || m->parts[rank].added)
        return LAP_FAIL(err, LAP_E_ARG, "rank %zu of %zu, or twice", rank, m->ranks);
    json_t *root = json_loadb(json, size, JSON_REJECT_DUPLICATES, &where);
    bool good = root && strcmp(word(root, "schema"), LAP_SCHEMA) == 0 &&
                json_is_array(json_object_get(root, "rows"));
    if (!good) {
        LAP_FAIL(err, LAP_E_FORMAT, "its document is not one of " LAP_SCHEMA "%s%s",
                 root ? "" : ": ", root ? "" : where.text);
        json_decref(root);
        return LAP_E_FORMAT;
    }
    lap_status status = add_lists(m, rank, host, root, err);
    if (status == LAP_OK) {
        part *p = &m->parts[rank];
        p->added = true;
        p->first_row = m->row_count;
        p->rows = json_array_size(json_object_get(root, "rows"));
        p->host = json_incref(json_object_get(root, "host"));
        p->started = json_incref(json_object_get(root, "started"));
        m->row_count += p->rows;
        if (!m->head) {
            m->head = json_incref(root);
            json_object_del(root, "rows");
            json_object_del(root, "devices");
            json_object_del(root, "sets");
            json_object_del(root, "fleet");
        }
    }
    json_decref(root);
    /* What was taken of a document that is refused is in no sum. */
    for (size_t s = 0; status != LAP_OK && s < m->set_count; s++)
        m->sets[s].members[rank] = (lap_set_member){0};
    return status;
}

lap_status lap_merge_sum(lap_merge *m, const lap_rank *ranks, lap_error *err) {
    (void)err;
    for (size_t s = 0; s < m->set_count; s++) {
        for (size_t i = 0; i < m->ranks; i++) {
            lap_set_member *member = &m->sets[s].members[i];
            if (member->selector[0]) continue;
            *member = (lap_set_member){.rank = i};
            snprintf(member->host, sizeof member->host, "%s", ranks[i].host);
            snprintf(member->selector, sizeof member->selector, "%s", ranks[i].selector);
            snprintf(member->device, sizeof member->device, "%s", ranks[i].device);
            snprintf(member->reason, sizeof member->reason, "%.60s: %.180s",
                     lap_rank_state_name(ranks[i].state),
                     ranks[i].reason[0] ? ranks[i].reason : "no row for this case");
        }
        lap_set_derive(&m->sets[s]);
    }
    return LAP_OK;
}

const lap_set *lap_merge_sets(const lap_merge *m, size_t *count) {
    *count = m->set_count;
    return m->sets;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* What the rank's document said; the same values, not copies. */
static void set_same(builder *b, json_t *o, const char *key, json_t *value) {
    set(b, o, key, value ? json_incref(value) : json_null());
}

static json_t *rank_value(builder *b, const lap_merge *m, const lap_rank *r, size_t rank) {
    static const char *const host_keys[] = {"cpu", "cores", "os", "kernel", "memory_bytes"};
    const part *p = &m->parts[rank];
    json_t *o = json_object();
    say_who(b, o, rank, r->host);
    set_size(b, o, "pid", r->pid);
    set_count(b, o, "local_rank", r->local_rank);
    set_known(b, o, "selector", r->selector);
    set_known(b, o, "device", r->device);
    set_text(b, o, "status", lap_rank_state_name(r->state));
    set_known(b, o, "reason", r->reason);
    set_known(b, o, "version", r->version);
    for (size_t i = 0; i < sizeof host_keys / sizeof *host_keys; i++)
        set_same(b, o, host_keys[i], json_object_get(p->host, host_keys[i]));
    set_same(b, o, "started", p->started);
    set_count(b, o, "rows", p->rows);
    set(b, o, "first_row", p->added ? count_value(p->first_row) : json_null());
    return o;
}

static json_t *fleet_value(const lap_merge *m, const lap_rank *ranks, const lap_merge_head *head) {
    builder b = {false};
    json_t *o = json_object(), *list = json_array();
    size_t ok = 0;
    for (size_t i = 0; i < m->ranks; i++) {
        ok += ranks[i].state == LAP_RANK_OK;
        push(&b, list, rank_value(&b, m, &ranks[i], i));
    }
    set_count(&b, o, "ranks_planned", m->ranks);
    set_count(&b, o, "ranks_ok", ok);
    set_known(&b, o, "launcher", head->launcher);
    set_real(&b, o, "timeout_s", lap_some(head->timeout_s));
    set(&b, o, "ranks", list);
    if (!b.failed) return o;
    json_decref(o);
    return NULL;
}

static lap_status add_value(lap_text *out, const char *key, json_t *value, lap_error *err) {
    lap_text text = {0};
    lap_status status =
        value ? append(&text, value, err) : LAP_FAIL(err, LAP_E_NOMEM, "no memory for %s", key);
    lap_text_addf(out, ",\n\"%s\": ", key);
    lap_text_add(out, lap_text_get(&text));
    lap_text_free(&text);
    json_decref(value);
    return status;
}

lap_status lap_merge_write(lap_merge *m, const lap_rank *ranks, const lap_merge_head *head,
                           lap_text *out, lap_error *err) {
    if (!m->head) return LAP_FAIL(err, LAP_E_NODEVICE, "fleet: no rank has a result");
    json_t *output = json_object_get(json_object_get(m->head, "config"), "output");
    if (output) json_object_set_new(output, "json", text_value(head->json_path));
    char *text = json_dumps(m->head, JSON_INDENT(1) | JSON_REAL_PRECISION(LAP_REAL_DIGITS));
    if (!text) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the fleet's document");
    char *end = strrchr(text, '}');
    if (end) *end = '\0';
    lap_text_add(out, text);
    free(text);
    lap_text_addf(out, ",\n\"devices\": [%s],\n\"rows\": [", lap_text_get(&m->devices));
    lap_text_addn(out, lap_text_get(&m->rows), m->rows.length);
    lap_text_add(out, "]");
    LAP_TRY(add_value(out, "sets", lap_report_sets_json(m->sets, m->set_count), err));
    LAP_TRY(add_value(out, "fleet", fleet_value(m, ranks, head), err));
    lap_text_add(out, "}\n");
    return out->failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the fleet's document") : LAP_OK;
}
