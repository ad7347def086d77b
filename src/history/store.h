/* Private to src/history: the open database. */
#ifndef LAP_HISTORY_STORE_H
#define LAP_HISTORY_STORE_H

#include "history/history.h"

#include <sqlite3.h>

struct lap_history {
    sqlite3 *db;
    char *path;
};

/* What went wrong with the file, for people: by SQLite's code and message. doing: "read",
 * "written", "opened". Returns the status. */
lap_status lap_history_failed(const lap_history *h, const char *doing, lap_error *err);

/* Statements without parameters or results. */
lap_status lap_history_exec(const lap_history *h, const char *sql, const char *doing,
                            lap_error *err);
lap_status lap_history_prepare(const lap_history *h, const char *sql, sqlite3_stmt **out,
                               lap_error *err);
/* After a step that should have ended the statement: LAP_OK, or what went wrong. */
lap_status lap_history_done(const lap_history *h, int code, const char *doing, lap_error *err);

/* Begin to write, waiting for others; end with commit, or rollback when status is a failure (which
 * it returns). */
lap_status lap_history_begin(const lap_history *h, lap_error *err);
lap_status lap_history_end(const lap_history *h, lap_status status, lap_error *err);

/* The rows of a run, from its document, and its digest: whatever the table says of it is replaced.
 */
lap_status lap_history_index(const lap_history *h, sqlite3_int64 run, const char *name,
                             const char *text, size_t length, lap_error *err);

/* The document as the version of the schema has it, oldest first: what brings a file from version
 * i to i + 1. */
extern const char *const lap_history_migrations[LAP_HISTORY_SCHEMA];

#endif
