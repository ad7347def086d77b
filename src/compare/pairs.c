/* One device, two APIs (see pairs.h): best throughput, latency of one image, empty kernel. */
#include "compare/pairs.h"

#include <stdlib.h>
#include <string.h>

/* A device has two or three APIs; what has more pairs is no measurement. */
enum { PAIRS_MAX = 1000 };

/* Network, size and precision class, whatever the batch, on the same physical device. */
static bool same_work(const lap_record *a, const lap_record *b) {
    return lap_same_physical(a, b) && strcmp(a->network, b->network) == 0 &&
           a->height == b->height && a->width == b->width &&
           strcmp(lap_precision_class(a->precision), lap_precision_class(b->precision)) == 0;
}

static bool same_route(const lap_record *a, const lap_record *b) {
    return same_work(a, b) && strcmp(a->backend, b->backend) == 0;
}

/* The first line of its route: the others are found from it. */
static bool leads(const lap_comparison *c, size_t at) {
    const lap_record *r = c->lines[at].record;
    if (!r->ok || r->others > 0 || (!r->uuid[0] && !r->pci[0])) return false;
    for (size_t i = 0; i < at; i++)
        if (c->lines[i].record->ok && c->lines[i].record->others == 0 &&
            same_route(c->lines[i].record, r))
            return false;
    return true;
}

/* What a route has: of several files the best throughput, else the first value. */
typedef struct route {
    const lap_line *batch_1;
    lap_optional images_per_s, floor_s;
} route;

static route gather(const lap_comparison *c, const lap_record *lead) {
    route out = {0};
    for (size_t i = 0; i < c->line_count; i++) {
        const lap_line *line = &c->lines[i];
        const lap_record *r = line->record;
        if (!r->ok || r->others > 0 || !same_route(r, lead)) continue;
        if (!out.batch_1 && line->timed && r->batch == 1) out.batch_1 = line;
        if (!out.floor_s.has) out.floor_s = r->floor_s;
        if (r->images_per_s.has &&
            (!out.images_per_s.has || r->images_per_s.value > out.images_per_s.value))
            out.images_per_s = r->images_per_s;
    }
    return out;
}

static lap_mean plain(lap_optional value) {
    return (lap_mean){value.value, lap_none(), 1};
}

static lap_mean latency_of(const lap_record *r, bool wall) {
    const lap_span *span = lap_record_span(r, wall);
    return (lap_mean){span->mean_s.value, span->relative_error, span->n};
}

static void fill(const lap_comparison *c, lap_api_pair *pair) {
    bool wall = c->options->wall;
    route a = gather(c, pair->a), b = gather(c, pair->b);
    lap_mean x = plain(a.images_per_s), y = plain(b.images_per_s);
    pair->throughput = lap_ratio_of_means(&x, &y);
    /* Less time is better: the other one is above. */
    x = plain(a.floor_s), y = plain(b.floor_s);
    pair->launch = lap_ratio_of_means(&y, &x);
    pair->apart = "";
    if (!a.batch_1 || !b.batch_1) {
        pair->apart = "batch 1 was not timed through both";
        return;
    }
    pair->batch_1a = a.batch_1->record;
    pair->batch_1b = b.batch_1->record;
    pair->apart = lap_difference(pair->batch_1a, pair->batch_1b, wall);
    if (pair->apart[0]) return;
    x = latency_of(pair->batch_1a, wall), y = latency_of(pair->batch_1b, wall);
    pair->latency = lap_ratio_of_means(&y, &x);
}

lap_status lap_find_pairs(lap_comparison *c, lap_error *err) {
    size_t capacity = 0, leading = 0;
    size_t *lead = malloc((c->line_count + 1) * sizeof *lead);
    lap_status status = LAP_OK;
    for (size_t i = 0; lead && i < c->line_count; i++)
        if (leads(c, i)) lead[leading++] = i;
    for (size_t i = 0; i < leading && status == LAP_OK; i++)
        for (size_t k = i + 1; k < leading && c->pair_count < PAIRS_MAX; k++) {
            const lap_record *a = c->lines[lead[i]].record, *b = c->lines[lead[k]].record;
            if (!same_work(a, b)) continue;
            if (c->pair_count == capacity) {
                size_t more = capacity ? 2 * capacity : 8;
                lap_api_pair *pairs = realloc(c->pairs, more * sizeof *pairs);
                if (!pairs) {
                    status = LAP_E_NOMEM;
                    break;
                }
                c->pairs = pairs;
                capacity = more;
            }
            c->pairs[c->pair_count] = (lap_api_pair){.a = a, .b = b};
            fill(c, &c->pairs[c->pair_count++]);
        }
    if (!lead || status != LAP_OK)
        status = LAP_FAIL(err, LAP_E_NOMEM, "no memory to pair %zu rows", c->line_count);
    free(lead);
    return status;
}
