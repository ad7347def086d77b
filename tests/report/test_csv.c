/* CSV as RFC 4180 has it: parsed back by a reader of its own. */
#include "base/comma_locale.h"
#include "report/report.h"
#include "report/table.h"
#include "rows.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

enum { FIELDS = 96, RECORDS = 16 };

typedef struct sheet {
    char *fields[RECORDS][FIELDS];
    size_t counts[RECORDS];
    size_t records;
} sheet;

/* One field at *p; moves on behind it. A quote inside an unquoted field is an error. */
static char *read_field(const char **p) {
    lap_text field = {0};
    lap_text_add(&field, "");
    const char *s = *p;
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

static sheet *parse(const char *text) {
    sheet *out = calloc(1, sizeof *out);
    assert_non_null(out);
    while (*text) {
        assert_true(out->records < RECORDS);
        size_t *count = &out->counts[out->records];
        for (;;) {
            assert_true(*count < FIELDS);
            out->fields[out->records][(*count)++] = read_field(&text);
            if (*text == '\r') break;
            text++;
        }
        text += 2;
        out->records++;
    }
    return out;
}

static void sheet_free(sheet *s) {
    for (size_t r = 0; r < s->records; r++)
        for (size_t f = 0; f < s->counts[r]; f++)
            free(s->fields[r][f]);
    free(s);
}

/* Field of a record (1 is the first row) by its column's name. */
static const char *field(const sheet *s, size_t record, const char *column) {
    for (size_t f = 0; f < s->counts[0]; f++)
        if (strcmp(s->fields[0][f], column) == 0) return s->fields[record][f];
    fail_msg("no column %s", column);
    return NULL;
}

static sheet *render(const lap_report *report) {
    lap_text text = {0};
    assert_int_equal(lap_report_csv(report, &text, NULL), LAP_OK);
    sheet *out = parse(text.data);
    lap_text_free(&text);
    return out;
}

static void header_is_fixed(void **state) {
    (void)state;
    lap_text text = {0};
    lap_report empty = {0};
    assert_int_equal(lap_report_csv(&empty, &text, NULL), LAP_OK);
    assert_string_equal(
        text.data,
        "status,reason,backend,selector,platform,device,type,driver,toolchain,uuid,pci,network,"
        "height,width,batch,precision,modes,verified,logits_rel_l2,limit,exact_layers,real_layers,"
        "open_s,build_s,upload_s,first_s,clock,n,mean_s,std_s,min_s,p50_s,p90_s,p95_s,p99_s,max_s,"
        "submit_s,wall_s,device_s,fps,throughput_search,throughput_batch,throughput_batches,"
        "throughput_images_per_s,macs,flops,fvcore_flops,flops_per_s,notes,verdict,mad_s,"
        "mean_ci_low_s,mean_ci_high_s,p50_ci_low_s,p50_ci_high_s,outliers,drift_relative,drift_p,"
        "comparable,passes_per_sample,order,timer_s,empty_device_s,empty_wall_s,clock_min_mhz,"
        "clock_max_mhz,temperature_c,power_w,energy_per_image_j,throttled_share,kind,"
        "concurrent_others,set,alone_images_per_s,images_per_s_half,scaling,scaling_half,"
        "rank,host_name\r\n");
    lap_text_free(&text);
}

static void one_record_a_row(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    sheet *c = render(&s->report);
    assert_int_equal(c->records, ROW_COUNT + 1);
    for (size_t r = 0; r < c->records; r++)
        assert_int_equal(c->counts[r], c->counts[0]);
    assert_string_equal(field(c, 1, "status"), "ok");
    assert_string_equal(field(c, 1, "device"), "NVIDIA H200");
    assert_string_equal(field(c, 1, "p50_s"), "0.00025");
    assert_string_equal(field(c, 1, "n"), "100");
    assert_string_equal(field(c, 1, "throughput_images_per_s"), "12000");
    assert_true(strtod(field(c, 1, "flops_per_s"), NULL) > 1.451e13);
    assert_true(strtod(field(c, 1, "flops_per_s"), NULL) < 1.452e13);
    assert_string_equal(field(c, 1, "exact_layers"), "24");
    assert_string_equal(field(c, 1, "modes"), "latency+throughput+verify");
    assert_string_equal(field(c, 2, "exact_layers"), "0");
    sheet_free(c);
    sample_rows_free(s);
}

/* What CSV has of a text: controls are blanks. */
static const char *blanked(const char *text) {
    static char copy[4096];
    snprintf(copy, sizeof copy, "%s", text);
    lap_text_blank_controls(copy);
    return copy;
}

static void hostile_text_is_quoted(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    sheet *c = render(&s->report);
    assert_string_equal(field(c, 2, "platform"), "a,b;\"c\"");
    assert_string_equal(field(c, 2, "device"), blanked(s->rows[1].device.name));
    assert_string_equal(field(c, 2, "network"), "net|`work` <i>");
    assert_string_equal(field(c, 3, "reason"), blanked(s->rows[2].reason));
    sheet_free(c);
    lap_text text = {0};
    assert_int_equal(lap_report_csv(&s->report, &text, NULL), LAP_OK);
    assert_non_null(strstr(text.data, ",\"a,b;\"\"c\"\"\","));
    lap_text_free(&text);
    sample_rows_free(s);
}

static void absent_is_empty(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    sheet *c = render(&s->report);
    const char *const failed[] = {"verified",
                                  "logits_rel_l2",
                                  "exact_layers",
                                  "open_s",
                                  "clock",
                                  "n",
                                  "mean_s",
                                  "std_s",
                                  "fps",
                                  "uuid",
                                  "throughput_batch",
                                  "throughput_images_per_s",
                                  "flops_per_s"};
    for (size_t i = 0; i < sizeof failed / sizeof failed[0]; i++)
        assert_string_equal(field(c, 3, failed[i]), "");
    assert_string_equal(field(c, 4, "mean_s"), "0");
    assert_string_equal(field(c, 4, "std_s"), "");
    assert_string_equal(field(c, 4, "fps"), "");
    assert_string_equal(field(c, 4, "flops_per_s"), "");
    sheet_free(c);
    sample_rows_free(s);
}

/* Whatever got past the other guards, in every format that is no JSON. */
static void never_nan_or_inf(void **state) {
    (void)state;
    const double odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        sample_rows *s = sample_rows_new();
        lap_row *row = &s->rows[0];
        lap_optional bad = {true, odd[i]};
        row->fps = row->flops_per_s = row->latency.stats.mean = row->latency.stats.std = bad;
        row->throughput.images_per_s = row->throughput.flops_per_s = row->telemetry.power_w = bad;
        row->layers[0].device_s = row->layers[0].flops_per_s = row->layers[0].share =
            row->cold.first_s = bad;
        lap_text text = {0};
        assert_int_equal(lap_report_csv(&s->report, &text, NULL), LAP_OK);
        sheet *c = parse(text.data);
        static const char *const columns[] = {
            "fps",     "flops_per_s", "mean_s", "std_s", "throughput_images_per_s",
            "power_w", "first_s"};
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++)
            assert_string_equal(field(c, 1, columns[k]), "");
        sheet_free(c);
        s->report.row_count = 1; /* the other rows' names and reasons are words */
        assert_int_equal(lap_report_markdown(&s->report, &text, NULL), LAP_OK);
        assert_int_equal(lap_report_table(&s->report, NULL, &text, NULL), LAP_OK);
        assert_int_equal(lap_report_layers(row, NULL, &text, NULL), LAP_OK);
        static const char *const words[] = {"inf", "nan", "INF", "NAN"};
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++)
            if (strstr(text.data, words[k])) fail_msg("%s in:\n%s", words[k], text.data);
        lap_text_free(&text);
        sample_rows_free(s);
    }
}

static char *everything(const sample_rows *s) {
    lap_text text = {0};
    setlocale(LC_CTYPE, "C.UTF-8"); /* as the program: widths of characters, but never numbers */
    lap_report_json(&s->report, &text, NULL);
    lap_report_csv(&s->report, &text, NULL);
    lap_report_markdown(&s->report, &text, NULL);
    lap_report_table(&s->report, NULL, &text, NULL);
    lap_report_layers(&s->rows[0], NULL, &text, NULL);
    lap_report_sentences(&s->report, false, &text);
    assert_false(text.failed);
    return text.data;
}

/* Every document is the same, to the byte, where numbers are written with a comma. */
static void decimal_comma(void **state) {
    (void)state;
    sample_rows *s = sample_rows_new();
    char *plain = everything(s);
    assert_non_null(strstr(plain, "0.250"));
    comma_locale_or_skip();
    char *german = everything(s);
    setlocale(LC_ALL, "C");
    size_t at = 0;
    while (plain[at] && plain[at] == german[at])
        at++;
    if (plain[at] || german[at]) {
        size_t from = at < 40 ? 0 : at - 40;
        fail_msg("'%.80s' instead of '%.80s'", german + from, plain + from);
    }
    free(german);
    free(plain);
    sample_rows_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(header_is_fixed),        cmocka_unit_test(one_record_a_row),
        cmocka_unit_test(hostile_text_is_quoted), cmocka_unit_test(absent_is_empty),
        cmocka_unit_test(never_nan_or_inf),       cmocka_unit_test(decimal_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
