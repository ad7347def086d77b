/* The database file: opening, schema, migrations, errors (see store.h). */
#include "history/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { APPLICATION = 0x574C4150 }; /* "WLAP" */

const char *const lap_history_migrations[LAP_HISTORY_SCHEMA] = {
    /* 0 to 1 */
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE,"
    " started TEXT NOT NULL, added TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL,"
    " host TEXT NOT NULL, document BLOB NOT NULL);"
    "CREATE TABLE rows (run INTEGER NOT NULL REFERENCES runs(id), position INTEGER NOT NULL,"
    " status TEXT, device TEXT, selector TEXT, network TEXT, precision TEXT, height INTEGER,"
    " width INTEGER, batch INTEGER, mean_s REAL, PRIMARY KEY (run, position)) WITHOUT ROWID;",
    /* 1 to 2: intervals, drivers, and documents that grow while a run goes on. Rows are made anew
     * from the documents, which have always been whole. */
    "ALTER TABLE runs ADD COLUMN digest TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE runs ADD COLUMN finished INTEGER NOT NULL DEFAULT 1;"
    "CREATE INDEX runs_started ON runs (started, id);"
    "DROP TABLE rows;"
    "CREATE TABLE rows (run INTEGER NOT NULL REFERENCES runs(id), position INTEGER NOT NULL,"
    " status TEXT NOT NULL, device TEXT NOT NULL, backend TEXT NOT NULL, selector TEXT NOT NULL,"
    " driver TEXT NOT NULL, network TEXT NOT NULL, precision TEXT NOT NULL, clock TEXT NOT NULL,"
    " trust TEXT NOT NULL, height INTEGER NOT NULL, width INTEGER NOT NULL,"
    " batch INTEGER NOT NULL, throughput_batch INTEGER NOT NULL, proof INTEGER NOT NULL,"
    " n INTEGER NOT NULL, mean_s REAL, std_s REAL, p50_s REAL, relative_error REAL,"
    " images_per_s REAL, PRIMARY KEY (run, position)) WITHOUT ROWID;",
    /* 2 to 3: which device of several, and what tells rows apart that are not to be compared. */
    "DROP TABLE rows;"
    "CREATE TABLE rows (run INTEGER NOT NULL REFERENCES runs(id), position INTEGER NOT NULL,"
    " status TEXT NOT NULL, device TEXT NOT NULL, backend TEXT NOT NULL, selector TEXT NOT NULL,"
    " driver TEXT NOT NULL, network TEXT NOT NULL, precision TEXT NOT NULL, clock TEXT NOT NULL,"
    " trust TEXT NOT NULL, platform TEXT NOT NULL, uuid TEXT NOT NULL, pci TEXT NOT NULL,"
    " machine TEXT NOT NULL, weights TEXT NOT NULL, beside TEXT NOT NULL, cache TEXT NOT NULL,"
    " height INTEGER NOT NULL, width INTEGER NOT NULL, batch INTEGER NOT NULL,"
    " throughput_batch INTEGER NOT NULL, others INTEGER NOT NULL, proof INTEGER NOT NULL,"
    " n INTEGER NOT NULL, mean_s REAL, std_s REAL, p50_s REAL, relative_error REAL,"
    " images_per_s REAL, PRIMARY KEY (run, position)) WITHOUT ROWID;",
};

/* ---- errors --------------------------------------------------------------------------------- */

lap_status lap_history_failed(const lap_history *h, const char *doing, lap_error *err) {
    int code = sqlite3_errcode(h->db);
    switch (code) {
    case SQLITE_NOMEM:
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", h->path);
    case SQLITE_NOTADB:
        return LAP_FAIL(err, LAP_E_IO,
                        "%s: is not a database; expected a history that `warmlap history add` made",
                        h->path);
    case SQLITE_CORRUPT:
        return LAP_FAIL(err, LAP_E_IO,
                        "%s: is damaged (%s); restore a copy, or save what can be read with "
                        "`sqlite3 FILE .recover | sqlite3 NEW`",
                        h->path, sqlite3_errmsg(h->db));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return LAP_FAIL(err, LAP_E_IO,
                        "%s: cannot be written: the file or its folder is read-only; expected one "
                        "that may be written (--database FILE names another)",
                        h->path);
    case SQLITE_FULL:
        return LAP_FAIL(err, LAP_E_IO, "%s: the disk is full; nothing of this file was added",
                        h->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return LAP_FAIL(err, LAP_E_IO,
                        "%s: another program has been writing for %d s; try again later", h->path,
                        LAP_HISTORY_WAIT_S);
    case SQLITE_CANTOPEN:
        return LAP_FAIL(err, LAP_E_IO, "%s: cannot be opened%s%s", h->path,
                        sqlite3_system_errno(h->db) ? ": " : "",
                        sqlite3_system_errno(h->db) ? strerror(sqlite3_system_errno(h->db)) : "");
    default:
        return LAP_FAIL(err, LAP_E_IO, "%s: cannot be %s: %s", h->path, doing,
                        sqlite3_errmsg(h->db));
    }
}

lap_status lap_history_exec(const lap_history *h, const char *sql, const char *doing,
                            lap_error *err) {
    return sqlite3_exec(h->db, sql, NULL, NULL, NULL) == SQLITE_OK
               ? LAP_OK
               : lap_history_failed(h, doing, err);
}

lap_status lap_history_prepare(const lap_history *h, const char *sql, sqlite3_stmt **out,
                               lap_error *err) {
    return sqlite3_prepare_v2(h->db, sql, -1, out, NULL) == SQLITE_OK
               ? LAP_OK
               : lap_history_failed(h, "read", err);
}

lap_status lap_history_done(const lap_history *h, int code, const char *doing, lap_error *err) {
    return code == SQLITE_DONE || code == SQLITE_OK ? LAP_OK : lap_history_failed(h, doing, err);
}

/* ---- transactions --------------------------------------------------------------------------- */

lap_status lap_history_begin(const lap_history *h, lap_error *err) {
    return lap_history_exec(h, "BEGIN IMMEDIATE", "written", err);
}

lap_status lap_history_end(const lap_history *h, lap_status status, lap_error *err) {
    if (status == LAP_OK) status = lap_history_exec(h, "COMMIT", "written", err);
    if (status != LAP_OK && !sqlite3_get_autocommit(h->db))
        sqlite3_exec(h->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

/* ---- schema --------------------------------------------------------------------------------- */

static lap_status get_number(const lap_history *h, const char *pragma, int *out, lap_error *err) {
    sqlite3_stmt *s = NULL;
    LAP_TRY(lap_history_prepare(h, pragma, &s, err));
    int code = sqlite3_step(s);
    *out = code == SQLITE_ROW ? sqlite3_column_int(s, 0) : 0;
    lap_status status = code == SQLITE_ROW ? LAP_OK : lap_history_failed(h, "read", err);
    sqlite3_finalize(s);
    return status;
}

/* Is there anything in the file at all? */
static lap_status is_empty(const lap_history *h, bool *out, lap_error *err) {
    int tables;
    LAP_TRY(get_number(h, "SELECT count(*) FROM sqlite_master", &tables, err));
    *out = tables == 0;
    return LAP_OK;
}

static lap_status check_identity_now(const lap_history *h, int *version, bool *empty,
                                     lap_error *err) {
    int application;
    LAP_TRY(get_number(h, "PRAGMA application_id", &application, err));
    LAP_TRY(get_number(h, "PRAGMA user_version", version, err));
    LAP_TRY(is_empty(h, empty, err));
    if (*empty && application == 0 && *version == 0) return LAP_OK;
    if (application != APPLICATION)
        return LAP_FAIL(err, LAP_E_IO,
                        "%s: is a database of another program; expected a history that `warmlap "
                        "history add` made",
                        h->path);
    if (*version < 1 || *version > LAP_HISTORY_SCHEMA)
        return LAP_FAIL(err, LAP_E_IO,
                        "%s: is of a %s warmlap (schema %d, this one knows %d); use that one",
                        h->path, *version > 0 ? "newer" : "strange", *version, LAP_HISTORY_SCHEMA);
    return LAP_OK;
}

/* In a transaction: between two of its questions another program may make the file a history. */
static lap_status check_identity(const lap_history *h, int *version, bool *empty, lap_error *err) {
    LAP_TRY(lap_history_exec(h, "BEGIN", "read", err));
    return lap_history_end(h, check_identity_now(h, version, empty, err), err);
}

/* The rows of every run, from its document. */
static lap_status index_all(const lap_history *h, lap_error *err) {
    sqlite3_stmt *s = NULL;
    LAP_TRY(lap_history_prepare(h, "SELECT id, name, document FROM runs ORDER BY id", &s, err));
    lap_status status = LAP_OK;
    int code = SQLITE_DONE;
    while (status == LAP_OK && (code = sqlite3_step(s)) == SQLITE_ROW)
        status = lap_history_index(
            h, sqlite3_column_int64(s, 0), (const char *)sqlite3_column_text(s, 1),
            sqlite3_column_blob(s, 2), (size_t)sqlite3_column_bytes(s, 2), err);
    if (status == LAP_OK) status = lap_history_done(h, code, "read", err);
    sqlite3_finalize(s);
    return status;
}

/* In a transaction; the version is read in it again, since another program may have been first. */
static lap_status migrate_now(const lap_history *h, lap_error *err) {
    int version;
    char mark[96];
    LAP_TRY(get_number(h, "PRAGMA user_version", &version, err));
    if (version >= LAP_HISTORY_SCHEMA) return LAP_OK;
    bool had_rows = version > 0;
    for (; version < LAP_HISTORY_SCHEMA; version++)
        LAP_TRY(lap_history_exec(h, lap_history_migrations[version], "written", err));
    if (had_rows) LAP_TRY(index_all(h, err));
    sqlite3_snprintf(sizeof mark, mark, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                     APPLICATION, LAP_HISTORY_SCHEMA);
    return lap_history_exec(h, mark, "written", err);
}

static lap_status migrate(const lap_history *h, lap_error *err) {
    LAP_TRY(lap_history_begin(h, err));
    return lap_history_end(h, migrate_now(h, err), err);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* The folders above path, where they are missing. */
static lap_status make_folders(const char *path, lap_error *err) {
    char *copy = strdup(path);
    if (!copy) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", path);
    lap_status status = LAP_OK;
    for (char *slash = strchr(copy + 1, '/'); slash && status == LAP_OK;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            status = LAP_FAIL(err, LAP_E_IO, "%s: %s", copy, strerror(errno));
        *slash = '/';
    }
    free(copy);
    return status;
}

static lap_status prepare_file(lap_history *h, lap_history_mode mode, lap_error *err) {
    int version = 0;
    bool empty = false;
    sqlite3_busy_timeout(h->db, LAP_HISTORY_WAIT_S * 1000);
    /* A file of somebody else's must not bring functions or triggers that run here. */
    sqlite3_db_config(h->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(h->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(h->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(h->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    LAP_TRY(check_identity(h, &version, &empty, err));
    if (version == LAP_HISTORY_SCHEMA) return LAP_OK;
    if (empty && mode == LAP_HISTORY_READ)
        return LAP_FAIL(err, LAP_E_IO, "%s: is empty; `warmlap history add FILE.json` fills it",
                        h->path);
    return migrate(h, err);
}

lap_status lap_history_open(const char *path, lap_history_mode mode, lap_history **out,
                            lap_error *err) {
    struct stat info;
    *out = NULL;
    bool exists = stat(path, &info) == 0;
    if (exists && S_ISDIR(info.st_mode))
        return LAP_FAIL(err, LAP_E_IO, "%s: is a folder; expected a history's file", path);
    if (!exists && mode == LAP_HISTORY_READ)
        return LAP_FAIL(err, LAP_E_IO,
                        "%s: there is no history yet; `warmlap history add FILE.json` makes it",
                        path);
    if (!exists) LAP_TRY(make_folders(path, err));
    lap_history *h = calloc(1, sizeof *h);
    if (h) h->path = strdup(path);
    if (!h || !h->path) {
        free(h);
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", path);
    }
    /* Reading may have to migrate, and then writes; where it cannot, a current file is readable. */
    int flags = SQLITE_OPEN_READWRITE | (mode == LAP_HISTORY_WRITE ? SQLITE_OPEN_CREATE : 0);
    int code = sqlite3_open_v2(path, &h->db, flags, NULL);
    lap_status status = code == SQLITE_OK ? prepare_file(h, mode, err) : LAP_E_IO;
    if (code != SQLITE_OK) status = lap_history_failed(h, "opened", err);
    if (status != LAP_OK) {
        lap_history_close(h);
        return status;
    }
    *out = h;
    return LAP_OK;
}

void lap_history_close(lap_history *history) {
    if (!history) return;
    sqlite3_close(history->db);
    free(history->path);
    free(history);
}
