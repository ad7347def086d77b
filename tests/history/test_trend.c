/* Trends of made-up rows: what belongs together, which way is better, what is judged. */
#include "history/trend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static lap_history_row row(const char *device, uint64_t batch, double mean, double error) {
    static char ids[16][16]; /* every row is of a run of its own */
    static size_t next;
    char *id = ids[next++ % 16];
    snprintf(id, sizeof ids[0], "run-%08zu", next);
    return (lap_history_row){.run_id = id,
                             .started = "2026-03-01T00:00:00Z",
                             .version = "1",
                             .host = "h",
                             .status = "ok",
                             .device = device,
                             .backend = "cuda",
                             .selector = "cuda:0",
                             .driver = "",
                             .network = "resnet18",
                             .precision = "fp32",
                             .clock = "device",
                             .trust = "",
                             .height = 224,
                             .width = 224,
                             .batch = batch,
                             .throughput_batch = 8,
                             .latency = {.n = 100,
                                         .mean_s = lap_some(mean),
                                         .p50_s = lap_some(mean),
                                         .relative_error = lap_some(error)},
                             .images_per_s = lap_some(1 / mean),
                             .proof = LAP_PROOF_PASSED};
}

static lap_trends of(lap_metric metric, const lap_history_row *rows, size_t count) {
    lap_trends trends = {0};
    for (size_t i = 0; i < count; i++)
        assert_int_equal(lap_trends_add(&trends, metric, &rows[i], NULL), LAP_OK);
    lap_trends_finish(&trends, metric, 0.01);
    return trends;
}

static void one_case_each(void **state) {
    (void)state;
    lap_history_row rows[] = {row("a", 1, 2e-3, 1e-3), row("b", 1, 1e-3, 1e-3),
                              row("a", 8, 9e-3, 1e-3), row("a", 1, 1e-3, 1e-3),
                              row("a", 1, 5e-3, 1e-3), row("a", 1, 4e-3, 1e-3)};
    rows[4].status = "failed";
    lap_trends t = of(LAP_METRIC_LATENCY, rows, 6);
    assert_int_equal(t.count, 3);
    assert_string_equal(t.trends[0].device, "a");
    assert_int_equal(t.trends[0].count, 3);
    assert_true(t.trends[0].best == 1e-3 && t.trends[0].best_at == 1);
    assert_int_equal(t.trends[0].judgement, LAP_JUDGED_SLOWER); /* 1 ms, then 4 ms */
    assert_true(t.trends[0].change.ratio > 0.249 && t.trends[0].change.ratio < 0.251);
    assert_int_equal(t.trends[1].count, 1);
    assert_int_equal(t.trends[1].judgement, LAP_JUDGED_NOTHING);
    lap_trends_free(&t);
}

static void which_way_is_better(void **state) {
    (void)state;
    const lap_history_row rows[] = {row("a", 1, 2e-3, 1e-3), row("a", 1, 1e-3, 1e-3)};
    const lap_judgement wanted[LAP_METRICS] = {LAP_JUDGED_FASTER, LAP_JUDGED_UNCLEAR,
                                               LAP_JUDGED_FASTER, LAP_JUDGED_UNCLEAR};
    for (int m = 0; m < LAP_METRICS; m++) {
        lap_trends t = of((lap_metric)m, rows, 2);
        assert_true(t.trends[0].change.ratio > 1.99 && t.trends[0].change.ratio < 2.01);
        assert_int_equal(t.trends[0].best_at, 1);
        assert_int_equal(t.trends[0].judgement, wanted[m]); /* medians have no interval */
        lap_trends_free(&t);
    }
}

static void wrong_results_have_no_course(void **state) {
    (void)state;
    lap_history_row rows[] = {row("a", 1, 2e-3, 1e-3), row("a", 1, 1e-3, 1e-3)};
    rows[1].proof = LAP_PROOF_FAILED;
    rows[0].latency.mean_s = lap_none();
    lap_trends t = of(LAP_METRIC_LATENCY, rows, 2);
    assert_int_equal(t.count, 0);
    lap_trends_free(&t);
}

/* Two cards of one name are two cases, whatever their place; rows that lack an identity go by it.
 */
static void one_device_each(void **state) {
    (void)state;
    lap_history_row rows[] = {row("a", 1, 1e-3, 1e-3), row("a", 1, 2e-3, 1e-3),
                              row("a", 1, 1e-3, 1e-3), row("a", 1, 2e-3, 1e-3),
                              row("a", 1, 2e-3, 1e-3), row("a", 1, 3e-3, 1e-3)};
    rows[1].selector = "cuda:1";
    rows[2].uuid = "GPU-A";
    rows[3].uuid = "GPU-B", rows[3].selector = "cuda:1";
    /* They have changed places. */
    rows[4].uuid = "gpu-b", rows[4].selector = "cuda:0";
    rows[5].pci = "0000:01:00.0", rows[5].selector = "cuda:2";
    lap_trends t = of(LAP_METRIC_LATENCY, rows, 6);
    assert_int_equal(t.count, 3);
    assert_int_equal(t.trends[0].count, 2);
    assert_string_equal(t.trends[0].uuid, "GPU-A");
    assert_int_equal(t.trends[0].judgement, LAP_JUDGED_SAME);
    assert_int_equal(t.trends[1].count, 3);
    assert_string_equal(t.trends[1].selector, "cuda:0");
    assert_int_equal(t.trends[2].count, 1);
    lap_trends_free(&t);
}

static void a_run_is_not_compared_with_itself(void **state) {
    (void)state;
    lap_history_row rows[] = {row("a", 1, 1e-3, 1e-3), row("a", 1, 2e-3, 1e-3),
                              row("a", 1, 4e-3, 1e-3)};
    rows[1].run_id = rows[0].run_id;
    lap_trends t = of(LAP_METRIC_LATENCY, rows, 2);
    assert_int_equal(t.trends[0].count, 1);
    assert_int_equal(t.trends[0].repeats, 1);
    assert_int_equal(t.trends[0].judgement, LAP_JUDGED_NOTHING);
    lap_trends_free(&t);
    t = of(LAP_METRIC_LATENCY, rows, 3);
    assert_int_equal(t.trends[0].count, 2);
    assert_true(t.trends[0].change.ratio > 0.249 && t.trends[0].change.ratio < 0.251);
    lap_trends_free(&t);
}

/* Whatever `compare` refuses is a case of its own. */
static void what_differs_is_not_followed(void **state) {
    (void)state;
    lap_history_row rows[] = {row("a", 1, 1e-3, 1e-3), row("a", 1, 1e-3, 1e-3),
                              row("a", 1, 1e-3, 1e-3), row("a", 1, 1e-3, 1e-3),
                              row("a", 1, 1e-3, 1e-3), row("a", 1, 1e-3, 1e-3),
                              row("a", 1, 1e-3, 1e-3), row("a", 1, 1e-3, 1e-3)};
    rows[1].others = 1, rows[1].beside = "2 x a";
    rows[2].others = 1, rows[2].beside = "a, b";
    rows[3].weights = "synthetic:2";
    rows[4].cache = "cold";
    rows[5].proof = LAP_PROOF_NONE;
    rows[6].platform = "another";
    rows[7].machine = "node2";
    lap_trends t = of(LAP_METRIC_LATENCY, rows, 8);
    assert_int_equal(t.count, 8);
    for (size_t i = 0; i < t.count; i++)
        assert_int_equal(t.trends[i].count, 1);
    lap_trends_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_case_each),
                                       cmocka_unit_test(which_way_is_better),
                                       cmocka_unit_test(wrong_results_have_no_course),
                                       cmocka_unit_test(one_device_each),
                                       cmocka_unit_test(a_run_is_not_compared_with_itself),
                                       cmocka_unit_test(what_differs_is_not_followed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
