/* Rows of a result file become rows again: every document and table shows them as before, and a
 * file of another's making is refused, never believed. */
#include "compare/restore.h"
#include "report/rows.h"
#include "report/table.h"

#include <stdlib.h>
#include <string.h>

typedef lap_status (*renderer)(const lap_report *, lap_text *, lap_error *);

static char *shown(renderer render, lap_row *row) {
    lap_report report = {.rows = row, .row_count = 1, .started = "", .samples = true};
    lap_text text = {0};
    assert_int_equal(render(&report, &text, NULL), LAP_OK);
    assert_non_null(text.data);
    return text.data;
}

/* The tables of a terminal, one after the other. */
static lap_status tables(const lap_report *report, lap_text *out, lap_error *err) {
    lap_style style = {.width = 100};
    LAP_TRY(lap_report_table(report, &style, out, err));
    LAP_TRY(lap_report_extras(report, &report->rows[0], &style, out, err));
    return lap_report_layers(&report->rows[0], &style, out, err);
}

static json_t *row_object(lap_row *row) {
    char *text = shown(lap_report_json, row);
    json_t *document = json_loads(text, 0, NULL);
    assert_non_null(document);
    json_t *object = json_incref(json_array_get(json_object_get(document, "rows"), 0));
    json_decref(document);
    free(text);
    return object;
}

static void as_before(void **state) {
    (void)state;
    static const renderer renderers[] = {lap_report_json, lap_report_csv, lap_report_markdown,
                                         tables};
    sample_rows *s = sample_rows_new();
    for (size_t i = 0; i < ROW_COUNT; i++) {
        lap_error err = {0};
        lap_row copy;
        s->rows[i].layer_sum = (lap_layer_sum){lap_some(1), lap_some(2), lap_some(3), lap_some(4)};
        json_t *object = row_object(&s->rows[i]);
        if (lap_row_restore("f", i, object, &s->rows[i].device, &copy, &err) != LAP_OK)
            fail_msg("%s", err.message);
        /* Row 1 has line ends in its texts, which a file's are cleaned of. */
        size_t count = i == 1 ? 1 : sizeof renderers / sizeof *renderers;
        for (size_t k = 0; k < count; k++) {
            char *before = shown(renderers[k], &s->rows[i]), *after = shown(renderers[k], &copy);
            size_t same = 0; /* cmocka shows the beginning only */
            while (before[same] && before[same] == after[same])
                same++;
            if (strcmp(before, after) != 0)
                fail_msg("row %zu, document %zu: '%.60s' became '%.60s'", i, k,
                         before + (same > 40 ? same - 40 : 0), after + (same > 40 ? same - 40 : 0));
            free(before);
            free(after);
        }
        lap_row_free(&copy);
        json_decref(object);
    }
    sample_rows_free(s);
}

/* Every member in turn is something else: refused, or of no consequence; never a crash. */
static size_t spoil(json_t *object, json_t *row, const lap_device_info *device, size_t *refused) {
    const char *key;
    json_t *value;
    void *next;
    size_t count = 0;
    json_object_foreach_safe(object, next, key, value) {
        const char *const others[] = {"[[1]]", "\"text\"", "{\"a\":[]}", "-1", "1e300", "true"};
        json_t *kept = json_incref(value);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
            lap_row out;
            lap_error err = {0};
            json_object_set_new(object, key, json_loads(others[i], JSON_DECODE_ANY, NULL));
            if (lap_row_restore("f", 3, row, device, &out, &err) == LAP_OK)
                lap_row_free(&out);
            else if (strstr(err.message, "f: rows[3]"))
                ++*refused;
            else
                fail_msg("%s: %s", key, err.message);
        }
        json_object_set_new(object, key, kept);
        count++;
        if (json_is_object(kept)) count += spoil(kept, row, device, refused);
        for (size_t i = 0; i < json_array_size(kept); i++)
            if (json_is_object(json_array_get(kept, i)))
                count += spoil(json_array_get(kept, i), row, device, refused);
    }
    return count;
}

static void other_files(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    json_t *object = row_object(&s->rows[0]);
    size_t refused = 0, members = spoil(object, object, &s->rows[0].device, &refused);
    assert_true(members > 150 && refused > 300);
    lap_row out;
    lap_error err = {0};
    json_t *none = json_array();
    assert_int_equal(lap_row_restore("f", 0, none, &s->rows[0].device, &out, &err), LAP_E_FORMAT);
    assert_int_equal(lap_row_restore("f", 0, NULL, &s->rows[0].device, &out, &err), LAP_E_FORMAT);
    json_decref(none);
    json_decref(object);
    sample_rows_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_before),
        cmocka_unit_test(other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
