/* The database file: what is kept, found, replaced, migrated and refused. */
#include "papers.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

static lap_history *open_new(const char *name) {
    lap_history *h;
    lap_error err = {0};
    if (lap_history_open(fresh(name), LAP_HISTORY_WRITE, &h, &err) != LAP_OK)
        fail_msg("%s", err.message);
    return h;
}

static lap_status add(lap_history *h, const lap_text *paper, bool replace,
                      lap_history_outcome *outcome, lap_error *err) {
    return lap_history_add(h, "a.json", paper, replace, outcome, NULL, err);
}

typedef struct seen {
    size_t runs, rows, papers, paper_rows;
    char text[4096], first[72];
    double mean;
    bool finished;
} seen;

static lap_status see_run(void *context, const lap_history_run *run, lap_error *err) {
    seen *s = context;
    (void)err;
    if (s->runs++ == 0) snprintf(s->first, sizeof s->first, "%s", run->run_id);
    s->finished = run->finished;
    return LAP_OK;
}

static lap_status see_row(void *context, const lap_history_row *row, lap_error *err) {
    seen *s = context;
    (void)err;
    s->rows++;
    s->mean = row->latency.mean_s.value;
    assert_true(row->latency.relative_error.has);
    assert_string_equal(row->driver, "580.1");
    return LAP_OK;
}

static lap_status see_paper(void *context, const lap_history_paper *paper, lap_error *err) {
    seen *s = context;
    (void)err;
    s->papers++;
    s->paper_rows += paper->row_count;
    snprintf(s->text, sizeof s->text, "%.*s", (int)paper->length, paper->text);
    return LAP_OK;
}

static seen look(lap_history *h, const char *text) {
    seen s = {0};
    lap_query q;
    lap_error err = {0};
    assert_int_equal(lap_query_parse(text, &q, &err), LAP_OK);
    if (lap_history_runs(h, &q, see_run, &s, &err) != LAP_OK ||
        lap_history_rows(h, &q, see_row, &s, &err) != LAP_OK ||
        lap_history_papers(h, &q, see_paper, &s, &err) != LAP_OK)
        fail_msg("%s: %s", text, err.message);
    lap_query_free(&q);
    return s;
}

static void whole_documents(void **state) {
    (void)state;
    lap_history *h = open_new("whole.sqlite");
    lap_text paper =
        small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "GPU \\u00e9 'x'", 1e-3, true);
    lap_history_outcome outcome;
    assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_ADDED);
    seen s = look(h, "all");
    assert_int_equal(s.runs, 1);
    assert_int_equal(s.rows, 2);
    assert_string_equal(s.text, paper.data); /* every byte */
    lap_history_close(h);
    /* It is there for the next one who opens the file. */
    assert_int_equal(lap_history_open(LAP_TEST_TMP "/whole.sqlite", LAP_HISTORY_READ, &h, NULL),
                     LAP_OK);
    assert_int_equal(look(h, "").runs, 1);
    lap_history_close(h);
    lap_text_free(&paper);
}

static void one_run_once(void **state) {
    (void)state;
    lap_history *h = open_new("once.sqlite");
    lap_history_outcome outcome;
    lap_error err = {0};
    lap_text unfinished = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 1e-3, false);
    lap_text finished = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 2e-3, true);
    lap_text other = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 3e-3, true);
    assert_int_equal(add(h, &unfinished, false, &outcome, NULL), LAP_OK);
    assert_false(look(h, "").finished);
    assert_int_equal(add(h, &finished, false, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_REPLACED);
    assert_int_equal(add(h, &finished, false, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_KNOWN);
    assert_int_equal(add(h, &other, false, &outcome, &err), LAP_E_CONFIG);
    assert_non_null(strstr(err.message, "--replace"));
    assert_int_equal(add(h, &unfinished, false, &outcome, NULL), LAP_E_CONFIG);
    seen s = look(h, "batch=1");
    assert_true(s.runs == 1 && s.rows == 1 && s.mean > 1.9e-3 && s.mean < 2.1e-3);
    assert_int_equal(add(h, &other, true, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_REPLACED);
    assert_true(look(h, "batch=1").mean > 2.9e-3);
    assert_int_equal(look(h, "").rows, 2);
    lap_history_close(h);
    lap_text_free(&unfinished);
    lap_text_free(&finished);
    lap_text_free(&other);
}

/* A run that was interrupted, then taken up again: the later document counts. */
static void resumed_runs(void **state) {
    (void)state;
    lap_history *h = open_new("resumed.sqlite");
    lap_history_outcome outcome;
    lap_text before = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 1e-3, true);
    lap_text after = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 2e-3, true);
    after.length--; /* the last brace */
    lap_text_add(&after, ",\"resumed\":[\"2026-03-02T00:00:00Z\"]}");
    assert_int_equal(add(h, &before, false, &outcome, NULL), LAP_OK);
    assert_int_equal(add(h, &after, false, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_REPLACED);
    assert_int_equal(add(h, &before, false, &outcome, NULL), LAP_E_CONFIG);
    assert_true(look(h, "batch=1").mean > 1.9e-3);
    lap_history_close(h);
    lap_text_free(&before);
    lap_text_free(&after);
}

/* Documents without an id are told apart by their values, not by their layout. */
static void without_run_id(void **state) {
    (void)state;
    lap_history *h = open_new("old.sqlite");
    lap_history_outcome outcome;
    lap_text a = small_paper(NULL, "2026-03-01T00:00:00Z", "A", 1e-3, true);
    lap_text b = small_paper(NULL, "2026-03-01T00:00:00Z", "A", 2e-3, true), spaced = {0};
    for (const char *s = a.data; *s; s++)
        lap_text_addf(&spaced, "%c%s", *s, *s == ',' ? "\n  " : "");
    assert_int_equal(add(h, &a, false, &outcome, NULL), LAP_OK);
    assert_int_equal(add(h, &spaced, false, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_KNOWN);
    assert_int_equal(add(h, &b, false, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_ADDED);
    assert_int_equal(look(h, "").runs, 2);
    lap_history_close(h);
    lap_text_free(&a);
    lap_text_free(&b);
    lap_text_free(&spaced);
}

static void refused_documents(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"schema\":\"warmlap/9\",\"rows\":[]}",
        "{\"schema\":\"warmlap-spans/1\",\"rows\":[]}",
        "[]",
        "{\"schema\":\"warmlap/1\",\"rows\":[],\"run_id\":\"a'; DROP TABLE runs; --\"}",
        "{\"schema\":\"warmlap/1\",\"rows\":[],\"run_id\":\"short\"}",
        "nonsense"};
    lap_history *h = open_new("refused.sqlite");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        lap_text text = {0};
        lap_history_outcome outcome;
        lap_text_add(&text, texts[i]);
        assert_int_equal(add(h, &text, false, &outcome, NULL), LAP_E_FORMAT);
        lap_text_free(&text);
    }
    assert_int_equal(look(h, "").runs, 0);
    lap_history_close(h);
}

static void queries(void **state) {
    (void)state;
    static const struct {
        const char *query;
        size_t runs, rows;
    } cases[] = {
        {"", 3, 6},
        {"latest", 1, 2},
        {"last=2", 2, 4},
        {"device=alpha", 2, 4},
        {"device=ALPHA,last=1", 1, 2},
        {"batch=8", 3, 3},
        {"batch=8,precision=fp32", 0, 0},
        {"route=cuda", 3, 6},
        {"route=cuda:1", 3, 3},
        {"route=cud", 0, 0},
        {"size=224x224", 3, 6},
        {"size=224x225", 0, 0},
        {"since=2026-03-02", 2, 4},
        {"until=2026-03-02", 2, 4},
        {"until=2026", 3, 6},
        {"since=2026-03-02,until=2026-03-02", 1, 2},
        {"run=bbbbbbbb", 1, 2},
        {"driver=580,network=resnet18,host=HOST,version=0.1.0", 3, 6},
        {"device=' OR 1=1 --", 0, 0},
        {"device=%", 0, 0},
    };
    static const char *const names[] = {"Alpha", "Beta", "Alpha two"};
    lap_history *h = open_new("queries.sqlite");
    for (int i = 2; i >= 0; i--) { /* added in another order than they began */
        char id[16], started[32];
        lap_history_outcome outcome;
        snprintf(id, sizeof id, "%c%c%c%c%c%c%c%c-1", 'a' + i, 'a' + i, 'a' + i, 'a' + i, 'a' + i,
                 'a' + i, 'a' + i, 'a' + i);
        snprintf(started, sizeof started, "2026-03-0%dT10:00:00Z", i + 1);
        lap_text paper = small_paper(id, started, names[i], 1e-3 * (i + 1), true);
        assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
        lap_text_free(&paper);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen s = look(h, cases[i].query);
        if (s.runs != cases[i].runs || s.rows != cases[i].rows || s.papers != s.runs ||
            s.paper_rows != s.rows)
            fail_msg("%s: %zu runs, %zu rows, %zu papers with %zu", cases[i].query, s.runs, s.rows,
                     s.papers, s.paper_rows);
    }
    assert_string_equal(look(h, "").first, "aaaaaaaa-1"); /* oldest first */
    lap_history_close(h);
}

static lap_status see_identity(void *context, const lap_history_row *row, lap_error *err) {
    size_t *count = context;
    (void)err;
    assert_string_equal(row->uuid, *count ? "" : "GPU-7");
    assert_string_equal(row->pci, *count ? "" : "0000:01:00.0");
    assert_string_equal(row->weights, "synthetic:1");
    assert_string_equal(row->platform, "NVIDIA CUDA");
    assert_string_equal(row->cache, *count ? "hot" : "cold");
    assert_string_equal(row->beside, *count ? "" : "2 x A");
    assert_int_equal(row->others, *count ? 0 : 1);
    ++*count;
    return LAP_OK;
}

static void identity_is_kept(lap_history *h) {
    size_t count = 0;
    lap_query all = {0};
    assert_int_equal(lap_history_rows(h, &all, see_identity, &count, NULL), LAP_OK);
    assert_int_equal(count, 2);
}

static lap_text paper_with_identity(void) {
    lap_text t = {0};
    lap_text_add(&t, "{\"schema\":\"warmlap/1\",\"run_id\":\"aaaaaaaa-1\","
                     "\"started\":\"2026-03-01T00:00:00Z\",\"finished\":false,"
                     "\"config\":{\"network\":{\"weights\":\"synthetic:1\"}},\"rows\":[");
    for (int i = 0; i < 2; i++)
        lap_text_addf(&t,
                      "%s{\"status\":\"ok\",\"backend\":\"cuda\",\"selector\":\"cuda:0\","
                      "\"platform\":\"NVIDIA CUDA\",\"device\":{\"name\":\"A\",\"driver\":"
                      "\"580.1\"%s},\"network\":\"resnet18\",\"height\":224,\"width\":224,"
                      "\"batch\":1,\"precision\":\"fp32\"%s,\"latency\":{\"n\":100,\"clock\":"
                      "\"device\",\"mean_s\":0.001,\"std_s\":1e-6}}",
                      i ? "," : "", i ? "" : ",\"uuid\":\"GPU-7\",\"pci\":\"0000:01:00.0\"",
                      i ? ""
                        : ",\"cache\":\"cold\",\"concurrent\":{\"others\":1,\"devices\":"
                          "\"2 x A\"}");
    lap_text_add(&t, "]}");
    assert_false(t.failed);
    return t;
}

/* A file as an older version wrote it. */
static void migrate_from(int version) {
    const char *path = fresh("older.sqlite");
    char mark[96];
    sqlite3 *db;
    sqlite3_stmt *s;
    lap_text paper = paper_with_identity();
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    for (int i = 0; i < version; i++)
        assert_int_equal(sqlite3_exec(db, lap_history_migrations[i], NULL, NULL, NULL), SQLITE_OK);
    snprintf(mark, sizeof mark, "PRAGMA application_id = 1464615248; PRAGMA user_version = %d",
             version);
    assert_int_equal(sqlite3_exec(db, mark, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(
            db,
            "INSERT INTO runs (run_id, started, added, name, version, host, document)"
            " VALUES ('aaaaaaaa-1', '2026-03-01T00:00:00Z', '', 'a.json', '0.1.0', 'Host', ?)",
            -1, &s, NULL),
        SQLITE_OK);
    sqlite3_bind_blob(s, 1, paper.data, (int)paper.length, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
    sqlite3_close(db);
    lap_history *h;
    lap_error err = {0};
    if (lap_history_open(path, LAP_HISTORY_READ, &h, &err) != LAP_OK) fail_msg("%s", err.message);
    seen found = look(h, "driver=580");
    assert_true(found.runs == 1 && found.rows == 2);
    assert_false(found.finished); /* from the document: version 1 did not have it */
    assert_string_equal(found.text, paper.data);
    lap_history_outcome outcome;
    assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
    assert_int_equal(outcome, LAP_HISTORY_KNOWN); /* the digest was made as well */
    identity_is_kept(h);
    lap_history_close(h);
    lap_text_free(&paper);
}

static void older_versions_are_migrated(void **state) {
    (void)state;
    for (int version = 1; version < LAP_HISTORY_SCHEMA; version++)
        migrate_from(version);
}

static void devices_and_what_sets_rows_apart(void **state) {
    (void)state;
    lap_history *h = open_new("identity.sqlite");
    lap_text paper = paper_with_identity();
    lap_history_outcome outcome;
    assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
    identity_is_kept(h);
    lap_history_close(h);
    lap_text_free(&paper);
}

static void put_bytes(const char *path, const char *mode, long at, const char *bytes, size_t n) {
    FILE *f = fopen(path, mode);
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void refuse(const char *path, lap_history_mode mode, const char *says) {
    lap_history *h;
    lap_error err = {0};
    assert_int_equal(lap_history_open(path, mode, &h, &err), LAP_E_IO);
    if (!strstr(err.message, says)) fail_msg("%s: %s", says, err.message);
}

static void foreign_files(void **state) {
    (void)state;
    const char *path = fresh("foreign.sqlite");
    refuse(path, LAP_HISTORY_READ, "no history yet");
    put_bytes(path, "wb", 0, "this is a text and no database at all", 37);
    refuse(path, LAP_HISTORY_READ, "is not a database");
    refuse(path, LAP_HISTORY_WRITE, "is not a database");
    path = fresh("foreign.sqlite");
    sqlite3 *db;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_exec(db, "CREATE TABLE runs (x)", NULL, NULL, NULL);
    refuse(path, LAP_HISTORY_WRITE, "another program");
    sqlite3_exec(db, "PRAGMA application_id = 1464615248; PRAGMA user_version = 77", NULL, NULL,
                 NULL);
    refuse(path, LAP_HISTORY_READ, "newer warmlap (schema 77");
    sqlite3_close(db);
    refuse(LAP_TEST_TMP, LAP_HISTORY_WRITE, "is a folder");
    refuse("/proc/nosuch/x.sqlite", LAP_HISTORY_WRITE, "/proc/nosuch");
    path = fresh("empty.sqlite");
    put_bytes(path, "wb", 0, "", 0);
    refuse(path, LAP_HISTORY_READ, "is empty");
}

static void damaged_pages(void **state) {
    (void)state;
    lap_history *h = open_new("damaged.sqlite");
    lap_history_outcome outcome;
    for (int i = 0; i < 40; i++) {
        char id[32];
        snprintf(id, sizeof id, "run-%08d", i);
        lap_text paper = small_paper(id, "2026-03-01T00:00:00Z", "A", 1e-3, true);
        assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
        lap_text_free(&paper);
    }
    lap_history_close(h);
    static char junk[4096 * 6];
    memset(junk, 0xA5, sizeof junk);
    put_bytes(LAP_TEST_TMP "/damaged.sqlite", "r+b", 4096, junk, sizeof junk);
    lap_error err = {0};
    lap_query q = {0};
    seen s = {0};
    lap_status status =
        lap_history_open(LAP_TEST_TMP "/damaged.sqlite", LAP_HISTORY_READ, &h, &err);
    if (status == LAP_OK) {
        status = lap_history_rows(h, &q, see_row, &s, &err);
        lap_history_close(h);
    }
    assert_int_equal(status, LAP_E_IO);
    if (!strstr(err.message, "is damaged")) fail_msg("%s", err.message);
}

/* As a user who may not write: root may always. Exit status 0: refused as it should be. */
static int try_to_write(const char *path) {
    lap_history *h;
    lap_error err = {0};
    lap_history_outcome outcome;
    lap_text paper = small_paper("cccccccc-1", "2026-03-01T00:00:00Z", "A", 1e-3, true);
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 77;
    if (access(path, R_OK) != 0) return 77; /* the build folder is not for others to see */
    if (lap_history_open(path, LAP_HISTORY_WRITE, &h, &err) != LAP_OK) return 2;
    seen s = look(h, ""); /* reading works all the same */
    if (s.runs != 1) return 3;
    if (add(h, &paper, false, &outcome, &err) != LAP_E_IO) return 4;
    return strstr(err.message, "read-only") ? 0 : 5;
}

static void read_only_files(void **state) {
    (void)state;
    lap_history *h = open_new("readonly.sqlite");
    lap_text paper = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 1e-3, true);
    lap_history_outcome outcome;
    assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
    lap_history_close(h);
    lap_text_free(&paper);
    chmod(LAP_TEST_TMP "/readonly.sqlite", 0444);
    pid_t child = fork();
    if (child == 0) _exit(try_to_write(LAP_TEST_TMP "/readonly.sqlite"));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The disk as SQLite sees it: no page more. */
static void full_disk(void **state) {
    (void)state;
    lap_history *h = open_new("full.sqlite");
    lap_history_outcome outcome;
    lap_error err = {0};
    lap_text paper = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 1e-3, true);
    assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
    assert_int_equal(sqlite3_exec(h->db, "PRAGMA max_page_count = 1", NULL, NULL, NULL), SQLITE_OK);
    lap_text large = small_paper("bbbbbbbb-1", "2026-03-01T00:00:00Z", "A", 1e-3, true);
    large.length--;
    lap_text_add(&large, ",\"filler\":\"");
    for (int i = 0; i < 20000; i++)
        lap_text_add(&large, "x");
    lap_text_add(&large, "\"}");
    assert_int_equal(add(h, &large, false, &outcome, &err), LAP_E_IO);
    if (!strstr(err.message, "disk is full")) fail_msg("%s", err.message);
    assert_int_equal(look(h, "").runs, 1); /* nothing of it stayed */
    assert_int_equal(look(h, "").rows, 2);
    lap_history_close(h);
    lap_text_free(&paper);
    lap_text_free(&large);
}

/* Triggers and views of a file that somebody else made are not run. */
static void nothing_in_it_runs(void **state) {
    (void)state;
    lap_history *h = open_new("trigger.sqlite");
    lap_history_outcome outcome;
    lap_text paper = small_paper("aaaaaaaa-1", "2026-03-01T00:00:00Z", "A", 1e-3, true);
    lap_history_close(h);
    sqlite3 *db;
    assert_int_equal(sqlite3_open(LAP_TEST_TMP "/trigger.sqlite", &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db, "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END", NULL,
                     NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    assert_int_equal(lap_history_open(LAP_TEST_TMP "/trigger.sqlite", LAP_HISTORY_WRITE, &h, NULL),
                     LAP_OK);
    assert_int_equal(add(h, &paper, false, &outcome, NULL), LAP_OK);
    assert_int_equal(look(h, "").runs, 1);
    lap_history_close(h);
    lap_text_free(&paper);
}

/* ---- a file that another program makes a history of while this one looks at it -------------- */

static const char *meanwhile; /* the file; NULL when that was done */
static int meanwhile_code;

static int between(unsigned event, void *db, void *statement, void *text) {
    (void)event, (void)db, (void)statement;
    if (!meanwhile || strcmp(text, "PRAGMA user_version") != 0) return 0;
    const char *path = meanwhile;
    meanwhile = NULL;
    sqlite3 *other;
    char sql[] = "BEGIN IMMEDIATE; CREATE TABLE runs (id); PRAGMA user_version = 2; COMMIT";
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    meanwhile_code = sqlite3_exec(other, sql, NULL, NULL, NULL);
    sqlite3_close(other);
    return 0;
}

static int watch(sqlite3 *db, char **message, const void *api) {
    (void)message, (void)api;
    return meanwhile ? sqlite3_trace_v2(db, SQLITE_TRACE_STMT, between, NULL) : SQLITE_OK;
}

static void made_meanwhile(void **state) {
    (void)state;
    lap_error err = {0};
    lap_history *h;
    const char *path = fresh("meanwhile.sqlite");
    meanwhile = path;
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch), SQLITE_OK);
    lap_status status = lap_history_open(path, LAP_HISTORY_WRITE, &h, &err);
    sqlite3_cancel_auto_extension((void (*)(void))watch);
    assert_null(meanwhile); /* it was tried */
    assert_int_equal(meanwhile_code, SQLITE_BUSY);
    if (status != LAP_OK) fail_msg("%s", err.message);
    lap_history_close(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_documents),
        cmocka_unit_test(one_run_once),
        cmocka_unit_test(resumed_runs),
        cmocka_unit_test(without_run_id),
        cmocka_unit_test(refused_documents),
        cmocka_unit_test(queries),
        cmocka_unit_test(older_versions_are_migrated),
        cmocka_unit_test(devices_and_what_sets_rows_apart),
        cmocka_unit_test(foreign_files),
        cmocka_unit_test(damaged_pages),
        cmocka_unit_test(made_meanwhile),
        cmocka_unit_test(read_only_files),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(nothing_in_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
