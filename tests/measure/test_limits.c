/* Memory limits read from staged /proc and /sys trees. */
#include "measure/limits.h"
#include "near.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GIB (UINT64_C(1) << 30)

static char root[512];

static int new_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "%s/limits.XXXXXX", LAP_TEST_TMP);
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

static void stage(const char *path, const char *text) {
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        assert_true(mkdir(full, 0777) == 0 || errno == EEXIST);
        *p = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void stage_meminfo(void) {
    stage("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:          123456 kB\n"
                           "MemAvailable:    8388608 kB\n");
}

static lap_host_memory read_memory(void) {
    lap_host_memory m;
    lap_host_memory_read(root, &m);
    return m;
}

static void unknown_is_conservative(void **state) {
    (void)state;
    lap_host_memory m = read_memory();
    assert_false(m.known);
    lap_device_info cpu = {.type = LAP_DEVICE_CPU, .host_memory = true, .memory_bytes = 64 * GIB};
    assert_true(lap_safe_bytes(&cpu, false, 0, &m, 0.8) == LAP_CONSERVATIVE_BYTES);
    assert_true(lap_safe_bytes(&cpu, false, 0, NULL, 0.8) == LAP_CONSERVATIVE_BYTES);
    lap_device_info unknown = {0};
    assert_true(lap_safe_bytes(&unknown, false, 0, NULL, 0.8) == LAP_CONSERVATIVE_BYTES);
}

static void available_memory(void **state) {
    (void)state;
    stage_meminfo();
    lap_host_memory m = read_memory();
    assert_true(m.known && !m.limited);
    assert_true(m.total_bytes == 16 * GIB);
    assert_true(m.available_bytes == 8 * GIB);
}

static void group_v2_limit_of_a_parent(void **state) {
    (void)state;
    stage_meminfo();
    stage("/proc/self/cgroup", "0::/user/job\n");
    stage("/sys/fs/cgroup/user/job/memory.max", "max\n");
    stage("/sys/fs/cgroup/user/job/memory.current", "1073741824\n");
    stage("/sys/fs/cgroup/user/memory.max", "4294967296\n");
    stage("/sys/fs/cgroup/user/memory.current", "2147483648\n");
    stage("/sys/fs/cgroup/user/memory.stat", "anon 1\nfile 9\ninactive_file 1073741824\n");
    lap_host_memory m = read_memory();
    assert_true(m.known && m.limited);
    assert_true(m.available_bytes == 3 * GIB); /* 4 - (2 - 1 of inactive cache) */
}

static void group_v2_in_a_container(void **state) {
    (void)state;
    stage_meminfo();
    stage("/proc/self/cgroup", "0::/\n");
    stage("/sys/fs/cgroup/memory.max", "1073741824\n");
    stage("/sys/fs/cgroup/memory.current", "2147483648\n"); /* over the limit already */
    lap_host_memory m = read_memory();
    assert_true(m.limited);
    assert_true(m.available_bytes == 0);
}

static void group_v1(void **state) {
    (void)state;
    stage_meminfo();
    stage("/proc/self/cgroup",
          "5:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/abc\n1:name=systemd:/\n");
    /* inside the container the path does not exist; the mount's root is the container's group */
    stage("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    stage("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
    lap_host_memory m = read_memory();
    assert_true(m.limited);
    assert_true(m.available_bytes == GIB);
}

static void group_v1_without_limit(void **state) {
    (void)state;
    stage("/proc/self/cgroup", "4:memory:/\n");
    stage("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    stage("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
    assert_false(read_memory().known);
    stage_meminfo();
    lap_host_memory m = read_memory();
    assert_true(m.known && !m.limited);
    assert_true(m.available_bytes == 8 * GIB);
}

static void nonsense_is_ignored(void **state) {
    (void)state;
    stage("/proc/meminfo", "MemTotal: lots\nMemAvailable:\n");
    stage("/proc/self/cgroup", "\n0\n0::\n::\n0::/\n");
    stage("/sys/fs/cgroup/memory.max", "-1\n");
    stage("/sys/fs/cgroup/memory.current", "");
    assert_false(read_memory().known);
}

static void this_machine(void **state) {
    (void)state;
    lap_host_memory m;
    lap_host_memory_read("", &m);
    assert_true(m.known);
    assert_true(m.available_bytes <= m.total_bytes);
}

static void safe_share(void **state) {
    (void)state;
    lap_host_memory m = {.known = true, .available_bytes = 8 * GIB, .total_bytes = 16 * GIB};
    lap_device_info cpu = {.host_memory = true, .memory_bytes = 16 * GIB};
    lap_device_info gpu = {.memory_bytes = 24 * GIB};
    assert_true(lap_safe_bytes(&cpu, false, 0, &m, 0.5) == 4 * GIB);
    cpu.memory_bytes = 0;
    assert_true(lap_safe_bytes(&cpu, false, 0, &m, 0.5) == 4 * GIB);
    cpu.memory_bytes = 2 * GIB; /* an integrated GPU with little of its own */
    assert_true(lap_safe_bytes(&cpu, false, 0, &m, 0.5) == GIB);
    /* memory of its own: the host's does not matter */
    assert_true(lap_safe_bytes(&gpu, true, 20 * GIB, &m, 0.5) == 10 * GIB);
    assert_true(lap_safe_bytes(&gpu, false, 0, NULL, 0.5) == 12 * GIB);
    assert_true(lap_safe_bytes(&gpu, true, 0, NULL, 0.5) == 0);
    assert_true(lap_safe_bytes(&gpu, true, 20 * GIB, NULL, 1.0) == 20 * GIB);
    assert_true(lap_safe_bytes(&gpu, true, 20 * GIB, NULL, 7.0) == 20 * GIB);
    assert_true(lap_safe_bytes(&gpu, true, 20 * GIB, NULL, -1.0) == 0);
    assert_true(lap_safe_bytes(&gpu, true, 20 * GIB, NULL, NAN) == 0);
}

#define staged_test(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void) {
    const struct CMUnitTest tests[] = {
        staged_test(unknown_is_conservative),
        staged_test(available_memory),
        staged_test(group_v2_limit_of_a_parent),
        staged_test(group_v2_in_a_container),
        staged_test(group_v1),
        staged_test(group_v1_without_limit),
        staged_test(nonsense_is_ignored),
        cmocka_unit_test(this_machine),
        cmocka_unit_test(safe_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
