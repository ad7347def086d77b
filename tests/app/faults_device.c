/* As test_faults.c, on a real device: a whole row of the tiny network with each device call failing
 * in turn, until none is left, for every kind of error. The wrappers of src/device make the call
 * fail; the driver behind them goes on, so what was begun there must be ended there. Usage:
 * faults_device SELECTOR [STEP]    STEP: every so manyth call only. 77 without such a device. */
#include "base/text.h"
#include "device/build_cache.h"
#include "fault_checks.h"

static case_rig rig;

static bool check_row(lap_row *row, lap_status fault, uint64_t nth) {
    char call[64];
    snprintf(call, sizeof call, "planted fault at device call %llu (", (unsigned long long)nth);
    check_numbers(row);
    json_decref(row_as_json(row));
    if (row->status == LAP_ROW_OK)
        return mentions(row, call) || (fault == LAP_E_TIMER && has_bad_stamps(row));
    bool unsupported = fault == LAP_E_BUILD && row->status == LAP_ROW_UNSUPPORTED;
    if (row->status != LAP_ROW_FAILED && !unsupported)
        fail_msg("call %llu: %s", (unsigned long long)nth, lap_row_status_name(row->status));
    /* Nothing waits for the free memory; a device lost in that question is missed a call later. */
    bool named = strstr(row->reason, call) || strstr(row->reason, "lost since lap_device_memory");
    if (!named || !strstr(row->reason, "lap_"))
        fail_msg("call %llu: the reason is '%s'", (unsigned long long)nth, row->reason);
    assert_int_equal(lap_rows_exit_status(row, 1), 1);
    return true;
}

static uint64_t step = 1;

/* Returns how many faults there were; rows that went on without a word are the question for the
 * free memory, which may be unanswered. */
static unsigned sweep(lap_status fault, unsigned *failed, unsigned *silent) {
    unsigned count = 0;
    *failed = *silent = 0;
    for (uint64_t nth = 1;; nth += step) {
        lap_row row;
        lap_device_fault_arm(nth, fault);
        lap_runner_case(&rig.runner, &rig.c, &row);
        bool reached = lap_device_fault_arm(0, LAP_OK) >= nth;
        if (!reached) assert_int_equal(row.status, LAP_ROW_OK); /* and nothing was left behind */
        if (reached) {
            count++;
            *silent += !check_row(&row, fault, nth);
            *failed += row.status != LAP_ROW_OK;
        }
        lap_row_free(&row);
        if (!reached) return count;
    }
}

static void every_call(void **state) {
    (void)state;
    const lap_status faults[] = {LAP_E_OOM, LAP_E_LAUNCH, LAP_E_DEVICE, LAP_E_BUILD, LAP_E_TIMER};
    unsigned all = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        unsigned failed, silent, count = sweep(faults[i], &failed, &silent);
        print_message("%s: %u faults, %u rows failed\n", lap_status_name(faults[i]), count, failed);
        assert_true(failed > 0 && silent <= 3);
        all += count;
    }
    print_message("%u faults on %s\n", all, rig.c.device->name);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3 || (argc == 3 && (!lap_parse_u64(argv[2], &step) || step == 0))) {
        fprintf(stderr, "usage: faults_device SELECTOR [STEP]\n");
        return 2;
    }
    lap_device_list *list;
    lap_error err = {0};
    size_t *chosen = NULL, count = 0;
    rig_open(&rig);
    lap_status status = lap_device_enumerate(&list, &err);
    if (status == LAP_OK) status = lap_device_select(list, argv[1], &chosen, &count, &err);
    if (status != LAP_OK || count == 0) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    rig.c.device = &list->devices[chosen[0]];
    rig_set(&rig, "output:layers=no"); /* a row's ceilings take seconds on a processor */
    setenv("XDG_CACHE_HOME", LAP_TEST_TMP "/soak-cache", 1);
    if (lap_build_cache_open(NULL, 0, &rig.runner.cache, &err) != LAP_OK) return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_call)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lap_build_cache_close(rig.runner.cache);
    rig_close(&rig);
    free(chosen);
    lap_device_list_free(list);
    return failed;
}
