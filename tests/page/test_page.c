/* The page as text: policy, escaping, what is there without Chart.js, values of the wrong type. */
#include "page/page.h"
#include "papers.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* SHA-256 of nothing, and of "abc", as hexadecimal digits and as policies have it. */
#define EMPTY_HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define EMPTY_64 "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
#define ABC_HEX "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define ABC_64 "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"

static const lap_page_assets with = {
    {"css", 3, EMPTY_HEX}, {"our script", 10, EMPTY_HEX}, {"chart js", 8, ABC_HEX}};
static const lap_page_assets without = {
    {"css", 3, EMPTY_HEX}, {"our script", 10, EMPTY_HEX}, {"", 0, ""}};

static lap_document *parse_whole(const char *text, lap_status wanted, lap_error *err) {
    lap_document *d = NULL;
    json_t *root;
    assert_int_equal(lap_source_json("a.json", text, strlen(text), &root, err), LAP_OK);
    assert_int_equal(lap_document_take("a.json", root, true, &d, err), wanted);
    return d;
}

static lap_status render(const lap_document *d, const lap_page_assets *assets, bool charts,
                         lap_text *out, lap_error *err) {
    const lap_document *const list[] = {d};
    const lap_compare_options options = {.margin = 0.01};
    lap_comparison comparison;
    papers_compare(list, d ? 1 : 0, &options, &comparison);
    lap_page_input input = {
        .comparison = &comparison, .assets = assets, .charts = charts, .title = "a < b & \"c\""};
    lap_status status = lap_page_render(&input, out, err);
    lap_comparison_free(&comparison);
    return status;
}

static lap_text page_of(const paper_row *rows, size_t count, const lap_page_assets *assets,
                        bool charts) {
    lap_text text = {0}, page = {0};
    lap_error err = {0};
    paper_text(&(paper){0}, rows, count, &text);
    lap_document *d = parse_whole(lap_text_get(&text), LAP_OK, &err);
    assert_int_equal(render(d, assets, charts, &page, &err), LAP_OK);
    lap_document_free(d);
    lap_text_free(&text);
    return page;
}

static void policy_names_the_scripts(void **state) {
    (void)state;
    paper_row row = {.mean = 0.001};
    lap_text page = page_of(&row, 1, &with, true);
    assert_non_null(strstr(page.data, "default-src 'none'; connect-src 'none';"));
    assert_non_null(strstr(page.data, "script-src " ABC_64 " " EMPTY_64 ";"));
    assert_non_null(strstr(page.data, "style-src " EMPTY_64 "\""));
    assert_non_null(strstr(page.data, "<script>chart js</script>"));
    assert_non_null(strstr(page.data, "<title>a &lt; b &amp; &quot;c&quot;</title>"));
    assert_null(strstr(page.data, "unsafe-inline"));
    lap_text_free(&page);
}

static void without_charts_it_says_so(void **state) {
    (void)state;
    paper_row row = {.mean = 0.001};
    lap_text page = page_of(&row, 1, &without, true);
    assert_non_null(strstr(page.data, "built without Chart.js"));
    assert_null(strstr(page.data, "<canvas"));
    assert_null(strstr(page.data, "application/json"));
    assert_non_null(strstr(page.data, "script-src " EMPTY_64 ";"));
    assert_non_null(strstr(page.data, "<details open>")); /* the figures' tables */
    lap_text_free(&page);
    page = page_of(&row, 1, &with, false);
    assert_non_null(strstr(page.data, "made without charts"));
    assert_null(strstr(page.data, "<canvas"));
    lap_text_free(&page);
}

static size_t occurrences(const char *text, const char *of) {
    size_t n = 0;
    for (; (text = strstr(text, of)); text += strlen(of))
        n++;
    return n;
}

static void names_are_data(void **state) {
    (void)state;
    /* In JSON: the separators that end a line of script, and what ends the element. */
    paper_row rows[] = {
        {.device = "</script><script>alert(1)</script><!-- & \xE2\x80\xA8 \xE2\x80\xA9",
         .mean = 0.001},
        {.device = hostile_name(), .mean = 0.002},
        {.device = "<img src=x onerror=alert(1)>",
         .mean = 0.003,
         .reason = "<b>bold</b>",
         .status = "failed"},
    };
    lap_text page = page_of(rows, 3, &with, true);
    assert_int_equal(occurrences(page.data, "<script"), 3); /* data, Chart.js, ours */
    assert_int_equal(occurrences(page.data, "</script"), 3);
    assert_null(strstr(page.data, "<img"));
    assert_null(strstr(page.data, "<b>"));
    assert_null(strstr(page.data, "<!-- "));
    const char *data = strstr(page.data, "id=\"data\">");
    assert_non_null(data);
    data += strlen("id=\"data\">");
    const char *end = strstr(data, "</script>");
    size_t length = (size_t)(end - data);
    assert_null(memchr(data, '<', length));
    assert_null(memchr(data, '>', length));
    assert_null(memchr(data, '&', length));
    assert_null(memmem(data, length, "\xE2\x80\xA8", 3));
    assert_null(memmem(data, length, "\xE2\x80\xA9", 3));
    /* It is still JSON, and the names in it are whole. */
    json_error_t where;
    json_t *json = json_loadb(data, length, 0, &where);
    assert_non_null(json);
    char *dumped = json_dumps(json, JSON_COMPACT);
    assert_non_null(strstr(dumped, "</script><script>alert(1)"));
    free(dumped);
    json_decref(json);
    lap_text_free(&page);
}

static void nothing_to_show(void **state) {
    (void)state;
    lap_text page = {0};
    lap_error err = {0};
    assert_int_equal(render(NULL, &with, true, &page, &err), LAP_OK);
    assert_non_null(strstr(page.data, "id=\"environment\""));
    assert_null(strstr(page.data, "id=\"latency\""));
    lap_text_free(&page);
}

static void wrong_types_are_named(void **state) {
    (void)state;
    static const struct {
        const char *member, *place;
    } cases[] = {
        {"\"layers\":[5]", "rows[0].layers[0]"},
        {"\"layers\":[{\"name\":7}]", "rows[0].layers[0].name"},
        {"\"ceilings\":{\"flops_per_s\":[]}", "rows[0].ceilings.flops_per_s"},
        {"\"throughput\":{\"curve\":[{\"batch\":-1}]}", "rows[0].throughput.curve[0].batch"},
        {"\"telemetry\":{\"power_w\":\"x\"}", "rows[0].telemetry.power_w"},
        {"\"telemetry\":{\"series\":{\"at_s\":[\"x\"]}}", "rows[0].telemetry.series.at_s"},
        {"\"notes\":[1]", "rows[0].notes"},
        {"\"cold\":7", "rows[0].cold"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_text text = {0}, page = {0};
        lap_error err = {0};
        lap_text_addf(&text, "{\"schema\":\"warmlap/1\",\"rows\":[{\"status\":\"ok\",%s}]}",
                      cases[i].member);
        lap_document *d = parse_whole(text.data, LAP_OK, &err);
        assert_int_equal(render(d, &with, true, &page, &err), LAP_E_FORMAT);
        if (!strstr(err.message, cases[i].place)) fail_msg("%s: %s", cases[i].place, err.message);
        lap_document_free(d);
        lap_text_free(&text);
        lap_text_free(&page);
    }
}

static void spans_documents(void **state) {
    (void)state;
    static const struct {
        const char *rows;
        lap_status wanted;
    } cases[] = {
        {"[]", LAP_OK},
        {"[{\"status\":\"ok\",\"size\":[1,2,3],\"without_warmup\":{\"repeats\":[{\"wall_s\":1}]}}]",
         LAP_OK},
        {"[7]", LAP_E_FORMAT},
        {"[{\"size\":[-1]}]", LAP_E_FORMAT},
        {"[{\"with_warmup\":{\"repeats\":[3]}}]", LAP_E_FORMAT},
        {"[{\"with_warmup\":{\"repeats\":[{\"wall_s\":-1}]}}]", LAP_E_FORMAT},
        {"{}", LAP_E_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_text text = {0};
        lap_error err = {0};
        json_t *root;
        lap_spans_document *d;
        lap_text_addf(&text, "{\"schema\":\"warmlap-spans/1\",\"rows\":%s}", cases[i].rows);
        assert_int_equal(lap_source_json("s", text.data, text.length, &root, &err), LAP_OK);
        assert_int_equal(lap_spans_take("s", root, &d, &err), cases[i].wanted);
        lap_spans_free(d);
        lap_text_free(&text);
    }
}

/* One over a latency is no throughput, and a wrong row has no figures at all. */
static void key_figures(void **state) {
    (void)state;
    paper_row rows[] = {{.mean = 0.004, .batch = 8},
                        {.mean = 0.001, .images_per_s = 9000, .wall = 0.077, .verified = "false"},
                        {.mean = 0.002, .images_per_s = 1500}};
    lap_text page = page_of(rows, 2, &with, true);
    assert_null(strstr(page.data, "Highest throughput"));
    assert_null(strstr(page.data, "77000.0")); /* among the spans */
    assert_non_null(strstr(page.data, "8000.0"));
    assert_non_null(strstr(page.data, "Shortest latency</dt><dd>4.000 ms</dd>"));
    lap_text_free(&page);
    page = page_of(rows, 3, &with, true);
    assert_non_null(strstr(page.data, "Highest throughput</dt><dd>1500 images/s</dd>"));
    assert_non_null(
        strstr(page.data, ", resnet18 224x224 fp32, batch 256, batches back to back</dd>"));
    assert_non_null(strstr(page.data, ", resnet18 224x224 fp32, batch 1 (mean)</dd>"));
    assert_non_null(strstr(page.data, "each measured case: resnet18 224x224 fp32. "));
    assert_non_null(strstr(page.data, "Latency: mean ± standard deviation of the samples."));
    lap_text_free(&page);
}

/* The same device alone, beside another one, and on two hosts: no two rows read alike. */
static void rows_are_told_apart(void **state) {
    (void)state;
    const paper_row beside[] = {{.mean = 0.001}, {.mean = 0.002, .others = 1}};
    lap_text page = page_of(beside, 2, &with, true);
    assert_non_null(strstr(page.data, "<td>NVIDIA H200 cuda:0</td><td class=\"n\">1</td>"));
    assert_non_null(strstr(page.data, "<td>NVIDIA H200 cuda:0 +1</td><td class=\"n\">1</td>"));
    assert_non_null(strstr(page.data, "+N: at the same time as N other devices."));
    assert_non_null(strstr(page.data, "{\"label\":\"NVIDIA H200 cuda:0 +1\""));
    lap_text_free(&page);
    const paper_row hosts[] = {{.mean = 0.001, .host = "one"}, {.mean = 0.002, .host = "two"}};
    page = page_of(hosts, 2, &with, true);
    assert_non_null(strstr(page.data, "<td>NVIDIA H200 cuda:0 of one</td>"));
    assert_non_null(strstr(page.data, "<td>NVIDIA H200 cuda:0 of two</td>"));
    assert_non_null(strstr(page.data, "<dt>Devices and routes</dt><dd>2</dd>"));
    assert_null(strstr(page.data, "+N:"));
    lap_text_free(&page);
    page = page_of(hosts, 1, &with, true); /* one of them needs no telling */
    assert_non_null(strstr(page.data, "<td>NVIDIA H200 cuda:0</td>"));
    lap_text_free(&page);
}

/* Edges of a histogram and percentiles in so many digits that they differ. */
static void close_times_differ(void **state) {
    (void)state;
    lap_text page = {0};
    lap_error err = {0};
    lap_document *d = parse_whole(
        "{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\", \"network\": \"resnet18\", "
        "\"batch\": 1, \"latency\": {\"n\": 4, \"min_s\": 9.41e-5, \"p50_s\": 9.43e-5, "
        "\"samples_s\": "
        "[9.41e-5, 9.42e-5, 9.44e-5, 9.49e-5]}}]}",
        LAP_OK, &err);
    assert_int_equal(render(d, &with, true, &page, &err), LAP_OK);
    /* 8 bins of 0.1 us; the deviation is 0.356 us */
    assert_non_null(strstr(page.data, "<td class=\"n\">0.09410</td><td class=\"n\">0.09420</td>"));
    assert_non_null(strstr(page.data, "<td class=\"n\">0.09480</td><td class=\"n\">0.09490</td>"));
    assert_non_null(strstr(page.data, "<td class=\"n\">0.00036</td><td class=\"n\">0.09410</td>"
                                      "<td class=\"n\">0.09430</td>"));
    lap_text_free(&page);
    lap_document_free(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policy_names_the_scripts),
        cmocka_unit_test(without_charts_it_says_so),
        cmocka_unit_test(names_are_data),
        cmocka_unit_test(nothing_to_show),
        cmocka_unit_test(wrong_types_are_named),
        cmocka_unit_test(spans_documents),
        cmocka_unit_test(key_figures),
        cmocka_unit_test(rows_are_told_apart),
        cmocka_unit_test(close_times_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
