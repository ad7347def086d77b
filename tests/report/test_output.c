/* Files are written whole or not at all, and never over another without being told to. */
#include "report/output.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[512];

static int new_folder(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "%s/output.XXXXXX", LAP_TEST_TMP);
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static const char *in_folder(const char *name) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void assert_holds(const char *path, const char *want) {
    char text[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    assert_string_equal(text, want);
}

static size_t entries(void) {
    size_t count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return count;
}

static lap_status write_text(const char *path, const char *text, bool force, lap_error *err) {
    return lap_output_write(path, text, strlen(text), force, err);
}

static void writes_a_file(void **state) {
    (void)state;
    mode_t old = umask(022);
    assert_int_equal(write_text(in_folder("a.json"), "one\n", false, NULL), LAP_OK);
    assert_holds(in_folder("a.json"), "one\n");
    assert_int_equal(entries(), 1); /* no temporary file is left */
    struct stat info;
    assert_int_equal(stat(in_folder("a.json"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0644);
    umask(old);
}

static void refuses_to_overwrite(void **state) {
    (void)state;
    lap_error err = {0};
    assert_int_equal(write_text(in_folder("a"), "one", false, NULL), LAP_OK);
    assert_int_equal(lap_output_check(in_folder("a"), false, &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "exists already"));
    assert_int_equal(write_text(in_folder("a"), "two", false, &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "exists already"));
    assert_non_null(strstr(err.message, in_folder("a")));
    assert_holds(in_folder("a"), "one");
    assert_int_equal(lap_output_check(in_folder("a"), true, NULL), LAP_OK);
    assert_int_equal(chmod(in_folder("a"), 0600), 0);
    assert_int_equal(write_text(in_folder("a"), "two", true, NULL), LAP_OK);
    assert_holds(in_folder("a"), "two");
    struct stat info;
    assert_int_equal(stat(in_folder("a"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600); /* it is no less private than before */
    assert_int_equal(entries(), 1);
}

static void through_a_link(void **state) {
    (void)state;
    char target[1024];
    snprintf(target, sizeof target, "%s/target", folder);
    assert_int_equal(write_text(target, "one", false, NULL), LAP_OK);
    assert_int_equal(symlink("target", in_folder("link")), 0);
    assert_int_equal(write_text(in_folder("link"), "two", true, NULL), LAP_OK);
    assert_holds(target, "two");
    struct stat info;
    assert_int_equal(lstat(in_folder("link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
}

static void unwritable_places(void **state) {
    (void)state;
    lap_error err = {0};
    assert_int_equal(write_text(in_folder("a"), "one", false, NULL), LAP_OK);
    const char *const paths[] = {"no/such/folder.json", "a/b", "."};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, paths[i]);
        lap_error_clear(&err);
        assert_int_equal(lap_output_check(path, true, &err), LAP_E_IO);
        assert_true(err.message[0] != '\0');
        assert_int_equal(write_text(path, "x", true, &err), LAP_E_IO);
    }
    assert_int_equal(lap_output_check("", true, &err), LAP_E_IO);
    assert_int_equal(write_text("/proc/warmlap.json", "x", true, &err), LAP_E_IO);
    assert_int_equal(lap_output_check("/proc/warmlap.json", true, &err), LAP_E_IO);
    char name[400];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(write_text(in_folder(name), "x", false, &err), LAP_E_IO);
    assert_int_equal(entries(), 1);
}

/* The path between quotes after "is in". */
static void kept_path(const lap_error *err, char *path, size_t size) {
    const char *start = strstr(err->message, "the document is in '");
    assert_non_null(start);
    start += strlen("the document is in '");
    snprintf(path, size, "%.*s", (int)strcspn(start, "'"), start);
}

static void what_was_measured_is_kept(void **state) {
    (void)state;
    lap_error err = {0};
    char kept[1024], second[1024];
    assert_int_equal(lap_output_save(in_folder("a"), "one", 3, false, &err), LAP_OK);
    assert_int_equal(entries(), 1);
    assert_int_equal(lap_output_save(in_folder("a"), "two", 3, false, &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "exists already"));
    kept_path(&err, kept, sizeof kept);
    assert_ptr_equal(strstr(kept, in_folder("a.kept-")), kept);
    assert_holds(kept, "two");
    assert_int_equal(lap_output_save(in_folder("a"), "six", 3, false, &err), LAP_E_IO);
    kept_path(&err, second, sizeof second);
    assert_holds(kept, "two");
    assert_holds(second, "six");
    assert_holds(in_folder("a"), "one");
    assert_int_equal(entries(), 3);

    /* A folder that is no longer there, and a device: TMPDIR, or /tmp where it is none. */
    const char *old = getenv("TMPDIR");
    char *before = old ? strdup(old) : NULL;
    const char *const paths[] = {"/no/such/b.json", "/proc/b.json"};
    for (size_t i = 0; i < 2; i++) {
        setenv("TMPDIR", folder, 1);
        assert_int_equal(lap_output_save(paths[i], "six", 3, true, &err), LAP_E_IO);
        kept_path(&err, kept, sizeof kept);
        assert_ptr_equal(strstr(kept, in_folder("b.json.kept-")), kept);
        assert_holds(kept, "six");
    }
    setenv("TMPDIR", "/no/such/folder", 1);
    assert_int_equal(lap_output_save("/no/such/b.json", "six", 3, true, &err), LAP_E_IO);
    kept_path(&err, kept, sizeof kept);
    assert_ptr_equal(strstr(kept, "/tmp/b.json.kept-"), kept);
    assert_int_equal(unlink(kept), 0);
    if (before)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    if (access("/dev/full", W_OK) != 0) skip();
    lap_error err = {0};
    assert_int_equal(write_text("/dev/full", "x", false, &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "/dev/full"));
}

static void devices_are_written_in_place(void **state) {
    (void)state;
    assert_int_equal(write_text("/dev/null", "x", false, NULL), LAP_OK);
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

static void dash_is_standard_output(void **state) {
    (void)state;
    assert_int_equal(lap_output_check("-", false, NULL), LAP_OK);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    FILE *file = freopen(in_folder("stdout"), "w", stdout);
    assert_non_null(file);
    lap_status status = write_text("-", "document\n", false, NULL);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    assert_int_equal(status, LAP_OK);
    assert_holds(in_folder("stdout"), "document\n");
}

#define in_new_folder(f) cmocka_unit_test_setup_teardown(f, new_folder, remove_folder)

static lap_status update(lap_output_slot *slot, const char *path, const char *text,
                         lap_error *err) {
    return lap_output_update(slot, path, text, strlen(text), false, err);
}

/* Written again and again: what it wrote itself is replaced, another's file never. */
static void a_document_that_grows(void **state) {
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s", in_folder("grows.json"));
    lap_output_slot slot = {0};
    lap_error err = {0};
    assert_true(lap_output_again(path));
    assert_false(lap_output_again("-"));
    assert_false(lap_output_again("/dev/null"));
    assert_int_equal(update(&slot, path, "one", &err), LAP_OK);
    assert_int_equal(update(&slot, path, "one two", &err), LAP_OK);
    assert_holds(path, "one two");
    assert_int_equal(unlink(path), 0); /* gone is not taken */
    assert_int_equal(update(&slot, path, "one two three", &err), LAP_OK);
    assert_holds(path, "one two three");
    assert_int_equal(entries(), 1);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(update(&slot, path, i ? "five" : "four", &err), LAP_E_IO);
        assert_non_null(strstr(err.message, "changed by somebody else"));
        assert_non_null(strstr(err.message, slot.path));
        assert_holds(path, "precious");
        assert_holds(slot.path, i ? "five" : "four");
        assert_int_equal(entries(), 2);
    }
    /* An existing file is not the slot's to begin with. */
    lap_output_slot other = {0};
    assert_int_equal(update(&other, path, "six", &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "exists already"));
    assert_holds(path, "precious");
}

/* Nowhere to write for a while: once there is, the document is where it belongs, and that is no
 * error. */
static void trouble_that_passes(void **state) {
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s", in_folder("grows.json"));
    lap_output_slot slot = {0};
    lap_error err = {0};
    struct rlimit limit, none;
    assert_int_equal(update(&slot, path, "one", &err), LAP_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    lap_status status = update(&slot, path, "one two", &err);
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, LAP_E_IO);
    assert_null(strstr(err.message, "instead"));
    assert_holds(path, "one");
    lap_error_clear(&err);
    assert_int_equal(update(&slot, path, "one two three", &err), LAP_OK);
    assert_string_equal(err.message, "");
    assert_holds(path, "one two three");
    assert_int_equal(entries(), 1);
}

static void links_to_nothing_are_refused(void **state) {
    (void)state;
    char link[1024];
    lap_error err = {0};
    snprintf(link, sizeof link, "%s", in_folder("dangling"));
    assert_int_equal(symlink("nowhere", link), 0);
    for (int force = 0; force < 2; force++) {
        assert_int_equal(lap_output_check(link, force != 0, &err), LAP_E_IO);
        assert_non_null(strstr(err.message, "does not exist"));
    }
    assert_int_equal(write_text(link, "x", true, &err), LAP_E_IO);
    unlink(link);
}

static void one_file_by_two_names(void **state) {
    (void)state;
    char a[1024], b[1100], linked[1024], hard[1024], other[1024];
    lap_error err = {0};
    snprintf(a, sizeof a, "%s", in_folder("one"));
    snprintf(b, sizeof b, "%s/./one", folder);
    snprintf(linked, sizeof linked, "%s", in_folder("linked"));
    snprintf(hard, sizeof hard, "%s", in_folder("hard"));
    snprintf(other, sizeof other, "%s", in_folder("other"));
    assert_true(lap_output_same(a, b)); /* neither is there yet */
    assert_false(lap_output_same(a, other));
    assert_int_equal(lap_output_apart(a, b, "the input", &err), LAP_OK);
    assert_int_equal(write_text(a, "x", false, &err), LAP_OK);
    assert_int_equal(symlink(a, linked), 0);
    assert_int_equal(link(a, hard), 0);
    const char *const names[] = {a, b, linked, hard};
    for (size_t i = 0; i < 4; i++) {
        assert_true(lap_output_same(a, names[i]));
        assert_int_equal(lap_output_apart(names[i], a, "the input", &err), LAP_E_IO);
        assert_non_null(strstr(err.message, "the input"));
    }
    assert_false(lap_output_same(a, other));
    assert_false(lap_output_same(a, "-"));
    assert_int_equal(lap_output_apart("/dev/null", "/dev/null", "the input", &err), LAP_OK);
    assert_int_equal(lap_output_apart("-", "-", "the input", &err), LAP_OK);
    for (size_t i = 0; i < 4; i++)
        unlink(names[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        in_new_folder(writes_a_file),
        in_new_folder(refuses_to_overwrite),
        in_new_folder(through_a_link),
        in_new_folder(links_to_nothing_are_refused),
        in_new_folder(one_file_by_two_names),
        in_new_folder(unwritable_places),
        in_new_folder(what_was_measured_is_kept),
        in_new_folder(a_document_that_grows),
        in_new_folder(trouble_that_passes),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(devices_are_written_in_place),
        in_new_folder(dash_is_standard_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
