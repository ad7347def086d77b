/* Runs, rows and documents out of the history (see history.h). Every value of a query is bound,
 * none becomes SQL. */
#include "history/store.h"

#include <stdlib.h>
#include <string.h>

/* ---- conditions ----------------------------------------------------------------------------- */

/* SQL of each term, with one parameter but for size. Tables are u (runs) and r (rows). */
static const char *const conditions[LAP_TERMS] = {
    [LAP_TERM_DEVICE] = "instr(lower(r.device), lower(?)) > 0",
    [LAP_TERM_DRIVER] = "instr(lower(r.driver), lower(?)) > 0",
    [LAP_TERM_ROUTE] = "instr(r.selector || ':', ? || ':') = 1",
    [LAP_TERM_NETWORK] = "r.network = ?",
    [LAP_TERM_PRECISION] = "r.precision = ?",
    [LAP_TERM_SIZE] = "r.height = ? AND r.width = ?",
    [LAP_TERM_BATCH] = "r.batch = ?",
    [LAP_TERM_HOST] = "instr(lower(u.host), lower(?)) > 0",
    [LAP_TERM_VERSION] = "u.version = ?",
    [LAP_TERM_RUN] = "instr(u.run_id, ?) = 1",
    [LAP_TERM_SINCE] = "u.started >= ?",
};

static bool of_rows(const lap_query *q) {
    for (int t = 0; t < LAP_TERM_HOST; t++)
        if (q->values[t]) return true;
    return false;
}

/* " AND ..." for the terms from first to the one before end. */
static void add_terms(lap_text *sql, const lap_query *q, int first, int end) {
    for (int t = first; t < end; t++) {
        if (!q->values[t]) continue;
        /* "2026-03" means all of March: what begins with it, and what is before. */
        if (t == LAP_TERM_UNTIL)
            lap_text_add(sql, " AND substr(u.started, 1, length(?)) <= ?");
        else
            lap_text_addf(sql, " AND %s", conditions[t]);
    }
}

static int bind_terms(sqlite3_stmt *s, int at, const lap_query *q, int first, int end) {
    for (int t = first; t < end; t++) {
        const char *value = q->values[t];
        if (!value) continue;
        if (t == LAP_TERM_SIZE) {
            sqlite3_bind_int64(s, at++, (sqlite3_int64)q->height);
            sqlite3_bind_int64(s, at++, (sqlite3_int64)q->width);
        } else if (t == LAP_TERM_BATCH) {
            sqlite3_bind_int64(s, at++, (sqlite3_int64)q->batch);
        } else {
            sqlite3_bind_text(s, at++, value, -1, SQLITE_TRANSIENT);
            if (t == LAP_TERM_UNTIL) sqlite3_bind_text(s, at++, value, -1, SQLITE_TRANSIENT);
        }
    }
    return at;
}

/* The runs that match, as a list of ids in parentheses: the latest of those where that is asked. */
static void add_runs(lap_text *sql, const lap_query *q) {
    lap_text_add(sql, "(SELECT u.id FROM runs u WHERE 1");
    add_terms(sql, q, LAP_TERM_HOST, LAP_TERM_LAST);
    if (of_rows(q)) {
        lap_text_add(sql, " AND EXISTS (SELECT 1 FROM rows r WHERE r.run = u.id");
        add_terms(sql, q, 0, LAP_TERM_HOST);
        lap_text_add(sql, ")");
    }
    lap_text_add(sql, " ORDER BY u.started DESC, u.id DESC LIMIT ?)");
}

static int bind_runs(sqlite3_stmt *s, int at, const lap_query *q) {
    at = bind_terms(s, at, q, LAP_TERM_HOST, LAP_TERM_LAST);
    at = bind_terms(s, at, q, 0, LAP_TERM_HOST);
    sqlite3_bind_int64(s, at++, q->last ? (sqlite3_int64)q->last : -1);
    return at;
}

/* SELECT ... WHERE u.id IN (runs) [AND terms of rows] tail */
static lap_status select_runs(const lap_history *h, const lap_query *q, const char *select,
                              bool rows, const char *tail, sqlite3_stmt **out, lap_error *err) {
    lap_text sql = {0};
    lap_text_addf(&sql, "%s WHERE u.id IN ", select);
    add_runs(&sql, q);
    if (rows) add_terms(&sql, q, 0, LAP_TERM_HOST);
    lap_text_addf(&sql, " %s", tail);
    lap_status status = sql.failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the query")
                                   : lap_history_prepare(h, sql.data, out, err);
    lap_text_free(&sql);
    if (status != LAP_OK) return status;
    int at = bind_runs(*out, 1, q);
    if (rows) bind_terms(*out, at, q, 0, LAP_TERM_HOST);
    return LAP_OK;
}

/* ---- values --------------------------------------------------------------------------------- */

static const char *text(sqlite3_stmt *s, int column) {
    const char *value = (const char *)sqlite3_column_text(s, column);
    return value ? value : "";
}

static uint64_t count(sqlite3_stmt *s, int column) {
    sqlite3_int64 value = sqlite3_column_int64(s, column);
    return value > 0 ? (uint64_t)value : 0;
}

static lap_optional real(sqlite3_stmt *s, int column) {
    return sqlite3_column_type(s, column) == SQLITE_NULL
               ? lap_none()
               : lap_some(sqlite3_column_double(s, column));
}

static lap_proof proof(sqlite3_stmt *s, int column) {
    uint64_t value = count(s, column);
    return value <= LAP_PROOF_FAILED ? (lap_proof)value : LAP_PROOF_NONE;
}

/* ---- runs and rows -------------------------------------------------------------------------- */

lap_status lap_history_runs(lap_history *h, const lap_query *query, lap_history_visit_run *visit,
                            void *context, lap_error *err) {
    sqlite3_stmt *s = NULL;
    LAP_TRY(select_runs(h, query,
                        "SELECT u.run_id, u.started, u.added, u.name, u.version, u.host,"
                        " (SELECT group_concat(device, '; ') FROM"
                        " (SELECT DISTINCT r.device FROM rows r WHERE r.run = u.id)),"
                        " (SELECT count(*) FROM rows r WHERE r.run = u.id), length(u.document),"
                        " u.finished FROM runs u",
                        false, "ORDER BY u.started, u.id", &s, err));
    lap_status status = LAP_OK;
    int code = SQLITE_DONE;
    while (status == LAP_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        lap_history_run run = {text(s, 0), text(s, 1), text(s, 2),  text(s, 3),  text(s, 4),
                               text(s, 5), text(s, 6), count(s, 7), count(s, 8), count(s, 9) != 0};
        status = visit(context, &run, err);
    }
    if (status == LAP_OK) status = lap_history_done(h, code, "read", err);
    sqlite3_finalize(s);
    return status;
}

lap_status lap_history_rows(lap_history *h, const lap_query *query, lap_history_visit_row *visit,
                            void *context, lap_error *err) {
    sqlite3_stmt *s = NULL;
    LAP_TRY(
        select_runs(h, query,
                    "SELECT u.run_id, u.started, u.version, u.host, r.status, r.device,"
                    " r.backend, r.selector, r.driver, r.network, r.precision, r.clock, r.trust,"
                    " r.height, r.width, r.batch, r.throughput_batch, r.n, r.mean_s, r.std_s,"
                    " r.p50_s, r.relative_error, r.images_per_s, r.proof, r.platform, r.uuid,"
                    " r.pci, r.machine, r.weights, r.beside, r.cache, r.others"
                    " FROM rows r JOIN runs u ON u.id = r.run",
                    true, "ORDER BY u.started, u.id, r.position", &s, err));
    lap_status status = LAP_OK;
    int code = SQLITE_DONE;
    while (status == LAP_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        lap_history_row row = {.run_id = text(s, 0),
                               .started = text(s, 1),
                               .version = text(s, 2),
                               .host = text(s, 3),
                               .status = text(s, 4),
                               .device = text(s, 5),
                               .backend = text(s, 6),
                               .selector = text(s, 7),
                               .driver = text(s, 8),
                               .network = text(s, 9),
                               .precision = text(s, 10),
                               .clock = text(s, 11),
                               .trust = text(s, 12),
                               .height = count(s, 13),
                               .width = count(s, 14),
                               .batch = count(s, 15),
                               .throughput_batch = count(s, 16),
                               .latency = {.n = count(s, 17),
                                           .mean_s = real(s, 18),
                                           .std_s = real(s, 19),
                                           .p50_s = real(s, 20),
                                           .relative_error = real(s, 21)},
                               .images_per_s = real(s, 22),
                               .proof = proof(s, 23),
                               .platform = text(s, 24),
                               .uuid = text(s, 25),
                               .pci = text(s, 26),
                               .machine = text(s, 27),
                               .weights = text(s, 28),
                               .beside = text(s, 29),
                               .cache = text(s, 30),
                               .others = count(s, 31)};
        status = visit(context, &row, err);
    }
    if (status == LAP_OK) status = lap_history_done(h, code, "read", err);
    sqlite3_finalize(s);
    return status;
}

/* ---- documents ------------------------------------------------------------------------------ */

/* Which rows of the run match, ascending; *rows is malloc'ed. */
static lap_status matching(const lap_history *h, const lap_query *q, sqlite3_int64 run,
                           uint64_t **rows, size_t *n, lap_error *err) {
    lap_text sql = {0};
    sqlite3_stmt *s = NULL;
    *rows = NULL;
    *n = 0;
    lap_text_add(&sql, "SELECT r.position FROM rows r WHERE r.run = ?");
    add_terms(&sql, q, 0, LAP_TERM_HOST);
    lap_text_add(&sql, " ORDER BY r.position");
    lap_status status = sql.failed ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the query")
                                   : lap_history_prepare(h, sql.data, &s, err);
    lap_text_free(&sql);
    if (status != LAP_OK) return status;
    sqlite3_bind_int64(s, 1, run);
    bind_terms(s, 2, q, 0, LAP_TERM_HOST);
    int code;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        uint64_t *longer = realloc(*rows, (*n + 1) * sizeof **rows);
        if (!longer) break;
        *rows = longer;
        longer[(*n)++] = count(s, 0);
    }
    status = code == SQLITE_ROW ? LAP_FAIL(err, LAP_E_NOMEM, "no memory for the rows of a run")
                                : lap_history_done(h, code, "read", err);
    sqlite3_finalize(s);
    if (status == LAP_OK) return LAP_OK;
    free(*rows);
    *rows = NULL;
    return status;
}

lap_status lap_history_papers(lap_history *h, const lap_query *query,
                              lap_history_visit_paper *visit, void *context, lap_error *err) {
    sqlite3_stmt *s = NULL;
    LAP_TRY(select_runs(h, query, "SELECT u.id, u.run_id, u.document FROM runs u", false,
                        "ORDER BY u.started, u.id", &s, err));
    lap_status status = LAP_OK;
    int code = SQLITE_DONE;
    while (status == LAP_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        uint64_t *rows = NULL;
        lap_history_paper paper = {.run_id = text(s, 1),
                                   .text = sqlite3_column_blob(s, 2),
                                   .length = (size_t)sqlite3_column_bytes(s, 2)};
        status = matching(h, query, sqlite3_column_int64(s, 0), &rows, &paper.row_count, err);
        paper.rows = rows;
        if (status == LAP_OK) status = visit(context, &paper, err);
        free(rows);
    }
    if (status == LAP_OK) status = lap_history_done(h, code, "read", err);
    sqlite3_finalize(s);
    return status;
}
