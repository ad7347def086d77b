/* What machine this is (see host.h). Reads a few small files; unknown stays empty. */
#include "report/host.h"
#include "base/text.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

static FILE *open_under(const char *root, const char *path) {
    char full[1024];
    int n = snprintf(full, sizeof full, "%s%s", root, path);
    return n > 0 && (size_t)n < sizeof full ? fopen(full, "re") : NULL;
}

/* What follows `key` and then `separator` on the first line that starts so, cleaned. */
static void read_value(const char *root, const char *path, const char *key, char separator,
                       char *out, size_t size) {
    FILE *file = open_under(root, path);
    if (!file) return;
    char line[1024];
    size_t n = strlen(key);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, key, n) != 0) continue;
        char *p = line + n + strspn(line + n, " \t");
        if (*p != separator) continue; /* a longer key that starts alike */
        snprintf(out, size, "%s", p + 1);
        lap_text_clean(out);
        break;
    }
    fclose(file);
}

static void strip_quotes(char *s) {
    size_t n = strlen(s);
    if (n < 2 || (s[0] != '"' && s[0] != '\'') || s[n - 1] != s[0]) return;
    memmove(s, s + 1, n - 2);
    s[n - 2] = '\0';
}

static void read_cpu(const char *root, char *out, size_t size) {
    /* x86 and some others; ARM has no name there, but may say what board it is. */
    static const char *const keys[] = {"model name", "cpu model", "cpu", "Model", "Hardware"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !out[0]; i++)
        read_value(root, "/proc/cpuinfo", keys[i], ':', out, size);
}

static uint32_t usable_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    return (uint32_t)CPU_COUNT(&set);
}

void lap_host_info_read(const char *root, lap_host_info *out) {
    memset(out, 0, sizeof *out);
    read_cpu(root, out->cpu, sizeof out->cpu);
    read_value(root, "/etc/os-release", "PRETTY_NAME", '=', out->os, sizeof out->os);
    strip_quotes(out->os);
    out->cores = usable_cores();
    struct utsname name;
    if (uname(&name) == 0) {
        snprintf(out->kernel, sizeof out->kernel, "%.64s %.120s %.64s", name.sysname, name.release,
                 name.machine);
        lap_text_clean(out->kernel);
        if (!out->os[0]) snprintf(out->os, sizeof out->os, "%.64s", name.sysname);
    }
    char memory[64] = "";
    read_value(root, "/proc/meminfo", "MemTotal", ':', memory, sizeof memory);
    memory[strspn(memory, "0123456789")] = '\0';
    uint64_t kib;
    if (lap_parse_u64(memory, &kib)) out->memory_bytes = kib * 1024;
}
