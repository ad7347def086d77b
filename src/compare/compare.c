/* Groups, baselines, judgements (see compare.h). The maths is in ratio.c, the rules about which
 * rows agree in match.c. */
#include "compare/compare.h"
#include "compare/names.h"
#include "compare/pairs.h"

#include <stdlib.h>
#include <string.h>

const lap_span *lap_record_span(const lap_record *record, bool wall) {
    return wall ? &record->wall : &record->latency;
}

bool lap_record_matches(const lap_record *r, const char *selector) {
    uint64_t batch;
    if (strncmp(selector, "name=", 5) == 0) return lap_text_contains(r->device, selector + 5);
    if (strncmp(selector, "batch=", 6) == 0)
        return lap_parse_u64(selector + 6, &batch) && batch == r->batch;
    const char *const whole[] = {r->selector,  r->backend,           r->device,
                                 r->precision, r->document->version, r->driver};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (whole[i][0] && strcmp(whole[i], selector) == 0) return true;
    /* Part of a name, but not what looks like the selector of another device. */
    return selector[0] && !strchr(selector, ':') && lap_text_contains(r->device, selector);
}

/* ---- lines and groups ----------------------------------------------------------------------- */

static lap_status allocate(lap_comparison *c, lap_error *err) {
    size_t rows = 0;
    for (size_t i = 0; i < c->document_count; i++)
        rows += c->documents[i]->row_count;
    c->duplicate_of = calloc(c->document_count + 1, sizeof *c->duplicate_of);
    c->lines = calloc(rows + 1, sizeof *c->lines);
    c->groups = calloc(rows + 1, sizeof *c->groups);
    if (!c->duplicate_of || !c->lines || !c->groups)
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory to compare %zu rows", rows);
    return LAP_OK;
}

static bool has_time(const lap_record *r, bool wall) {
    const lap_span *span = lap_record_span(r, wall);
    return r->ok && span->mean_s.has && span->mean_s.value > 0;
}

static size_t find_group(const lap_comparison *c, const lap_record *r) {
    for (size_t g = 0; g < c->group_count; g++)
        if (lap_same_case(c->lines[c->groups[g].first].record, r, c->options->axis)) return g;
    return c->group_count;
}

/* While they are collected, a group's `first` is its first line and lines are in file order. */
static void collect(lap_comparison *c) {
    for (size_t i = 0; i < c->document_count; i++) {
        const lap_document *d = c->documents[i];
        c->duplicate_of[i] = i;
        for (size_t k = 0; k < i && c->duplicate_of[i] == i; k++)
            if (lap_document_same(c->documents[k], d)) c->duplicate_of[i] = k;
        if (c->duplicate_of[i] != i) continue;
        for (size_t r = 0; r < d->row_count; r++) {
            const lap_record *record = &d->rows[r];
            size_t g = find_group(c, record);
            lap_line *line = &c->lines[c->line_count];
            *line = (lap_line){.record = record, .group = g, .apart = ""};
            line->timed = has_time(record, c->options->wall);
            if (g == c->group_count) c->groups[c->group_count++].first = c->line_count;
            c->groups[g].count++;
            c->line_count++;
        }
    }
}

/* ---- order ---------------------------------------------------------------------------------- */

static const char *const order_names[LAP_ORDERS] = {
    [LAP_ORDER_GIVEN] = "given",     [LAP_ORDER_SPEED] = "speed",
    [LAP_ORDER_LATENCY] = "latency", [LAP_ORDER_THROUGHPUT] = "throughput",
    [LAP_ORDER_DEVICE] = "device",   [LAP_ORDER_PRECISION] = "precision",
    [LAP_ORDER_BATCH] = "batch",     [LAP_ORDER_FILE] = "file",
};

const char *lap_order_name(lap_order order) {
    return order_names[order];
}

bool lap_order_parse(const char *name, lap_order *out) {
    for (int i = 0; i < LAP_ORDERS; i++) {
        if (strcmp(name, order_names[i]) != 0) continue;
        *out = (lap_order)i;
        return true;
    }
    return false;
}

static double batch_of(const lap_record *r) {
    return r->batch ? (double)r->batch : 1;
}

/* Images per second, or nothing. */
static lap_optional rate_of(const lap_line *line, bool wall) {
    if (!line->timed) return lap_none();
    return lap_some(batch_of(line->record) / lap_record_span(line->record, wall)->mean_s.value);
}

/* The mean, which is what is shown. */
static lap_optional latency_of(const lap_line *line, bool wall) {
    return line->timed ? lap_record_span(line->record, wall)->mean_s : lap_none();
}

/* What is known comes before what is not; then the larger value if `larger`, else the smaller. */
static int by_value(lap_optional a, lap_optional b, bool larger) {
    if (!a.has || !b.has) return (int)b.has - (int)a.has;
    int sign = (a.value > b.value) - (a.value < b.value);
    return larger ? -sign : sign;
}

static int in_order(const lap_line *a, const lap_line *b, lap_order order, bool wall) {
    const lap_record *x = a->record, *y = b->record;
    int names = strcmp(x->device, y->device);
    switch (order) {
    case LAP_ORDER_SPEED:
        return by_value(rate_of(a, wall), rate_of(b, wall), true);
    case LAP_ORDER_LATENCY:
        return by_value(latency_of(a, wall), latency_of(b, wall), false);
    case LAP_ORDER_THROUGHPUT:
        return by_value(x->images_per_s, y->images_per_s, true);
    case LAP_ORDER_DEVICE:
        return names ? names : strcmp(x->selector, y->selector);
    case LAP_ORDER_PRECISION:
        return strcmp(x->precision, y->precision);
    case LAP_ORDER_BATCH:
        return (x->batch > y->batch) - (x->batch < y->batch);
    case LAP_ORDER_FILE:
        return strcmp(x->document->path, y->document->path);
    default:
        return 0;
    }
}

static int compare_lines(const lap_line *a, const lap_line *b, lap_order order,
                         const lap_compare_options *o) {
    if (a->group != b->group) return a->group > b->group ? 1 : -1;
    int sign = in_order(a, b, order, o->wall);
    return o->reverse ? -sign : sign;
}

/* Group by group, each in its order; equal lines keep that of the files (a merge sort: qsort may
 * not). */
static lap_status sort_lines(lap_comparison *c, lap_order order, lap_error *err) {
    size_t n = c->line_count;
    lap_line *from = c->lines, *to = malloc((n + 1) * sizeof *to);
    if (!to) return LAP_FAIL(err, LAP_E_NOMEM, "no memory to sort %zu rows", n);
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t start = 0; start < n; start += 2 * width) {
            size_t middle = start + width < n ? start + width : n;
            size_t end = start + 2 * width < n ? start + 2 * width : n;
            size_t a = start, b = middle;
            for (size_t k = start; k < end; k++) {
                bool left = a < middle &&
                            (b >= end || compare_lines(&from[a], &from[b], order, c->options) <= 0);
                to[k] = from[left ? a++ : b++];
            }
        }
        lap_line *swap = from;
        from = to;
        to = swap;
    }
    c->lines = from;
    free(to);
    size_t at = 0;
    for (size_t g = 0; g < c->group_count; g++) {
        c->groups[g].first = at;
        at += c->groups[g].count;
    }
    return LAP_OK;
}

/* ---- baselines ------------------------------------------------------------------------------ */

static bool is_baseline_row(const lap_compare_options *o, const lap_record *r) {
    if (o->baseline_document) return r->document == o->baseline_document;
    return o->baseline && lap_record_matches(r, o->baseline);
}

static bool from_baseline(const lap_comparison *c, const lap_line *line) {
    return c->options->baseline_document && line->record->document == c->options->baseline_document;
}

static bool same_precision(const lap_record *a, const lap_record *b) {
    return strcmp(a->precision, b->precision) == 0;
}

static bool is_of(const lap_line *line, const char *precision) {
    return line->timed && (!precision || strcmp(line->record->precision, precision) == 0);
}

static size_t agreeing(const lap_comparison *c, const lap_group *g, const char *precision,
                       const lap_line *line) {
    size_t n = 0;
    for (size_t i = g->first; i < g->first + g->count; i++)
        n += is_of(&c->lines[i], precision) &&
             !lap_difference(line->record, c->lines[i].record, c->options->wall)[0];
    return n;
}

/* The fastest of the lines that most others of this precision (NULL: any) agree with. */
static lap_line *find_fastest(const lap_comparison *c, const lap_group *g, const char *precision) {
    lap_line *best = NULL;
    size_t most = 1; /* alone there is nothing to compare */
    for (size_t i = g->first; i < g->first + g->count; i++) {
        lap_line *line = &c->lines[i];
        if (!is_of(line, precision)) continue;
        bool wall = c->options->wall;
        /* Agreement has classes: whoever agrees with the best is agreed with by as many. */
        bool alike = best && !lap_difference(line->record, best->record, wall)[0];
        size_t n = alike ? most : agreeing(c, g, precision, line);
        bool better = n > most ||
                      (best && n == most && rate_of(line, wall).value > rate_of(best, wall).value);
        if (!better) continue;
        best = line;
        most = n;
    }
    return best;
}

/* This line is one that others, or nothing, are compared with. */
static void make_baseline(lap_line *line) {
    line->baseline = line->record;
    line->judgement = LAP_JUDGED_BASELINE;
}

static void compare_with(lap_line *line, lap_line *baseline) {
    if (baseline) make_baseline(baseline);
    line->baseline = baseline ? baseline->record : NULL;
}

/* No baseline was asked for: the fastest of each precision; a precision with nothing of its own to
 * compare takes the other's. */
static void choose_fastest(const lap_comparison *c, const lap_group *g) {
    const char *names[2] = {NULL, NULL}; /* a class has no more */
    lap_line *own[2] = {NULL, NULL};
    for (size_t i = g->first; i < g->first + g->count && c->options->axis != LAP_BY_PRECISION;
         i++) {
        const char *precision = c->lines[i].record->precision;
        if (!names[0])
            names[0] = precision;
        else if (!names[1] && strcmp(precision, names[0]) != 0)
            names[1] = precision;
    }
    for (int k = 0; k < 2; k++)
        if (names[k]) own[k] = find_fastest(c, g, names[k]);
    lap_line *any = own[0] || own[1] ? NULL : find_fastest(c, g, NULL);
    for (size_t i = g->first; i < g->first + g->count; i++) {
        int k = names[1] && strcmp(c->lines[i].record->precision, names[1]) == 0;
        compare_with(&c->lines[i], own[k] ? own[k] : own[!k] ? own[!k] : any);
    }
}

/* How much a row of the baseline is like this one: a sum of weights, each above all that follow. */
enum { LIKE_EVERYTHING = 63 };

static unsigned likeness(const lap_comparison *c, const lap_line *line, const lap_line *candidate) {
    const lap_record *a = line->record, *b = candidate->record;
    unsigned like = candidate->timed;
    if (!c->options->baseline_document) {
        /* A selector says itself which precision it is, when precisions are told apart. */
        bool same = c->options->axis == LAP_BY_PRECISION || same_precision(a, b);
        return like + (same ? LIKE_EVERYTHING - 1 : 0);
    }
    if (same_precision(a, b)) like += 32;
    if (strcmp(lap_precision_class(a->precision), lap_precision_class(b->precision)) == 0)
        like += 16;
    if (a->batch == b->batch) like += 8;
    if (lap_same_device(a, b)) like += 4;
    if (strcmp(a->backend, b->backend) == 0) like += 2;
    return like;
}

/* A row that the device cannot run is none: the class's other precision stands in for it. One that
 * failed is there, and leaves nothing to compare with. */
static bool is_there(const lap_line *line) {
    return line->timed || strcmp(line->record->status, "unsupported") != 0;
}

/* The row of the baseline for this line, the first of those most like it; NULL: none. */
static lap_line *find_baseline(const lap_comparison *c, const lap_group *g, const lap_line *line) {
    lap_line *best = NULL;
    unsigned most = 0;
    for (size_t i = g->first; i < g->first + g->count && most < LIKE_EVERYTHING; i++) {
        lap_line *candidate = &c->lines[i];
        if (!is_baseline_row(c->options, candidate->record) || !is_there(candidate)) continue;
        unsigned like = likeness(c, line, candidate);
        if (best && like <= most) continue;
        best = candidate;
        most = like;
    }
    return best;
}

/* Has a row of the baseline's file, of this one's precision and batch, something to do? */
static bool stands_in(const lap_comparison *c, const lap_group *g, const lap_line *line) {
    for (size_t i = g->first; i < g->first + g->count; i++) {
        const lap_line *other = &c->lines[i];
        if (other->judgement == LAP_JUDGED_BASELINE && from_baseline(c, other) &&
            same_precision(other->record, line->record) &&
            other->record->batch == line->record->batch)
            return true;
    }
    return false;
}

static void choose_asked(const lap_comparison *c, const lap_group *g) {
    for (size_t i = g->first; i < g->first + g->count; i++) {
        lap_line *line = &c->lines[i];
        if (from_baseline(c, line)) continue;
        lap_line *found = find_baseline(c, g, line);
        if (found && !found->timed && found->record->proof == LAP_PROOF_FAILED)
            line->apart = "the baseline's row is wrong: its verification failed";
        compare_with(line, found && found->timed ? found : NULL);
    }
    for (size_t i = g->first; i < g->first + g->count; i++) {
        lap_line *line = &c->lines[i];
        if (!from_baseline(c, line) || !line->timed || stands_in(c, g, line)) continue;
        make_baseline(line);
        line->missing = true;
    }
}

static lap_status check_selector(const lap_comparison *c, lap_error *err) {
    const lap_compare_options *o = c->options;
    if (!o->baseline || o->baseline_document) return LAP_OK;
    lap_text known = {0};
    for (size_t i = 0; i < c->line_count; i++) {
        const lap_record *r = c->lines[i].record;
        if (lap_record_matches(r, o->baseline)) {
            lap_text_free(&known);
            return LAP_OK;
        }
        if (known.length > 200 || strstr(lap_text_get(&known), r->selector)) continue;
        lap_text_addf(&known, "%s%.40s", known.length ? ", " : "", r->selector);
    }
    if (known.data) lap_text_clean(known.data);
    lap_status status = LAP_FAIL(
        err, LAP_E_CONFIG,
        "--baseline '%.100s' is no file and matches no row; expected a result file, part of a "
        "device's name, a precision, batch=N or a selector: %s",
        o->baseline, known.length ? lap_text_get(&known) : "there is no row at all");
    lap_text_free(&known);
    return status;
}

/* ---- judgements ----------------------------------------------------------------------------- */

/* Of a record with a time. */
static lap_mean rate_mean(const lap_record *r, bool wall) {
    const lap_span *span = lap_record_span(r, wall);
    return (lap_mean){batch_of(r) / span->mean_s.value, span->relative_error, span->n};
}

static const char *why_untimed(const lap_record *r, bool wall) {
    if (!r->ok && (r->reason[0] || r->proof != LAP_PROOF_FAILED))
        return r->reason[0] ? r->reason : r->status;
    if (r->proof == LAP_PROOF_FAILED) return "its verification failed";
    if (wall && r->latency.mean_s.has) return "the file has no wall spans";
    return r->images_per_s.has ? "no latency was measured, only throughput"
                               : "no latency was measured";
}

/* Why this line has no baseline, when none was asked for. */
static const char *why_alone(const lap_comparison *c, const lap_line *line) {
    const lap_group *g = &c->groups[line->group];
    for (size_t i = g->first; i < g->first + g->count; i++) {
        const lap_line *other = &c->lines[i];
        if (other == line || !other->timed) continue;
        const char *why = lap_difference_alone(line->record, other->record, c->options->wall);
        if (why[0]) return why;
    }
    return g->count > 1 ? "no other row of this case has a time" : "no other row has this case";
}

/* Why this line is not compared; "" when it is. */
static const char *why_apart(const lap_comparison *c, const lap_line *line) {
    const lap_compare_options *o = c->options;
    const lap_record *baseline = line->baseline;
    if (!line->timed) return why_untimed(line->record, o->wall);
    if (o->require_verified && line->record->proof != LAP_PROOF_PASSED)
        return "not verified, as --require-verified asks";
    if (from_baseline(c, line)) return "another row of the baseline's file";
    if (!baseline && line->apart[0]) return line->apart;
    if (!baseline)
        return o->baseline || o->baseline_document ? "the baseline has no time for this case"
                                                   : why_alone(c, line);
    if (o->require_verified && baseline->proof != LAP_PROOF_PASSED)
        return "the baseline is not verified, as --require-verified asks";
    return lap_difference(line->record, baseline, o->wall);
}

static void count(lap_comparison *c, const lap_line *line) {
    c->same += line->judgement == LAP_JUDGED_SAME;
    c->faster += line->judgement == LAP_JUDGED_FASTER;
    c->slower += line->judgement == LAP_JUDGED_SLOWER;
    c->unclear += line->judgement == LAP_JUDGED_UNCLEAR;
    c->apart += line->judgement == LAP_JUDGED_NOTHING;
    c->not_compared += line->failed_gate;
    c->missing += line->missing;
    c->not_verified += line->record->proof == LAP_PROOF_FAILED ||
                       (line->record->ok && line->record->proof != LAP_PROOF_PASSED);
}

static void judge_line(lap_comparison *c, lap_line *line) {
    const lap_compare_options *o = c->options;
    if (line->judgement == LAP_JUDGED_BASELINE) {
        if (o->require_verified && line->record->proof != LAP_PROOF_PASSED)
            line->apart = "not verified, as --require-verified asks";
        return;
    }
    line->apart = why_apart(c, line);
    if (line->apart[0]) {
        line->failed_gate = line->baseline && !from_baseline(c, line);
        return;
    }
    const lap_record *r = line->record, *baseline = line->baseline;
    lap_mean a = rate_mean(r, o->wall), b = rate_mean(baseline, o->wall);
    line->speed = lap_ratio_of_means(&a, &b);
    line->judgement = lap_judge(&line->speed, o->margin);
    lap_mean ta = {r->images_per_s.value, lap_none(), 1};
    lap_mean tb = {baseline->images_per_s.value, lap_none(), 1};
    line->throughput = lap_ratio_of_means(&ta, &tb);
}

static void judge_group(lap_comparison *c, const lap_group *g) {
    if (c->options->baseline || c->options->baseline_document)
        choose_asked(c, g);
    else
        choose_fastest(c, g);
    for (size_t i = g->first; i < g->first + g->count; i++) {
        lap_line *line = &c->lines[i];
        judge_line(c, line);
        count(c, line);
    }
}

lap_status lap_compare(const lap_document *const *documents, size_t count_of,
                       const lap_compare_options *options, lap_comparison *out, lap_error *err) {
    *out = (lap_comparison){.options = options, .documents = documents, .document_count = count_of};
    lap_status status = allocate(out, err);
    if (status == LAP_OK) {
        collect(out);
        status = check_selector(out, err);
    }
    if (status == LAP_OK) status = sort_lines(out, LAP_ORDER_GIVEN, err);
    for (size_t g = 0; status == LAP_OK && g < out->group_count; g++)
        judge_group(out, &out->groups[g]);
    if (status == LAP_OK) status = lap_find_pairs(out, err);
    /* Last: in which order lines are shown decides nothing. */
    if (status == LAP_OK) status = sort_lines(out, options->order, err);
    if (status == LAP_OK) status = lap_find_names(out, err);
    if (status != LAP_OK) lap_comparison_free(out);
    return status;
}

void lap_comparison_free(lap_comparison *comparison) {
    if (!comparison) return;
    free(comparison->duplicate_of);
    free(comparison->lines);
    free(comparison->groups);
    free(comparison->pairs);
    *comparison = (lap_comparison){0};
}

lap_gate lap_gate_of(const lap_comparison *c) {
    if (c->options->require_verified && c->not_verified > 0) return LAP_GATE_NOT_VERIFIED;
    if (!c->options->gate) return LAP_GATE_PASSED;
    if (c->slower > 0) return LAP_GATE_SLOWER;
    bool compared = c->same + c->faster + c->unclear > 0;
    return !compared || c->not_compared > 0 || c->missing > 0 ? LAP_GATE_NOT_COMPARED
                                                              : LAP_GATE_PASSED;
}
