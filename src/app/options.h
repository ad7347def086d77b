/* The command line of `warmlap run`, `warmlap verify` and `warmlap pitfalls`.
 *
 * Options are sugar for --set: they end in the same lap_config, checked the same way. Parses only:
 * prints nothing, opens nothing but the configuration files. Usage errors are LAP_E_CONFIG.
 */
#ifndef LAP_APP_OPTIONS_H
#define LAP_APP_OPTIONS_H

#include "app/config.h"
#include "compare/document.h"

typedef enum lap_options_action {
    LAP_ACTION_RUN = 0,     /* do the command with config */
    LAP_ACTION_HELP,        /* print lap_options_help, exit 0 */
    LAP_ACTION_HELP_CONFIG, /* print lap_config_help_markdown, exit 0 */
    LAP_ACTION_DUMP_CONFIG  /* print lap_config_dump, exit 0 */
} lap_options_action;

typedef enum lap_command {
    LAP_COMMAND_RUN = 0,
    LAP_COMMAND_VERIFY,
    LAP_COMMAND_PITFALLS,
    LAP_COMMAND_TUNE
} lap_command;

typedef struct lap_options {
    lap_options_action action;
    lap_config *config; /* owned; NULL for the two help actions */
    char *const *files; /* of configuration, as named; point into argv */
    int file_count;
    const char *logits;    /* verify --logits FILE.npy: points into argv; NULL if not given */
    const char *resume;    /* FILE of --resume, likewise */
    lap_document *resumed; /* what it holds; owned */
    bool tune, dry_run;    /* run --tune; tune --dry-run */
    double seconds;        /* of tuning */
} lap_options;

/* argv[0] is the command's name ("run"), the rest its arguments. May reorder argv (getopt_long).
 * Not safe for threads. On failure *out is empty. */
lap_status lap_options_parse(lap_command command, int argc, char **argv, lap_options *out,
                             lap_error *err);
void lap_options_free(lap_options *options);
/* Usage text of the command, at most 80 columns. */
void lap_options_help(lap_command command, lap_text *text);

/* Texts of options that every command with a configuration has (cmd_run.c). Return exit statuses.
 */
int lap_app_print_help(lap_command command);
int lap_app_print_text(void (*write)(lap_text *));
int lap_app_print_config(const lap_config *config);

#endif
