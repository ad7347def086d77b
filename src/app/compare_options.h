/* The command line of `warmlap compare`. Parses only: opens no file, prints nothing. Usage errors
 * are LAP_E_CONFIG. */
#ifndef LAP_APP_COMPARE_OPTIONS_H
#define LAP_APP_COMPARE_OPTIONS_H

#include "compare/render.h"

typedef enum lap_compare_format {
    LAP_FORMAT_TABLE = 0,
    LAP_FORMAT_MARKDOWN,
    LAP_FORMAT_CSV,
    LAP_FORMAT_HTML,
    LAP_FORMAT_JSON,
    LAP_FORMAT_LATEX,
    LAP_FORMATS
} lap_compare_format;

/* Texts point into argv. */
typedef struct lap_compare_command {
    bool help;
    char **files; /* argv's; at least one unless help */
    int file_count;
    const char *baseline; /* selector or file; NULL */
    bool axis_given;      /* --by */
    lap_compare_format format;
    const char *database; /* that history:QUERY means; NULL: the user's */
    const char *columns;  /* NULL: the format's own */
    const char *output;   /* "-" is standard output */
    bool force;
    lap_compare_options options; /* baseline and baseline_document are not set */
} lap_compare_command;

/* argv[0] is the command's name. May reorder argv. Not safe for threads. */
lap_status lap_compare_command_parse(int argc, char **argv, lap_compare_command *out,
                                     lap_error *err);
void lap_compare_command_help(lap_text *text);

#endif
