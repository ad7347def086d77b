/* Documents into the history (see history.h). */
#include "compare/load.h"
#include "history/store.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUN_ID_MOST = 64 };

/* ---- what a document is --------------------------------------------------------------------- */

/* Of the values, not of their layout: two FNV-1a sums of different starts. For finding the same
 * document again, not against forgery. */
static bool digest_of(const json_t *root, char out[40]) {
    uint64_t a = UINT64_C(0xcbf29ce484222325), b = UINT64_C(0x84222325cbf29ce4);
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) return false;
    for (const char *s = text; *s; s++) {
        a = (a ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
        b = (b ^ (unsigned char)*s) * UINT64_C(0x100000001b3) + (b >> 47);
    }
    free(text);
    snprintf(out, 40, "%016" PRIx64 "%016" PRIx64, a, b);
    return true;
}

/* The document's own id, or one made of its content where an older warmlap wrote none. */
static lap_status run_id_of(const char *name, const json_t *root, const char *digest, char out[72],
                            lap_error *err) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    const char *id = json_string_value(json_object_get(root, "run_id"));
    if (!id) {
        snprintf(out, 72, "%.8s-%.8s", digest, digest + 16);
        return LAP_OK;
    }
    size_t n = strspn(id, allowed);
    if (n < 8 || n > RUN_ID_MOST || id[n])
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: run_id is odd; expected 8 to %d letters, digits and hyphens", name,
                        RUN_ID_MOST);
    snprintf(out, 72, "%s", id);
    return LAP_OK;
}

typedef struct paper {
    lap_document *document;
    char run_id[72], digest[40];
    bool finished;
} paper;

static lap_status read_paper(const char *name, const char *text, size_t length, paper *out,
                             lap_error *err) {
    json_t *root;
    *out = (paper){.finished = true};
    LAP_TRY(lap_source_json(name, text, length, &root, err));
    out->finished = !json_is_false(json_object_get(root, "finished"));
    lap_status status = digest_of(root, out->digest)
                            ? run_id_of(name, root, out->digest, out->run_id, err)
                            : LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", name);
    if (status != LAP_OK) {
        json_decref(root);
        return status;
    }
    return lap_document_take(name, root, false, &out->document, err);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void bind_text(sqlite3_stmt *s, int at, const char *text) {
    sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_real(sqlite3_stmt *s, int at, lap_optional value) {
    if (value.has)
        sqlite3_bind_double(s, at, value.value);
    else
        sqlite3_bind_null(s, at);
}

static lap_status insert_row(const lap_history *h, sqlite3_stmt *s, sqlite3_int64 run,
                             const lap_record *r, lap_error *err) {
    const char *const texts[] = {
        r->status, r->device,   r->backend,   r->selector,
        r->driver, r->network,  r->precision, r->clock,
        r->trust,  r->platform, r->uuid,      r->pci,
        r->host,   r->weights,  r->beside,    strcmp(r->cache, "cold") == 0 ? r->cache : "hot"};
    const uint64_t counts[] = {r->height, r->width, r->batch,    r->throughput_batch,
                               r->others, r->proof, r->latency.n};
    const lap_optional reals[] = {r->latency.mean_s, r->latency.std_s, r->latency.p50_s,
                                  r->latency.relative_error, r->images_per_s};
    int at = 1;
    sqlite3_bind_int64(s, at++, run);
    sqlite3_bind_int64(s, at++, (sqlite3_int64)r->index);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bind_text(s, at++, texts[i]);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        sqlite3_bind_int64(s, at++, (sqlite3_int64)counts[i]);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        bind_real(s, at++, reals[i]);
    lap_status status = lap_history_done(h, sqlite3_step(s), "written", err);
    sqlite3_reset(s);
    return status;
}

static lap_status insert_rows(const lap_history *h, sqlite3_int64 run, const paper *p,
                              lap_error *err) {
    sqlite3_stmt *s = NULL;
    LAP_TRY(lap_history_prepare(
        h,
        "INSERT INTO rows (run, position, status, device, backend, selector, driver, network,"
        " precision, clock, trust, platform, uuid, pci, machine, weights, beside, cache, height,"
        " width, batch, throughput_batch, others, proof, n, mean_s, std_s, p50_s, relative_error,"
        " images_per_s)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        &s, err));
    lap_status status = LAP_OK;
    for (size_t i = 0; i < p->document->row_count && status == LAP_OK; i++)
        status = insert_row(h, s, run, &p->document->rows[i], err);
    sqlite3_finalize(s);
    return status;
}

static lap_status delete_rows(const lap_history *h, sqlite3_int64 run, lap_error *err) {
    sqlite3_stmt *s = NULL;
    LAP_TRY(lap_history_prepare(h, "DELETE FROM rows WHERE run = ?", &s, err));
    sqlite3_bind_int64(s, 1, run);
    lap_status status = lap_history_done(h, sqlite3_step(s), "written", err);
    sqlite3_finalize(s);
    return status;
}

lap_status lap_history_index(const lap_history *h, sqlite3_int64 run, const char *name,
                             const char *text, size_t length, lap_error *err) {
    paper p;
    sqlite3_stmt *s = NULL;
    LAP_TRY(read_paper(name ? name : "?", text ? text : "", length, &p, err));
    lap_status status = delete_rows(h, run, err);
    if (status == LAP_OK) status = insert_rows(h, run, &p, err);
    if (status == LAP_OK)
        status = lap_history_prepare(h, "UPDATE runs SET digest = ?, finished = ? WHERE id = ?", &s,
                                     err);
    if (status == LAP_OK) {
        bind_text(s, 1, p.digest);
        sqlite3_bind_int(s, 2, p.finished);
        sqlite3_bind_int64(s, 3, run);
        status = lap_history_done(h, sqlite3_step(s), "written", err);
    }
    sqlite3_finalize(s);
    lap_document_free(p.document);
    return status;
}

/* ---- runs ----------------------------------------------------------------------------------- */

typedef struct known {
    bool any, finished, same;
    sqlite3_int64 id;
} known;

/* How often the run had been taken up again by the time of this document. */
static size_t resumptions(const json_t *root) {
    return json_array_size(json_object_get(root, "resumed"));
}

/* Is the document that is there one of the same run, from before it was taken up again? */
static lap_status is_earlier(const lap_history *h, sqlite3_int64 run, const paper *p, bool *out,
                             lap_error *err) {
    sqlite3_stmt *s = NULL;
    *out = false;
    size_t now = resumptions(p->document->json);
    if (now == 0) return LAP_OK;
    LAP_TRY(lap_history_prepare(h, "SELECT document FROM runs WHERE id = ?", &s, err));
    sqlite3_bind_int64(s, 1, run);
    int code = sqlite3_step(s);
    lap_status status = LAP_OK;
    if (code == SQLITE_ROW) {
        json_t *root;
        status = lap_source_json(h->path, sqlite3_column_blob(s, 0),
                                 (size_t)sqlite3_column_bytes(s, 0), &root, err);
        if (status == LAP_OK) {
            *out = resumptions(root) < now;
            json_decref(root);
        }
        code = SQLITE_DONE;
    }
    if (status == LAP_OK) status = lap_history_done(h, code, "read", err);
    sqlite3_finalize(s);
    return status;
}

static lap_status find_run(const lap_history *h, const paper *p, known *out, lap_error *err) {
    sqlite3_stmt *s = NULL;
    *out = (known){0};
    LAP_TRY(
        lap_history_prepare(h, "SELECT id, finished, digest FROM runs WHERE run_id = ?", &s, err));
    bind_text(s, 1, p->run_id);
    int code = sqlite3_step(s);
    if (code == SQLITE_ROW) {
        const char *digest = (const char *)sqlite3_column_text(s, 2);
        *out = (known){true, sqlite3_column_int(s, 1) != 0,
                       digest && strcmp(digest, p->digest) == 0, sqlite3_column_int64(s, 0)};
        code = SQLITE_DONE;
    }
    lap_status status = lap_history_done(h, code, "read", err);
    sqlite3_finalize(s);
    return status;
}

static void now(char out[32]) {
    time_t t = time(NULL);
    struct tm utc;
    gmtime_r(&t, &utc);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* Insert, or replace the run of this id; *id is the row's either way. */
static lap_status put_run(const lap_history *h, const char *name, const lap_text *text,
                          const paper *p, const known *old, sqlite3_int64 *id, lap_error *err) {
    sqlite3_stmt *s = NULL;
    const lap_document *d = p->document;
    char added[32];
    now(added);
    LAP_TRY(lap_history_prepare(
        h,
        old->any ? "UPDATE runs SET run_id = ?1, digest = ?2, started = ?3, added = ?4, name = ?5,"
                   " version = ?6, host = ?7, finished = ?8, document = ?9 WHERE id = ?10"
                 : "INSERT INTO runs (run_id, digest, started, added, name, version, host,"
                   " finished, document) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &s, err));
    const char *const texts[] = {p->run_id, p->digest, d->started, added, name, d->version, d->cpu};
    int at = 1;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        bind_text(s, at++, texts[i]);
    sqlite3_bind_int(s, at++, p->finished);
    sqlite3_bind_blob64(s, at++, text->data, text->length, SQLITE_STATIC);
    if (old->any) sqlite3_bind_int64(s, at, old->id);
    lap_status status = lap_history_done(h, sqlite3_step(s), "written", err);
    sqlite3_finalize(s);
    *id = old->any ? old->id : sqlite3_last_insert_rowid(h->db);
    return status;
}

static lap_status put(const lap_history *h, const char *name, const lap_text *text, const paper *p,
                      bool replace, lap_history_outcome *outcome, lap_error *err) {
    known old;
    sqlite3_int64 id;
    LAP_TRY(find_run(h, p, &old, err));
    *outcome = LAP_HISTORY_KNOWN;
    if (old.same) return LAP_OK;
    bool may = !old.any || !old.finished || replace;
    if (!may) LAP_TRY(is_earlier(h, old.id, p, &may, err));
    if (!may)
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "%s: its run %.8s is in the history already, with other content; --replace "
                        "puts this in its place",
                        name, p->run_id);
    *outcome = old.any ? LAP_HISTORY_REPLACED : LAP_HISTORY_ADDED;
    LAP_TRY(put_run(h, name, text, p, &old, &id, err));
    if (old.any) LAP_TRY(delete_rows(h, id, err));
    return insert_rows(h, id, p, err);
}

lap_status lap_history_add(lap_history *h, const char *name, const lap_text *text, bool replace,
                           lap_history_outcome *outcome, char run_id[72], lap_error *err) {
    paper p;
    LAP_TRY(read_paper(name, text->data, text->length, &p, err));
    if (run_id) snprintf(run_id, 72, "%s", p.run_id);
    lap_status status = lap_history_begin(h, err);
    if (status == LAP_OK)
        status = lap_history_end(h, put(h, name, text, &p, replace, outcome, err), err);
    lap_document_free(p.document);
    return status;
}
