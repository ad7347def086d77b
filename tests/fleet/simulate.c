/* What gathering costs: recorded documents of a rank, as many as a fleet has ranks, through the
 * code that merges them. Prints time and memory of the result; fails where a rank costs more than
 * bounds say, or the cost of a rank grows with the fleet. Usage: simulate DOCUMENT.json [MOST] */
#include "base/clock.h"
#include "fleet/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Generous: some 0.5 ms and the size of the document itself, on any machine of this century. */
static const double MOST_S = 0.03, MOST_TIMES_SIZE = 3, MOST_GROWTH = 8;

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    lap_text text = {0};
    char chunk[4096];
    if (!file) return NULL;
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, file)) > 0;)
        lap_text_addn(&text, chunk, n);
    fclose(file);
    *size = text.length;
    return text.data;
}

static int one_fleet(const char *json, size_t size, size_t ranks, double *each_s) {
    lap_error err = {0};
    lap_merge *merge = NULL;
    lap_text out = {0};
    lap_rank *all = calloc(ranks, sizeof *all);
    if (!all) return 1;
    double begun = lap_clock_now();
    lap_status status = lap_merge_new(ranks, &merge, &err);
    for (size_t i = 0; i < ranks && status == LAP_OK; i++) {
        all[i].state = LAP_RANK_OK;
        snprintf(all[i].host, sizeof all[i].host, "node%04zu", i / 8);
        status = lap_merge_add(merge, i, all[i].host, json, size, &err);
    }
    double added = lap_clock_now();
    if (status == LAP_OK) status = lap_merge_sum(merge, all, &err);
    lap_merge_head head = {"", "simulation", 120};
    if (status == LAP_OK) status = lap_merge_write(merge, all, &head, &out, &err);
    double seconds = lap_clock_now() - begun;
    *each_s = seconds / (double)ranks;
    int bad = status != LAP_OK;
    size_t sets = 0;
    const lap_set *sums = merge ? lap_merge_sets(merge, &sets) : NULL;
    if (!bad && (sets == 0 || sums[0].rated != ranks)) {
        printf("FAILED: %zu of %zu ranks are in the sum\n", sets ? sums[0].rated : 0, ranks);
        bad = 1;
    }
    if (status != LAP_OK) printf("FAILED: %s\n", err.message);
    printf("%5zu ranks: %8.3f s (%.3f s of it merging), %.3f ms a rank, result %.2f MB, %.1f kB a "
           "rank\n",
           ranks, seconds, added - begun, *each_s * 1e3, (double)out.length / 1e6,
           (double)out.length / 1e3 / (double)ranks);
    if ((double)out.length > MOST_TIMES_SIZE * (double)size * (double)ranks) {
        printf("FAILED: the result is more than %g times its parts\n", MOST_TIMES_SIZE);
        bad = 1;
    }
    lap_text_free(&out);
    lap_merge_free(merge);
    free(all);
    return bad;
}

/* Peak memory of this process so far. */
static long peak_kb(void) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[200];
    long kb = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0) kb = strtol(line + 6, NULL, 10);
    if (file) fclose(file);
    return kb;
}

int main(int argc, char **argv) {
    size_t size = 0, most = argc > 2 ? (size_t)strtoul(argv[2], NULL, 10) : 4096;
    char *json = argc > 1 ? read_file(argv[1], &size) : NULL;
    if (!json) {
        fputs("usage: simulate DOCUMENT.json [MOST]\n", stderr);
        return 2;
    }
    int bad = 0;
    double first = 0, each = 0;
    printf("a rank's document: %.1f kB\n", (double)size / 1e3);
    for (size_t ranks = 2; ranks <= most; ranks *= ranks < 16 ? 2 : 4) {
        bad |= one_fleet(json, size, ranks, &each);
        if (ranks == 16) first = each; /* smaller ones are too short to time */
        if (each > MOST_S) {
            printf("FAILED: more than %g s a rank\n", MOST_S);
            bad = 1;
        }
    }
    if (first > 0 && each > MOST_GROWTH * first) {
        printf("FAILED: a rank costs %.1f times as much in a large fleet\n", each / first);
        bad = 1;
    }
    printf("peak memory: %.0f MB\n", (double)peak_kb() / 1e3);
    if ((double)peak_kb() * 1e3 > 6.0 * (double)size * (double)most + 3e8) {
        puts("FAILED: more memory than six times the result and 300 MB");
        bad = 1;
    }
    free(json);
    return bad;
}
