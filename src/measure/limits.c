/* Memory that may be taken without harm: /proc/meminfo and the limits of control groups (v2 and
 * v1). Reads only. */
#include "measure/limits.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024 };

/* Open root + a + b + c; NULL when it is not there or too long. */
static FILE *open_at(const char *root, const char *a, const char *b, const char *c) {
    char path[PATH_SIZE];
    int n = snprintf(path, sizeof path, "%s%s%s%s", root, a, b, c);
    return n > 0 && (size_t)n < sizeof path ? fopen(path, "re") : NULL;
}

/* A file that holds one number; "max" and anything else is false. */
static bool read_number(const char *root, const char *base, const char *group, const char *name,
                        uint64_t *out) {
    FILE *file = open_at(root, base, group, name);
    if (!file) return false;
    char line[64];
    bool ok = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    if (!ok) return false;
    line[strcspn(line, "\n")] = '\0';
    return lap_parse_u64(line, out);
}

/* The number after a key at the start of a line: "MemAvailable:   123 kB", "inactive_file 123". */
static bool read_keyed(FILE *file, const char *key, uint64_t *out) {
    char line[256];
    size_t n = strlen(key);
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, n) != 0) continue;
        char *number = line + n;
        number += strspn(number, " \t");
        number[strspn(number, "0123456789")] = '\0';
        return lap_parse_u64(number, out);
    }
    return false;
}

static void read_meminfo(const char *root, lap_host_memory *out) {
    FILE *file = open_at(root, "/proc/meminfo", "", "");
    if (!file) return;
    uint64_t kib;
    if (read_keyed(file, "MemTotal:", &kib)) out->total_bytes = kib * 1024;
    if (read_keyed(file, "MemAvailable:", &kib)) {
        out->available_bytes = kib * 1024;
        out->known = true;
    }
    fclose(file);
}

/* ---- control groups ------------------------------------------------------------------------- */

typedef struct cgroup_names {
    const char *base, *limit, *usage, *inactive;
} cgroup_names;

static const cgroup_names V2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current",
                                "inactive_file"};
static const cgroup_names V1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                                "/memory.usage_in_bytes", "total_inactive_file"};

/* What one group leaves: limit - usage, where inactive page cache does not count as used, because
 * the kernel drops it first. */
static void apply_group(const char *root, const cgroup_names *names, const char *group,
                        lap_host_memory *out) {
    uint64_t limit, usage, inactive = 0;
    if (!read_number(root, names->base, group, names->limit, &limit)) return;
    if (!read_number(root, names->base, group, names->usage, &usage)) return;
    FILE *stat = open_at(root, names->base, group, "/memory.stat");
    if (stat) {
        if (!read_keyed(stat, names->inactive, &inactive)) inactive = 0;
        fclose(stat);
    }
    usage -= inactive < usage ? inactive : usage;
    uint64_t left = usage < limit ? limit - usage : 0;
    if (out->known && left >= out->available_bytes) return;
    /* v1 writes "no limit" as a huge number; without MemAvailable that must not become "known". */
    if (!out->known && limit > UINT64_MAX / 4) return;
    out->available_bytes = left;
    out->known = out->limited = true;
}

/* The group itself and all above it: any of them may hold the tighter limit. Inside a container the
 * path may not exist there; the root of the mount is then the container's own group. */
static void apply_groups(const char *root, const cgroup_names *names, char *group,
                         lap_host_memory *out) {
    for (;;) {
        apply_group(root, names, group, out);
        char *slash = strrchr(group, '/');
        if (!slash) return;
        *slash = '\0';
    }
}

/* Does the comma-separated list hold "memory"? */
static bool lists_memory(const char *list, size_t n) {
    const char *end = list + n;
    while (list < end) {
        const char *comma = memchr(list, ',', (size_t)(end - list));
        size_t length = (size_t)((comma ? comma : end) - list);
        if (length == 6 && memcmp(list, "memory", 6) == 0) return true;
        list += length + 1;
    }
    return false;
}

static void read_cgroups(const char *root, lap_host_memory *out) {
    FILE *file = open_at(root, "/proc/self/cgroup", "", "");
    if (!file) return;
    char line[PATH_SIZE];
    while (fgets(line, sizeof line, file)) { /* "0::/path" or "4:memory,cpu:/path" */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/') continue;
        size_t n = (size_t)(path - controllers - 1);
        path++;
        if (strcmp(path, "/") == 0) path++;
        if (n == 0)
            apply_groups(root, &V2, path, out);
        else if (lists_memory(controllers + 1, n))
            apply_groups(root, &V1, path, out);
    }
    fclose(file);
}

void lap_host_memory_read(const char *root, lap_host_memory *out) {
    memset(out, 0, sizeof *out);
    read_meminfo(root, out);
    read_cgroups(root, out);
}

/* ---- the bound ------------------------------------------------------------------------------ */

static uint64_t share(uint64_t bytes, double fraction) {
    double part = (double)bytes * fraction;
    return part >= (double)bytes ? bytes : (uint64_t)part;
}

uint64_t lap_safe_bytes(const lap_device_info *device, bool free_known, uint64_t free_bytes,
                        const lap_host_memory *host, double fraction) {
    if (!(fraction > 0)) return 0;
    uint64_t bytes = free_known ? free_bytes : device->memory_bytes;
    bool known = free_known || device->memory_bytes > 0;
    if (device->host_memory) {
        bool host_known = host && host->known;
        if (host_known && (!known || host->available_bytes < bytes)) bytes = host->available_bytes;
        /* What such a device calls its memory is the machine's, used or not: no bound by itself. */
        known = host_known;
    }
    if (!known) return LAP_CONSERVATIVE_BYTES;
    return share(bytes, fraction);
}
