/* The commands run and verify on the fake backend, from arguments to exit status and documents:
 * several rows, of which some fail. */
#include "app/commands.h"
#include "bad.h"
#include "fake_backend.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGS_MAX = 32 };

static char json_path[512];

/* Runs a command on resnet18 at 32x32 and gives its exit status; its document is in json_path. */
static int run(int (*command)(int, char **), const char *line) {
    static char copy[1024];
    char *argv[ARGS_MAX + 1];
    int argc = 0;
    unlink(json_path);
    snprintf(copy, sizeof copy,
             "run --json %s --set network:height=32 --set network:width=32 --set verify:mode=quick "
             "--set verify:images=1 --set run:kernels=naive --set latency:repetitions=2 --set "
             "latency:warmup=0 --set run:modes=latency --set run:isolate=no %s",
             json_path, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < ARGS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    int status = command(argc, argv);
    assert_int_equal(fake_alive(), 0);
    return status;
}

static json_t *rows(size_t count) {
    json_error_t error;
    json_t *document = json_load_file(json_path, JSON_REJECT_DUPLICATES, &error);
    if (!document) fail_msg("%s: %s", json_path, error.text);
    json_t *list = json_incref(json_object_get(document, "rows"));
    json_decref(document);
    assert_int_equal(json_array_size(list), count);
    return list;
}

static const char *word_of(json_t *list, size_t row, const char *key) {
    const char *word = json_string_value(json_object_get(json_array_get(list, row), key));
    return word ? word : "";
}

static void expect(json_t *list, size_t row, const char *status, const char *reason) {
    if (strcmp(word_of(list, row, "status"), status) != 0 ||
        !strstr(word_of(list, row, "reason"), reason))
        fail_msg("row %zu: %s, %s", row, word_of(list, row, "status"),
                 word_of(list, row, "reason"));
    bool ok = strcmp(status, "ok") == 0;
    assert_int_equal(ok, json_is_real(json_object_get(json_array_get(list, row), "fps")));
}

static int set_up(void **state) {
    (void)state;
    fake_reset();
    lap_registry_add(&fake_ops);
    snprintf(json_path, sizeof json_path, "%s/test_commands.json", LAP_TEST_TMP);
    return 0;
}

static void test_rows(void **state) {
    (void)state;
    fake.device_count = 2;
    assert_int_equal(run(cmd_run, "--device all --set latency:batch=1,2"), LAP_EXIT_OK);
    json_t *list = rows(4);
    for (size_t i = 0; i < 4; i++)
        expect(list, i, "ok", "");
    assert_string_equal(word_of(list, 1, "selector"), "fake:0");
    assert_string_equal(word_of(list, 2, "selector"), "fake:1");
    json_decref(list);
}

/* A kernel that writes where it must not makes a row wrong without spoiling a value. */
static void test_out_of_bounds(void **state) {
    (void)state;
    fake_plant("avgpool_naive", FAKE_PLANT_OUT_OF_BOUNDS);
    assert_int_equal(run(cmd_verify, "--device all"), LAP_EXIT_WRONG);
    json_t *list = rows(1);
    expect(list, 0, "failed", "avgpool output");
    json_t *row = json_array_get(list, 0);
    assert_true(json_is_null(json_object_get(row, "latency")));
    assert_true(json_is_false(json_object_get(json_object_get(row, "verified"), "passed")));
    json_decref(list);
}

/* What one row costs: launches of fc, and device calls. */
static void one_row(uint64_t *launches, uint64_t *calls) {
    lap_net *net;
    assert_int_equal(lap_net_build("resnet18", 32, 32, &net, NULL), LAP_OK);
    bad_plant(&net->ops[net->op_count - 1], BAD_NONE, 0);
    lap_device_fault_arm(0, LAP_OK);
    assert_int_equal(run(cmd_run, "--device all"), LAP_EXIT_OK);
    *calls = lap_device_fault_arm(0, LAP_OK);
    *launches = bad_launches();
    bad_plant(&net->ops[net->op_count - 1], BAD_LATE, *launches + 1);
    lap_net_free(net);
}

/* A wrong row among right ones decides the exit status, a failed call costs one row; the others
 * keep their numbers. */
static void test_one_bad_row(void **state) {
    (void)state;
    uint64_t launches, calls;
    one_row(&launches, &calls); /* and plants: fc is wrong from the second row on */
    assert_int_equal(run(cmd_run, "--device all --set latency:batch=1,2"), LAP_EXIT_WRONG);
    json_t *list = rows(2);
    expect(list, 0, "ok", "");
    expect(list, 1, "failed", "fc");
    json_decref(list);
    fake_reset();
    lap_device_fault_arm(calls + 20, LAP_E_DEVICE);
    assert_int_equal(run(cmd_run, "--device all --set latency:batch=1,2,3"), LAP_EXIT_FAILED);
    lap_device_fault_arm(0, LAP_OK);
    list = rows(3);
    expect(list, 0, "ok", "");
    expect(list, 1, "failed", "planted fault");
    expect(list, 2, "ok", "");
    json_decref(list);
}

/* A precision without kernels; 80 GB and 2^20 images, whose bytes are 0 in 32 bits: both are said
 * in their rows, and the rest is measured. */
static void test_impossible_rows(void **state) {
    (void)state;
    fake.devices[0].memory_bytes = UINT64_C(80) << 30;
    fake.devices[0].max_alloc_bytes = UINT64_C(80) << 30;
    assert_int_equal(
        run(cmd_run,
            "--device all --set network:precision=fp32x3,fp32 --set latency:batch=1048576,1"),
        LAP_EXIT_FAILED);
    json_t *list = rows(4);
    expect(list, 0, "unsupported", "fp32x3");
    expect(list, 1, "unsupported", "fp32x3");
    expect(list, 2, "failed", "GiB of device memory, the safe share is 64.00 GiB");
    expect(list, 3, "ok", "");
    json_decref(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_rows, set_up),
        cmocka_unit_test_setup(test_out_of_bounds, set_up),
        cmocka_unit_test_setup(test_one_bad_row, set_up),
        cmocka_unit_test_setup(test_impossible_rows, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
