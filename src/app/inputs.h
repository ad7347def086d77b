/* The result documents that compare and report are given on the command line. */
#ifndef LAP_APP_INPUTS_H
#define LAP_APP_INPUTS_H

#include "compare/load.h"
#include "page/spans.h"

typedef struct lap_inputs {
    const char *database; /* that history:QUERY means; NULL: the user's */
    bool report;          /* documents whole, and those of spans as well */
    lap_document **documents;
    size_t count;
    lap_spans_document **spans;
    size_t spans_count;
    struct lap_input_file *files; /* that were read, so that none is read twice */
    size_t file_count;
    struct lap_input_row *rows;    /* that the history gave, so that none is given twice */
    size_t row_count, sorted_rows; /* those of earlier queries come first, sorted */
} lap_inputs;

/* Add the document at path; "-" is standard input; "history:QUERY" adds every document of the
 * history that matches, with the rows that match. Without report, a document of another kind than
 * a run's is refused by name. A file that was added already, by whatever name, adds nothing; a
 * row of the history that another query gave (the baseline's, too) is not added again. */
lap_status lap_inputs_add(lap_inputs *inputs, const char *path, lap_error *err);
void lap_inputs_free(lap_inputs *inputs);

/* LAP_E_IO when output is one of the files, the baseline's (NULL: none) or the history that any of
 * them asks, by whatever name: it would be destroyed by what is made of it. */
lap_status lap_inputs_spare(const char *output, char *const *files, int count, const char *baseline,
                            const char *database, lap_error *err);

/* The one document of a baseline; LAP_E_CONFIG when path gives none or several. First of all
 * inputs. */
lap_status lap_inputs_add_baseline(lap_inputs *inputs, const char *path, lap_error *err);

/* Does --baseline mean a file? It does when there is one of that name, or when it looks like
 * nothing else. */
bool lap_inputs_is_file(const char *baseline);

#endif
