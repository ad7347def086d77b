/* Many short runs in one process: memory and open files must stay what they were after the first
 * ones. Prints them as a table while it goes on; exit status 1 when something grew, or when a run
 * failed.
 *
 * Usage: soak rows fake|SELECTOR RUNS      a run is one row, from an open device to a closed one:
 * kernels built, weights uploaded, first inference, verified against the reference, warmed up,
 * timed, layers, the search for the best batch (each one verified), and the row written as a
 * document. The network is that of tests/tiny; fake is the backend in host memory of tests/fake,
 * SELECTOR a real device (opencl, cuda:0) soak commands fake RUNS           a run is a whole
 * `warmlap run`: arguments, configuration, list of devices, the worker process, resnet18 at 32x32,
 * the files Skipped (77) without such a device, or without /proc. */
#include "app/commands.h"
#include "base/text.h"
#include "case_fixture.h"
#include "device/build_cache.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

/* What may be more at the end: drivers keep some, and buffers differ in length from run to run.
 * malloc's own lists of freed blocks count as in use; without them (see scripts/soak.sh) the fake
 * backend's heap is the same to the byte. */
enum { LINES = 20, HEAP_GROWTH = 64 << 10, RSS_GROWTH = 4 << 20 };

typedef struct state {
    size_t rss, heap, files, threads;
} state;

static case_rig rig;
static char json_path[512];
static FILE *table; /* commands print to standard output, which is not kept */

static size_t entries(const char *folder) {
    size_t count = 0;
    DIR *dir = opendir(folder);
    if (!dir) exit(77);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

static state look(void) {
    unsigned long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2) exit(77);
    fclose(file);
    struct mallinfo2 heap = mallinfo2();
    return (state){.rss = resident * (size_t)sysconf(_SC_PAGESIZE),
                   .heap = heap.uordblks + heap.hblkhd,
                   .files = entries("/proc/self/fd") - 1, /* the folder's own */
                   .threads = entries("/proc/self/task")};
}

static void print_state(uint64_t runs, const state *s) {
    fprintf(table, "%8llu %12.1f %12.1f %6zu %8zu\n", (unsigned long long)runs,
            (double)s->rss / 1024, (double)s->heap / 1024, s->files, s->threads);
    fflush(table);
}

/* ---- what a run is -------------------------------------------------------------------------- */

static bool one_row(void) {
    lap_row row;
    lap_text text = {0};
    lap_runner_case(&rig.runner, &rig.c, &row);
    lap_report report = {.rows = &row, .row_count = 1, .started = "", .samples = true};
    bool ok = row.status == LAP_ROW_OK && lap_report_json(&report, &text, NULL) == LAP_OK;
    if (!ok) fprintf(table, "%s\n", row.reason ? row.reason : "no document");
    lap_text_free(&text);
    lap_row_free(&row);
    return ok;
}

static bool one_command(void) {
    char *argv[] = {"run",        "--force",
                    "--json",     json_path,
                    "--device",   "fake",
                    "--set",      "network:height=32",
                    "--set",      "network:width=32",
                    "--set",      "verify:mode=quick",
                    "--set",      "verify:images=1",
                    "--set",      "run:kernels=naive",
                    "--set",      "latency:repetitions=2",
                    "--set",      "latency:warmup=0",
                    "--set",      "latency:copies=no",
                    "--set",      "run:modes=latency",
                    "--markdown", "/dev/null",
                    NULL};
    int status = cmd_run((int)(sizeof argv / sizeof *argv) - 1, argv);
    if (status != LAP_EXIT_OK) fprintf(table, "warmlap run: exit status %d\n", status);
    return status == LAP_EXIT_OK;
}

/* ---- many ----------------------------------------------------------------------------------- */

/* The least of a part of the lines: what is given back later, or now and then, is no growth. */
static state least(const state *lines, int from, int to) {
    state s = lines[from];
    for (int i = from; i < to; i++) {
        if (lines[i].rss < s.rss) s.rss = lines[i].rss;
        if (lines[i].heap < s.heap) s.heap = lines[i].heap;
        if (lines[i].files < s.files) s.files = lines[i].files;
        if (lines[i].threads < s.threads) s.threads = lines[i].threads;
    }
    return s;
}

static bool grew(const char *what, size_t before, size_t after, size_t allowed, double unit) {
    bool more = after > before + allowed;
    fprintf(table, "%s: %.1f from a tenth to a half, %.1f in the last quarter%s\n", what,
            (double)before / unit, (double)after / unit, more ? ": GREW" : "");
    return more;
}

static int soak(bool (*run)(void), uint64_t runs) {
    state lines[LINES] = {0};
    int count = 0;
    fprintf(table, "%8s %12s %12s %6s %8s\n", "runs", "RSS KiB", "heap KiB", "files", "threads");
    for (uint64_t i = 1; i <= runs; i++) {
        if (!run()) return 1;
        if (i * LINES / runs == (i - 1) * LINES / runs || count == LINES) continue;
        lines[count] = look();
        print_state(i, &lines[count++]);
    }
    state first = least(lines, 1, LINES / 2), last = least(lines, LINES - LINES / 4, LINES);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    bool own_malloc = false; /* a checker's malloc keeps what is freed */
#else
    bool own_malloc = last.heap > 0; /* Valgrind's tells nothing */
#endif
    bool more = own_malloc && grew("heap in use, KiB", first.heap, last.heap, HEAP_GROWTH, 1024);
    if (own_malloc) more |= grew("resident memory, KiB", first.rss, last.rss, RSS_GROWTH, 1024);
    more |= grew("open files", first.files, last.files, 0, 1);
    more |= grew("threads", first.threads, last.threads, 0, 1);
    fprintf(table, "%llu runs: %s\n", (unsigned long long)runs, more ? "something grew" : "flat");
    return more;
}

static int soak_device(const char *selector, uint64_t runs) {
    lap_device_list *list;
    lap_error err = {0};
    size_t *chosen = NULL, count = 0;
    lap_status status = lap_device_enumerate(&list, &err);
    if (status == LAP_OK) status = lap_device_select(list, selector, &chosen, &count, &err);
    if (status != LAP_OK || count == 0) {
        fprintf(table, "skipped: %s\n", err.message);
        return 77;
    }
    rig.c.device = &list->devices[chosen[0]];
    fprintf(table, "%s (%s)\n", rig.c.device->name, rig.c.device->selector);
    rig_set(&rig, "run:kernels=default");
    rig_set(&rig, "output:layers=no"); /* a row's ceilings take seconds on a processor */
    setenv("XDG_CACHE_HOME", LAP_TEST_TMP "/soak-cache", 1);
    if (lap_build_cache_open(NULL, 0, &rig.runner.cache, &err) != LAP_OK) return 1;
    int result = soak(one_row, runs);
    lap_build_cache_close(rig.runner.cache);
    free(chosen);
    lap_device_list_free(list);
    return result;
}

int main(int argc, char **argv) {
    uint64_t runs;
    bool rows = argc == 4 && strcmp(argv[1], "rows") == 0;
    bool commands = argc == 4 && strcmp(argv[1], "commands") == 0 && strcmp(argv[2], "fake") == 0;
    if (!(rows || commands) || !lap_parse_u64(argv[3], &runs) || runs < LINES) {
        fprintf(stderr,
                "usage: soak rows fake|SELECTOR RUNS | soak commands fake RUNS\n"
                "RUNS: at least %d\n",
                LINES);
        return 2;
    }
    int result;
    table = fdopen(dup(STDOUT_FILENO), "w");
    if (!table) return 1;
    rig_open(&rig);
    if (commands) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) return 1;
        snprintf(json_path, sizeof json_path, "%s/soak.%d.json", LAP_TEST_TMP, (int)getpid());
        result = soak(one_command, runs);
        unlink(json_path);
    } else if (strcmp(argv[2], "fake") == 0) {
        result = soak(one_row, runs);
    } else {
        result = soak_device(argv[2], runs);
    }
    rig_close(&rig);
    return result;
}
