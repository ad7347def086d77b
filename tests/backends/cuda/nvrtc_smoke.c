/* The real NVRTC, where there is one: a small kernel for several architectures, and a log. Skipped
 * (77), saying why, where there is none: it needs no GPU, but it needs the library. */
#include "collect.h"

#include <stdio.h>
#include <stdlib.h>

static const char source[] = "extern \"C\" __global__ void lap_scale(float *x, int n) {\n"
                             "    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);\n"
                             "    if (i < n) x[i] *= FACTOR;\n"
                             "}\n";
static const lap_define defines[] = {{"FACTOR", 3}};
static const lap_build build = {"scale", source, "lap_scale", defines, 1};

static void test_cubin(void **state) {
    (void)state;
    const struct {
        int major, minor;
        const char *arch;
    } targets[] = {{7, 5, "sm_75"}, {8, 0, "sm_80"}, {9, 0, "sm_90a"}, {12, 0, "sm_120"}};
    int compiled = 0;
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        char arch[16];
        void *image = NULL;
        size_t bytes = 0;
        lap_error err = {0};
        lap_status status =
            lap_cuda_arch(targets[i].major, targets[i].minor, arch, sizeof arch, &err);
        if (status != LAP_OK || strcmp(arch, targets[i].arch) != 0) {
            printf("%s: not an architecture of this NVRTC (gives \"%s\")\n", targets[i].arch, arch);
            continue;
        }
        status = lap_cuda_compile(&build, arch, &image, &bytes, &err);
        if (status != LAP_OK) fail_msg("%s: %s", arch, err.message);
        assert_true(bytes > 64);
        assert_memory_equal(image, "\177ELF", 4);
        assert_non_null(memmem(image, bytes, "lap_scale", 9));
        free(image);
        compiled++;
    }
    assert_true(compiled > 0);
}

static void test_ptx(void **state) {
    (void)state;
    char arch[16];
    void *image;
    size_t bytes;
    lap_error err = {0};
    assert_ok(lap_cuda_arch(99, 9, arch, sizeof arch, &err)); /* newer than any NVRTC */
    assert_memory_equal(arch, "compute_", 8);
    assert_ok(lap_cuda_compile(&build, arch, &image, &bytes, &err));
    assert_int_equal(((char *)image)[bytes - 1], '\0');
    assert_contains((char *)image, ".entry lap_scale");
    free(image);
}

static void test_error(void **state) {
    (void)state;
    char arch[16];
    lap_error err = {0};
    void *image;
    size_t bytes;
    lap_build wrong = build;
    wrong.source = "extern \"C\" __global__ void lap_scale() { undeclared = 1; }";
    assert_ok(lap_cuda_arch(99, 9, arch, sizeof arch, &err));
    assert_int_equal(lap_cuda_compile(&wrong, arch, &image, &bytes, &err), LAP_E_BUILD);
    assert_contains(err.message, "undeclared");
    assert_contains(err.message, "scale.cu(1)");
    assert_contains(err.message, "-DFACTOR=3");
    assert_int_equal(lap_cuda_arch(2, 1, arch, sizeof arch, &err), LAP_E_BUILD);
}

int main(void) {
    int major, minor;
    const char *path;
    lap_error err = {0};
    if (lap_cuda_nvrtc_version(&major, &minor, &path, &err) != LAP_OK) {
        printf("skipped: %s\n", err.message);
        return 77;
    }
    printf("NVRTC %d.%d (%s)\n", major, minor, path);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cubin),
        cmocka_unit_test(test_ptx),
        cmocka_unit_test(test_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
