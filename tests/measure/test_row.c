/* Result rows: how failures are kept, what is derived, what a note says. */
#include "measure/result.h"
#include "near.h"

#include <stdlib.h>
#include <string.h>

/* An ok row with n samples of 2 ms and ResNet-18's work. */
static void fill(lap_row *row, size_t n) {
    lap_row_init(row);
    row->batch = 4;
    snprintf(row->precision, sizeof row->precision, "fp32");
    row->work = (lap_row_work){1814073344, 3628146688, 1819065856};
    row->latency.samples = calloc(n, sizeof *row->latency.samples);
    assert_non_null(row->latency.samples);
    double *x = calloc(n, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        x[i] = 2e-3;
        row->latency.samples[i] = (lap_sample){lap_some(2e-3), 2.1e-3, 1e-5, 0};
    }
    row->latency.has = true;
    row->latency.n = row->latency.planned = n;
    row->latency.passes = 1;
    assert_int_equal(lap_stats_compute(x, n, &row->latency.stats, NULL), LAP_OK);
    row->latency.device = row->latency.stats;
    free(x);
}

static bool noted(const lap_row *row, const char *text) {
    for (size_t i = 0; i < row->note_count; i++)
        if (strstr(row->notes[i], text)) return true;
    return false;
}

static void rates_are_derived(void **state) {
    (void)state;
    lap_row row;
    fill(&row, 100);
    row.throughput.has = true;
    row.throughput.best_batch = row.throughput.batch = 8;
    row.throughput.images_per_s = lap_some(3000);
    lap_layer layer = {.name = "fc", .flops = 1000, .bytes = 500, .device_s = lap_some(1e-6)};
    assert_true(lap_row_add_layer(&row, &layer));
    lap_layer pool = {.name = "maxpool", .bytes = 500, .device_s = lap_some(0)};
    assert_true(lap_row_add_layer(&row, &pool));
    lap_row_finish(&row);
    assert_some(row.fps, 2000);
    assert_some(row.flops_per_s, 3628146688.0 * 4 / 2e-3);
    assert_some(row.throughput.flops_per_s, 3628146688.0 * 3000);
    assert_some(row.layers[0].flops_per_s, 4e9);
    assert_some(row.layers[0].bytes_per_s, 5e8);
    assert_none(row.layers[1].flops_per_s);
    assert_none(row.layers[1].bytes_per_s);
    assert_int_equal(row.note_count, 0);
    lap_row_free(&row);
}

/* Images of all passes share the energy; a layer's work is that of the whole batch. */
static void batch_and_passes_count(void **state) {
    (void)state;
    lap_row row;
    fill(&row, 100);
    row.latency.passes = 3;
    row.telemetry.energy_j = lap_some(2400);
    row.ceilings = (lap_ceilings){.has = true, .memory_bytes_per_s = lap_some(1e12)};
    row.ceilings.flops_per_s[LAP_FP32] = lap_some(1e10);
    lap_layer layer = {.name = "fc", .flops = 1000, .bytes = 500, .device_s = lap_some(1e-6)};
    assert_true(lap_row_add_layer(&row, &layer));
    lap_row_finish(&row);
    assert_some(row.energy_j, 2400.0 / (100 * 3 * 4));
    assert_some(row.layers[0].intensity, 4 * 1000 / 500.0);
    assert_some(row.layers[0].share, 4 * 1000 / 1e10 / 1e-6);
    assert_string_equal(row.layers[0].bound, "compute");
    lap_row_free(&row);
}

/* The layers' sum beside the pass without events in between, and what a latency limit left. */
static void sums_and_limits(void **state) {
    (void)state;
    lap_row row;
    fill(&row, 100);
    lap_layer layer = {.name = "fc", .flops = 1000, .bytes = 500, .device_s = lap_some(1e-6)};
    assert_true(lap_row_add_layer(&row, &layer));
    row.layer_sum.sum_s = lap_some(2.5e-3);
    row.throughput.has = true;
    row.throughput.latency_limit_s = lap_some(3e-3);
    lap_curve_point points[] = {{.batch = 2, .batch_s = lap_some(5e-3), .over_limit = true},
                                {.batch = 1, .batch_s = lap_some(4e-3), .over_limit = true},
                                {.batch = 4, .batch_s = lap_some(1e-3)}};
    row.throughput.curve = points;
    row.throughput.curve_count = 3;
    row.copies.has = true;
    lap_row_finish(&row);
    assert_some(row.layer_sum.whole_s, 2e-3);
    assert_near(row.layer_sum.difference_s.value, 2.5e-3 - 2e-3);
    assert_true(noted(&row, "no batch is within latency_limit_ms = 3; batch 1 takes 4 ms"));
    assert_false(noted(&row, "pinned"));
    snprintf(row.copies.reason, sizeof row.copies.reason, "none to be had");
    row.concurrent.others = 1;
    lap_row_finish(&row);
    assert_true(noted(&row, "no pinned copies: none to be had"));
    assert_true(noted(&row, "concurrent with 1 other"));
    assert_false(noted(&row, "1 others"));
    row.throughput.curve = NULL; /* not from the heap */
    row.throughput.curve_count = 0;
    lap_row_free(&row);
}

/* A target is missed when the error is above it, whatever ended the samples; one sample has no
 * error that could be told. */
static void noise_target_notes(void **state) {
    (void)state;
    static const struct {
        const char *ended, *note;
        double noise; /* below 0: none */
    } cases[] = {
        {"noise_target", NULL, 0.004},
        {"max_samples", NULL, 0.005},
        {"max_samples", "noise target missed: standard error 0.6 % of the mean, wanted 0.5 %",
         0.006},
        {"max_seconds", "noise target missed: no standard error (n = 1), wanted 0.5 %", -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_row row;
        fill(&row, cases[i].noise < 0 ? 1 : 100);
        row.latency.noise_target = 0.005;
        row.latency.noise = cases[i].noise < 0 ? lap_none() : lap_some(cases[i].noise);
        snprintf(row.latency.ended, sizeof row.latency.ended, "%s", cases[i].ended);
        lap_row_finish(&row);
        assert_int_equal(noted(&row, "noise target missed"), cases[i].note != NULL);
        if (cases[i].note && !noted(&row, cases[i].note)) fail_msg("%s", cases[i].note);
        lap_row_free(&row);
    }
}

static void zero_time_has_no_rate(void **state) {
    (void)state;
    lap_row row;
    fill(&row, 3);
    row.latency.stats.mean = lap_some(0);
    lap_row_finish(&row);
    assert_none(row.fps);
    assert_none(row.flops_per_s);
    assert_true(noted(&row, "not above zero"));
    lap_row_free(&row);
}

static void few_samples_are_noted(void **state) {
    (void)state;
    const struct {
        size_t n;
        const char *note;
    } cases[] = {{1, "no standard deviation: n = 1"},
                 {2, "n < 10 (n = 2)"},
                 {10, "no p95, p99: n < 20 (n = 10)"},
                 {20, "no p99: n < 100 (n = 20)"},
                 {99, "no p99: n < 100 (n = 99)"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lap_row row;
        fill(&row, cases[i].n);
        lap_row_finish(&row);
        assert_true(noted(&row, cases[i].note));
        lap_row_free(&row);
    }
    lap_row row;
    fill(&row, 10);
    row.latency.planned = 100;
    row.latency.time_limit = true;
    snprintf(row.latency.clock_reason, sizeof row.latency.clock_reason, "stamps were zero");
    lap_row_finish(&row);
    assert_true(noted(&row, "max_seconds ended it after 10 of 100"));
    assert_true(noted(&row, "clock: wall, because stamps were zero; not comparable"));
    lap_row_free(&row);
}

/* A kernel that does nothing: petaflops. */
static void impossible_rates_are_noted(void **state) {
    (void)state;
    lap_row row;
    fill(&row, 100);
    row.latency.stats.mean = lap_some(1e-8);
    lap_row_finish(&row);
    assert_true(noted(&row, "above what such a device can do"));
    lap_row_free(&row);

    /* an H200's peak is 67 TFLOP/s in fp32; Winograd may show up to 4 times that */
    lap_device_info h200 = {.units = 132, .clock_mhz = 1980, .cc_major = 9};
    double ceiling = lap_flops_ceiling(&h200, "fp32");
    assert_true(ceiling > 67e12 && ceiling < 4 * 1.25 * 67e12);
    assert_true(lap_flops_ceiling(&h200, "fp16") > 989e12);
    fill(&row, 100);
    row.device = h200;
    row.latency.stats.mean = lap_some(4 * 3628146688.0 / 1e15);
    lap_row_finish(&row);
    assert_true(noted(&row, "latency: 1e+15 FLOP/s is above"));
    lap_row_free(&row);
}

static void rates_that_disagree_are_noted(void **state) {
    (void)state;
    const struct {
        double search, measured;
        bool noted;
    } cases[] = {{100, 95, false}, {100, 120, false}, {100, 50, true}, {100, 200, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lap_row row;
        fill(&row, 100);
        lap_throughput *t = &row.throughput;
        t->curve = calloc(2, sizeof *t->curve);
        assert_non_null(t->curve);
        t->curve_count = t->curve_capacity = 2;
        t->curve[0] = (lap_curve_point){.batch = 1, .images_per_s = lap_some(1)};
        t->curve[1] = (lap_curve_point){.batch = 8, .images_per_s = lap_some(cases[i].search)};
        t->has = true;
        t->best_batch = t->batch = 8;
        t->images_per_s = lap_some(cases[i].measured);
        lap_row_finish(&row);
        assert_int_equal(noted(&row, "busy with something else"), cases[i].noted);
        lap_row_free(&row);
    }
}

static void failures_set_status_and_reason(void **state) {
    (void)state;
    const struct {
        lap_status cause;
        lap_row_status status;
    } cases[] = {{LAP_E_BUILD, LAP_ROW_FAILED},
                 {LAP_E_OOM, LAP_ROW_FAILED},
                 {LAP_E_UNSUPPORTED, LAP_ROW_UNSUPPORTED},
                 {LAP_E_INTERRUPTED, LAP_ROW_SKIPPED},
                 {LAP_OK, LAP_ROW_FAILED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lap_row row;
        lap_row_init(&row);
        lap_error err = {0};
        LAP_FAIL(&err, cases[i].cause, "it broke at %d", 7);
        lap_row_fail(&row, cases[i].cause, &err);
        assert_int_equal(row.status, cases[i].status);
        assert_non_null(strstr(row.reason, "it broke at 7"));
        lap_row_fail(&row, LAP_E_DEVICE, NULL); /* the first failure stays */
        assert_int_equal(row.status, cases[i].status);
        assert_true(noted(&row, "and then: device fault"));
        lap_row_free(&row);
    }
    lap_row row;
    lap_row_init(&row);
    lap_row_fail(&row, LAP_E_LAUNCH, NULL);
    assert_string_equal(row.reason, "launch failed");
    lap_row_free(&row);
}

static void wrong_results_have_no_times(void **state) {
    (void)state;
    lap_row row;
    fill(&row, 10);
    row.throughput.has = true;
    row.throughput.images_per_s = lap_some(1);
    lap_layer layer = {.name = "fc", .flops = 1, .device_s = lap_some(1)};
    assert_true(lap_row_add_layer(&row, &layer));
    row.telemetry = (lap_telemetry_summary){.has = true, .energy_j = lap_some(1)};
    row.copies.has = row.pipeline.has = true;
    row.layer_sum.sum_s = row.layer_sum.pass_s = lap_some(1);
    row.streams.count = 1;
    row.concurrent.rounds.n = 3;
    row.cold.open_s = row.cold.upload_s = row.cold.first_s = lap_some(1);
    lap_row_fail(&row, LAP_E_VERIFY, NULL);
    lap_row_finish(&row);
    assert_int_equal(row.status, LAP_ROW_FAILED);
    assert_false(row.latency.has);
    assert_null(row.latency.samples);
    assert_false(row.throughput.has);
    assert_none(row.throughput.images_per_s);
    assert_none(row.fps);
    assert_none(row.flops_per_s);
    assert_none(row.layers[0].device_s);
    assert_none(row.layers[0].flops_per_s);
    assert_false(row.telemetry.has || row.copies.has || row.pipeline.has);
    assert_none(row.energy_j);
    assert_none(row.layer_sum.sum_s);
    assert_none(row.layer_sum.pass_s);
    assert_none(row.layer_sum.difference_s);
    assert_int_equal(row.streams.count, 0);
    assert_int_equal(row.concurrent.rounds.n, 0);
    assert_none(row.cold.first_s);
    /* What the start cost is no result. */
    assert_some(row.cold.open_s, 1);
    assert_some(row.cold.upload_s, 1);
    lap_row_free(&row);
}

static void exit_statuses(void **state) {
    (void)state;
    lap_row rows[3];
    for (int i = 0; i < 3; i++)
        lap_row_init(&rows[i]);
    assert_int_equal(lap_rows_exit_status(rows, 3), 0);
    assert_int_equal(lap_rows_exit_status(NULL, 0), 0);
    lap_row_fail(&rows[0], LAP_E_OOM, NULL);
    assert_int_equal(lap_rows_exit_status(rows, 3), 1);
    lap_row_fail(&rows[2], LAP_E_VERIFY, NULL);
    assert_int_equal(lap_rows_exit_status(rows, 3), 4);
    lap_row_fail(&rows[0], LAP_E_VERIFY, NULL); /* a later wrong result outweighs a failure */
    assert_int_equal(lap_rows_exit_status(rows, 1), 4);
    lap_row_skip(&rows[1], "not asked for");
    assert_int_equal(lap_rows_exit_status(&rows[1], 1), 1);
    assert_string_equal(rows[1].reason, "not asked for");
    for (int i = 0; i < 3; i++)
        lap_row_free(&rows[i]);
}

static void arrays_grow(void **state) {
    (void)state;
    lap_row row;
    lap_row_init(&row);
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer%d", i);
        assert_true(lap_row_add_kernel(&row, name, "conv", "A=1", "default"));
        assert_true(lap_row_note(&row, "note %d", i));
        assert_true(lap_row_note(&row, "note %d", i)); /* not twice */
    }
    assert_int_equal(row.kernel_count, 100);
    assert_string_equal(row.kernels[99].layer, "layer99");
    assert_int_equal(row.note_count, 100);
    assert_string_equal(row.notes[99], "note 99");
    lap_row_free(&row);
    lap_row_free(&row); /* free again is allowed */
    lap_row_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_derived),
        cmocka_unit_test(batch_and_passes_count),
        cmocka_unit_test(sums_and_limits),
        cmocka_unit_test(noise_target_notes),
        cmocka_unit_test(zero_time_has_no_rate),
        cmocka_unit_test(few_samples_are_noted),
        cmocka_unit_test(impossible_rates_are_noted),
        cmocka_unit_test(rates_that_disagree_are_noted),
        cmocka_unit_test(failures_set_status_and_reason),
        cmocka_unit_test(wrong_results_have_no_times),
        cmocka_unit_test(exit_statuses),
        cmocka_unit_test(arrays_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
