/* The command line of run and verify, on getopt_long. Each option is a row of one table: what it
 * sets, its argument, its help. Prints nothing. */
#include "app/options.h"

#include "app/resume.h"
#include "compare/load.h"
#include "report/format.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct option_row {
    const char *name;
    const char *argument;      /* its name in the help; NULL: the option takes none */
    const char *section, *key; /* what it sets; NULL for the options with a case of their own */
    const char *value;         /* of an option without argument */
    const char *help;
    unsigned commands; /* that have it: bits 1u << lap_command; 0: all */
} option_row;

enum {
    RUN_ONLY = 1u << LAP_COMMAND_RUN,
    VERIFY_ONLY = 1u << LAP_COMMAND_VERIFY,
    TUNE_ONLY = 1u << LAP_COMMAND_TUNE,
    RESULTS = RUN_ONLY | VERIFY_ONLY,
    DOCUMENT = RESULTS | 1u << LAP_COMMAND_PITFALLS
};

enum { OPTION_BASE = 256 };

static const option_row rows[] = {
    {"device", "SEL", "run", "device", NULL,
     "devices to use: auto, all, cuda[:i], opencl[:p[:d]], name=TEXT, ...", 0},
    {"set", "S:K=V", NULL, NULL, NULL, "set key K of section S to V; may be repeated", 0},
    {"json", "FILE", "output", "json", NULL, "write the results as JSON; - is standard output",
     DOCUMENT},
    {"csv", "FILE", "output", "csv", NULL, "write the results as CSV; - is standard output",
     RESULTS},
    {"markdown", "FILE", "output", "markdown", NULL,
     "write the table as Markdown; - is standard output", RESULTS},
    {"layers", NULL, "output", "layers", "yes",
     "show the work of each layer, and which kernel runs it", RESULTS},
    {"force", NULL, "output", "force", "yes", "overwrite result files that exist already",
     DOCUMENT},
    {"resume", "FILE", NULL, NULL, NULL,
     "go on with the run whose result file this is, after its last finished row", RESULTS},
    {"tune", NULL, "run", "kernels", "tuned", "tune first, then run what was found", RUN_ONLY},
    {"seconds", "N", NULL, NULL, NULL, "time for tuning each device, precision and batch (60)",
     RUN_ONLY | TUNE_ONLY},
    {"store", "FILE", "run", "tune_store", NULL,
     "the tune store, that tune writes and [run] kernels = tuned reads", 0},
    {"dry-run", NULL, NULL, NULL, NULL, "tune and show, but store nothing", TUNE_ONLY},
    {"no-cache", NULL, "run", "cache", "no", "compile every kernel anew, keep none", 0},
    {"dump-config", NULL, NULL, NULL, NULL,
     "print every value in effect and where it came from, then stop", 0},
    {"logits", "FILE", NULL, NULL, NULL, "write the logits of the one row as a float32 .npy file",
     VERIFY_ONLY},
    {"help-config", NULL, NULL, NULL, NULL,
     "print the reference of all configuration keys (Markdown)", 0},
    {"help", NULL, NULL, NULL, NULL, "print this help", 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* A setting asked for on the command line, to be applied after the files. */
typedef struct setting {
    const option_row *row;
    const char *value;
} setting;

static bool available(const option_row *row, lap_command command) {
    return row->commands == 0 || (row->commands & 1u << command) != 0;
}

static size_t option_names(lap_command command, const char **names, struct option *options) {
    size_t count = 0;
    for (int i = 0; i < ROWS; i++) {
        if (!available(&rows[i], command)) continue;
        names[count] = rows[i].name;
        options[count++] =
            (struct option){.name = rows[i].name,
                            .has_arg = rows[i].argument ? required_argument : no_argument,
                            .val = OPTION_BASE + i};
    }
    options[count] = (struct option){0};
    return count;
}

/* getopt_long answered '?' or ':' on argument word: say which of the possible mistakes it was. */
static lap_status usage_error(const char *command, int answer, const char *word,
                              const char *const *names, size_t count, lap_error *err) {
    char name[128], shown[256];
    snprintf(shown, sizeof shown, "%s", word);
    lap_text_clean(shown);
    const char *start = word + strspn(word, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "="), start);
    size_t matches = 0;
    bool exact = false;
    for (size_t i = 0; i < count; i++) {
        matches += !strncmp(names[i], name, strlen(name));
        exact = exact || !strcmp(names[i], name);
    }
    if (answer == ':')
        return LAP_FAIL(err, LAP_E_CONFIG, "%s: option %s needs an argument", command, shown);
    if (!strncmp(word, "--", 2) && (exact || (matches == 1 && strchr(word, '='))))
        return LAP_FAIL(err, LAP_E_CONFIG, "%s: option %s takes no argument", command, shown);
    if (!strncmp(word, "--", 2) && matches > 1)
        return LAP_FAIL(err, LAP_E_CONFIG, "%s: option %s is ambiguous; write it out", command,
                        shown);
    const char *closest = lap_text_closest(name, names, count);
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "%s: unknown option %s%s%s%s `warmlap %s --help` lists the options", command,
                    shown, closest ? "; did you mean --" : "", closest ? closest : "",
                    closest ? "?" : ";", command);
}

static lap_status take_seconds(const char *text, double *out, lap_error *err) {
    char shown[64];
    if (lap_parse_double(text, out) && *out >= 0.1 && *out <= 86400) return LAP_OK;
    snprintf(shown, sizeof shown, "%.60s", text);
    return LAP_FAIL(err, LAP_E_CONFIG, "--seconds %s: expected a number from 0.1 to 86400",
                    lap_text_clean(shown));
}

/* Walk argv; settings (room for argc) in order of appearance. optind is then the first file. */
static lap_status walk(lap_command command, int argc, char **argv, lap_options *out,
                       setting *settings, size_t *setting_count, bool *seconds_given,
                       lap_error *err) {
    struct option options[ROWS + 1];
    const char *names[ROWS];
    size_t count = option_names(command, names, options);
    opterr = 0; /* the messages are ours */
    optind = 0; /* glibc: start afresh */
    for (;;) {
        int answer = getopt_long(argc, argv, ":h", options, NULL);
        if (answer == -1) return LAP_OK;
        if (answer == 'h') answer = OPTION_BASE + ROWS - 1;
        if (answer < OPTION_BASE) {
            /* optopt is the letter of a short option, 0 or an option's value for a long one. */
            char letter[3] = {'-', (char)optopt, '\0'};
            bool is_short = optopt > 0 && optopt < OPTION_BASE;
            const char *word = is_short ? letter : argv[optind - 1];
            return usage_error(argv[0], answer, word, names, count, err);
        }
        const option_row *row = &rows[answer - OPTION_BASE];
        if (!strcmp(row->name, "tune")) out->tune = true;
        if (!strcmp(row->name, "seconds")) *seconds_given = true;
        lap_status status = LAP_OK;
        if (row->section || !strcmp(row->name, "set"))
            settings[(*setting_count)++] = (setting){row, row->argument ? optarg : row->value};
        else if (!strcmp(row->name, "logits"))
            out->logits = optarg;
        else if (!strcmp(row->name, "resume"))
            out->resume = optarg;
        else if (!strcmp(row->name, "seconds"))
            status = take_seconds(optarg, &out->seconds, err);
        else if (!strcmp(row->name, "dry-run"))
            out->dry_run = true;
        else if (!strcmp(row->name, "help"))
            out->action = LAP_ACTION_HELP;
        else if (!strcmp(row->name, "help-config") && out->action != LAP_ACTION_HELP)
            out->action = LAP_ACTION_HELP_CONFIG;
        else if (!strcmp(row->name, "dump-config") && out->action == LAP_ACTION_RUN)
            out->action = LAP_ACTION_DUMP_CONFIG;
        LAP_TRY(status);
    }
}

static lap_status apply(lap_config *config, const setting *s, lap_error *err) {
    if (!s->row->section) return lap_config_set(config, s->value, "--set", err);
    char origin[32];
    snprintf(origin, sizeof origin, "--%s", s->row->name);
    bool device = strcmp(s->row->name, "device") == 0; /* choosing says more: see config_value.c */
    if (s->row->argument && !*s->value && !device)
        return LAP_FAIL(err, LAP_E_CONFIG, "%s: an empty argument; expected %s", origin,
                        s->row->argument);
    return lap_config_set_key(config, s->row->section, s->row->key, s->value, origin, err);
}

/* --tune is applied last, to find out what it contradicts. */
static lap_status apply_but_tune(lap_config *config, const setting *s, lap_error *err) {
    return strcmp(s->row->name, "tune") == 0 ? LAP_OK : apply(config, s, err);
}

/* What files say of kernels gives way to an option; another option does not. */
static lap_status apply_tune(lap_config *config, lap_error *err) {
    lap_kernels kernels = config->run.kernels;
    if (kernels != LAP_KERNELS_TUNED &&
        strcmp(lap_config_origin(config, "run", "kernels"), "--set") == 0)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "--set run:kernels=%s and --tune: what is tuned would not be what is run; "
                        "expected one of them",
                        lap_kernels_name(kernels));
    return lap_config_set_key(config, "run", "kernels", "tuned", "--tune", err);
}

/* A store that would not be read. One named in a file is for whoever sets kernels. */
static lap_status check_store(lap_command command, const lap_config *config, lap_error *err) {
    lap_kernels kernels = config->run.kernels;
    if (command == LAP_COMMAND_TUNE || kernels == LAP_KERNELS_TUNED ||
        strcmp(lap_config_origin(config, "run", "tune_store"), "--store") != 0)
        return LAP_OK;
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "--store: the tune store is read where [run] kernels = tuned, and they are %s; "
                    "expected --set run:kernels=tuned%s with it",
                    lap_kernels_name(kernels), command == LAP_COMMAND_RUN ? " or --tune" : "");
}

static lap_status build_config(char *const *files, int file_count, const setting *settings,
                               size_t setting_count, const lap_document *resumed, lap_config **out,
                               lap_error *err) {
    lap_config *config;
    LAP_TRY(lap_config_new(&config, err));
    lap_status status = LAP_OK;
    if (resumed) status = lap_resume_configure(resumed, config, err);
    for (int i = 0; i < file_count && status == LAP_OK; i++) {
        if (!strcmp(files[i], "-"))
            status =
                LAP_FAIL(err, LAP_E_CONFIG,
                         "-: configuration is not read from standard input; expected FILE.ini");
        else
            status = lap_config_load(config, files[i], err);
    }
    bool tune = false;
    for (size_t i = 0; i < setting_count && status == LAP_OK; i++) {
        tune = tune || !strcmp(settings[i].row->name, "tune");
        status = apply_but_tune(config, &settings[i], err);
    }
    if (status == LAP_OK && tune) status = apply_tune(config, err);
    if (status == LAP_OK) status = lap_config_check(config, err);
    if (status == LAP_OK && resumed) status = lap_resume_check(resumed, config, err);
    if (status == LAP_OK)
        *out = config;
    else
        lap_config_free(config);
    return status;
}

lap_status lap_options_parse(lap_command command, int argc, char **argv, lap_options *out,
                             lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_options_parse: out is NULL");
    *out = (lap_options){.seconds = 60};
    if (argc < 1 || !argv) return LAP_FAIL(err, LAP_E_ARG, "lap_options_parse: no argv");
    setting *settings = calloc((size_t)argc, sizeof *settings);
    if (!settings) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the command line");
    size_t setting_count = 0;
    bool seconds_given = false;
    lap_status status =
        walk(command, argc, argv, out, settings, &setting_count, &seconds_given, err);
    bool help = out->action == LAP_ACTION_HELP || out->action == LAP_ACTION_HELP_CONFIG;
    if (status == LAP_OK && out->logits && !*out->logits)
        status = LAP_FAIL(err, LAP_E_CONFIG, "--logits: an empty argument; expected FILE.npy");
    if (status == LAP_OK && !help && command == LAP_COMMAND_RUN && seconds_given && !out->tune)
        status = LAP_FAIL(err, LAP_E_CONFIG,
                          "--seconds is the time for tuning, and nothing is tuned; expected --tune "
                          "with it ([latency] max_seconds limits the timed runs)");
    if (status == LAP_OK && out->resume && out->tune)
        status = LAP_FAIL(err, LAP_E_CONFIG,
                          "--resume and --tune: what is tuned now is not what the "
                          "finished rows ran; expected one of them");
    if (status == LAP_OK && !help && out->resume)
        status = lap_resume_load(out->resume, &out->resumed, err);
    out->files = argv + optind;
    out->file_count = argc - optind;
    if (status == LAP_OK && !help)
        status = build_config(argv + optind, argc - optind, settings, setting_count, out->resumed,
                              &out->config, err);
    if (status == LAP_OK && !help) status = check_store(command, out->config, err);
    free(settings);
    if (status != LAP_OK) lap_options_free(out);
    return status;
}

void lap_options_free(lap_options *options) {
    if (!options) return;
    lap_config_free(options->config);
    lap_document_free(options->resumed);
    *options = (lap_options){0};
}

/* Everything a terminal of 80 columns shows whole. */
enum { HELP_WIDTH = 80, HELP_INDENT = 21 };

static void add_paragraph(lap_text *text, const char *paragraph) {
    lap_line_wrap(text, paragraph, 0, HELP_WIDTH);
    lap_text_add(text, "\n");
}

void lap_options_help(lap_command command, lap_text *text) {
    static const char *const names[] = {"run", "verify", "pitfalls", "tune"};
    static const char *const abouts[] = {
        "Verifies the network on each device, then times it, as the files say.",
        "Verifies every layer of the network on each device, and times nothing.",
        "Times the network the right way and with each of the common mistakes, on each device: "
        "copies in the timed region, no warm-up, not waiting for the device, one sample. The "
        "[latency] section counts; of lists the first entry is taken.",
        "Finds the fastest kernels and parameters for each layer on each device, at the batch "
        "sizes of [latency] batch, and keeps them for `run` with [run] kernels = tuned."};
    lap_text_addf(text, "Usage: warmlap %s [FILE.ini ...] [options]\n\n", names[command]);
    add_paragraph(text, abouts[command]);
    add_paragraph(text,
                  "FILE.ini is a path or the name of a shipped file (quick, full, ...). Files "
                  "are merged in order, options come last, whatever their place.");
    for (int i = 0; i < ROWS; i++) {
        if (!available(&rows[i], command)) continue;
        char left[40], line[160];
        snprintf(left, sizeof left, "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                 rows[i].argument ? rows[i].argument : "");
        snprintf(line, sizeof line, "%-18s %s", left, rows[i].help);
        lap_text_add(text, "  ");
        lap_line_wrap(text, line, HELP_INDENT, HELP_WIDTH - 2);
    }
    lap_text_add(text, "\n");
    lap_line_wrap(text,
                  command == LAP_COMMAND_TUNE
                      ? "Exit status: 0 ok, 1 tuning failed, 2 usage or configuration, 3 no "
                        "matching device, 130 interrupted."
                      : "Exit status: 0 all rows ok, 1 a row failed or a result could not be "
                        "written, 2 usage or configuration, 3 no matching device, 4 verification "
                        "failed, 130 interrupted.",
                  0, HELP_WIDTH);
}
