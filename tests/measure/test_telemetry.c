/* Telemetry from a stand-in NVML and from made-up kernel files; what is absent; what it costs. */
#include "base/clock.h"
#include "measure/protocol.h"
#include "measure/sensors.h"
#include "measure/telemetry.h"
#include "near.h"
#include "standin/script_file.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

static lap_device_info gpu_by_uuid(void) {
    lap_device_info d = {.type = LAP_DEVICE_GPU, .has_uuid = true};
    for (int i = 0; i < 16; i++)
        d.uuid[i] = (uint8_t)i;
    return d;
}

static lap_telemetry_summary observe(const lap_device_info *d, const char *root, double seconds) {
    lap_telemetry *t;
    lap_telemetry_summary s;
    assert_int_equal(lap_telemetry_start(d, root, &t, NULL), LAP_OK);
    lap_telemetry_resume(t);
    lap_clock_sleep(seconds);
    lap_telemetry_pause(t);
    lap_telemetry_stop(t, &s);
    return s;
}

static void use(const char *script) {
    setenv("LAP_NVML", NVML_STANDIN_PATH, 1);
    script_file("%s", script);
}

static void nvml_by_uuid(void **state) {
    (void)state;
    use("");
    lap_device_info d = gpu_by_uuid();
    lap_telemetry_summary s = observe(&d, "", 0.7);
    assert_true(s.has);
    assert_string_equal(s.source, "NVML 580.1");
    assert_in_range(s.samples, 5, 17); /* 20 a second, and one at each end */
    assert_true(s.clock_min_mhz.has && s.clock_min_mhz.value >= 1500);
    assert_true(s.clock_max_mhz.value > s.clock_min_mhz.value);
    assert_true(s.clock_max_mhz.value <= 1590);
    assert_some(s.memory_clock_mhz, 2619);
    assert_some(s.temperature_c, 61);
    assert_true(s.power_w.has && fabs(s.power_w.value - 300) < 5); /* the counter's */
    assert_true(fabs(s.energy_j.value - 300 * s.seconds) < 5);
    assert_some(s.throttled_share, 0);
    assert_string_equal(s.reasons, "");
    assert_some(s.persistence, 1);
    assert_some(s.ecc, 0);
    assert_some(s.other_processes, 2);
}

static void nvml_of_a_part(void **state) {
    (void)state;
    use("[nvml]\npart = yes\n");
    lap_device_info d = gpu_by_uuid();
    lap_telemetry_summary s = observe(&d, "", 0.06);
    assert_true(s.has);
    assert_some(s.temperature_c, 61);
}

static void throttled_throughout(void **state) {
    (void)state;
    use("[nvml]\nreasons = 4\nown_process = no\n"
        "fail nvmlDeviceGetTotalEnergyConsumption 1+ 3\n");
    lap_device_info d = gpu_by_uuid();
    lap_telemetry_summary s = observe(&d, "", 0.6);
    assert_some(s.throttled_share, 1);
    assert_string_equal(s.reasons, "power cap");
    assert_some(s.power_w, 250); /* the readings' mean, without a counter */
    assert_none(s.other_processes);
    use("[nvml]\nreasons = 0x4c\n");
    s = observe(&d, "", 0.06);
    assert_string_equal(s.reasons, "thermal, power cap, hardware slowdown");
    assert_none(s.power_w); /* too short for power */
    assert_none(s.energy_j);
}

static void nvml_by_pci(void **state) {
    (void)state;
    use("");
    lap_device_info d = {.type = LAP_DEVICE_GPU, .has_pci = true, .pci_bus = 0x17};
    lap_telemetry_summary s = observe(&d, "", 0.06);
    assert_true(s.has);
    d.pci_bus = 0x18;
    s = observe(&d, "", 0.06);
    assert_false(s.has);
}

static void absent_is_absent(void **state) {
    (void)state;
    lap_device_info d = gpu_by_uuid();
    use("fail nvmlDeviceGetClockInfo 1+ 3\nfail nvmlDeviceGetTemperature 1+ 3\n"
        "fail nvmlDeviceGetPowerUsage 1+ 3\n"
        "fail nvmlDeviceGetTotalEnergyConsumption 1+ 3\n"
        "fail nvmlDeviceGetCurrentClocksThrottleReasons 1+ 3\n");
    lap_telemetry_summary s = observe(&d, "", 0.06);
    assert_true(s.has && s.samples >= 2);
    assert_none(s.clock_min_mhz);
    assert_none(s.temperature_c);
    assert_none(s.throttled_share);
    const char *const paths[] = {"none", "/no/such/library.so", NVML_STANDIN_PATH};
    use("fail nvmlInit_v2 1+ 1\n");
    for (size_t i = 0; i < 3; i++) {
        setenv("LAP_NVML", paths[i], 1);
        lap_telemetry *t;
        assert_int_equal(lap_telemetry_start(&d, "", &t, NULL), LAP_OK);
        assert_null(t);
        lap_telemetry_resume(t);
        lap_telemetry_pause(t);
        lap_telemetry_stop(t, &s);
        assert_false(s.has);
    }
}

/* ---- kernel files --------------------------------------------------------------------------- */

static char root[128];

static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void fresh_root(void) {
    snprintf(root, sizeof root, "%s", "/tmp/lap-sysfs-XXXXXX");
    assert_non_null(mkdtemp(root));
}

static void remove_root(void) {
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    assert_int_equal(system(command), 0);
}

static void cpu_files(void **state) {
    (void)state;
    fresh_root();
    lap_device_info d = {.type = LAP_DEVICE_CPU, .units = 2};
    lap_telemetry_summary s = observe(&d, root, 0.01);
    assert_false(s.has); /* an empty tree: a virtual machine */
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2000000\n");
    put("sys/class/hwmon/hwmon0/name", "nvme\n");
    put("sys/class/hwmon/hwmon0/temp1_input", "99000\n");
    put("sys/class/hwmon/hwmon1/name", "k10temp\n");
    put("sys/class/hwmon/hwmon1/temp1_input", "54500\n");
    put("sys/class/powercap/intel-rapl:0/name", "package-0\n");
    put("sys/class/powercap/intel-rapl:0/energy_uj", "1000000\n");
    put("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "7\n");
    lap_telemetry *t;
    assert_int_equal(lap_telemetry_start(&d, root, &t, NULL), LAP_OK);
    lap_telemetry_resume(t);
    lap_clock_sleep(0.6);
    put("sys/class/powercap/intel-rapl:0/energy_uj", "31000000\n");
    put("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "8\n");
    lap_telemetry_pause(t);
    lap_telemetry_stop(t, &s);
    assert_string_equal(s.source, "cpufreq, hwmon, powercap, thermal_throttle");
    assert_some(s.clock_mean_mhz, 2500);
    assert_some(s.temperature_c, 54.5);
    assert_near(s.energy_j.value, 30);
    assert_true(s.power_w.value > 30 && s.power_w.value < 50);
    assert_true(s.throttled_share.value > 0 && s.throttled_share.value < 0.5);
    assert_string_equal(s.reasons, "thermal");
    /* A counter that wrapped. */
    put("sys/class/powercap/intel-rapl:0/energy_uj", "31000000\n");
    assert_int_equal(lap_telemetry_start(&d, root, &t, NULL), LAP_OK);
    lap_telemetry_resume(t);
    lap_clock_sleep(0.55);
    put("sys/class/powercap/intel-rapl:0/energy_uj", "5\n");
    lap_telemetry_stop(t, &s);
    assert_none(s.power_w);
    assert_none(s.energy_j);
    /* Damaged files are no values. */
    put("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "<unknown>\n");
    put("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "");
    s = observe(&d, root, 0.01);
    assert_true(s.has);
    assert_none(s.clock_mean_mhz);
    remove_root();
}

static const char *const throttle_count =
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count";

/* What happens between two blocks, while another row is timed, is not this row's. */
static void throttling_of_others(void **state) {
    (void)state;
    fresh_root();
    lap_device_info d = {.type = LAP_DEVICE_CPU, .units = 1};
    put(throttle_count, "7\n");
    lap_telemetry *t;
    lap_telemetry_summary s;
    const char *const counts[] = {"7\n", "8\n", "12\n", "12\n", "13\n"};
    for (int within = 0; within < 2; within++) {
        assert_int_equal(lap_telemetry_start(&d, root, &t, NULL), LAP_OK);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            if (!within) put(throttle_count, counts[i]);
            lap_telemetry_resume(t);
            if (within) put(throttle_count, counts[i]);
            lap_telemetry_pause(t);
        }
        lap_telemetry_stop(t, &s);
        assert_some(s.throttled_share, within ? 0.6 : 0); /* of the readings that ended a block */
        assert_string_equal(s.reasons, within ? "thermal" : "");
        put(throttle_count, "7\n");
    }
    remove_root();
}

/* The packages' counters together, without that of the whole platform. */
static void energy_of_packages(void **state) {
    (void)state;
    fresh_root();
    lap_device_info d = {.type = LAP_DEVICE_CPU, .units = 1};
    static const struct {
        const char *name, *before, *after;
    } zones[] = {{"package-0\n", "1000000\n", "3000000\n"},
                 {"psys\n", "9000000\n", "99000000\n"},
                 {"package-1\n", "5000000\n", "9000000\n"}};
    char path[96];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%d/name", i);
        put(path, zones[i].name);
        snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%d/energy_uj", i);
        put(path, zones[i].before);
    }
    lap_telemetry *t;
    lap_telemetry_summary s;
    assert_int_equal(lap_telemetry_start(&d, root, &t, NULL), LAP_OK);
    lap_telemetry_resume(t);
    lap_clock_sleep(0.55);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "sys/class/powercap/intel-rapl:%d/energy_uj", i);
        put(path, zones[i].after);
    }
    lap_telemetry_stop(t, &s);
    assert_string_equal(s.source, "powercap");
    assert_near(s.energy_j.value, 6);
    /* A block without one of the counters leaves the energy of all blocks unknown: that of the
     * others over the time of all would be too little. */
    assert_int_equal(lap_telemetry_start(&d, root, &t, NULL), LAP_OK);
    for (int block = 0; block < 3; block++) {
        put("sys/class/powercap/intel-rapl:0/energy_uj", block == 1 ? "\n" : "3000000\n");
        lap_telemetry_resume(t);
        lap_clock_sleep(0.2);
        if (block != 1) put("sys/class/powercap/intel-rapl:0/energy_uj", "4000000\n");
        lap_telemetry_pause(t);
    }
    lap_telemetry_stop(t, &s);
    assert_none(s.energy_j);
    assert_none(s.power_w);
    remove_root();
}

static void pci_files(void **state) {
    (void)state;
    fresh_root();
    setenv("LAP_NVML", "none", 1);
    lap_device_info d = {.type = LAP_DEVICE_GPU, .has_pci = true, .pci_bus = 3};
    put("sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon4/name", "amdgpu\n");
    put("sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon4/freq1_input", "1800000000\n");
    put("sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon4/temp1_input", "70000\n");
    put("sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon4/power1_average", "120000000\n");
    lap_telemetry_summary s = observe(&d, root, 0.55);
    assert_string_equal(s.source, "hwmon");
    assert_some(s.clock_max_mhz, 1800);
    assert_some(s.temperature_c, 70);
    assert_some(s.power_w, 120);
    assert_none(s.throttled_share);
    remove_root();
}

/* ---- what it costs -------------------------------------------------------------------------- */

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void it_disturbs_little(void **state) {
    (void)state;
    fresh_root();
    for (int i = 0; i < 8; i++) {
        char path[96];
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%d/cpufreq/scaling_cur_freq", i);
        put(path, "3000000\n");
    }
    lap_device_info d = {.type = LAP_DEVICE_CPU, .units = 8};
    double before = cpu_seconds();
    lap_telemetry_summary s = observe(&d, root, 1);
    double share = (cpu_seconds() - before) / s.seconds;
    print_message("eight clock files, %zu readings: %.2f %% of one core\n", s.samples, share * 100);
    assert_true(s.samples >= 8);
    assert_true(share < 0.02);
    remove_root();
}

/* Paused, nothing is read: rows that take turns do not see each other's clocks. */
static void paused_reads_nothing(void **state) {
    (void)state;
    use("");
    lap_device_info d = gpu_by_uuid();
    lap_telemetry *t;
    lap_telemetry_summary s;
    assert_int_equal(lap_telemetry_start(&d, "", &t, NULL), LAP_OK);
    lap_clock_sleep(0.3);
    for (int i = 0; i < 3; i++) {
        lap_telemetry_resume(t);
        lap_telemetry_pause(t);
        lap_clock_sleep(0.1);
    }
    lap_telemetry_stop(t, &s);
    assert_int_equal(s.samples, 6);
    assert_true(s.seconds < 0.1);
    assert_int_equal(lap_telemetry_start(&d, "", &t, NULL), LAP_OK);
    lap_telemetry_stop(t, &s); /* never resumed */
    assert_false(s.has);
}

/* ---- blocks of a latency -------------------------------------------------------------------- */

static double clock_now(void *context) {
    (void)context;
    return lap_clock_now();
}

static lap_status mark(void *context, lap_error *err) {
    (void)context, (void)err;
    return LAP_OK;
}

static lap_status elapsed(void *context, double *seconds, lap_error *err) {
    (void)context, (void)err;
    *seconds = 1e-3;
    return LAP_OK;
}

static lap_status work(void *context, lap_error *err) {
    (void)context, (void)err;
    lap_clock_sleep(2e-3);
    return LAP_OK;
}

/* Telemetry is of the timed blocks: neither what lies between them nor the warm-up
 * nor what follows counts. */
static void timed_blocks_only(void **state) {
    (void)state;
    use("");
    lap_device_info d = gpu_by_uuid();
    lap_telemetry *t;
    lap_telemetry_summary s;
    assert_int_equal(lap_telemetry_start(&d, "", &t, NULL), LAP_OK);
    const lap_workload workload = {work, NULL};
    const lap_timing timing = {clock_now, mark, mark, mark, elapsed, NULL, 0};
    const lap_latency_options o = {.warmup_seconds = 0.1, .repetitions = 6, .telemetry = t};
    lap_latency_run run;
    lap_latency l;
    double begun = lap_clock_now();
    assert_int_equal(lap_latency_begin(&run, &workload, &timing, &o, &l, NULL), LAP_OK);
    bool done = false;
    while (!done) {
        assert_int_equal(lap_latency_block(&run, 3, &done, NULL), LAP_OK);
        lap_clock_sleep(0.1);
    }
    assert_int_equal(lap_latency_end(&run, LAP_OK, NULL), LAP_OK);
    assert_in_range(l.blocks, 2, 3);
    double others = 0.1 + 0.1 * (double)l.blocks;
    lap_telemetry_stop(t, &s);
    double whole = lap_clock_now() - begun;
    assert_true(s.has && s.seconds >= 6 * 2e-3 && s.seconds <= whole - others);
    lap_latency_free(&l);
}

/* Readings are kept one by one, in order; of many, evenly spread ones from first to last. */
static void readings_are_kept(void **state) {
    (void)state;
    use("");
    lap_device_info d = gpu_by_uuid();
    lap_telemetry *t;
    lap_telemetry_summary s;
    const int rounds[] = {3, 700};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(lap_telemetry_start(&d, "", &t, NULL), LAP_OK);
        double begin = lap_clock_now();
        for (int i = 0; i < rounds[k]; i++) {
            lap_telemetry_resume(t);
            lap_telemetry_pause(t);
        }
        double end = lap_clock_now();
        lap_telemetry_stop(t, &s);
        assert_int_equal(s.samples, 2 * rounds[k]);
        if (k == 0) assert_int_equal(s.point_count, 6);
        if (k == 1) assert_in_range(s.point_count, LAP_TELEMETRY_POINTS / 2, LAP_TELEMETRY_POINTS);
        for (size_t i = 0; i < s.point_count; i++) {
            assert_true(s.points[i].clock_mhz.has && s.points[i].temperature_c.has);
            assert_true(s.points[i].at_s >= (i ? s.points[i - 1].at_s : begin));
        }
        assert_true(s.points[0].at_s - begin <= 0.1 * (end - begin) + 0.01);
        assert_true(end - s.points[s.point_count - 1].at_s <= 0.1 * (end - begin) + 0.01);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvml_by_uuid),
        cmocka_unit_test(nvml_of_a_part),
        cmocka_unit_test(throttled_throughout),
        cmocka_unit_test(nvml_by_pci),
        cmocka_unit_test(absent_is_absent),
        cmocka_unit_test(cpu_files),
        cmocka_unit_test(throttling_of_others),
        cmocka_unit_test(energy_of_packages),
        cmocka_unit_test(pci_files),
        cmocka_unit_test(it_disturbs_little),
        cmocka_unit_test(paused_reads_nothing),
        cmocka_unit_test(timed_blocks_only),
        cmocka_unit_test(readings_are_kept),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    script_none();
    return failed;
}
