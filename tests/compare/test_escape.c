/* Escaping: each format's special characters, and that nothing else changes. */
#include "report/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void escapes(lap_escape *escape, const char *text, const char *want) {
    lap_text out = {0};
    escape(&out, text);
    assert_string_equal(lap_text_get(&out), want);
    lap_text_free(&out);
}

static void markdown(void **state) {
    (void)state;
    escapes(lap_escape_markdown, "a|b\nc", "a\\|b c");
    escapes(lap_escape_markdown, "<b>&amp;", "&lt;b&gt;&amp;amp;");
    escapes(lap_escape_markdown, "`x` *y* _z_ [l](u) !#~$ {}\\",
            "\\`x\\` \\*y\\* \\_z\\_ \\[l\\](u) \\!\\#\\~\\$ \\{\\}\\\\");
    escapes(lap_escape_markdown, "\xc2\xae \xff", "\xc2\xae ?");
}

static void html(void **state) {
    (void)state;
    escapes(lap_escape_html, "<script>'\"&", "&lt;script&gt;&#39;&quot;&amp;");
    escapes(lap_escape_html, "a\x01\x1b[2J\xe2\x82\xac", "a  [2J\xe2\x82\xac");
    escapes(lap_escape_html, "", "");
}

static void latex(void **state) {
    (void)state;
    escapes(
        lap_escape_latex, "50% & $1 #2 a_b ^~\\{}",
        "50\\% \\& \\$1 \\#2 a\\_b \\textasciicircum{}\\textasciitilde{}\\textbackslash{}\\{\\}");
    escapes(lap_escape_latex, "[x] a--b", "{[}x{]} a-{}-{}b");
    escapes(lap_escape_latex, "<|>`", "\\textless{}\\textbar{}\\textgreater{}\\textasciigrave{}");
}

/* Marks, separators, overrides and isolates: none of them passes, in any format. */
static void direction(void **state) {
    (void)state;
    static const char *const marks[] = {
        "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9",
        "\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac", "\xe2\x80\xad", "\xe2\x80\xae",
        "\xe2\x81\xa6", "\xe2\x81\xa7", "\xe2\x81\xa8", "\xe2\x81\xa9"};
    lap_escape *const formats[] = {lap_escape_markdown, lap_escape_html, lap_escape_latex,
                                   lap_escape_csv};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        for (size_t f = 0; f < 4; f++) {
            char text[16];
            snprintf(text, sizeof text, "a%sb", marks[i]);
            escapes(formats[f], text, "a b");
        }
    escapes(lap_escape_html, "\xe2\x80\x93\xe2\x82\xac", "\xe2\x80\x93\xe2\x82\xac");
}

static void csv(void **state) {
    (void)state;
    escapes(lap_escape_csv, "plain", "plain");
    escapes(lap_escape_csv, "a,b", "\"a,b\"");
    escapes(lap_escape_csv, "say \"x\"", "\"say \"\"x\"\"\"");
    escapes(lap_escape_csv, "a\nb\r\x1b[31m\x07\x7f\xc2\x9b", "\"a b  [31m   \"");
    escapes(lap_escape_csv,
            "a\xe2\x80\xae"
            "b\xff",
            "a b?");
    escapes(lap_escape_csv, "=1+1", "'=1+1");
    escapes(lap_escape_csv, "@SUM(A1,\"\")", "\"'@SUM(A1,\"\"\"\")\"");
    escapes(lap_escape_csv, "+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0");
    escapes(lap_escape_csv, "-0.5e-3", "-0.5e-3");
    escapes(lap_escape_csv, "+4", "+4");
    escapes(lap_escape_csv, "-", "-");
    escapes(lap_escape_csv, " x", "\" x\"");
    escapes(lap_escape_csv, "", "");
    escapes(lap_escape_csv, NULL, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markdown),  cmocka_unit_test(html), cmocka_unit_test(latex),
        cmocka_unit_test(direction), cmocka_unit_test(csv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
