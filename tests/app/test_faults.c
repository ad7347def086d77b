/* A whole row with one device call failing, for every call there is and every way to fail: no
 * crash, no leak, no number from what failed, and a reason that names the call. The tiny network
 * keeps the thousands of rows cheap. */
#include "fault_checks.h"

static case_rig rig;

static int set_up(void **state) {
    (void)state;
    rig_open(&rig);
    /* A failure to tell the free memory is not one of the row: see test_memory_query. */
    fake_ops.memory = NULL;
    return 0;
}

static lap_status (*memory_slot)(void *, uint64_t *, uint64_t *, lap_error *);

static int tear_down(void **state) {
    (void)state;
    fake_ops.memory = memory_slot;
    rig_close(&rig);
    return 0;
}

static void check_row(lap_row *row, lap_status fault, uint64_t nth) {
    static const char planted[] = "planted fault at device call";
    char call[64];
    snprintf(call, sizeof call, "%s %llu (", planted, (unsigned long long)nth);
    if (row->status == LAP_ROW_OK) {
        bool flagged = mentions(row, call) || (fault == LAP_E_TIMER && has_bad_stamps(row));
        if (!flagged) fail_msg("call %llu: nothing tells of the fault", (unsigned long long)nth);
    } else {
        /* A device for which nothing compiles cannot do the case. */
        bool unsupported = fault == LAP_E_BUILD && row->status == LAP_ROW_UNSUPPORTED;
        assert_true(row->status == LAP_ROW_FAILED || unsupported);
        assert_non_null(row->reason);
        if (!strstr(row->reason, call) || !strstr(row->reason, "lap_"))
            fail_msg("call %llu: the reason is '%s'", (unsigned long long)nth, row->reason);
        assert_int_equal(lap_rows_exit_status(row, 1), 1);
    }
    check_numbers(row);
    json_decref(row_as_json(row));
    assert_int_equal(fake_alive(), 0);
    assert_int_equal(fake.used_bytes[0], 0);
}

/* A clean row in the same runner: a fault leaves nothing behind. */
static void check_next_row(void) {
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    if (row.status != LAP_ROW_OK) fail_msg("the row after a failed one: %s", row.reason);
    check_numbers(&row);
    lap_row_free(&row);
}

static void sweep(lap_status fault, unsigned *failed, unsigned *flagged) {
    *failed = *flagged = 0;
    for (uint64_t nth = 1;; nth++) {
        lap_row row;
        lap_device_fault_arm(nth, fault);
        lap_runner_case(&rig.runner, &rig.c, &row);
        bool reached = lap_device_fault_arm(0, LAP_OK) >= nth;
        if (!reached) {
            assert_int_equal(row.status, LAP_ROW_OK);
            lap_row_free(&row);
            return;
        }
        check_row(&row, fault, nth);
        ++*(row.status == LAP_ROW_OK ? flagged : failed);
        lap_row_free(&row);
        if (nth % 64 == 0) check_next_row();
    }
}

static void test_every_call(void **state) {
    (void)state;
    const lap_status faults[] = {LAP_E_OOM, LAP_E_LAUNCH, LAP_E_DEVICE, LAP_E_BUILD, LAP_E_TIMER};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        unsigned failed, flagged;
        sweep(faults[i], &failed, &flagged);
        print_message("%s at each call: %u rows failed, %u went on and said so\n",
                      lap_status_name(faults[i]), failed, flagged);
        assert_true(failed > 300);
        /* Only the search survives a batch that does not work, and only stamps can be done without.
         */
        bool survivable = faults[i] != LAP_E_DEVICE && faults[i] != LAP_E_BUILD;
        if (survivable) assert_true(flagged > 0);
    }
}

/* A launch that fails late, at the next wait, and takes the device with it or not. */
static void test_late_failures(void **state) {
    (void)state;
    fake_ops.graph_begin = NULL; /* launches in a graph are not counted */
    lap_status (*end)(void *, void **, lap_error *) = fake_ops.graph_end;
    for (int sticky = 0; sticky < 2; sticky++) {
        unsigned rows = 0;
        for (uint64_t nth = 1;; nth += nth < 100 ? 1 : 37) {
            fake.launches = 0;
            fake.fail_launch = nth;
            fake.fail_at_finish = true;
            fake.sticky = sticky;
            lap_row row;
            lap_runner_case(&rig.runner, &rig.c, &row);
            bool reached = fake.launches >= nth;
            fake.fail_launch = 0;
            if (!reached) {
                lap_row_free(&row);
                break;
            }
            rows++;
            bool said = mentions(&row, "an earlier launch failed");
            if (row.status == LAP_ROW_OK && !said) fail_msg("launch %llu", (unsigned long long)nth);
            if (row.status != LAP_ROW_OK && !strstr(row.reason, "an earlier launch failed"))
                fail_msg("launch %llu: %s", (unsigned long long)nth, row.reason);
            check_numbers(&row);
            lap_row_free(&row);
            assert_int_equal(fake_alive(), 0);
        }
        assert_true(rows > 50);
    }
    (void)end;
}

/* Without an answer on free memory the device's whole memory bounds the search; a lost device is
 * lost. */
static void test_memory_query(void **state) {
    (void)state;
    fake_ops.memory = memory_slot;
    unsigned silent = 0;
    for (uint64_t nth = 1; nth < 400; nth++) {
        lap_row row;
        lap_device_fault_arm(nth, LAP_E_LAUNCH);
        lap_runner_case(&rig.runner, &rig.c, &row);
        lap_device_fault_arm(0, LAP_OK);
        if (row.status == LAP_ROW_OK && !mentions(&row, "planted fault")) silent++;
        check_numbers(&row);
        lap_row_free(&row);
    }
    assert_in_range(silent, 1, 3); /* once for the row, once a batch above 1 */
}

int main(void) {
    memory_slot = fake_ops.memory;
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_every_call),
        RIG_TEST(test_memory_query),
        RIG_TEST(test_late_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
