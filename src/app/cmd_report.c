/* `warmlap report`: result files in, one HTML page out. Opens no device. */
#include "app/commands.h"
#include "app/inputs.h"
#include "page/page.h"
#include "report/output.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "Usage: warmlap report FILE.json ... [-o FILE.html] [options]\n"
    "\n"
    "Makes one self-contained page of result files (`warmlap run --json FILE`, also\n"
    "with --layers; `warmlap spans --json FILE`) from any number of machines: tables,\n"
    "charts, environment, configuration. The page loads nothing and sends nothing.\n"
    "- is standard input, history:QUERY what matches in the history.\n"
    "\n"
    "  --output FILE        the page (-o FILE; default report.html); - is standard\n"
    "                       output\n"
    "  --baseline SEL|FILE  speeds are relative to this row, or to the rows of this\n"
    "                       file; default the fastest of each case\n"
    "  --title TEXT         the page's title\n"
    "  --database FILE      the history that history:QUERY means (`warmlap history`)\n"
    "  --no-charts          tables only: a small page without Chart.js\n"
    "  --force              overwrite a file that exists already\n"
    "  --help               print this help\n"
    "\n"
    "Exit status: 0 ok, 1 no memory, 2 usage, a file that is no result document, or a\n"
    "page that cannot be written.\n";

typedef struct options {
    const char *output, *baseline, *title, *database;
    bool no_charts, force, help;
    char **files;
    int file_count;
} options;

/* ---- the command line ----------------------------------------------------------------------- */

static const struct option table[] = {
    {"output", required_argument, NULL, 'o'}, {"baseline", required_argument, NULL, 'b'},
    {"title", required_argument, NULL, 't'},  {"database", required_argument, NULL, 'd'},
    {"no-charts", no_argument, NULL, 'n'},    {"force", no_argument, NULL, 'f'},
    {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};

static lap_status usage_error(int answer, const char *word, lap_error *err) {
    enum { OPTIONS = sizeof table / sizeof *table - 1 };
    const char *names[OPTIONS];
    char shown[64], name[64];
    for (int i = 0; i < OPTIONS; i++)
        names[i] = table[i].name;
    snprintf(shown, sizeof shown, "%.60s", word);
    lap_text_clean(shown);
    if (answer == ':')
        return LAP_FAIL(err, LAP_E_CONFIG, "report: option %s needs an argument", shown);
    const char *start = word + strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "="), start);
    const char *closest = lap_text_closest(name, names, OPTIONS);
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "report: option %s is unknown, ambiguous or takes no argument%s%s%s `warmlap "
                    "report --help` lists the options",
                    shown, closest ? "; did you mean --" : "", closest ? closest : "",
                    closest ? "?" : ";");
}

static lap_status not_empty(const char *option, const char *value, const char **out,
                            lap_error *err) {
    if (!*value) return LAP_FAIL(err, LAP_E_CONFIG, "%s: an empty argument", option);
    *out = value;
    return LAP_OK;
}

static lap_status apply(int answer, const char *value, options *to, lap_error *err) {
    switch (answer) {
    case 'o':
        return not_empty("--output", value, &to->output, err);
    case 'b':
        return not_empty("--baseline", value, &to->baseline, err);
    case 't':
        return not_empty("--title", value, &to->title, err);
    case 'd':
        return not_empty("--database", value, &to->database, err);
    case 'n':
        to->no_charts = true;
        return LAP_OK;
    case 'f':
        to->force = true;
        return LAP_OK;
    default:
        to->help = true;
        return LAP_OK;
    }
}

static const char *name_of(int answer) {
    int i = 0;
    while (table[i].val != answer)
        i++;
    return table[i].name;
}

static lap_status parse(int argc, char **argv, options *to, lap_error *err) {
    *to = (options){.output = "report.html", .title = "Benchmark report"};
    opterr = 0; /* the messages are ours */
    optind = 0; /* glibc: start afresh */
    int answer;
    bool given[256] = {false};
    while ((answer = getopt_long(argc, argv, ":ho:", table, NULL)) != -1) {
        if (answer == '?' || answer == ':') {
            char letter[3] = {'-', (char)optopt, '\0'};
            /* A long option that lacks its argument leaves its letter here as well. */
            bool is_short = optopt > 0 && strncmp(argv[optind - 1], "--", 2) != 0;
            return usage_error(answer, is_short ? letter : argv[optind - 1], err);
        }
        if (given[answer & 255] && optarg)
            return LAP_FAIL(err, LAP_E_CONFIG, "report: --%s: given twice; expected once",
                            name_of(answer));
        given[answer & 255] = true;
        LAP_TRY(apply(answer, optarg, to, err));
    }
    to->files = argv + optind;
    to->file_count = argc - optind;
    if (to->help) return LAP_OK;
    if (to->file_count < 1 && !to->baseline)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "report: no file; expected result files, as `warmlap run --json FILE` "
                        "writes them");
    int inputs = to->baseline && strcmp(to->baseline, "-") == 0;
    for (int i = 0; i < to->file_count; i++)
        inputs += strcmp(to->files[i], "-") == 0;
    if (inputs > 1) return LAP_FAIL(err, LAP_E_CONFIG, "-: standard input can be read once only");
    return LAP_OK;
}

/* ---- the page ------------------------------------------------------------------------------- */

static lap_status load_all(const options *o, lap_inputs *inputs, lap_compare_options *how,
                           lap_error *err) {
    if (o->baseline && lap_inputs_is_file(o->baseline)) {
        LAP_TRY(lap_inputs_add_baseline(inputs, o->baseline, err));
        how->baseline_document = inputs->documents[0];
        how->axis = LAP_BY_FILE;
    } else {
        how->baseline = o->baseline;
    }
    for (int i = 0; i < o->file_count; i++)
        LAP_TRY(lap_inputs_add(inputs, o->files[i], err));
    return LAP_OK;
}

static lap_status render(const options *o, const lap_inputs *inputs, const lap_compare_options *how,
                         lap_error *err) {
    lap_comparison comparison;
    LAP_TRY(lap_compare((const lap_document *const *)inputs->documents, inputs->count, how,
                        &comparison, err));
    lap_page_input page = {.comparison = &comparison,
                           .spans = (const lap_spans_document *const *)inputs->spans,
                           .spans_count = inputs->spans_count,
                           .assets = &lap_page_embedded,
                           .charts = !o->no_charts,
                           .title = o->title};
    lap_text text = {0};
    lap_status status = lap_page_render(&page, &text, err);
    if (status == LAP_OK)
        status = lap_output_write(o->output, lap_text_get(&text), text.length, o->force, err);
    lap_text_free(&text);
    lap_comparison_free(&comparison);
    return status;
}

static lap_status carry_out(const options *o, lap_error *err) {
    lap_inputs inputs = {.report = true, .database = o->database};
    lap_compare_options how = {.margin = 0.01};
    LAP_TRY(lap_inputs_spare(o->output, o->files, o->file_count, o->baseline, o->database, err));
    LAP_TRY(lap_output_check(o->output, o->force, err));
    lap_status status = load_all(o, &inputs, &how, err);
    if (status == LAP_OK) status = render(o, &inputs, &how, err);
    lap_inputs_free(&inputs);
    return status;
}

int cmd_report(int argc, char **argv) {
    options o;
    lap_error err = {0};
    if (parse(argc, argv, &o, &err) != LAP_OK) return lap_app_complain(&err);
    if (o.help) {
        fputs(usage, stdout);
        return LAP_EXIT_OK;
    }
    if (carry_out(&o, &err) != LAP_OK) return lap_app_complain(&err);
    if (strcmp(o.output, "-") != 0) fprintf(stderr, "warmlap: %s\n", o.output);
    return LAP_EXIT_OK;
}
