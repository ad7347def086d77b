/* Built kernels on disk: found again, never believed when anything about the file is not right, and
 * no more than a lost convenience where the folder cannot be used. */
#include "device/build_cache.h"
#include "fake_backend.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[512];

static void run_nothing(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                        void *const *pointers) {
    (void)defines;
    (void)count;
    (void)launch;
    (void)pointers;
}

static void remove_all(const char *path) {
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

static int set_up(void **state) {
    (void)state;
    fake_reset();
    assert_true(fake_register("x", "x", run_nothing));
    lap_registry_add(&fake_ops);
    snprintf(folder, sizeof folder, "%s/build_cache/deep", LAP_TEST_TMP);
    remove_all(folder);
    return 0;
}

/* One start of the program: builds kernel x with DEFINE=value. Returns the cache's problem. */
static const char *build(const char *where, int64_t value, const char *source, uint64_t *cached) {
    static char problem[640];
    lap_error err = {0};
    lap_build_cache *cache;
    lap_device *device;
    lap_kernel *kernel;
    assert_int_equal(lap_build_cache_open(where, 0, &cache, &err), LAP_OK);
    assert_int_equal(lap_device_open(&fake.devices[0], &device, &err), LAP_OK);
    lap_device_use_cache(device, cache);
    lap_define define = {"DEFINE", value};
    lap_build b = {
        .stem = "x", .source = source, .entry = "x", .defines = &define, .define_count = 1};
    if (lap_kernel_build(device, &b, &kernel, &err) != LAP_OK) fail_msg("%s", err.message);
    uint64_t compiled;
    lap_device_build_counts(device, cached, &compiled);
    assert_int_equal(*cached + compiled, 1);
    assert_int_equal(compiled, *cached ? 0 : 1);
    lap_kernel_free(kernel);
    assert_int_equal(lap_device_close(device, &err), LAP_OK);
    snprintf(problem, sizeof problem, "%s", lap_build_cache_problem(cache));
    lap_build_cache_close(cache);
    return problem;
}

static uint64_t hits(int64_t value, const char *source) {
    uint64_t cached;
    assert_string_equal(build(folder, value, source, &cached), "");
    return cached;
}

/* The only entry's path; *count how many there are. */
static char *entry(size_t *count) {
    static char path[1024];
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    *count = 0;
    for (struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.') continue;
        assert_non_null(strstr(d->d_name, ".built")); /* no unfinished file is left */
        snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        ++*count;
    }
    closedir(dir);
    return path;
}

static void test_found_again(void **state) {
    (void)state;
    assert_int_equal(hits(1, "text"), 0);
    assert_int_equal(hits(1, "text"), 1);
    assert_int_equal(fake.builds, 1);
    assert_int_equal(fake.loads, 1);
    struct stat st;
    size_t count;
    assert_int_equal(stat(entry(&count), &st), 0);
    assert_int_equal(count, 1);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(folder, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
}

/* Whatever decides what a build makes is part of the key. */
static void test_key(void **state) {
    (void)state;
    assert_int_equal(hits(1, "text"), 0);
    assert_int_equal(hits(2, "text"), 0);
    assert_int_equal(hits(1, "texu"), 0);
    char *const fields[] = {fake.devices[0].driver, fake.devices[0].toolchain, fake.devices[0].name,
                            fake.devices[0].platform};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        fields[i][0] ^= 1;
        assert_int_equal(hits(1, "text"), 0);
        assert_int_equal(hits(1, "text"), 1);
        fields[i][0] ^= 1;
    }
    fake_ops.fixed_options = "-O9";
    assert_int_equal(hits(1, "text"), 0);
    fake_ops.fixed_options = NULL;
    assert_int_equal(hits(1, "text"), 1);
}

static void overwrite(const char *path, long at, unsigned char flip) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, at, at < 0 ? SEEK_END : SEEK_SET);
    long place = ftell(f);
    int c = fgetc(f);
    fseek(f, place, SEEK_SET);
    fputc(c ^ flip, f);
    fclose(f);
}

static void expect_rebuilt(const char *what) {
    if (hits(1, "text") != 0) fail_msg("%s: the entry was believed", what);
    if (hits(1, "text") != 1) fail_msg("%s: the entry was not written anew", what);
}

static void test_damage(void **state) {
    (void)state;
    size_t count;
    struct stat st;
    assert_int_equal(hits(1, "text"), 0);
    /* magic, version, lengths, hash, key, the bytes' first and last */
    const long places[] = {0, 14, 16, 24, 25, 32, 45, -1, -5};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        overwrite(entry(&count), places[i], 0x41);
        expect_rebuilt("a flipped bit");
    }
    const long lengths[] = {0, 1, 30, -1, 1000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(stat(entry(&count), &st), 0);
        long length = lengths[i] < 0 ? st.st_size + lengths[i] : lengths[i];
        if (lengths[i] == 1000) length += st.st_size;
        assert_int_equal(truncate(entry(&count), length), 0);
        expect_rebuilt("another length");
    }
    fake.refuse_binaries = true; /* the driver does not take it */
    assert_int_equal(hits(1, "text"), 0);
    fake.refuse_binaries = false;
    assert_int_equal(hits(1, "text"), 1);
}

static void test_owner_and_mode(void **state) {
    (void)state;
    size_t count;
    assert_int_equal(hits(1, "text"), 0);
    assert_int_equal(chmod(entry(&count), 0620), 0);
    expect_rebuilt("a file that the group may write");
    assert_int_equal(chmod(entry(&count), 0602), 0);
    expect_rebuilt("a file that everybody may write");
    char path[1024], other[1100];
    snprintf(path, sizeof path, "%s", entry(&count));
    snprintf(other, sizeof other, "%s.moved", path);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    uint64_t cached;
    assert_string_equal(build(folder, 1, "text", &cached), "");
    assert_int_equal(cached, 0); /* a link is not followed */
    unlink(other);
    assert_int_equal(chmod(folder, 0777), 0);
    const char *problem = build(folder, 1, "text", &cached);
    assert_int_equal(cached, 0);
    assert_non_null(strstr(problem, "0700"));
    assert_int_equal(chmod(folder, 0700), 0);
    assert_int_equal(hits(1, "text"), 1);
}

static void test_no_folder(void **state) {
    (void)state;
    char *const old = strdup(getenv("XDG_CACHE_HOME") ? getenv("XDG_CACHE_HOME") : "");
    char *const home = strdup(getenv("HOME") ? getenv("HOME") : "");
    uint64_t cached;
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_non_null(strstr(build(NULL, 1, "text", &cached), "HOME"));
    setenv("HOME", "relative", 1);
    assert_non_null(strstr(build(NULL, 1, "text", &cached), "HOME"));
    setenv("HOME", "/dev/null", 1); /* cannot be written, whoever runs this */
    assert_non_null(strstr(build(NULL, 1, "text", &cached), "/dev/null/.cache/warmlap"));
    setenv("HOME", folder, 1);
    assert_string_equal(build(NULL, 1, "text", &cached), "");
    assert_string_equal(build(NULL, 1, "text", &cached), "");
    assert_int_equal(cached, 1);
    setenv("XDG_CACHE_HOME", "relative", 1); /* to be ignored */
    assert_string_equal(build(NULL, 1, "text", &cached), "");
    assert_int_equal(cached, 1);
    char there[600];
    snprintf(there, sizeof there, "%s/xdg", folder);
    setenv("XDG_CACHE_HOME", there, 1);
    assert_string_equal(build(NULL, 1, "text", &cached), "");
    assert_int_equal(cached, 0);
    setenv("XDG_CACHE_HOME", old, 1);
    setenv("HOME", home, 1);
    free(old);
    free(home);
}

static void test_unwritable(void **state) {
    (void)state;
    if (geteuid() == 0) skip(); /* may write everywhere */
    uint64_t cached;
    assert_int_equal(hits(1, "text"), 0);
    assert_int_equal(chmod(folder, 0500), 0);
    assert_string_equal(build(folder, 1, "text", &cached), "");
    assert_int_equal(cached, 1); /* what is there is still used */
    assert_non_null(strstr(build(folder, 2, "text", &cached), "writing to"));
    assert_int_equal(chmod(folder, 0700), 0);
}

static void age(const char *path, time_t seconds) {
    struct timespec when[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, when, 0), 0);
}

static void test_pruning(void **state) {
    (void)state;
    lap_build_cache *cache;
    char bytes[1000] = {1};
    const char *const keys[] = {"a", "b", "c", "d"};
    char paths[4][1024];
    void *back;
    size_t size, count;
    for (int i = 0; i < 4; i++) { /* each made alone, so that its path is known */
        remove_all(folder);
        assert_int_equal(lap_build_cache_open(folder, 0, &cache, NULL), LAP_OK);
        lap_build_cache_write(cache, keys[i], bytes, sizeof bytes);
        lap_build_cache_close(cache);
        snprintf(paths[i], sizeof paths[i], "%s", entry(&count));
        assert_int_equal(count, 1);
    }
    remove_all(folder);
    assert_int_equal(lap_build_cache_open(folder, 2500, &cache, NULL), LAP_OK);
    for (int i = 0; i < 4; i++)
        lap_build_cache_write(cache, keys[i], bytes, sizeof bytes);
    for (int i = 0; i < 4; i++)
        age(paths[i], 1000 + i);
    assert_true(lap_build_cache_read(cache, "a", &back, &size)); /* now the newest */
    assert_int_equal(size, sizeof bytes);
    assert_memory_equal(back, bytes, size);
    free(back);
    char part[600];
    snprintf(part, sizeof part, "%s/1-0.part", folder);
    FILE *f = fopen(part, "w");
    assert_non_null(f);
    fclose(f);
    age(part, 1000);
    lap_build_cache_close(cache);
    assert_int_equal(access(paths[0], F_OK), 0);
    assert_int_not_equal(access(paths[1], F_OK), 0);
    assert_int_not_equal(access(paths[2], F_OK), 0);
    assert_int_equal(access(paths[3], F_OK), 0);
    assert_int_not_equal(access(part, F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_found_again, set_up),
        cmocka_unit_test_setup(test_key, set_up),
        cmocka_unit_test_setup(test_damage, set_up),
        cmocka_unit_test_setup(test_owner_and_mode, set_up),
        cmocka_unit_test_setup(test_no_folder, set_up),
        cmocka_unit_test_setup(test_unwritable, set_up),
        cmocka_unit_test_setup(test_pruning, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
