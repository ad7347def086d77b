/* Where NVRTC is looked for, in which order, and that a message names every place. This program's
 * own dlopen stands in for the loader, so the answer does not depend on the machine. */
#include "collect.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static char tried[16][64];
static size_t tried_count;
static const char *answer; /* what dlerror says */

void *dlopen(const char *file, int flags) {
    (void)flags;
    assert_true(tried_count < 16);
    snprintf(tried[tried_count++], sizeof tried[0], "%s", file ? file : "(program)");
    return NULL;
}

char *dlerror(void) {
    return (char *)(uintptr_t)answer;
}

static int setup(void **state) {
    (void)state;
    standin_reset();
    lap_cuda_nvrtc_forget();
    tried_count = 0;
    answer = "cannot open shared object file: No such file or directory";
    unsetenv("LAP_NVRTC");
    unsetenv("CUDA_HOME");
    return 0;
}

static void look(lap_error *err, const char *const *expected, size_t count) {
    int major = 1, minor = 1;
    memset(err, 0, sizeof *err);
    assert_int_equal(lap_cuda_nvrtc_version(&major, &minor, NULL, err), LAP_E_UNSUPPORTED);
    assert_int_equal(major, 0);
    assert_int_equal(tried_count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(tried[i], expected[i]);
}

static const char *const everywhere[] = {
    "libnvrtc.so",
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "/opt/cu/lib64/libnvrtc.so",
    "/opt/cu/lib64/libnvrtc.so.13",
    "/opt/cu/lib64/libnvrtc.so.12",
    "/usr/local/cuda/lib64/libnvrtc.so",
    "/usr/local/cuda/lib64/libnvrtc.so.13",
    "/usr/local/cuda/lib64/libnvrtc.so.12",
};

static void test_with_home(void **state) {
    (void)state;
    setenv("CUDA_HOME", "/opt/cu", 1);
    lap_error err;
    look(&err, everywhere, 9);
    assert_string_equal(err.message,
                        "NVRTC not found, looked for libnvrtc.so, libnvrtc.so.13 and "
                        "libnvrtc.so.12 on the loader's path, in /opt/cu/lib64/ (CUDA_HOME) and in "
                        "/usr/local/cuda/lib64");
    /* Asked again, the same answer without looking again. */
    look(&err, everywhere, 9);
    assert_contains(err.message, "NVRTC not found");
}

static void test_without_home(void **state) {
    (void)state;
    const char *const places[] = {everywhere[0], everywhere[1], everywhere[2],
                                  everywhere[6], everywhere[7], everywhere[8]};
    lap_error err;
    look(&err, places, 6);
    assert_contains(err.message, "$CUDA_HOME/lib64 (CUDA_HOME is not set) and");
}

static void test_override(void **state) {
    (void)state;
    setenv("LAP_NVRTC", "/my/nvrtc.so", 1);
    const char *const places[] = {"/my/nvrtc.so"};
    lap_error err;
    look(&err, places, 1); /* and nowhere else: the user's word counts */
    assert_contains(err.message, "/my/nvrtc.so (LAP_NVRTC)");
}

static void test_broken_file(void **state) {
    (void)state;
    answer = "/x/libnvrtc.so: wrong ELF class: ELFCLASS32";
    setenv("LAP_NVRTC", "/x/libnvrtc.so", 1);
    const char *const places[] = {"/x/libnvrtc.so"};
    lap_error err;
    look(&err, places, 1);
    assert_contains(err.message, "wrong ELF class");
}

static void test_note_and_build(void **state) {
    (void)state;
    lap_list_builder list;
    collect(&list);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.devices[0].toolchain, "NVRTC missing");
    void *device, *kernel;
    lap_error err = {0};
    assert_ok(lap_cuda_ops.open(&list.devices[0], &device, &err));
    lap_build build = {"stem", "text", "lap_x", NULL, 0};
    lap_kernel_info info;
    assert_int_equal(lap_cuda_ops.kernel_build(device, &build, &kernel, &info, &err),
                     LAP_E_UNSUPPORTED);
    assert_string_equal(err.message, list.notes[0].reason);
    lap_cuda_ops.close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_with_home, setup),
        cmocka_unit_test_setup(test_without_home, setup),
        cmocka_unit_test_setup(test_override, setup),
        cmocka_unit_test_setup(test_broken_file, setup),
        cmocka_unit_test_setup(test_note_and_build, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
