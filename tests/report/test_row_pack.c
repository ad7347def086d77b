/* A row that went from one process to another is the same row; half of one is none. */
#include "measure/row_pack.h"
#include "rows.h"

#include <stdlib.h>
#include <string.h>

static char *as_json(lap_row *row) {
    lap_report report = {.rows = row, .row_count = 1, .started = "", .samples = true};
    lap_text text = {0};
    assert_int_equal(lap_report_json(&report, &text, NULL), LAP_OK);
    assert_non_null(text.data);
    return text.data;
}

static void same_row(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    for (size_t i = 0; i < ROW_COUNT; i++) {
        lap_text packed = {0};
        lap_row copy;
        assert_true(lap_row_pack(&s->rows[i], &packed));
        assert_true(lap_row_unpack(packed.data, packed.length, &copy));
        char *before = as_json(&s->rows[i]), *after = as_json(&copy);
        assert_string_equal(before, after);
        free(before);
        free(after);
        /* It may grow like any other. */
        assert_true(lap_row_note(&copy, "one more"));
        assert_true(lap_row_add_kernel(&copy, "a", "b", "c", "d"));
        assert_true(lap_row_add_layer(&copy, &(lap_layer){.name = "x"}));
        lap_row_free(&copy);
        lap_text_free(&packed);
    }
    sample_rows_free(s);
}

static void half_a_row(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    lap_text packed = {0};
    lap_row copy;
    assert_true(lap_row_pack(&s->rows[0], &packed));
    for (size_t n = 0; n < packed.length; n += n % 97 + 1) {
        char *exact = malloc(n ? n : 1);
        assert_non_null(exact);
        memcpy(exact, packed.data, n);
        assert_false(lap_row_unpack(exact, n, &copy));
        assert_null(copy.notes);
        free(exact);
    }
    lap_text_add(&packed, "x");
    assert_false(lap_row_unpack(packed.data, packed.length, &copy));
    lap_text_free(&packed);
    sample_rows_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_row),
        cmocka_unit_test(half_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
