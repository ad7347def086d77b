/* Rows that take turns on the fake device: order, isolation of failures, memory, interruption. */
#include "base/clock.h"
#include "case_fixture.h"

enum { ROWS = 3 };

static case_rig rig;
static lap_run_case cases[ROWS];
static lap_row rows[ROWS];

static int set_up(void **state) {
    (void)state;
    rig_open(&rig);
    fake.device_count = 2;
    rig.runner.rewarm_s = 1e-6;
    const char *const more[] = {"latency:repetitions=20", "run:order=auto", "output:layers=no",
                                "latency:passes=1"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        rig_set(&rig, more[i]);
    for (int i = 0; i < ROWS; i++) {
        cases[i] = rig.c;
        cases[i].throughput = false;
    }
    cases[1].device = &fake.devices[1];
    cases[2].batch = 3;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    rig_close(&rig);
    return 0;
}

static void run_all(void) {
    lap_runner_cases(&rig.runner, cases, rows, ROWS);
    assert_int_equal(fake_alive(), 0);
}

static void free_all(void) {
    for (int i = 0; i < ROWS; i++)
        lap_row_free(&rows[i]);
}

static bool noted(const lap_row *row, const char *text) {
    for (size_t i = 0; i < row->note_count; i++)
        if (strstr(row->notes[i], text)) return true;
    return false;
}

static void assert_good(const lap_row *row) {
    if (row->status != LAP_ROW_OK) fail_msg("%s: %s", row->device.selector, row->reason);
    assert_int_equal(row->latency.n, 20);
    assert_true(row->verified.passed && row->verified.rerun_same);
    assert_true(row->fps.has && row->floor.has);
}

static void several_devices_take_turns(void **state) {
    (void)state;
    run_all();
    for (int i = 0; i < ROWS; i++) {
        assert_good(&rows[i]);
        assert_true(rows[i].latency.interleaved);
        assert_int_equal(rows[i].latency.blocks, 10);
        assert_int_equal(rows[i].batch, cases[i].batch);
        assert_string_equal(rows[i].device.selector, cases[i].device->selector);
    }
    free_all();
}

/* A device that stood idle while others had their turn is warmed up again: as long as the runner is
 * told, or 0.05 s. */
static void warm_again_each_turn(void **state) {
    (void)state;
    const double told[] = {0.02, 0}, seconds[] = {0.02, 0.05};
    rig_set(&rig, "latency:repetitions=3");
    for (size_t i = 0; i < 2; i++) {
        rig.runner.rewarm_s = told[i];
        double begun = lap_clock_now(), least = 0;
        run_all();
        double spent = lap_clock_now() - begun;
        for (int k = 0; k < ROWS; k++) {
            assert_true(rows[k].latency.blocks > 1);
            least += (double)(rows[k].latency.blocks - 1) * seconds[i];
        }
        if (spent < least) fail_msg("%g s in all, %g s of warming up", spent, least);
        free_all();
    }
}

static void sequential_on_request(void **state) {
    (void)state;
    rig_set(&rig, "run:order=sequential");
    run_all();
    for (int i = 0; i < ROWS; i++) {
        assert_good(&rows[i]);
        assert_false(rows[i].latency.interleaved);
        assert_int_equal(rows[i].latency.blocks, 1);
    }
    free_all();
    rig_set(&rig, "run:order=auto"); /* one device: no turns unless asked for */
    cases[1].device = cases[0].device;
    run_all();
    assert_false(rows[0].latency.interleaved);
    free_all();
    rig_set(&rig, "run:order=interleaved");
    run_all();
    assert_true(rows[0].latency.interleaved && rows[1].latency.interleaved);
    free_all();
}

/* Which row each timed launch belonged to, by the batch it was given and its device. */
static char turns[1 << 16];
static size_t turn_count;

static double watch(const char *stem, const lap_raw_launch *launch) {
    if (strcmp(stem, "fc_naive") == 0 && turn_count < sizeof turns - 1) {
        char who = (char)('0' + launch->args[4].i32);
        if (turn_count == 0 || turns[turn_count - 1] != who) turns[turn_count++] = who;
    }
    return 1e-5;
}

static void record_turns(void) {
    turn_count = 0;
    fake.cost = watch;
    cases[1].batch = 4;
    run_all();
    turns[turn_count] = '\0';
    fake.cost = NULL;
    for (int i = 0; i < ROWS; i++)
        assert_good(&rows[i]);
    free_all();
}

static void order_comes_from_the_seed(void **state) {
    (void)state;
    fake_ops.graph_begin = NULL; /* launches in a graph have no cost of their own */
    record_turns();
    char *first = strdup(turns);
    assert_non_null(first);
    assert_true(turn_count > 25); /* many short turns, not three long ones */
    record_turns();
    assert_string_equal(turns, first);
    rig_set(&rig, "run:seed=2");
    record_turns();
    assert_string_not_equal(turns, first);
    free(first);
}

/* A wrong kernel in one row: that row fails, the others stand. */
static void wrong_results_stay_alone(void **state) {
    (void)state;
    cases[1].batch = 2;
    uint64_t good = 0;
    unsigned verify_failures = 0;
    for (; good < 2000; good += 97) {
        bad_plant(&rig.runner.net->ops[0], BAD_LATE, good);
        run_all();
        for (int i = 0; i < ROWS; i++) {
            if (rows[i].status == LAP_ROW_OK) {
                assert_good(&rows[i]);
            } else {
                assert_int_equal(rows[i].cause, LAP_E_VERIFY);
                assert_no_times(&rows[i]);
                verify_failures++;
            }
        }
        free_all();
        bad_plant(&rig.runner.net->ops[0], BAD_NONE, 0);
    }
    assert_true(verify_failures > 0);
}

/* One failing call at many places: never a crash or a leak; at most the row it hit fails, and
 * exactly its own reason is told. */
static void faults_stay_alone(void **state) {
    (void)state;
    const lap_status faults[] = {LAP_E_LAUNCH, LAP_E_DEVICE, LAP_E_OOM};
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        unsigned failed_rows = 0, postponed = 0;
        for (uint64_t nth = 1;; nth += 97) {
            lap_device_fault_arm(nth, faults[f]);
            rig.runner.floor_count = 0;
            run_all();
            bool reached = lap_device_fault_arm(0, LAP_OK) >= nth;
            unsigned failed = 0;
            for (int i = 0; i < ROWS; i++) {
                failed += rows[i].status != LAP_ROW_OK;
                postponed += noted(&rows[i], "order: sequential, because");
                if (rows[i].status == LAP_ROW_OK)
                    assert_good(&rows[i]);
                else
                    assert_non_null(strstr(rows[i].reason, "planted fault"));
            }
            assert_true(failed <= 1);
            failed_rows += failed;
            free_all();
            if (!reached) break;
        }
        print_message("%s: %u rows failed, %u were timed alone\n", lap_status_name(faults[f]),
                      failed_rows, postponed);
        /* What lacked memory beside the others is timed alone, and then it works. */
        bool memory = faults[f] == LAP_E_OOM;
        assert_true(memory ? postponed > 5 : failed_rows > 5);
        assert_true(memory || postponed == 0);
    }
}

/* Room for one row at a time only. */
static void no_room_together(void **state) {
    (void)state;
    fake.device_count = 1;
    cases[1].device = cases[0].device;
    rig_set(&rig, "run:order=sequential");
    run_all();
    uint64_t alone = fake.peak_bytes[0];
    free_all();
    rig_set(&rig, "run:order=interleaved");
    fake.devices[0].memory_bytes = alone + alone / 8;
    run_all();
    int told = 0;
    for (int i = 0; i < ROWS; i++) {
        assert_good(&rows[i]);
        told += noted(&rows[i], "order: sequential, because beside the other rows: ");
        assert_int_equal(noted(&rows[i], "order: sequential"), !rows[i].latency.interleaved);
    }
    assert_true(told > 0);
    free_all();
}

/* A context that all sessions of a device share: lost at one wait, it is lost to all, until the
 * last of them has closed. (CUDA's is lost until the process ends: test_isolated.c.) */
static struct {
    lap_status (*finish)(void *, lap_error *);
    lap_status (*open)(const lap_device_info *, void **, lap_error *);
    uint64_t waits, lose_at;
    bool lost;
} shared;

static lap_status finish_shared(void *queue, lap_error *err) {
    if (++shared.waits == shared.lose_at) shared.lost = true;
    if (shared.lost) return LAP_FAIL(err, LAP_E_DEVICE, "the context is lost");
    return shared.finish(queue, err);
}

static lap_status open_shared(const lap_device_info *info, void **device, lap_error *err) {
    if (fake_alive() == 0) shared.lost = false;
    return shared.open(info, device, err);
}

static void lost_device_is_found_again(void **state) {
    (void)state;
    shared.finish = fake_ops.queue_finish;
    shared.open = fake_ops.open;
    fake_ops.queue_finish = finish_shared;
    fake_ops.open = open_shared;
    cases[1].device = cases[0].device;
    rig_set(&rig, "run:order=interleaved");
    unsigned again = 0;
    for (shared.lose_at = 1;; shared.lose_at += 7) {
        shared.waits = 0;
        shared.lost = false;
        rig.runner.floor_count = 0;
        run_all();
        unsigned failed = 0, alone = 0;
        for (int i = 0; i < ROWS; i++) {
            failed += rows[i].status != LAP_ROW_OK;
            alone += noted(&rows[i], "order: sequential, because beside the other rows: the cont");
            if (rows[i].status == LAP_ROW_OK) assert_good(&rows[i]);
        }
        bool reached = shared.waits >= shared.lose_at;
        free_all();
        assert_true(failed <= reached); /* the one it happened in; a wait in closing costs none */
        again += alone;
        if (!reached) break;
    }
    fake_ops.queue_finish = shared.finish;
    fake_ops.open = shared.open;
    assert_true(again > 10);
}

static int calls_left;

static bool stop_later(void *context) {
    (void)context;
    return calls_left-- <= 0;
}

static void interrupted_anywhere(void **state) {
    (void)state;
    rig.runner.interrupted = stop_later;
    int with_times = 0;
    for (int asked = 0;; asked += 3) {
        calls_left = asked;
        run_all();
        int good = 0;
        for (int i = 0; i < ROWS; i++) {
            good += rows[i].status == LAP_ROW_OK;
            if (rows[i].status != LAP_ROW_OK) {
                assert_int_equal(rows[i].status, LAP_ROW_SKIPPED);
                assert_non_null(strstr(rows[i].reason, "interrupted"));
            }
            if (rows[i].latency.has) assert_true(rows[i].verified.rerun_same);
            with_times += rows[i].status != LAP_ROW_OK && rows[i].latency.has;
            json_decref(row_as_json(&rows[i]));
        }
        free_all();
        if (good == ROWS) break;
    }
    assert_true(with_times > 10);
    rig.runner.interrupted = NULL;
}

static void throughput_follows(void **state) {
    (void)state;
    for (int i = 0; i < ROWS; i++)
        cases[i].throughput = true;
    cases[2].latency = false;
    run_all();
    for (int i = 0; i < ROWS; i++) {
        assert_int_equal(rows[i].status, LAP_ROW_OK);
        assert_true(rows[i].throughput.images_per_s.has);
        assert_int_equal(rows[i].latency.has, i < 2);
    }
    free_all();
}

int main(void) {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        RIG_TEST(several_devices_take_turns), RIG_TEST(sequential_on_request),
        RIG_TEST(wrong_results_stay_alone),   RIG_TEST(faults_stay_alone),
        RIG_TEST(no_room_together),           RIG_TEST(interrupted_anywhere),
        RIG_TEST(throughput_follows),         RIG_TEST(order_comes_from_the_seed),
        RIG_TEST(lost_device_is_found_again), RIG_TEST(warm_again_each_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
