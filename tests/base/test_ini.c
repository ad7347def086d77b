/* Strict INI reading: what is accepted, what is refused and on which line, and that no bytes at all
 * make it crash or hang. */
#include "base/ini.h"
#include "base/text.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static lap_ini *parse(const char *text) {
    lap_ini *ini;
    lap_error err = {0};
    lap_status status = lap_ini_parse("t.ini", text, strlen(text), &ini, &err);
    if (status != LAP_OK) print_message("%s\n", err.message);
    assert_int_equal(status, LAP_OK);
    return ini;
}

static void takes_value(const char *text, const char *value) {
    char file[512];
    snprintf(file, sizeof file, "[s]\n%s", text);
    lap_ini *ini = parse(file);
    assert_int_equal(ini->count, 2);
    assert_string_equal(ini->entries[1].key, "k");
    assert_string_equal(ini->entries[1].value, value);
    assert_int_equal(ini->entries[1].line, 2);
    lap_ini_free(ini);
}

/* The message starts with "t.ini:LINE: " and holds what. */
static void expect_refused_bytes(const void *bytes, size_t size, int line, const char *what) {
    lap_ini *ini = (lap_ini *)&ini;
    lap_error err = {0};
    assert_int_equal(lap_ini_parse("t.ini", bytes, size, &ini, &err), LAP_E_CONFIG);
    assert_null(ini);
    char start[32];
    snprintf(start, sizeof start, "t.ini:%d: ", line);
    if (strncmp(err.message, start, strlen(start)) || !strstr(err.message, what))
        fail_msg("expected '%s…%s', got '%s'", start, what, err.message);
}

static void expect_refused(const char *text, int line, const char *what) {
    expect_refused_bytes(text, strlen(text), line, what);
}

static void test_values(void **state) {
    (void)state;
    takes_value("k = 4", "4");
    takes_value("k=4", "4");
    takes_value("  k\t=\t4  ", "4");
    takes_value("K = MiXed", "MiXed");
    takes_value("k = 4 ; note", "4");
    takes_value("k = 4 # note", "4");
    takes_value("k = 4;note", "4");
    takes_value("k = 8 9", "8 9"); /* one value; whether it is a number is not asked here */
    takes_value("k = \"a;b\"", "a;b");
    takes_value("k = \"a#b\" ; note", "a#b");
    takes_value("k = 'a;\"c\"' # note", "a;\"c\"");
    takes_value("k = \"  kept  \"", "  kept  ");
    takes_value("k = name=Bob's", "name=Bob's");
    takes_value("k =", "");
    takes_value("k = ; nothing", "");
    takes_value("k = \"\"", "");
    takes_value("k = '' # nothing", "");
    takes_value("k = a\\b", "a\\b");
    takes_value("k = \"ends in \\\"", "ends in \\");
    takes_value("k = GPU\xC2\xAE", "GPU\xC2\xAE");
    takes_value("k = a]b", "a]b");
}

static void test_layout(void **state) {
    (void)state;
    lap_ini *ini =
        parse("[S] ; note [x]\r\nk = 1\r\n\r\n# [no]\n ; k = 2 \\\n[t-1]\nK=2\n[ s ]\nj = 3");
    const struct {
        const char *section, *key, *value;
        int line;
    } want[] = {{"s", NULL, NULL, 1}, {"s", "k", "1", 2},   {"t-1", NULL, NULL, 6},
                {"t-1", "k", "2", 7}, {"s", NULL, NULL, 8}, {"s", "j", "3", 9}};
    assert_int_equal(ini->count, sizeof want / sizeof *want);
    for (size_t i = 0; i < ini->count; i++) {
        const lap_ini_entry *e = &ini->entries[i];
        assert_string_equal(e->section, want[i].section);
        assert_int_equal(e->line, want[i].line);
        assert_int_equal(e->key == NULL, want[i].key == NULL);
        assert_int_equal(e->value == NULL, want[i].value == NULL);
        if (e->key) assert_string_equal(e->key, want[i].key);
        if (e->key) assert_string_equal(e->value, want[i].value);
    }
    lap_ini_free(ini);
    ini = parse("\xEF\xBB\xBF[s]\nk = 1");
    assert_int_equal(ini->count, 2);
    assert_string_equal(ini->entries[0].section, "s");
    lap_ini_free(ini);
    ini = parse("");
    assert_int_equal(ini->count, 0);
    lap_ini_free(ini);
    ini = parse("\xEF\xBB\xBF");
    assert_int_equal(ini->count, 0);
    lap_ini_free(ini);
}

static void test_refused_lines(void **state) {
    (void)state;
    expect_refused("k = 1\n", 1, "before the first [section]");
    expect_refused("\n\nstray\n", 3, "expected [section], key = value");
    expect_refused("[s]\nk\n", 2, "expected [section], key = value");
    expect_refused("[s\nk=1\n", 1, "no ']'");
    expect_refused("[]\n", 1, "no section name");
    expect_refused("[a b]\n", 1, "no section name");
    expect_refused("[s] x\n", 1, "after ']'");
    expect_refused("[s]\n= 1\n", 2, "is no key");
    expect_refused("[s]\na b = 1\n", 2, "is no key");
    expect_refused("[s]\na:b = 1\n", 2, "is no key");
    expect_refused("[s]\nk = \"a\n", 2, "closing \" is missing");
    expect_refused("[s]\nk = 'a\n", 2, "closing ' is missing");
    expect_refused("[s]\nk = \"a\" b\n", 2, "after the closing \"");
    expect_refused("[s]\nk = \"a\"\"b\"\n", 2, "after the closing \"");
    expect_refused("[s]\nk = name=\"a;b\"\n", 2, "a quote inside the value");
    expect_refused("[s]\nk = a \\\nb\n", 2, "cannot be continued");
    expect_refused("[s]\nk = a ; note \\\n", 2, "cannot be continued");
    expect_refused("[s]\nk = 1\nj = 2\nK = 3\n", 4, "[s] k was given on line 2 already");
    expect_refused("[s]\nk = 1\n[t]\nk = 1\n[S]\nk = 1\n", 6, "given on line 2 already");
    expect_refused("[s]\nk = 1\rj = 2\n", 2, "carriage return");
    expect_refused("[s]\nk = \x1B[31m\n", 2, "control character 0x1B");
    expect_refused("[s]\nk = \xC2\x9B"
                   "31m\n",
                   2, "control character 0x9B");
    expect_refused("[s]\nk = \xE4\n", 2, "0xE4 is not valid UTF-8");
    expect_refused("[s]\n\nk = \xC0\x80\n", 3, "not valid UTF-8");
}

static void test_refused_bytes(void **state) {
    (void)state;
    expect_refused_bytes("\xFF\xFE[\0s\0]\0\n\0", 10, 1, "UTF-16");
    expect_refused_bytes("\xFE\xFF\0[\0s\0]\0\n", 10, 1, "UTF-16");
    expect_refused_bytes("[\0s\0]\0\n\0k\0=\0", 12, 1, "a zero byte"); /* UTF-16 without a mark */
    expect_refused_bytes("[s]\nk = 1\0\n", 11, 2, "a zero byte");
    expect_refused_bytes("\x7F"
                         "ELF\2\1\1\0",
                         8, 1, "control character 0x7F");
}

static void test_line_length(void **state) {
    (void)state;
    char text[6000];
    for (size_t length = 998; length <= 1002; length++) {
        memcpy(text, "[s]\nk=", 6);
        memset(text + 6, 'v', length - 2);
        memcpy(text + 4 + length, "\r\n", 3);
        if (length > LAP_INI_LINE_MAX) {
            expect_refused(text, 2, "longer than 1000 bytes");
            continue;
        }
        lap_ini *ini = parse(text);
        assert_int_equal(strlen(ini->entries[1].value), length - 2);
        lap_ini_free(ini);
    }
    memcpy(text, "[s]\n;", 5);
    memset(text + 5, 'c', 5000);
    text[5005] = '\0';
    expect_refused(text, 2, "longer than 1000 bytes");
}

static void test_limits(void **state) {
    (void)state;
    lap_text text = {0};
    lap_text_add(&text, "[s]\n");
    for (unsigned i = 0; i < LAP_INI_ENTRIES_MAX - 1; i++)
        lap_text_addf(&text, "k%u = %u\n", i, i);
    lap_ini *ini = parse(lap_text_get(&text));
    assert_int_equal(ini->count, LAP_INI_ENTRIES_MAX);
    assert_string_equal(ini->entries[LAP_INI_ENTRIES_MAX - 1].value, "1022");
    lap_ini_free(ini);
    lap_text_add(&text, "one_more = 1\n");
    expect_refused(lap_text_get(&text), LAP_INI_ENTRIES_MAX + 1, "more than 1024");
    lap_text_free(&text);

    char *big = malloc(LAP_INI_BYTES_MAX + 1);
    assert_non_null(big);
    memset(big, '\n', LAP_INI_BYTES_MAX + 1);
    lap_error err = {0};
    assert_int_equal(lap_ini_parse("t.ini", big, LAP_INI_BYTES_MAX, &ini, &err), LAP_OK);
    lap_ini_free(ini);
    assert_int_equal(lap_ini_parse("t.ini", big, LAP_INI_BYTES_MAX + 1, &ini, &err), LAP_E_CONFIG);
    assert_non_null(strstr(err.message, "t.ini: more than 1048576 bytes"));
    free(big);
}

static void expect_load(const char *path, lap_status want, const char *what) {
    lap_ini *ini = NULL;
    lap_error err = {0};
    lap_status status = lap_ini_load(path, &ini, &err);
    if (status != want || (want != LAP_OK && !strstr(err.message, what)))
        fail_msg("%s: status %d, '%s'", path, status, err.message);
    if (want != LAP_OK) assert_non_null(strstr(err.message, path));
    lap_ini_free(ini);
}

static void test_files(void **state) {
    (void)state;
    const char *path = LAP_TEST_TMP "/test_ini.ini", *pipe = LAP_TEST_TMP "/test_ini.fifo";
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("[s]\nk = 1", f);
    fclose(f);
    expect_load(path, LAP_OK, "");
    f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < LAP_INI_BYTES_MAX + 10; i++)
        fputc('\n', f);
    fclose(f);
    expect_load(path, LAP_E_CONFIG, "more than");
    unlink(path);
    expect_load(path, LAP_E_CONFIG, "No such file");
    expect_load(LAP_TEST_TMP, LAP_E_CONFIG, "a directory");
    expect_load("/dev/zero", LAP_E_CONFIG, "expected a regular file");
    expect_load("/dev/null", LAP_E_CONFIG, "expected a regular file");
    unlink(pipe);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect_load(pipe, LAP_E_CONFIG, "expected a regular file"); /* and does not wait */
    unlink(pipe);
}

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Whatever the bytes: an answer, and what is accepted is sane. */
static void test_mutations(void **state) {
    (void)state;
    static const char seed_text[] =
        "\xEF\xBB\xBF[run]\r\ndevice = name=Bob's ; note\nmodes='a;b' # x\n\n; c \\\n[output]\n"
        "json = \"a;b#c\" ; d\ncsv =\n[net-work]\nheight=224,448\nwidth = \xC2\xAE \n";
    static const char odd[] = "\"'\\;#[]=\n\r\t \0\xEF\xBB\xBF\xFF\xC2:%a9";
    uint64_t x = 20240607;
    size_t accepted = 0, refused = 0;
    for (int round = 0; round < 10000; round++) {
        char text[512];
        size_t size = sizeof seed_text - 1;
        memcpy(text, seed_text, size);
        for (uint64_t n = 1 + next_random(&x) % 3; n > 0; n--) {
            size_t at = next_random(&x) % size;
            switch (next_random(&x) % 4) {
            case 0:
                text[at] = (char)next_random(&x);
                break;
            case 1:
                text[at] = odd[next_random(&x) % (sizeof odd - 1)];
                break;
            case 2: /* cut a piece out */
                memmove(text + at, text + at + 1, size - at - 1);
                size--;
                break;
            default: /* put a byte in */
                memmove(text + at + 1, text + at, size - at);
                text[at] = odd[next_random(&x) % (sizeof odd - 1)];
                size++;
            }
        }
        lap_ini *ini = NULL;
        lap_error err = {0};
        lap_status status = lap_ini_parse("t.ini", text, size, &ini, &err);
        if (status == LAP_OK) {
            accepted++;
            for (size_t i = 0; i < ini->count; i++) {
                const lap_ini_entry *e = &ini->entries[i];
                assert_true(*e->section && e->line >= 1);
                assert_int_equal(e->key == NULL, e->value == NULL);
            }
            lap_ini_free(ini);
        } else {
            refused++;
            assert_int_equal(status, LAP_E_CONFIG);
            assert_null(ini);
            assert_int_equal(strncmp(err.message, "t.ini:", 6), 0);
            /* The scan, not iniparser, must have found it: else it could be misread elsewhere. */
            if (strstr(err.message, "iniparser") || strstr(err.message, "ambiguous"))
                fail_msg("round %d: '%s'", round, err.message);
        }
    }
    print_message("10000 mutated files: %zu accepted, %zu refused\n", accepted, refused);
    assert_true(accepted > 1000 && refused > 1000); /* both paths were exercised */
}

static void test_arguments(void **state) {
    (void)state;
    lap_ini *ini;
    assert_int_equal(lap_ini_parse("t", "", 0, NULL, NULL), LAP_E_ARG);
    assert_int_equal(lap_ini_parse(NULL, "", 0, &ini, NULL), LAP_E_ARG);
    assert_int_equal(lap_ini_parse("t", NULL, 1, &ini, NULL), LAP_E_ARG);
    assert_int_equal(lap_ini_load(NULL, &ini, NULL), LAP_E_ARG);
    lap_ini_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_refused_lines), cmocka_unit_test(test_refused_bytes),
        cmocka_unit_test(test_line_length),   cmocka_unit_test(test_limits),
        cmocka_unit_test(test_files),         cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
