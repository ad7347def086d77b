/* The command line of run and verify: what each option sets, in which order, and every way to get
 * it wrong. */
#include "app/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGS_MAX = 16 };

/* Splits line at blanks ("''" is an empty word) and parses it as the command's arguments. */
static lap_status parse(lap_command command, const char *line, lap_options *out, lap_error *err) {
    static char copy[512];
    static char *argv[ARGS_MAX + 1];
    int argc = 0;
    snprintf(copy, sizeof copy, "%s %s", command == LAP_COMMAND_RUN ? "run" : "verify", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        assert_true(argc < ARGS_MAX);
        argv[argc++] = strcmp(word, "''") ? word : word + 2;
    }
    argv[argc] = NULL;
    *err = (lap_error){0};
    return lap_options_parse(command, argc, argv, out, err);
}

static lap_options accept(lap_command command, const char *line) {
    lap_options options;
    lap_error err;
    if (parse(command, line, &options, &err) != LAP_OK) fail_msg("%s: %s", line, err.message);
    return options;
}

static void refuse(lap_command command, const char *line, const char *what) {
    lap_options options;
    lap_error err;
    assert_int_equal(parse(command, line, &options, &err), LAP_E_CONFIG);
    if (!strstr(err.message, what))
        fail_msg("%s: expected '%s', got '%s'", line, what, err.message);
    assert_null(options.config);
    assert_null(options.logits);
    assert_int_equal(options.action, LAP_ACTION_RUN);
}

static void test_options(void **state) {
    (void)state;
    lap_options o = accept(LAP_COMMAND_RUN, "");
    assert_int_equal(o.action, LAP_ACTION_RUN);
    assert_string_equal(o.config->run.device, "auto");
    assert_false(o.config->output.layers);
    lap_options_free(&o);
    assert_null(o.config);

    o = accept(LAP_COMMAND_RUN, "--device opencl:0 --json - --csv a.csv --markdown=b.md --layers "
                                "--force --set latency:batch=1,8");
    assert_string_equal(o.config->run.device, "opencl:0");
    assert_string_equal(o.config->output.json, "-");
    assert_string_equal(o.config->output.csv, "a.csv");
    assert_string_equal(o.config->output.markdown, "b.md");
    assert_true(o.config->output.layers && o.config->output.force);
    assert_int_equal(o.config->latency.batch.count, 2);
    assert_string_equal(lap_config_origin(o.config, "run", "device"), "--device");
    assert_string_equal(lap_config_origin(o.config, "latency", "batch"), "--set");
    lap_options_free(&o);
}

static void test_order(void **state) {
    (void)state;
    const char *a = LAP_TEST_TMP "/test_options_a.ini", *b = LAP_TEST_TMP "/test_options_b.ini";
    FILE *f = fopen(a, "w");
    assert_non_null(f);
    fputs("[latency]\nrepetitions = 7\nwarmup = 7\nbatch = 7\n", f);
    fclose(f);
    f = fopen(b, "w");
    assert_non_null(f);
    fputs("[latency]\nwarmup = 8\nbatch = 8\n", f);
    fclose(f);
    /* Options win over files even when they stand before them; among options the last wins. */
    char line[512];
    snprintf(line, sizeof line, "--set latency:batch=9 %s --set latency:batch=10 %s", a, b);
    lap_options o = accept(LAP_COMMAND_RUN, line);
    assert_int_equal(o.config->latency.repetitions, 7);
    assert_int_equal(o.config->latency.warmup.count, 8);
    assert_int_equal(o.config->latency.batch.values[0], 10);
    lap_options_free(&o);
    snprintf(line, sizeof line, "%s -- %s", b, a);
    o = accept(LAP_COMMAND_RUN, line);
    assert_int_equal(o.config->latency.batch.values[0], 7);
    lap_options_free(&o);
    unlink(a);
    unlink(b);
    o = accept(LAP_COMMAND_RUN, "--device all --set run:device=cuda");
    assert_string_equal(o.config->run.device, "cuda");
    lap_options_free(&o);
}

static void test_actions(void **state) {
    (void)state;
    const struct {
        const char *line;
        lap_options_action action;
    } cases[] = {{"--help", LAP_ACTION_HELP},
                 {"-h", LAP_ACTION_HELP},
                 {"no-such-file --help", LAP_ACTION_HELP},
                 {"--help-config", LAP_ACTION_HELP_CONFIG},
                 {"--dump-config", LAP_ACTION_DUMP_CONFIG},
                 {"--dump-config --help-config --help", LAP_ACTION_HELP}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_options o = accept(LAP_COMMAND_RUN, cases[i].line);
        assert_int_equal(o.action, cases[i].action);
        assert_int_equal(o.config != NULL, cases[i].action == LAP_ACTION_DUMP_CONFIG);
        lap_options_free(&o);
    }
    lap_options o = accept(LAP_COMMAND_RUN, "--tune --seconds 5 --set run:kernels=tuned");
    assert_int_equal(o.config->run.kernels, LAP_KERNELS_TUNED);
    assert_true(o.tune && o.seconds == 5);
    lap_options_free(&o);
    o = accept(LAP_COMMAND_TUNE, "--seconds 5");
    lap_options_free(&o);
    o = accept(LAP_COMMAND_VERIFY, "--logits out.npy");
    assert_string_equal(o.logits, "out.npy");
    lap_options_free(&o);
}

static void test_refused(void **state) {
    (void)state;
    refuse(LAP_COMMAND_RUN, "--jsno x", "unknown option --jsno; did you mean --json? `warmlap run");
    refuse(LAP_COMMAND_RUN, "--frobnicate", "unknown option --frobnicate; `warmlap run --help`");
    refuse(LAP_COMMAND_RUN, "-x", "unknown option -x");
    refuse(LAP_COMMAND_RUN, "some.ini -xy", "unknown option -x");
    refuse(LAP_COMMAND_RUN, "some.ini --devise=all",
           "unknown option --devise=all; did you mean "
           "--device?");
    refuse(LAP_COMMAND_RUN, "--logits x.npy", "unknown option --logits");
    refuse(LAP_COMMAND_RUN, "--json", "option --json needs an argument");
    refuse(LAP_COMMAND_RUN, "--layers=yes", "option --layers=yes takes no argument");
    refuse(LAP_COMMAND_RUN, "--d", "option --d is ambiguous");
    refuse(LAP_COMMAND_RUN, "--json - --csv -", "both go to standard output");
    refuse(LAP_COMMAND_RUN, "--json a --markdown a", "both go to a");
    refuse(LAP_COMMAND_RUN, "--json ''", "--json: an empty argument");
    refuse(LAP_COMMAND_RUN, "''", "an empty file name");
    refuse(LAP_COMMAND_VERIFY, "--logits ''", "--logits: an empty argument");
    refuse(LAP_COMMAND_RUN, "--set run:kernels=naive --tune", "expected one of them");
    refuse(LAP_COMMAND_RUN, "--tune --set run:kernels=naive", "expected one of them");
    refuse(LAP_COMMAND_RUN, "--seconds 5", "nothing is tuned; expected --tune");
    refuse(LAP_COMMAND_RUN, "--store x.txt", "they are default; expected --set run:kernels=tuned");
    refuse(LAP_COMMAND_VERIFY, "--store x.txt --set run:kernels=naive", "they are naive");
    const char *reading[] = {"--store x.txt --tune", "--set run:kernels=tuned --store x.txt",
                             "--set run:tune_store=x.txt"};
    for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) {
        lap_options with = accept(LAP_COMMAND_RUN, reading[i]);
        assert_string_equal(with.config->run.tune_store, "x.txt");
        lap_options_free(&with);
    }
    refuse(LAP_COMMAND_RUN, "-", "not read from standard input");
    refuse(LAP_COMMAND_RUN, "no-such-file", "no-such-file: no such configuration file");
    refuse(LAP_COMMAND_RUN, "./no-such-file.ini", "No such file or directory");
    refuse(LAP_COMMAND_RUN, "--set batch=8", "expected section:key=value");
    refuse(LAP_COMMAND_RUN, "--set latency:batch", "expected section:key=value");
    refuse(LAP_COMMAND_RUN, "--set =:", "expected section:key=value");
    refuse(LAP_COMMAND_RUN, "--set latency:btach=8",
           "--set: unknown key btach in [latency]; did you mean batch? Its keys are batch, ");
    refuse(LAP_COMMAND_RUN, "--set latency:repetitions=0",
           "--set: [latency] repetitions = 0: expected a whole number from 1 to 1000000");
}

static void test_help(void **state) {
    (void)state;
    for (int command = LAP_COMMAND_RUN; command <= LAP_COMMAND_TUNE; command++) {
        lap_text text = {0};
        lap_options_help((lap_command)command, &text);
        assert_int_equal(strstr(lap_text_get(&text), "--logits") != NULL,
                         command == LAP_COMMAND_VERIFY);
        for (const char *p = lap_text_get(&text); *p; p += strcspn(p, "\n") + 1)
            assert_true(strcspn(p, "\n") <= 80);
        assert_int_equal(strncmp(lap_text_get(&text), "Usage: warmlap ", 15), 0);
        assert_non_null(strstr(lap_text_get(&text), "Exit status: 0 "));
        lap_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options), cmocka_unit_test(test_order),
        cmocka_unit_test(test_actions), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
