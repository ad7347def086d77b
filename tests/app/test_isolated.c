/* Rows in worker processes: drivers that crash, hang or leave cost one row, what was measured
 * before stays, and the result file has every finished row at any moment. */
#include "app/commands.h"
#include "base/clock.h"
#include "fake_backend.h"

#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGS_MAX = 48 };

/* A driver that does something in a launch for so many images. */
typedef enum trouble { CRASH, LEAVE, HANG, KILLED, LOSE, CHAT } trouble;
static struct {
    int32_t images; /* 0: no trouble */
    trouble kind;
    bool at_enumeration, at_the_end, gone_after;
} plan;

/* A context that is one for all of a process, as CUDA's: once lost it stays so until that ends. */
static bool lost;

/* Shared with the workers. */
static struct {
    volatile pid_t worker;
    volatile pid_t opener; /* the last process that opened a device */
    volatile int opened;
    volatile int others; /* of which so many were not fake:1 */
    volatile int troubles;
} * seen;

static lap_device_ops ops; /* the fake's, but for what follows */
static char json_path[512];

static void misbehave(trouble kind) {
    seen->worker = getpid();
    seen->troubles++;
    switch (kind) {
    case CRASH:
        signal(SIGSEGV, SIG_DFL); /* sanitizers and cmocka catch it */
        raise(SIGSEGV);
        break;
    case LEAVE:
        _exit(3);
    case HANG:
        for (;;)
            pause();
    case KILLED:
        raise(SIGKILL);
        break;
    case LOSE:
        lost = true;
        break;
    case CHAT:
        printf("driver: 1 warning generated\n");
        fflush(stdout);
        break;
    }
}

static lap_status check_lost(lap_error *err) {
    return lost ? LAP_FAIL(err, LAP_E_DEVICE, "the context is lost") : LAP_OK;
}

static lap_status finish(void *queue, lap_error *err) {
    LAP_TRY(check_lost(err));
    return fake_ops.queue_finish(queue, err);
}

static lap_status enqueue(void *queue, void *kernel, const lap_raw_launch *launch, lap_error *err) {
    for (size_t i = 0; i < launch->arg_count; i++) {
        if (launch->args[i].kind != LAP_ARG_I32) continue;
        if (plan.images && launch->args[i].i32 == plan.images) misbehave(plan.kind);
        break;
    }
    LAP_TRY(check_lost(err));
    return fake_ops.enqueue(queue, kernel, launch, err);
}

static void at_the_end(void) {
    misbehave(KILLED);
}

static lap_status enumerate(lap_list_builder *builder, lap_error *err) {
    if (plan.at_enumeration) misbehave(CRASH);
    if (plan.at_the_end) atexit(at_the_end);
    if (plan.gone_after && seen->troubles > 0) fake.device_count = 0;
    return fake_ops.enumerate(builder, err);
}

static lap_status open_device(const lap_device_info *info, void **device, lap_error *err) {
    seen->opener = getpid();
    seen->opened++;
    seen->others += strcmp(info->selector, "fake:1") != 0;
    LAP_TRY(check_lost(err));
    return fake_ops.open(info, device, err);
}

static int set_up(void **state) {
    (void)state;
    fake_reset();
    memset(&plan, 0, sizeof plan);
    lost = false;
    seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen != MAP_FAILED);
    ops = fake_ops;
    ops.enqueue = enqueue;
    ops.queue_finish = finish;
    ops.enumerate = enumerate;
    ops.open = open_device;
    lap_registry_add(&ops);
    snprintf(json_path, sizeof json_path, "%s/test_isolated.json", LAP_TEST_TMP);
    unlink(json_path);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    munmap(seen, sizeof *seen);
    return 0;
}

/* `run` on resnet18 at 32x32, not verified; the document goes to path. */
static int run_to(const char *path, const char *line) {
    char copy[1024];
    char *argv[ARGS_MAX + 1];
    int argc = 0;
    snprintf(copy, sizeof copy,
             "run --json %s --set network:height=32 --set network:width=32 --set verify:mode=off "
             "--set verify:images=1 --set run:kernels=naive --set latency:repetitions=2 --set "
             "latency:warmup=0 --set latency:copies=no --set run:modes=latency %s",
             path, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < ARGS_MAX);
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return cmd_run(argc, argv);
}

static int run(const char *line) {
    return run_to(json_path, line);
}

/* Exit status of `run` with just these words, in a process of its own; what it complained of is in
 * complaint. */
static char complaint[4096];
static int run_alone(const char *words) {
    char path[600];
    snprintf(path, sizeof path, "%s/test_isolated.err", LAP_TEST_TMP);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char copy[1024], *argv[ARGS_MAX + 1];
        int argc = 0;
        if (!freopen(path, "w", stderr)) _exit(99);
        snprintf(copy, sizeof copy, "run %s", words);
        for (char *word = strtok(copy, " "); word && argc < ARGS_MAX; word = strtok(NULL, " "))
            argv[argc++] = word;
        argv[argc] = NULL;
        int got = cmd_run(argc, argv);
        fflush(stderr);
        _exit(got);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    complaint[fread(complaint, 1, sizeof complaint - 1, file)] = '\0';
    fclose(file);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static json_t *document(void) {
    json_error_t error;
    json_t *d = json_load_file(json_path, JSON_REJECT_DUPLICATES, &error);
    if (!d) fail_msg("%s: %s", json_path, error.text);
    return d;
}

static json_t *row_of(json_t *d, size_t row) {
    return json_array_get(json_object_get(d, "rows"), row);
}

/* The row's status, and its reason by its beginning or a part of it. */
static void expect(json_t *d, size_t row, const char *status, const char *reason) {
    const char *got = json_string_value(json_object_get(row_of(d, row), "status"));
    const char *why = json_string_value(json_object_get(row_of(d, row), "reason"));
    if (!got || strcmp(got, status) != 0 || !strstr(why ? why : "", reason))
        fail_msg("row %zu: %s, %s", row, got ? got : "?", why ? why : "");
    bool timed = !json_is_null(json_object_get(row_of(d, row), "latency"));
    if (strcmp(status, "ok") == 0 && !timed) fail_msg("row %zu has no latency", row);
}

/* Every way to go, in the middle one of three rows. */
static void test_one_dies(void **state) {
    (void)state;
    static const struct {
        trouble kind;
        const char *says;
    } cases[] = {{CRASH, "was killed by signal 11"},
                 {LEAVE, "ended by itself with status 3"},
                 {KILLED, "the system does so when memory runs out"},
                 {HANG,
                  "watchdog ([run] watchdog = 6): the process that worked on this row gave no "
                  "sign of life for 6"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan.images = 2;
        plan.kind = cases[i].kind;
        unlink(json_path);
        assert_int_equal(run("--set latency:batch=1,2,3 --set run:watchdog=6"), LAP_EXIT_FAILED);
        json_t *d = document();
        assert_true(json_is_true(json_object_get(d, "finished")));
        expect(d, 0, "ok", "");
        expect(d, 1, "failed", cases[i].says);
        expect(d, 1, "failed", "in: fake:0 batch 2: ");
        expect(d, 2, "ok", "");
        assert_true(json_is_null(json_object_get(row_of(d, 1), "latency")));
        json_decref(d);
        assert_int_equal(kill(seen->worker, 0), -1); /* it is gone */
        assert_int_equal(errno, ESRCH);
    }
    assert_int_equal(seen->troubles, 4);
}

/* A batch search that kills the process takes nothing from the latency measured before. */
static void test_measured_before(void **state) {
    (void)state;
    plan.images = 4;
    plan.kind = KILLED;
    assert_int_equal(run("--set run:modes=latency,throughput --set throughput:max_batch=4 "
                         "--set throughput:search_cost=0 --set latency:batch=1,2"),
                     LAP_EXIT_FAILED);
    json_t *d = document();
    expect(d, 0, "failed", "in: fake:0 batch 1: throughput");
    assert_true(json_is_object(json_object_get(row_of(d, 0), "latency")));
    assert_true(json_is_real(json_object_get(row_of(d, 0), "fps")));
    assert_true(json_is_null(json_object_get(row_of(d, 0), "throughput")));
    expect(d, 1, "ok", "");
    json_decref(d);
}

/* Of rows that take turns none can be told from the others: each is tried again alone. */
static void test_interleaved(void **state) {
    (void)state;
    fake.device_count = 2;
    plan.images = 2;
    plan.kind = CRASH;
    assert_int_equal(run("--device all --set latency:batch=1,2"), LAP_EXIT_FAILED);
    json_t *d = document();
    assert_int_equal(json_array_size(json_object_get(d, "rows")), 4);
    expect(d, 0, "ok", "");
    expect(d, 1, "failed", "signal 11");
    expect(d, 2, "ok", "");
    expect(d, 3, "failed", "signal 11");
    json_decref(d);
    assert_true(seen->troubles >= 3);
}

/* A device that is lost to the process costs the row in which that happened: what is left is done
 * by another process, in which the device is as good as new. */
static void test_lost(void **state) {
    (void)state;
    plan.images = 2;
    plan.kind = LOSE;
    assert_int_equal(run("--set latency:batch=1,2,3"), LAP_EXIT_FAILED);
    json_t *d = document();
    expect(d, 0, "ok", "");
    expect(d, 1, "failed", "the context is lost");
    expect(d, 2, "ok", "");
    json_decref(d);
    assert_int_equal(seen->troubles, 1);

    /* Rows that take turns: those beside it are worked on again. */
    unlink(json_path);
    assert_int_equal(run("--set run:order=interleaved --set latency:batch=1,2,3"), LAP_EXIT_FAILED);
    d = document();
    expect(d, 0, "ok", "");
    expect(d, 1, "failed", "the context is lost");
    expect(d, 2, "ok", "");
    json_decref(d);
}

/* ... and devices that are not there any more cost the rows that are left, nothing else. */
static void test_gone(void **state) {
    (void)state;
    plan.images = 2;
    plan.gone_after = true;
    for (int k = 0; k < 2; k++) {
        plan.kind = k ? LOSE : CRASH;
        seen->troubles = 0;
        unlink(json_path);
        assert_int_equal(run("--set latency:batch=1,2,3"), LAP_EXIT_FAILED);
        json_t *d = document();
        assert_true(json_is_true(json_object_get(d, "finished")));
        expect(d, 0, "ok", "");
        expect(d, 1, "failed", k ? "the context is lost" : "signal 11");
        expect(d, 2, "failed", "");
        if (k == 0) expect(d, 2, "failed", "there is no device");
        json_decref(d);
    }
}

/* What a driver prints does not get between the lines of a document on standard output. */
static void test_driver_that_prints(void **state) {
    (void)state;
    plan.images = 2;
    plan.kind = CHAT;
    fflush(stdout);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (!freopen(json_path, "w", stdout)) _exit(99);
        int got = run_to("-", "--set latency:batch=1,2");
        fflush(stdout);
        _exit(got);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == LAP_EXIT_OK);
    assert_true(seen->troubles > 0);
    json_t *d = document();
    expect(d, 0, "ok", "");
    expect(d, 1, "ok", "");
    json_decref(d);
}

/* On a GPU that only one process may have, the parent must not be that one: devices are opened in
 * the worker, one at a time, and none that was not asked for. */
static void test_parent_opens_nothing(void **state) {
    (void)state;
    fake.device_count = 3;
    assert_int_equal(run("--device fake:1 --set latency:batch=1,2"), LAP_EXIT_OK);
    assert_int_not_equal(seen->opener, getpid());
    assert_int_equal(seen->opened, 2); /* a session for each row */
    assert_int_equal(seen->others, 0);
    assert_int_equal(fake_alive(), 0);
}

/* Before there are rows, and after all are done. */
static void test_outside_rows(void **state) {
    (void)state;
    plan.at_enumeration = true;
    assert_int_equal(run(""), LAP_EXIT_FAILED);
    assert_int_equal(access(json_path, F_OK), -1);
    plan.at_enumeration = false;
    plan.at_the_end = true;
    assert_int_equal(run(""), LAP_EXIT_OK);
    json_t *d = document();
    expect(d, 0, "ok", "");
    json_decref(d);
}

/* Killed at the worst moment, the run leaves a whole document with what was finished. */
static void test_killed(void **state) {
    (void)state;
    plan.images = 2;
    plan.kind = HANG;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(run("--set latency:batch=1,2,3 --set run:watchdog=0"));
    for (int i = 0; i < 1000 && seen->troubles == 0; i++)
        lap_clock_sleep(0.03);
    assert_int_equal(seen->troubles, 1);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    json_t *d = document();
    expect(d, 0, "ok", "");
    expect(d, 1, "skipped", "not finished when this was written");
    expect(d, 2, "skipped", "not finished when this was written");
    assert_true(json_is_false(json_object_get(d, "finished")));
    json_decref(d);
    for (int i = 0; i < 200 && kill(seen->worker, 0) == 0; i++)
        lap_clock_sleep(0.03);
    assert_int_equal(kill(seen->worker, 0), -1); /* nothing is left behind */
}

/* One request lets the row come to its end, a second one does not wait for a hung driver. */
static void test_interrupted(void **state) {
    (void)state;
    plan.images = 2;
    plan.kind = HANG;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(run("--set latency:batch=1,2,3 --set run:watchdog=0"));
    for (int i = 0; i < 1000 && seen->troubles == 0; i++)
        lap_clock_sleep(0.03);
    kill(pid, SIGTERM);
    lap_clock_sleep(0.3);
    kill(pid, SIGTERM);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), LAP_EXIT_INTERRUPTED);
    json_t *d = document();
    assert_true(json_is_true(json_object_get(d, "finished")));
    expect(d, 0, "ok", "");
    expect(d, 1, "skipped", "interrupted twice");
    expect(d, 2, "skipped", "interrupted twice");
    json_decref(d);
}

static void refused(const char *words, const char *says) {
    json_t *before = document();
    assert_int_equal(run_alone(words), LAP_EXIT_USAGE);
    if (!strstr(complaint, says)) fail_msg("%s: %s lacks %s", words, complaint, says);
    json_t *after = document();
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
}

/* The document with another text somewhere. */
static void change(const char *object, const char *key, const char *text) {
    json_t *d = document();
    json_t *o = object[0] ? json_object_get(d, object) : d;
    assert_int_equal(json_object_set_new(o, key, json_string(text)), 0);
    assert_int_equal(json_dump_file(d, json_path, 0), 0);
    json_decref(d);
}

/* After a kill the finished row stays as it is, to the last digit, and the others are done. */
static void test_resume(void **state) {
    char resume[700], with[900];
    test_killed(state);
    plan.images = 0;
    snprintf(resume, sizeof resume, "--resume %s", json_path);
    json_t *before = document();

    snprintf(with, sizeof with, "%s --set latency:repetitions=3", resume);
    refused(with, "[latency] repetitions is '2' there, '3' here");
    snprintf(with, sizeof with, "%s --tune", resume);
    refused(with, "--resume and --tune");
    strcpy(fake.devices[0].driver, "2.0");
    refused(resume, "the driver of row 1 is '1.0' there, '2.0' here");
    strcpy(fake.devices[0].driver, "1.0");
    strcpy(fake.devices[0].name, "Another");
    refused(resume, "the device of row 1");
    strcpy(fake.devices[0].name, "Fake Device 0");
    change("tool", "version", "0.0.9");
    refused(resume, "the version of warmlap is '0.0.9' there");
    change("tool", "version", LAP_VERSION);
    change("host", "cpu", "Another");
    refused(resume, "the host's processor is 'Another' there");
    assert_int_equal(json_dump_file(before, json_path, JSON_REAL_PRECISION(12)), 0);

    if (run_alone(resume) != LAP_EXIT_OK) fail_msg("%s", complaint);
    json_t *d = document();
    assert_true(json_is_true(json_object_get(d, "finished")));
    assert_int_equal(json_array_size(json_object_get(d, "resumed")), 1);
    assert_true(json_equal(json_object_get(d, "started"), json_object_get(before, "started")));
    assert_true(json_equal(row_of(d, 0), row_of(before, 0)));
    for (size_t i = 0; i < 3; i++)
        expect(d, i, "ok", "");
    /* And once more: there is nothing left to do. */
    assert_int_equal(run_alone(resume), LAP_EXIT_OK);
    json_t *again = document();
    assert_true(json_equal(json_object_get(d, "rows"), json_object_get(again, "rows")));
    assert_int_equal(json_array_size(json_object_get(again, "resumed")), 2);
    json_decref(again);
    json_decref(d);
    json_decref(before);
    snprintf(with, sizeof with, "%s.none", resume);
    assert_int_equal(run_alone(with), LAP_EXIT_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_dies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_measured_before, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interleaved, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_driver_that_prints, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_parent_opens_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_outside_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_resume, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_interrupted, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
