/* Building: options, targets for known, too new and too old devices, logs, images that the driver
 * refuses, an NVRTC that is missing or cannot be used. */
#include "collect.h"
#include "standin/script_file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char source[] = "extern \"C\" __global__ void lap_x() {}";

static int setup(void **state) {
    (void)state;
    script_none();
    standin_reset();
    use_nvrtc(NVRTC_STANDIN);
    return 0;
}

static void test_options(void **state) {
    (void)state;
    const lap_define defines[] = {{"TILE", 64}, {"A_NAME_AS_LONG_AS_IT_GE", INT64_MIN}};
    lap_build build = {"stem", source, "lap_x", defines, 2};
    void *image;
    size_t bytes;
    lap_error err = {0};
    assert_ok(lap_cuda_compile(&build, "sm_90a", &image, &bytes, &err));
    char expected[512];
    int n = snprintf(expected, sizeof expected,
                     "STANDIN cubin\n--std=c++17\n--gpu-architecture=sm_90a\n-DTILE=64\n"
                     "-DA_NAME_AS_LONG_AS_IT_GE=-9223372036854775808\n%s",
                     source);
    assert_string_equal(image, expected);
    assert_int_equal(bytes, n + 1);
    free(image);
    assert_ok(lap_cuda_compile(&build, "compute_80", &image, &bytes, &err));
    assert_memory_equal(image, "STANDIN ptx\n", 12);
    free(image);
}

static void arch_is(int major, int minor, const char *expected) {
    char arch[16];
    lap_error err = {0};
    assert_ok(lap_cuda_arch(major, minor, arch, sizeof arch, &err));
    assert_string_equal(arch, expected);
}

static void test_arch(void **state) {
    (void)state;
    arch_is(7, 5, "sm_75");
    arch_is(9, 0, "sm_90a");
    arch_is(12, 0, "sm_120");
    arch_is(12, 9, "compute_121"); /* newer than NVRTC */
    arch_is(8, 7, "compute_80");   /* in a gap: nothing above the device */
    char arch[16];
    lap_error err = {0};
    assert_int_equal(lap_cuda_arch(2, 1, arch, sizeof arch, &err), LAP_E_BUILD);
    assert_string_equal(arch, "");
    assert_contains(err.message, "compute capability 2.1");
    assert_contains(err.message, "NVRTC 13.0");
    assert_contains(err.message, "7.5 to 12.1");
}

/* Programs that the NVRTC stand-in still holds. */
static int programs_alive(void) {
    void *lib = dlopen(NVRTC_STANDIN, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(lib);
    int (*alive)(void);
    void *address = dlsym(lib, "nvrtc_standin_live");
    assert_non_null(address);
    memcpy(&alive, &address, sizeof alive);
    int count = alive();
    dlclose(lib);
    return count;
}

/* Build lap_x on a device of this capability; the status, the error in err. */
static lap_status build_on(int major, int minor, const char *text, const char *entry,
                           lap_error *err) {
    standin.cc_major = major;
    standin.cc_minor = minor;
    void *device, *queue, *kernel;
    open_both(&device, &queue);
    lap_build build = {"stem", text, entry, NULL, 0};
    lap_kernel_info info;
    memset(err, 0, sizeof *err);
    lap_status status = lap_cuda_ops.kernel_build(device, &build, &kernel, &info, err);
    if (status != LAP_OK) {
        assert_null(kernel);
        assert_int_equal(info.max_group_size, 0);
    }
    lap_cuda_ops.kernel_free(kernel);
    close_both(device, queue);
    assert_nothing_alive();
    return status;
}

static void test_build_by_capability(void **state) {
    (void)state;
    lap_error err;
    assert_ok(build_on(9, 0, source, "lap_x", &err));
    assert_ok(build_on(12, 9, source, "lap_x", &err));
    assert_int_equal(build_on(2, 1, source, "lap_x", &err), LAP_E_BUILD);
    assert_contains(err.message, "2.1");
    assert_int_equal(standin_calls("cudaLibraryLoadData"), 2);
}

static void test_build_info(void **state) {
    (void)state;
    standin.max_threads = 640;
    void *device, *queue, *kernel;
    open_both(&device, &queue);
    lap_build build = {"stem", source, "lap_x", NULL, 0};
    lap_kernel_info info;
    lap_error err = {0};
    assert_ok(lap_cuda_ops.kernel_build(device, &build, &kernel, &info, &err));
    assert_int_equal(info.max_group_size, 640);
    assert_int_equal(info.local_bytes, 1024);
    assert_int_equal(info.private_bytes, 16);
    assert_int_equal(info.registers, 40);
    assert_int_equal(info.preferred_multiple, 32);
    lap_cuda_ops.kernel_free(kernel);
    close_both(device, queue);
}

static void test_log(void **state) {
    (void)state;
    lap_error err;
    assert_int_equal(build_on(9, 0, "#error planted", "lap_x", &err), LAP_E_BUILD);
    assert_contains(err.message, "stem.cu (lap_x) did not compile for sm_90a with NVRTC 13.0");
    assert_contains(err.message, "stem.cu(3): error: planted");
    assert_null(strstr(err.message, "goes on"));
    assert_int_equal(err.native, 6);
    assert_string_equal(err.native_name, "NVRTC_ERROR_COMPILATION");
    assert_string_equal(err.call, "nvrtcCompileProgram");

    script_file("[nvrtc]\nlog_lines = 5000\n"); /* more than the cap of 64 KiB, too */
    assert_int_equal(build_on(9, 0, "#error planted", "lap_x", &err), LAP_E_BUILD);
    assert_contains(err.message, "stem.cu(20): error: planted");
    assert_null(strstr(err.message, "stem.cu(21)"));
    assert_contains(err.message, "(the log goes on)");
    assert_int_equal(programs_alive(), 0);
}

static void test_unknown_option(void **state) {
    (void)state;
    lap_build build = {"stem", source, "lap_x", NULL, 0};
    void *image = &build;
    size_t bytes = 1;
    lap_error err = {0};
    assert_int_equal(lap_cuda_compile(&build, "sm_33", &image, &bytes, &err), LAP_E_BUILD);
    assert_null(image);
    assert_int_equal(bytes, 0);
    assert_contains(err.message, "sm_33");
    assert_contains(err.message, "(no log)");
    assert_string_equal(err.native_name, "NVRTC_ERROR_INVALID_OPTION");
}

static void test_driver_older_than_ptx(void **state) {
    (void)state;
    standin.driver = 12040;
    standin_fail("cudaLibraryLoadData", 1, 222);
    lap_error err;
    assert_int_equal(build_on(12, 9, source, "lap_x", &err), LAP_E_BUILD);
    assert_contains(err.message, "NVRTC 13.0");
    assert_contains(err.message, "(CUDA 12.4)");
    assert_contains(err.message, "compute_121");
    assert_contains(err.message, "newer than the driver");
    assert_contains(err.message, "libnvrtc of CUDA 12.4 or older");
    assert_int_equal(err.native, 222);
    assert_string_equal(err.native_name, "cudaErrorUnsupportedPtxVersion");
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_image_refused(void **state) {
    (void)state;
    lap_error err;
    standin_fail("cudaLibraryLoadData", 1, 209);
    assert_int_equal(build_on(9, 0, source, "lap_x", &err), LAP_E_BUILD);
    assert_contains(err.message, "compiled for sm_90a by NVRTC 13.0");
    standin_fail("cudaLibraryLoadData", 1, 2);
    assert_int_equal(build_on(9, 0, source, "lap_x", &err), LAP_E_OOM);
    standin_fail("cudaFuncGetAttributes", 1, 98);
    assert_int_equal(build_on(9, 0, source, "lap_x", &err), LAP_E_BUILD);
    assert_int_equal(build_on(9, 0, source, "lap_absent", &err), LAP_E_BUILD);
    assert_contains(err.message, "lap_absent");
    assert_contains(err.message, "stem.cu");
}

static void test_nvrtc_missing(void **state) {
    (void)state;
    use_nvrtc("/nowhere/libnvrtc.so");
    lap_error err;
    assert_int_equal(build_on(9, 0, source, "lap_x", &err), LAP_E_UNSUPPORTED);
    assert_string_equal(err.message,
                        "NVRTC not found, looked for /nowhere/libnvrtc.so (LAP_NVRTC)");
}

static void test_nvrtc_unusable(void **state) {
    (void)state;
    script_file("[nvrtc]\nversion = 11.8\n");
    use_nvrtc(NVRTC_STANDIN);
    int major, minor;
    lap_error err = {0};
    assert_int_equal(lap_cuda_nvrtc_version(&major, &minor, NULL, &err), LAP_E_UNSUPPORTED);
    assert_contains(err.message, "is version 11.8, 12.0 or newer is needed");
    use_nvrtc("libm.so.6"); /* a library, but not NVRTC */
    assert_int_equal(lap_cuda_nvrtc_version(&major, &minor, NULL, &err), LAP_E_UNSUPPORTED);
    assert_contains(err.message, "libm.so.6 has no nvrtcVersion");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_options, setup),
        cmocka_unit_test_setup(test_arch, setup),
        cmocka_unit_test_setup(test_build_by_capability, setup),
        cmocka_unit_test_setup(test_build_info, setup),
        cmocka_unit_test_setup(test_log, setup),
        cmocka_unit_test_setup(test_unknown_option, setup),
        cmocka_unit_test_setup(test_driver_older_than_ptx, setup),
        cmocka_unit_test_setup(test_image_refused, setup),
        cmocka_unit_test_setup(test_nvrtc_missing, setup),
        cmocka_unit_test_setup(test_nvrtc_unusable, setup),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    script_none();
    return failed;
}
