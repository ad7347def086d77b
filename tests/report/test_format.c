/* Texts of single values, and cutting and wrapping lines. */
#include "base/comma_locale.h"
#include "report/format.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void milliseconds(void **state) {
    (void)state;
    const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0.00000"},       {1e-6, "0.00100"},    {250e-6, "0.250"},
                 {9.9991e-3, "9.999"}, {12.345e-3, "12.35"}, {0.123456, "123.5"},
                 {1.2345, "1234"},     {NAN, "n/a"},         {INFINITY, "n/a"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        lap_format_ms(text, sizeof text, cases[i].seconds);
        if (cases[i].seconds == 12.345e-3) /* a tie in decimal, not in binary */
            assert_true(strcmp(text, "12.35") == 0 || strcmp(text, "12.34") == 0);
        else
            assert_string_equal(text, cases[i].text);
    }
}

static void rates_and_prefixes(void **state) {
    (void)state;
    char text[32];
    const struct {
        double rate;
        bool group;
        const char *text;
    } rates[] = {{0.5234, false, "0.523"},  {5.234, false, "5.23"},      {52.34, true, "52.3"},
                 {4000, true, "4000"},      {12000.4, true, "12,000"},   {12000, false, "12000"},
                 {123456, true, "123,456"}, {1234567, true, "1,234,567"}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        lap_format_rate(text, sizeof text, rates[i].rate, rates[i].group);
        assert_string_equal(text, rates[i].text);
    }
    const struct {
        double value;
        const char *text;
    } si[] = {{0, "0.00"},        {1, "1.00"},         {999.4, "999"},
              {999.6, "1.00k"},   {236027904, "236M"}, {14.512e12, "14.5T"},
              {9.996e9, "10.0G"}, {99.96e9, "100G"},   {1e15, "1.00P"}};
    for (size_t i = 0; i < sizeof si / sizeof si[0]; i++) {
        lap_format_si(text, sizeof text, si[i].value);
        assert_string_equal(text, si[i].text);
    }
}

static void identifiers(void **state) {
    (void)state;
    char text[64];
    lap_device_info d = {.backend = "opencl"};
    lap_format_uuid(text, sizeof text, &d);
    assert_string_equal(text, "");
    lap_format_pci(text, sizeof text, &d);
    assert_string_equal(text, "");
    lap_format_api(text, sizeof text, &d);
    assert_string_equal(text, "opencl");
    d.has_uuid = d.has_pci = true;
    d.uuid[0] = 0xAB;
    d.uuid[15] = 0x01;
    d.pci_domain = 1, d.pci_bus = 0xc3, d.pci_device = 2, d.pci_function = 3;
    snprintf(d.api, sizeof d.api, "OpenCL 3.0 PoCL");
    lap_format_uuid(text, sizeof text, &d);
    assert_string_equal(text, "ab000000-0000-0000-0000-000000000001");
    lap_format_pci(text, sizeof text, &d);
    assert_string_equal(text, "0001:c3:02.3");
    lap_format_api(text, sizeof text, &d);
    assert_string_equal(text, "OpenCL");
    lap_format_modes(text, sizeof text, LAP_MODE_LATENCY | LAP_MODE_VERIFY, ",");
    assert_string_equal(text, "latency,verify");
}

static void cutting(void **state) {
    (void)state;
    char text[64];
    lap_line_cut("abcdef", 6, false, text, sizeof text);
    assert_string_equal(text, "abcdef");
    lap_line_cut("abcdef", 4, false, text, sizeof text);
    assert_string_equal(text, "abc~");
    lap_line_cut("a漢字b", 4, true, text, sizeof text); /* 6 columns */
    assert_string_equal(text, "a漢…");
    lap_line_cut("a漢字b", 3, true, text, sizeof text); /* half a character is none */
    assert_string_equal(text, "a…");
    lap_line_cut("abc", 0, true, text, sizeof text);
    assert_string_equal(text, "");
    char bad[] = " a\n\x80®\033[31m ";
    lap_line_clean(bad, true);
    assert_string_equal(bad, "a ?® [31m");
    lap_line_clean(bad, false);
    assert_string_equal(bad, "a ?? [31m");
}

static void wrapping(void **state) {
    (void)state;
    lap_text text = {0};
    lap_line_wrap(&text, "row: one two three four", 2, 14);
    assert_string_equal(text.data, "row: one two\n  three four\n");
    lap_text_free(&text);
    lap_line_wrap(&text, "0123456789012345", 2, 12);
    assert_string_equal(text.data, "012345678901\n  2345\n");
    lap_text_free(&text);
    lap_line_wrap(&text, "", 2, 12);
    assert_string_equal(text.data, "\n");
    lap_text_free(&text);
}

/* With a decimal comma the numbers keep their point. */
static void decimal_comma(void **state) {
    (void)state;
    comma_locale_or_skip();
    char text[32];
    lap_format_ms(text, sizeof text, 250e-6);
    assert_string_equal(text, "0.250");
    lap_format_si(text, sizeof text, 14.5e12);
    assert_string_equal(text, "14.5T");
    setlocale(LC_NUMERIC, "C");
}

int main(void) {
    if (!setlocale(LC_CTYPE, "C.UTF-8")) {
        fprintf(stderr, "skipped: the locale C.UTF-8 is missing\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(milliseconds), cmocka_unit_test(rates_and_prefixes),
        cmocka_unit_test(identifiers),  cmocka_unit_test(cutting),
        cmocka_unit_test(wrapping),     cmocka_unit_test(decimal_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
