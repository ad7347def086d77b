/* Keeps measured ceilings on disk, one small text file for each device, driver, toolchain and set
 * of kernels. A file that is missing, foreign or damaged is as good as none. */
#include "base/rng.h"
#include "base/text.h"
#include "kernel/kernel.h"
#include "measure/ceilings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 1024, VALUES = LAP_PRECISION_COUNT + 4 };
static const char format_line[] = "warmlap ceilings 2";

bool lap_ceilings_folder(char *buffer, size_t size) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (xdg && xdg[0] == '/') /* the specification: a relative one is to be ignored */
        n = snprintf(buffer, size, "%s/warmlap", xdg);
    else if (home && home[0] == '/')
        n = snprintf(buffer, size, "%s/.cache/warmlap", home);
    return n > 0 && (size_t)n < size;
}

/* One line that no other device, driver or set of kernels has. */
static bool key_of(const lap_device_info *info, lap_text *key) {
    static const char *const stems[] = {"peak_fma", "peak_mma", "stream_copy"};
    uint64_t sources = 0;
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
        const char *text = lap_kernel_source(info->language, stems[i]);
        sources = sources * 31 + (text ? lap_rng_stream(text) : 0);
    }
    lap_text_addf(key, "%s|%s|%s|%s|%s|%u|%u|%" PRIu64 "|%016" PRIx64, info->backend,
                  info->platform, info->name, info->driver, info->toolchain, info->units,
                  info->clock_mhz, info->cache_bytes, sources);
    return !key->failed;
}

static bool path_of(const char *folder, const char *key, const char *end, char *path) {
    int n =
        snprintf(path, PATH_SIZE, "%s/ceilings-%016" PRIx64 "%s", folder, lap_rng_stream(key), end);
    return n > 0 && n < PATH_SIZE;
}

static const char *const names[VALUES] = {
    [LAP_FP32] = "fp32_flops_per_s",
    [LAP_FP32X3] = "fp32x3_flops_per_s",
    [LAP_TF32] = "tf32_flops_per_s",
    [LAP_FP16] = "fp16_flops_per_s",
    [LAP_BF16] = "bf16_flops_per_s",
    [LAP_PRECISION_COUNT] = "memory_bytes_per_s",
    [LAP_PRECISION_COUNT + 1] = "cache_bytes_per_s",
    [LAP_PRECISION_COUNT + 2] = "memory_bytes",
    [LAP_PRECISION_COUNT + 3] = "cache_bytes",
};

static void pack(const lap_ceilings *c, lap_optional *values) {
    for (int i = 0; i < LAP_PRECISION_COUNT; i++)
        values[i] = c->flops_per_s[i];
    values[LAP_PRECISION_COUNT] = c->memory_bytes_per_s;
    values[LAP_PRECISION_COUNT + 1] = c->cache_bytes_per_s;
    values[LAP_PRECISION_COUNT + 2] = lap_some((double)c->memory_bytes);
    values[LAP_PRECISION_COUNT + 3] = lap_some((double)c->cache_bytes);
}

static void unpack(const lap_optional *values, lap_ceilings *c) {
    for (int i = 0; i < LAP_PRECISION_COUNT; i++) {
        c->flops_per_s[i] = values[i];
        c->has = c->has || values[i].has;
    }
    c->memory_bytes_per_s = values[LAP_PRECISION_COUNT];
    c->cache_bytes_per_s = values[LAP_PRECISION_COUNT + 1];
    c->has = c->has || c->memory_bytes_per_s.has || c->cache_bytes_per_s.has;
    c->memory_bytes = (uint64_t)values[LAP_PRECISION_COUNT + 2].value;
    c->cache_bytes = (uint64_t)values[LAP_PRECISION_COUNT + 3].value;
}

/* "name value" or "name absent". */
static bool read_value(char *line, const char *name, lap_optional *value) {
    size_t n = strlen(name);
    double number;
    if (strncmp(line, name, n) != 0 || line[n] != ' ') return false;
    *value = lap_none();
    if (strcmp(line + n + 1, "absent") == 0) return true;
    /* Above 1e18 nothing measures, below 0 nothing is: the file is damaged. */
    if (!lap_parse_double(line + n + 1, &number) || !(number >= 0) || number > 1e18) return false;
    *value = lap_some(number);
    return true;
}

static bool next_line(FILE *file, char *line, size_t size) {
    if (!fgets(line, (int)size, file)) return false;
    size_t n = strcspn(line, "\n");
    bool whole = line[n] == '\n';
    line[n] = '\0';
    return whole;
}

static bool load(const char *path, const char *key, lap_ceilings *out) {
    FILE *file = fopen(path, "re");
    if (!file) return false;
    char line[2048];
    lap_optional values[VALUES] = {{0}};
    bool ok = next_line(file, line, sizeof line) && strcmp(line, format_line) == 0;
    ok = ok && next_line(file, line, sizeof line) && strcmp(line, key) == 0;
    for (int i = 0; i < VALUES && ok; i++)
        ok = next_line(file, line, sizeof line) && read_value(line, names[i], &values[i]);
    ok = ok && next_line(file, line, sizeof line) && strncmp(line, "reason", 6) == 0;
    fclose(file);
    if (!ok) return false;
    *out = (lap_ceilings){.stored = true};
    unpack(values, out);
    snprintf(out->reason, sizeof out->reason, "%.500s", line[6] ? line + 7 : "");
    return out->has;
}

/* Every folder of the path that is not there yet. */
static void make_folders(const char *folder) {
    char path[PATH_SIZE];
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) return;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    mkdir(path, 0777);
}

/* Under another name first: a reader sees the whole file or none. */
static void store(const char *folder, const char *key, const lap_ceilings *c) {
    char path[PATH_SIZE], temporary[PATH_SIZE], end[32], number[40], reason[sizeof c->reason];
    snprintf(end, sizeof end, ".%ld", (long)getpid());
    if (!path_of(folder, key, "", path) || !path_of(folder, key, end, temporary)) return;
    make_folders(folder);
    FILE *file = fopen(temporary, "wxe");
    if (!file) return;
    lap_optional values[VALUES];
    pack(c, values);
    fprintf(file, "%s\n%s\n", format_line, key);
    for (int i = 0; i < VALUES; i++) {
        snprintf(number, sizeof number, "absent");
        if (values[i].has) lap_format_double(number, sizeof number, 17, values[i].value);
        fprintf(file, "%s %s\n", names[i], number);
    }
    snprintf(reason, sizeof reason, "%s", c->reason);
    fprintf(file, "reason %s\n", lap_text_clean(reason));
    bool ok = !ferror(file);
    ok = fclose(file) == 0 && ok;
    if (!ok || rename(temporary, path) != 0) unlink(temporary);
}

/* A machine that is busy with something else measures too little, never too much. */
static bool keep_best(lap_optional *now, const lap_optional *before, bool *stored) {
    if (!before->has || (now->has && now->value > before->value)) return false;
    *now = *before;
    return *stored = true;
}

static void merge(lap_ceilings *now, const lap_ceilings *before) {
    for (int p = 0; p < LAP_PRECISION_COUNT; p++)
        keep_best(&now->flops_per_s[p], &before->flops_per_s[p], &now->stored);
    keep_best(&now->memory_bytes_per_s, &before->memory_bytes_per_s, &now->stored);
    if (keep_best(&now->cache_bytes_per_s, &before->cache_bytes_per_s, &now->stored))
        now->cache_bytes = before->cache_bytes;
    now->has = now->has || now->stored;
}

lap_status lap_ceilings_get(lap_queue *queue, const char *folder, lap_ceilings *out,
                            lap_error *err) {
    *out = (lap_ceilings){0};
    if (!folder) return lap_ceilings_measure(queue, out, err);
    lap_text key = {0};
    char path[PATH_SIZE];
    const lap_device_info *info = lap_device_get_info(lap_queue_device(queue));
    bool usable = key_of(info, &key) && path_of(folder, lap_text_get(&key), "", path);
    lap_ceilings before = {0};
    bool known = usable && load(path, lap_text_get(&key), &before);
    lap_status status = lap_ceilings_measure(queue, out, err);
    if (status == LAP_OK && known) merge(out, &before);
    if (status == LAP_OK && usable && out->has) store(folder, lap_text_get(&key), out);
    lap_text_free(&key);
    return status;
}
