/* Run with OCL_ICD_VENDORS pointing nowhere: no platform is a note that says what was looked for,
 * never an error and never an abort. */
#include "rig.h"

#include <string.h>

static void test_no_platform(void **state) {
    (void)state;
    const lap_device_list *list = rig_enumerate();
    assert_int_equal(list->count, 0);
    size_t own = 0; /* other notes say which backends are not built in */
    for (size_t i = 0; i < list->note_count; i++)
        if (strcmp(list->notes[i].backend, "opencl") == 0) own++;
    assert_int_equal(own, 1);
    const char *reason = list->notes[0].reason;
    assert_string_equal(list->notes[0].backend, "opencl");
    assert_string_equal(list->notes[0].platform, "");
    assert_non_null(strstr(reason, "no OpenCL platform"));
    assert_non_null(strstr(reason, "CL_PLATFORM_NOT_FOUND_KHR"));
    assert_non_null(strstr(reason, "looked for ICD files"));
    assert_non_null(strstr(reason, "OCL_ICD_VENDORS=/nonexistent/vendors"));
    assert_non_null(strstr(reason, "OCL_ICD_FILENAMES"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_platform)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
