/* Queries: what is understood, what is refused and how. */
#include "history/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void terms(void **state) {
    (void)state;
    lap_query q;
    assert_int_equal(
        lap_query_parse("device=NVIDIA H200, batch=64,size=1024x2048,last=5,since=2026-03,"
                        "until=2026-03-01T12:00:00Z",
                        &q, NULL),
        LAP_OK);
    assert_string_equal(q.values[LAP_TERM_DEVICE], "NVIDIA H200");
    assert_int_equal(q.batch, 64);
    assert_int_equal(q.height, 1024);
    assert_int_equal(q.width, 2048);
    assert_int_equal(q.last, 5);
    assert_string_equal(q.values[LAP_TERM_SINCE], "2026-03");
    assert_null(q.values[LAP_TERM_HOST]);
    assert_int_equal(lap_query_add(&q, "precision", "fp16", NULL), LAP_OK);
    assert_string_equal(q.values[LAP_TERM_PRECISION], "fp16");
    assert_int_equal(lap_query_add(&q, "device", "x", NULL), LAP_E_CONFIG);
    lap_query_free(&q);
    for (int i = 0; i < 3; i++) {
        static const char *const all[] = {"", "all", "latest"};
        assert_int_equal(lap_query_parse(all[i], &q, NULL), LAP_OK);
        assert_int_equal(q.last, i == 2 ? 1 : 0);
        lap_query_free(&q);
    }
}

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *query, *says;
    } cases[] = {
        {"devcie=x", "did you mean device"},
        {"device", "no term"},
        {"batch=0", "from 1 up"},
        {"batch=x", "from 1 up"},
        {"last=-1", "from 1 up"},
        {"size=224", "height x width"},
        {"since=yesterday", "a date"},
        {"since=20", "a date"},
        {"until=2026-03-01 12", "a date"},
        {"since=2026-13", "a date"},
        {"since=2026-00", "a date"},
        {"since=2026-1", "a date"},
        {"since=2026-", "a date"},
        {"until=2026-02-29", "a date"},
        {"until=2026-04-31", "a date"},
        {"until=2026-03-01T24", "a date"},
        {"until=2026-03-01T12:60", "a date"},
        {"device=", "a value"},
        {"batch=1,batch=2", "twice"},
        {"latest,last=3", "twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_query q;
        lap_error err = {0};
        assert_int_equal(lap_query_parse(cases[i].query, &q, &err), LAP_E_CONFIG);
        if (!strstr(err.message, cases[i].says)) fail_msg("%s: %s", cases[i].query, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(terms), cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
