/* The terminal tables: never wider than asked, whatever the names hold; colours only on request;
 * reasons beneath; a sentence at the end. */
#include "report/format.h"
#include "report/sets.h"
#include "report/table.h"
#include "rows.h"

#include <locale.h>
#include <string.h>

static char *render(const lap_report *report, const lap_style *style, lap_text *text) {
    assert_int_equal(lap_report_table(report, style, text, NULL), LAP_OK);
    return text->data;
}

static size_t widest_line(const char *text) {
    size_t widest = 0;
    while (*text) {
        char line[4096];
        size_t n = strcspn(text, "\n");
        assert_true(n < sizeof line);
        memcpy(line, text, n);
        line[n] = '\0';
        size_t width = lap_line_width(line);
        if (width > widest) widest = width;
        text += n + (text[n] == '\n');
    }
    return widest;
}

static void fits_any_width(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    for (size_t width = 40; width <= 100; width++)
        for (int utf8 = 0; utf8 < 2; utf8++) {
            lap_text text = {0};
            lap_style style = {.width = width, .utf8 = utf8};
            size_t widest = widest_line(render(&s->report, &style, &text));
            if (widest > width) print_error("%zu > %zu\n%s", widest, width, text.data);
            assert_true(widest <= width);
            lap_text_free(&text);
        }
    sample_rows_free(s);
}

static void hundred_columns_hold_everything(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    const char *p = render(&s->report, NULL, &text);
    /* even with names of 511 bytes, only what can be looked up elsewhere is left out */
    const char *const headers[] = {"Route",         "Device",   "Batch",   "FPS",
                                   "Img/s @ batch", "Verified", "Verdict", "Status"};
    const char *line = strchr(p, '\n') + 1; /* below the title */
    assert_int_equal(strncmp(p, "fp32\n", 5), 0);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        const char *at = strstr(line, headers[i]);
        if (!at) print_error("%s\n%s", headers[i], p);
        assert_true(at && at < strchr(line, '\n'));
    }
    lap_text_free(&text);
    s->report.row_count = 1; /* an ordinary row: nothing is dropped or cut */
    p = render(&s->report, NULL, &text);
    assert_non_null(strstr(p, "resnet18 224x224 fp32\n"));
    assert_non_null(strstr(p, "NVIDIA H200"));
    assert_non_null(strstr(p, "0.250 +- 0.002"));
    assert_non_null(strstr(p, "12000 @ 256"));
    assert_non_null(strstr(p, "43.5T"));
    assert_non_null(strstr(p, "2.1e-07"));
    assert_non_null(strstr(p, "throttled"));
    assert_null(strchr(p, '~'));
    /* the last words are the sentence */
    const char *end = "; throughput 12,000 images/s at batch 256.\n";
    assert_string_equal(p + text.length - strlen(end), end);
    lap_text_free(&text);
    sample_rows_free(s);
}

static void long_names_are_cut_with_a_mark(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    assert_non_null(strchr(render(&s->report, NULL, &text), '~'));
    lap_text_free(&text);
    lap_style style = {.width = 100, .utf8 = true};
    assert_non_null(strstr(render(&s->report, &style, &text), "…"));
    assert_non_null(strstr(text.data, "±"));
    lap_text_free(&text);
    sample_rows_free(s);
}

/* Where the last column of a line begins: behind the last run of two or more blanks. */
static size_t last_column(const char *line, size_t n, char *word, size_t size) {
    char copy[4096];
    assert_true(n < sizeof copy);
    memcpy(copy, line, n);
    copy[n] = '\0';
    char *at = copy;
    for (char *p = copy; *p; p++)
        if (p[0] != ' ' && p > copy && p[-1] == ' ') at = p;
    snprintf(word, size, "%s", at);
    *at = '\0';
    return lap_line_width(copy);
}

/* Names of any length, with wide characters and tabs, leave every column where its title is. */
static void names_do_not_shift_columns(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    strcpy(s->rows[0].device.name, "\t\xe6\xbc\xa2\n\xe5\xad\x97"); /* what must not come through */
    strcpy(s->rows[4].device.name, "\xe6\xbc\xa2\xe5\xad\x97 \xe6\xbc\xa2 a\xcc\x81 GPU");
    for (size_t width = 60; width <= 100; width += 8)
        for (int utf8 = 0; utf8 < 2; utf8++) {
            lap_text text = {0};
            lap_style style = {.width = width, .utf8 = utf8};
            const char *line = strchr(render(&s->report, &style, &text), '\n') + 1;
            char word[4096];
            size_t title = last_column(line, strcspn(line, "\n"), word, sizeof word);
            assert_string_equal(word, "Status");
            static const char *const wanted[ROW_COUNT] = {"ok", "ok", "failed", "ok",
                                                          "unsupported"};
            for (size_t row = 0; row < ROW_COUNT; row++) {
                do
                    line += strcspn(line, "\n") + 1;
                while (*line == '-' || !strncmp(line, "\xe2", 1)); /* a rule below the titles */
                size_t at = last_column(line, strcspn(line, "\n"), word, sizeof word);
                if (at != title || strcmp(word, wanted[row]) != 0)
                    fail_msg("%zu instead of %zu, '%s':\n%s", at, title, word, text.data);
            }
            lap_text_free(&text);
        }
    sample_rows_free(s);
}

static void ascii_stays_ascii(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    for (const char *p = render(&s->report, NULL, &text); *p; p++)
        assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7F));
    lap_text_free(&text);
    sample_rows_free(s);
}

static void colours_only_on_request(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    lap_style style = {.width = 100, .utf8 = true};
    assert_null(strchr(render(&s->report, &style, &text), '\033'));
    lap_text_free(&text);
    style.colour = style.terminal = true;
    assert_non_null(strchr(render(&s->report, &style, &text), '\033'));
    lap_text_free(&text);
    sample_rows_free(s);
}

/* What rows differ in is in their names, and nothing that all have in common. */
static void names_tell_rows_apart(void **state) {
    (void)state;
    lap_row rows[2] = {{.network = "resnet18", .precision = "fp32", .height = 224, .width = 224}};
    char name[200];
    snprintf(rows[0].device.selector, sizeof rows[0].device.selector, "cuda:0");
    rows[0].batch = 8;
    rows[1] = rows[0];
    lap_format_row(name, sizeof name, rows, 2, &rows[0]);
    assert_string_equal(name, "cuda:0 batch 8");
    snprintf(rows[1].precision, sizeof rows[1].precision, "fp16");
    rows[1].concurrent.others = 1;
    lap_format_row(name, sizeof name, rows, 2, &rows[1]);
    assert_string_equal(name, "cuda:0 +1 fp16 batch 8");
    rows[1].width = 256;
    lap_format_row(name, sizeof name, rows, 2, &rows[0]);
    assert_string_equal(name, "cuda:0 224x224 fp32 batch 8");
    snprintf(rows[1].network, sizeof rows[1].network, "resnet50");
    lap_format_row(name, sizeof name, rows, 2, &rows[1]);
    assert_string_equal(name, "cuda:0 +1 resnet50 224x256 fp16 batch 8");
}

static void reasons_stand_beneath(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    const char *p = render(&s->report, NULL, &text);
    const char *reason =
        strstr(p, "\ncuda:0 resnet18 224x224 batch 64 failed: layer1.0.conv1: refused");
    assert_non_null(reason);
    assert_non_null(strstr(reason, "701"));
    assert_non_null(
        strstr(p, "\nopencl:2:0 resnet18 224x224 batch 1 unsupported: no <fp64> | on `this`"));
    assert_non_null(
        strstr(p, "\nopencl:1:0 resnet18 224x224 batch 1: no standard deviation: n = 1"));
    lap_text_free(&text);
    sample_rows_free(s);
}

static void zero_times_are_not_divided_by(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    s->report.rows = &s->rows[3];
    s->report.row_count = 1;
    lap_text text = {0};
    const char *p = render(&s->report, NULL, &text);
    assert_null(strstr(p, "inf"));
    assert_null(strstr(p, "nan"));
    assert_non_null(strstr(p, "n/a"));
    lap_text_free(&text);
    sample_rows_free(s);
}

static void sentences(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    lap_report_sentence(&s->rows[0], true, &text);
    assert_string_equal(text.data,
                        "NVIDIA H200 through CUDA runs ResNet-18 (224x224, fp32, batch 1) in "
                        "0.250 ms ± 0.002 (4000 images/s), verified to 2.1e-07; throughput 12,000 "
                        "images/s at batch 256.");
    lap_text_free(&text);
    lap_report_sentence(&s->rows[4], true, &text);
    assert_non_null(strstr(text.data, "Old GPU through CUDA has no result"));
    assert_non_null(strstr(text.data, "unsupported: no <fp64>"));
    lap_text_free(&text);
    s->rows[0].verified.passed = false;
    s->rows[0].latency.clock = LAP_CLOCK_WALL;
    s->rows[0].throughput.images_per_s = lap_none();
    lap_report_sentence(&s->rows[0], false, &text);
    assert_string_equal(text.data,
                        "NVIDIA H200 through CUDA runs ResNet-18 (224x224, fp32, batch 1) in "
                        "0.250 ms +- 0.002 (4000 images/s) by the host's clock, not verified.");
    lap_text_free(&text);
    sample_rows_free(s);
}

/* One sentence a route: the first ok latency with the best throughput, also of another row. */
static void one_sentence_a_route(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    lap_report_sentences(&s->report, true, &text);
    size_t lines = 0;
    for (const char *p = text.data; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 4); /* cuda:0 twice */
    assert_int_equal(strncmp(text.data, "NVIDIA H200 through CUDA runs", 29), 0);
    lap_text_free(&text);
    sample_rows_free(s);
}

/* What the columns mean; and none of times where nothing was timed. */
static void columns_fit_the_modes(void **state) {
    (void)state;
    static const char legend[] = "\nLatency: median +- standard deviation. FPS: batch / mean.\n";
    static const char *const timed[] = {"Latency", "FPS", "Img/s", "FLOP/s", "Verdict"};
    sample_rows *s = sample_rows_new();
    s->report.row_count = 1;
    lap_text text = {0};
    const char *p = render(&s->report, NULL, &text);
    assert_non_null(strstr(p, legend));
    lap_text_free(&text);
    unsigned modes = s->rows[0].modes;
    s->rows[0].modes = LAP_MODE_VERIFY;
    p = render(&s->report, NULL, &text);
    const char *end = strstr(p, "\n\n"); /* of the table */
    assert_non_null(end);
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++) {
        const char *at = strstr(p, timed[i]);
        if (at && at < end) fail_msg("%s in %s", timed[i], p);
    }
    assert_non_null(strstr(p, "Verified"));
    lap_text_free(&text);
    s->rows[0].modes = modes;
    sample_rows_free(s);
}

static void no_rows(void **state) {
    (void)state;
    lap_text text = {0};
    lap_report empty = {0};
    assert_string_equal(render(&empty, NULL, &text), "no rows: nothing was planned\n");
    lap_text_free(&text);
}

static void layer_table(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    assert_int_equal(lap_report_layers(&s->rows[0], NULL, &text, NULL), LAP_OK);
    assert_true(widest_line(text.data) <= 100);
    const char *line = strstr(text.data, "\nconv1");
    assert_non_null(line);
    assert_non_null(strstr(line, "118M"));  /* MACs */
    assert_non_null(strstr(line, "236M"));  /* FLOPs: work */
    assert_non_null(strstr(line, "0.020")); /* ms */
    assert_non_null(strstr(line, "11.8T")); /* FLOP/s: rate */
    assert_non_null(strstr(text.data, "whole network"));
    lap_text_free(&text);
    assert_int_equal(lap_report_layers(&s->rows[2], NULL, &text, NULL), LAP_OK);
    assert_non_null(strstr(text.data, "no layer was timed"));
    lap_text_free(&text);
    sample_rows_free(s);
}

/* Devices that have nothing in common: shares above 100 % and seconds are written out. */
static void unlike_devices_at_once(void **state) {
    (void)state;
    lap_set_member members[] = {
        {.ok = true, .selector = "cuda:0", .started_s = 1, .rounds = {.n = 1}},
        {.ok = true, .selector = "opencl:0:0", .started_s = 2.2344, .rounds = {.n = 1}}};
    members[0].rounds.together[0] = members[0].rounds.alone[0] = 1000;
    members[1].rounds.together[0] = members[1].rounds.alone[0] = 10;
    lap_set set = {.members = members, .count = 2, .batch = 1, .network = "resnet18"};
    lap_set_derive(&set);
    const lap_report report = {.sets = &set, .set_count = 1};
    lap_text text = {0};
    assert_int_equal(lap_report_sets(&report, NULL, &text, NULL), LAP_OK);
    for (char *s = text.data; (s = strchr(s, '\n'));)
        *s = ' '; /* wrapped anywhere */
    char *from = text.data, *to = text.data;
    for (; *from; from++)
        if (*from != ' ' || from[1] != ' ') *to++ = *from;
    *to = '\0';
    assert_non_null(strstr(text.data, "standard deviation between devices 139 % of the mean"));
    assert_non_null(strstr(text.data, "first timed runs 1234 ms apart"));
    lap_text_free(&text);
}

int main(void) {
    /* Widths follow LC_CTYPE; C.UTF-8 is part of glibc. */
    if (!setlocale(LC_CTYPE, "C.UTF-8")) {
        fprintf(stderr, "skipped: the locale C.UTF-8 is missing\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlike_devices_at_once),
        cmocka_unit_test(fits_any_width),
        cmocka_unit_test(hundred_columns_hold_everything),
        cmocka_unit_test(long_names_are_cut_with_a_mark),
        cmocka_unit_test(names_do_not_shift_columns),
        cmocka_unit_test(ascii_stays_ascii),
        cmocka_unit_test(colours_only_on_request),
        cmocka_unit_test(reasons_stand_beneath),
        cmocka_unit_test(names_tell_rows_apart),
        cmocka_unit_test(zero_times_are_not_divided_by),
        cmocka_unit_test(sentences),
        cmocka_unit_test(one_sentence_a_route),
        cmocka_unit_test(columns_fit_the_modes),
        cmocka_unit_test(no_rows),
        cmocka_unit_test(layer_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
