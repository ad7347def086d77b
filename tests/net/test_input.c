/* Input images: synthetic ones, .npy files good and bad, and the .npy writer. */
#include "base/rng.h"
#include "net/weights.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const path = LAP_TEST_TMP "/input.npy";

enum { H = 2, W = 3, VALUES = 3 * H * W };

static void synthetic_images(void **state) {
    (void)state;
    lap_input *input;
    lap_error err = {0};
    assert_int_equal(lap_input_open("synthetic:9", 3, H, W, &input, &err), LAP_OK);
    assert_true(lap_input_distinct(input) == UINT64_MAX);
    float first[VALUES], second[VALUES], again[VALUES];
    assert_int_equal(lap_input_image(input, 0, first, &err), LAP_OK);
    assert_int_equal(lap_input_image(input, 1, second, &err), LAP_OK);
    assert_int_equal(lap_input_image(input, 0, again, &err), LAP_OK);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, second, sizeof first);
    /* The written definition, for the last value of image 1 (channel 2). */
    double noise = lap_rng_normal(9, lap_rng_stream("input") + 1, VALUES - 1);
    double cast = lap_rng_normal(9, lap_rng_stream("input.cast") + 1, 2);
    assert_true(second[VALUES - 1] == (float)(0.5 * noise + sqrt(0.75) * cast));
    lap_input_free(input);
    static const char *const bad[] = {"", "synthetic:", "synthetic:x", "synthetic:-1",
                                      "synthetic:18446744073709551616"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(lap_input_open(bad[i], 3, H, W, &input, &err), LAP_E_CONFIG);
        assert_null(input);
    }
}

/* A .npy with header text of any version and data bytes; values are 0, 1, 2, … */
static void write_npy(int version, const char *header, size_t bytes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    size_t n = strlen(header);
    fwrite("\x93NUMPY", 1, 6, file);
    fputc(version, file);
    fputc(0, file);
    fputc((int)(n & 0xFF), file);
    fputc((int)(n >> 8), file);
    if (version > 1) {
        fputc(0, file);
        fputc(0, file);
    }
    fwrite(header, 1, n, file);
    for (size_t i = 0; i * 4 < bytes; i++) {
        float value = (float)i;
        fwrite(&value, 1, bytes - i * 4 < 4 ? bytes - i * 4 : 4, file);
    }
    assert_int_equal(fclose(file), 0);
}

#define DICT(descr, order, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }   \n"

static void good_npy(void **state) {
    (void)state;
    static const char *const headers[] = {
        DICT("<f4", "False", "(2, 3, 2, 3)"),
        "{\"shape\":(2,3,2,3,),\"fortran_order\":False,\"descr\":\"<f4\"}",
    };
    for (int version = 1; version <= 3; version++)
        for (size_t i = 0; i < 2; i++) {
            write_npy(version, headers[i], 2 * VALUES * 4);
            lap_input *input;
            lap_error err = {0};
            if (lap_input_open(path, 3, H, W, &input, &err) != LAP_OK) fail_msg("%s", err.message);
            assert_int_equal(lap_input_distinct(input), 2);
            float image[VALUES];
            for (uint64_t k = 0; k < 5; k++) { /* beyond the file's two: image k mod 2 */
                assert_int_equal(lap_input_image(input, k, image, &err), LAP_OK);
                for (int j = 0; j < VALUES; j++)
                    assert_true(image[j] == (float)(k % 2 * VALUES + (uint64_t)j));
            }
            lap_input_free(input);
        }
}

static void expect_failure(lap_status status, const char *spec, const char *says) {
    lap_input *input = (lap_input *)&(int){0};
    lap_error err = {0};
    assert_int_equal(lap_input_open(spec, 3, H, W, &input, &err), status);
    assert_null(input);
    if (!strstr(err.message, says)) fail_msg("\"%s\" lacks \"%s\"", err.message, says);
}

static void bad_npy(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;
    } cases[] = {
        {DICT("<f8", "False", "(1, 3, 2, 3)"), 144, "dtype \"<f8\": expected \"<f4\""},
        {DICT(">f4", "False", "(1, 3, 2, 3)"), 72, "expected \"<f4\""},
        {DICT("|u1", "False", "(1, 3, 2, 3)"), 18, "expected \"<f4\""},
        {DICT("<f4", "True", "(1, 3, 2, 3)"), 72, "Fortran order"},
        {DICT("<f4", "Maybe", "(1, 3, 2, 3)"), 72, "True or False"},
        {DICT("<f4", "False", "(3, 2, 3)"), 72, "shape (3, 2, 3): expected (n, 3, 2, 3)"},
        {DICT("<f4", "False", "(1, 2, 3, 3)"), 72, "shape (1, 2, 3, 3): expected"},
        {DICT("<f4", "False", "()"), 4, "shape (): expected"},
        {DICT("<f4", "False", "(72)"), 288, "',' or ')'"},
        {DICT("<f4", "False", "(1, 3, 2, -3)"), 72, "a dimension"},
        {DICT("<f4", "False", "(0, 3, 2, 3)"), 0, "is 0: expected at least 1"},
        {DICT("<f4", "False", "(2, 3, 2, 3)"), 72, "its shape needs 144"},
        {DICT("<f4", "False", "(1, 3, 2, 3)"), 73, "73 bytes of data: its shape needs 72"},
        {DICT("<f4", "False", "(4611686018427387904, 3, 2, 3)"), 72, "less data"},
        {DICT("<f4", "False", "(99999999999999999999999, 3, 2, 3)"), 72, "below 2^60"},
        {DICT("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 72)"), 72, "at most 8 dimensions"},
        {"{'descr': '<f4', 'shape': (1, 3, 2, 3), }", 72, "\"fortran_order\" is missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'shape': (1, 3, 2, 3), }", 72, "once each"},
        {"{'descr': '<f4', 'order': 1}", 72, "key \"order\""},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (18,)}", 72, "structured"},
        {"{'descr': '<f4", 72, "quoted string"},
        {DICT("<f4", "False", "(1, 3, 2, 3)") "x", 72, "end of the header"},
        {"", 72, "expected '{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_npy(1, cases[i].header, cases[i].bytes);
        expect_failure(LAP_E_FORMAT, path, cases[i].says);
    }
    write_npy(4, DICT("<f4", "False", "(1, 3, 2, 3)"), 72);
    expect_failure(LAP_E_FORMAT, path, "npy version 4.0");
    write_npy(1, DICT("<f4", "False", "(1, 3, 2, 3)"), 72);
    assert_int_equal(truncate(path, 30), 0);
    expect_failure(LAP_E_FORMAT, path, "npy header of");
    assert_int_equal(truncate(path, 9), 0);
    expect_failure(LAP_E_FORMAT, path, "not a .npy");
    assert_int_equal(truncate(path, 0), 0);
    expect_failure(LAP_E_FORMAT, path, "empty");
    expect_failure(LAP_E_IO, "/", "directory");
    expect_failure(LAP_E_IO, "/dev/zero", "device");
    expect_failure(LAP_E_IO, LAP_TEST_TMP "/none.npy", "No such file");
}

static void values_must_be_finite(void **state) {
    (void)state;
    float data[2 * VALUES] = {0};
    data[VALUES + 4] = NAN;
    const uint64_t shape[] = {2, 3, H, W};
    assert_int_equal(lap_npy_write(path, data, shape, 4, true, NULL), LAP_OK);
    lap_input *input;
    lap_error err = {0};
    float image[VALUES];
    assert_int_equal(lap_input_open(path, 3, H, W, &input, &err), LAP_OK);
    assert_int_equal(lap_input_image(input, 0, image, &err), LAP_OK);
    assert_int_equal(lap_input_image(input, 1, image, &err), LAP_E_FORMAT);
    assert_non_null(strstr(err.message, "image 1, value 4 is"));
    lap_input_free(input);
}

static size_t size_of(const char *name) {
    struct stat info;
    return stat(name, &info) == 0 ? (size_t)info.st_size : 0;
}

/* A file that cannot be written to its end leaves the one before it as it was, also through a link,
 * and nothing beside it. */
static void kept_when_writing_fails(void **state) {
    (void)state;
    static const char link_path[] = LAP_TEST_TMP "/input-link.npy";
    static float many[4096];
    const float few[] = {1, 2};
    const uint64_t small[] = {2}, large[] = {4096};
    struct rlimit limit, little;
    char temporary[512];
    unlink(path);
    unlink(link_path);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(lap_npy_write(path, few, small, 1, false, NULL), LAP_OK);
    assert_int_equal(chmod(path, 0600), 0);
    size_t before = size_of(path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    little = limit;
    little.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    lap_error err = {0};
    lap_status status = lap_npy_write(link_path, many, large, 1, true, &err);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, LAP_E_IO);
    assert_non_null(strstr(err.message, link_path));
    assert_int_equal(size_of(path), before);
    snprintf(temporary, sizeof temporary, "%s.%ld-0.tmp", path, (long)getpid());
    assert_int_not_equal(access(temporary, F_OK), 0);
    /* Then it works, in the same place and with the same permissions. */
    assert_int_equal(lap_npy_write(link_path, many, large, 1, true, &err), LAP_OK);
    struct stat info;
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 128 + sizeof many);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(lap_npy_write("/dev/null", few, small, 1, true, &err), LAP_OK);
    assert_int_equal(lap_npy_write("/dev/full", few, small, 1, true, &err), LAP_E_IO);
    unlink(link_path);
    unlink(path);
}

static void writer(void **state) {
    (void)state;
    const float data[] = {1.5f, -0.0f, 3e38f, 1e-40f, 5.0f, 6.0f};
    const uint64_t shape[] = {2, 3}, one[] = {6};
    unlink(path);
    lap_error err = {0};
    assert_int_equal(lap_npy_write(path, data, shape, 2, false, &err), LAP_OK);
    assert_int_equal(lap_npy_write(path, data, shape, 2, false, &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "--force"));
    char bytes[256];
    FILE *file = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    /* What numpy.save writes: the data starts at a multiple of 64. */
    assert_int_equal(n, 128 + sizeof data);
    assert_memory_equal(bytes,
                        "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, "
                        "'shape': (2, 3), }",
                        10 + 59);
    assert_int_equal(bytes[127], '\n');
    assert_memory_equal(bytes + 128, data, sizeof data);
    assert_int_equal(lap_npy_write(path, data, one, 1, true, &err), LAP_OK);
    file = fopen(path, "rb");
    n = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    bytes[n] = '\0';
    assert_non_null(strstr(bytes + 10, "'shape': (6,), }"));
    assert_int_equal(lap_npy_write(path, data, one, 0, true, &err), LAP_E_ARG);
    assert_int_equal(lap_npy_write("/dev/full", data, one, 1, true, &err), LAP_E_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(synthetic_images), cmocka_unit_test(good_npy),
        cmocka_unit_test(bad_npy),          cmocka_unit_test(kept_when_writing_fails),
        cmocka_unit_test(writer),           cmocka_unit_test(values_must_be_finite),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
