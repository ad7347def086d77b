/* Whole rows with everything that is not latency and search: layers on a roofline, copies, cold
 * cache, pipeline, queues at once; and the commands spans and pitfalls; all on the fake device. */
#include "app/commands.h"
#include "case_fixture.h"
#include "measure/pitfalls.h"
#include "report/lessons.h"
#include "report/table.h"
#include "standin/script_file.h"

#include <unistd.h>

static case_rig rig;

static int set_up(void **state) {
    (void)state;
    rig_open(&rig);
    fake_register_tools();
    fake.devices[0].memory_bytes = 64 << 20;
    fake.devices[0].max_alloc_bytes = 0;
    fake.devices[0].cache_bytes = 64 << 10;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    rig_close(&rig);
    return 0;
}

static double cost(const char *stem, const lap_raw_launch *launch) {
    double items = (double)launch->groups[0] * launch->local[0];
    if (strcmp(stem, "peak_fma") == 0) return 16.0 * items * launch->args[3].i32 / 1e11;
    if (strcmp(stem, "stream_copy") == 0)
        return 32.0 * launch->args[2].i32 * launch->args[3].i32 / 1e10;
    return strcmp(stem, "conv_naive") == 0 ? 4e-4 : 1e-4;
}

static json_t *row_with(const char *const *settings, size_t count, lap_row *row) {
    for (size_t i = 0; i < count; i++)
        rig_set(&rig, settings[i]);
    lap_runner_case(&rig.runner, &rig.c, row);
    return row_as_json(row);
}

static void layers_and_roof(void **state) {
    (void)state;
    fake.cost = cost;
    fake.real_time = true;
    const char *const settings[] = {"latency:warmup=1", "latency:passes=1"};
    lap_row row;
    json_t *o = row_with(settings, 2, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_int_equal(row.layer_count, TINY_OPS);
    double sum = 0;
    for (size_t i = 0; i < row.layer_count; i++) {
        const lap_layer *l = &row.layers[i];
        double want = strcmp(l->kind, "conv") == 0 ? 4e-4 : 1e-4;
        assert_true(l->device_s.has && fabs(l->device_s.value - want) < 1e-9);
        assert_true(l->share.has && l->share.value > 0 && isfinite(l->share.value));
        assert_non_null(l->bound);
        sum += l->device_s.value;
    }
    assert_true(fabs(row.layer_sum.sum_s.value - sum) < 1e-12);
    assert_true(fabs(row.layer_sum.pass_s.value - sum) < 1e-9);
    assert_true(row.layer_sum.difference_s.has && fabs(row.layer_sum.difference_s.value) < 1e-6);
    assert_true(row.ceilings.has && row.ceilings.flops_per_s[LAP_FP32].has);
    assert_true(json_is_object(json_object_get(o, "ceilings")));
    assert_true(json_is_object(json_object_get(o, "layer_sum")));
    assert_string_equal(json_string_value(json_object_get(o, "cache")), "hot");
    assert_true(json_is_null(json_object_get(o, "flush_bytes")));
    json_t *copies = json_object_get(o, "copies");
    assert_true(json_is_object(json_object_get(copies, "upload_pinned")));
    assert_true(json_is_null(json_object_get(o, "pipeline")));
    assert_true(json_is_null(json_object_get(o, "streams")));
    json_decref(o);
    lap_row_free(&row);
}

/* Layers whose stamps say nothing have no time, no rate and no share, and the sum is none. */
static void layers_without_stamps(void **state) {
    (void)state;
    fake.timer = FAKE_TIMER_ZERO;
    lap_row row;
    json_t *o = row_with(NULL, 0, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    for (size_t i = 0; i < row.layer_count; i++) {
        assert_false(row.layers[i].device_s.has || row.layers[i].share.has);
        assert_false(row.layers[i].flops_per_s.has);
        assert_null(row.layers[i].bound);
    }
    assert_false(row.layer_sum.sum_s.has || row.layer_sum.difference_s.has);
    json_decref(o);
    lap_row_free(&row);
}

static void everything_else(void **state) {
    (void)state;
    const char *const settings[] = {"latency:cache=cold",       "throughput:pipeline=yes",
                                    "throughput:streams=1,2,4", "throughput:batches=20",
                                    "throughput:search=sweep",  "latency:passes=auto"};
    lap_row row;
    json_t *o = row_with(settings, 6, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_string_equal(row.cache, "cold");
    assert_int_equal(row.flush_bytes, 8 << 20); /* an eighth of the memory */
    assert_int_equal(row.latency.passes, 1);    /* a second pass would find a warm cache */
    assert_true(row.pipeline.has && row.pipeline.images_per_s.has);
    assert_int_equal(row.pipeline.batch, row.throughput.batch);
    assert_int_equal(row.streams.count, 3);
    const uint64_t queues[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        const lap_stream_point *p = &row.streams.points[i];
        assert_int_equal(p->streams, queues[i]);
        assert_int_equal(p->batch, rig.c.batch);
        assert_int_equal(p->status, LAP_OK);
        assert_true(p->images_per_s.has && p->latency_p50_s.has);
    }
    assert_true(row.throughput.knee_batch > 0 && row.throughput.largest_batch > 0);
    assert_int_equal(json_array_size(json_object_get(o, "streams")), 3);
    json_decref(o);
    lap_row_free(&row);
}

/* [throughput] max_seconds is for the pipeline's three ways together, a third for each, and for
 * every number of queues. The device takes its time on the host's clock, so there is an upper bound
 * on what can be done, however busy the machine is. */
static double two_milliseconds(const char *stem, const lap_raw_launch *launch) {
    (void)launch;
    return strcmp(stem, "fc_naive") == 0 ? 2e-3 : 1e-7;
}

static void pipeline_time_is_shared(void **state) {
    (void)state;
    rig.c.latency = false;
    fake.cost = two_milliseconds;
    fake.real_time = true;
    const char *const settings[] = {"throughput:pipeline=yes",    "throughput:streams=2",
                                    "throughput:batches=1000",    "throughput:max_batch=1",
                                    "throughput:max_seconds=0.3", "output:layers=no"};
    lap_row row;
    json_decref(row_with(settings, 6, &row));
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_true(row.pipeline.has && row.streams.count == 1);
    assert_in_range(row.pipeline.batches, 2, 51);
    assert_in_range(row.streams.points[0].batches, 2, 151);
    /* All that they leave undone was asked for. */
    assert_true(row.throughput.batches < 1000 && row.throughput.batches_planned == 1000);
    print_message("%llu batches of the pipeline, %llu on two queues\n",
                  (unsigned long long)row.pipeline.batches,
                  (unsigned long long)row.streams.points[0].batches);
    lap_row_free(&row);
}

static unsigned flushes;

static double count_flushes(const char *stem, const lap_raw_launch *launch) {
    (void)launch;
    flushes += strcmp(stem, "stream_copy") == 0;
    return 1e-5;
}

/* The cache is emptied before every sample, and once to warm up that kernel. */
static void cold_is_flushed(void **state) {
    (void)state;
    rig.c.throughput = false;
    fake.cost = count_flushes;
    flushes = 0;
    const char *const settings[] = {"latency:cache=cold", "latency:repetitions=7",
                                    "output:layers=no"};
    lap_row row;
    json_decref(row_with(settings, 3, &row));
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_int_equal(flushes, 1 + 7);
    lap_row_free(&row);
}

/* [run] telemetry decides whether the sensors are read; a stand-in has some for this device. */
static void telemetry_if_wanted(void **state) {
    (void)state;
    script_file("%s", "");
    setenv("LAP_NVML", NVML_STANDIN_PATH, 1);
    fake.devices[0].has_uuid = true;
    for (uint8_t i = 0; i < 16; i++)
        fake.devices[0].uuid[i] = i;
    rig.c.throughput = false;
    for (int wanted = 0; wanted < 2; wanted++) {
        const char *const settings[] = {wanted ? "run:telemetry=yes" : "run:telemetry=no",
                                        "output:layers=no"};
        lap_row row;
        json_decref(row_with(settings, 2, &row));
        if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
        assert_int_equal(row.telemetry.has, wanted);
        lap_row_free(&row);
    }
    unsetenv("LAP_NVML");
    script_none();
}

static void does_not_fit(void **state) {
    (void)state;
    const char *const settings[] = {"throughput:streams=1,64", "throughput:batches=4"};
    rig_set(&rig, "throughput:memory_fraction=1");
    fake.devices[0].memory_bytes = 1100 << 10; /* 64 plans are too many */
    fake.devices[0].cache_bytes = 4096;
    lap_row row;
    json_t *o = row_with(settings, 2, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_int_equal(row.streams.count, 2);
    assert_int_equal(row.streams.points[0].status, LAP_OK);
    assert_int_equal(row.streams.points[1].status, LAP_E_OOM);
    assert_true(row.streams.points[1].reason[0]);
    assert_false(row.streams.points[1].images_per_s.has);
    json_decref(o);
    lap_row_free(&row);
}

/* The texts say all of it, and fit 100 columns. */
static void texts(void **state) {
    (void)state;
    const char *const settings[] = {"throughput:pipeline=yes", "throughput:streams=1,2",
                                    "latency:cache=cold"};
    lap_row row;
    fake.cost = cost;
    fake.real_time = true;
    json_decref(row_with(settings, 3, &row));
    lap_text text = {0};
    assert_int_equal(
        lap_report_extras(&(lap_report){.rows = &row, .row_count = 1}, &row, NULL, &text, NULL),
        LAP_OK);
    assert_int_equal(lap_report_layers(&row, NULL, &text, NULL), LAP_OK);
    const char *const wanted[] = {"where the time goes: upload",
                                  "pinned",
                                  "(cold cache)",
                                  "knee (97 % of it)",
                                  "end to end at batch",
                                  "2 queues at once",
                                  "sum of the layers",
                                  "Measured ceilings"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(text.data, wanted[i])) fail_msg("'%s' is not in: %s", wanted[i], text.data);
    for (const char *p = text.data; *p; p += strcspn(p, "\n") + 1)
        assert_true(strcspn(p, "\n") <= 100);
    assert_null(strstr(text.data, "inf"));
    assert_null(strstr(text.data, "nan"));
    lap_text_free(&text);
    lap_row_free(&row);
}

/* ---- commands ------------------------------------------------------------------------------- */

#define JSON_PATH LAP_TEST_TMP "/extras.json"

static int command_set_up(void **state) {
    (void)state;
    fake_reset();
    fake_register_tools();
    fake.devices[0].cache_bytes = 64 << 10;
    lap_registry_add(&fake_ops);
    unlink(JSON_PATH);
    return 0;
}

static int run(int (*command)(int, char **), const char *line) {
    static char copy[1024];
    char *argv[40];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    int status = command(argc, argv);
    assert_int_equal(fake_alive(), 0);
    return status;
}

static json_t *document(const char *schema) {
    json_error_t error;
    json_t *d = json_load_file(JSON_PATH, JSON_REJECT_DUPLICATES, &error);
    if (!d) fail_msg("%s", error.text);
    assert_string_equal(json_string_value(json_object_get(d, "schema")), schema);
    return d;
}

static json_t *first_row(json_t *d) {
    return json_array_get(json_object_get(d, "rows"), 0);
}

static void spans(void **state) {
    (void)state;
    assert_int_equal(run(cmd_spans, "spans --size 8x9x10 --repeats 4 --warmup 2 --json " JSON_PATH),
                     LAP_EXIT_OK);
    json_t *d = document("warmlap-spans/1"), *row = first_row(d);
    assert_string_equal(json_string_value(json_object_get(row, "status")), "ok");
    json_t *warm = json_object_get(row, "with_warmup"),
           *cold = json_object_get(row, "without_warmup");
    assert_int_equal(json_integer_value(json_object_get(warm, "warmup")), 2);
    assert_int_equal(json_integer_value(json_object_get(cold, "warmup")), 0);
    assert_int_equal(json_array_size(json_object_get(warm, "repeats")), 4);
    json_t *one = json_array_get(json_object_get(cold, "repeats"), 0);
    assert_true(json_is_real(json_object_get(one, "submit_s")));
    assert_true(json_is_real(json_object_get(one, "wall_s")));
    json_t *verified = json_object_get(row, "verified");
    assert_int_equal(json_integer_value(json_object_get(verified, "compared")), 720);
    json_decref(d);
}

static void spans_wrong(void **state) {
    (void)state;
    fake_plant("elementwise", FAKE_PLANT_NAN);
    assert_int_equal(run(cmd_spans, "spans --size 8x8x8 --json " JSON_PATH), LAP_EXIT_WRONG);
    json_t *d = document("warmlap-spans/1"), *row = first_row(d);
    assert_string_equal(json_string_value(json_object_get(row, "status")), "failed");
    assert_true(json_is_null(json_object_get(row, "with_warmup")));
    assert_true(json_is_null(json_object_get(row, "without_warmup")));
    json_decref(d);
}

static void spans_usage(void **state) {
    (void)state;
    static const char *const bad[] = {"--size 8x8",
                                      "--size 0x8x8",
                                      "--size 8x8x8x8",
                                      "--size 65536x65536x2",
                                      "--repeats 0",
                                      "--repeats 1e3",
                                      "--warmup -1",
                                      "--sise 8x8x8",
                                      "--device",
                                      "extra",
                                      "--size 8x8x8 --json /no/such/dir/x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[128];
        snprintf(line, sizeof line, "spans %s", bad[i]);
        if (run(cmd_spans, line) != LAP_EXIT_USAGE) fail_msg("%s was accepted", bad[i]);
    }
    assert_int_equal(run(cmd_spans, "spans --help"), LAP_EXIT_OK);
    assert_int_equal(run(cmd_spans, "spans --size 2x2x2 --device cuda:7"), LAP_EXIT_NO_DEVICE);
}

/* ---- what the documents of both hold -------------------------------------------------------- */

static json_t *only_row(lap_text *text, json_t **document) {
    json_error_t error;
    *document = json_loads(lap_text_get(text), JSON_REJECT_DUPLICATES, &error);
    if (!*document) fail_msg("%s", error.text);
    lap_text_free(text);
    return first_row(*document);
}

static void is(json_t *object, const char *key, double want) {
    json_t *value = json_object_get(object, key);
    if (!json_is_number(value) || json_number_value(value) != want)
        fail_msg("%s is %g, not %g", key, json_number_value(value), want);
}

/* Every number of its own, so that none can stand for another. */
static lap_latency distinct_latency(lap_sample *samples, double base) {
    lap_latency l = {.has = true, .n = 2, .samples = samples, .warmup_n = (size_t)base};
    for (size_t i = 0; i < 2; i++)
        samples[i] = (lap_sample){.submit_s = base + 10 * (double)i + 1,
                                  .wall_s = base + 10 * (double)i + 2,
                                  .device_s = lap_some(base + 10 * (double)i + 3)};
    l.submit = (lap_stats){.mean = lap_some(base + 4), .std = lap_some(base + 5)};
    l.wall = (lap_stats){.mean = lap_some(base + 6), .std = lap_some(base + 7)};
    l.device = (lap_stats){.mean = lap_some(base + 8), .std = lap_some(base + 9)};
    return l;
}

static void distinct_runs(json_t *runs, double base) {
    static const char *const keys[] = {"submit_mean_s", "submit_std_s",  "wall_mean_s",
                                       "wall_std_s",    "device_mean_s", "device_std_s"};
    is(runs, "warmup", base);
    for (size_t i = 0; i < 6; i++)
        is(runs, keys[i], base + 4 + (double)i);
    for (size_t i = 0; i < 2; i++) {
        json_t *one = json_array_get(json_object_get(runs, "repeats"), i);
        is(one, "submit_s", base + 10 * (double)i + 1);
        is(one, "wall_s", base + 10 * (double)i + 2);
        is(one, "device_s", base + 10 * (double)i + 3);
    }
}

static void spans_values(void **state) {
    (void)state;
    lap_sample cold[2], warm[2];
    lap_spans_row row = {.size = {2, 3, 5}};
    lap_row_init(&row.head);
    row.cold = distinct_latency(cold, 100);
    row.warm = distinct_latency(warm, 200);
    lap_report report = {.started = ""};
    lap_text text = {0};
    assert_int_equal(lap_spans_json(&report, &row, 1, &text, NULL), LAP_OK);
    json_t *d, *o = only_row(&text, &d);
    distinct_runs(json_object_get(o, "without_warmup"), 100);
    distinct_runs(json_object_get(o, "with_warmup"), 200);
    json_decref(d);
    lap_row_free(&row.head);
}

static void pitfalls_values(void **state) {
    (void)state;
    static const char *const keys[] = {"mean_s", "std_s", "min_s", "p50_s", "max_s", "factor"};
    double samples[LAP_WAYS][2];
    lap_pitfalls_row row = {0};
    lap_row_init(&row.head);
    for (int i = 0; i < LAP_WAYS; i++) {
        lap_way *w = &row.pitfalls.ways[i];
        double base = 100 * (i + 1);
        *w = (lap_way){.has = true, .samples = samples[i], .n = 2, .factor = lap_some(base + 5)};
        w->stats = (lap_stats){.n = (size_t)base,
                               .mean = lap_some(base),
                               .std = lap_some(base + 1),
                               .min = lap_some(base + 2),
                               .p50 = lap_some(base + 3),
                               .max = lap_some(base + 4)};
        samples[i][0] = base + 6;
        samples[i][1] = base + 7;
        lap_histogram_fill(samples[i], 2, &w->histogram);
    }
    lap_report report = {.started = "", .samples = true};
    lap_text text = {0};
    assert_int_equal(lap_pitfalls_json(&report, &row, 1, &text, NULL), LAP_OK);
    json_t *d, *ways = json_object_get(only_row(&text, &d), "ways");
    for (int i = 0; i < LAP_WAYS; i++) {
        json_t *o = json_array_get(ways, (size_t)i), *h = json_object_get(o, "histogram");
        double base = 100 * (i + 1);
        assert_string_equal(json_string_value(json_object_get(o, "way")),
                            lap_way_name((lap_pitfall_kind)i));
        is(o, "n", base);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            is(o, keys[k], base + (double)k);
        is(h, "low_s", base + 6);
        is(h, "high_s", base + 7);
        json_t *list = json_object_get(o, "samples_s");
        assert_true(json_number_value(json_array_get(list, 0)) == base + 6);
        assert_true(json_number_value(json_array_get(list, 1)) == base + 7);
    }
    json_decref(d);
    lap_row_free(&row.head);
}

/* Whole commands: device spans are what a kernel costs, and submission ends before the wait. */
static void spans_on_the_device(void **state) {
    (void)state;
    fake.real_time = true;
    fake.launch_s = 2e-3;
    assert_int_equal(run(cmd_spans, "spans --size 8x8x8 --repeats 3 --warmup 1 --json " JSON_PATH),
                     LAP_EXIT_OK);
    json_t *d = document("warmlap-spans/1");
    json_t *warm = json_object_get(first_row(d), "with_warmup");
    for (size_t i = 0; i < 3; i++) {
        json_t *one = json_array_get(json_object_get(warm, "repeats"), i);
        double device = json_number_value(json_object_get(one, "device_s"));
        double wall = json_number_value(json_object_get(one, "wall_s"));
        assert_true(fabs(device - LAP_ELEMENTWISE_OPS * 2e-3) < 1e-9);
        assert_true(json_number_value(json_object_get(one, "submit_s")) <= wall - device * 0.99);
    }
    json_decref(d);
}

#define SMALL                                                                                      \
    "--set network:height=32 --set network:width=32 --set run:kernels=naive --set "                \
    "latency:repetitions=3 --set latency:warmup=1 --set verify:images=1 --json " JSON_PATH

static void pitfalls(void **state) {
    (void)state;
    assert_int_equal(run(cmd_pitfalls, "pitfalls " SMALL), LAP_EXIT_OK);
    json_t *d = document("warmlap-pitfalls/1"), *row = first_row(d);
    assert_true(json_is_true(json_object_get(row, "verified")));
    json_t *ways = json_object_get(row, "ways");
    assert_int_equal(json_array_size(ways), LAP_WAYS);
    static const char *const names[] = {"right",     "copies_pageable", "copies_pinned",
                                        "no_warmup", "no_wait",         "one_sample"};
    for (size_t i = 0; i < LAP_WAYS; i++) {
        json_t *way = json_array_get(ways, i);
        assert_string_equal(json_string_value(json_object_get(way, "way")), names[i]);
        assert_true(json_is_real(json_object_get(way, "mean_s")));
        assert_true(json_is_object(json_object_get(way, "histogram")));
    }
    assert_true(json_is_null(json_object_get(json_array_get(ways, LAP_WAY_ONE_SAMPLE), "std_s")));
    json_decref(d);
    assert_int_equal(run(cmd_pitfalls, "pitfalls --help"), LAP_EXIT_OK);
    assert_int_equal(run(cmd_pitfalls, "pitfalls --layers"), LAP_EXIT_USAGE);
}

static void pitfalls_wrong(void **state) {
    (void)state;
    fake_plant("fc_naive", FAKE_PLANT_WRONG);
    assert_int_equal(run(cmd_pitfalls, "pitfalls " SMALL), LAP_EXIT_WRONG);
    json_t *d = document("warmlap-pitfalls/1"), *row = first_row(d);
    assert_int_equal(json_array_size(json_object_get(row, "ways")), 0);
    assert_true(json_is_false(json_object_get(row, "verified")));
    json_decref(d);
}

int main(void) {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define COMMAND_TEST(name) cmocka_unit_test_setup(name, command_set_up)
    const struct CMUnitTest tests[] = {
        RIG_TEST(layers_and_roof),
        RIG_TEST(layers_without_stamps),
        RIG_TEST(everything_else),
        RIG_TEST(pipeline_time_is_shared),
        RIG_TEST(does_not_fit),
        RIG_TEST(cold_is_flushed),
        RIG_TEST(telemetry_if_wanted),
        RIG_TEST(texts),
        COMMAND_TEST(spans),
        COMMAND_TEST(spans_on_the_device),
        cmocka_unit_test(spans_values),
        cmocka_unit_test(pitfalls_values),
        COMMAND_TEST(spans_wrong),
        COMMAND_TEST(spans_usage),
        COMMAND_TEST(pitfalls),
        COMMAND_TEST(pitfalls_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
