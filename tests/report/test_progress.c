/* Progress: a bar on terminals that never exceeds the line, a line a step elsewhere, nothing when
 * silent. */
#include "report/format.h"
#include "report/progress.h"

#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct capture {
    char *text;
    size_t size;
    FILE *stream;
    lap_meter meter;
} capture;

static void start(capture *c, const lap_style *style) {
    memset(c, 0, sizeof *c);
    c->stream = open_memstream(&c->text, &c->size);
    assert_non_null(c->stream);
    lap_meter_init(&c->meter, c->stream, style);
}

static const char *text_of(capture *c) {
    fflush(c->stream);
    return c->text;
}

static void stop(capture *c) {
    fclose(c->stream);
    free(c->text);
}

static void quiet_line_a_step(void **state) {
    (void)state;
    capture c;
    start(&c, &(lap_style){.width = 100});
    lap_meter_step(&c.meter, "cuda:%d batch %d: warm-up", 0, 8);
    for (size_t i = 1; i <= 1000; i++)
        lap_meter_progress(&c.meter, "warm-up", i, 1000);
    lap_meter_say(&c.meter, "a remark");
    lap_meter_step(&c.meter, "next");
    lap_meter_clear(&c.meter);
    assert_string_equal(text_of(&c), "cuda:0 batch 8: warm-up\na remark\nnext\n");
    stop(&c);
}

static void bar_is_redrawn_and_removed(void **state) {
    (void)state;
    capture c;
    start(&c, &(lap_style){.terminal = true, .width = 80});
    lap_meter_step(&c.meter, "step");
    for (size_t i = 1; i <= 100000; i++)
        lap_meter_progress(&c.meter, "runs", i, 100000);
    const char *text = text_of(&c);
    assert_non_null(strstr(text, "[########################] 100000/100000"));
    assert_null(strchr(text, '\n'));
    size_t draws = 0;
    for (const char *p = text; (p = strchr(p, '\r')); p++)
        draws++;
    assert_true(draws >= 2 && draws < 1000); /* not one a call */
    lap_meter_say(&c.meter, "a remark");
    text = text_of(&c);
    assert_string_equal(text + strlen(text) - 13, "\r\033[Ka remark\n");
    stop(&c);
}

static void bar_fits_the_line(void **state) {
    (void)state;
    for (size_t width = 40; width <= 100; width += 7) {
        capture c;
        start(&c, &(lap_style){.terminal = true, .utf8 = true, .width = width});
        lap_meter_step(&c.meter, "%s",
                       "a very long step name with 漢字 in it, longer than any line "
                       "of a narrow terminal could ever hold, and then some more");
        lap_meter_progress(&c.meter, "building\nsomething", 5, 5);
        lap_meter_progress(&c.meter, "beyond", 7, 5);
        lap_meter_progress(&c.meter, NULL, 3, 0);
        char *text = strdup(text_of(&c));
        assert_non_null(text);
        for (char *line = strtok(text, "\r"); line; line = strtok(NULL, "\r")) {
            assert_int_equal(strncmp(line, "\033[K", 3), 0);
            assert_true(lap_line_width(line + 3) < width);
        }
        free(text);
        stop(&c);
    }
}

static void silent_without_a_stream(void **state) {
    (void)state;
    lap_meter meter;
    lap_meter_init(&meter, NULL, NULL);
    lap_meter_step(&meter, "x");
    lap_meter_progress(&meter, "x", 1, 2);
    lap_meter_say(&meter, "x");
    lap_meter_clear(&meter);
}

/* Standard output of a test is not a terminal here; the environment decides the rest. */
static void style_of_a_pipe(void **state) {
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    lap_style style;
    setenv("COLUMNS", "60", 1);
    setenv("TERM", "xterm-256color", 1);
    unsetenv("NO_COLOR");
    lap_style_query(fds[1], &style);
    assert_false(style.terminal);
    assert_false(style.colour);
    assert_true(style.utf8);
    assert_int_equal(style.width, 100);
    close(fds[0]);
    close(fds[1]);
}

static void style_of_a_terminal(void **state) {
    (void)state;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0) skip();
    lap_style style;
    const struct {
        const char *no_colour, *term, *columns;
        bool colour;
        size_t width;
    } cases[] = {{NULL, "xterm", "60", true, 60},
                 {"1", "xterm", "60", false, 60},
                 {"", "xterm", "7", true, 40},
                 {NULL, "dumb", "500", false, 100},
                 {NULL, NULL, "rubbish", false, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].no_colour)
            setenv("NO_COLOR", cases[i].no_colour, 1);
        else
            unsetenv("NO_COLOR");
        if (cases[i].term)
            setenv("TERM", cases[i].term, 1);
        else
            unsetenv("TERM");
        setenv("COLUMNS", cases[i].columns, 1);
        lap_style_query(terminal, &style);
        assert_true(style.terminal);
        assert_int_equal(style.colour, cases[i].colour);
        assert_int_equal(style.width, cases[i].width);
    }
    close(terminal);
}

int main(void) {
    if (!setlocale(LC_CTYPE, "C.UTF-8")) {
        fprintf(stderr, "skipped: the locale C.UTF-8 is missing\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quiet_line_a_step), cmocka_unit_test(bar_is_redrawn_and_removed),
        cmocka_unit_test(bar_fits_the_line), cmocka_unit_test(silent_without_a_stream),
        cmocka_unit_test(style_of_a_pipe),   cmocka_unit_test(style_of_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
