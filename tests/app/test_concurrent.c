/* Several devices at the same time, on the fake backend: which cases go together, that failures
 * stay alone, what rows and sums say. Run under ThreadSanitizer as well (tests/tsan.sh). */
#include "case_fixture.h"

#include "app/run_sets.h"
#include "report/sets.h"
#include "report/table.h"

#include <pthread.h>

enum { DEVICES = 3, ROWS = 2 * DEVICES };

/* ---- the fake backend from several threads: one call at a time ------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lap_device_ops plain, locked;

#define LOCKED(call)                                                                               \
    pthread_mutex_lock(&lock);                                                                     \
    lap_status status = call;                                                                      \
    pthread_mutex_unlock(&lock);                                                                   \
    return status

static lap_status locked_enqueue(void *queue, void *kernel, const lap_raw_launch *launch,
                                 lap_error *err) {
    LOCKED(plain.enqueue(queue, kernel, launch, err));
}

static lap_status locked_finish(void *queue, lap_error *err) {
    LOCKED(plain.queue_finish(queue, err));
}

static lap_status locked_record(void *event, void *queue, lap_error *err) {
    LOCKED(plain.event_record(event, queue, err));
}

static lap_status locked_elapsed(void *a, void *b, double *seconds, lap_error *err) {
    LOCKED(plain.event_elapsed(a, b, seconds, err));
}

static lap_status locked_graph(void *graph, void *queue, lap_error *err) {
    LOCKED(plain.graph_launch(graph, queue, err));
}

/* ---- the rig -------------------------------------------------------------------------------- */

static case_rig rig;
static lap_run_case cases[ROWS];
static lap_row rows[ROWS];
static size_t count;

/* As the command does it: what the rows alone say, and then the sets. */
static void run_sets(void) {
    lap_alone alone[DEVICES];
    for (size_t i = 0; i < DEVICES; i++)
        lap_alone_of(&rows[i], &alone[i]);
    lap_runner_sets(&rig.runner, cases + DEVICES, rows + DEVICES, count - DEVICES, alone);
}

static int set_up(void **state) {
    (void)state;
    rig_open(&rig);
    plain = locked = fake_ops;
    locked.enqueue = locked_enqueue;
    locked.queue_finish = locked_finish;
    locked.event_record = locked_record;
    locked.event_elapsed = locked_elapsed;
    locked.graph_launch = locked_graph;
    lap_registry_add(&locked);
    fake.device_count = DEVICES;
    rig.runner.rewarm_s = 1e-6;
    const char *const more[] = {"latency:repetitions=20", "output:layers=no", "latency:passes=1",
                                "run:rounds=3", "run:round_seconds=0.001"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        rig_set(&rig, more[i]);
    for (int i = 0; i < DEVICES; i++) {
        cases[i] = rig.c;
        cases[i].device = &fake.devices[i];
        fake.devices[i].physical = i;
    }
    assert_int_equal(lap_app_add_sets(cases, DEVICES, &count, NULL), LAP_OK);
    assert_int_equal(count, ROWS);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++)
        lap_row_free(&rows[i]);
    memset(rows, 0, sizeof rows);
    rig_close(&rig);
    return 0;
}

static void run_all(void) {
    lap_runner_cases(&rig.runner, cases, rows, DEVICES);
    run_sets();
    assert_int_equal(fake_alive(), 0);
}

static bool noted(const lap_row *row, const char *text) {
    for (size_t i = 0; i < row->note_count; i++)
        if (strstr(row->notes[i], text)) return true;
    return false;
}

static void assert_beside(const lap_row *row, size_t others) {
    if (row->status != LAP_ROW_OK) fail_msg("%s: %s", row->device.selector, row->reason);
    char note[64];
    snprintf(note, sizeof note, "concurrent with %zu other", others);
    assert_int_equal(row->concurrent.others, others);
    assert_true(noted(row, note));
    assert_int_equal(row->latency.n, 20);
    assert_true(row->verified.passed && row->verified.rerun_same);
    assert_int_equal(row->concurrent.rounds.n, 3);
    assert_true(row->throughput.images_per_s.has);
}

static void all_at_once(void **state) {
    (void)state;
    run_all();
    for (size_t i = 0; i < DEVICES; i++) {
        assert_int_equal(rows[i].concurrent.others, 0);
        assert_false(noted(&rows[i], "concurrent"));
        const lap_row *row = &rows[DEVICES + i];
        assert_beside(row, 2);
        assert_int_equal(row->concurrent.alone_row, i);
        assert_string_equal(row->device.selector, cases[i].device->selector);
        assert_int_equal(row->throughput.batch, rows[i].throughput.batch);
        assert_non_null(strstr(row->concurrent.devices, " x "));
    }
}

static void the_sum_and_its_renderings(void **state) {
    (void)state;
    lap_set *sets;
    size_t n;
    run_all();
    assert_int_equal(lap_sets_of_rows(rows, ROWS, &sets, &n, NULL), LAP_OK);
    assert_int_equal(n, 1);
    double sum = 0;
    for (size_t i = DEVICES; i < ROWS; i++)
        sum += rows[i].throughput.images_per_s.value;
    assert_int_equal(sets[0].rated, DEVICES);
    assert_true(fabs(sets[0].rate.value.value - sum) < 1e-6 * sum);
    assert_true(sets[0].rate.half.has && sets[0].scaling.half.has && sets[0].fps_scaling.value.has);
    lap_report report = {
        .rows = rows, .row_count = ROWS, .sets = sets, .set_count = n, .started = ""};
    lap_text text = {0};
    assert_int_equal(lap_report_json(&report, &text, NULL), LAP_OK);
    json_t *document = json_loads(lap_text_get(&text), JSON_REJECT_DUPLICATES, NULL);
    json_t *set = json_array_get(json_object_get(document, "sets"), 0);
    double told = json_number_value(json_object_get(set, "images_per_s"));
    assert_true(fabs(told - sum) < 1e-6 * sum);
    assert_int_equal(json_array_size(json_object_get(set, "members")), DEVICES);
    assert_int_equal(json_array_size(json_object_get(set, "scaling_ci")), 2);
    json_t *row = json_array_get(json_object_get(document, "rows"), 1);
    assert_true(json_is_null(json_object_get(row, "concurrent")));
    row = json_array_get(json_object_get(document, "rows"), DEVICES + 1);
    json_t *beside = json_object_get(row, "concurrent");
    assert_int_equal(json_integer_value(json_object_get(beside, "others")), 2);
    assert_int_equal(json_integer_value(json_object_get(beside, "alone_row")), 1);
    assert_int_equal(json_array_size(json_object_get(beside, "images_per_s")), 3);
    json_decref(document);
    lap_text_free(&text);
    assert_int_equal(lap_report_csv(&report, &text, NULL), LAP_OK);
    size_t records = 0, sums = 0;
    for (const char *p = text.data; (p = strstr(p, "\r\n")); p += 2)
        records++;
    for (const char *p = text.data; (p = strstr(p, ",sum,")); p++)
        sums++;
    assert_int_equal(records, 1 + ROWS + 1);
    assert_int_equal(sums, 1);
    lap_text_free(&text);
    assert_int_equal(lap_report_sets(&report, NULL, &text, NULL), LAP_OK);
    assert_non_null(strstr(text.data, "sum of 3"));
    assert_non_null(strstr(text.data, "3 devices at once run"));
    lap_text_free(&text);
    assert_int_equal(lap_report_markdown(&report, &text, NULL), LAP_OK);
    assert_non_null(strstr(text.data, "| sum of 3 |"));
    lap_text_free(&text);
    assert_int_equal(lap_report_table(&report, NULL, &text, NULL), LAP_OK);
    assert_non_null(strstr(text.data, "fake:0 +2"));
    lap_text_free(&text);
    lap_sets_free(sets, n);
}

/* A case that its device cannot do alone is not tried beside the others. */
static void one_that_fails_alone(void **state) {
    (void)state;
    cases[1].precision = LAP_FP32X3; /* there are no kernels for it */
    cases[DEVICES + 1].precision = LAP_FP32X3;
    run_all();
    assert_int_equal(rows[1].status, LAP_ROW_UNSUPPORTED);
    assert_int_equal(rows[DEVICES + 1].status, LAP_ROW_UNSUPPORTED);
    assert_non_null(strstr(rows[DEVICES + 1].reason, "alone: "));
    assert_beside(&rows[DEVICES], 1);
    assert_beside(&rows[DEVICES + 2], 1);
}

static void nobody_left_to_run_beside(void **state) {
    (void)state;
    for (size_t i = 1; i < DEVICES; i++)
        cases[i].precision = cases[DEVICES + i].precision = LAP_FP32X3;
    run_all();
    assert_int_equal(rows[0].status, LAP_ROW_OK);
    assert_int_equal(rows[DEVICES].status, LAP_ROW_UNSUPPORTED);
    assert_non_null(strstr(rows[DEVICES].reason, "no other device"));
}

/* Each device call in turn fails, over the whole of the concurrent part: somebody's row fails, the
 * others are measured, nobody hangs, nothing is left. */
static void any_call_may_fail(void **state) {
    (void)state;
    lap_runner_cases(&rig.runner, cases, rows, DEVICES);
    lap_device_fault_arm(0, LAP_OK);
    run_sets();
    uint64_t calls = lap_device_fault_arm(0, LAP_OK);
    assert_true(calls > 500);
    for (uint64_t nth = 1; nth < calls; nth += calls / 97 + 1) {
        for (size_t i = DEVICES; i < ROWS; i++)
            lap_row_free(&rows[i]);
        lap_device_fault_arm(nth, LAP_E_LAUNCH);
        run_sets();
        lap_device_fault_arm(0, LAP_OK);
        size_t failed = 0;
        for (size_t i = DEVICES; i < ROWS; i++)
            failed += rows[i].status != LAP_ROW_OK;
        /* How many calls there are depends on who waits for whom: the last ones may not be there.
         */
        if (failed > 1) fail_msg("call %llu: %zu rows failed", (unsigned long long)nth, failed);
        assert_int_equal(fake_alive(), 0);
    }
}

static int asked, patience;

static bool interrupt_later(void *context) {
    (void)context;
    return __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) > patience;
}

/* In the preparation, in the latency, in the rounds: whatever is under way ends, none hangs. */
static void interruption_ends_all(void **state) {
    (void)state;
    lap_runner_cases(&rig.runner, cases, rows, DEVICES);
    for (patience = 40;; patience += patience / 3) {
        for (size_t i = DEVICES; i < ROWS; i++)
            lap_row_free(&rows[i]);
        asked = 0;
        rig.runner.interrupted = interrupt_later;
        run_sets();
        rig.runner.interrupted = NULL;
        if (asked <= patience) break; /* it was never told to stop */
        for (size_t i = DEVICES; i < ROWS; i++)
            assert_true(rows[i].status == LAP_ROW_SKIPPED || rows[i].status == LAP_ROW_OK);
        assert_int_equal(rows[ROWS - 1].status == LAP_ROW_OK && patience < 100, 0);
        assert_int_equal(lap_rows_exit_status(rows, ROWS), 0); /* the caller says 130 */
        assert_int_equal(fake_alive(), 0);
    }
}

static void a_wrong_result_has_no_time(void **state) {
    (void)state;
    lap_runner_cases(&rig.runner, cases, rows, DEVICES);
    fake_plant("fc_naive", FAKE_PLANT_WRONG);
    run_sets();
    fake_plant("fc_naive", FAKE_PLANT_NONE);
    for (size_t i = DEVICES; i < ROWS; i++) {
        assert_int_equal(rows[i].status, LAP_ROW_FAILED);
        assert_int_equal(rows[i].cause, LAP_E_VERIFY);
        assert_int_equal(rows[i].concurrent.rounds.n, 0);
        assert_no_times(&rows[i]);
    }
}

/* ---- which cases go together ---------------------------------------------------------------- */

static void planned(const int *physical, const char *const *platform, size_t lone, size_t wanted,
                    const size_t *sets) {
    static lap_device_info devices[6];
    lap_run_case c[12];
    size_t n;
    for (size_t i = 0; i < lone; i++) {
        devices[i] = fake.devices[0];
        devices[i].physical = physical[i];
        snprintf(devices[i].platform, sizeof devices[i].platform, "%s", platform[i]);
        snprintf(devices[i].selector, sizeof devices[i].selector, "fake:%zu", i);
        c[i] = rig.c;
        c[i].device = &devices[i];
    }
    assert_int_equal(lap_app_add_sets(c, lone, &n, NULL), LAP_OK);
    assert_int_equal(n, lone + wanted);
    for (size_t i = 0; i < wanted; i++)
        assert_int_equal(c[lone + i].set, sets[c[lone + i].alone]);
}

static void routes_to_one_device_are_apart(void **state) {
    (void)state;
    const char *const a[] = {"A", "A", "A", "A"}, *const ab[] = {"A", "A", "B", "B"};
    planned((int[]){0, 1}, a, 2, 2, (size_t[]){1, 1});
    planned((int[]){0, 1, 0, 1}, ab, 4, 4, (size_t[]){1, 1, 2, 2});
    planned((int[]){0, 1, 2, 1}, ab, 4, 3, (size_t[]){1, 1, 1, 0});
    planned((int[]){0, 0, 0, 0}, a, 4, 4, (size_t[]){1, 1, 1, 1}); /* the platform knows better */
    planned((int[]){0}, a, 1, 0, NULL);
    planned((int[]){0, 1, 0, 2}, (const char *const[]){"A", "A", "B", "B"}, 4, 3,
            (size_t[]){1, 1, 0, 1});
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(all_at_once),
                                       TEST(the_sum_and_its_renderings),
                                       TEST(one_that_fails_alone),
                                       TEST(nobody_left_to_run_beside),
                                       TEST(any_call_may_fail),
                                       TEST(interruption_ends_all),
                                       TEST(a_wrong_result_has_no_time),
                                       TEST(routes_to_one_device_are_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
