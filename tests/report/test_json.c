/* The JSON document: valid whatever the names hold, with exactly the documented keys, null where
 * there is no value. */
#include "report/table.h"
#include "rows.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static json_t *render(const lap_report *report) {
    lap_text text = {0};
    assert_int_equal(lap_report_json(report, &text, NULL), LAP_OK);
    assert_null(strstr(text.data, "inf"));
    assert_null(strstr(text.data, "nan"));
    assert_true(text.data[text.length - 1] == '\n');
    json_error_t error;
    json_t *document = json_loads(text.data, JSON_REJECT_DUPLICATES, &error);
    if (!document) print_error("%s at %d\n", error.text, error.line);
    assert_non_null(document);
    lap_text_free(&text);
    return document;
}

/* The object's keys, in order, joined by blanks. */
static void assert_keys(json_t *object, const char *want) {
    lap_text got = {0};
    const char *key;
    json_t *value;
    assert_true(json_is_object(object));
    json_object_foreach(object, key, value) lap_text_addf(&got, "%s%s", got.length ? " " : "", key);
    assert_string_equal(lap_text_get(&got), want);
    lap_text_free(&got);
}

static json_t *get(json_t *document, size_t row, const char *key) {
    json_t *value = json_object_get(json_array_get(json_object_get(document, "rows"), row), key);
    assert_non_null(value);
    return value;
}

static void keys_are_the_schema(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    json_t *d = render(&s->report);
    assert_keys(d,
                "schema tool host config started resumed finished run_id devices rows sets fleet");
    assert_string_equal(json_string_value(json_object_get(d, "schema")), "warmlap/1");
    assert_keys(json_object_get(d, "tool"), "name version libraries");
    assert_keys(json_object_get(d, "host"), "cpu cores os kernel memory_bytes");
    assert_keys(json_object_get(d, "config"), "run latency");
    assert_keys(json_object_get(json_object_get(d, "config"), "run"), "device seed");
    assert_int_equal(json_array_size(json_object_get(d, "rows")), ROW_COUNT);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        assert_keys(json_array_get(json_object_get(d, "rows"), i),
                    "status reason cause backend selector platform device network height width "
                    "batch precision modes kernels verified cold latency spans timer telemetry "
                    "verdict fps throughput work flops_per_s layers cache flush_bytes copies "
                    "ceilings layer_sum pipeline streams concurrent rank host_name notes");
        assert_keys(get(d, i, "device"), "name type vendor driver toolchain api uuid pci "
                                         "memory_bytes units clock_mhz");
        assert_keys(
            get(d, i, "cold"),
            "weights_s reference_s open_s build_s build_cached build_compiled upload_s first_s");
        assert_keys(get(d, i, "work"), "macs flops fvcore_flops");
    }
    assert_keys(json_array_get(get(d, 0, "kernels"), 0), "layer kernel params choice");
    assert_keys(get(d, 0, "verified"), "passed mode logits_rel_l2 limit exact_layers real_layers "
                                       "first_wrong rerun_same");
    assert_keys(get(d, 0, "latency"),
                "n mean_s std_s min_s p50_s p90_s p95_s p99_s max_s mad_s mean_ci_s p50_ci_s "
                "autocorrelation mean_ci_widening p50_ci_widening outliers_low outliers_high "
                "starred drift split clock "
                "clock_reason planned comparable passes_per_sample passes_reason stop ended "
                "noise_target relative_noise order blocks timed_s burn_in_s warmup_steady "
                "warmup_first_ratio warmup_n warmup_s bad_stamps impossible_spans interrupted "
                "samples_s");
    assert_keys(json_object_get(get(d, 0, "latency"), "drift"), "rho p relative");
    assert_keys(json_object_get(get(d, 0, "latency"), "split"), "share low_s high_s upper_part");
    assert_keys(get(d, 0, "timer"), "claimed_s measured_s host_s empty_device_s empty_wall_s "
                                    "empty_submit_s bad_stamps");
    assert_keys(get(d, 0, "telemetry"),
                "source samples seconds clock_min_mhz clock_mean_mhz clock_max_mhz "
                "memory_clock_mhz temperature_c power_w energy_per_image_j throttled_share "
                "throttle_reasons persistence ecc other_processes series");
    assert_keys(get(d, 0, "verdict"), "word reason advice");
    assert_true(json_is_null(get(d, 1, "timer")) && json_is_null(get(d, 1, "telemetry")));
    json_t *devices = json_object_get(d, "devices");
    assert_int_equal(json_array_size(devices), 4); /* of five rows: cuda:0 has two */
    assert_keys(json_array_get(devices, 0), "selector name timer");
    assert_keys(get(d, 0, "spans"),
                "submit_s wall_s device_s submit_mean_s submit_std_s wall_mean_s wall_std_s "
                "device_mean_s device_std_s submit_samples_s wall_samples_s device_samples_s "
                "at_samples_s");
    assert_keys(get(d, 0, "throughput"), "search batch images_per_s batches seconds flops_per_s "
                                         "best_batch largest_batch largest_known knee_batch "
                                         "latency_limit_s search_s ended curve");
    assert_keys(json_array_get(json_object_get(get(d, 0, "throughput"), "curve"), 0),
                "batch images_per_s batch_s over_limit status reason");
    assert_keys(json_array_get(get(d, 0, "layers"), 0),
                "name kind kernel macs flops bytes device_s flops_per_s bytes_per_s intensity "
                "roofline_share bound");
    json_decref(d);
    sample_rows_free(s);
}

static double number(json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void values_are_the_rows(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    json_t *d = render(&s->report);
    json_t *l = get(d, 0, "latency");
    assert_int_equal(number(l, "n"), 100);
    assert_true(fabs(number(l, "p50_s") - 250e-6) < 1e-15);
    assert_true(fabs(number(l, "std_s") - s->rows[0].latency.stats.std.value) < 1e-15);
    json_t *samples = json_object_get(l, "samples_s");
    assert_int_equal(json_array_size(samples), 100);
    assert_true(fabs(json_real_value(json_array_get(samples, 1)) - 252e-6) < 1e-15);
    assert_true(fabs(number(get(d, 0, "spans"), "wall_s") - 500e-6) < 1e-15);
    assert_true(fabs(json_real_value(get(d, 0, "fps")) - 4000) < 1e-6);
    assert_int_equal(number(get(d, 0, "work"), "macs"), 1814073344);
    json_t *telemetry = get(d, 0, "telemetry");
    assert_true(number(telemetry, "throttled_share") == 1);
    /* 70 J over 100 samples of one image */
    assert_true(fabs(number(telemetry, "energy_per_image_j") - 0.7) < 1e-12);
    assert_true(json_is_true(json_object_get(telemetry, "ecc")));
    assert_true(json_is_null(json_object_get(telemetry, "persistence")));
    assert_string_equal(json_string_value(json_object_get(get(d, 0, "verdict"), "word")),
                        "throttled");
    assert_int_equal(json_array_size(json_object_get(l, "starred")), 1); /* p99 of 100 */
    json_t *device = get(d, 0, "device");
    assert_string_equal(json_string_value(json_object_get(device, "uuid")),
                        "00112233-4455-6677-8899-aabbccddeeff");
    assert_string_equal(json_string_value(json_object_get(device, "pci")), "0000:17:00.0");
    assert_string_equal(json_string_value(json_object_get(device, "type")), "gpu");
    json_t *point = json_array_get(json_object_get(get(d, 0, "throughput"), "curve"), 1);
    assert_string_equal(json_string_value(json_object_get(point, "status")),
                        "out of device memory");
    assert_true(json_is_null(json_object_get(point, "images_per_s")));
    assert_int_equal(json_array_size(get(d, 0, "modes")), 3);
    json_decref(d);
    sample_rows_free(s);
}

static void absent_is_null(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    json_t *d = render(&s->report);
    const char *const keys[] = {"verified",   "latency",     "spans", "fps",
                                "throughput", "flops_per_s", "layers"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        assert_true(json_is_null(get(d, 2, keys[k])));
    assert_string_equal(json_string_value(get(d, 2, "status")), "failed");
    assert_non_null(strstr(json_string_value(get(d, 2, "reason")), "701"));
    assert_string_equal(json_string_value(get(d, 4, "status")), "unsupported");
    assert_true(json_is_null(get(d, 0, "reason")));
    /* a time of zero is a measured zero; what would divide by it is absent */
    assert_true(number(get(d, 3, "latency"), "mean_s") == 0);
    assert_true(json_is_null(json_object_get(get(d, 3, "latency"), "std_s")));
    assert_true(json_is_null(get(d, 3, "fps")));
    assert_true(json_is_null(get(d, 3, "flops_per_s")));
    assert_true(json_is_null(json_object_get(get(d, 3, "cold"), "open_s")));
    json_decref(d);
    s->report.samples = false;
    s->report.host = NULL;
    d = render(&s->report);
    assert_true(json_is_null(json_object_get(get(d, 0, "latency"), "samples_s")));
    assert_true(json_is_null(json_object_get(d, "host")));
    json_decref(d);
    sample_rows_free(s);
}

static void hostile_names_survive(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    json_t *d = render(&s->report);
    const char *name = json_string_value(json_object_get(get(d, 1, "device"), "name"));
    assert_int_equal(strlen(name), LAP_DEVICE_NAME - 1); /* in full */
    assert_string_equal(name, s->rows[1].device.name);
    assert_string_equal(json_string_value(get(d, 1, "platform")), "a,b;\"c\"");
    json_t *config = json_object_get(json_object_get(d, "config"), "run");
    assert_string_equal(json_string_value(json_object_get(config, "seed")), "a,b;\"c\"");
    const char *note = NULL;
    json_t *notes = get(d, 1, "notes");
    for (size_t i = 0; i < json_array_size(notes); i++) {
        const char *text = json_string_value(json_array_get(notes, i));
        if (strstr(text, "line one")) note = text;
    }
    assert_non_null(note);
    assert_non_null(strstr(note, "`three` ?.")); /* the bad byte only */
    json_decref(d);
    sample_rows_free(s);
}

/* Whatever got past the other guards. */
static void never_nan_or_inf(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    s->rows[0].fps = (lap_optional){true, NAN};
    s->rows[0].flops_per_s = (lap_optional){true, INFINITY};
    s->rows[0].latency.samples[0].wall_s = -INFINITY;
    json_t *d = render(&s->report);
    assert_true(json_is_null(get(d, 0, "fps")));
    assert_true(json_is_null(get(d, 0, "flops_per_s")));
    json_decref(d);
    sample_rows_free(s);
}

/* One sample to a dozen, from the statistics to every document: what few samples cannot say is null
 * and n/a, never a number. */
static void few_samples(void **state) {
    (void)state;
    for (size_t n = 1; n <= 12; n++) {
        sample_rows *s = sample_rows_new();
        lap_row *row = &s->rows[0];
        lap_latency_free(&row->latency);
        sample_rows_latency(row, n, 250e-6, 2e-6);
        lap_row_finish(row);
        json_t *d = render(&s->report);
        json_t *l = get(d, 0, "latency");
        assert_int_equal(json_array_size(json_object_get(l, "samples_s")), n);
        assert_true(number(l, "mean_s") > 2e-4 && number(l, "p50_s") > 2e-4);
        assert_int_equal(json_is_null(json_object_get(l, "std_s")), n == 1);
        assert_int_equal(json_is_null(json_object_get(l, "p90_s")), n < 10);
        assert_true(json_is_null(json_object_get(l, "p99_s")));
        json_decref(d);
        lap_text text = {0};
        s->report.row_count = 1;
        assert_int_equal(lap_report_table(&s->report, NULL, &text, NULL), LAP_OK);
        assert_int_equal(lap_report_markdown(&s->report, &text, NULL), LAP_OK);
        assert_int_equal(lap_report_csv(&s->report, &text, NULL), LAP_OK);
        assert_null(strstr(text.data, "inf"));
        assert_null(strstr(text.data, "nan"));
        if (n == 1) assert_non_null(strstr(text.data, "+- n/a"));
        if (n > 1) assert_null(strstr(text.data, "+- n/a"));
        lap_text_free(&text);
        sample_rows_free(s);
    }
}

static void no_rows(void **state) {
    (void)state;
    lap_report empty = {.started = "x"};
    json_t *d = render(&empty);
    assert_int_equal(json_array_size(json_object_get(d, "rows")), 0);
    json_decref(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_the_schema), cmocka_unit_test(values_are_the_rows),
        cmocka_unit_test(absent_is_null),      cmocka_unit_test(hostile_names_survive),
        cmocka_unit_test(never_nan_or_inf),    cmocka_unit_test(no_rows),
        cmocka_unit_test(few_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
