/* Which row a row is compared with: precisions of one class, orders, what is measured differently.
 */
#include "papers.h"

#include <string.h>

#define UUID_A "00000000-0000-0000-0000-00000000000a"
#define UUID_B "00000000-0000-0000-0000-00000000000b"

/* Two documents, the first the baseline unless `o` has a selector. */
typedef struct two {
    lap_document *base, *new;
    const lap_document *all[2];
    lap_compare_options options;
    lap_comparison c;
} two;

static void make_two(two *t, const paper_row *base, size_t base_count, const paper_row *rows,
                     size_t count, lap_compare_options o) {
    t->base = paper_load(&(paper){.name = "base.json"}, base, base_count);
    t->new = paper_load(&(paper){.name = "new.json", .started = "later"}, rows, count);
    t->all[0] = t->base, t->all[1] = t->new;
    t->options = o;
    if (!o.baseline) t->options.baseline_document = t->base;
    papers_compare(t->all, 2, &t->options, &t->c);
}

static void drop_two(two *t) {
    lap_comparison_free(&t->c);
    lap_document_free(t->base);
    lap_document_free(t->new);
}

/* The row of either document that row of the second is compared with. */
static void against(const two *t, size_t row, const lap_document *d, size_t wanted) {
    const lap_line *line = line_of(&t->c, t->new, row);
    if (line->baseline != &d->rows[wanted] || line->apart[0])
        fail_msg("row %zu: row %zu of %s, '%s'", row,
                 line->baseline ? line->baseline->index : (size_t)99,
                 line->baseline ? line->baseline->document->path : "none", line->apart);
}

static const lap_compare_options gate = {.axis = LAP_BY_FILE, .margin = 0.05, .gate = true};

/* ---- precisions ----------------------------------------------------------------------------- */

static void the_very_same_precision(void **state) {
    (void)state;
    const paper_row base[] = {{.mean = 10, .std = .01},
                              {.mean = 5, .std = .01, .precision = "fp32x3"}};
    const paper_row rows[] = {{.mean = 10, .std = .01},
                              {.mean = 8, .std = .01, .precision = "fp32x3"}};
    static const lap_axis axes[] = {LAP_BY_FILE,      LAP_BY_DEVICE, LAP_BY_API,
                                    LAP_BY_PRECISION, LAP_BY_DRIVER, LAP_BY_VERSION};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        two t;
        lap_compare_options o = gate;
        o.axis = axes[i];
        make_two(&t, base, 2, rows, 2, o);
        against(&t, 0, t.base, 0);
        against(&t, 1, t.base, 1);
        assert_int_equal(line_of(&t.c, t.new, 0)->judgement, LAP_JUDGED_SAME);
        assert_int_equal(line_of(&t.c, t.new, 1)->judgement, LAP_JUDGED_SLOWER);
        assert_int_equal(line_of(&t.c, t.base, 1)->judgement, LAP_JUDGED_BASELINE);
        assert_int_equal(lap_gate_of(&t.c), LAP_GATE_SLOWER);
        drop_two(&t);
    }
}

/* Only where there is none the other one stands in; not for one that failed. */
static void the_other_precision_of_its_class(void **state) {
    (void)state;
    const paper_row fp32 = {.mean = 10, .std = .01},
                    x3 = {.mean = 5, .std = .01, .precision = "fp32x3"};
    two t;
    make_two(&t, &fp32, 1, &x3, 1, gate);
    against(&t, 0, t.base, 0);
    assert_int_equal(lap_gate_of(&t.c), LAP_GATE_PASSED);
    drop_two(&t);
    paper_row base[] = {fp32, {.status = "unsupported", .precision = "fp32x3"}};
    make_two(&t, base, 2, &x3, 1, gate);
    against(&t, 0, t.base, 0);
    drop_two(&t);
    base[1].status = "failed";
    make_two(&t, base, 2, &x3, 1, gate);
    assert_string_equal(line_of(&t.c, t.new, 0)->apart, "the baseline has no time for this case");
    drop_two(&t);
}

/* A precision that is gone is a case that is gone, although its class is still there. */
static void a_precision_is_missing(void **state) {
    (void)state;
    const paper_row both[] = {{.mean = 10, .std = .01},
                              {.mean = 5, .std = .01, .precision = "fp32x3"}};
    two t;
    make_two(&t, both, 2, both, 1, gate);
    assert_int_equal(t.c.missing, 1);
    assert_true(line_of(&t.c, t.base, 1)->missing);
    assert_int_equal(lap_gate_of(&t.c), LAP_GATE_NOT_COMPARED);
    drop_two(&t);
}

/* By device a row has its own device and API as baseline where the file has them. */
static void the_same_device_of_a_file(void **state) {
    (void)state;
    const paper_row base[] = {{.mean = 1, .std = .01, .uuid = UUID_A},
                              {.mean = 2, .std = .01, .uuid = UUID_A, .backend = "opencl"},
                              {.mean = 3, .std = .01, .uuid = UUID_B, .selector = "cuda:1"}};
    const paper_row rows[] = {{.mean = 3, .std = .01, .uuid = UUID_B, .selector = "cuda:0"},
                              {.mean = 2, .std = .01, .uuid = UUID_A, .backend = "opencl"},
                              {.mean = 9, .std = .01, .device = "another"}};
    two t;
    lap_compare_options o = gate;
    o.axis = LAP_BY_DEVICE;
    make_two(&t, base, 3, rows, 3, o);
    against(&t, 0, t.base, 2);
    against(&t, 1, t.base, 1);
    against(&t, 2, t.base, 0);
    assert_int_equal(t.c.missing, 0);
    drop_two(&t);
}

/* Without a baseline each precision has its fastest; a single one is held to the other. */
static void the_fastest_of_a_precision(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 10, .std = .01},
                              {.mean = 8, .std = .01, .backend = "opencl"},
                              {.mean = 5, .std = .01, .precision = "fp32x3"},
                              {.mean = 6, .std = .01, .precision = "fp32x3", .backend = "opencl"}};
    lap_document *d = paper_load(&(paper){0}, rows, 4);
    const lap_document *all[] = {d};
    lap_compare_options o = {.margin = 0.01};
    lap_comparison c;
    papers_compare(all, 1, &o, &c);
    assert_ptr_equal(line_of(&c, d, 0)->baseline, &d->rows[1]);
    assert_ptr_equal(line_of(&c, d, 3)->baseline, &d->rows[2]);
    lap_comparison_free(&c);
    o.axis = LAP_BY_PRECISION; /* that is what differs */
    papers_compare(all, 1, &o, &c);
    assert_ptr_equal(line_of(&c, d, 0)->baseline, &d->rows[2]);
    lap_comparison_free(&c);
    o.baseline = "fp32";
    papers_compare(all, 1, &o, &c);
    assert_ptr_equal(line_of(&c, d, 2)->baseline, &d->rows[0]);
    lap_comparison_free(&c);
    lap_document_free(d);
    d = paper_load(&(paper){0}, rows, 3);
    all[0] = d;
    o = (lap_compare_options){.margin = 0.01};
    papers_compare(all, 1, &o, &c);
    assert_ptr_equal(line_of(&c, d, 2)->baseline, &d->rows[1]);
    assert_int_equal(line_of(&c, d, 2)->judgement, LAP_JUDGED_FASTER);
    lap_comparison_free(&c);
    lap_document_free(d);
}

/* ---- orders --------------------------------------------------------------------------------- */

/* The first of the rows that a selector names, in whatever order they are shown. */
static void orders_decide_nothing(void **state) {
    (void)state;
    const paper_row rows[] = {
        {.mean = 2, .std = .01, .device = "b"},
        {.mean = 3, .std = .01, .device = "c", .selector = "cuda:1"},
        {.mean = 1, .std = .01, .device = "a", .selector = "cuda:2"},
        {.mean = 4, .std = .01, .device = "d", .selector = "cuda:3", .precision = "fp32x3"},
        {.mean = 5, .std = .01, .device = "e", .selector = "cuda:4", .precision = "fp32x3"},
        {.mean = 2, .std = .01, .device = "b", .backend = "opencl"}};
    lap_document *d = paper_load(&(paper){0}, rows, 6);
    const lap_document *all[] = {d};
    for (int order = 0; order < LAP_ORDERS; order++)
        for (int reverse = 0; reverse < 2; reverse++) {
            lap_compare_options o = {
                .baseline = "cuda", .margin = 0.01, .order = (lap_order)order, .reverse = reverse};
            lap_comparison c;
            papers_compare(all, 1, &o, &c);
            for (size_t i = 0; i < 6; i++)
                assert_ptr_equal(line_of(&c, d, i)->baseline, &d->rows[i == 3 || i == 4 ? 3 : 0]);
            assert_int_equal(line_of(&c, d, 0)->judgement, LAP_JUDGED_BASELINE);
            assert_int_equal(c.slower, 2);
            assert_int_equal(c.faster, 1);
            lap_comparison_free(&c);
        }
    lap_document_free(d);
}

/* By latency means by the mean, which is shown; the median says the opposite here. */
static void latency_is_the_mean(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 2, .p50 = 1, .std = .01, .device = "a"},
                              {.mean = 1, .p50 = 2, .std = .01, .device = "b"},
                              {.mean = 3, .p50 = .5, .std = .01, .device = "c"}};
    lap_document *d = paper_load(&(paper){0}, rows, 3);
    const lap_document *all[] = {d};
    lap_compare_options o = {.order = LAP_ORDER_LATENCY};
    lap_comparison c;
    papers_compare(all, 1, &o, &c);
    assert_string_equal(c.lines[0].record->device, "b");
    assert_string_equal(c.lines[1].record->device, "a");
    assert_string_equal(c.lines[2].record->device, "c");
    lap_comparison_free(&c);
    lap_document_free(d);
}

/* ---- what is measured differently ----------------------------------------------------------- */

static void why(const paper_row *rows, size_t n, size_t row, const char *wanted) {
    lap_document *d = paper_load(&(paper){0}, rows, n);
    const lap_document *all[] = {d};
    lap_compare_options o = {.margin = 0.01};
    lap_comparison c;
    papers_compare(all, 1, &o, &c);
    const lap_line *line = line_of(&c, d, row);
    if (!strstr(line->apart, wanted) || line->judgement != LAP_JUDGED_NOTHING)
        fail_msg("'%s', expected '%s'", line->apart, wanted);
    lap_comparison_free(&c);
    lap_document_free(d);
}

static void caches(void **state) {
    (void)state;
    const paper_row cold = {.mean = 2, .std = .01, .cache = "cold"},
                    hot = {.mean = 1, .std = .01, .cache = "hot"}, old = {.mean = 1, .std = .01};
    two t;
    make_two(&t, &hot, 1, &cold, 1, gate);
    assert_string_equal(line_of(&t.c, t.new, 0)->apart,
                        "run with a cold cache, and the baseline with a hot one");
    assert_int_equal(lap_gate_of(&t.c), LAP_GATE_NOT_COMPARED);
    drop_two(&t);
    make_two(&t, &cold, 1, &old, 1, gate);
    assert_string_equal(line_of(&t.c, t.new, 0)->apart,
                        "run with a hot cache, and the baseline with a cold one");
    drop_two(&t);
    make_two(&t, &old, 1, &hot, 1, gate); /* before there was a choice */
    assert_int_equal(line_of(&t.c, t.new, 0)->judgement, LAP_JUDGED_SAME);
    drop_two(&t);
}

static void true_reasons(void **state) {
    (void)state;
    paper_row rows[] = {{.mean = 1, .std = .01}, {.mean = 2, .std = .01, .backend = "opencl"}};
    rows[1].verified = "null";
    why(rows, 2, 0, "another of this case was not verified, and this one was");
    why(rows, 2, 1, "another of this case was verified, and this one was not");
    rows[1].verified = NULL, rows[1].cache = "cold";
    why(rows, 2, 0, "run with a cold cache, and this one with a hot one");
    rows[1].cache = NULL, rows[1].clock = "wall";
    why(rows, 2, 0, "timed by another clock");
    rows[1] = (paper_row){.status = "failed", .backend = "opencl", .reason = "out of memory"};
    why(rows, 2, 0, "no other row of this case has a time");
    rows[1].precision = "fp16";
    why(rows, 2, 0, "no other row has this case");
}

/* Wrong results have no time, even if the file has one. */
static void wrong_results_have_no_time(void **state) {
    (void)state;
    const paper_row good = {.mean = 2, .std = .01};
    const paper_row wrong = {.mean = 1, .std = .01, .images_per_s = 9, .verified = "false"};
    const paper_row rows[] = {wrong, good, {.mean = 3, .std = .01, .backend = "opencl"}};
    lap_document *d = paper_load(&(paper){0}, rows, 3);
    const lap_document *all[] = {d};
    lap_compare_options o = {.margin = 0.01};
    lap_comparison c;
    papers_compare(all, 1, &o, &c);
    assert_ptr_equal(line_of(&c, d, 2)->baseline, &d->rows[1]);
    assert_string_equal(line_of(&c, d, 0)->apart, "its verification failed");
    assert_false(d->rows[0].images_per_s.has);
    lap_comparison_free(&c);
    lap_document_free(d);
    two t;
    make_two(&t, &good, 1, &wrong, 1, gate);
    assert_int_equal(lap_gate_of(&t.c), LAP_GATE_NOT_COMPARED);
    drop_two(&t);
    make_two(&t, &wrong, 1, &good, 1, gate);
    assert_string_equal(line_of(&t.c, t.new, 0)->apart,
                        "the baseline's row is wrong: its verification failed");
    drop_two(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_very_same_precision),
        cmocka_unit_test(the_other_precision_of_its_class),
        cmocka_unit_test(a_precision_is_missing),
        cmocka_unit_test(the_same_device_of_a_file),
        cmocka_unit_test(the_fastest_of_a_precision),
        cmocka_unit_test(orders_decide_nothing),
        cmocka_unit_test(latency_is_the_mean),
        cmocka_unit_test(caches),
        cmocka_unit_test(true_reasons),
        cmocka_unit_test(wrong_results_have_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
