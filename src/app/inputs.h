/* The result documents that compare and report are given on the command line. */
#ifndef LAP_APP_INPUTS_H
#define LAP_APP_INPUTS_H

#include "compare/load.h"
#include "page/spans.h"

typedef struct lap_inputs {
    bool report; /* documents whole, and those of spans as well */
    lap_document **documents;
    size_t count;
    lap_spans_document **spans;
    size_t spans_count;
} lap_inputs;

/* Add the document at path; "-" is standard input. Without report, a document of another kind than
 * a run's is refused by name. */
lap_status lap_inputs_add(lap_inputs *inputs, const char *path, lap_error *err);
void lap_inputs_free(lap_inputs *inputs);

/* Does --baseline mean a file? It does when there is one of that name, or when it looks like
 * nothing else. */
bool lap_inputs_is_file(const char *baseline);

#endif
