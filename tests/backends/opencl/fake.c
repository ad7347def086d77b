/* The device layer over the OpenCL backend over the real loader over a fake driver: platforms
 * without devices or with an error between good ones, strange names, one device listed twice,
 * useless time stamps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/device.h"
#include "standin/script_file.h"

#include <stdlib.h>
#include <string.h>

static lap_error err;

static void ok(lap_status status) {
    if (status != LAP_OK) fail_msg("%s: %s", lap_status_name(status), err.message);
}

static lap_device_list *enumerate(void) {
    lap_device_list *list = NULL;
    ok(lap_device_enumerate(&list, &err));
    return list;
}

static const char *note_of(const lap_device_list *list, const char *platform) {
    for (size_t i = 0; i < list->note_count; i++)
        if (strcmp(list->notes[i].platform, platform) == 0) return list->notes[i].reason;
    return "";
}

/* Four platforms, with 0, 2, an error and 1 devices; lines are said of each device and then of all.
 */
static void tell(const char *device, const char *all) {
    script_file("[platform]\n"
                "[platform]\n[device]\n%s\n[device]\n%s\n"
                "[platform]\nerror = -6\n"
                "[platform]\n[device]\n%s\n%s\n",
                device, device, device, all);
}

static int clear_settings(void **state) {
    (void)state;
    tell("", "");
    return 0;
}

static void tell_name(const char *value) {
    char line[512];
    snprintf(line, sizeof line, "name = %s", value);
    tell(line, "");
}

static void test_good_devices_among_bad_platforms(void **state) {
    (void)state;
    lap_device_list *list = enumerate();
    assert_int_equal(list->count, 3);
    assert_string_equal(list->devices[0].selector, "opencl:1:0");
    assert_string_equal(list->devices[1].selector, "opencl:1:1");
    assert_string_equal(list->devices[2].selector, "opencl:3:0");
    assert_non_null(strstr(note_of(list, "Fake 0"), "CL_DEVICE_NOT_FOUND"));
    assert_non_null(strstr(note_of(list, "Fake 2"), "CL_OUT_OF_HOST_MEMORY (-6)"));
    lap_device_list_free(list);
}

static void test_names(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        {"\"Iris\\0\"", "Iris"},
        {"Iris", "Iris"},
        {"\"Iris  \\0\\0\"", "Iris"},
        {"\"  x  \\0\"", "x"},
        {"\"A,B\\\"C\\0\"", "A,B\"C"},
        {"\"two\\nlines\\0\"", "two lines"},
        {"\"Core\\xC2\\xAE\"", "Core\xC2\xAE"},
        {"\"\\xFFx\"", "?x"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        tell_name(pairs[i][0]);
        lap_device_list *list = enumerate();
        assert_string_equal(list->devices[0].name, pairs[i][1]);
        lap_device_list_free(list);
    }
    char longest[257];
    memset(longest, 'n', 256);
    longest[256] = '\0';
    tell_name(longest);
    lap_device_list *list = enumerate();
    assert_string_equal(list->devices[0].name, longest);
    lap_device_list_free(list);
}

/* A name that ended in a NUL is found by what people type. */
static void test_selecting_by_name(void **state) {
    (void)state;
    tell_name("\"Iris Xe \\0\"");
    lap_device_list *list = enumerate();
    size_t *indices = NULL, count = 0;
    ok(lap_device_select(list, "name=iris xe", &indices, &count, &err));
    assert_int_equal(count, 3);
    free(indices);
    lap_device_list_free(list);
}

static void test_identity(void **state) {
    (void)state;
    lap_device_list *list = enumerate();
    assert_false(list->devices[0].has_uuid || list->devices[0].has_pci);
    assert_int_not_equal(list->devices[0].physical, list->devices[2].physical);
    lap_device_list_free(list);

    tell("uuid = 000102030405060708090a0b0c0d0eff\npci = 1:3f:1c.7", "");
    list = enumerate();
    const lap_device_info *info = &list->devices[0];
    assert_true(info->has_uuid && info->has_pci);
    assert_int_equal(info->uuid[1], 0x01);
    assert_int_equal(info->uuid[15], 0xff);
    assert_int_equal(info->pci_domain, 1);
    assert_int_equal(info->pci_bus, 0x3f);
    assert_int_equal(info->pci_device, 0x1c);
    assert_int_equal(info->pci_function, 7);
    assert_int_equal(info->physical, list->devices[2].physical); /* two drivers, one device */
    lap_device_list_free(list);
}

/* A device with 80 GB and one of more than 4 GiB in one piece: no size is cut to 32 bits. */
static void test_large_sizes(void **state) {
    (void)state;
    tell("memory = 85899345920\nmax_alloc = 4831838208", "");
    lap_device_list *list = enumerate();
    assert_int_equal(list->devices[0].memory_bytes, 85899345920u);
    assert_int_equal(list->devices[0].max_alloc_bytes, 4831838208u);
    lap_device *device = NULL;
    lap_buffer *buffer = NULL;
    ok(lap_device_open(&list->devices[0], &device, &err));
    ok(lap_buffer_new(device, 4831838208u, &buffer, &err));
    lap_buffer_free(buffer);
    assert_int_equal(lap_buffer_new(device, 4831838209u, &buffer, &err), LAP_E_OOM);
    assert_null(buffer);
    ok(lap_device_close(device, &err));
    lap_device_list_free(list);
}

static void expect_elapsed(const lap_event *a, const lap_event *b, const char *mode,
                           const char *text) {
    double seconds = -1;
    char line[64];
    snprintf(line, sizeof line, "[opencl]\nstamps = %s", mode);
    tell("", line);
    assert_int_equal(lap_event_elapsed(a, b, &seconds, &err), LAP_E_TIMER);
    assert_true(seconds == 0);
    assert_non_null(strstr(err.message, text));
}

static void test_stamps(void **state) {
    (void)state;
    lap_device_list *list = enumerate();
    lap_device *device = NULL;
    lap_queue *queue = NULL;
    lap_buffer *buffer = NULL;
    lap_event *a = NULL, *b = NULL;
    ok(lap_device_open(&list->devices[2], &device, &err));
    ok(lap_queue_new(device, &queue, &err));
    ok(lap_buffer_new(device, 1024, &buffer, &err));
    ok(lap_event_new(device, &a, &err));
    ok(lap_event_new(device, &b, &err));
    ok(lap_event_record(a, queue, &err));
    ok(lap_buffer_fill(queue, buffer, 0, 1024, 1, &err));
    ok(lap_event_record(b, queue, &err));
    ok(lap_event_wait(b, &err));
    double seconds = 0;
    ok(lap_event_elapsed(a, b, &seconds, &err));
    assert_true(seconds > 0 && seconds < 10);
    expect_elapsed(a, b, "zero", "zero");
    expect_elapsed(a, b, "reversed", "reversed");
    expect_elapsed(a, b, "equal", "same stamp");
    expect_elapsed(a, b, "missing", "no time stamps");
    lap_event_free(a);
    lap_event_free(b);
    lap_buffer_free(buffer);
    lap_queue_free(queue);
    ok(lap_device_close(device, &err));
    lap_device_list_free(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_good_devices_among_bad_platforms, clear_settings),
        cmocka_unit_test_teardown(test_names, clear_settings),
        cmocka_unit_test_teardown(test_selecting_by_name, clear_settings),
        cmocka_unit_test_teardown(test_identity, clear_settings),
        cmocka_unit_test_teardown(test_large_sizes, clear_settings),
        cmocka_unit_test_teardown(test_stamps, clear_settings),
    };
    clear_settings(NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    script_none();
    return failed;
}
