/* The gate: what fails it, what does not, and that nothing passes it by not being there. */
#include "papers.h"

#include "compare/words.h"

#include <string.h>

/* The gate on `rows` against `base`, each a document, at 5 %. */
static lap_gate gate(const paper_row *base, size_t base_count, const paper_row *rows, size_t count,
                     bool require_verified) {
    lap_document *d[] = {paper_load(&(paper){.name = "base.json"}, base, base_count),
                         paper_load(&(paper){.name = "new.json", .started = "later"}, rows, count)};
    lap_compare_options o = {.axis = LAP_BY_FILE,
                             .baseline_document = d[0],
                             .margin = 0.05,
                             .gate = true,
                             .require_verified = require_verified};
    lap_comparison c;
    papers_compare((const lap_document *const *)d, 2, &o, &c);
    lap_gate out = lap_gate_of(&c);
    lap_text text = {0};
    lap_words_summary(&text, &c);
    assert_true(!strstr(text.data, "FAILED") == (out == LAP_GATE_PASSED));
    lap_text_free(&text);
    lap_comparison_free(&c);
    lap_document_free(d[0]);
    lap_document_free(d[1]);
    return out;
}

static const paper_row good = {.mean = 1, .std = .01};

static lap_gate one(paper_row row) {
    return gate(&good, 1, &row, 1, false);
}

static void by_the_interval(void **state) {
    (void)state;
    /* A standard error of 0.1 % each. */
    assert_int_equal(one((paper_row){.mean = 1, .std = .01}), LAP_GATE_PASSED);
    assert_int_equal(one((paper_row){.mean = 1.04, .std = .01}), LAP_GATE_PASSED);
    assert_int_equal(one((paper_row){.mean = 1.051, .std = .01}), LAP_GATE_PASSED); /* unclear */
    assert_int_equal(one((paper_row){.mean = 1.06, .std = .01}), LAP_GATE_SLOWER);
    assert_int_equal(one((paper_row){.mean = 0.5, .std = .01}), LAP_GATE_PASSED);
    /* The same mean, known less well. */
    assert_int_equal(one((paper_row){.mean = 1.06, .std = .2}), LAP_GATE_PASSED);
    assert_int_equal(one((paper_row){.mean = 1.06, .std = .01, .n = 1}), LAP_GATE_PASSED);
    assert_int_equal(one((paper_row){.mean = 9, .std = -1}), LAP_GATE_PASSED); /* no interval */
}

static void one_slower_is_enough(void **state) {
    (void)state;
    const paper_row base[] = {good, {.mean = 1, .std = .01, .batch = 8}};
    const paper_row rows[] = {{.mean = 0.5, .std = .01}, {.mean = 1.2, .std = .01, .batch = 8}};
    assert_int_equal(gate(base, 2, rows, 2, false), LAP_GATE_SLOWER);
}

static void nothing_passes_by_absence(void **state) {
    (void)state;
    const paper_row two[] = {good, {.mean = 1, .std = .01, .batch = 8}};
    assert_int_equal(gate(two, 2, &good, 1, false), LAP_GATE_NOT_COMPARED);   /* a case is gone */
    assert_int_equal(gate(&good, 1, &good, 0, false), LAP_GATE_NOT_COMPARED); /* all are */
    assert_int_equal(gate(&good, 0, &good, 1, false), LAP_GATE_NOT_COMPARED);
    assert_int_equal(gate(&good, 1, two, 2, false), LAP_GATE_PASSED); /* a case is new */
    assert_int_equal(one((paper_row){.status = "failed"}), LAP_GATE_NOT_COMPARED);
    assert_int_equal(one((paper_row){.mean = 1, .std = .01, .clock = "wall"}),
                     LAP_GATE_NOT_COMPARED);
    assert_int_equal(one((paper_row){.mean = 1, .std = .01, .verified = "null"}),
                     LAP_GATE_NOT_COMPARED);
    /* One of two is not compared: the other does not make up for it. */
    const paper_row half[] = {good, {.status = "failed", .batch = 8}};
    assert_int_equal(gate(two, 2, half, 2, false), LAP_GATE_NOT_COMPARED);
    /* Where the baseline failed as well there is nothing to hold it to; the rest still counts. */
    const paper_row base[] = {good, {.status = "failed", .batch = 8}};
    const paper_row rows[] = {good, {.status = "failed", .batch = 8}};
    assert_int_equal(gate(base, 2, rows, 2, false), LAP_GATE_PASSED);
}

static void verification(void **state) {
    (void)state;
    const paper_row bare = {.mean = 1, .std = .01, .verified = "null"};
    const paper_row wrong = {.status = "failed", .verified = "false"};
    assert_int_equal(gate(&good, 1, &good, 1, true), LAP_GATE_PASSED);
    assert_int_equal(gate(&good, 1, &bare, 1, true), LAP_GATE_NOT_VERIFIED);
    assert_int_equal(gate(&bare, 1, &good, 1, true), LAP_GATE_NOT_VERIFIED);
    assert_int_equal(gate(&bare, 1, &bare, 1, true), LAP_GATE_NOT_VERIFIED);
    assert_int_equal(gate(&bare, 1, &bare, 1, false), LAP_GATE_PASSED);
    assert_int_equal(gate(&good, 1, &wrong, 1, true), LAP_GATE_NOT_VERIFIED);
    /* Wrong is worse than slow. */
    const paper_row base[] = {good, {.mean = 1, .std = .01, .batch = 8}};
    const paper_row rows[] = {{.mean = 2, .std = .01},
                              {.status = "failed", .batch = 8, .verified = "false"}};
    assert_int_equal(gate(base, 2, rows, 2, true), LAP_GATE_NOT_VERIFIED);
    assert_int_equal(gate(base, 2, rows, 2, false), LAP_GATE_SLOWER);
}

/* A file compared with itself has no candidates. */
static void same_file_twice(void **state) {
    (void)state;
    lap_document *d[] = {paper_load(&(paper){.name = "base.json"}, &good, 1),
                         paper_load(&(paper){.name = "copy.json"}, &good, 1)};
    lap_compare_options o = {.axis = LAP_BY_FILE, .baseline_document = d[0], .gate = true};
    lap_comparison c;
    papers_compare((const lap_document *const *)d, 2, &o, &c);
    assert_int_equal(lap_gate_of(&c), LAP_GATE_NOT_COMPARED);
    lap_comparison_free(&c);
    lap_document_free(d[0]);
    lap_document_free(d[1]);
}

/* Without a gate nothing fails. */
static void no_gate(void **state) {
    (void)state;
    const paper_row rows[] = {good, {.mean = 9, .std = .01, .backend = "opencl"}};
    lap_document *d = paper_load(&(paper){0}, rows, 2);
    const lap_document *all[] = {d};
    lap_compare_options o = {.baseline = "cuda", .margin = 0.01};
    lap_comparison c;
    papers_compare(all, 1, &o, &c);
    assert_int_equal(c.slower, 1);
    assert_int_equal(lap_gate_of(&c), LAP_GATE_PASSED);
    lap_comparison_free(&c);
    lap_document_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_interval),           cmocka_unit_test(one_slower_is_enough),
        cmocka_unit_test(nothing_passes_by_absence), cmocka_unit_test(verification),
        cmocka_unit_test(same_file_twice),           cmocka_unit_test(no_gate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
