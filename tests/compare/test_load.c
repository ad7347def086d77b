/* The loader: real documents, documents of other versions, and everything hostile. */
#include "papers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static lap_error err;

static lap_status parse(const char *text, lap_document **out) {
    lap_error_clear(&err);
    return lap_document_parse("x.json", text, strlen(text), out, &err);
}

/* The document is refused with these words, and nothing is left behind. */
static void refused(const char *text, const char *words) {
    lap_document *d = (lap_document *)1;
    lap_status status = parse(text, &d);
    if (status != LAP_E_FORMAT || !strstr(err.message, words))
        fail_msg("%.200s: %d '%s', expected '%s'", text, status, err.message, words);
    assert_null(d);
    assert_non_null(strstr(err.message, "x.json"));
}

static void real_documents(void **state) {
    (void)state;
    lap_document *d;
    assert_int_equal(lap_document_load(LAP_TEST_DATA "/compare/h200-cuda.json", &d, &err), LAP_OK);
    assert_int_equal(d->row_count, 2);
    const lap_record *r = &d->rows[0];
    assert_true(r->ok);
    assert_string_equal(r->device, "NVIDIA H200");
    assert_string_equal(r->selector, "cuda:0");
    assert_string_equal(r->weights, "synthetic:1");
    assert_string_equal(r->clock, "device");
    assert_string_equal(r->uuid, "af0d9d19-1690-7851-0845-f00233be7775");
    assert_int_equal(r->proof, LAP_PROOF_PASSED);
    assert_int_equal(r->batch, 1);
    assert_int_equal(r->latency.n, 100);
    assert_true(r->latency.from_samples);
    assert_true(fabs(r->latency.mean_s.value - 0.000267736960948) < 1e-14);
    assert_true(fabs(r->latency.std_s.value - 1.55060265981e-06) < 1e-14);
    assert_true(fabs(r->wall.mean_s.value - 0.00027659436) < 1e-14);
    assert_false(r->wall.from_samples);
    assert_true(r->wall.relative_error.has);
    assert_int_equal(r->throughput_batch, 512);
    assert_string_equal(r->remark, "");
    assert_string_equal(d->started, "2026-11-30T02:47:21Z");
    assert_string_equal(d->version, "0.1.0");
    lap_document_free(d);
    lap_document_free(NULL);
}

/* An early document has fewer keys; absent is not 0. */
static void little_is_enough(void **state) {
    (void)state;
    lap_document *d;
    assert_int_equal(parse("{\"schema\": \"warmlap/1\", \"rows\": []}", &d), LAP_OK);
    assert_int_equal(d->row_count, 0);
    assert_string_equal(d->started, "");
    lap_document_free(d);
    assert_int_equal(
        parse("{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\", \"latency\":"
              " {\"mean_s\": 0.5}, \"later\": {\"key\": [1]}}], \"later\": 1}",
              &d),
        LAP_OK);
    const lap_record *r = &d->rows[0];
    assert_string_equal(r->device, "");
    assert_string_equal(r->weights, "");
    assert_int_equal(r->proof, LAP_PROOF_NONE);
    assert_true(r->latency.mean_s.has);
    assert_false(r->latency.std_s.has || r->latency.relative_error.has || r->images_per_s.has);
    assert_int_equal(r->batch, 0);
    lap_document_free(d);
}

static void other_schemas_are_named(void **state) {
    (void)state;
    refused("{\"schema\": \"warmlap/2\", \"rows\": []}", "newer");
    refused("{\"schema\": \"warmlap/0\", \"rows\": []}", "older");
    refused("{\"schema\": \"warmlap/2\", \"rows\": []}", "'warmlap/2'");
    refused("{\"schema\": \"warmlap-devices/1\", \"devices\": []}", "'warmlap-devices/1'");
    refused("{\"schema\": \"warmlap/1x\", \"rows\": []}", "is not a result document");
    refused("{\"schema\": \"\\u001b[2J\\nwarmlap\", \"rows\": []}", "is not a result document");
    assert_null(strpbrk(err.message, "\033\n"));
    refused("{\"schema\": 1, \"rows\": []}", "no schema");
    refused("{\"rows\": []}", "no schema");
    refused("{\"schema\": \"warmlap/1\"}", "no rows");
}

static void not_json(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{",
        "{\"schema\": \"warmlap/1\", \"rows\": [",
        "{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"o",
        "{\"schema\": \"warmlap/1\", \"rows\": []} x",
        "{\"schema\": \"warmlap/1\", \"rows\": []}{}",
        "{\"schema\": \"warmlap/1\", \"rows\": [],}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": NaN}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": nan}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": Infinity}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": -inf}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": 1e999}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": 0,5}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": 0x10}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": 99999999999999999999999}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"rows\": []}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": \"\\u0000\"}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": \"\\ud800\"}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": \"\xff\"}",
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": \"\n\"}",
        "\xef\xbb\xbf{\"schema\": \"warmlap/1\", \"rows\": []}",
        "status,reason,backend\r\n",
        "\\",
        "\"",
        "null",
        "[]",
        "[{\"schema\": \"warmlap/1\", \"rows\": []}]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refused(texts[i], "JSON");
}

/* A row with this member, as in "\"batch\": -1". */
static void member_refused(const char *member, const char *words) {
    lap_text text = {0};
    lap_text_addf(&text,
                  "{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\"}, "
                  "{\"status\": \"ok\", %s}]}",
                  member);
    refused(text.data, words);
    lap_text_free(&text);
}

static void wrong_types_and_ranges(void **state) {
    (void)state;
    member_refused("\"batch\": -1", "rows[1].batch is a negative number; expected a whole number");
    member_refused("\"batch\": 1.5", "rows[1].batch is a number; expected a whole number");
    member_refused("\"batch\": \"1\"", "rows[1].batch is a string");
    member_refused("\"device\": \"H200\"", "rows[1].device is a string; expected an object");
    member_refused("\"device\": {\"name\": 1}", "rows[1].device.name is a number");
    member_refused("\"device\": {\"name\": [\"a\"]}", "rows[1].device.name is an array");
    member_refused("\"latency\": []", "rows[1].latency is an array");
    member_refused("\"latency\": {\"mean_s\": -1}", "rows[1].latency.mean_s is a negative number");
    member_refused("\"latency\": {\"mean_s\": \"nan\"}", "rows[1].latency.mean_s is a string");
    member_refused("\"latency\": {\"n\": -1}", "rows[1].latency.n");
    member_refused("\"latency\": {\"clock\": true}", "rows[1].latency.clock is true or false");
    member_refused("\"latency\": {\"samples_s\": {}}", "rows[1].latency.samples_s is an object");
    member_refused("\"latency\": {\"samples_s\": [1, \"2\"]}", "rows[1].latency.samples_s");
    member_refused("\"latency\": {\"samples_s\": [1, -2]}", "rows[1].latency.samples_s");
    member_refused("\"latency\": {\"samples_s\": [[1]]}", "rows[1].latency.samples_s");
    member_refused("\"verified\": true", "rows[1].verified is true or false");
    member_refused("\"verified\": {\"passed\": 1}", "rows[1].verified.passed is a number");
    member_refused("\"throughput\": {\"images_per_s\": []}", "rows[1].throughput.images_per_s");
    refused("{\"schema\": \"warmlap/1\", \"rows\": {}}", "rows is an object");
    refused("{\"schema\": \"warmlap/1\", \"rows\": [1]}", "rows[0] is no object");
    refused("{\"schema\": \"warmlap/1\", \"rows\": [{}]}", "rows[0].status");
    refused("{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"fine\"}]}", "'fine'");
    refused("{\"schema\": \"warmlap/1\", \"rows\": [], \"host\": 1}", "host is a number");
    refused(
        "{\"schema\": \"warmlap/1\", \"rows\": [], \"config\": {\"network\": {\"weights\": 1}}}",
        "config.network.weights is a number");
}

static void filled(lap_text *text, const char *what, size_t times) {
    for (size_t i = 0; i < times; i++)
        lap_text_add(text, what);
}

static void sizes_are_bounded(void **state) {
    (void)state;
    static const struct {
        const char *what, *words;
        size_t times;
    } cases[] = {{"[", "nested deeper", 100000},
                 {"{\"a\":", "nested deeper", 100000},
                 {"[],", "lists and objects", 1100000},
                 {"0,", "values", 4100000},
                 {"\"a\":0 ", "keys", 2100000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_text text = {0};
        lap_text_add(&text, "{\"schema\": \"warmlap/1\", \"rows\": [");
        filled(&text, cases[i].what, cases[i].times);
        refused(text.data, cases[i].words);
        lap_text_free(&text);
    }
    /* Brackets in texts are texts; the deepest that is allowed is. */
    lap_text text = {0};
    lap_document *d;
    lap_text_add(&text, "{\"schema\": \"warmlap/1\", \"rows\": [], \"a\": \"\\\"");
    filled(&text, "[", 100);
    lap_text_add(&text, "\", \"b\": ");
    filled(&text, "[", LAP_DOCUMENT_DEPTH - 1);
    filled(&text, "]", LAP_DOCUMENT_DEPTH - 1);
    lap_text_add(&text, "}");
    assert_int_equal(parse(text.data, &d), LAP_OK);
    lap_document_free(d);
    lap_text_free(&text);
    lap_text_add(&text, "{\"schema\": \"warmlap/1\", \"rows\": [], \"b\": ");
    filled(&text, "[", LAP_DOCUMENT_DEPTH);
    filled(&text, "]", LAP_DOCUMENT_DEPTH);
    lap_text_add(&text, "}");
    refused(text.data, "nested deeper");
    lap_text_free(&text);
    lap_text_add(&text, "{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\"}");
    filled(&text, ", {\"status\": \"ok\"}", 10000);
    lap_text_add(&text, "]}");
    refused(text.data, "10001 rows");
    lap_text_free(&text);
}

/* Every way of cutting a good document short is refused. */
static void truncated_anywhere(void **state) {
    (void)state;
    paper_row row = {.mean = 0.25, .std = 0.01, .images_per_s = 10, .reason = "a\"b"};
    lap_text text = {0};
    paper_text(&(paper){0}, &row, 1, &text);
    size_t n = text.length - 1; /* the newline may go */
    for (size_t i = 1; i < n; i++) {
        lap_document *d;
        if (lap_document_parse("x", text.data, i, &d, &err) != LAP_E_FORMAT)
            fail_msg("cut at byte %zu of %zu", i, n);
        assert_null(d);
    }
    lap_text_free(&text);
}

/* One byte changed: refused or read, but never a crash or a negative time. */
static void any_byte_changed(void **state) {
    (void)state;
    static const char bytes[] = "\0\"\\{}[],:-09e\xff";
    paper_row row = {.mean = 0.25, .std = 0.01, .images_per_s = 10};
    lap_text text = {0};
    paper_text(&(paper){0}, &row, 1, &text);
    for (size_t i = 0; i < text.length; i++)
        for (size_t b = 0; b < sizeof bytes - 1; b++) {
            char kept = text.data[i];
            lap_document *d;
            text.data[i] = bytes[b];
            lap_status status = lap_document_parse("x", text.data, text.length, &d, &err);
            text.data[i] = kept;
            assert_true(status == LAP_OK ? d != NULL : status == LAP_E_FORMAT && !d);
            if (d && d->row_count) assert_true(d->rows[0].latency.mean_s.value >= 0);
            lap_document_free(d);
        }
    lap_text_free(&text);
}

static void samples_win(void **state) {
    (void)state;
    lap_document *d;
    assert_int_equal(
        parse(
            "{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\", \"latency\": {\"n\": 900, "
            "\"mean_s\": 7, \"std_s\": 0, \"samples_s\": [1, null, 2, 3]}}]}",
            &d),
        LAP_OK);
    const lap_record *r = &d->rows[0];
    assert_int_equal(r->latency.n, 3);
    assert_true(r->latency.mean_s.value == 2 && r->latency.std_s.value == 1);
    assert_non_null(strstr(r->remark, "not that of its samples"));
    lap_document_free(d);
    /* Nothing but nulls: the summary is all there is. */
    assert_int_equal(
        parse("{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\", \"latency\":"
              " {\"n\": 4, \"mean_s\": 2, \"std_s\": 1, \"samples_s\": [null]}}]}",
              &d),
        LAP_OK);
    r = &d->rows[0];
    assert_false(r->latency.from_samples);
    assert_true(r->latency.relative_error.value == 0.25);
    lap_document_free(d);
    /* Correlated samples tell less; a factor below 1 is not believed. */
    static const struct {
        const char *factor;
        double want;
    } cases[] = {{"3", 0.75}, {"0.1", 0.25}, {"null", 0.25}};
    for (size_t i = 0; i < 3; i++) {
        lap_text text = {0};
        lap_text_addf(&text,
                      "{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\", \"latency\": "
                      "{\"n\": 4, \"mean_s\": 2, \"std_s\": 1, \"mean_ci_widening\": %s}, "
                      "\"spans\": {\"wall_mean_s\": 2, \"wall_std_s\": 1}}]}",
                      cases[i].factor);
        assert_int_equal(parse(text.data, &d), LAP_OK);
        assert_true(d->rows[0].latency.relative_error.value == cases[i].want);
        assert_true(d->rows[0].wall.relative_error.value == cases[i].want);
        lap_document_free(d);
        lap_text_free(&text);
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

static void path_refused(const char *path, lap_status want, const char *words) {
    lap_document *d = (lap_document *)1;
    lap_error_clear(&err);
    lap_status status = lap_document_load(path, &d, &err);
    if (status != want || !strstr(err.message, words) || !strstr(err.message, path))
        fail_msg("%s: %d '%s'", path, status, err.message);
    assert_null(d);
}

static void odd_files(void **state) {
    (void)state;
    static const char path[] = LAP_TEST_TMP "/odd.json";
    path_refused("/nonexistent/x.json", LAP_E_IO, "No such file");
    path_refused(LAP_TEST_TMP, LAP_E_IO, "folder");
    path_refused("/dev/null", LAP_E_FORMAT, "empty");
    path_refused("/dev/zero", LAP_E_FORMAT, "longer than 64 MiB");
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite("\xff\xfe{\0\"\0", 1, 6, f), 6);
    assert_int_equal(fclose(f), 0);
    path_refused(path, LAP_E_FORMAT, "JSON");
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_documents),
        cmocka_unit_test(little_is_enough),
        cmocka_unit_test(other_schemas_are_named),
        cmocka_unit_test(not_json),
        cmocka_unit_test(wrong_types_and_ranges),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(truncated_anywhere),
        cmocka_unit_test(any_byte_changed),
        cmocka_unit_test(samples_win),
        cmocka_unit_test(odd_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
