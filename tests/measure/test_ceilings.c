/* Ceilings on the fake device, whose clock is known: the rates, what is absent and why, the file
 * that keeps them, and the roofline on top. */
#include "fake_queue.h"
#include "measure/ceilings.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

static double flops_per_s, bytes_per_s;
static double cache_times, cached_bytes; /* buffers up to cached_bytes are copied so much faster */

/* Device time from the work that a launch stands for. */
static double cost(const char *stem, const lap_raw_launch *l) {
    double items = (double)l->groups[0] * l->local[0];
    if (strcmp(stem, "peak_fma") == 0) /* V 1, 8 chains on a GPU */
        return 2.0 * 8 * items * l->args[3].i32 / flops_per_s;
    if (strcmp(stem, "peak_mma") == 0)
        return 2.0 * 16 * 8 * 16 * 8 * items / 32 * l->args[2].i32 / (4 * flops_per_s);
    if (strcmp(stem, "stream_copy") == 0)
        return 2.0 * 16 * l->args[2].i32 * l->args[3].i32 / bytes_per_s /
               (16.0 * l->args[2].i32 <= cached_bytes ? cache_times : 1);
    return 1e-6;
}

static int set_up(void **state) {
    (void)state;
    fresh_fake();
    flops_per_s = 1e11;
    bytes_per_s = 1e10;
    cache_times = 3;
    cached_bytes = 4 << 20;
    fake.cost = cost;
    fake.real_time = true; /* a device span is believed only within the wall span around it */
    return 0;
}

static lap_ceilings measured(void) {
    lap_session *session = begin_session();
    lap_ceilings c;
    MUST(lap_ceilings_measure(session->queue, &c, &must_error));
    end_session(session);
    return c;
}

static bool within(lap_optional got, double want, double share) {
    return got.has && fabs(got.value / want - 1) <= share;
}

static void rates_are_the_clocks(void **state) {
    (void)state;
    lap_ceilings c = measured();
    assert_true(c.has && !c.stored);
    assert_true(within(c.flops_per_s[LAP_FP32], 1e11, 1e-3));
    assert_true(within(c.memory_bytes_per_s, 1e10, 1e-3));
    assert_true(within(c.cache_bytes_per_s, 3e10, 1e-3));
    assert_int_equal(c.cache_bytes, 8 << 20); /* in and out, whatever the driver tells */
    assert_true(c.memory_bytes >= 4u << 20);
    assert_none(c.flops_per_s[LAP_FP16]); /* not NVIDIA */
    assert_string_equal(c.reason, "");
}

static void matrix_instructions(void **state) {
    (void)state;
    fake.devices[0].cc_major = 9;
    lap_ceilings c = measured();
    assert_true(within(c.flops_per_s[LAP_FP16], 4e11, 1e-3));
    assert_true(within(c.flops_per_s[LAP_BF16], 4e11, 1e-3));
    assert_true(within(c.flops_per_s[LAP_TF32], 2e11, 1e-3)); /* half as deep */
    assert_some(c.flops_per_s[LAP_FP32X3], c.flops_per_s[LAP_FP16].value / 3);
}

/* Kernels that compute nothing or something wrong have no rate. */
static void wrong_results_have_no_rate(void **state) {
    (void)state;
    const fake_plant_kind kinds[] = {FAKE_PLANT_NOTHING, FAKE_PLANT_WRONG};
    for (int i = 0; i < 2; i++) {
        fake_plant("stream_copy", FAKE_PLANT_NOTHING);
        fake_plant("peak_fma", FAKE_PLANT_NOTHING);
        lap_ceilings c = measured();
        assert_false(c.has);
        for (int p = 0; p < LAP_PRECISION_COUNT; p++)
            assert_none(c.flops_per_s[p]);
        assert_none(c.memory_bytes_per_s);
        assert_non_null(strstr(c.reason, "fp32: wrong result"));
        assert_non_null(strstr(c.reason, "memory bandwidth: wrong result"));
        fake_plant("stream_copy", kinds[i]);
    }
}

/* Zero, missing, reversed stamps: the wall clock, and said so; never infinite. */
static void bad_stamps(void **state) {
    (void)state;
    const fake_timer timers[] = {FAKE_TIMER_ZERO, FAKE_TIMER_REVERSED, FAKE_TIMER_MISSING};
    for (int i = 0; i < 3; i++) {
        fake.timer = timers[i];
        lap_ceilings c = measured();
        assert_true(c.flops_per_s[LAP_FP32].has && isfinite(c.flops_per_s[LAP_FP32].value));
        assert_true(c.flops_per_s[LAP_FP32].value < 1.2e11);
        assert_non_null(strstr(c.reason, "host clock"));
    }
}

/* A clock that runs too fast gives rates that no such device has: refused. */
static void absurd_rates(void **state) {
    (void)state;
    flops_per_s = 1e19;
    bytes_per_s = 1e17;
    fake.real_time = false;
    lap_ceilings c = measured();
    assert_none(c.flops_per_s[LAP_FP32]);
    assert_none(c.memory_bytes_per_s);
    assert_non_null(strstr(c.reason, "fp32: "));
    assert_non_null(strstr(c.reason, "memory bandwidth: "));
}

static void unknown_cache_and_no_memory(void **state) {
    (void)state;
    cache_times = 1;
    lap_ceilings c = measured();
    assert_none(c.cache_bytes_per_s);
    assert_int_equal(c.cache_bytes, 0);
    assert_non_null(strstr(c.reason, "faster than the memory"));
    fake.devices[0].type = LAP_DEVICE_CPU; /* whose figure is believed */
    fake.devices[0].cache_bytes = 0;
    c = measured();
    assert_none(c.cache_bytes_per_s);
    assert_non_null(strstr(c.reason, "last-level cache is unknown"));
    fake.fail_build_stem = "peak_fma";
    c = measured();
    assert_none(c.flops_per_s[LAP_FP32]);
    assert_true(c.memory_bytes_per_s.has);
    assert_non_null(strstr(c.reason, "fp32: "));
}

/* ---- the file ------------------------------------------------------------------------------- */

#define FOLDER LAP_TEST_TMP "/ceilings/a/b"

static void clear_folder(void) {
    DIR *d = opendir(FOLDER);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", FOLDER, e->d_name);
        if (e->d_name[0] != '.') unlink(path);
    }
    if (d) closedir(d);
}

static int only_file(char *path, size_t size) {
    int count = 0;
    DIR *d = opendir(FOLDER);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%s/%s", FOLDER, e->d_name);
            count++;
        }
    if (d) closedir(d);
    return count;
}

static lap_ceilings got(const char *folder) {
    lap_session *session = begin_session();
    lap_ceilings c;
    MUST(lap_ceilings_get(session->queue, folder, &c, &must_error));
    end_session(session);
    return c;
}

static void kept_on_disk(void **state) {
    (void)state;
    char path[1024];
    clear_folder();
    lap_ceilings first = got(FOLDER);
    assert_false(first.stored);
    assert_int_equal(only_file(path, sizeof path), 1);
    flops_per_s /= 2; /* the machine is busy the second time */
    lap_ceilings second = got(FOLDER);
    assert_true(second.stored);
    assert_some(second.flops_per_s[LAP_FP32], first.flops_per_s[LAP_FP32].value);
    assert_some(second.memory_bytes_per_s, first.memory_bytes_per_s.value);
    assert_none(second.flops_per_s[LAP_TF32]);
    assert_int_equal(second.cache_bytes, first.cache_bytes);
    flops_per_s *= 8; /* and was so the first time, it turns out */
    bytes_per_s *= 2;
    lap_ceilings third = got(FOLDER);
    assert_false(third.stored);
    assert_true(within(third.flops_per_s[LAP_FP32], 4e11, 1e-3));
    flops_per_s = 1e11;
    bytes_per_s = 1e10;
    lap_ceilings fourth = got(FOLDER);
    assert_some(fourth.flops_per_s[LAP_FP32], third.flops_per_s[LAP_FP32].value);
    assert_some(fourth.cache_bytes_per_s, third.cache_bytes_per_s.value);
    /* Another driver is another device. */
    snprintf(fake.devices[0].driver, sizeof fake.devices[0].driver, "2.0");
    assert_false(got(FOLDER).stored);
    assert_int_equal(only_file(path, sizeof path), 2);
    clear_folder();
}

/* Damage of every kind is as good as no file. */
static void damaged_files(void **state) {
    (void)state;
    char path[1024], text[4096];
    clear_folder();
    (void)got(FOLDER);
    assert_int_equal(only_file(path, sizeof path), 1);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    for (int kind = 0; kind < 4; kind++) {
        char bad[4096];
        size_t size = n;
        memcpy(bad, text, n);
        char *value = memchr(bad, '\n', n);
        value = strstr(value, "fp32_flops_per_s ") + strlen("fp32_flops_per_s ");
        if (kind == 0) size = n / 2;
        if (kind == 1) memcpy(value, "inf", 3);
        if (kind == 2) *value = '-';
        if (kind == 3) bad[0] = 'W';
        f = fopen(path, "w");
        fwrite(bad, 1, size, f);
        fclose(f);
        if (got(FOLDER).stored) fail_msg("damage %d was not seen", kind);
    }
    clear_folder();
    assert_true(got("/proc/no/such/folder").has); /* cannot be written: no matter */
    assert_true(got(NULL).has);
}

static void folder_names(void **state) {
    (void)state;
    char folder[64];
    setenv("XDG_CACHE_HOME", "/x/y", 1);
    setenv("HOME", "/home/me", 1);
    assert_true(lap_ceilings_folder(folder, sizeof folder));
    assert_string_equal(folder, "/x/y/warmlap");
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_true(lap_ceilings_folder(folder, sizeof folder));
    assert_string_equal(folder, "/home/me/.cache/warmlap");
    assert_false(lap_ceilings_folder(folder, 10));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_false(lap_ceilings_folder(folder, sizeof folder));
}

/* ---- the roofline --------------------------------------------------------------------------- */

static void roofline(void **state) {
    (void)state;
    lap_ceilings c = {
        .has = true, .memory_bytes_per_s = lap_some(100), .cache_bytes_per_s = lap_some(1000)};
    c.flops_per_s[LAP_FP32] = lap_some(1000);
    /* 2000 FLOP take 2 s, 10000 bytes of memory 100 s: memory-bound; in 200 s half of the roof. */
    lap_roof r = lap_ceilings_roof(&c, LAP_FP32, 2000, 10000, lap_some(200));
    assert_some(r.intensity, 0.2);
    assert_some(r.share, 0.5);
    assert_string_equal(r.bound, "memory");
    c.cache_bytes = 10000;
    r = lap_ceilings_roof(&c, LAP_FP32, 2000, 10000, lap_some(200)); /* fits the cache */
    assert_some(r.share, 0.05);
    assert_string_equal(r.bound, "cache");
    r = lap_ceilings_roof(&c, LAP_FP32, 20000, 10000, lap_some(20));
    assert_some(r.share, 1);
    assert_string_equal(r.bound, "compute");
    c.cache_bytes = 9999;
    r = lap_ceilings_roof(&c, LAP_FP32, 0, 10000, lap_some(200)); /* a pool: bandwidth alone */
    assert_some(r.share, 0.5);
    /* What is not there gives no share: no time, no ceiling, no work. */
    assert_none(lap_ceilings_roof(&c, LAP_FP32, 2000, 10000, lap_some(0)).share);
    assert_none(lap_ceilings_roof(&c, LAP_FP32, 2000, 10000, lap_none()).share);
    assert_none(lap_ceilings_roof(&c, LAP_FP32, 2000, 10000, lap_some(-1)).share);
    assert_none(lap_ceilings_roof(&c, LAP_FP16, 2000, 10000, lap_some(1)).share);
    assert_none(lap_ceilings_roof(&c, LAP_FP32, 0, 0, lap_some(1)).share);
    assert_none(lap_ceilings_roof(&c, LAP_FP32, 5, 0, lap_some(1)).intensity);
    c = (lap_ceilings){0};
    r = lap_ceilings_roof(&c, LAP_FP32, 2000, 10000, lap_some(200));
    assert_none(r.share);
    assert_null(r.bound);
}

int main(void) {
#define FAKE_TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        FAKE_TEST(rates_are_the_clocks),
        FAKE_TEST(matrix_instructions),
        FAKE_TEST(wrong_results_have_no_rate),
        FAKE_TEST(bad_stamps),
        FAKE_TEST(absurd_rates),
        FAKE_TEST(unknown_cache_and_no_memory),
        FAKE_TEST(kept_on_disk),
        FAKE_TEST(damaged_files),
        FAKE_TEST(folder_names),
        cmocka_unit_test(roofline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
