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

static bool same_precision(const lap_record *a, const lap_record *b) {
    return strcmp(a->precision, b->precision) == 0;
}

static bool same_route(const lap_record *a, const lap_record *b) {
    return same_work(a, b) && same_precision(a, b) && strcmp(a->backend, b->backend) == 0;
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

/* No clock of a single pass is in a throughput, and no emptied cache. */
static const char *throughput_difference(const lap_record *a, const lap_record *b) {
    lap_record hot_a = *a, hot_b = *b;
    hot_a.cache = hot_b.cache = "hot";
    return lap_difference_between(&hot_a, &hot_b, true);
}

/* What a route has. */
typedef struct route {
    const lap_record *batch_1, *best; /* best throughput; NULL: none */
    lap_optional floor_s;
} route;

/* Of several rows the first with a batch-1 latency and the best throughput, but verified ones
 * first, and of those that can be compared with `other`'s. */
static route gather(const lap_comparison *c, const lap_record *lead, const route *other) {
    route out = {0};
    unsigned batch_1_rank = 0, best_rank = 0;
    bool wall = c->options->wall;
    for (size_t i = 0; i < c->line_count; i++) {
        const lap_line *line = &c->lines[i];
        const lap_record *r = line->record;
        if (!r->ok || r->others > 0 || !same_route(r, lead)) continue;
        if (!out.floor_s.has) out.floor_s = r->floor_s;
        unsigned rank = 1 + (r->proof == LAP_PROOF_PASSED);
        if (line->timed && r->batch == 1) {
            bool like = other && other->batch_1 && !lap_difference(r, other->batch_1, wall)[0];
            unsigned mine = rank + (like ? 2 : 0);
            if (mine > batch_1_rank) out.batch_1 = r, batch_1_rank = mine;
        }
        if (r->images_per_s.has) {
            bool like = other && other->best && !throughput_difference(r, other->best)[0];
            unsigned mine = rank + (like ? 2 : 0);
            if (mine > best_rank ||
                (mine == best_rank && r->images_per_s.value > out.best->images_per_s.value))
                out.best = r, best_rank = mine;
        }
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
    route a = gather(c, pair->a, NULL), b = gather(c, pair->b, &a);
    lap_mean x, y;
    pair->throughput_apart = a.best && b.best ? throughput_difference(a.best, b.best) : "";
    if (a.best && b.best && !pair->throughput_apart[0]) {
        x = plain(a.best->images_per_s), y = plain(b.best->images_per_s);
        pair->throughput = lap_ratio_of_means(&x, &y);
    }
    /* Less time is better: the other one is above. */
    x = plain(a.floor_s), y = plain(b.floor_s);
    pair->launch = lap_ratio_of_means(&y, &x);
    pair->apart = "";
    if (!a.batch_1 || !b.batch_1) {
        pair->apart = "batch 1 was not timed through both";
        return;
    }
    pair->batch_1a = a.batch_1;
    pair->batch_1b = b.batch_1;
    pair->apart = lap_difference_between(pair->batch_1a, pair->batch_1b, wall);
    if (pair->apart[0]) return;
    x = latency_of(pair->batch_1a, wall), y = latency_of(pair->batch_1b, wall);
    pair->latency = lap_ratio_of_means(&y, &x);
}

/* Is a route of this API and the other's precision among those that lead? */
static bool has_route(const lap_comparison *c, const size_t *lead, size_t leading,
                      const lap_record *api, const lap_record *precision) {
    for (size_t i = 0; i < leading; i++) {
        const lap_record *r = c->lines[lead[i]].record;
        if (strcmp(r->backend, api->backend) == 0 && same_precision(r, precision) &&
            same_work(r, api))
            return true;
    }
    return false;
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
            if (strcmp(a->backend, b->backend) == 0 || !same_work(a, b)) continue;
            if (!same_precision(a, b) &&
                (has_route(c, lead, leading, a, b) || has_route(c, lead, leading, b, a)))
                continue;
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
