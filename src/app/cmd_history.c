/* `warmlap history`: result documents kept in one database, listed, shown, followed from run to
 * run. Opens no device. */
#include "app/commands.h"
#include "app/history_tables.h"
#include "compare/source.h"
#include "report/output.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: warmlap history add FILE.json ... [--replace]\n"
    "       warmlap history list [QUERY]\n"
    "       warmlap history show [QUERY] [--device TEXT] [--metric METRIC]\n"
    "       warmlap history trend [QUERY] [--device TEXT] [--metric METRIC]\n"
    "       warmlap history export QUERY [-o FILE.json]\n"
    "\n"
    "Keeps result files whole in one database. list has a line for each run, show one\n"
    "for each row, trend one for each case on each device: how its metric moved, and\n"
    "whether the latest run differs from the one before. export writes the document\n"
    "of one run as it was added. compare and report take history:QUERY as a file.\n"
    "\n"
    "QUERY is terms separated by commas: device=, driver=, host= (part of the name),\n"
    "route=, network=, precision=, size=HxW, batch=N, version=, run=ID, since=DATE,\n"
    "until=DATE, last=N (the N latest runs), latest, all.\n"
    "\n"
    "  --database FILE     the history (default history.sqlite in warmlap in\n"
    "                      XDG_DATA_HOME, or in ~/.local/share)\n"
    "  --replace           add: put the document in place of another one of its run\n"
    "  --device TEXT       show, trend: the same as device=TEXT in QUERY\n"
    "  --metric METRIC     show, trend: latency, p50, fps or throughput (default of\n"
    "                      trend: latency)\n"
    "  --margin PERCENT    trend: changes up to this count as the same (default 1)\n"
    "  --format FORMAT     list, show, trend: table, csv or json\n"
    "  --output FILE       write there (-o FILE); - is standard output\n"
    "  --force             overwrite a file that exists already\n"
    "  --help              print this help\n"
    "\n"
    "Exit status: 0 ok, 1 no memory or built without SQLite, 2 usage, a file that is\n"
    "no result document, a database that cannot be used, an output that cannot be\n"
    "written, or nothing that matches.\n";

typedef enum action { ADD = 1, LIST = 2, SHOW = 4, TREND = 8, EXPORT = 16 } action;

typedef enum format { TABLE, CSV, JSON, FORMATS } format;

typedef struct options {
    action what;
    const char *database, *output, *device;
    lap_metric metric;
    bool metric_given, replace, force, help;
    double margin;
    format format;
    char **rest;
    int rest_count;
} options;

/* ---- the command line ----------------------------------------------------------------------- */

static const struct {
    const char *name;
    action what;
} actions[] = {{"add", ADD}, {"list", LIST}, {"show", SHOW}, {"trend", TREND}, {"export", EXPORT}};
enum { ACTIONS = sizeof actions / sizeof *actions };

typedef struct option_row {
    const char *name;
    bool argument;
    int id;
    int actions; /* that have it */
} option_row;

enum { ALL = ADD | LIST | SHOW | TREND | EXPORT, TABLES = LIST | SHOW | TREND };

static const option_row rows[] = {
    {"database", true, 'd', ALL},
    {"replace", false, 'r', ADD},
    {"device", true, 'D', SHOW | TREND},
    {"metric", true, 'm', SHOW | TREND},
    {"margin", true, 'M', TREND},
    {"format", true, 'F', TABLES},
    {"output", true, 'o', TABLES | EXPORT},
    {"force", false, 'f', TABLES | EXPORT},
    {"help", false, 'h', ALL},
};
enum { ROWS = sizeof rows / sizeof *rows };

static lap_status no_such(const char *what, const char *value, const char *const *names,
                          size_t count, lap_error *err) {
    char shown[64];
    lap_text known = {0};
    snprintf(shown, sizeof shown, "%.60s", value);
    lap_text_clean(shown);
    for (size_t i = 0; i < count; i++)
        lap_text_addf(&known, "%s%s", i ? ", " : "", names[i]);
    const char *closest = lap_text_closest(value, names, count);
    lap_status status =
        LAP_FAIL(err, LAP_E_CONFIG, "%s '%s': expected %s%s%s%s", what, shown, lap_text_get(&known),
                 closest ? "; did you mean " : "", closest ? closest : "", closest ? "?" : "");
    lap_text_free(&known);
    return status;
}

static lap_status parse_format(const char *value, format *out, lap_error *err) {
    static const char *const names[FORMATS] = {"table", "csv", "json"};
    for (int i = 0; i < FORMATS; i++)
        if (strcmp(value, names[i]) == 0) {
            *out = (format)i;
            return LAP_OK;
        }
    return no_such("--format", value, names, FORMATS, err);
}

static lap_status parse_metric(const char *value, lap_metric *out, lap_error *err) {
    const char *names[LAP_METRICS];
    for (int i = 0; i < LAP_METRICS; i++)
        names[i] = lap_metric_name((lap_metric)i);
    return lap_metric_parse(value, out) ? LAP_OK
                                        : no_such("--metric", value, names, LAP_METRICS, err);
}

static lap_status apply(int id, const char *value, options *to, lap_error *err) {
    switch (id) {
    case 'd':
        if (!*value) return LAP_FAIL(err, LAP_E_CONFIG, "--database: an empty argument");
        to->database = value;
        return LAP_OK;
    case 'o':
        if (!*value) return LAP_FAIL(err, LAP_E_CONFIG, "--output: an empty argument");
        to->output = value;
        return LAP_OK;
    case 'D':
        to->device = value;
        return LAP_OK;
    case 'm':
        to->metric_given = true;
        return parse_metric(value, &to->metric, err);
    case 'M':
        if (!lap_parse_double(value, &to->margin) || !(to->margin >= 0 && to->margin <= 10000))
            return LAP_FAIL(err, LAP_E_CONFIG,
                            "--margin '%.60s': expected a percentage from 0 to 10000", value);
        to->margin /= 100;
        return LAP_OK;
    case 'F':
        return parse_format(value, &to->format, err);
    case 'r':
        to->replace = true;
        return LAP_OK;
    case 'f':
        to->force = true;
        return LAP_OK;
    default:
        to->help = true;
        return LAP_OK;
    }
}

static lap_status usage_error(int answer, const char *word, lap_error *err) {
    const char *names[ROWS];
    char shown[64], name[64];
    for (int i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    snprintf(shown, sizeof shown, "%.60s", word);
    lap_text_clean(shown);
    if (answer == ':')
        return LAP_FAIL(err, LAP_E_CONFIG, "history: option %s needs an argument", shown);
    const char *start = word + strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "="), start);
    const char *closest = lap_text_closest(name, names, ROWS);
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "history: option %s is unknown here, ambiguous or takes no argument%s%s%s "
                    "`warmlap history --help` lists the options",
                    shown, closest ? "; did you mean --" : "", closest ? closest : "",
                    closest ? "?" : ";");
}

static lap_status walk(int argc, char **argv, options *to, lap_error *err) {
    struct option table[ROWS + 1];
    int count = 0, answer;
    for (int i = 0; i < ROWS; i++)
        if (to->what == 0 || (rows[i].actions & (int)to->what))
            table[count++] = (struct option){
                rows[i].name, rows[i].argument ? required_argument : no_argument, NULL, rows[i].id};
    table[count] = (struct option){0};
    opterr = 0; /* the messages are ours */
    optind = 0; /* glibc: start afresh */
    while ((answer = getopt_long(argc, argv, ":ho:", table, NULL)) != -1) {
        if (answer == '?' || answer == ':') {
            char letter[3] = {'-', (char)optopt, '\0'};
            bool is_short = optopt > 0 && strncmp(argv[optind - 1], "--", 2) != 0;
            return usage_error(answer, is_short ? letter : argv[optind - 1], err);
        }
        LAP_TRY(apply(answer, optarg, to, err));
    }
    to->rest = argv + optind;
    to->rest_count = argc - optind;
    return LAP_OK;
}

static lap_status parse(int argc, char **argv, options *to, lap_error *err) {
    *to = (options){.output = "-", .margin = 0.01};
    const char *names[ACTIONS];
    for (int i = 0; i < ACTIONS; i++)
        names[i] = actions[i].name;
    if (argc < 2)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "history: expected add, list, show, trend or export; `warmlap history "
                        "--help` explains them");
    for (int i = 0; i < ACTIONS; i++)
        if (strcmp(argv[1], names[i]) == 0) to->what = actions[i].what;
    if (to->what == 0) {
        to->help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;
        return to->help ? LAP_OK : no_such("history:", argv[1], names, ACTIONS, err);
    }
    LAP_TRY(walk(argc - 1, argv + 1, to, err));
    if (to->help) return LAP_OK;
    if (to->what == ADD && to->rest_count == 0)
        return LAP_FAIL(err, LAP_E_CONFIG, "history add: no file; expected result files");
    if (to->what == EXPORT && to->rest_count == 0)
        return LAP_FAIL(err, LAP_E_CONFIG, "history export: expected a query, as in run=ID");
    if (to->what != ADD && to->rest_count > 1)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "history: '%.60s': expected one query; its terms are separated by commas",
                        to->rest[1]);
    return LAP_OK;
}

/* ---- actions -------------------------------------------------------------------------------- */

static lap_status add_file(const options *o, lap_history *history, const char *path,
                           lap_error *err) {
    static const char *const outcomes[] = {"added", "was there already", "replaced"};
    lap_text text = {0};
    lap_history_outcome outcome;
    char run_id[72];
    lap_status status = lap_source_read(path, &text, err);
    if (status == LAP_OK)
        status = lap_history_add(history, path, &text, o->replace, &outcome, run_id, err);
    lap_text_free(&text);
    if (status == LAP_OK) printf("%.8s  %s  %s\n", run_id, path, outcomes[outcome]);
    return status;
}

/* What was added before a file that cannot be stays added, and has been said. */
static lap_status add(const options *o, lap_history *history, lap_error *err) {
    for (int i = 0; i < o->rest_count; i++)
        LAP_TRY(add_file(o, history, o->rest[i], err));
    return LAP_OK;
}

/* Everything a reading action holds. */
typedef struct reading {
    const options *o;
    lap_style style;
    lap_grid *grid;
    lap_trends trends;
    lap_text text;
    size_t found;
} reading;

static lap_status take_run(void *context, const lap_history_run *run, lap_error *err) {
    reading *r = context;
    (void)err;
    r->found++;
    lap_history_list_add(r->grid, run);
    return LAP_OK;
}

static lap_status take_row(void *context, const lap_history_row *row, lap_error *err) {
    reading *r = context;
    r->found++;
    if (r->o->what == TREND) return lap_trends_add(&r->trends, r->o->metric, row, err);
    lap_history_show_add(r->grid, row, r->style.utf8);
    return LAP_OK;
}

static lap_status take_paper(void *context, const lap_history_paper *paper, lap_error *err) {
    reading *r = context;
    if (r->found++ > 0)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "history export: more than one run matches; expected one (add run=ID or "
                        "latest)");
    lap_text_addn(&r->text, paper->text, paper->length);
    return r->text.failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the document") : LAP_OK;
}

static lap_status gather(reading *r, lap_history *history, const lap_query *query, lap_error *err) {
    switch (r->o->what) {
    case LIST:
        r->grid = lap_history_list_grid();
        return lap_history_runs(history, query, take_run, r, err);
    case SHOW:
        r->grid = lap_history_show_grid(r->o->metric_given ? &r->o->metric : NULL);
        return lap_history_rows(history, query, take_row, r, err);
    case TREND:
        r->grid = lap_history_trend_grid();
        LAP_TRY(lap_history_rows(history, query, take_row, r, err));
        lap_trends_finish(&r->trends, r->o->metric, r->o->margin);
        lap_history_trends_add(r->grid, r->o->metric, &r->trends, r->style.utf8);
        return LAP_OK;
    default:
        return lap_history_papers(history, query, take_paper, r, err);
    }
}

static lap_status render(reading *r, lap_error *err) {
    if (r->o->what == EXPORT) return LAP_OK;
    if (r->o->format == CSV) return lap_grid_csv(r->grid, &r->text, err);
    if (r->o->format == JSON) return lap_grid_json(r->grid, &r->text, err);
    LAP_TRY(lap_grid_table(r->grid, &r->style, &r->text, err));
    if (r->o->what == TREND)
        lap_text_addf(&r->text, "%s\n", lap_history_trend_legend(r->o->metric));
    return r->text.failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the table") : LAP_OK;
}

static lap_status read_all(const options *o, lap_history *history, const lap_query *query,
                           lap_error *err) {
    reading r = {.o = o};
    lap_style_query(STDOUT_FILENO, &r.style);
    if (strcmp(o->output, "-") != 0) {
        r.style.terminal = r.style.colour = false;
        r.style.width = LAP_TABLE_WIDTH;
    }
    lap_status status = gather(&r, history, query, err);
    if (status == LAP_OK && r.found == 0)
        status = LAP_FAIL(err, LAP_E_CONFIG, "history: nothing matches%s%s",
                          o->rest_count ? " " : "", o->rest_count ? o->rest[0] : "");
    if (status == LAP_OK) status = render(&r, err);
    if (status == LAP_OK)
        status = lap_output_write(o->output, lap_text_get(&r.text), r.text.length, o->force, err);
    lap_grid_free(r.grid);
    lap_trends_free(&r.trends);
    lap_text_free(&r.text);
    return status;
}

static lap_status parse_query(const options *o, lap_query *out, lap_error *err) {
    *out = (lap_query){0};
    if (o->what == ADD) return LAP_OK;
    LAP_TRY(lap_query_parse(o->rest_count ? o->rest[0] : "", out, err));
    return o->device ? lap_query_add(out, "device", o->device, err) : LAP_OK;
}

static lap_status use(const options *o, const lap_query *query, const char *path, lap_error *err) {
    lap_history *history;
    if (o->what != ADD) LAP_TRY(lap_output_apart(o->output, path, "the history", err));
    LAP_TRY(lap_history_open(path, o->what == ADD ? LAP_HISTORY_WRITE : LAP_HISTORY_READ, &history,
                             err));
    lap_status status = o->what == ADD ? add(o, history, err) : read_all(o, history, query, err);
    lap_history_close(history);
    return status;
}

/* What is wrong with the command line is said before anything about the files. */
static lap_status carry_out(const options *o, lap_error *err) {
    char *path = NULL;
    lap_query query;
    lap_status status = parse_query(o, &query, err);
    if (status == LAP_OK && o->what != ADD) status = lap_output_check(o->output, o->force, err);
    if (status == LAP_OK) status = lap_history_path(o->database, &path, err);
    if (status == LAP_OK) status = use(o, &query, path, err);
    free(path);
    lap_query_free(&query);
    return status;
}

int cmd_history(int argc, char **argv) {
    options o;
    lap_error err = {0};
    if (parse(argc, argv, &o, &err) != LAP_OK) return lap_app_complain(&err);
    if (o.help) {
        fputs(usage, stdout);
        return LAP_EXIT_OK;
    }
    return carry_out(&o, &err) == LAP_OK ? LAP_EXIT_OK : lap_app_complain(&err);
}
