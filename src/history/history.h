/* The history: result documents in one SQLite file, whole, with what they say of their rows beside
 * them for searching.
 *
 * A document is added in one transaction, so that it is in the file whole or not at all. Writers
 * wait for each other (LAP_HISTORY_WAIT_S). The file uses a rollback journal, not a write-ahead
 * log: home folders may be on a network, where a log's shared memory does not work, and
 * transactions are short. Its application id and schema version are checked; older versions are
 * migrated when opened, newer ones refused. Files are untrusted: nothing in them is run.
 *
 * Built without SQLite every call is LAP_E_UNSUPPORTED and says so. Errors name the file and say
 * what can be done; LAP_E_IO for all that is wrong with it. */
#ifndef LAP_HISTORY_HISTORY_H
#define LAP_HISTORY_HISTORY_H

#include "base/text.h"
#include "compare/document.h"
#include "history/query.h"

enum { LAP_HISTORY_SCHEMA = 3, LAP_HISTORY_WAIT_S = 10 };

typedef struct lap_history lap_history;

/* given, or where the user's history is when given is NULL: malloc'ed. LAP_E_CONFIG when neither
 * XDG_DATA_HOME nor HOME says. */
lap_status lap_history_path(const char *given, char **out, lap_error *err);

typedef enum lap_history_mode {
    LAP_HISTORY_READ = 0, /* LAP_E_IO when there is no such file */
    LAP_HISTORY_WRITE     /* made, its folders included, when there is none */
} lap_history_mode;

lap_status lap_history_open(const char *path, lap_history_mode mode, lap_history **out,
                            lap_error *err);
void lap_history_close(lap_history *history); /* NULL is allowed */

typedef enum lap_history_outcome {
    LAP_HISTORY_ADDED = 0,
    LAP_HISTORY_KNOWN,   /* the same document is there already */
    LAP_HISTORY_REPLACED /* the same run was there: unfinished, or replace was set */
} lap_history_outcome;

/* Add the result document in text; name is kept as where it came from. LAP_E_FORMAT when it is
 * none, LAP_E_CONFIG when its run is there with other content. run_id (64 characters at most) may
 * be NULL. */
lap_status lap_history_add(lap_history *history, const char *name, const lap_text *text,
                           bool replace, lap_history_outcome *outcome, char run_id[72],
                           lap_error *err);

/* ---- reading: visits in order of start, oldest first; texts live until the next visit -------- */

typedef struct lap_history_run {
    const char *run_id, *started, *added, *name, *version, *host;
    const char *devices; /* names, each once */
    uint64_t rows, bytes;
    bool finished;
} lap_history_run;

/* A row as it was when it was added; lap_record has the meaning of the members, of which machine is
 * the host in a fleet. */
typedef struct lap_history_row {
    const char *run_id, *started, *version, *host;
    const char *status, *device, *backend, *selector, *driver, *network, *precision, *clock, *trust;
    const char *platform, *uuid, *pci, *machine, *weights, *beside;
    const char *cache; /* "hot" or "cold" */
    uint64_t height, width, batch, throughput_batch, others;
    lap_span latency; /* from_samples is false */
    lap_optional images_per_s;
    lap_proof proof;
} lap_history_row;

/* A document: its text, and which of its rows match, ascending. */
typedef struct lap_history_paper {
    const char *run_id, *text;
    size_t length;
    const uint64_t *rows;
    size_t row_count;
} lap_history_paper;

/* A visit that fails ends the reading. */
typedef lap_status lap_history_visit_run(void *context, const lap_history_run *run, lap_error *err);
typedef lap_status lap_history_visit_row(void *context, const lap_history_row *row, lap_error *err);
typedef lap_status lap_history_visit_paper(void *context, const lap_history_paper *paper,
                                           lap_error *err);

lap_status lap_history_runs(lap_history *history, const lap_query *query,
                            lap_history_visit_run *visit, void *context, lap_error *err);
lap_status lap_history_rows(lap_history *history, const lap_query *query,
                            lap_history_visit_row *visit, void *context, lap_error *err);
lap_status lap_history_papers(lap_history *history, const lap_query *query,
                              lap_history_visit_paper *visit, void *context, lap_error *err);

#endif
