/* Which rows are compared with which, and why others are not. */
#include "papers.h"

#include "compare/words.h"

#include <string.h>

#define UUID_A "00000000-0000-0000-0000-00000000000a"
#define UUID_B "00000000-0000-0000-0000-00000000000b"

static const lap_compare_options defaults = {.margin = 0.01};

/* Two documents of a row each, compared by `o`; the second row's line is judged as `want` and its
 * reason contains `words`. The first is the baseline (its file is). */
static void pair(const paper_row *a, const paper_row *b, lap_compare_options o, lap_judgement want,
                 const char *words) {
    lap_document *d[2] = {paper_load(&(paper){.name = "a.json"}, a, 1),
                          paper_load(&(paper){.name = "b.json", .started = "later"}, b, 1)};
    lap_comparison c;
    o.baseline_document = d[0];
    papers_compare((const lap_document *const *)d, 2, &o, &c);
    const lap_line *line = line_of(&c, d[1], 0);
    if (line->judgement != want || !strstr(line->apart, words))
        fail_msg("%s '%s', expected %s '%s'", lap_judgement_name(line->judgement), line->apart,
                 lap_judgement_name(want), words);
    lap_comparison_free(&c);
    lap_document_free(d[0]);
    lap_document_free(d[1]);
}

static void what_must_agree(void **state) {
    (void)state;
    const char *no_case = "no time for this case";
    paper_row a = {.mean = 1, .std = 0.001}, b = {.mean = 2, .std = 0.001};
    pair(&a, &b, defaults, LAP_JUDGED_SLOWER, "");
    b.size = 32;
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, no_case);
    b.width = 224;
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, no_case);
    b.size = 224, b.width = 32;
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, no_case);
    b = (paper_row){.mean = 2, .std = 0.001, .network = "resnet34"};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, no_case);
    b = (paper_row){.mean = 2, .std = 0.001, .batch = 8};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, no_case);
    b = (paper_row){.mean = 2, .std = 0.001, .precision = "fp16"};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, no_case);
    b = (paper_row){.mean = 2, .std = 0.001, .precision = "fp32x3"}; /* the same class */
    pair(&a, &b, defaults, LAP_JUDGED_SLOWER, "");
    b = (paper_row){.mean = 2, .std = 0.001, .clock = "wall"};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, "another clock");
    b = (paper_row){.mean = 2, .std = 0.001, .verified = "null"};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, "not verified, and the baseline is");
    pair(&b, &a, defaults, LAP_JUDGED_NOTHING, "verified, and the baseline is not");
    b = (paper_row){.mean = 2, .std = 0.001, .others = 1}; /* beside others is another case */
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, no_case);
    paper_row beside = b;
    pair(&b, &beside, defaults, LAP_JUDGED_SAME, "");
    beside.beside = "1 x NVIDIA H200 + 1 x a processor";
    pair(&b, &beside, defaults, LAP_JUDGED_NOTHING, "beside other devices");
    beside = b, beside.others = 3;
    pair(&b, &beside, defaults, LAP_JUDGED_NOTHING, no_case);
    b = (paper_row){.mean = 0};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, "no latency was measured");
    b = (paper_row){.status = "failed", .reason = "out of memory"};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, "out of memory");
    b = (paper_row){.status = "skipped"};
    pair(&a, &b, defaults, LAP_JUDGED_NOTHING, "skipped");
    pair(&b, &a, defaults, LAP_JUDGED_NOTHING, no_case);
}

static void wall_spans_of_both(void **state) {
    (void)state;
    lap_compare_options o = defaults;
    o.wall = true;
    paper_row a = {.mean = 1, .std = 0.001, .wall = 3},
              b = {.mean = 3, .std = 0.001, .wall = 3, .clock = "wall"};
    pair(&a, &b, o, LAP_JUDGED_SAME, "");
}

static void other_weights(void **state) {
    (void)state;
    paper_row row = {.mean = 1, .std = 0.001};
    lap_document *d[2] = {
        paper_load(&(paper){0}, &row, 1),
        paper_load(&(paper){.name = "b.json", .weights = "w.safetensors"}, &row, 1)};
    lap_compare_options o = defaults;
    lap_comparison c;
    o.baseline_document = d[0];
    row.mean = 2;
    d[1]->started = "later";
    papers_compare((const lap_document *const *)d, 2, &o, &c);
    assert_string_equal(line_of(&c, d[1], 0)->apart, "run with other weights");
    lap_comparison_free(&c);
    lap_document_free(d[0]);
    lap_document_free(d[1]);
}

/* One document with these rows, by an axis; gives the number of groups with a comparison. */
static size_t compared_groups(const paper_row *rows, size_t n, lap_axis axis) {
    lap_document *d = paper_load(&(paper){0}, rows, n);
    const lap_document *all[] = {d};
    lap_compare_options o = defaults;
    lap_comparison c;
    o.axis = axis;
    papers_compare(all, 1, &o, &c);
    size_t groups = 0, lines = 0;
    for (size_t g = 0; g < c.group_count; g++) {
        assert_int_equal(c.groups[g].first, lines);
        lines += c.groups[g].count;
        groups += c.lines[c.groups[g].first].baseline && c.groups[g].count > 1;
    }
    assert_int_equal(lines, n);
    lap_comparison_free(&c);
    lap_document_free(d);
    return groups;
}

static void axes(void **state) {
    (void)state;
    const paper_row rows[] = {
        {.mean = 1, .std = .01, .uuid = UUID_A},
        {.mean = 2, .std = .01, .uuid = UUID_A, .backend = "opencl"},
        {.mean = 3, .std = .01, .uuid = UUID_A, .precision = "fp16"},
        {.mean = 4, .std = .01, .uuid = UUID_A, .batch = 8},
        {.mean = 5, .std = .01, .uuid = UUID_B, .selector = "cuda:1"},
    };
    assert_int_equal(compared_groups(rows, 5, LAP_BY_DEVICE), 1);    /* rows 0, 1, 4 */
    assert_int_equal(compared_groups(rows, 5, LAP_BY_API), 1);       /* 0, 1 */
    assert_int_equal(compared_groups(rows, 5, LAP_BY_PRECISION), 1); /* 0, 2 */
    assert_int_equal(compared_groups(rows, 5, LAP_BY_BATCH), 1);     /* 0, 3 */
    assert_int_equal(compared_groups(rows, 5, LAP_BY_FILE), 0);
    lap_axis axis;
    for (int i = 0; i < LAP_AXES; i++) {
        assert_true(lap_axis_parse(lap_axis_name((lap_axis)i), &axis));
        assert_int_equal(axis, i);
    }
    assert_false(lap_axis_parse("devices", &axis));
}

/* By batch the time is that of an image. */
static void batches_per_image(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 1, .std = .001}, {.mean = 4, .std = .001, .batch = 8}};
    lap_document *d = paper_load(&(paper){0}, rows, 2);
    const lap_document *all[] = {d};
    lap_compare_options o = {.axis = LAP_BY_BATCH, .baseline = "batch=1", .margin = 0.01};
    lap_comparison c;
    papers_compare(all, 1, &o, &c);
    const lap_line *line = line_of(&c, d, 1);
    assert_int_equal(line->judgement, LAP_JUDGED_FASTER);
    assert_true(line->speed.ratio > 1.999 && line->speed.ratio < 2.001);
    lap_comparison_free(&c);
    lap_document_free(d);
}

/* The same model in another machine is the same device by file; another device of this one is not.
 */
static void devices_across_machines(void **state) {
    (void)state;
    const paper_row two[] = {{.mean = 1, .std = .001, .uuid = UUID_A},
                             {.mean = 2, .std = .001, .uuid = UUID_B, .selector = "cuda:1"}};
    const paper_row one = {.mean = 3, .std = .001, .uuid = "c"};
    const paper_row second = {.mean = 3, .std = .001, .uuid = UUID_B};
    lap_document *base = paper_load(&(paper){0}, two, 2);
    lap_document *other = paper_load(&(paper){.name = "o", .cpu = "another"}, &one, 1);
    lap_document *here = paper_load(&(paper){.name = "h", .started = "later"}, &second, 1);
    const lap_document *all[] = {base, other, here};
    lap_compare_options o = {.axis = LAP_BY_FILE, .baseline_document = base, .margin = 0.01};
    lap_comparison c;
    papers_compare(all, 3, &o, &c);
    const lap_line *far = line_of(&c, other, 0), *near = line_of(&c, here, 0);
    assert_ptr_equal(far->baseline, &base->rows[0]);
    assert_ptr_equal(near->baseline, &base->rows[1]);
    lap_comparison_free(&c);
    lap_document_free(base);
    lap_document_free(other);
    lap_document_free(here);
}

/* Without UUIDs the place in the file tells devices of one name apart. */
static void devices_by_place(void **state) {
    (void)state;
    paper_row rows[] = {{.mean = 1, .std = .001},
                        {.mean = 1, .std = .001, .batch = 8},
                        {.mean = 2, .std = .001, .selector = "cuda:1"},
                        {.mean = 2, .std = .001, .selector = "cuda:1", .batch = 8}};
    lap_document *base = paper_load(&(paper){0}, rows, 4);
    rows[0].selector = rows[1].selector = "cuda:4"; /* other numbers, the same order */
    rows[2].selector = rows[3].selector = "cuda:7";
    lap_document *other = paper_load(&(paper){.name = "o", .cpu = "another"}, rows, 4);
    const lap_document *all[] = {base, other};
    lap_compare_options o = {.axis = LAP_BY_FILE, .baseline_document = base, .margin = 0.01};
    lap_comparison c;
    papers_compare(all, 2, &o, &c);
    assert_int_equal(c.group_count, 4);
    assert_int_equal(c.same, 4);
    for (size_t i = 0; i < 4; i++)
        assert_ptr_equal(line_of(&c, other, i)->baseline, &base->rows[i]);
    lap_comparison_free(&c);
    lap_document_free(base);
    lap_document_free(other);
}

/* Devices of one name in two machines are not one device through two APIs. */
static void pairs_need_one_device(void **state) {
    (void)state;
    const paper_row a = {.mean = 1, .std = .001, .uuid = UUID_A},
                    b = {.mean = 1, .std = .001, .uuid = UUID_B, .backend = "opencl"};
    lap_document *d[] = {paper_load(&(paper){0}, &a, 1),
                         paper_load(&(paper){.name = "o", .cpu = "another"}, &b, 1)};
    lap_comparison c;
    papers_compare((const lap_document *const *)d, 2, &defaults, &c);
    assert_int_equal(c.pair_count, 0);
    lap_comparison_free(&c);
    lap_document_free(d[0]);
    lap_document_free(d[1]);
}

static void fastest_of_the_majority(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 1, .std = .001, .verified = "null"},
                              {.mean = 3, .std = .001},
                              {.mean = 2, .std = .001, .backend = "opencl"},
                              {.mean = 9, .std = .001, .batch = 4}};
    lap_document *d = paper_load(&(paper){0}, rows, 4);
    const lap_document *all[] = {d};
    lap_comparison c;
    papers_compare(all, 1, &defaults, &c);
    assert_int_equal(line_of(&c, d, 2)->judgement, LAP_JUDGED_BASELINE);
    assert_int_equal(line_of(&c, d, 1)->judgement, LAP_JUDGED_SLOWER);
    assert_string_equal(line_of(&c, d, 0)->apart, "not verified, and the baseline is");
    assert_string_equal(line_of(&c, d, 3)->apart, "no other row has this case");
    assert_int_equal(c.apart, 2);
    lap_comparison_free(&c);
    lap_document_free(d);
}

static void selectors(void **state) {
    (void)state;
    const paper_row row = {.mean = 1,
                           .std = .1,
                           .device = "AMD Instinct, x",
                           .precision = "fp16",
                           .backend = "opencl",
                           .selector = "opencl:1:0",
                           .batch = 8};
    lap_document *d = paper_load(&(paper){.version = "9.9"}, &row, 1);
    static const char *const yes[] = {"opencl",          "opencl:1:0", "instinct", "name=AMD",
                                      "AMD Instinct, x", "fp16",       "batch=8",  "9.9"};
    static const char *const no[] = {"opencl:1", "cuda", "batch=80", "name=opencl", "", "fp1", "9"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!lap_record_matches(&d->rows[0], yes[i])) fail_msg("%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (lap_record_matches(&d->rows[0], no[i])) fail_msg("%s", no[i]);
    const lap_document *all[] = {d};
    lap_compare_options o = {.baseline = "nosuch"};
    lap_comparison c;
    lap_error err = {0};
    assert_int_equal(lap_compare(all, 1, &o, &c, &err), LAP_E_CONFIG);
    assert_non_null(strstr(err.message, "opencl:1:0"));
    assert_null(c.lines);
    lap_document_free(d);
}

static void duplicates_count_once(void **state) {
    (void)state;
    const paper_row row = {.mean = 1, .std = .1, .images_per_s = 7};
    paper_row faster = row;
    faster.images_per_s = 8;
    lap_document *d[] = {paper_load(&(paper){.name = "a"}, &row, 1),
                         paper_load(&(paper){.name = "copy"}, &row, 1),
                         paper_load(&(paper){.name = "again", .started = "later"}, &row, 1),
                         paper_load(&(paper){.name = "elsewhere", .cpu = "another"}, &row, 1),
                         paper_load(&(paper){.name = "other values"}, &faster, 1),
                         paper_load(&(paper){.name = "empty"}, &row, 0)};
    lap_comparison c;
    papers_compare((const lap_document *const *)d, 6, &defaults, &c);
    assert_int_equal(c.duplicate_of[1], 0);
    for (size_t i = 0; i < 6; i++)
        if (i != 1) assert_int_equal(c.duplicate_of[i], i);
    assert_int_equal(c.line_count, 4);
    lap_comparison_free(&c);
    for (size_t i = 0; i < 6; i++)
        lap_document_free(d[i]);
}

static void orders(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 2, .std = .1, .device = "b", .images_per_s = 1},
                              {.device = "z"},
                              {.mean = 1, .std = .1, .device = "c", .images_per_s = 3},
                              {.mean = 3, .std = .1, .device = "a", .images_per_s = 2},
                              {.mean = 2, .std = .1, .device = "d", .images_per_s = 1}};
    static const struct {
        lap_order order;
        bool reverse;
        const char *want;
    } cases[] = {{LAP_ORDER_GIVEN, false, "bzcad"},   {LAP_ORDER_SPEED, false, "cbdaz"},
                 {LAP_ORDER_LATENCY, false, "cbdaz"}, {LAP_ORDER_THROUGHPUT, false, "cabdz"},
                 {LAP_ORDER_DEVICE, false, "abcdz"},  {LAP_ORDER_DEVICE, true, "zdcba"},
                 {LAP_ORDER_FILE, false, "bzcad"},    {LAP_ORDER_PRECISION, false, "bzcad"}};
    lap_document *d = paper_load(&(paper){0}, rows, 5);
    const lap_document *all[] = {d};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_compare_options o = {.order = cases[i].order, .reverse = cases[i].reverse};
        lap_comparison c;
        char got[6] = "";
        papers_compare(all, 1, &o, &c);
        for (size_t k = 0; k < 5; k++)
            got[k] = c.lines[k].record->device[0];
        assert_string_equal(got, cases[i].want);
        assert_int_equal(line_of(&c, d, 0)->baseline->device[0], 'c');
        lap_comparison_free(&c);
    }
    lap_document_free(d);
}

static void two_apis_of_one_device(void **state) {
    (void)state;
    const paper_row rows[] = {
        {.mean = 2, .std = .02, .uuid = UUID_A, .images_per_s = 100, .floor = 2e-6},
        {.mean = 9, .std = .02, .uuid = UUID_A, .batch = 8, .images_per_s = 300},
        {.mean = 3,
         .std = .03,
         .uuid = UUID_A,
         .backend = "opencl",
         .images_per_s = 200,
         .floor = 5e-6},
        {.mean = 1, .std = .03, .uuid = UUID_B, .backend = "opencl", .images_per_s = 999},
        /* Beside another device: no part of this. */
        {.mean = 4, .std = .02, .uuid = UUID_A, .images_per_s = 900, .others = 1}};
    lap_document *d = paper_load(&(paper){0}, rows, 5);
    const lap_document *all[] = {d};
    lap_comparison c;
    papers_compare(all, 1, &defaults, &c);
    assert_int_equal(c.pair_count, 1);
    const lap_api_pair *p = &c.pairs[0];
    assert_true(p->throughput.ratio == 1.5 && !p->throughput.has_interval);
    assert_true(p->latency.ratio == 1.5 && p->latency.has_interval);
    assert_true(p->launch.ratio > 2.499 && p->launch.ratio < 2.501);
    lap_text text = {0};
    lap_words_pair(&text, &c, p, false);
    assert_string_equal(text.data,
                        "NVIDIA H200, resnet18 224x224 fp32, CUDA against OpenCL; throughput 1.50 "
                        "times higher; batch-1 latency 1.500 +- 0.004 times shorter; launch floor "
                        "2.50 times shorter.");
    lap_text_free(&text);
    lap_comparison_free(&c);
    lap_document_free(d);
}

static size_t pairs_of(const paper_row *rows, size_t n, const char **apart) {
    lap_document *d = paper_load(&(paper){0}, rows, n);
    const lap_document *all[] = {d};
    lap_comparison c;
    papers_compare(all, 1, &defaults, &c);
    size_t pairs = c.pair_count;
    *apart = pairs ? c.pairs[0].apart : "";
    lap_comparison_free(&c);
    lap_document_free(d);
    return pairs;
}

static void not_pairs(void **state) {
    (void)state;
    const char *apart;
    paper_row rows[] = {{.mean = 2, .std = .02}, {.mean = 3, .std = .03, .backend = "opencl"}};
    assert_int_equal(pairs_of(rows, 2, &apart), 0); /* nothing says that it is the same device */
    rows[0].pci = rows[1].pci = "0000:17:00.0";
    assert_int_equal(pairs_of(rows, 2, &apart), 1);
    rows[0].uuid = UUID_A, rows[1].uuid = UUID_B; /* the stronger proof */
    assert_int_equal(pairs_of(rows, 2, &apart), 0);
    rows[1].uuid = UUID_A;
    rows[1].clock = "wall";
    assert_int_equal(pairs_of(rows, 2, &apart), 1);
    assert_non_null(strstr(apart, "another clock"));
    rows[1].clock = NULL, rows[1].batch = 8;
    assert_int_equal(pairs_of(rows, 2, &apart), 1);
    assert_non_null(strstr(apart, "batch 1 was not timed through both"));
    rows[1].precision = "fp16";
    assert_int_equal(pairs_of(rows, 2, &apart), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_must_agree),         cmocka_unit_test(wall_spans_of_both),
        cmocka_unit_test(other_weights),           cmocka_unit_test(axes),
        cmocka_unit_test(batches_per_image),       cmocka_unit_test(devices_across_machines),
        cmocka_unit_test(fastest_of_the_majority), cmocka_unit_test(selectors),
        cmocka_unit_test(duplicates_count_once),   cmocka_unit_test(orders),
        cmocka_unit_test(two_apis_of_one_device),  cmocka_unit_test(not_pairs),
        cmocka_unit_test(devices_by_place),        cmocka_unit_test(pairs_need_one_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
