/* The history of a program built without SQLite: every call says so (see history.h). */
#include "history/history.h"

static lap_status absent(lap_error *err) {
    return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                    "this warmlap was built without SQLite (Debian: libsqlite3-dev), so it has no "
                    "history");
}

lap_status lap_history_open(const char *path, lap_history_mode mode, lap_history **out,
                            lap_error *err) {
    (void)path, (void)mode;
    *out = NULL;
    return absent(err);
}

void lap_history_close(lap_history *history) {
    (void)history;
}

lap_status lap_history_add(lap_history *history, const char *name, const lap_text *text,
                           bool replace, lap_history_outcome *outcome, char run_id[72],
                           lap_error *err) {
    (void)history, (void)name, (void)text, (void)replace, (void)outcome, (void)run_id;
    return absent(err);
}

lap_status lap_history_runs(lap_history *history, const lap_query *query,
                            lap_history_visit_run *visit, void *context, lap_error *err) {
    (void)history, (void)query, (void)visit, (void)context;
    return absent(err);
}

lap_status lap_history_rows(lap_history *history, const lap_query *query,
                            lap_history_visit_row *visit, void *context, lap_error *err) {
    (void)history, (void)query, (void)visit, (void)context;
    return absent(err);
}

lap_status lap_history_papers(lap_history *history, const lap_query *query,
                              lap_history_visit_paper *visit, void *context, lap_error *err) {
    (void)history, (void)query, (void)visit, (void)context;
    return absent(err);
}
