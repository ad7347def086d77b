/* Every renderer on hostile names, no rows, failed rows; CSV and JSON read back, the others held to
 * the structure of their format. */
#include "papers.h"

#include "compare/render.h"
#include "compare/words.h"
#include "report/format.h"
#include "report/sheet.h"

#include <jansson.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define UUID "00000000-0000-0000-0000-00000000000a"

/* A comparison of one document: a good row, one of a hostile name, one that failed with a hostile
 * reason, one set apart. */
typedef struct fixture {
    lap_document *document;
    const lap_document *all[1];
    lap_compare_options options;
    lap_comparison c;
    lap_selection people, programs;
} fixture;

enum { ROWS = 4 };

static fixture *make(size_t rows) {
    const paper_row all[ROWS] = {
        {.mean = 0.001, .std = 1e-5, .images_per_s = 5000, .uuid = UUID},
        {.mean = 0.002,
         .std = 1e-5,
         .images_per_s = 2500,
         .device = hostile_name(),
         .backend = "opencl",
         .uuid = UUID,
         .api = "Open|CL<b> 3",
         .trust = "drifting",
         .selector = "opencl:0:0,\"\n|<i>"},
        {.status = "failed", .reason = hostile_name(), .device = "x"},
        {.mean = 0.002, .std = 1e-5, .verified = "null", .device = "y", .precision = "fp32"}};
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->document = paper_load(&(paper){.name = "a|b,\"<i>.json"}, all, rows);
    f->all[0] = f->document;
    f->options = (lap_compare_options){.baseline = rows ? "NVIDIA" : NULL, .margin = 0.01};
    papers_compare(f->all, 1, &f->options, &f->c);
    lap_columns_for_people(&f->c, &f->people);
    lap_columns_for_programs(&f->programs);
    return f;
}

static void drop(fixture *f) {
    lap_comparison_free(&f->c);
    lap_document_free(f->document);
    free(f);
}

static size_t count_of(const char *text, const char *what) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* ---- sentences ------------------------------------------------------------------------------ */

static const char *sentence(const fixture *f, size_t row) {
    static lap_text text;
    text.length = 0;
    lap_words_sentence(&text, &f->c, line_of(&f->c, f->document, row), false);
    return text.data;
}

static void sentences_in_both_directions(void **state) {
    (void)state;
    const paper_row rows[] = {{.mean = 0.0010, .std = 1e-5, .device = "A"},
                              {.mean = 0.0020, .std = 2e-5, .device = "B"},
                              {.mean = 0.0010, .std = 1e-5, .device = "C"},
                              {.mean = 0.0020, .std = -1, .device = "D"}};
    fixture f = {.document = paper_load(&(paper){0}, rows, 4)};
    f.all[0] = f.document;
    f.options = (lap_compare_options){.baseline = "A", .margin = 0.01};
    papers_compare(f.all, 1, &f.options, &f.c);
    assert_string_equal(sentence(&f, 1),
                        "B through CUDA runs resnet18 224x224, fp32, batch 1, 2.000 +- 0.006 times "
                        "slower than A through CUDA.");
    assert_string_equal(sentence(&f, 2),
                        "C through CUDA runs resnet18 224x224, fp32, batch 1, 1.000 +- 0.003 times "
                        "as fast as A through CUDA.");
    assert_string_equal(sentence(&f, 3),
                        "D through CUDA runs resnet18 224x224, fp32, batch 1, 2.00 times slower "
                        "than A through CUDA; how sure that is cannot be told from a single "
                        "sample.");
    lap_comparison_free(&f.c);
    f.options.baseline = "B";
    papers_compare(f.all, 1, &f.options, &f.c);
    assert_string_equal(sentence(&f, 0),
                        "A through CUDA runs resnet18 224x224, fp32, batch 1, 2.000 +- 0.006 times "
                        "faster than B through CUDA.");
    lap_comparison_free(&f.c);
    lap_document_free(f.document);
}

static void estimates(void **state) {
    (void)state;
    static const struct {
        lap_estimate e;
        const char *want;
    } cases[] = {
        {{true, 1.43, true, 1.42, 1.44}, "1.43 +- 0.01"},
        {{true, 1.4321, true, 1.3921, 1.4721}, "1.43 +- 0.04"},
        {{true, 12.3456, true, 9, 15}, "12.35 +- 3.00"},
        {{true, 1.00004, true, 1.00003, 1.00005}, "1.00004 +- 0.00001"},
        {{true, 2, true, 2, 2}, "2.000 +- 0.000"},
        {{true, 1.4321, false, 0, 0}, "1.43"},
        {{true, 1.0049, false, 0, 0}, "1.005"},
        {{true, 1.5e-9, false, 0, 0}, "1.5e-09"},
        {{false, 0, false, 0, 0}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_text text = {0};
        lap_words_estimate(&text, &cases[i].e, false);
        assert_string_equal(lap_text_get(&text), cases[i].want);
        lap_text_free(&text);
    }
    /* The widest numbers there are fit. */
    lap_text text = {0};
    lap_estimate wide = {true, 1.7e308, true, 1e-300, 1.7e308};
    lap_words_estimate(&text, &wide, true);
    assert_true(text.length > 300);
    lap_text_free(&text);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

enum { FIELDS = LAP_COLUMNS_MAX, RECORDS = 8 };

typedef struct grid {
    char *fields[RECORDS][FIELDS];
    size_t counts[RECORDS], records;
} grid;

static char *read_field(const char **p) {
    lap_text field = {0};
    const char *s = *p;
    lap_text_add(&field, "");
    if (*s == '"') {
        for (s++;; s++) {
            assert_true(*s != '\0');
            if (*s == '"' && s[1] == '"')
                s++;
            else if (*s == '"')
                break;
            lap_text_addn(&field, s, 1);
        }
        s++;
    } else {
        for (; *s && *s != ',' && *s != '\r' && *s != '\n'; s++) {
            assert_true(*s != '"');
            lap_text_addn(&field, s, 1);
        }
    }
    assert_true(*s == ',' || (s[0] == '\r' && s[1] == '\n'));
    *p = s;
    return field.data;
}

static void read_grid(const char *text, grid *out) {
    memset(out, 0, sizeof *out);
    while (*text) {
        assert_true(out->records < RECORDS);
        size_t *n = &out->counts[out->records];
        for (;;) {
            assert_true(*n < FIELDS);
            out->fields[out->records][(*n)++] = read_field(&text);
            if (*text == '\r') break;
            text++;
        }
        text += 2;
        out->records++;
    }
}

static const char *field(const grid *g, size_t record, const char *column) {
    for (size_t i = 0; i < g->counts[0]; i++)
        if (strcmp(g->fields[0][i], column) == 0) return g->fields[record][i];
    fail_msg("no column %s", column);
    return NULL;
}

/* What CSV has of a text: controls are blanks. */
static const char *blanked(const char *text) {
    static char copy[4096];
    snprintf(copy, sizeof copy, "%s", text);
    lap_text_blank_controls(copy);
    return copy;
}

static void csv_reads_back(void **state) {
    (void)state;
    fixture *f = make(ROWS);
    lap_text text = {0};
    grid *g = calloc(1, sizeof *g);
    assert_non_null(g);
    assert_int_equal(lap_compare_csv(&f->c, &f->programs, &text, NULL), LAP_OK);
    read_grid(text.data, g);
    assert_int_equal(g->records, ROWS + 1);
    for (size_t i = 0; i < g->records; i++)
        assert_int_equal(g->counts[i], f->programs.count);
    assert_string_equal(field(g, 1, "verdict"), "baseline");
    assert_string_equal(field(g, 1, "speed_ratio"), "");
    assert_string_equal(field(g, 1, "mean_s"), "0.001");
    assert_string_equal(field(g, 1, "path"), "a|b,\"<i>.json");
    assert_string_equal(field(g, 2, "device"), blanked(hostile_name()));
    assert_string_equal(field(g, 2, "verdict"), "slower");
    assert_string_equal(field(g, 2, "speed_ratio"), "0.5");
    assert_true(strtod(field(g, 2, "speed_low"), NULL) < 0.5);
    assert_true(strtod(field(g, 2, "speed_high"), NULL) > 0.5);
    assert_string_equal(field(g, 2, "trust"), "drifting");
    assert_string_equal(field(g, 3, "status"), "failed");
    assert_string_equal(field(g, 3, "reason"), blanked(hostile_name()));
    assert_string_equal(field(g, 3, "mean_s"), "");
    assert_string_equal(field(g, 4, "apart"), "not verified, and the baseline is");
    for (size_t r = 0; r < g->records; r++)
        for (size_t i = 0; i < g->counts[r]; i++)
            free(g->fields[r][i]);
    free(g);
    lap_text_free(&text);
    drop(f);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_reads_back(void **state) {
    (void)state;
    fixture *f = make(ROWS);
    lap_text text = {0};
    assert_int_equal(lap_compare_json(&f->c, &text, NULL), LAP_OK);
    json_t *root = json_loads(text.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "warmlap-compare/1");
    json_t *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), ROWS);
    json_t *row = json_array_get(rows, 1);
    assert_string_equal(json_string_value(json_object_get(row, "device")), hostile_name());
    json_t *speed = json_object_get(row, "speed");
    assert_true(json_real_value(json_object_get(speed, "ratio")) == 0.5);
    assert_true(json_real_value(json_object_get(speed, "low")) < 0.5);
    assert_true(json_is_null(json_object_get(json_array_get(rows, 0), "speed")));
    assert_true(json_is_null(json_object_get(json_array_get(rows, 2), "mean_s")));
    json_t *apis = json_object_get(root, "apis");
    assert_int_equal(json_array_size(apis), 1);
    json_t *throughput = json_object_get(json_array_get(apis, 0), "throughput");
    assert_true(json_real_value(json_object_get(throughput, "ratio")) == 2);
    assert_true(json_is_null(json_object_get(throughput, "low"))); /* one timing each */
    json_t *summary = json_object_get(root, "summary");
    assert_int_equal(json_integer_value(json_object_get(summary, "slower")), 1);
    assert_int_equal(json_integer_value(json_object_get(summary, "apart")), 2);
    assert_true(json_is_null(json_object_get(summary, "gate")));
    json_decref(root);
    lap_text_free(&text);
    drop(f);
}

/* ---- markup --------------------------------------------------------------------------------- */

/* Bars that are not escaped, in a line of its own. */
static size_t bars(const char *line, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\\')
            i++;
        else
            count += line[i] == '|';
    }
    return count;
}

static void markdown_keeps_its_cells(void **state) {
    (void)state;
    fixture *f = make(ROWS);
    lap_text text = {0};
    assert_int_equal(lap_compare_markdown(&f->c, &f->people, &text, NULL), LAP_OK);
    size_t rows = 0;
    for (const char *line = text.data; *line;) {
        size_t n = strcspn(line, "\n");
        if (*line == '|') {
            assert_int_equal(bars(line, n), f->people.count + 1);
            rows++;
        } else {
            assert_int_equal(bars(line, n), 0);
        }
        line += n + (line[n] == '\n');
    }
    assert_int_equal(rows, ROWS + 2);
    assert_null(strpbrk(text.data, "<>\t\r"));
    assert_int_equal(count_of(text.data, "\n- "), 5); /* 1 sentence, 1 pair, 3 remarks */
    assert_non_null(strstr(text.data, "set apart: not verified"));
    assert_non_null(strstr(text.data, "calls the measurement drifting"));
    lap_text_free(&text);
    drop(f);
}

static void html_holds_only_our_tags(void **state) {
    (void)state;
    static const char *const tags[] = {"!DOCTYPE html>",
                                       "html",
                                       "head>",
                                       "/head>",
                                       "meta ",
                                       "title>",
                                       "/title>",
                                       "style>",
                                       "/style>",
                                       "body>",
                                       "h1>",
                                       "/h1>",
                                       "h2>",
                                       "/h2>",
                                       "table>",
                                       "/table>",
                                       "thead>",
                                       "/thead>",
                                       "tbody>",
                                       "/tbody>",
                                       "tr>",
                                       "/tr>",
                                       "th ",
                                       "/th>",
                                       "td>",
                                       "/td>",
                                       "ul>",
                                       "/ul>",
                                       "li>",
                                       "/li>",
                                       "p>",
                                       "/p>",
                                       "/body>",
                                       "/html>"};
    fixture *f = make(ROWS);
    lap_text text = {0};
    assert_int_equal(lap_compare_html(&f->c, &f->people, &text, NULL), LAP_OK);
    for (const char *at = text.data; (at = strchr(at, '<'));) {
        bool known = false;
        at++;
        for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
            known = known || strncmp(at, tags[i], strlen(tags[i])) == 0;
        if (!known) fail_msg("a tag of its own: <%.30s", at);
    }
    assert_int_equal(count_of(text.data, "<td>"), ROWS * f->people.count);
    assert_int_equal(count_of(text.data, "</td>"), ROWS * f->people.count);
    assert_int_equal(count_of(text.data, "<tr>"), ROWS + 1);
    assert_int_equal(count_of(text.data, "<th "), f->people.count);
    assert_int_equal(count_of(text.data, "<ul>"), count_of(text.data, "</ul>"));
    assert_non_null(strstr(text.data, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    lap_text_free(&text);
    drop(f);
}

/* Characters that TeX would act on stand only where we put them. */
static void latex_keeps_its_cells(void **state) {
    (void)state;
    fixture *f = make(ROWS);
    lap_text text = {0};
    assert_int_equal(lap_compare_latex(&f->c, &f->people, &text, NULL), LAP_OK);
    size_t ampersands = 0, dollars = 0, depth = 0;
    for (const char *s = text.data; *s; s++) {
        if (*s == '\\') {
            s++;
            continue;
        }
        ampersands += *s == '&';
        dollars += *s == '$';
        depth += *s == '{';
        assert_true(*s != '}' || depth > 0);
        depth -= *s == '}';
        assert_null(strchr("#%^_~<>|`\t\r", *s));
    }
    assert_int_equal(depth, 0);
    assert_int_equal(ampersands, (ROWS + 1) * (f->people.count - 1));
    assert_int_equal(dollars, 2 * count_of(text.data, "\\pm"));
    assert_true(count_of(text.data, "$\\pm$") > 3);
    assert_null(strstr(text.data, "±"));
    assert_non_null(strstr(text.data, "0.500 $\\pm$ 0.0"));
    lap_text_free(&text);
    drop(f);
}

/* ---- table ---------------------------------------------------------------------------------- */

static void table_fits(void **state) {
    (void)state;
    fixture *f = make(ROWS);
    for (size_t width = 60; width <= 100; width += 5)
        for (int utf8 = 0; utf8 < 2; utf8++) {
            lap_text text = {0};
            lap_style style = {.width = width, .utf8 = utf8};
            assert_int_equal(lap_compare_table(&f->c, &f->people, &style, &text, NULL), LAP_OK);
            for (const char *line = text.data; *line;) {
                char copy[2048];
                size_t n = strcspn(line, "\n");
                assert_true(n < sizeof copy);
                memcpy(copy, line, n);
                copy[n] = '\0';
                if (lap_line_width(copy) > width) fail_msg("%zu: %s", width, copy);
                line += n + (line[n] == '\n');
            }
            assert_null(strpbrk(text.data, "\t\r\033"));
            assert_non_null(strstr(text.data, utf8 ? "0.500 ± 0.0" : "0.500 +- 0.0"));
            lap_text_free(&text);
        }
    lap_selection all = f->programs;
    lap_error err = {0};
    lap_text text = {0};
    assert_int_equal(lap_compare_table(&f->c, &all, NULL, &text, &err), LAP_E_CONFIG);
    char most[32];
    snprintf(most, sizeof most, "at most %d", LAP_SHEET_COLUMNS);
    assert_non_null(strstr(err.message, most));
    lap_text_free(&text);
    drop(f);
}

/* Every format says what was run and what each column means: the two "±" of a row are different. */
static void case_and_legend(void **state) {
    (void)state;
    static const char *const means[] = {"resnet18 224x224 fp32",
                                        "Latency: mean",
                                        "standard deviation of the samples",
                                        "FPS: batch / mean latency.",
                                        "Img/s @ batch: ",
                                        "Speed: FPS over that of the baseline",
                                        "half its 95",
                                        "Verdict: by the whole interval"};
    fixture *f = make(1);
    lap_text texts[4] = {0};
    assert_int_equal(lap_compare_markdown(&f->c, &f->people, &texts[0], NULL), LAP_OK);
    assert_int_equal(lap_compare_html(&f->c, &f->people, &texts[1], NULL), LAP_OK);
    assert_int_equal(lap_compare_latex(&f->c, &f->people, &texts[2], NULL), LAP_OK);
    assert_int_equal(
        lap_compare_table(&f->c, &f->people, &(lap_style){.width = 1000}, &texts[3], NULL), LAP_OK);
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < sizeof means / sizeof *means; k++)
            if (!strstr(texts[i].data, means[k])) fail_msg("%s: %s", means[k], texts[i].data);
        assert_null(strstr(texts[i].data, "at the same time"));
        lap_text_free(&texts[i]);
    }
    drop(f);
}

static const char *of_columns(const lap_comparison *c, const char *columns) {
    static lap_text text;
    lap_selection chosen;
    assert_int_equal(lap_columns_parse(columns, &chosen, NULL), LAP_OK);
    text.length = 0;
    assert_int_equal(lap_compare_table(c, &chosen, &(lap_style){.width = 1000}, &text, NULL),
                     LAP_OK);
    return text.data;
}

/* What rows do not share does not stand above them, and nothing is explained that is not shown. */
static void case_of_chosen_columns(void **state) {
    (void)state;
    const paper_row rows[] = {
        {.mean = 0.001, .std = 1e-5, .network = "resnet34", .precision = "fp16"},
        {.mean = 0.002, .std = 1e-5, .precision = "fp16", .others = 2}};
    fixture f = {.document = paper_load(&(paper){0}, rows, 2)};
    f.all[0] = f.document;
    f.options = (lap_compare_options){.margin = 0.01, .wall = true};
    papers_compare(f.all, 1, &f.options, &f.c);
    const char *text = of_columns(&f.c, "device,batch");
    assert_memory_equal(text, "224x224 fp16\n", 13);
    assert_null(strstr(text, "Latency:"));
    assert_null(strstr(text, "Speed:"));
    text = of_columns(&f.c, "precision,route,latency");
    assert_memory_equal(text, "224x224\n", 8);
    assert_non_null(strstr(text, "Latency: mean +- standard deviation of the wall spans"));
    assert_non_null(strstr(text, "+N: at the same time as N other devices."));
    lap_comparison_free(&f.c);
    lap_document_free(f.document);
}

static void no_rows(void **state) {
    (void)state;
    fixture *f = make(0);
    lap_text text = {0};
    assert_int_equal(lap_compare_table(&f->c, &f->people, NULL, &text, NULL), LAP_OK);
    assert_non_null(strstr(text.data, "no rows"));
    assert_non_null(strstr(text.data, "has no rows"));
    text.length = 0;
    assert_int_equal(lap_compare_csv(&f->c, &f->programs, &text, NULL), LAP_OK);
    assert_int_equal(count_of(text.data, "\r\n"), 1);
    text.length = 0;
    assert_int_equal(lap_compare_markdown(&f->c, &f->people, &text, NULL), LAP_OK);
    assert_int_equal(lap_compare_html(&f->c, &f->people, &text, NULL), LAP_OK);
    assert_int_equal(lap_compare_latex(&f->c, &f->people, &text, NULL), LAP_OK);
    text.length = 0;
    assert_int_equal(lap_compare_json(&f->c, &text, NULL), LAP_OK);
    json_t *root = json_loads(text.data, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 0);
    json_decref(root);
    lap_text_free(&text);
    drop(f);
}

static void columns(void **state) {
    (void)state;
    lap_selection s;
    lap_error err = {0};
    assert_int_equal(lap_columns_parse("speed, device ,n", &s, &err), LAP_OK);
    assert_int_equal(s.count, 3);
    assert_string_equal(s.columns[0]->name, "speed");
    assert_string_equal(s.columns[1]->name, "device");
    assert_string_equal(s.columns[2]->name, "n");
    static const char *const bad[] = {"", "speed,", ",speed", "speed,,n", "sped", "speed,speed"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(lap_columns_parse(bad[i], &s, &err), LAP_E_CONFIG);
    lap_columns_parse("sped", &s, &err);
    assert_non_null(strstr(err.message, "did you mean speed"));
    /* Every name of the list works, all at once too. */
    lap_text names = {0};
    lap_columns_names(&names);
    for (char *p = names.data; *p; p++)
        if (*p == ' ') *p = ',';
    assert_int_equal(lap_columns_parse(names.data, &s, &err), LAP_OK);
    assert_true(s.count > 30);
    lap_text_free(&names);
}

int main(void) {
    setlocale(LC_CTYPE, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_in_both_directions),
        cmocka_unit_test(estimates),
        cmocka_unit_test(csv_reads_back),
        cmocka_unit_test(json_reads_back),
        cmocka_unit_test(markdown_keeps_its_cells),
        cmocka_unit_test(html_holds_only_our_tags),
        cmocka_unit_test(latex_keeps_its_cells),
        cmocka_unit_test(table_fits),
        cmocka_unit_test(case_and_legend),
        cmocka_unit_test(case_of_chosen_columns),
        cmocka_unit_test(no_rows),
        cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
