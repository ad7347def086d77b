/* LAP_FAULT in the environment, which is read once in a program: so each text gets a process of its
 * own. */
#include "fixture.h"

#include <sys/wait.h>
#include <unistd.h>

static lap_error err;

/* Exit status of a child: 100 + the call that failed, or 0. Bad text: 200 when open says so. */
static int child(const char *text) {
    if (text) {
        setenv("LAP_FAULT", text, 1);
    } else {
        unsetenv("LAP_FAULT");
    }
    fake_reset();
    lap_registry_add(&fake_ops);
    lap_device *device;
    lap_queue *queue;
    lap_error_clear(&err);
    lap_status status = lap_device_open(&fake.devices[0], &device, &err);
    if (status == LAP_E_CONFIG && text && strstr(err.message, text) && !device) {
        /* Arming by hand does not excuse the text. */
        lap_device_fault_arm(0, LAP_OK);
        return lap_device_open(&fake.devices[0], &device, &err) == LAP_E_CONFIG ? 200 : 250;
    }
    if (status != LAP_OK) return 101;
    if (lap_queue_new(device, &queue, &err) != LAP_OK) return err.status == LAP_E_OOM ? 102 : 251;
    if (lap_queue_finish(queue, &err) != LAP_OK) return err.status == LAP_E_TIMER ? 103 : 252;
    lap_queue_free(queue);
    return lap_device_close(device, &err) == LAP_OK ? 0 : 253;
}

static int in_process(const char *text) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child(text));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_texts(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int exit;
    } cases[] = {
        {NULL, 0},
        {"", 0},
        {"1:device", 101},
        {"1:build", 101},
        {"2:oom", 102},
        {"3:timer", 103},
        {"99:launch", 0},
        {"0:oom", 200},
        {"oom", 200},
        {":oom", 200},
        {"1:", 200},
        {"1:OOM", 200},
        {"1:oom ", 200},
        {" 1:oom", 200},
        {"-1:oom", 200},
        {"+1:oom", 200},
        {"1x:oom", 200},
        {"1:oomx", 200},
        {"1:oom:2", 200},
        {"0x1:oom", 200},
        {"1,oom", 200},
        {"1:verify", 200},
        {"1 :oom", 200},
        {"18446744073709551616:oom", 200},
        {"18446744073709551615:oom", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int got = in_process(cases[i].text);
        if (got != cases[i].exit)
            fail_msg("LAP_FAULT=\"%s\": %d instead of %d", cases[i].text ? cases[i].text : "unset",
                     got, cases[i].exit);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
