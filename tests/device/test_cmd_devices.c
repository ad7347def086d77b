/* `warmlap devices` over the fake backend: grouping, JSON, notes, exit statuses. */
#include "fixture.h"

#include "app/commands.h"
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

static char output[32768], complaint[4096];

static void slurp(const char *path, char *buffer, size_t size) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    buffer[fread(buffer, 1, size - 1, file)] = '\0';
    fclose(file);
}

static int redirect(int from, const char *path) {
    int saved = dup(from), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(saved >= 0 && to >= 0);
    assert_int_equal(dup2(to, from), from);
    close(to);
    return saved;
}

static void restore(int from, int saved) {
    dup2(saved, from);
    close(saved);
}

/* Runs the command with up to two arguments; fills output and complaint. */
static int devices(const char *a, const char *b) {
    static char words[3][32];
    char *argv[4] = {words[0], words[1], words[2], NULL};
    snprintf(words[0], sizeof words[0], "devices");
    snprintf(words[1], sizeof words[1], "%s", a ? a : "");
    snprintf(words[2], sizeof words[2], "%s", b ? b : "");
    static const char out[] = LAP_TEST_TMP "/devices.out", bad[] = LAP_TEST_TMP "/devices.err";
    fflush(stdout);
    int saved_out = redirect(STDOUT_FILENO, out), saved_err = redirect(STDERR_FILENO, bad);
    int status = cmd_devices(1 + (a != NULL) + (b != NULL), argv);
    fflush(stdout);
    restore(STDOUT_FILENO, saved_out);
    restore(STDERR_FILENO, saved_err);
    slurp(out, output, sizeof output);
    slurp(bad, complaint, sizeof complaint);
    return status;
}

/* Devices 0 and 2 are one GPU, known by UUID on one route and by UUID and PCI on the other. */
static void three_routes(void) {
    fake_setup();
    fake.device_count = 3;
    strcpy(fake.devices[0].name, "  A,B\"C\xC2\xAE\n");
    for (size_t i = 0; i < 3; i += 2) {
        fake.devices[i].has_uuid = true;
        for (size_t b = 0; b < 16; b++)
            fake.devices[i].uuid[b] = (uint8_t)(b * 17);
    }
    fake.devices[2].has_pci = true;
    fake.devices[2].pci_bus = 0x1A;
    fake.devices[1].type = LAP_DEVICE_CPU;
    fake.devices[1].units = 0;
    fake.devices[1].memory_bytes = 5000000000u;
    fake.devices[1].cc_major = 9;
    fake.devices[1].timer_resolution_s = 0;
    fake.note = "nothing here";
}

static json_t *parse(void) {
    json_error_t error;
    json_t *root = json_loads(output, JSON_REJECT_DUPLICATES, &error);
    if (!root) fail_msg("line %d: %s in: %s", error.line, error.text, output);
    return root;
}

static const char *text_at(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    if (!text) fail_msg("no text \"%s\"", key);
    return text;
}

static void test_json(void **state) {
    (void)state;
    three_routes();
    assert_int_equal(devices("--json", NULL), LAP_EXIT_OK);
    assert_string_equal(complaint, "");
    json_t *root = parse();
    assert_string_equal(text_at(root, "schema"), "warmlap-devices/1");
    json_t *list = json_object_get(root, "devices");
    assert_int_equal(json_array_size(list), 2);
    json_t *gpu = json_array_get(list, 0), *cpu = json_array_get(list, 1);
    assert_string_equal(text_at(gpu, "name"), "A,B\"C\xC2\xAE");
    assert_string_equal(text_at(gpu, "uuid"), "00112233-4455-6677-8899-aabbccddeeff");
    assert_string_equal(text_at(gpu, "pci"), "0000:1a:00.0");
    assert_string_equal(text_at(gpu, "type"), "gpu");
    json_t *routes = json_object_get(gpu, "routes");
    assert_int_equal(json_array_size(routes), 2);
    assert_string_equal(text_at(json_array_get(routes, 0), "selector"), "fake:0");
    assert_string_equal(text_at(json_array_get(routes, 1), "selector"), "fake:2");
    assert_true(json_is_null(json_object_get(cpu, "uuid")));
    assert_true(json_is_null(json_object_get(cpu, "pci")));
    json_t *route = json_array_get(json_object_get(cpu, "routes"), 0);
    assert_true(json_is_null(json_object_get(route, "units")));
    assert_true(json_is_null(json_object_get(route, "timer_resolution_s")));
    assert_true(json_integer_value(json_object_get(route, "memory_bytes")) == 5000000000);
    assert_string_equal(text_at(route, "compute_capability"), "9.0");
    json_t *precisions = json_object_get(route, "precisions");
    assert_string_equal(json_string_value(json_array_get(precisions, 0)), "fp32");
    bool found = false;
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(root, "notes"), i, note) found =
        found || strcmp(text_at(note, "reason"), "nothing here") == 0;
    assert_true(found);
    json_decref(root);
}

static void assert_has(const char *text) {
    if (!strstr(output, text)) fail_msg("\"%s\" is not in: %s", text, output);
}

static void test_text(void **state) {
    (void)state;
    three_routes();
    assert_int_equal(devices(NULL, NULL), LAP_EXIT_OK);
    assert_string_equal(complaint, "");
    assert_has("A,B\"C\xC2\xAE (gpu, Fake Vendor)\n  uuid 00112233-");
    assert_has("  pci 0000:1a:00.0\n  fake:0\n");
    assert_has("  fake:2\n");
    assert_has("Fake Device 1 (cpu, Fake Vendor)\n  fake:1\n");
    assert_has("4.7 GiB, largest allocation 512.0 MiB, cache 1.0 MiB");
    assert_has("unknown, clock 1000 MHz, vector or warp width 32, compute capability 9.0");
    assert_has("group 1024 (1024 x 1024 x 64), local memory 32.0 KiB (in global memory)");
    assert_has("precisions  fp32");
    assert_has("  fake, Fake Platform B: nothing here\n");
    /* One block a physical device: the third route is not a block of its own. */
    assert_null(strstr(output, "Fake Device 2"));
}

static void test_statuses(void **state) {
    (void)state;
    fake_setup();
    fake.device_count = 0;
    assert_int_equal(devices(NULL, NULL), LAP_EXIT_NO_DEVICE);
    assert_has("No device was found.");
    assert_has("not part of this build");
    assert_int_equal(devices("--json", NULL), LAP_EXIT_NO_DEVICE);
    json_t *root = parse();
    assert_int_equal(json_array_size(json_object_get(root, "devices")), 0);
    assert_true(json_array_size(json_object_get(root, "notes")) > 0);
    json_decref(root);
    assert_int_equal(devices("--help", NULL), LAP_EXIT_OK);
    assert_has("Usage: warmlap devices");
    static const char *const bad[] = {"--jsn", "x", "", "-j", "--json=1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(devices("--json", bad[i]), LAP_EXIT_USAGE);
        assert_string_equal(output, "");
        assert_non_null(strstr(complaint, "unknown argument"));
    }
    fake.enumerate_status = LAP_E_NOMEM;
    assert_int_equal(devices("--json", NULL), LAP_EXIT_FAILED);
    assert_string_equal(output, "");
    assert_non_null(strstr(complaint, "no driver"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
