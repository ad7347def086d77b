/* Host description from staged files, and from this machine. */
#include "report/host.h"
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[512];

static void stage(const char *path, const char *text) {
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int new_root(void **state) {
    (void)state;
    char path[600];
    snprintf(root, sizeof root, "%s/host.XXXXXX", LAP_TEST_TMP);
    if (!mkdtemp(root)) return -1;
    snprintf(path, sizeof path, "%s/proc", root);
    if (mkdir(path, 0777)) return -1;
    snprintf(path, sizeof path, "%s/etc", root);
    return mkdir(path, 0777);
}

static int remove_root(void **state) {
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void staged_machine(void **state) {
    (void)state;
    stage("/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 17\nmodel name\t:  AMD EPYC  \nflags: x\n");
    stage("/proc/meminfo", "MemTotal:        1024 kB\nMemFree: 1 kB\n");
    stage("/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
    lap_host_info h;
    lap_host_info_read(root, &h);
    assert_string_equal(h.cpu, "AMD EPYC");
    assert_string_equal(h.os, "Debian GNU/Linux 12 (bookworm)");
    assert_int_equal(h.memory_bytes, 1024 * 1024);
    assert_true(strncmp(h.kernel, "Linux ", 6) == 0);
    assert_true(h.cores >= 1);
}

/* No "model name" on POWER and many ARM machines; "cpu" is not "cpu family". */
static void other_processors(void **state) {
    (void)state;
    lap_host_info h;
    stage("/proc/cpuinfo", "cpu family\t: 6\ncpu\t\t: POWER9, altivec supported\n");
    lap_host_info_read(root, &h);
    assert_string_equal(h.cpu, "POWER9, altivec supported");
    stage("/proc/cpuinfo", "Modelling : no\nModel\t\t: Raspberry Pi 4\n");
    lap_host_info_read(root, &h);
    assert_string_equal(h.cpu, "Raspberry Pi 4");
}

static void nothing_known(void **state) {
    (void)state;
    stage("/etc/os-release", "PRETTY_NAME=\n");
    lap_host_info h;
    lap_host_info_read(root, &h);
    assert_string_equal(h.cpu, "");
    assert_string_equal(h.os, "Linux");
    assert_int_equal(h.memory_bytes, 0);
}

static void this_machine(void **state) {
    (void)state;
    lap_host_info h;
    lap_host_info_read("", &h);
    assert_true(h.memory_bytes > 0);
    char time[32];
    lap_report_time(time);
    assert_int_equal(strlen(time), 20);
    assert_true(time[10] == 'T' && time[19] == 'Z' && time[0] == '2');
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(staged_machine, new_root, remove_root),
        cmocka_unit_test_setup_teardown(other_processors, new_root, remove_root),
        cmocka_unit_test_setup_teardown(nothing_known, new_root, remove_root),
        cmocka_unit_test(this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
