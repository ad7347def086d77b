/* A whole row on the fake device: right, wrong in every way, wrong later, and interrupted. */
#include "base/clock.h"
#include "case_fixture.h"

static case_rig rig;

static int set_up(void **state) {
    (void)state;
    rig_open(&rig);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    rig_close(&rig);
    return 0;
}

static void test_good_row(void **state) {
    (void)state;
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_null(row.reason);
    assert_true(row.verified.has && row.verified.passed && row.verified.rerun_same);
    assert_int_equal(row.verified.exact_layers, TINY_OPS);
    assert_int_equal(row.verified.real_layers, TINY_OPS);
    assert_int_equal(row.kernel_count, TINY_OPS);
    assert_int_equal(row.layer_count, TINY_OPS);
    assert_int_equal(row.latency.n, 2);
    assert_int_equal(row.latency.warmup_n, 1);
    assert_int_equal(row.throughput.curve_count, 2);
    assert_true(row.throughput.images_per_s.has && row.fps.has && row.flops_per_s.has);
    assert_true(row.cold.first_s.has && row.cold.build_s.has && row.cold.open_s.has &&
                row.cold.upload_s.has);
    assert_int_equal(lap_rows_exit_status(&row, 1), 0);
    json_t *o = row_as_json(&row);
    assert_string_equal(json_string_value(json_object_get(o, "status")), "ok");
    assert_true(json_is_null(json_object_get(o, "reason")));
    assert_true(json_is_real(json_object_get(o, "fps")));
    json_decref(o);
    lap_row_free(&row);
}

static void expect_wrong(lap_row *row, const char *what) {
    if (row->cause != LAP_E_VERIFY)
        fail_msg("%s: row %s, %s", what, lap_row_status_name(row->status),
                 row->reason ? row->reason : "no reason");
    assert_int_equal(row->status, LAP_ROW_FAILED);
    assert_true(row->reason && *row->reason);
    assert_true(row->verified.has);
    assert_false(row->verified.passed);
    assert_true(*row->verified.first_wrong);
    assert_int_equal(lap_rows_exit_status(row, 1), 4);
    assert_no_times(row);
}

static void test_planted(void **state) {
    (void)state;
    const bad_kind kinds[] = {BAD_WRONG, BAD_NAN, BAD_NOTHING, BAD_AFTER, BAD_BEFORE, BAD_RANDOM};
    const char *const modes[] = {"verify:mode=full", "verify:mode=quick"};
    for (size_t m = 0; m < 2; m++) {
        rig_set(&rig, modes[m]);
        for (int op = 0; op < TINY_OPS; op++)
            for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
                bad_plant(&rig.runner.net->ops[op], kinds[k], 0);
                lap_row row;
                lap_runner_case(&rig.runner, &rig.c, &row);
                expect_wrong(&row, rig.runner.net->ops[op].name);
                if (!strstr(row.reason, rig.runner.net->ops[op].name))
                    fail_msg("defect %d in %s: %s", (int)kinds[k], rig.runner.net->ops[op].name,
                             row.reason);
                lap_row_free(&row);
                bad_plant(&rig.runner.net->ops[op], BAD_NONE, 0);
            }
    }
    assert_int_equal(fake.red_zone_hits, 0);
    lap_row row; /* nothing of it is left */
    lap_runner_case(&rig.runner, &rig.c, &row);
    assert_int_equal(row.status, LAP_ROW_OK);
    lap_row_free(&row);
}

/* A row with a kernel that is right for the first `good` launches and bad ever after. Whenever that
 * happens, before, during or after the timed runs, the row has no times. False when it did not. */
static bool bad_after(int op, bad_kind kind, uint64_t good) {
    bad_plant(&rig.runner.net->ops[op], kind, good);
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    bool reached = bad_launches() > good;
    if (reached) expect_wrong(&row, rig.runner.net->ops[op].name);
    if (!reached && row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    lap_row_free(&row);
    return reached;
}

static void test_wrong_later(void **state) {
    (void)state;
    const struct {
        bool latency, throughput;
        const char *layers;
    } modes[] = {{true, false, "output:layers=no"},
                 {true, false, "output:layers=yes"},
                 {false, true, "output:layers=no"}};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        rig.c.latency = modes[m].latency;
        rig.c.throughput = modes[m].throughput;
        rig_set(&rig, modes[m].layers);
        for (int op = 0; op < TINY_OPS; op += 3) {
            assert_false(bad_after(op, BAD_NONE, UINT64_MAX));
            /* Every launch up to the last, or the last ones where there are hundreds. */
            uint64_t total = bad_launches(), first = total > 60 ? total - 12 : 0;
            unsigned caught = 0;
            for (uint64_t good = first; good < total; good++)
                caught += bad_after(op, BAD_LATE, good);
            assert_true(caught > 6);
        }
    }
}

/* A kernel that stops writing leaves the right result of an earlier run behind. */
static void test_idle_later(void **state) {
    (void)state;
    rig.c.throughput = false;
    rig_set(&rig, "output:layers=no");
    for (int op = 0; op < TINY_OPS; op++) {
        unsigned caught = 0;
        for (uint64_t good = 0; bad_after(op, BAD_IDLE, good); good++)
            caught++;
        assert_true(caught > 6);
    }
}

static void wrong_set(int op, bad_kind kind, uint64_t good, const char *what) {
    bad_plant(&rig.runner.net->ops[op], kind, good);
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    expect_wrong(&row, what);
    if (!strstr(row.reason, what))
        fail_msg("%s after %d launches: %s", what, (int)good, row.reason);
    lap_row_free(&row);
}

/* The plans of the pipeline and of several queues are verified like all others, each of them. */
static void test_wrong_in_sets(void **state) {
    (void)state;
    const char *const sets[][3] = {{"throughput:pipeline=no", "throughput:streams=2", "2 queues"},
                                   {"throughput:pipeline=yes", "throughput:streams=1", "pipeline"}};
    const int ops[] = {0, TINY_OPS - 1};
    rig.c.latency = false;
    rig_set(&rig, "output:layers=no");
    for (size_t i = 0; i < 2 * sizeof ops / sizeof *ops; i++) {
        const char *const *set = sets[i / 2];
        int op = ops[i % 2];
        rig_set(&rig, "throughput:pipeline=no");
        rig_set(&rig, "throughput:streams=1");
        assert_false(bad_after(op, BAD_NONE, UINT64_MAX));
        uint64_t first = bad_launches();
        rig_set(&rig, set[0]);
        rig_set(&rig, set[1]);
        assert_false(bad_after(op, BAD_NONE, UINT64_MAX));
        uint64_t total = bad_launches();
        assert_true(total > first + 2);
        for (uint64_t good = first; good < total; good++) {
            wrong_set(op, BAD_LATE, good, set[2]);
            wrong_set(op, BAD_IDLE, good, set[2]);
            if (op == TINY_OPS - 1 && good + 1 < total) wrong_set(op, BAD_SECOND, good, set[2]);
        }
    }
}

static void test_verify_only(void **state) {
    (void)state;
    rig.c.latency = rig.c.throughput = false;
    rig_set(&rig, "output:layers=no");
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    assert_int_equal(row.status, LAP_ROW_OK);
    assert_true(row.verified.passed);
    assert_false(row.latency.has || row.throughput.has || row.fps.has);
    lap_row_free(&row);
}

static void test_verify_off_is_said(void **state) {
    (void)state;
    rig_set(&rig, "verify:mode=off");
    bad_plant(&rig.runner.net->ops[0], BAD_WRONG, 0);
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    assert_int_equal(row.status, LAP_ROW_OK);
    assert_false(row.verified.has || row.verified.passed || row.verified.rerun_same);
    bool said = false;
    for (size_t i = 0; i < row.note_count; i++)
        said |= strstr(row.notes[i], "not verified") != NULL;
    assert_true(said);
    lap_row_free(&row);
}

/* ---- what is no part of the latency --------------------------------------------------------- */

/* The first launch of a driver and the first build take long. */
static bool launched, built;
enum { SLOW_MS = 150 };

static double slow_at_first(const char *stem, const lap_raw_launch *launch) {
    (void)stem, (void)launch;
    double cost = launched ? 1e-5 : SLOW_MS * 1e-3;
    launched = true;
    return cost;
}

static lap_status (*real_build)(void *, const lap_build *, void **, lap_kernel_info *, lap_error *);

static lap_status slow_build(void *device, const lap_build *build, void **kernel,
                             lap_kernel_info *info, lap_error *err) {
    if (!built) lap_clock_sleep(SLOW_MS * 1e-3);
    built = true;
    return real_build(device, build, kernel, info, err);
}

/* They are in the cold costs and nowhere else, though neither a warm-up nor the verification is
 * there to hide them. */
static void test_cold_stays_out(void **state) {
    (void)state;
    lap_status (*graphs)(void *, lap_error *) = fake_ops.graph_begin;
    fake_ops.graph_begin = NULL; /* launches in a graph have no cost of their own */
    real_build = fake_ops.kernel_build;
    fake_ops.kernel_build = slow_build;
    fake.cost = slow_at_first;
    fake.real_time = true;
    launched = built = false;
    const char *const settings[] = {"latency:warmup=0", "latency:repetitions=20", "verify:mode=off",
                                    "output:layers=no", "latency:passes=1"};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        rig_set(&rig, settings[i]);
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    fake_ops.kernel_build = real_build;
    fake_ops.graph_begin = graphs;
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_true(row.cold.build_s.value >= SLOW_MS * 1e-3);
    assert_true(row.cold.first_s.value >= SLOW_MS * 1e-3);
    assert_int_equal(row.latency.n, 20);
    assert_true(row.latency.device.max.value < SLOW_MS * 0.5e-3);
    assert_true(row.latency.wall.min.value < SLOW_MS * 0.5e-3);
    assert_true(fabs(row.latency.stats.mean.value - TINY_OPS * 1e-5) < 1e-9);
    assert_true(row.throughput.images_per_s.value > 1 / (SLOW_MS * 1e-3));
    lap_row_free(&row);
}

/* Copies that take longer than the network: the latency is the same whether they are
 * timed beside it or not, and as long as the launches. This is the one definition for all backends:
 * nothing of it is in a backend. */
static void test_copies_stay_out(void **state) {
    (void)state;
    lap_status (*graphs)(void *, lap_error *) = fake_ops.graph_begin;
    fake_ops.graph_begin = NULL;
    fake.real_time = true;
    fake.launch_s = 1e-4;
    fake.command_s = 2e-3;
    const char *const copies[] = {"latency:copies=no", "latency:copies=yes"};
    rig_set(&rig, "latency:passes=1");
    for (size_t i = 0; i < 2; i++) {
        rig_set(&rig, copies[i]);
        lap_row row;
        lap_runner_case(&rig.runner, &rig.c, &row);
        if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
        assert_int_equal(row.copies.has, i);
        assert_int_equal(row.latency.device.n, 2);
        assert_true(fabs(row.latency.device.max.value - TINY_OPS * fake.launch_s) < 1e-9);
        lap_row_free(&row);
    }
    fake_ops.graph_begin = graphs;
}

static int calls_left;

static bool stop_later(void *context) {
    (void)context;
    return calls_left-- <= 0;
}

/* Stopped at any point where it asks: what stays was verified after it was measured. */
static void test_interrupted(void **state) {
    (void)state;
    rig.runner.interrupted = stop_later;
    int with_times = 0, asked = 0;
    for (;; asked++) {
        calls_left = asked;
        lap_row row;
        lap_runner_case(&rig.runner, &rig.c, &row);
        bool done = row.status == LAP_ROW_OK;
        if (!done) {
            assert_int_equal(row.status, LAP_ROW_SKIPPED);
            assert_int_equal(row.cause, LAP_E_INTERRUPTED);
            assert_non_null(strstr(row.reason, "interrupted"));
            assert_int_equal(lap_rows_exit_status(&row, 1), 0); /* the caller exits 130 */
        }
        if (row.latency.has) assert_true(row.verified.rerun_same);
        with_times += !done && row.latency.has;
        assert_true(done || !row.throughput.images_per_s.has);
        json_decref(row_as_json(&row));
        lap_row_free(&row);
        if (done) break;
    }
    assert_true(asked > 10);
    assert_true(with_times > 5);
}

/* What a row could not read is not there for the next of the same network either: each says why. */
static void test_nothing_to_read(void **state) {
    (void)state;
    const char *const settings[] = {"network:weights=/nowhere/weights.safetensors",
                                    "network:input=/nowhere/input.npy"};
    for (int i = 0; i < 2; i++) {
        rig_set(&rig, "network:weights=synthetic:1");
        rig_set(&rig, settings[i]);
        rig.c.model = "resnet18";
        rig.c.height = rig.c.width = 32;
        for (int again = 0; again < 2; again++) {
            lap_row row;
            lap_runner_case(&rig.runner, &rig.c, &row);
            assert_int_equal(row.status, LAP_ROW_FAILED);
            assert_int_equal(row.cause, LAP_E_IO);
            assert_non_null(strstr(row.reason, "/nowhere/"));
            assert_false(row.latency.has || row.throughput.has || row.verified.has);
            lap_row_free(&row);
        }
    }
}

int main(void) {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_good_row),        RIG_TEST(test_planted),
        RIG_TEST(test_wrong_later),     RIG_TEST(test_idle_later),
        RIG_TEST(test_verify_only),     RIG_TEST(test_interrupted),
        RIG_TEST(test_nothing_to_read), RIG_TEST(test_verify_off_is_said),
        RIG_TEST(test_cold_stays_out),  RIG_TEST(test_copies_stay_out),
        RIG_TEST(test_wrong_in_sets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
