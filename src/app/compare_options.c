/* The command line of compare, on getopt_long (see compare_options.h). */
#include "app/compare_options.h"
#include "report/format.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum option_id {
    OPT_BASELINE = 256,
    OPT_BY,
    OPT_FORMAT,
    OPT_SORT,
    OPT_COLUMNS,
    OPT_OUTPUT,
    OPT_FORCE,
    OPT_DATABASE,
    OPT_CLOCK,
    OPT_MARGIN,
    OPT_FAIL_IF_SLOWER,
    OPT_REQUIRE_VERIFIED,
    OPT_HELP
};

typedef struct option_row {
    const char *name, *argument, *help;
    int id;
} option_row;

static const option_row rows[] = {
    {"baseline", "SEL|FILE", "compare with this row, or with the rows of this file", OPT_BASELINE},
    {"by", "WHAT", "device, api, precision, batch, file, driver or version (see below)", OPT_BY},
    {"format", "FORMAT", "table, markdown, csv, html, json or latex", OPT_FORMAT},
    {"sort", "[-]KEY", "order within a case (see below)", OPT_SORT},
    {"columns", "A,B,...", "which columns, in order (see below)", OPT_COLUMNS},
    {"output", "FILE", "write there (-o FILE); - is standard output", OPT_OUTPUT},
    {"force", NULL, "overwrite a file that exists already", OPT_FORCE},
    {"clock", "WHICH", "row: each row's own clock; wall: the wall spans of all", OPT_CLOCK},
    {"margin", "PERCENT", "changes up to this count as the same (default 1)", OPT_MARGIN},
    {"fail-if-slower", "PERCENT", "exit 5 if a row is slower than the baseline by more than this",
     OPT_FAIL_IF_SLOWER},
    {"require-verified", NULL, "exit 4 if a row was not verified", OPT_REQUIRE_VERIFIED},
    {"database", "FILE", "the history that history:QUERY means", OPT_DATABASE},
    {"help", NULL, "print this help", OPT_HELP},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *const format_names[LAP_FORMATS] = {"table", "markdown", "csv",
                                                      "html",  "json",     "latex"};
static const char *const clock_names[] = {"row", "wall"};

/* ---- values --------------------------------------------------------------------------------- */

/* Names of an enumeration, gathered so that a typing error can be told. */
enum { NAMES_MAX = 16 };

static lap_status no_such(const char *option, const char *value, const char *const *names,
                          size_t count, lap_error *err) {
    char shown[64];
    lap_text known = {0};
    snprintf(shown, sizeof shown, "%.60s", value);
    lap_text_clean(shown);
    const char *closest = lap_text_closest(value, names, count);
    for (size_t i = 0; i < count; i++)
        lap_text_addf(&known, "%s%s", i ? ", " : "", names[i]);
    lap_status status = LAP_FAIL(err, LAP_E_CONFIG, "%s '%s': expected %s%s%s%s", option, shown,
                                 lap_text_get(&known), closest ? "; did you mean " : "",
                                 closest ? closest : "", closest ? "?" : "");
    lap_text_free(&known);
    return status;
}

static lap_status parse_name(const char *option, const char *value, const char *const *names,
                             size_t count, int *out, lap_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value, names[i]) != 0) continue;
        *out = (int)i;
        return LAP_OK;
    }
    return no_such(option, value, names, count, err);
}

static lap_status parse_percent(const char *option, const char *value, double *out,
                                lap_error *err) {
    double percent;
    if (!lap_parse_double(value, &percent) || !(percent >= 0 && percent <= 10000))
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "%s '%.60s': expected a percentage from 0 to 10000, as in 5 or 2.5", option,
                        value);
    *out = percent / 100;
    return LAP_OK;
}

static lap_status parse_axis(const char *value, lap_axis *out, lap_error *err) {
    const char *names[LAP_AXES];
    for (int i = 0; i < LAP_AXES; i++)
        names[i] = lap_axis_name((lap_axis)i);
    return lap_axis_parse(value, out) ? LAP_OK : no_such("--by", value, names, LAP_AXES, err);
}

static lap_status parse_order(const char *value, lap_compare_options *o, lap_error *err) {
    const char *names[LAP_ORDERS];
    for (int i = 0; i < LAP_ORDERS; i++)
        names[i] = lap_order_name((lap_order)i);
    o->reverse = value[0] == '-';
    return lap_order_parse(value + o->reverse, &o->order)
               ? LAP_OK
               : no_such("--sort", value, names, LAP_ORDERS, err);
}

static lap_status apply(int id, const char *value, lap_compare_command *out, lap_error *err) {
    int index = 0;
    switch (id) {
    case OPT_BASELINE:
        if (!*value)
            return LAP_FAIL(err, LAP_E_CONFIG,
                            "--baseline: an empty argument; expected a selector "
                            "or a result file");
        out->baseline = value;
        return LAP_OK;
    case OPT_BY:
        out->axis_given = true;
        return parse_axis(value, &out->options.axis, err);
    case OPT_FORMAT:
        LAP_TRY(parse_name("--format", value, format_names, LAP_FORMATS, &index, err));
        out->format = (lap_compare_format)index;
        return LAP_OK;
    case OPT_SORT:
        return parse_order(value, &out->options, err);
    case OPT_COLUMNS:
        out->columns = value;
        return LAP_OK;
    case OPT_OUTPUT:
        out->output = value;
        return LAP_OK;
    case OPT_DATABASE:
        if (!*value) return LAP_FAIL(err, LAP_E_CONFIG, "--database: an empty argument");
        out->database = value;
        return LAP_OK;
    case OPT_FORCE:
        out->force = true;
        return LAP_OK;
    case OPT_CLOCK:
        LAP_TRY(parse_name("--clock", value, clock_names, 2, &index, err));
        out->options.wall = index == 1;
        return LAP_OK;
    case OPT_MARGIN:
        return parse_percent("--margin", value, &out->options.margin, err);
    case OPT_FAIL_IF_SLOWER:
        out->options.gate = true;
        return parse_percent("--fail-if-slower", value, &out->options.margin, err);
    case OPT_REQUIRE_VERIFIED:
        out->options.require_verified = true;
        return LAP_OK;
    default:
        out->help = true;
        return LAP_OK;
    }
}

/* ---- the command line ----------------------------------------------------------------------- */

static lap_status usage_error(int answer, const char *word, lap_error *err) {
    char shown[64], name[64];
    const char *names[ROWS];
    for (int i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    snprintf(shown, sizeof shown, "%.60s", word);
    lap_text_clean(shown);
    if (answer == ':')
        return LAP_FAIL(err, LAP_E_CONFIG, "compare: option %s needs an argument", shown);
    const char *start = word + strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "="), start);
    const char *closest = lap_text_closest(name, names, ROWS);
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "compare: option %s is unknown, ambiguous or takes no argument%s%s%s `warmlap "
                    "compare --help` lists the options",
                    shown, closest ? "; did you mean --" : "", closest ? closest : "",
                    closest ? "?" : ";");
}

static const char *name_of(int id) {
    int i = 0;
    while (rows[i].id != id)
        i++;
    return rows[i].name;
}

static lap_status walk(int argc, char **argv, lap_compare_command *out, lap_error *err) {
    struct option options[ROWS + 1];
    for (int i = 0; i < ROWS; i++)
        options[i] = (struct option){.name = rows[i].name,
                                     .has_arg = rows[i].argument ? required_argument : no_argument,
                                     .val = rows[i].id};
    options[ROWS] = (struct option){0};
    opterr = 0; /* the messages are ours */
    optind = 0; /* glibc: start afresh */
    bool given[OPT_HELP - OPT_BASELINE + 1] = {false};
    for (;;) {
        int answer = getopt_long(argc, argv, ":ho:", options, NULL);
        if (answer == -1) return LAP_OK;
        if (answer == 'h') answer = OPT_HELP;
        if (answer == 'o') answer = OPT_OUTPUT;
        if (answer < OPT_BASELINE) {
            char letter[3] = {'-', (char)optopt, '\0'};
            bool is_short = optopt > 0 && optopt < OPT_BASELINE;
            return usage_error(answer, is_short ? letter : argv[optind - 1], err);
        }
        /* The last one would win without a word: a gate could be loosened so. */
        if (given[answer - OPT_BASELINE] && optarg)
            return LAP_FAIL(err, LAP_E_CONFIG, "--%s: given twice; expected once, leave one out",
                            name_of(answer));
        given[answer - OPT_BASELINE] = true;
        LAP_TRY(apply(answer, optarg, out, err));
        if (given[OPT_MARGIN - OPT_BASELINE] && given[OPT_FAIL_IF_SLOWER - OPT_BASELINE])
            return LAP_FAIL(err, LAP_E_CONFIG,
                            "--margin and --fail-if-slower: both set the margin; expected one of "
                            "them (--fail-if-slower PERCENT for a gate)");
    }
}

/* What contradicts itself. */
static lap_status check(const lap_compare_command *c, lap_error *err) {
    if (c->file_count < 1 && !c->baseline)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "compare: no file; expected result files, as `warmlap run --json FILE` "
                        "writes them");
    if (c->options.gate && !c->baseline)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--fail-if-slower: needs --baseline SELECTOR or --baseline FILE");
    if (c->columns && c->format == LAP_FORMAT_JSON)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--columns: json always has everything; leave it out or choose csv");
    int inputs = c->baseline && strcmp(c->baseline, "-") == 0;
    for (int i = 0; i < c->file_count; i++)
        inputs += strcmp(c->files[i], "-") == 0;
    if (inputs > 1) return LAP_FAIL(err, LAP_E_CONFIG, "-: standard input can be read once only");
    return LAP_OK;
}

lap_status lap_compare_command_parse(int argc, char **argv, lap_compare_command *out,
                                     lap_error *err) {
    *out = (lap_compare_command){.output = "-", .options = {.margin = 0.01}};
    LAP_TRY(walk(argc, argv, out, err));
    if (out->help) return LAP_OK;
    out->files = argv + optind;
    out->file_count = argc - optind;
    return check(out, err);
}

/* Everything a terminal of 80 columns shows whole. */
enum { HELP_WIDTH = 80, HELP_INDENT = 28 };

static void add_paragraph(lap_text *text, const char *paragraph) {
    lap_line_wrap(text, paragraph, 0, HELP_WIDTH);
    lap_text_add(text, "\n");
}

void lap_compare_command_help(lap_text *text) {
    lap_text_add(text, "Usage: warmlap compare FILE.json... [options]\n\n");
    add_paragraph(text, "Put the rows of result files (run --json FILE; - is standard input) into "
                        "one table, and say how many times as fast each is, with the uncertainty "
                        "of that.");
    for (int i = 0; i < ROWS; i++) {
        char left[40], line[160];
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                 rows[i].argument ? rows[i].argument : "");
        snprintf(line, sizeof line, "%-25s %s", left, rows[i].help);
        lap_text_add(text, "  ");
        lap_line_wrap(text, line, HELP_INDENT, HELP_WIDTH - 2);
    }
    lap_text_add(text, "\n");
    add_paragraph(text,
                  "The baseline is a result file or a row (the first of each case and precision): "
                  "cuda, cuda:0, opencl:1:0, name=TEXT, a precision, batch=N; without one, the "
                  "fastest row of each case. --by says what "
                  "may differ: device (the default: anything with the same case), api, precision "
                  "or batch of one device, or one device from file to file (the default with a "
                  "file as baseline), told apart by file, driver or version. Rows whose clock, "
                  "weights, cache or verification differ are set apart, with the reason.");
    add_paragraph(text, "Sort keys: given, speed, latency, throughput, device, precision, batch, "
                        "file; a - before one reverses.");
    lap_text names = {0};
    lap_text_add(&names, "Columns: ");
    lap_columns_names(&names);
    lap_line_wrap(text, lap_text_get(&names), 2, HELP_WIDTH);
    if (names.failed) text->failed = true;
    lap_text_free(&names);
    lap_text_add(text, "\n");
    lap_line_wrap(text,
                  "Exit status: 0 fine, 1 the gate could not compare something or a row failed, "
                  "2 usage or a file that is no result document, 4 --require-verified, 5 slower "
                  "than --fail-if-slower allows.",
                  0, HELP_WIDTH);
}
