/* The tune store: what it reads and refuses, two writers at once, and when an entry is used. */
#include "tune/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[512];

static int set_up(void **state) {
    (void)state;
    char command[700];
    snprintf(path, sizeof path, "%s/store/deep/tune.txt", LAP_TEST_TMP);
    snprintf(command, sizeof command, "rm -rf '%s/store'", LAP_TEST_TMP);
    assert_int_equal(system(command), 0);
    return 0;
}

#define ENTRY "GPU\t00ff\t1.2\tNVRTC 13.0\tconv a\tfp32\t8\tconv_igemm\t0123456789abcdef\t"
#define GOOD ENTRY "BM=64 BN=32\t1e-05\t9e-06\n"

static lap_status parse(const char *text, lap_tune_store *out, lap_error *err) {
    return lap_tune_store_parse("f", text, strlen(text), out, err);
}

static void test_good(void **state) {
    (void)state;
    lap_tune_store store;
    lap_error err = {0};
    assert_int_equal(parse("warmlap-tune/1\n", &store, &err), LAP_OK);
    assert_int_equal(store.count, 0);
    lap_tune_store_free(&store);
    if (parse("warmlap-tune/1\n" GOOD, &store, &err) != LAP_OK) fail_msg("%s", err.message);
    assert_int_equal(store.count, 1);
    const lap_tune_entry *e = &store.entries[0];
    assert_string_equal(e->device, "GPU");
    assert_string_equal(e->toolchain, "NVRTC 13.0");
    assert_string_equal(e->step, "conv a");
    assert_int_equal(e->batch, 8);
    assert_true(e->source == 0x0123456789abcdefu);
    assert_string_equal(e->params, "BM=64 BN=32");
    assert_true(e->default_s == 1e-5 && e->tuned_s == 9e-6);
    lap_tune_store_free(&store);
}

static void test_bad(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "f:1: the file is empty"},
        {"warmlap-tune/2\n", "f:1: 'warmlap-tune/2': this program reads warmlap-tune/1"},
        {"warmlap-tune/0\n" GOOD, "'warmlap-tune/0'"},
        {"warmlap-tune/1 \n", "f:1:"},
        {GOOD, "f:1:"},
        {"warmlap-tune/1", "f:1: the line has no end"},
        {"warmlap-tune/1\n" ENTRY "-\t1\t1", "f:2: the line has no end"},
        {"warmlap-tune/1\n\n", "f:2: 1 fields"},
        {"warmlap-tune/1\n" ENTRY "-\t1\n", "f:2: 11 fields"},
        {"warmlap-tune/1\n" ENTRY "-\t1\t1\t\n", "f:2: 13 fields"},
        {"warmlap-tune/1\n" GOOD GOOD, "f:3: the key of line 2 a second time"},
        {"warmlap-tune/1\n\t-\td\tt\ts\tfp32\t1\tk\t0123456789abcdef\t-\t1\t1\n", "f:2: field 1"},
        {"warmlap-tune/1\n G\t-\td\tt\ts\tfp32\t1\tk\t0123456789abcdef\t-\t1\t1\n", "field 1"},
        {"warmlap-tune/1\nG\t-\td\tt\ts\tfp33\t1\tk\t0123456789abcdef\t-\t1\t1\n", "field 6"},
        {"warmlap-tune/1\nG\t-\td\tt\ts\tfp32\t3\tk\t0123456789abcdef\t-\t1\t1\n", "field 7"},
        {"warmlap-tune/1\nG\t-\td\tt\ts\tfp32\t0\tk\t0123456789abcdef\t-\t1\t1\n", "field 7"},
        {"warmlap-tune/1\nG\t-\td\tt\ts\tfp32\t1\tk\t0123456789abcdeg\t-\t1\t1\n", "field 9"},
        {"warmlap-tune/1\nG\t-\td\tt\ts\tfp32\t1\tk\t0123456789abcde\t-\t1\t1\n", "field 9"},
        {"warmlap-tune/1\n" ENTRY "BM\t1\t1\n", "field 10"},
        {"warmlap-tune/1\n" ENTRY "BM=\t1\t1\n", "field 10"},
        {"warmlap-tune/1\n" ENTRY "BM=x\t1\t1\n", "field 10"},
        {"warmlap-tune/1\n" ENTRY "-\t0\t1\n", "field 11"},
        {"warmlap-tune/1\n" ENTRY "-\t1\tnan\n", "field 12"},
        {"warmlap-tune/1\n" ENTRY "-\t1\t-1\n", "field 12"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_tune_store store;
        lap_error err = {0};
        if (parse(cases[i].text, &store, &err) != LAP_E_FORMAT)
            fail_msg("accepted: %s", cases[i].text);
        if (!strstr(err.message, cases[i].says))
            fail_msg("expected '%s', got '%s'", cases[i].says, err.message);
        assert_int_equal(store.count, 0);
    }
    lap_tune_store store;
    assert_int_equal(lap_tune_store_parse("f", "warmlap-tune/1\n\0", 16, &store, NULL),
                     LAP_E_FORMAT);
}

static lap_tune_entry numbered(int writer, int number) {
    lap_tune_entry e = {.device = "D",
                        .uuid = "-",
                        .driver = "d",
                        .toolchain = "t",
                        .precision = "fp32",
                        .batch = 1,
                        .kernel = "k",
                        .source = 7,
                        .default_s = 2,
                        .tuned_s = 1};
    snprintf(e.step, sizeof e.step, "step %d of %d", number, writer);
    return e;
}

static void test_merge(void **state) {
    (void)state;
    lap_tune_store store;
    lap_error err = {0};
    assert_int_equal(lap_tune_store_load(path, &store, &err), LAP_OK); /* there is none */
    assert_int_equal(store.count, 0);
    lap_tune_entry two[] = {numbered(0, 0), numbered(0, 1)};
    if (lap_tune_store_merge(path, two, 2, &err) != LAP_OK) fail_msg("%s", err.message);
    two[1].tuned_s = 0.5;
    assert_int_equal(lap_tune_store_merge(path, &two[1], 1, &err), LAP_OK);
    assert_int_equal(lap_tune_store_load(path, &store, &err), LAP_OK);
    assert_int_equal(store.count, 2);
    assert_true(store.entries[0].tuned_s == 1 && store.entries[1].tuned_s == 0.5);
    lap_tune_store_free(&store);
    /* What cannot be read is not overwritten. */
    FILE *f = fopen(path, "w");
    fputs("warmlap-tune/9\n", f);
    fclose(f);
    assert_int_equal(lap_tune_store_merge(path, two, 2, &err), LAP_E_FORMAT);
    assert_int_equal(lap_tune_store_load(path, &store, &err), LAP_E_FORMAT);
    assert_int_equal(lap_tune_store_merge("/dev/null/x", two, 2, &err), LAP_E_IO);
}

/* A link to a store stays a link, and what it names is replaced; a link to nothing is refused
 * before anything is tuned. */
static void test_link(void **state) {
    (void)state;
    lap_tune_entry e[] = {numbered(0, 0), numbered(0, 1)};
    lap_tune_store store;
    lap_error err = {0};
    struct stat st;
    char name[sizeof path + 8];
    snprintf(name, sizeof name, "%s.link", path);
    unlink(name);
    assert_int_equal(lap_tune_store_merge(path, &e[0], 1, &err), LAP_OK);
    assert_int_equal(symlink(strrchr(path, '/') ? strrchr(path, '/') + 1 : path, name), 0);
    assert_int_equal(lap_tune_store_merge(name, &e[1], 1, &err), LAP_OK);
    assert_true(lstat(name, &st) == 0 && S_ISLNK(st.st_mode));
    assert_int_equal(lap_tune_store_load(path, &store, &err), LAP_OK);
    assert_int_equal(store.count, 2);
    lap_tune_store_free(&store);
    unlink(path);
    assert_int_equal(lap_tune_store_load(name, &store, &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "symbolic link"));
    assert_int_equal(lap_tune_store_merge(name, e, 2, &err), LAP_E_IO);
    assert_true(lstat(name, &st) == 0 && S_ISLNK(st.st_mode));
    unlink(name);
}

/* Writers in processes of their own: every line of each is there in the end. */
static void test_two_writers(void **state) {
    (void)state;
    enum { WRITERS = 2, EACH = 25 };
    for (int w = 0; w < WRITERS; w++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0) continue;
        for (int i = 0; i < EACH; i++) {
            lap_tune_entry e = numbered(w, i);
            if (lap_tune_store_merge(path, &e, 1, NULL) != LAP_OK) _exit(1);
        }
        _exit(0);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    lap_tune_store store;
    assert_int_equal(lap_tune_store_load(path, &store, NULL), LAP_OK);
    assert_int_equal(store.count, WRITERS * EACH);
    lap_tune_store_free(&store);
}

static void test_path(void **state) {
    (void)state;
    char *out;
    lap_error err = {0};
    assert_int_equal(lap_tune_store_path("given.txt", &out, &err), LAP_OK);
    assert_string_equal(out, "given.txt");
    free(out);
    setenv("XDG_DATA_HOME", "/data", 1);
    assert_int_equal(lap_tune_store_path("", &out, &err), LAP_OK);
    assert_string_equal(out, "/data/warmlap/tune.txt");
    free(out);
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("HOME", "/home/x", 1);
    assert_int_equal(lap_tune_store_path("", &out, &err), LAP_OK);
    assert_string_equal(out, "/home/x/.local/share/warmlap/tune.txt");
    free(out);
    unsetenv("HOME");
    assert_int_equal(lap_tune_store_path("", &out, &err), LAP_E_CONFIG);
    assert_non_null(strstr(err.message, "--store"));
}

/* An entry is used on the device, driver, toolchain, source, precision and bucket it is about. */
static void test_choose(void **state) {
    (void)state;
    lap_net *net;
    assert_int_equal(lap_net_build("resnet18", 64, 64, &net, NULL), LAP_OK);
    lap_device_info device = {.backend = "x",
                              .language = "cl",
                              .name = "CPU",
                              .driver = "1",
                              .toolchain = "t",
                              .type = LAP_DEVICE_CPU,
                              .simd_width = 8,
                              .max_group_size = 64};
    const lap_kernel_row *row = lap_kernel_find("conv_direct_v");
    assert_non_null(row);
    lap_case c = {.op = &net->ops[2], .device = &device, .n = 5};
    lap_candidate candidate = {.row = row};
    row->defaults(&c, &candidate.params);
    candidate.params.value[1] = 3; /* PIXELS */
    lap_tune_entry entry;
    lap_tune_entry_fill(&entry, &c, &candidate);
    assert_int_equal(entry.batch, 4);
    lap_tune_store store = {.entries = &entry, .count = 1};
    assert_ptr_equal(lap_tune_store_choose(&store, &c), row);
    assert_int_equal(c.params.value[1], 3);
    c.n = 7;
    assert_ptr_equal(lap_tune_store_choose(&store, &c), row);
    c.n = 8;
    assert_null(lap_tune_store_choose(&store, &c));
    c.n = 4;
    c.precision = LAP_FP16;
    assert_null(lap_tune_store_choose(&store, &c));
    c.precision = LAP_FP32;
    char *const fields[] = {device.name, device.driver, device.toolchain};
    for (size_t i = 0; i < 3; i++) {
        fields[i][0] ^= 1;
        assert_null(lap_tune_store_choose(&store, &c));
        fields[i][0] ^= 1;
    }
    device.has_uuid = true;
    assert_null(lap_tune_store_choose(&store, &c));
    device.has_uuid = false;
    entry.source ^= 1; /* the kernel was changed since */
    assert_null(lap_tune_store_choose(&store, &c));
    entry.source ^= 1;
    c.op = &net->ops[7]; /* another layer */
    assert_null(lap_tune_store_choose(&store, &c));
    c.op = &net->ops[2];
    snprintf(entry.params, sizeof entry.params, "V=8 PIXELS=14 BLOCKS=8 UNROLL=1 IMAGES_INNER=0");
    assert_null(lap_tune_store_choose(&store, &c)); /* not valid */
    snprintf(entry.params, sizeof entry.params, "V=8 PIXELS=4");
    assert_null(lap_tune_store_choose(&store, &c));
    snprintf(entry.kernel, sizeof entry.kernel, "conv_of_the_future");
    assert_null(lap_tune_store_choose(&store, &c));
    lap_net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test_setup(test_merge, set_up),
        cmocka_unit_test_setup(test_link, set_up),
        cmocka_unit_test_setup(test_two_writers, set_up),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
