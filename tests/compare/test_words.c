/* Sentences and remarks: each names as much as tells its row from all others. */
#include "papers.h"

#include "compare/columns.h"
#include "compare/words.h"

#include <string.h>

#define UUID "00000000-0000-0000-0000-00000000000a"

static void add(void *context, const char *text) {
    lap_text_addf(context, "%s\n", text);
}

/* What is told of a topic, a line each. */
static const char *told(const lap_document *const *all, size_t n, lap_compare_options o,
                        lap_topic topic) {
    static lap_text text;
    lap_comparison c;
    text.length = 0;
    lap_text_add(&text, "");
    o.margin = 0.01;
    papers_compare(all, n, &o, &c);
    assert_true(lap_words_each(&c, topic, false, add, &text));
    lap_comparison_free(&c);
    return text.data;
}

static const char *told_of(const paper_row *rows, size_t n, lap_compare_options o,
                           lap_topic topic) {
    lap_document *d = paper_load(&(paper){0}, rows, n);
    const lap_document *all[] = {d};
    const char *text = told(all, 1, o, topic);
    lap_document_free(d);
    return text;
}

static const lap_compare_options defaults = {0};

/* ---- sentences ------------------------------------------------------------------------------ */

static void files_with_two_selectors(void **state) {
    (void)state;
    const paper_row a[] = {{.mean = 1, .std = -1}, {.mean = 1, .std = -1, .selector = "cuda:1"}};
    const paper_row b[] = {{.mean = 2, .std = -1}, {.mean = 4, .std = -1, .selector = "cuda:1"}};
    lap_document *d[] = {paper_load(&(paper){.name = "a.json"}, a, 2),
                         paper_load(&(paper){.name = "b.json", .started = "later"}, b, 2)};
    const lap_document *all[] = {d[0], d[1]};
    const char *text = told(all, 2, defaults, LAP_TOPIC_SPEED);
    assert_non_null(strstr(text, "NVIDIA H200 through CUDA (a.json, cuda:1) runs "));
    assert_non_null(strstr(text, "NVIDIA H200 through CUDA (b.json, cuda:0) runs "));
    assert_non_null(strstr(text, "slower than NVIDIA H200 through CUDA (a.json, cuda:0)"));
    /* The file is in the name then, and the devices are different ones. */
    lap_compare_options o = {.axis = LAP_BY_FILE, .baseline_document = d[0]};
    text = told(all, 2, o, LAP_TOPIC_SPEED);
    assert_non_null(strstr(text, "NVIDIA H200 through CUDA in b.json (cuda:1) runs "));
    assert_non_null(strstr(text, "slower than NVIDIA H200 through CUDA in a.json (cuda:1)"));
    lap_document_free(d[0]);
    lap_document_free(d[1]);
}

/* Both are named, in the sentence and in the table. */
static void precisions_of_one_class(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 2, .std = .001},
                              {.mean = 1, .std = .001, .precision = "fp32x3"}};
    assert_string_equal(told_of(rows, 2, defaults, LAP_TOPIC_SPEED),
                        "NVIDIA H200 through CUDA in fp32 runs resnet18 224x224, batch 1, 2.0000 "
                        "+- 0.0004 times slower than NVIDIA H200 through CUDA in fp32x3.\n");
    lap_document *d = paper_load(&(paper){0}, rows, 2);
    const lap_document *all[] = {d};
    lap_comparison c;
    lap_selection s;
    papers_compare(all, 1, &defaults, &c);
    lap_columns_for_people(&c, &s);
    const lap_column *precision = NULL, *against = NULL;
    for (size_t i = 0; i < s.count; i++) {
        if (strcmp(s.columns[i]->name, "precision") == 0) precision = s.columns[i];
        if (strcmp(s.columns[i]->name, "against") == 0) against = s.columns[i];
    }
    assert_non_null(precision);
    assert_non_null(against);
    lap_text cell = {0};
    against->cell(&cell, &c, line_of(&c, d, 0), false);
    assert_string_equal(cell.data, "fp32x3");
    lap_text_free(&cell);
    lap_comparison_free(&c);
    lap_document_free(d);
}

/* ---- one device through two APIs ------------------------------------------------------------ */

static void pairs_of_the_same_precision(void **state) {
    (void)state;
    const paper_row rows[] = {
        {.mean = 5, .std = -1, .precision = "fp32x3", .uuid = UUID, .images_per_s = 400},
        {.mean = 10, .std = -1, .uuid = UUID, .images_per_s = 100},
        {.mean = 10, .std = -1, .uuid = UUID, .images_per_s = 200, .backend = "opencl"}};
    assert_string_equal(told_of(rows, 3, defaults, LAP_TOPIC_APIS),
                        "NVIDIA H200, resnet18 224x224 fp32, CUDA against OpenCL; throughput 2.00 "
                        "times lower; batch-1 latency 1.000 times shorter.\n");
    const paper_row two[] = {rows[0], rows[2]}; /* none in common */
    assert_string_equal(told_of(two, 2, defaults, LAP_TOPIC_APIS),
                        "NVIDIA H200, resnet18 224x224, CUDA in fp32x3 against OpenCL in fp32; "
                        "throughput 2.00 times higher; batch-1 latency 2.00 times shorter.\n");
}

static void pairs_and_verification(void **state) {
    (void)state;
    paper_row rows[] = {
        {.mean = 5, .std = -1, .uuid = UUID, .images_per_s = 100},
        {.mean = 5, .std = -1, .uuid = UUID, .images_per_s = 900, .backend = "opencl"},
        {.mean = 9, .std = -1, .uuid = UUID, .images_per_s = 200, .backend = "opencl", .batch = 8}};
    rows[1].verified = "null";
    const char *text = told_of(rows, 2, defaults, LAP_TOPIC_APIS);
    assert_non_null(
        strstr(text, "throughput not compared: the first was verified, the second was not"));
    assert_non_null(strstr(text, "latency not compared: the first was verified, the second"));
    text = told_of(rows, 3, defaults, LAP_TOPIC_APIS); /* a verified one goes first */
    assert_non_null(strstr(text, "throughput 2.00 times lower"));
    rows[1].verified = NULL, rows[1].cache = "cold"; /* which is about latency alone */
    text = told_of(rows, 2, defaults, LAP_TOPIC_APIS);
    assert_non_null(strstr(text, "throughput 9.00 times lower"));
    assert_non_null(strstr(text, "the first was run with a hot cache, the second with a cold"));
}

static void pairs_of_two_devices_of_a_name(void **state) {
    (void)state;
    const paper_row rows[] = {
        {.mean = 1, .std = -1, .uuid = UUID},
        {.mean = 1, .std = -1, .uuid = UUID, .backend = "opencl"},
        {.mean = 1, .std = -1, .uuid = "b", .selector = "cuda:1"},
        {.mean = 1, .std = -1, .uuid = "b", .backend = "opencl", .selector = "opencl:0:1"}};
    const char *text = told_of(rows, 4, defaults, LAP_TOPIC_APIS);
    assert_non_null(strstr(text, "CUDA (cuda:0, a.json) against OpenCL (opencl:0, a.json)"));
    assert_non_null(strstr(text, "CUDA (cuda:1, a.json) against OpenCL (opencl:0:1, a.json)"));
}

/* ---- remarks -------------------------------------------------------------------------------- */

static void remarks_name_what_differs(void **state) {
    (void)state;
    const paper_row rows[] = {
        {.mean = 1, .std = -1, .trust = "noisy"},
        {.mean = 1, .std = -1, .trust = "noisy", .precision = "fp16"},
        {.mean = 1, .std = -1, .trust = "noisy", .batch = 8},
        {.mean = 1, .std = -1, .trust = "noisy", .device = "B"},
        {.mean = 1, .std = -1, .trust = "noisy", .device = "B", .network = "resnet34"},
        {.mean = 1, .std = -1, .trust = "noisy", .device = "C"},
        {.mean = 1, .std = -1, .trust = "noisy", .device = "C", .size = 32},
        {.mean = 1, .std = -1, .trust = "noisy", .device = "C", .size = 32}};
    const char *text = told_of(rows, 8, defaults, LAP_TOPIC_REMARKS);
    static const char *const wanted[] = {"NVIDIA H200, cuda:0, fp32, batch 1 (a.json): ",
                                         "NVIDIA H200, cuda:0, fp16, batch 1 (a.json): ",
                                         "NVIDIA H200, cuda:0, batch 8 (a.json): ",
                                         "B, cuda:0, resnet18, batch 1 (a.json): ",
                                         "B, cuda:0, resnet34, batch 1 (a.json): ",
                                         "C, cuda:0, 224x224, batch 1 (a.json): ",
                                         "C, cuda:0, 32x32, batch 1, row 7 (a.json): ",
                                         "C, cuda:0, 32x32, batch 1, row 8 (a.json): "};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!strstr(text, wanted[i])) fail_msg("no '%s' in\n%s", wanted[i], text);
}

static void remarks_on_other_ways_of_running(void **state) {
    (void)state;
    const paper_row a = {.mean = 1, .std = -1}, b = {.mean = 3, .std = -1, .passes = 10};
    lap_document *d[] = {
        paper_load(&(paper){.name = "a.json"}, &a, 1),
        paper_load(&(paper){.name = "b.json", .started = "later", .kernels = "naive"}, &b, 1)};
    const lap_document *all[] = {d[0], d[1]};
    lap_compare_options o = {.axis = LAP_BY_FILE, .baseline_document = d[0]};
    assert_string_equal(told(all, 2, o, LAP_TOPIC_REMARKS),
                        "NVIDIA H200, cuda:0, batch 1 (b.json): compared with what ran in another "
                        "way: [run] kernels: naive against default; passes in a sample: 10 "
                        "against 1\n");
    assert_non_null(strstr(told(all, 2, o, LAP_TOPIC_SPEED), "3.00 times slower"));
    lap_document_free(d[0]);
    lap_document_free(d[1]);
}

static void wrong_is_said(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 1, .std = -1},
                              {.mean = 2, .std = -1, .backend = "opencl", .verified = "false"}};
    assert_non_null(strstr(told_of(rows, 2, defaults, LAP_TOPIC_REMARKS),
                           "(a.json): wrong: its verification failed\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_with_two_selectors),
        cmocka_unit_test(precisions_of_one_class),
        cmocka_unit_test(pairs_of_the_same_precision),
        cmocka_unit_test(pairs_and_verification),
        cmocka_unit_test(pairs_of_two_devices_of_a_name),
        cmocka_unit_test(remarks_name_what_differs),
        cmocka_unit_test(remarks_on_other_ways_of_running),
        cmocka_unit_test(wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
