/* Columns of a comparison (see columns.h). Cells show what is there; what is not is empty. */
#include "compare/columns.h"
#include "compare/words.h"
#include "report/format.h"

#include <stdio.h>
#include <string.h>

static void add_real(lap_text *out, lap_optional value) {
    char number[40];
    if (!value.has || !lap_some(value.value).has) return;
    lap_format_double(number, sizeof number, LAP_REAL_DIGITS, value.value);
    lap_text_add(out, number);
}

static void add_count(lap_text *out, uint64_t value) {
    if (value) lap_text_addf(out, "%llu", (unsigned long long)value);
}

static const lap_span *span_of(const lap_comparison *c, const lap_line *line) {
    return lap_record_span(line->record, c->options->wall);
}

/* As the run's own table has it: "cuda:0 +1" at the same time as one other. */
static void add_route(lap_text *out, const lap_record *r) {
    lap_text_add(out, r->selector);
    if (r->others) lap_text_addf(out, " +%llu", (unsigned long long)r->others);
}

/* A cell function: `expression` appends to out; c, line and utf8 may be used. */
#define CELL(name, expression)                                                                     \
    static void cell_##name(lap_text *out, const lap_comparison *c, const lap_line *line,          \
                            bool utf8) {                                                           \
        (void)c;                                                                                   \
        (void)utf8;                                                                                \
        const lap_record *r = line->record;                                                        \
        (void)r;                                                                                   \
        expression;                                                                                \
    }

CELL(device, lap_text_add(out, r->device))
CELL(route, add_route(out, r))
CELL(backend, lap_text_add(out, r->backend))
CELL(platform, lap_text_add(out, r->platform))
CELL(api, lap_text_add(out, r->api))
CELL(driver, lap_text_add(out, r->driver))
CELL(type, lap_text_add(out, r->type))
CELL(uuid, lap_text_add(out, r->uuid))
CELL(pci, lap_text_add(out, r->pci))
CELL(network, lap_text_add(out, r->network))
CELL(height, add_count(out, r->height))
CELL(width, add_count(out, r->width))
CELL(precision, lap_text_add(out, r->precision))
CELL(batch, add_count(out, r->batch))
CELL(weights, lap_text_add(out, r->weights))
CELL(status, lap_text_add(out, r->status))
CELL(reason, lap_text_add(out, r->reason))
CELL(n, add_count(out, span_of(c, line)->n))
CELL(mean_s, add_real(out, span_of(c, line)->mean_s))
CELL(std_s, add_real(out, span_of(c, line)->std_s))
CELL(p50_s, add_real(out, span_of(c, line)->p50_s))
CELL(throughput_batch, add_count(out, r->throughput_batch))
CELL(throughput_images_per_s, add_real(out, r->images_per_s))
CELL(floor_s, add_real(out, r->floor_s))
CELL(verdict, lap_text_add(out, lap_judgement_name(line->judgement)))
CELL(trust, lap_text_add(out, r->trust))
CELL(apart, lap_text_add(out, line->apart))
CELL(path, lap_text_add(out, r->document->path))
CELL(started, lap_text_add(out, r->document->started))
CELL(version, lap_text_add(out, r->document->version))
CELL(host, lap_text_add(out, r->document->cpu))
CELL(speed_ratio, add_real(out, line->speed.has ? lap_some(line->speed.ratio) : lap_none()))
CELL(speed_low, add_real(out, line->speed.has_interval ? lap_some(line->speed.low) : lap_none()))
CELL(speed_high, add_real(out, line->speed.has_interval ? lap_some(line->speed.high) : lap_none()))
CELL(throughput_ratio,
     add_real(out, line->throughput.has ? lap_some(line->throughput.ratio) : lap_none()))
CELL(verified, lap_text_add(out, r->proof == LAP_PROOF_PASSED   ? "yes"
                                 : r->proof == LAP_PROOF_FAILED ? "no"
                                                                : ""))
CELL(clock, lap_text_add(out, c->options->wall &&span_of(c, line)->mean_s.has ? "wall" : r->clock))

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The file's name, with its folders only where another file has the same name. */
static void cell_file(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8) {
    (void)utf8;
    const char *path = line->record->document->path, *name = base_name(path);
    for (size_t i = 0; i < c->document_count; i++)
        if (c->documents[i] != line->record->document &&
            strcmp(base_name(c->documents[i]->path), name) == 0)
            name = path;
    lap_text_add(out, name);
}

static void cell_size(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8) {
    (void)c, (void)utf8;
    lap_text_addf(out, "%llux%llu", (unsigned long long)line->record->height,
                  (unsigned long long)line->record->width);
}

/* Mean and deviation: what the ratio was made from. */
static void cell_latency(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8) {
    const lap_span *span = span_of(c, line);
    char mean[400], deviation[400];
    if (!line->timed) return;
    lap_format_ms(mean, sizeof mean, span->mean_s.value);
    lap_text_add(out, mean);
    if (!span->std_s.has) return;
    lap_format_fixed(deviation, sizeof deviation, lap_ms_decimals(span->mean_s.value),
                     span->std_s.value * 1e3);
    lap_text_addf(out, " %s %s", utf8 ? "±" : "+-", deviation);
}

static void cell_fps(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8) {
    (void)utf8;
    char rate[400];
    if (!line->timed || line->record->batch == 0) return;
    lap_format_rate(rate, sizeof rate, (double)line->record->batch / span_of(c, line)->mean_s.value,
                    false);
    lap_text_add(out, rate);
}

static void cell_throughput(lap_text *out, const lap_comparison *c, const lap_line *line,
                            bool utf8) {
    (void)c, (void)utf8;
    char rate[400];
    if (!line->record->images_per_s.has) return;
    lap_format_rate(rate, sizeof rate, line->record->images_per_s.value, false);
    lap_text_addf(out, "%s @ %llu", rate, (unsigned long long)line->record->throughput_batch);
}

static void cell_speed(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8) {
    (void)c;
    if (line->judgement == LAP_JUDGED_BASELINE) lap_text_add(out, "1");
    lap_words_estimate(out, &line->speed, utf8);
}

/* In which precision the row was that this one is compared with. */
static const char *against(const lap_line *line) {
    return line->judgement > LAP_JUDGED_BASELINE ? line->baseline->precision : "";
}

CELL(against, lap_text_add(out, against(line)))

static const lap_column columns[] = {
    /* for people */
    {"device", "Device", false, 10, 4, cell_device},
    {"route", "Route", false, 6, 0, cell_route},
    {"network", "Network", false, 8, 7, cell_network},
    {"size", "Size", false, 9, 6, cell_size},
    {"precision", "Prec", false, 0, 5, cell_precision},
    {"batch", "Batch", true, 6, 0, cell_batch},
    {"latency", "Latency ms", true, 0, 0, cell_latency},
    {"fps", "FPS", true, 6, 3, cell_fps},
    {"throughput", "Img/s @ batch", true, 13, 2, cell_throughput},
    {"speed", "Speed", true, 0, 0, cell_speed},
    {"verdict", "Verdict", false, 0, 0, cell_verdict},
    {"against", "Against", false, 0, 0, cell_against},
    {"status", "Status", false, 0, 0, cell_status},
    {"file", "File", false, 8, 1, cell_file},
    /* for programs as well */
    {"backend", "Backend", false, 6, 0, cell_backend},
    {"platform", "Platform", false, 8, 0, cell_platform},
    {"api", "API", false, 6, 0, cell_api},
    {"driver", "Driver", false, 6, 0, cell_driver},
    {"type", "Type", false, 4, 0, cell_type},
    {"uuid", "UUID", false, 8, 0, cell_uuid},
    {"pci", "PCI", false, 8, 0, cell_pci},
    {"height", "Height", true, 4, 0, cell_height},
    {"width", "Width", true, 4, 0, cell_width},
    {"weights", "Weights", false, 8, 0, cell_weights},
    {"reason", "Reason", false, 8, 0, cell_reason},
    {"verified", "Verified", false, 0, 0, cell_verified},
    {"clock", "Clock", false, 0, 0, cell_clock},
    {"n", "Samples", true, 0, 0, cell_n},
    {"mean_s", "Mean s", true, 8, 0, cell_mean_s},
    {"std_s", "Std s", true, 8, 0, cell_std_s},
    {"p50_s", "Median s", true, 8, 0, cell_p50_s},
    {"throughput_batch", "Best batch", true, 6, 0, cell_throughput_batch},
    {"throughput_images_per_s", "Images/s", true, 8, 0, cell_throughput_images_per_s},
    {"floor_s", "Floor s", true, 8, 0, cell_floor_s},
    {"speed_ratio", "Speed ratio", true, 8, 0, cell_speed_ratio},
    {"speed_low", "Speed low", true, 8, 0, cell_speed_low},
    {"speed_high", "Speed high", true, 8, 0, cell_speed_high},
    {"throughput_ratio", "Throughput ratio", true, 8, 0, cell_throughput_ratio},
    {"trust", "Measurement", false, 6, 0, cell_trust},
    {"apart", "Set apart", false, 8, 0, cell_apart},
    {"path", "Path", false, 8, 0, cell_path},
    {"started", "Started", false, 10, 0, cell_started},
    {"version", "Version", false, 6, 0, cell_version},
    {"host", "Host", false, 8, 0, cell_host},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static const lap_column *find(const char *name, size_t n) {
    for (size_t i = 0; i < COLUMNS; i++)
        if (strlen(columns[i].name) == n && strncmp(columns[i].name, name, n) == 0)
            return &columns[i];
    return NULL;
}

static lap_status unknown(const char *word, size_t n, lap_error *err) {
    char shown[64];
    const char *names[COLUMNS];
    for (size_t i = 0; i < COLUMNS; i++)
        names[i] = columns[i].name;
    snprintf(shown, sizeof shown, "%.*s", n < 60 ? (int)n : 60, word);
    lap_text_clean(shown);
    const char *closest = lap_text_closest(shown, names, COLUMNS);
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "--columns: '%s' is no column%s%s%s `warmlap compare --help` lists them", shown,
                    closest ? "; did you mean " : "", closest ? closest : "", closest ? "?" : ";");
}

lap_status lap_columns_parse(const char *list, lap_selection *out, lap_error *err) {
    *out = (lap_selection){0};
    for (const char *word = list;; word++) {
        word += strspn(word, " ");
        size_t whole = strcspn(word, ","), n = whole;
        while (n > 0 && word[n - 1] == ' ')
            n--;
        const lap_column *column = find(word, n);
        if (!column) return unknown(word, n, err);
        for (size_t i = 0; i < out->count; i++)
            if (out->columns[i] == column)
                return LAP_FAIL(err, LAP_E_CONFIG, "--columns: '%s' is given twice", column->name);
        out->columns[out->count++] = column;
        word += whole;
        if (!*word) return LAP_OK;
    }
}

void lap_columns_names(lap_text *out) {
    for (size_t i = 0; i < COLUMNS; i++)
        lap_text_addf(out, "%s%s", i ? " " : "", columns[i].name);
}

static void add(lap_selection *out, const char *name) {
    out->columns[out->count++] = find(name, strlen(name));
}

void lap_columns_for_programs(lap_selection *out) {
    static const char *const names[] = {"path",
                                        "started",
                                        "version",
                                        "host",
                                        "status",
                                        "reason",
                                        "backend",
                                        "route",
                                        "platform",
                                        "device",
                                        "type",
                                        "driver",
                                        "api",
                                        "uuid",
                                        "pci",
                                        "network",
                                        "height",
                                        "width",
                                        "batch",
                                        "precision",
                                        "weights",
                                        "verified",
                                        "clock",
                                        "n",
                                        "mean_s",
                                        "std_s",
                                        "p50_s",
                                        "throughput_batch",
                                        "throughput_images_per_s",
                                        "floor_s",
                                        "trust",
                                        "speed_ratio",
                                        "speed_low",
                                        "speed_high",
                                        "throughput_ratio",
                                        "verdict",
                                        "apart",
                                        "against"};
    *out = (lap_selection){0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add(out, names[i]);
}

bool lap_columns_shared(const lap_comparison *c, const char *name, lap_text *shared) {
    const lap_column *column = find(name, strlen(name));
    lap_text other = {0};
    bool same = true;
    for (size_t i = 0; i < c->line_count && same; i++) {
        lap_text *text = i ? &other : shared;
        text->length = 0;
        if (text->data) text->data[0] = '\0';
        column->cell(text, c, &c->lines[i], true);
        same = i == 0 || strcmp(lap_text_get(shared), lap_text_get(&other)) == 0;
    }
    if (other.failed) shared->failed = true;
    lap_text_free(&other);
    return same;
}

static bool uniform(const lap_comparison *c, const char *name) {
    lap_text shared = {0};
    bool same = lap_columns_shared(c, name, &shared);
    lap_text_free(&shared);
    return same;
}

static bool any_throughput(const lap_comparison *c) {
    for (size_t i = 0; i < c->line_count; i++)
        if (c->lines[i].record->images_per_s.has) return true;
    return false;
}

/* Is a row compared with one of its class's other precision? */
static bool crosses(const lap_comparison *c) {
    for (size_t i = 0; i < c->line_count; i++) {
        const char *other = against(&c->lines[i]);
        if (other[0] && strcmp(other, c->lines[i].record->precision) != 0) return true;
    }
    return false;
}

static bool all_ok(const lap_comparison *c) {
    for (size_t i = 0; i < c->line_count; i++)
        if (!c->lines[i].record->ok) return false;
    return true;
}

void lap_columns_for_people(const lap_comparison *c, lap_selection *out) {
    lap_axis axis = c->options->axis;
    *out = (lap_selection){0};
    add(out, "device");
    add(out, "route");
    if (!uniform(c, "network")) add(out, "network");
    if (!uniform(c, "size")) add(out, "size");
    if (!uniform(c, "precision")) add(out, "precision");
    add(out, "batch");
    add(out, "latency");
    add(out, "fps");
    if (any_throughput(c)) add(out, "throughput");
    add(out, "speed");
    add(out, "verdict");
    if (axis != LAP_BY_PRECISION && crosses(c)) add(out, "against");
    if (!all_ok(c)) add(out, "status");
    if (axis == LAP_BY_DRIVER) add(out, "driver");
    if (axis == LAP_BY_VERSION) add(out, "version");
    if (!uniform(c, "file")) add(out, "file");
}
