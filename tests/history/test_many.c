/* 10,000 runs: each question is answered in less than a second. */
#include "base/clock.h"
#include "history/trend.h"
#include "papers.h"

enum { RUNS = 10000 };

static void fill(lap_history *h) {
    lap_history_outcome outcome;
    /* Waiting for the disk 10,000 times is not what is tested. */
    assert_int_equal(sqlite3_exec(h->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
    for (int i = 0; i < RUNS; i++) {
        char id[32], started[32], device[32];
        snprintf(id, sizeof id, "run-%08d", i);
        snprintf(started, sizeof started, "20%02d-%02d-%02dT%02d:00:00Z", 20 + i / 8000,
                 1 + i / 700 % 12, 1 + i / 24 % 28, i % 24);
        snprintf(device, sizeof device, "Device %d", i % 20);
        lap_text paper = small_paper(id, started, device, 1e-3 + 1e-7 * (i % 13), true);
        assert_int_equal(lap_history_add(h, id, &paper, false, &outcome, NULL, NULL), LAP_OK);
        lap_text_free(&paper);
    }
}

static lap_status count_run(void *context, const lap_history_run *run, lap_error *err) {
    (void)run, (void)err;
    ++*(size_t *)context;
    return LAP_OK;
}

static lap_status add_row(void *context, const lap_history_row *row, lap_error *err) {
    return lap_trends_add(context, LAP_METRIC_LATENCY, row, err);
}

static lap_status count_paper(void *context, const lap_history_paper *paper, lap_error *err) {
    (void)err;
    *(size_t *)context += paper->row_count;
    return LAP_OK;
}

/* What list, trend and compare ask; the quickest of three, since others use the machine too. */
static double ask(lap_history *h, const char *text, size_t runs, size_t rows) {
    double best = 1e9;
    lap_query q;
    assert_int_equal(lap_query_parse(text, &q, NULL), LAP_OK);
    for (int i = 0; i < 3; i++) {
        size_t seen_runs = 0, seen_rows = 0, trend_rows = 0;
        lap_trends trends = {0};
        double begin = lap_clock_now();
        assert_int_equal(lap_history_runs(h, &q, count_run, &seen_runs, NULL), LAP_OK);
        assert_int_equal(lap_history_rows(h, &q, add_row, &trends, NULL), LAP_OK);
        lap_trends_finish(&trends, LAP_METRIC_LATENCY, 0.01);
        assert_int_equal(lap_history_papers(h, &q, count_paper, &seen_rows, NULL), LAP_OK);
        double took = lap_clock_now() - begin;
        for (size_t k = 0; k < trends.count; k++)
            trend_rows += trends.trends[k].count;
        lap_trends_free(&trends);
        if (took < best) best = took;
        assert_int_equal(seen_runs, runs);
        assert_int_equal(seen_rows, rows);
        assert_int_equal(trend_rows, rows);
    }
    print_message("%-24s %6zu runs %6zu rows: %.0f ms for list, trend and documents together\n",
                  text, runs, rows, best * 1e3);
    lap_query_free(&q);
    return best;
}

static void answered_in_a_second(void **state) {
    (void)state;
    lap_history *h;
    assert_int_equal(lap_history_open(fresh("many.sqlite"), LAP_HISTORY_WRITE, &h, NULL), LAP_OK);
    double begin = lap_clock_now();
    fill(h);
    print_message("%d runs added in %.1f s\n", RUNS, lap_clock_now() - begin);
    assert_true(ask(h, "all", RUNS, 2 * RUNS) < 1);
    assert_true(ask(h, "device=device 7,batch=8", RUNS / 20, RUNS / 20) < 1);
    assert_true(ask(h, "latest", 1, 2) < 1);
    assert_true(ask(h, "last=100,precision=fp16", 100, 100) < 1);
    assert_true(ask(h, "run=run-00001234", 1, 2) < 1);
    lap_history_close(h);
    fresh("many.sqlite");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(answered_in_a_second)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
