/* The weights command: exit statuses, and that it writes what lap_weights_load reads back. */
#include "app/commands.h"
#include "net/weights.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const path = LAP_TEST_TMP "/cmd_weights.safetensors";

static int run(const char *const *words) {
    char *argv[8] = {"weights"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    return cmd_weights(argc, argv);
}

#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static void usage_errors(void **state) {
    (void)state;
    assert_int_equal(RUN("--help"), 0);
    assert_int_equal(RUN("--force"), 2);
    assert_int_equal(RUN("--export"), 2);
    assert_int_equal(RUN("--exprot", path), 2);
    assert_int_equal(RUN("--export", path, "--seed", "1x"), 2);
    assert_int_equal(RUN("--export", path, "--seed=-1"), 2);
    assert_int_equal(RUN("--export", path, "--model", "alexnet"), 2);
    assert_int_equal(RUN("--export", path, "more"), 2);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void writes_once(void **state) {
    (void)state;
    assert_int_equal(RUN("--export", path, "--seed", "5"), 0);
    assert_int_equal(RUN("--export", path), 2); /* exists */
    lap_error err = {0};
    lap_net *net;
    lap_weights *read, *made;
    assert_int_equal(lap_net_build("resnet18", 32, 32, &net, &err), LAP_OK);
    assert_int_equal(lap_weights_load(net, path, &read, &err), LAP_OK);
    assert_int_equal(lap_weights_load(net, "synthetic:5", &made, &err), LAP_OK);
    assert_string_equal(read->hash, made->hash);
    lap_weights_free(read);
    lap_weights_free(made);
    lap_net_free(net);
    assert_int_equal(RUN("--force", "--export", path), 0);
    assert_int_equal(RUN("--export", LAP_TEST_TMP "/no/such/folder/x.safetensors"), 2);
    assert_int_equal(RUN("--export", LAP_TEST_TMP "/weights.bin"), 2);
    assert_int_equal(RUN("--export", "-"), 2);
    unlink(path);
}

int main(void) {
    unlink(path);
    const struct CMUnitTest tests[] = {cmocka_unit_test(usage_errors),
                                       cmocka_unit_test(writes_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
