/* What tells rows apart in words (see names.h): rows are sorted by what a name has anyway, then by
 * what it may have; those that read alike are neighbours. */
#include "compare/names.h"

#include <stdlib.h>
#include <string.h>

/* A line while it is sorted. */
typedef struct entry {
    const lap_record *r;
    size_t line;
    lap_axis axis;
} entry;

const char *lap_api_of(const lap_record *r, size_t *length) {
    const char *name = r->api[0] ? r->api : r->backend[0] ? r->backend : "an unknown API";
    *length = r->api[0] ? strcspn(name, " ") : strlen(name);
    return name;
}

static int by_number(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_size(const lap_record *a, const lap_record *b) {
    int order = by_number(a->height, b->height);
    return order ? order : by_number(a->width, b->width);
}

static int by_path(const lap_record *a, const lap_record *b) {
    return a->document == b->document ? 0 : strcmp(a->document->path, b->document->path);
}

static int by_api(const lap_record *a, const lap_record *b) {
    size_t n, m;
    const char *x = lap_api_of(a, &n), *y = lap_api_of(b, &m);
    int order = memcmp(x, y, n < m ? n : m);
    return order ? order : by_number(n, m);
}

static int by_axis(const lap_record *a, const lap_record *b, lap_axis axis) {
    switch (axis) {
    case LAP_BY_FILE:
        return by_path(a, b);
    case LAP_BY_DRIVER:
        return strcmp(a->driver, b->driver);
    case LAP_BY_VERSION:
        return strcmp(a->document->version, b->document->version);
    default:
        return 0;
    }
}

/* Label and case of a sentence: 0 when they are the same words. */
static int by_sentence(const entry *x, const entry *y) {
    const lap_record *a = x->r, *b = y->r;
    int order = by_number(a->batch, b->batch);
    if (!order) order = by_number(a->others, b->others);
    if (!order) order = by_size(a, b);
    if (!order) order = strcmp(a->precision, b->precision);
    if (!order) order = strcmp(a->network, b->network);
    if (!order) order = strcmp(a->device, b->device);
    if (!order) order = by_api(a, b);
    return order ? order : by_axis(a, b, x->axis);
}

/* How many of the details file, host and selector, in this order, two rows have in common. */
static int details_shared(const lap_record *a, const lap_record *b) {
    if (by_path(a, b)) return 0;
    if (strcmp(a->host, b->host) != 0) return 1;
    return strcmp(a->selector, b->selector) != 0 ? 2 : 3;
}

static int sentence_order(const void *left, const void *right) {
    const entry *a = left, *b = right;
    int order = by_sentence(a, b);
    if (!order) order = by_path(a->r, b->r);
    if (!order) order = strcmp(a->r->host, b->r->host);
    return order ? order : strcmp(a->r->selector, b->r->selector);
}

/* Device, selector and batch of a remark. */
static int by_remark(const entry *x, const entry *y) {
    const lap_record *a = x->r, *b = y->r;
    int order = by_number(a->batch, b->batch);
    if (!order) order = strcmp(a->selector, b->selector);
    return order ? order : strcmp(a->device, b->device);
}

static int by_rest(const entry *x, const entry *y) {
    const lap_record *a = x->r, *b = y->r;
    int order = by_number(a->others, b->others);
    if (!order) order = by_size(a, b);
    if (!order) order = strcmp(a->precision, b->precision);
    if (!order) order = strcmp(a->network, b->network);
    if (!order) order = strcmp(a->host, b->host);
    return order ? order : by_path(a, b);
}

static int remark_order(const void *left, const void *right) {
    int order = by_remark(left, right);
    return order ? order : by_rest(left, right);
}

/* The end of the run of entries that are alike, from first. */
static size_t run_end(const entry *e, size_t first, size_t n,
                      int (*order)(const entry *, const entry *)) {
    size_t end = first + 1;
    while (end < n && order(&e[first], &e[end]) == 0)
        end++;
    return end;
}

/* Sorted as they are, rows that share the first k details are neighbours: a detail is needed by all
 * of those that share what is before it and not it. */
static void say(lap_comparison *c, const entry *e, size_t first, size_t end) {
    static const unsigned details[] = {LAP_SAY_FILE, LAP_SAY_HOST, LAP_SAY_SELECTOR, LAP_SAY_ROW};
    for (int k = 0; k < 4; k++)
        for (size_t start = first, i = first + 1; i <= end; i++) {
            if (i < end && details_shared(e[i - 1].r, e[i].r) >= k) continue;
            bool differs = false;
            for (size_t j = start + 1; j < i && !differs; j++)
                differs = k == 3 || details_shared(e[j - 1].r, e[j].r) == k;
            for (size_t j = start; j < i && differs; j++)
                c->lines[e[j].line].names |= details[k];
            start = i;
        }
}

static unsigned remark_differences(const lap_record *a, const lap_record *b) {
    unsigned out = 0;
    if (strcmp(a->network, b->network) != 0) out |= LAP_NAME_NETWORK;
    if (by_size(a, b)) out |= LAP_NAME_SIZE;
    if (strcmp(a->precision, b->precision) != 0) out |= LAP_NAME_PRECISION;
    if (a->others != b->others) out |= LAP_NAME_OTHERS;
    if (strcmp(a->host, b->host) != 0) out |= LAP_NAME_HOST;
    return out;
}

static void name(lap_comparison *c, const entry *e, size_t first, size_t end) {
    unsigned differ = 0;
    for (size_t i = first + 1; i < end; i++) {
        differ |= remark_differences(e[first].r, e[i].r);
        if (by_rest(&e[i - 1], &e[i]) == 0) {
            c->lines[e[i - 1].line].names |= LAP_NAME_ROW;
            c->lines[e[i].line].names |= LAP_NAME_ROW;
        }
    }
    for (size_t i = first; i < end; i++)
        c->lines[e[i].line].names |= differ;
}

static int record_order(const void *left, const void *right) {
    const entry *a = left, *b = right;
    return ((uintptr_t)a->r > (uintptr_t)b->r) - ((uintptr_t)a->r < (uintptr_t)b->r);
}

lap_status lap_find_names(lap_comparison *c, lap_error *err) {
    size_t n = c->line_count;
    entry *e = malloc((n + 1) * sizeof *e);
    if (!e) return LAP_FAIL(err, LAP_E_NOMEM, "no memory to name %zu rows", n);
    for (size_t i = 0; i < n; i++)
        e[i] = (entry){c->lines[i].record, i, c->options->axis};
    qsort(e, n, sizeof *e, sentence_order);
    for (size_t i = 0, end; i < n; i = end) {
        end = run_end(e, i, n, by_sentence);
        say(c, e, i, end);
    }
    qsort(e, n, sizeof *e, remark_order);
    for (size_t i = 0, end; i < n; i = end) {
        end = run_end(e, i, n, by_remark);
        name(c, e, i, end);
    }
    qsort(e, n, sizeof *e, record_order);
    for (size_t i = 0; i < n; i++) {
        const entry wanted = {.r = c->lines[i].baseline};
        const entry *found = wanted.r ? bsearch(&wanted, e, n, sizeof *e, record_order) : NULL;
        if (found) c->lines[i].baseline_names = c->lines[found->line].names;
    }
    free(e);
    return LAP_OK;
}
