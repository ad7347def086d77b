/* Many short rows in one process: memory and open files stay where they were after the first ones.
 * LAP_SOAK in the environment says how many (500). */
#include "base/text.h"
#include "case_fixture.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

enum { SETTLED = 50, ROWS_DEFAULT = 500, GROWTH_BYTES = 1 << 16 };

static case_rig rig;

static void one_row(void) {
    lap_row row;
    lap_runner_case(&rig.runner, &rig.c, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    lap_row_free(&row);
}

static size_t open_files(void) {
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) skip();
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void test_soak(void **state) {
    (void)state;
    uint64_t rows = ROWS_DEFAULT;
    const char *asked = getenv("LAP_SOAK");
    if (asked && (!lap_parse_u64(asked, &rows) || rows == 0))
        fail_msg("LAP_SOAK=%s: expected a count", asked);
    rig_open(&rig);
    for (int i = 0; i < SETTLED; i++)
        one_row();
    size_t files = open_files(), bytes = mallinfo2().uordblks;
    for (uint64_t i = 0; i < rows; i++)
        one_row();
    size_t files_after = open_files(), bytes_after = mallinfo2().uordblks;
    print_message("%llu rows: %zu bytes in use before, %zu after; %zu open files, %zu after\n",
                  (unsigned long long)rows, bytes, bytes_after, files, files_after);
    assert_int_equal(files_after, files);
    assert_true(bytes_after < bytes + GROWTH_BYTES);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_soak)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
