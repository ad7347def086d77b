/* What the tests of whole rows share: a runner for the tiny network on the fake device, and a look
 * at a row as the result document shows it. */
#ifndef CASE_FIXTURE_H
#define CASE_FIXTURE_H

#include "app/runner.h"
#include "bad.h"
#include "report/report.h"
#include "tiny.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct case_rig {
    lap_config *config;
    lap_meter meter;
    lap_runner runner;
    lap_run_case c;
} case_rig;

static inline void rig_set(case_rig *rig, const char *assignment) {
    lap_error err = {0};
    if (lap_config_set(rig->config, assignment, "--set", &err) != LAP_OK)
        fail_msg("%s", err.message);
}

static inline void rig_open(case_rig *rig) {
    memset(rig, 0, sizeof *rig);
    fake_reset();
    lap_registry_add(&fake_ops);
    unsetenv("HOME"); /* no ceilings from an earlier run */
    unsetenv("XDG_CACHE_HOME");
    assert_int_equal(lap_config_new(&rig->config, NULL), LAP_OK);
    /* Without a limit on the search's cost there are as many launches whatever the clock shows. */
    const char *const quick[] = {"latency:warmup=1",         "latency:repetitions=2",
                                 "throughput:max_batch=2",   "throughput:batches=2",
                                 "throughput:search_cost=0", "run:kernels=naive",
                                 "output:layers=yes"};
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        rig_set(rig, quick[i]);
    lap_meter_init(&rig->meter, NULL, NULL);
    rig->runner = (lap_runner){.config = rig->config, .meter = &rig->meter};
    /* The runner keeps a network for as long as model and size stay the same. */
    rig->runner.net = tiny_net();
    rig->runner.weights = tiny_weights(rig->runner.net);
    tiny_expected(rig->runner.net, rig->runner.weights, 2, &rig->runner.expected);
    rig->c = (lap_run_case){.device = &fake.devices[0],
                            .model = TINY_MODEL,
                            .height = TINY_SIDE,
                            .width = TINY_SIDE,
                            .batch = 2,
                            .latency = true,
                            .throughput = true};
}

static inline void rig_close(case_rig *rig) {
    lap_runner_free(&rig->runner);
    lap_config_free(rig->config);
    assert_int_equal(fake_alive(), 0);
}

/* The row of the result document; json_decref it. Its text must be strict JSON, so it has neither
 * inf nor nan. */
static inline json_t *row_as_json(lap_row *row) {
    lap_report report = {.rows = row, .row_count = 1, .started = "", .samples = true};
    lap_text text = {0};
    assert_int_equal(lap_report_json(&report, &text, NULL), LAP_OK);
    json_error_t error;
    json_t *document = json_loads(lap_text_get(&text), JSON_REJECT_DUPLICATES, &error);
    if (!document) fail_msg("%s", error.text);
    json_t *one = json_incref(json_array_get(json_object_get(document, "rows"), 0));
    assert_non_null(one);
    json_decref(document);
    lap_text_free(&text);
    return one;
}

/* No time and no rate anywhere in the row; what the start cost stays. */
static inline void assert_no_times(lap_row *row) {
    json_t *o = row_as_json(row);
    const char *const keys[] = {"latency", "spans",    "fps",     "throughput", "flops_per_s",
                                "copies",  "pipeline", "streams", "layer_sum",  "telemetry"};
    assert_int_equal(row->concurrent.rounds.n, 0);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!json_is_null(json_object_get(o, keys[i]))) fail_msg("a wrong row has %s", keys[i]);
    assert_true(json_is_null(json_object_get(json_object_get(o, "cold"), "first_s")));
    json_t *layers = json_object_get(o, "layers");
    for (size_t i = 0; i < json_array_size(layers); i++)
        assert_true(json_is_null(json_object_get(json_array_get(layers, i), "device_s")));
    json_decref(o);
}

#endif
