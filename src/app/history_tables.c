/* Grids of the history (see history_tables.h). Shows; computes nothing. */
#include "app/history_tables.h"
#include "compare/words.h"
#include "report/format.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SHORT_ID = 8, SPARK = 24 };

static void add_id(lap_grid *g, const char *run_id) {
    char id[SHORT_ID + 1];
    snprintf(id, sizeof id, "%.*s", SHORT_ID, run_id);
    lap_grid_text(g, run_id, id);
}

static void add_size(lap_grid *g, uint64_t height, uint64_t width) {
    char size[48];
    snprintf(size, sizeof size, "%llux%llu", (unsigned long long)height, (unsigned long long)width);
    lap_grid_text(g, size, NULL);
}

/* A time in ms, or a rate. */
static void metric_text(char *out, size_t size, lap_metric metric, double value) {
    if (metric == LAP_METRIC_LATENCY || metric == LAP_METRIC_P50)
        lap_format_ms(out, size, value);
    else
        lap_format_rate(out, size, value, false);
}

/* ---- list ----------------------------------------------------------------------------------- */

lap_grid *lap_history_list_grid(void) {
    static const lap_grid_column columns[] = {
        {"run", {"Run", false, 0, 0}},          {"started", {"Started", false, 0, 0}},
        {"devices", {"Devices", false, 12, 0}}, {"rows", {"Rows", true, 0, 0}},
        {"state", {"State", false, 0, 2}},      {"version", {"Version", false, 0, 3}},
        {"host", {"Host", false, 10, 4}},       {"file", {"File", false, 10, 1}},
        {"added", {"Added", false, 0, 6}},      {"bytes", {"Bytes", true, 0, 5}}};
    return lap_grid_new(columns, sizeof columns / sizeof *columns);
}

void lap_history_list_add(lap_grid *g, const lap_history_run *run) {
    const char *slash = strrchr(run->name, '/');
    lap_grid_row(g, run->finished ? LAP_TONE_PLAIN : LAP_TONE_DIM);
    add_id(g, run->run_id);
    lap_grid_text(g, run->started, NULL);
    lap_grid_text(g, run->devices, NULL);
    lap_grid_count(g, run->rows, run->rows ? NULL : "0");
    lap_grid_text(g, run->finished ? "finished" : "unfinished", NULL);
    lap_grid_text(g, run->version, NULL);
    lap_grid_text(g, run->host, NULL);
    lap_grid_text(g, run->name, slash && slash[1] ? slash + 1 : NULL);
    lap_grid_text(g, run->added, NULL);
    lap_grid_count(g, run->bytes, NULL);
}

/* ---- show ----------------------------------------------------------------------------------- */

enum { SHOW_FIRST_METRIC = 8 };

lap_grid *lap_history_show_grid(const lap_metric *metric) {
    static const lap_grid_column columns[] = {{"run", {"Run", false, 0, 0}},
                                              {"started", {"Started", false, 0, 0}},
                                              {"device", {"Device", false, 10, 0}},
                                              {"route", {"Route", false, 6, 0}},
                                              {"network", {"Network", false, 8, 4}},
                                              {"size", {"Size", false, 0, 5}},
                                              {"precision", {"Prec", false, 0, 0}},
                                              {"batch", {"Batch", true, 0, 0}},
                                              {"latency_s", {"Latency ms", true, 0, 0}},
                                              {"p50_s", {"p50 ms", true, 0, 1}},
                                              {"fps", {"FPS", true, 0, 0}},
                                              {"images_per_s", {"Img/s @ batch", true, 0, 2}},
                                              {"status", {"Status", false, 0, 3}},
                                              {"verified", {"Verified", false, 0, 6}},
                                              {"measurement", {"Measurement", false, 0, 7}},
                                              {"host", {"Host", false, 8, 8}}};
    lap_grid *g = lap_grid_new(columns, sizeof columns / sizeof *columns);
    for (int m = 0; metric && m < LAP_METRICS; m++)
        if ((lap_metric)m != *metric) lap_grid_hide(g, (size_t)SHOW_FIRST_METRIC + (size_t)m);
    return g;
}

static void add_metric(lap_grid *g, lap_metric metric, const lap_history_row *r, bool utf8) {
    char text[400], deviation[400];
    lap_text shown = {0};
    lap_optional value = lap_metric_of(metric, r);
    if (value.has) {
        metric_text(text, sizeof text, metric, value.value);
        lap_text_add(&shown, text);
    }
    if (value.has && metric == LAP_METRIC_LATENCY && r->latency.std_s.has) {
        lap_format_fixed(deviation, sizeof deviation, lap_ms_decimals(value.value),
                         r->latency.std_s.value * 1e3);
        lap_text_addf(&shown, " %s %s", utf8 ? "±" : "+-", deviation);
    }
    if (value.has && metric == LAP_METRIC_THROUGHPUT)
        lap_text_addf(&shown, " @ %llu", (unsigned long long)r->throughput_batch);
    lap_grid_real(g, value, lap_text_get(&shown));
    lap_text_free(&shown);
}

void lap_history_show_add(lap_grid *g, const lap_history_row *r, bool utf8) {
    bool ok = strcmp(r->status, "ok") == 0;
    lap_grid_row(g, ok ? LAP_TONE_PLAIN : LAP_TONE_BAD);
    add_id(g, r->run_id);
    lap_grid_text(g, r->started, NULL);
    lap_grid_text(g, r->device, NULL);
    lap_grid_text(g, r->selector, NULL);
    lap_grid_text(g, r->network, NULL);
    add_size(g, r->height, r->width);
    lap_grid_text(g, r->precision, NULL);
    lap_grid_count(g, r->batch, NULL);
    for (int m = 0; m < LAP_METRICS; m++)
        add_metric(g, (lap_metric)m, r, utf8);
    lap_grid_text(g, r->status, NULL);
    lap_grid_text(g,
                  r->proof == LAP_PROOF_PASSED   ? "yes"
                  : r->proof == LAP_PROOF_FAILED ? "no"
                                                 : NULL,
                  NULL);
    lap_grid_text(g, r->trust, NULL);
    lap_grid_text(g, r->host, NULL);
}

/* ---- trend ---------------------------------------------------------------------------------- */

enum { TREND_REMARK = 17, TREND_METRIC = 18 };

const char *lap_history_trend_legend(lap_metric metric) {
    static const char *const legends[LAP_METRICS] = {
        [LAP_METRIC_LATENCY] = "First, best, latest: mean latency in ms.",
        [LAP_METRIC_P50] = "First, best, latest: median latency in ms.",
        [LAP_METRIC_FPS] = "First, best, latest: images per second, batch / mean latency.",
        [LAP_METRIC_THROUGHPUT] = "First, best, latest: images per second, batches back to back."};
    return legends[metric];
}

lap_grid *lap_history_trend_grid(void) {
    static const lap_grid_column columns[] = {{"device", {"Device", false, 10, 0}},
                                              {"route", {"Route", false, 6, 0}},
                                              {"backend", {"API", false, 0, 5}},
                                              {"network", {"Network", false, 8, 3}},
                                              {"size", {"Size", false, 0, 4}},
                                              {"precision", {"Prec", false, 0, 0}},
                                              {"batch", {"Batch", true, 0, 0}},
                                              {"runs", {"Runs", true, 0, 0}},
                                              {"first", {"First", true, 0, 1}},
                                              {"best", {"Best", true, 0, 2}},
                                              {"latest", {"Latest", true, 0, 0}},
                                              {"change", {"Change", true, 0, 0}},
                                              {"verdict", {"Verdict", false, 0, 0}},
                                              {"latest_run", {"Run", false, 0, 6}},
                                              {"latest_started", {"Started", false, 0, 7}},
                                              {"course", {"Course", false, 0, 1}},
                                              {"host", {"Host", false, 8, 8}},
                                              {"remark", {"Remark", false, 22, 0}},
                                              {"metric", {"Metric", false, 0, 9}}};
    lap_grid *g = lap_grid_new(columns, sizeof columns / sizeof *columns);
    lap_grid_hide(g, TREND_METRIC); /* the table's legend has it, with the unit */
    return g;
}

/* The latest values as bars from the least to the largest. */
static void add_course(lap_grid *g, const lap_trend *t, bool utf8) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t first = t->count > SPARK ? t->count - SPARK : 0;
    double low = t->points[first].value, high = low;
    for (size_t i = first; i < t->count; i++) {
        if (t->points[i].value < low) low = t->points[i].value;
        if (t->points[i].value > high) high = t->points[i].value;
    }
    lap_text course = {0}, values = {0};
    for (size_t i = first; i < t->count; i++) {
        char number[40];
        double place = high > low ? (t->points[i].value - low) / (high - low) : 0;
        if (utf8)
            lap_text_add(&course, bars[(int)(place * 7 + 0.5)]);
        else
            lap_text_addf(&course, "%d", (int)(place * 9 + 0.5));
        lap_format_double(number, sizeof number, 6, t->points[i].value);
        lap_text_addf(&values, "%s%s", i > first ? " " : "", number);
    }
    lap_grid_text(g, lap_text_get(&values), lap_text_get(&course));
    lap_text_free(&course);
    lap_text_free(&values);
}

static void add_value(lap_grid *g, lap_metric metric, double value) {
    char shown[400];
    metric_text(shown, sizeof shown, metric, value);
    lap_grid_real(g, lap_some(value), shown);
}

/* What tells a case from others of the table that look the same. */
typedef struct variety {
    bool weights, platform, device;
} variety;

static variety variety_of(const lap_trends *all, const lap_trend *t) {
    variety v = {false, false, false};
    for (size_t i = 0; i < all->count; i++) {
        const lap_trend *other = &all->trends[i];
        v.weights = v.weights || strcmp(t->weights, other->weights) != 0;
        if (strcmp(t->device, other->device) != 0 || strcmp(t->backend, other->backend) != 0)
            continue;
        v.platform = v.platform || strcmp(t->platform, other->platform) != 0;
        v.device = v.device ||
                   (strcmp(t->selector, other->selector) == 0 &&
                    (strcasecmp(t->uuid, other->uuid) != 0 || strcasecmp(t->pci, other->pci) != 0 ||
                     strcmp(t->machine, other->machine) != 0));
    }
    return v;
}

static void remark(lap_text *out, const char *before, const char *text) {
    if (*text) lap_text_addf(out, "%s%s%s", out->length ? "; " : "", before, text);
}

/* What makes the case another one than a device alone, verified and timed as usual. */
static void remarks_of(const lap_trend *t, const variety *v, lap_text *out) {
    char text[64] = "";
    if (t->others > 0 && *t->beside)
        remark(out, "one of ", t->beside);
    else if (t->others > 0)
        snprintf(text, sizeof text, "beside %llu other%s", (unsigned long long)t->others,
                 t->others == 1 ? "" : "s");
    remark(out, "", text);
    if (t->proof == LAP_PROOF_NONE) remark(out, "", "not verified");
    if (strcmp(t->cache, "cold") == 0) remark(out, "", "cold cache");
    if (strcmp(t->clock, "wall") == 0) remark(out, "", "wall clock");
    if (v->weights) remark(out, "weights ", *t->weights ? t->weights : "not known");
    if (v->platform) remark(out, "platform ", t->platform);
    if (v->device) remark(out, "UUID ", t->uuid);
    if (v->device && !*t->uuid) remark(out, "PCI ", t->pci);
    if (v->device) remark(out, "on ", t->machine);
    if (t->repeats > 0) {
        snprintf(text, sizeof text, "%zu", t->repeats);
        remark(out, "rows of the same runs left out: ", text);
    }
}

static void add_trend(lap_grid *g, lap_metric metric, const lap_trend *t, const char *remarks,
                      bool utf8) {
    const lap_trend_point *latest = &t->points[t->count - 1];
    lap_grid_row(g, t->judgement == LAP_JUDGED_SLOWER   ? LAP_TONE_BAD
                    : t->judgement == LAP_JUDGED_FASTER ? LAP_TONE_GOOD
                                                        : LAP_TONE_PLAIN);
    lap_grid_text(g, t->device, NULL);
    lap_grid_text(g, t->selector, NULL);
    lap_grid_text(g, t->backend, NULL);
    lap_grid_text(g, t->network, NULL);
    add_size(g, t->height, t->width);
    lap_grid_text(g, t->precision, NULL);
    lap_grid_count(g, t->batch, NULL);
    lap_grid_count(g, t->count, NULL);
    add_value(g, metric, t->points[0].value);
    add_value(g, metric, t->best);
    add_value(g, metric, latest->value);
    lap_text change = {0};
    lap_words_estimate(&change, &t->change, utf8);
    lap_grid_real(g, t->change.has ? lap_some(t->change.ratio) : lap_none(), lap_text_get(&change));
    lap_text_free(&change);
    lap_grid_text(g, lap_judgement_name(t->judgement), NULL);
    add_id(g, latest->run_id);
    lap_grid_text(g, latest->started, NULL);
    add_course(g, t, utf8);
    lap_grid_text(g, t->host, NULL);
    lap_grid_text(g, *remarks ? remarks : NULL, NULL);
    lap_grid_text(g, lap_metric_name(metric), NULL);
}

void lap_history_trends_add(lap_grid *g, lap_metric metric, const lap_trends *all, bool utf8) {
    bool any = false;
    for (size_t i = 0; i < all->count; i++) {
        variety v = variety_of(all, &all->trends[i]);
        lap_text remarks = {0};
        remarks_of(&all->trends[i], &v, &remarks);
        any = any || remarks.length > 0;
        add_trend(g, metric, &all->trends[i], lap_text_get(&remarks), utf8);
        lap_text_free(&remarks);
    }
    if (!any) lap_grid_hide(g, TREND_REMARK);
}
