/* Markdown: one table line per row, nothing from outside becomes markup. */
#include "report/report.h"
#include "rows.h"

#include <string.h>

static char *render(const lap_report *report, lap_text *text) {
    assert_int_equal(lap_report_markdown(report, text, NULL), LAP_OK);
    return text->data;
}

/* Bars that separate cells: those without a backslash before them. */
static size_t bars(const char *line, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\\')
            i++;
        else if (line[i] == '|')
            count++;
    }
    return count;
}

static void one_line_a_row(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    const char *p = render(&s->report, &text);
    for (size_t i = 0; i < ROW_COUNT + 2; i++) {
        size_t n = strcspn(p, "\n");
        assert_int_equal(p[0], '|');
        assert_int_equal(bars(p, n), 14);
        p += n + 1;
    }
    assert_int_equal(*p, '\n'); /* the table ends */
    assert_non_null(strstr(text.data, "| NVIDIA H200 | cuda:0 | resnet18 | 224x224 | fp32 | 1 | "
                                      "0.250 ± 0.002 | 4000 | 12000 @ 256 | "));
    assert_non_null(strstr(text.data, " | 2.1e-07 | throttled | ok |"));
    lap_text_free(&text);
    sample_rows_free(s);
}

/* Rows whose layers were timed have a table of them, and what the shares are of. */
static void layers_of_a_row(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    lap_row *row = &s->rows[0];
    snprintf(row->layers[0].name, sizeof row->layers[0].name, "a|b<i>");
    row->ceilings.has = true;
    row->ceilings.memory_bytes_per_s = lap_some(4e12);
    const char *p = strstr(render(&s->report, &text), "\n### Layers: NVIDIA H200, cuda:0, ");
    assert_non_null(p);
    assert_null(strstr(text.data, "batch 64\n\nFLOPs")); /* the failed row has none */
    p = strstr(p, "\n| Layer |") + 1;
    for (size_t i = 0; i < row->layer_count + 3; i++) {
        size_t n = strcspn(p, "\n");
        assert_int_equal(bars(p, n), 11);
        if (i == 2) assert_memory_equal(p, "| a\\|b&lt;i&gt; |", strlen("| a\\|b&lt;i&gt; |"));
        p += n + 1;
    }
    assert_int_equal(*p, '\n');
    assert_non_null(strstr(p, "sum of the layers"));
    if (!strstr(p, "memory 4.00TB/s")) fail_msg("%s", p);
    lap_text_free(&text);
    sample_rows_free(s);
}

static void nothing_becomes_markup(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    const char *p = render(&s->report, &text);
    assert_null(strchr(p, '<')); /* this document has no tags of its own */
    for (const char *tick = p; (tick = strchr(tick, '`')); tick++)
        assert_int_equal(tick[-1], '\\');
    assert_non_null(strstr(p, "no &lt;fp64&gt; \\| on \\`this\\`"));
    assert_non_null(strstr(p, "net\\|\\`work\\` &lt;i&gt;"));
    assert_non_null(
        strstr(p, "cuda:0 resnet18 224x224 batch 64: failed: layer1.0.conv1: refused, \"quoted\""));
    /* the reasons' newlines are gone: every line after the table is a list item or a sentence */
    assert_null(strstr(p, "\na second line"));
    assert_null(strstr(p, "\nline \"two\""));
    assert_null(strchr(p, '\xff'));
    lap_text_free(&text);
    sample_rows_free(s);
}

static void has_the_sentence(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    s->report.row_count = 1;
    lap_text text = {0};
    const char *p = render(&s->report, &text);
    const char *want = "NVIDIA H200 through CUDA runs ResNet-18 (224x224, fp32, batch 1) in 0.250 "
                       "ms ± 0.002 (4000 images/s), verified to 2.1e-07; throughput 12,000 "
                       "images/s at batch 256.\n";
    assert_non_null(strstr(p, want));
    lap_text_free(&text);
    sample_rows_free(s);
}

static void no_number_is_inf_or_nan(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text text = {0};
    const char *p = render(&s->report, &text);
    assert_null(strstr(p, "inf "));
    assert_null(strstr(p, "nan"));
    assert_non_null(strstr(p, "| Zero timer | opencl:1:0 | resnet18 | 224x224 | fp32 | 1 | "
                              "0.00000 ± n/a | n/a | n/a | n/a | n/a | too\\_short | ok |"));
    lap_text_free(&text);
    sample_rows_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_line_a_row),          cmocka_unit_test(layers_of_a_row),
        cmocka_unit_test(nothing_becomes_markup),  cmocka_unit_test(has_the_sentence),
        cmocka_unit_test(no_number_is_inf_or_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
