/* A locale whose decimal sign is a comma, for tests that numbers do not follow it: an installed
 * one, else one that localedef makes. */
#ifndef COMMA_LOCALE_H
#define COMMA_LOCALE_H

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* In force from now on; false where there is none. */
static inline bool comma_locale(void) {
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE",
                                        "lap_comma"};
    const char *source = LAP_TEST_TMP "/lap_comma.src";
    FILE *f = fopen(source, "w");
    if (f) {
        fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\n"
              "END LC_NUMERIC\n",
              f);
        fclose(f);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(names[i], "lap_comma")) {
            int rc = system("localedef -c -i '" LAP_TEST_TMP "/lap_comma.src' '" LAP_TEST_TMP
                            "/lap_comma' >/dev/null 2>&1");
            (void)rc; /* it warns about missing categories; setlocale tells whether it worked */
            setenv("LOCPATH", LAP_TEST_TMP, 1);
        }
        const char *set = setlocale(LC_ALL, names[i]);
        if (!set) set = setlocale(LC_NUMERIC, names[i]);
        if (set && !strcmp(localeconv()->decimal_point, ",")) return true;
    }
    setlocale(LC_NUMERIC, "C");
    return false;
}

/* The same, for a test that has nothing to say without. */
static inline void comma_locale_or_skip(void) {
    char check[16];
    if (!comma_locale()) {
        print_message("skipped 1 test: no locale with a decimal comma, and none could be made\n");
        skip();
    }
    snprintf(check, sizeof check, "%.1f", 0.5);
    assert_string_equal(check, "0,5"); /* the locale is really in force */
}

#endif
