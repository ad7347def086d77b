/* The safetensors reader on good and bad files, byte by byte, for a small made-up state dict. */
#include "net/file.h"
#include "net/safetensors.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const path = LAP_TEST_TMP "/safetensors.bin";

/* Two tensors and a counter; nothing here needs the ops. */
static lap_state_tensor tensors[] = {
    {"a.weight", LAP_STATE_WEIGHT, NULL, 2, {2, 3}, 6, false},
    {"a.bias", LAP_STATE_BIAS, NULL, 1, {2}, 2, false},
    {"n.num_batches_tracked", LAP_STATE_BN_COUNTER, NULL, 0, {0}, 1, false},
};
static const lap_state expected = {tensors, 3, NULL};

static void write_bytes(const void *head, size_t head_size, const char *header, size_t data) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, head_size, file), head_size);
    assert_int_equal(fwrite(header, 1, strlen(header), file), strlen(header));
    for (size_t i = 0; i < data; i++) /* 1.0f and others, never a NaN */
        fputc(i % 4 == 3 ? 0x3F : i % 4 == 2 ? 0x80 : (int)(i / 4), file);
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *header, size_t data) {
    unsigned char length[8];
    lap_store_u64(length, strlen(header));
    write_bytes(length, sizeof length, header, data);
}

static void expect_failure(lap_status status, const char *says) {
    lap_safetensors *file = (lap_safetensors *)tensors;
    lap_error err = {0};
    assert_int_equal(lap_safetensors_open(path, &expected, &file, &err), status);
    assert_null(file);
    if (!strstr(err.message, says)) fail_msg("\"%s\" lacks \"%s\"", err.message, says);
    assert_non_null(strstr(err.message, path));
}

#define W(type, shape, from, to)                                                                   \
    "\"a.weight\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
#define B(type, shape, from, to)                                                                   \
    "\"a.bias\":{\"dtype\":\"" type "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"
#define N(type, shape, from, to)                                                                   \
    "\"n.num_batches_tracked\":{\"dtype\":\"" type "\",\"shape\":" shape                           \
    ",\"data_offsets\":[" from "," to "]}"
#define GOOD_W W("F32", "[2,3]", "0", "24")
#define GOOD_B B("F32", "[2]", "24", "32")

static void good_files(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
    } cases[] = {
        {"{" GOOD_W "," GOOD_B "}", 32},
        {"{" GOOD_B "," GOOD_W "}      ", 32},
        {"{\"__metadata__\":{\"format\":\"pt\"}," GOOD_W "," GOOD_B
         "," N("I64", "[]", "32", "40") "}",
         40},
        {"{" B("F32", "[2]", "0", "8") "," W("F32", "[2,3]", "8", "32") "}", 32},
        {"{" W("F16", "[2,3]", "0", "12") "," B("BF16", "[2]", "12", "16") "}", 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(cases[i].header, cases[i].data);
        lap_safetensors *file;
        lap_error err = {0};
        if (lap_safetensors_open(path, &expected, &file, &err) != LAP_OK)
            fail_msg("%s", err.message);
        lap_safetensors_close(file);
    }
}

static void bad_headers(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t data;
        const char *says;
    } cases[] = {
        {"", 0, "begin with '{'"},
        {"[]", 0, "begin with '{'"},
        {" {}", 0, "begin with '{'"},
        {"{" GOOD_W "," GOOD_B, 32, "not valid JSON"},
        {"{" GOOD_W "," GOOD_B "} x", 32, "not valid JSON"},
        {"{" GOOD_W "," GOOD_W "," GOOD_B "}", 32, "duplicate"},
        {"{}", 0, "a.weight\" is missing (2 missing in all)"},
        {"{" GOOD_W "}", 24, "a.bias\" is missing (1 missing in all)"},
        {"{" GOOD_W "," GOOD_B ",\"a.bais\":{}}", 32, "closest expected name is \"a.bias\""},
        {"{\"module.a.weight\":{}}", 32, "closest expected name is \"a.weight\""},
        {"{\"wholly_different\":{}}", 32, "torchvision's names"},
        {"{\"a.weight\":7}", 32, "expected an object"},
        {"{\"a.weight\":{\"dtype\":\"F32\",\"shape\":[2,3]}}", 32, "expected an object"},
        {"{" W("F64", "[2,3]", "0", "48") "," GOOD_B "}", 56,
         "dtype F64: expected F32, F16 or BF16"},
        {"{" W("I64", "[2,3]", "0", "48") "," GOOD_B "}", 56, "dtype I64: expected F32"},
        {"{" GOOD_W "," GOOD_B "," N("F32", "[]", "32", "36") "}", 36, "expected I64"},
        {"{" W("F32", "[3,2]", "0", "24") "," GOOD_B "}", 32, "shape [3,2]: expected [2,3]"},
        {"{" W("F32", "[6]", "0", "24") "," GOOD_B "}", 32, "shape [6]: expected [2,3]"},
        {"{" W("F32", "[2,-3]", "0", "24") "," GOOD_B "}", 32, "expected [2,3]"},
        {"{" W("F32", "[2,3.0]", "0", "24") "," GOOD_B "}", 32, "expected [2,3]"},
        {"{" W("F32", "\"2,3\"", "0", "24") "," GOOD_B "}", 32, "expected [2,3]"},
        {"{" GOOD_W "," GOOD_B "," N("I64", "[1]", "32", "40") "}", 40, "expected []"},
        {"{" W("F32", "[2,3]", "0", "20") "," GOOD_B "}", 32, "span 20 bytes: expected 24"},
        {"{" W("F32", "[2,3]", "24", "0") "," GOOD_B "}", 32, "expected a range"},
        {"{" GOOD_W "," B("F32", "[2]", "28", "36") "}", 32, "expected a range"},
        {"{" GOOD_W "," B("F32", "[2]", "9223372036854775799", "9223372036854775807") "}", 32,
         "expected a range"},
        {"{" GOOD_W "," B("F32", "[2]", "-8", "0") "}", 32, "two whole numbers"},
        {"{" GOOD_W "," B("F32", "[2]", "24.0", "32") "}", 32, "two whole numbers"},
        {"{" GOOD_W "," B("F32", "[2]", "16", "24") "}", 32, "overlaps"},
        {"{" GOOD_W "," B("F32", "[2]", "28", "36") "}", 36, "gap"},
        {"{" B("F32", "[2]", "32", "40") "," W("F32", "[2,3]", "8", "32") "}", 40, "gap"},
        {"{" GOOD_W "," GOOD_B "}", 33, "33 bytes of data, but the tensors end at byte 32"},
        {"{" GOOD_W "," GOOD_B "}", 31, "expected a range"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(cases[i].header, cases[i].data);
        expect_failure(LAP_E_FORMAT, cases[i].says);
    }
}

static void bad_lengths(void **state) {
    (void)state;
    unsigned char length[8];
    write_bytes("", 0, "", 0);
    expect_failure(LAP_E_FORMAT, "empty");
    write_bytes("\2\0\0", 3, "", 0);
    expect_failure(LAP_E_FORMAT, "3 bytes");
    lap_store_u64(length, UINT64_MAX);
    write_bytes(length, 8, "{}", 0);
    expect_failure(LAP_E_FORMAT, "header length 18446744073709551615: expected at most 2");
    lap_store_u64(length, 3);
    write_bytes(length, 8, "{}", 0);
    expect_failure(LAP_E_FORMAT, "header length 3");
    /* A sparse file large enough for a header above the limit. */
    lap_store_u64(length, (100u << 20) + 1);
    write_bytes(length, 8, "{}", 0);
    assert_int_equal(truncate(path, 200 << 20), 0);
    expect_failure(LAP_E_FORMAT, "expected at most 104857600");
}

static void not_regular_files(void **state) {
    (void)state;
    static const char *const paths[] = {"/", "/dev/zero", LAP_TEST_TMP "/pipe",
                                        LAP_TEST_TMP "/not_there"};
    static const char *const says[] = {"a directory", "a device", "a device, pipe", "No such file"};
    mkfifo(paths[2], 0600);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        lap_safetensors *file;
        lap_error err = {0};
        assert_int_equal(lap_safetensors_open(paths[i], &expected, &file, &err), LAP_E_IO);
        assert_non_null(strstr(err.message, says[i]));
    }
    unlink(paths[2]);
}

static void patch(long from_end, const void *bytes, size_t n) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -from_end, SEEK_END), 0);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void half_precision_values(void **state) {
    (void)state;
    write_file("{" W("F16", "[2,3]", "0", "12") "," B("BF16", "[2]", "12", "16") "}", 16);
    /* 1, -2, largest 65504, smallest normal, smallest subnormal, -0; then 1 and -3.140625. */
    static const unsigned char bytes[] = {0x00, 0x3C, 0x00, 0xC0, 0xFF, 0x7B, 0x00, 0x04,
                                          0x01, 0x00, 0x00, 0x80, 0x80, 0x3F, 0x49, 0xC0};
    static const float want[] = {1.0f, -2.0f, 65504.0f, 0x1p-14f, 0x1p-24f, -0.0f};
    static const float want_bias[] = {1.0f, -3.140625f};
    patch(16, bytes, sizeof bytes);
    lap_safetensors *file;
    float values[6];
    assert_int_equal(lap_safetensors_open(path, &expected, &file, NULL), LAP_OK);
    assert_int_equal(lap_safetensors_fetch(file, 0, values, NULL), LAP_OK);
    assert_memory_equal(values, want, sizeof want);
    assert_int_equal(lap_safetensors_fetch(file, 1, values, NULL), LAP_OK);
    assert_memory_equal(values, want_bias, sizeof want_bias);
    lap_safetensors_close(file);
}

static void fetch_fails(const char *says, lap_status status) {
    lap_safetensors *file;
    lap_error err = {0};
    float values[6];
    assert_int_equal(lap_safetensors_open(path, &expected, &file, &err), LAP_OK);
    if (status == LAP_E_IO) assert_int_equal(truncate(path, 40), 0);
    assert_int_equal(lap_safetensors_fetch(file, 0, values, &err), status);
    if (!strstr(err.message, says)) fail_msg("\"%s\" lacks \"%s\"", err.message, says);
    lap_safetensors_close(file);
}

static void values_that_are_not_finite(void **state) {
    (void)state;
    static const unsigned char nan32[] = {0, 0, 0xC0, 0x7F}, inf32[] = {0, 0, 0x80, 0xFF};
    static const unsigned char inf16[] = {0x00, 0x7C}, nan16[] = {0x01, 0xFC};
    const char *single = "{" GOOD_W "," GOOD_B "}";
    const char *half = "{" W("F16", "[2,3]", "0", "12") "," B("BF16", "[2]", "12", "16") "}";
    write_file(single, 32);
    patch(32 - 8, nan32, 4);
    fetch_fails("a.weight: element 2 is nan", LAP_E_FORMAT);
    write_file(single, 32);
    patch(32 - 20, inf32, 4);
    fetch_fails("a.weight: element 5 is -inf", LAP_E_FORMAT);
    write_file(half, 16);
    patch(16, inf16, 2);
    fetch_fails("a.weight: element 0 is inf", LAP_E_FORMAT);
    write_file(half, 16);
    patch(16 - 2, nan16, 2);
    fetch_fails("a.weight: element 1 is", LAP_E_FORMAT);
    write_file(single, 32);
    fetch_fails("became shorter", LAP_E_IO);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files),
        cmocka_unit_test(bad_headers),
        cmocka_unit_test(bad_lengths),
        cmocka_unit_test(not_regular_files),
        cmocka_unit_test(half_precision_values),
        cmocka_unit_test(values_that_are_not_finite),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
