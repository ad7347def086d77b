/* Device selectors, table-driven over a made-up list. */
#include "fixture.h"

#include <stdio.h>

static lap_error err;

/* Two GPUs by two interfaces each, a simulator that comes first on its interface, a CPU. */
static void make_list(lap_device_info d[7]) {
    static const struct {
        const char *selector, *backend, *name;
        lap_device_type type;
        uint64_t gib;
        int physical;
    } rows[7] = {
        {"cuda:0", "cuda", "NVIDIA Small", LAP_DEVICE_GPU, 8, 0},
        {"cuda:1", "cuda", "NVIDIA Large", LAP_DEVICE_GPU, 80, 1},
        {"opencl:0:0", "opencl", "Simulator", LAP_DEVICE_OTHER, 500, 2},
        {"opencl:1:0", "opencl", "NVIDIA Large", LAP_DEVICE_GPU, 81, 1},
        {"opencl:1:1", "opencl", "NVIDIA Small", LAP_DEVICE_GPU, 8, 0},
        {"opencl:3:0", "opencl", "A \"quoted\" CPU \xC2\xAE", LAP_DEVICE_CPU, 900, 3},
        {"opencl:3:2", "opencl", "Some FPGA", LAP_DEVICE_ACCELERATOR, 4, 4},
    };
    memset(d, 0, 7 * sizeof *d);
    for (size_t i = 0; i < 7; i++) {
        strcpy(d[i].selector, rows[i].selector);
        strcpy(d[i].backend, rows[i].backend);
        strcpy(d[i].name, rows[i].name);
        strcpy(d[i].platform, "Platform");
        d[i].type = rows[i].type;
        d[i].memory_bytes = rows[i].gib << 30;
        d[i].physical = rows[i].physical;
    }
    for (size_t i = 0; i < 16; i++)
        d[1].uuid[i] = d[3].uuid[i] = (uint8_t)(0xA0 + i);
    d[1].has_uuid = d[3].has_uuid = true;
    d[0].has_pci = d[1].has_pci = d[4].has_pci = true;
    d[0].pci_bus = d[4].pci_bus = 1;
    d[1].pci_bus = 0xC1;
    d[1].pci_domain = 2;
}

/* "1,3" or, on failure, "config" or "nodevice". */
static const char *choose(const lap_device_list *list, const char *selector) {
    static char text[128];
    size_t *indices, count;
    lap_error_clear(&err);
    lap_status status = lap_device_select(list, selector, &indices, &count, &err);
    if (status != LAP_OK) {
        assert_null(indices);
        assert_int_equal(count, 0);
        assert_int_equal(err.status, status);
        return status == LAP_E_CONFIG ? "config" : status == LAP_E_NODEVICE ? "nodevice" : "?";
    }
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%zu", i ? "," : "",
                 indices[i]);
    free(indices);
    return text;
}

static const struct {
    const char *selector, *wanted;
    const char *message; /* to be found in the error; NULL for none */
} cases[] = {
    {"auto", "1", NULL}, /* the most memory; CUDA although OpenCL says it has more */
    {"AUTO", "1", NULL},
    {"all", "0,1,2,3,4,5,6", NULL},
    {"cuda", "0,1", NULL},
    {"cuda:0", "0", NULL},
    {"cuda:1", "1", NULL},
    {"CUDA:1", "1", NULL},
    {"cuda:01", "1", NULL},
    {"opencl:99999999999999999999", "nodevice", "no opencl:99999999999999999999;"},
    {"opencl", "2,3,4,5,6", NULL},
    {"opencl:1", "3,4", NULL},
    {"opencl:1:1", "4", NULL},
    {"opencl:3:2", "6", NULL},
    {" cuda:1 , cuda:0 ", "0,1", NULL},
    {"cuda:1,cuda:1,cuda", "0,1", NULL},
    {"auto,opencl:0", "1,2", NULL},
    {"name=small", "0,4", NULL},
    {"name= LARGE ", "1,3", NULL},
    {"NAME=cpu \xC2\xAE", "5", NULL},
    {"name=\"quoted\"", "5", NULL},
    {"name=:", "nodevice", "matches no device"},
    {"uuid=a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", "1,3", NULL},
    {"uuid=GPU-A0A1A2A3-A4A5-A6A7-A8A9-AAABACADAEAF", "1,3", NULL},
    {"uuid=MIG-a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf", "1,3", NULL}, /* a part of a GPU */
    {"uuid=a0a1a2a3a4a5a6a7a8a9aaabacadaeaf", "1,3", NULL},
    {"uuid=00000000000000000000000000000000", "nodevice", "matches no device"},
    {"pci=0000:01:00.0", "0,4", NULL},
    {"pci=01:00.0", "0,4", NULL},
    {"pci=1:0.0", "0,4", NULL},
    {"pci=C1:00.0", "1", NULL},
    {"pci=00000002:c1:00.0", "1", NULL},
    {"pci=0000:c1:00.0", "nodevice", "matches no device"},
    {"type=gpu", "0,1,3,4", NULL},
    {"type=CPU", "5", NULL},
    {"type=accelerator", "6", NULL},
    {"type=cpu,type=accelerator", "5,6", NULL},
    /* Out of range: the valid indices are named, no other device is taken. */
    {"cuda:2", "nodevice", "the index after \"cuda:\" can only be 0-1"},
    {"cuda:99", "nodevice", "can only be 0-1"},
    {"cuda:4294967296", "nodevice", "can only be 0-1"},
    {"cuda:18446744073709551616", "nodevice", "can only be 0-1"},
    {"cuda:0:0", "nodevice", "cuda:0 takes no further index"},
    {"opencl:2", "nodevice", "can only be 0-1, 3"},
    {"opencl:3:1", "nodevice", "the index after \"opencl:3:\" can only be 0, 2"},
    {"opencl:1:1:0", "nodevice", "opencl:1:1 takes no further index"},
    {"opencl:9:9", "nodevice", "no opencl:9;"},
    {"cuda:0,cuda:7", "nodevice", "\"cuda:7\""},
    /* Not a selector at all. */
    {"", "config", "an empty selector"},
    {" ", "config", "an empty selector"},
    {",", "config", "an empty selector"},
    {"cuda:0,", "config", "an empty selector"},
    {",cuda:0", "config", "an empty selector"},
    {"cuda:0,,cuda:1", "config", "an empty selector"},
    {"cuda:", "config", "can only be 0-1"},
    {"cuda::0", "config", "a plain number"},
    {"cuda:-1", "config", "can only be 0-1"},
    {"opencl:-1", "config", "can only be 0-1, 3"},
    {"cuda:+0", "config", "a plain number"},
    {"cuda:0x", "config", "can only be 0-1"},
    {"cuda:0x0", "config", "a plain number"},
    {"cuda: 0", "config", "a plain number"},
    {"cuda:0 1", "config", "a plain number"},
    {"cuda:1e0", "config", "a plain number"},
    {"opencl:1:", "config", "a plain number"},
    {"opencl:1:x", "config", "a plain number"},
    {"opencl:1.0", "config", "a plain number"},
    {"0", "config", "not a selector"},
    {"gpu", "config", "valid forms"},
    {"cudda:0", "config", "did you mean \"cuda\""},
    {"opncl", "config", "did you mean \"opencl\""},
    {"autos", "config", "did you mean \"auto\""},
    {"alll", "config", "did you mean \"all\""},
    {"auto:0", "config", "not a selector"},
    {"all:1", "config", "not a selector"},
    {"name=", "config", "name= needs"},
    {"name=  ", "config", "name= needs"},
    {"=x", "config", "unknown key"},
    {"nam=x", "config", "unknown key"},
    {"cuda=0", "config", "unknown key"},
    {"type=", "config", "type= must be"},
    {"type=tpu", "config", "type= must be"},
    {"type=other", "config", "type= must be"},
    {"uuid=", "config", "32 hexadecimal digits"},
    {"uuid=GPU-", "config", "32 hexadecimal digits"},
    {"uuid=a0a1a2a3", "config", "32 hexadecimal digits"},
    {"uuid=a0a1a2a3a4a5a6a7a8a9aaabacadaeag", "config", "32 hexadecimal digits"},
    {"uuid=a0a1a2a3a4a5a6a7a8a9aaabacadaeaf0", "config", "32 hexadecimal digits"},
    {"uuid=a0a1a2a3-a4a5a6a7-a8a9-aaabacad-aeaf", "config", "32 hexadecimal digits"},
    {"pci=", "config", "pci= needs"},
    {"pci=01", "config", "pci= needs"},
    {"pci=01:00", "config", "pci= needs"},
    {"pci=001:00.0", "config", "pci= needs"},
    {"pci=01:20.0", "config", "pci= needs"},
    {"pci=01:00.8", "config", "pci= needs"},
    {"pci=01:00.0 ", "0,4", NULL},
    {"pci=01:00.0x", "config", "pci= needs"},
    {"pci=000000001:01:00.0", "config", "pci= needs"},
    {"pci=:01:00.0", "config", "pci= needs"},
    {"pci=g1:00.0", "config", "pci= needs"},
};

static void test_table(void **state) {
    (void)state;
    lap_device_info devices[7];
    make_list(devices);
    lap_device_list list = {.devices = devices, .count = 7};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = choose(&list, cases[i].selector);
        if (strcmp(got, cases[i].wanted) != 0)
            fail_msg("\"%s\": %s instead of %s (%s)", cases[i].selector, got, cases[i].wanted,
                     err.message);
        if (!cases[i].message) continue;
        if (!strstr(err.message, cases[i].message))
            fail_msg("\"%s\": \"%s\" is not in: %s", cases[i].selector, cases[i].message,
                     err.message);
        /* Every complaint lists what there is, a line each. */
        for (size_t d = 0; d < list.count; d++)
            assert_non_null(strstr(err.message, devices[d].selector));
    }
    printf("%zu selectors\n", sizeof cases / sizeof cases[0]);
}

/* Auto by type before memory; the first route in list order; list order among equals. */
static void test_auto(void **state) {
    (void)state;
    lap_device_info d[7];
    make_list(d);
    lap_device_list list = {.devices = d, .count = 7};
    d[0].memory_bytes = d[4].memory_bytes = d[1].memory_bytes = d[3].memory_bytes;
    assert_string_equal(choose(&list, "auto"), "0");
    /* A device is as large as its largest route says, by whichever route it is then taken. */
    d[0].memory_bytes = d[4].memory_bytes = 82ull << 30;
    d[3].memory_bytes = 83ull << 30;
    assert_string_equal(choose(&list, "auto"), "1");
    for (size_t i = 0; i < 5; i++)
        d[i].type = LAP_DEVICE_OTHER;
    assert_string_equal(choose(&list, "auto"), "6"); /* accelerator before CPU */
    d[6].type = LAP_DEVICE_OTHER;
    assert_string_equal(choose(&list, "auto"), "5"); /* CPU before the rest */
    memset(d, 0, sizeof d);
    list.count = 1; /* memory unknown */
    assert_string_equal(choose(&list, "auto"), "0");
}

static void test_empty_list(void **state) {
    (void)state;
    lap_device_note note = {.backend = "opencl", .reason = "no platform: looked in /etc"};
    lap_device_list list = {.notes = &note, .note_count = 1};
    static const char *const selectors[] = {"auto", "all", "cuda", "cuda:0", "type=gpu", "name=x"};
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
        assert_string_equal(choose(&list, selectors[i]), "nodevice");
        assert_non_null(strstr(err.message, "there is no device"));
        assert_non_null(strstr(err.message, "opencl: no platform: looked in /etc"));
    }
    size_t *indices, count;
    assert_fails(lap_device_select(NULL, "auto", &indices, &count, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_device_select(&list, NULL, &indices, &count, &err), LAP_E_ARG, "NULL");
    assert_fails(lap_device_select(&list, "auto", NULL, &count, &err), LAP_E_ARG, "NULL");
}

/* A backend without devices beside one that has some: why it has none is said. */
static void test_one_backend_empty(void **state) {
    (void)state;
    lap_device_note note = {.backend = "opencl", .reason = "no platform: looked in /etc"};
    lap_device_info d = {.backend = "cuda", .selector = "cuda:0", .name = "N"};
    lap_device_list list = {.devices = &d, .count = 1, .notes = &note, .note_count = 1};
    assert_string_equal(choose(&list, "opencl"), "nodevice");
    assert_non_null(strstr(err.message, "no platform: looked in /etc"));
    assert_non_null(strstr(err.message, "cuda:0"));
}

/* Many devices with the longest names, and a selector of absurd length: the message stays whole, in
 * valid lines, and says how many it left out. */
static void test_long(void **state) {
    (void)state;
    static lap_device_info d[64];
    static char selector[5000];
    for (size_t i = 0; i < 64; i++) {
        snprintf(d[i].selector, sizeof d[i].selector, "cuda:%zu", i);
        strcpy(d[i].backend, "cuda");
        memset(d[i].name, 'n', sizeof d[i].name - 1);
        memset(d[i].platform, 'p', sizeof d[i].platform - 1);
    }
    lap_device_list list = {.devices = d, .count = 64};
    assert_string_equal(choose(&list, "cuda:64"), "nodevice");
    assert_non_null(strstr(err.message, "can only be 0-63"));
    assert_non_null(strstr(err.message, "more"));
    assert_true(strlen(err.message) < sizeof err.message - 1);
    memset(selector, 'x', sizeof selector - 1);
    assert_string_equal(choose(&list, selector), "config");
    assert_true(strlen(err.message) < sizeof err.message - 1);
    assert_non_null(strstr(err.message, "more"));
    memcpy(selector, "cuda:", 5);
    memset(selector + 5, '9', sizeof selector - 6);
    assert_string_equal(choose(&list, selector), "nodevice");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),      cmocka_unit_test(test_auto),
        cmocka_unit_test(test_empty_list), cmocka_unit_test(test_one_backend_empty),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
