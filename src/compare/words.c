/* Comparisons in words (see words.h). */
#include "compare/words.h"
#include "compare/names.h"
#include "report/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DECIMALS = 6, EXACT_DECIMALS = 3 };

/* So many that the deviation shows one digit; never fewer than two. */
static int decimals_for(const lap_estimate *e) {
    double half = lap_estimate_half(e);
    if (!e->has_interval) return fabs(e->ratio - 1) < 0.095 ? 3 : 2;
    if (!(half > 0)) return EXACT_DECIMALS;
    int decimals = (int)ceil(-log10(half) - 1e-9); /* 0.01 is not quite that in binary */
    return decimals < 2 ? 2 : decimals > MOST_DECIMALS ? MOST_DECIMALS : decimals;
}

void lap_words_estimate(lap_text *out, const lap_estimate *e, bool utf8) {
    char ratio[400], half[400];
    if (!e->has) return;
    int decimals = decimals_for(e);
    /* Too small for fixed decimals: significant digits tell more than 0.00. */
    if (!e->has_interval && e->ratio < 0.1)
        lap_format_double(ratio, sizeof ratio, 3, e->ratio);
    else
        lap_format_fixed(ratio, sizeof ratio, decimals, e->ratio);
    lap_text_add(out, ratio);
    if (!e->has_interval) return;
    lap_format_fixed(half, sizeof half, decimals, lap_estimate_half(e));
    lap_text_addf(out, " %s %s", utf8 ? "±" : "+-", half);
}

/* ---- names ---------------------------------------------------------------------------------- */

static void add_api(lap_text *out, const lap_record *r) {
    size_t length;
    const char *name = lap_api_of(r, &length);
    lap_text_addn(out, name, length);
}

static const char *device_of(const lap_record *r) {
    return r->device[0] ? r->device : "an unnamed device";
}

static const char *precision_of(const lap_record *r) {
    return r->precision[0] ? r->precision : "unknown precision";
}

static void add_label(lap_text *out, const lap_record *r, lap_axis axis, bool with_precision) {
    lap_text_add(out, device_of(r));
    lap_text_add(out, " through ");
    add_api(out, r);
    if (with_precision || axis == LAP_BY_PRECISION) lap_text_addf(out, " in %s", precision_of(r));
    switch (axis) {
    case LAP_BY_BATCH:
        lap_text_addf(out, " at batch %llu", (unsigned long long)r->batch);
        break;
    case LAP_BY_FILE:
        lap_text_addf(out, " in %s", r->document->path);
        break;
    case LAP_BY_DRIVER:
        lap_text_addf(out, " with driver %s", r->driver[0] ? r->driver : "unknown");
        break;
    case LAP_BY_VERSION:
        lap_text_addf(out, " with warmlap %s",
                      r->document->version[0] ? r->document->version : "unknown");
        break;
    default:
        break;
    }
}

static void add_others(lap_text *out, const lap_record *r) {
    if (r->others)
        lap_text_addf(out, ", at the same time as %llu other%s", (unsigned long long)r->others,
                      r->others == 1 ? "" : "s");
}

static void add_case(lap_text *out, const lap_record *r, lap_axis axis, bool with_precision) {
    lap_text_addf(out, "%s %llux%llu", r->network[0] ? r->network : "unknown network",
                  (unsigned long long)r->height, (unsigned long long)r->width);
    if (with_precision && axis != LAP_BY_PRECISION) lap_text_addf(out, ", %s", precision_of(r));
    if (axis == LAP_BY_BATCH)
        lap_text_add(out, ", per image");
    else
        lap_text_addf(out, ", batch %llu", (unsigned long long)r->batch);
    add_others(out, r);
}

/* " (b.json, cuda:1)": what tells this row from all others that read like it. */
static void add_details(lap_text *out, const lap_record *r, unsigned names) {
    const char *before = " (";
    if (names & LAP_SAY_FILE) lap_text_addf(out, "%s%s", before, r->document->path), before = ", ";
    if (names & LAP_SAY_HOST)
        lap_text_addf(out, "%s%s", before, r->host[0] ? r->host : "no host"), before = ", ";
    if (names & LAP_SAY_SELECTOR) lap_text_addf(out, "%s%s", before, r->selector), before = ", ";
    if (names & LAP_SAY_ROW) lap_text_addf(out, "%srow %zu", before, r->index + 1), before = ", ";
    if (before[0] == ',') lap_text_add(out, ")");
}

/* ---- sentences ------------------------------------------------------------------------------ */

/* "1.43 ± 0.01 times faster than": told so that the number is above 1. */
static void add_relation(lap_text *out, const lap_estimate *speed, bool utf8) {
    lap_estimate told = speed->ratio < 1 ? lap_estimate_invert(speed) : *speed;
    if (!speed->has) {
        lap_text_add(out, "at a speed that cannot be compared with");
    } else if (speed->has_interval && speed->low <= 1 && speed->high >= 1) {
        lap_words_estimate(out, speed, utf8);
        lap_text_add(out, " times as fast as");
    } else {
        lap_words_estimate(out, &told, utf8);
        lap_text_addf(out, " times %s than", speed->ratio < 1 ? "slower" : "faster");
    }
}

void lap_words_sentence(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8) {
    const lap_record *r = line->record, *b = line->baseline;
    lap_axis axis = c->options->axis;
    bool one_precision = strcmp(r->precision, b->precision) == 0;
    add_label(out, r, axis, !one_precision);
    add_details(out, r, line->names);
    lap_text_add(out, " runs ");
    add_case(out, r, axis, one_precision);
    lap_text_add(out, ", ");
    add_relation(out, &line->speed, utf8);
    lap_text_add(out, " ");
    add_label(out, b, axis, !one_precision);
    add_details(out, b, line->baseline_names);
    if (line->speed.has && !line->speed.has_interval)
        lap_text_add(out, "; how sure that is cannot be told from a single sample");
    lap_text_add(out, ".");
}

/* ", throughput 1.01 times higher": a part of the line about a pair. */
static void add_part(lap_text *out, const char *what, const lap_estimate *e, const char *better,
                     const char *worse, bool utf8) {
    if (!e->has) return;
    bool equal = e->has_interval && e->low <= 1 && e->high >= 1;
    lap_estimate told = e->ratio < 1 && !equal ? lap_estimate_invert(e) : *e;
    lap_text_addf(out, "; %s ", what);
    lap_words_estimate(out, &told, utf8);
    lap_text_addf(out, " times %s", equal ? "as good" : e->ratio < 1 ? worse : better);
}

/* "; throughput not compared: the first was verified, the second was not" */
static void add_apart(lap_text *out, const char *what, const char *why) {
    if (why[0]) lap_text_addf(out, "; %s not compared: %s", what, why);
}

static void add_pair_unlike(lap_text *out, const lap_record *a, const lap_record *b) {
    lap_text told = {0};
    if (a && b) lap_add_remarkable(&told, a, b);
    if (told.length) lap_text_addf(out, " (%s)", lap_text_get(&told));
    if (told.failed) out->failed = true;
    lap_text_free(&told);
}

/* Another device of this name, through the same APIs at the same work? */
static bool has_twin(const lap_comparison *c, const lap_api_pair *pair) {
    const lap_record *a = pair->a;
    for (size_t i = 0; i < c->pair_count; i++) {
        const lap_record *o = c->pairs[i].a;
        if (&c->pairs[i] != pair && strcmp(o->device, a->device) == 0 &&
            strcmp(o->network, a->network) == 0 && strcmp(o->precision, a->precision) == 0 &&
            o->height == a->height && o->width == a->width)
            return true;
    }
    return false;
}

void lap_words_pair(lap_text *out, const lap_comparison *c, const lap_api_pair *pair, bool utf8) {
    const lap_record *a = pair->a, *b = pair->b;
    bool one = strcmp(a->precision, b->precision) == 0;
    lap_text_addf(out, "%s, %s %llux%llu%s%s, ", device_of(a), a->network,
                  (unsigned long long)a->height, (unsigned long long)a->width, one ? " " : "",
                  one ? a->precision : "");
    add_api(out, a);
    if (!one) lap_text_addf(out, " in %s", precision_of(a));
    bool twin = has_twin(c, pair);
    if (twin) lap_text_addf(out, " (%s, %s)", a->selector, a->document->path);
    lap_text_add(out, " against ");
    add_api(out, b);
    if (!one) lap_text_addf(out, " in %s", precision_of(b));
    if (twin) lap_text_addf(out, " (%s, %s)", b->selector, b->document->path);
    size_t before = out->length;
    add_part(out, "throughput", &pair->throughput, "higher", "lower", utf8);
    add_apart(out, "throughput", pair->throughput_apart);
    const char *latency = c->options->wall ? "batch-1 wall latency" : "batch-1 latency";
    add_part(out, latency, &pair->latency, "shorter", "longer", utf8);
    if (pair->latency.has) add_pair_unlike(out, pair->batch_1a, pair->batch_1b);
    add_apart(out, "batch-1 latency", pair->apart);
    add_part(out, "launch floor", &pair->launch, "shorter", "longer", utf8);
    if (out->length == before) lap_text_add(out, "; nothing to compare");
    lap_text_add(out, ".");
}

/* ---- remarks -------------------------------------------------------------------------------- */

static bool compared(const lap_line *line) {
    return line->judgement > LAP_JUDGED_BASELINE;
}

/* "NVIDIA H200, cuda:0, fp16, batch 1 (a.json)": of network, size, precision and so on those that
 * tell the row from others of this route and batch. */
static void add_line_name(lap_text *out, const lap_line *line) {
    const lap_record *r = line->record;
    unsigned names = line->names;
    lap_text_addf(out, "%s, %s", device_of(r), r->selector[0] ? r->selector : "unknown route");
    if (names & LAP_NAME_HOST && r->host[0]) lap_text_addf(out, " of %s", r->host);
    if (names & LAP_NAME_NETWORK)
        lap_text_addf(out, ", %s", r->network[0] ? r->network : "unknown network");
    if (names & LAP_NAME_SIZE)
        lap_text_addf(out, ", %llux%llu", (unsigned long long)r->height,
                      (unsigned long long)r->width);
    if (names & LAP_NAME_PRECISION) lap_text_addf(out, ", %s", precision_of(r));
    lap_text_addf(out, ", batch %llu", (unsigned long long)r->batch);
    if (names & LAP_NAME_OTHERS) add_others(out, r);
    if (names & LAP_NAME_ROW) lap_text_addf(out, ", row %zu", r->index + 1);
    lap_text_addf(out, " (%s)", r->document->path);
}

/* A line that is compared with what was run in another way. */
static bool unlike_remark(lap_text *out, const lap_line *line) {
    lap_text told = {0};
    if (compared(line)) lap_add_remarkable(&told, line->record, line->baseline);
    bool any = told.length > 0;
    if (any) {
        add_line_name(out, line);
        lap_text_addf(out, ": compared with what ran in another way: %s", lap_text_get(&told));
    }
    if (told.failed) out->failed = true;
    lap_text_free(&told);
    return any;
}

/* At most four remarks about one line; false when there is no such one. */
static bool line_remark(lap_text *out, const lap_line *line, int which) {
    const lap_record *r = line->record;
    switch (which) {
    case 0:
        if (!line->apart[0] && !line->missing) return false;
        add_line_name(out, line);
        if (!line->apart[0]) {
            lap_text_add(out, ": nothing was there to compare with this row of the baseline");
            return true;
        }
        if (line->judgement == LAP_JUDGED_BASELINE)
            lap_text_addf(out, ": the baseline is %s", line->apart);
        else
            lap_text_addf(out, ": %s: %s",
                          r->proof == LAP_PROOF_FAILED ? "wrong"
                          : r->ok                      ? "set apart"
                                                       : r->status,
                          line->apart);
        return true;
    case 1:
        if (!r->trust[0] || strcmp(r->trust, "stable") == 0) return false;
        add_line_name(out, line);
        lap_text_addf(out, ": its own file calls the measurement %s", r->trust);
        return true;
    case 2:
        if (!r->remark[0]) return false;
        add_line_name(out, line);
        lap_text_addf(out, ": %s", r->remark);
        return true;
    default:
        return unlike_remark(out, line);
    }
}

static bool document_remark(lap_text *out, const lap_comparison *c, size_t i) {
    const lap_document *d = c->documents[i];
    if (c->duplicate_of[i] != i)
        lap_text_addf(out, "%s is the same run as %s: counted once", d->path,
                      c->documents[c->duplicate_of[i]]->path);
    else if (d->row_count == 0)
        lap_text_addf(out, "%s has no rows", d->path);
    return out->length > 0;
}

/* ---- topics --------------------------------------------------------------------------------- */

typedef struct telling {
    lap_words_visit *visit;
    void *context;
    lap_text text;
} telling;

static void tell(telling *t, bool any) {
    if (any) t->visit(t->context, lap_text_get(&t->text));
    t->text.length = 0;
    if (t->text.data) t->text.data[0] = '\0';
}

const char *lap_topic_title(lap_topic topic) {
    static const char *const titles[LAP_TOPICS] = {"Speed", "One device through two APIs",
                                                   "Remarks"};
    return titles[topic];
}

bool lap_words_each(const lap_comparison *c, lap_topic topic, bool utf8, lap_words_visit *visit,
                    void *context) {
    telling t = {.visit = visit, .context = context};
    for (size_t i = 0; topic == LAP_TOPIC_REMARKS && i < c->document_count; i++)
        tell(&t, document_remark(&t.text, c, i));
    for (size_t i = 0; topic == LAP_TOPIC_REMARKS && i < c->line_count; i++)
        for (int which = 0; which < 4; which++)
            tell(&t, line_remark(&t.text, &c->lines[i], which));
    for (size_t i = 0; topic == LAP_TOPIC_SPEED && i < c->line_count; i++) {
        if (!compared(&c->lines[i])) continue;
        lap_words_sentence(&t.text, c, &c->lines[i], utf8);
        tell(&t, true);
    }
    for (size_t i = 0; topic == LAP_TOPIC_APIS && i < c->pair_count; i++) {
        lap_words_pair(&t.text, c, &c->pairs[i], utf8);
        tell(&t, true);
    }
    bool ok = !t.text.failed;
    lap_text_free(&t.text);
    return ok;
}

/* ---- around the table -------------------------------------------------------------------------
 */

static bool shows(const lap_selection *columns, const char *name) {
    for (size_t i = 0; i < columns->count; i++)
        if (strcmp(columns->columns[i]->name, name) == 0) return true;
    return false;
}

void lap_words_case(lap_text *out, const lap_comparison *c, const lap_selection *columns) {
    static const char *const names[] = {"network", "size", "precision"};
    const char *before = "";
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (shows(columns, names[k])) continue;
        lap_text shared = {0};
        if (lap_columns_shared(c, names[k], &shared) && shared.length) {
            lap_text_addf(out, "%s%s", before, lap_text_get(&shared));
            before = " ";
        }
        if (shared.failed) out->failed = true;
        lap_text_free(&shared);
    }
}

static void add_meaning(lap_text *out, const char *meaning) {
    if (out->length) lap_text_add(out, " ");
    lap_text_add(out, meaning);
}

void lap_words_legend(lap_text *out, const lap_comparison *c, const lap_selection *columns,
                      bool utf8) {
    const char *sign = utf8 ? "±" : "+-";
    bool concurrent = false;
    for (size_t i = 0; i < c->line_count; i++)
        concurrent = concurrent || c->lines[i].record->others > 0;
    if (c->line_count == 0) return;
    if (concurrent && shows(columns, "route"))
        add_meaning(out, "+N: at the same time as N other devices.");
    if (shows(columns, "latency")) {
        add_meaning(out, "Latency: mean ");
        lap_text_addf(out, "%s standard deviation of the %ssamples.", sign,
                      c->options->wall ? "wall spans of the " : "");
    }
    if (shows(columns, "fps")) add_meaning(out, "FPS: batch / mean latency.");
    if (shows(columns, "throughput"))
        add_meaning(out, "Img/s @ batch: batches back to back, at the fastest batch size found.");
    if (shows(columns, "speed")) {
        add_meaning(out, "Speed: FPS over that of the baseline of its case ");
        lap_text_addf(out, "%s half its 95 %% interval; above 1 is faster.", sign);
    }
    if (shows(columns, "verdict"))
        add_meaning(out, "Verdict: by the whole interval; unclear: it leaves more than one open.");
}

/* ---- summary -------------------------------------------------------------------------------- */

const char *lap_gate_name(lap_gate gate) {
    static const char *const names[] = {"passed", "not_compared", "not_verified", "slower"};
    return names[gate];
}

void lap_words_summary(lap_text *out, const lap_comparison *c) {
    char percent[40];
    lap_format_double(percent, sizeof percent, 6, c->options->margin * 100);
    lap_text_addf(out,
                  "Against a margin of %s %%: %zu same, %zu faster, %zu slower, %zu unclear; %zu "
                  "set apart.",
                  percent, c->same, c->faster, c->slower, c->unclear, c->apart);
    if (!c->options->gate && !c->options->require_verified) return;
    switch (lap_gate_of(c)) {
    case LAP_GATE_PASSED:
        lap_text_add(out, " Gate: passed.");
        break;
    case LAP_GATE_SLOWER:
        lap_text_addf(out, " Gate: FAILED, %zu slower by more than %s %%.", c->slower, percent);
        break;
    case LAP_GATE_NOT_VERIFIED:
        lap_text_addf(out, " Gate: FAILED, %zu not verified.", c->not_verified);
        break;
    case LAP_GATE_NOT_COMPARED:
        lap_text_addf(out,
                      " Gate: FAILED, %zu failed or could not be compared, %zu of the baseline's "
                      "cases are missing%s.",
                      c->not_compared, c->missing,
                      c->same + c->faster + c->unclear ? "" : ", nothing was compared");
        break;
    }
}
