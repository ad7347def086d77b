/* What is written of the configuration's keys: the reference in docs/, the comments of default.ini.
 */
#include "app/config_keys.h"
#include "base/comma_locale.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *read_all(const char *path) {
    lap_text text = {0};
    char buffer[4096];
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;)
        lap_text_addn(&text, buffer, n);
    fclose(f);
    assert_false(text.failed);
    return text.data;
}

static void test_reference(void **state) {
    (void)state;
    lap_text text = {0};
    lap_config_help_markdown(&text);
    char *file = read_all(LAP_SOURCE_DIR "/docs/CONFIGURATION.md");
    if (strcmp(file, lap_text_get(&text)))
        fail_msg("docs/CONFIGURATION.md is old: write `warmlap run --help-config` into it");
    free(file);
    lap_text_free(&text);
    lap_config_help_text(&text);
    assert_non_null(strstr(text.data, "memory_fraction = 0.8 (a number from 0.01 to 1)"));
    for (const char *p = text.data; *p; p += strcspn(p, "\n") + 1)
        assert_true(strcspn(p, "\n") <= 100);
    lap_text_free(&text);
}

/* Both with single blanks between words. */
static void squeeze(char *s) {
    char *to = s;
    for (char *word = strtok(s, " \n"); word; word = strtok(NULL, " \n")) {
        if (to != s) *to++ = ' ';
        memmove(to, word, strlen(word));
        to += strlen(word);
    }
    *to = '\0';
}

static bool says(lap_text *comment, const lap_key *key, lap_text *wanted) {
    wanted->length = 0;
    lap_text_addf(wanted, "%s Takes ", key->help);
    lap_key_expected(key, wanted);
    lap_text_add(wanted, ".");
    squeeze(wanted->data);
    if (comment->length) squeeze(comment->data);
    return comment->length && strcmp(comment->data, wanted->data) == 0;
}

/* default.ini says of every key what --help-config says: the comment lines right above it. */
static void test_default_comments(void **state) {
    (void)state;
    char *file = read_all(LAP_SOURCE_DIR "/conf/default.ini");
    lap_text comment = {0}, wanted = {0};
    size_t keys = 0;
    for (char *line = file, *next; *line; line = next) {
        size_t n = strcspn(line, "\n");
        next = line + n + (line[n] == '\n');
        if (line[0] == ';') {
            lap_text_addn(&comment, line + 1, n - 1);
            lap_text_add(&comment, "\n");
            continue;
        }
        if (n > 0 && line[0] != '[') {
            const lap_key *key = NULL;
            for (size_t k = 0; k < lap_key_count; k++)
                if (!strncmp(line, lap_keys[k].name, strlen(lap_keys[k].name)) &&
                    !strncmp(line + strlen(lap_keys[k].name), " =", 2) &&
                    says(&comment, &lap_keys[k], &wanted))
                    key = &lap_keys[k];
            if (!key) fail_msg("conf/default.ini, %.*s: not what --help-config says", (int)n, line);
            keys++;
        }
        comment.length = 0;
    }
    assert_int_equal(keys, lap_key_count);
    free(file);
    lap_text_free(&comment);
    lap_text_free(&wanted);
}

static void test_comma_locale(void **state) {
    comma_locale_or_skip();
    test_reference(state);
    setlocale(LC_ALL, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_default_comments),
        cmocka_unit_test(test_comma_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
