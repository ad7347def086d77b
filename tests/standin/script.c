/* Reads the stand-ins' script: see script.h. Strict: whatever is not understood is an error. */
#include "script.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum section { NONE, PLATFORM, DEVICE, OPENCL, CUDA, NVRTC, NVML, SECTIONS } section;
static const char *const section_names[SECTIONS] = {"",     "platform", "device", "opencl",
                                                    "cuda", "nvrtc",    "nvml"};

typedef enum kind { TEXT, NUMBER, CODE, WORD, NUMBERS, UUID, PCI } kind;

/* Fields lie at an offset from the start of their section's structure. */
static const struct key {
    section section;
    const char *name;
    kind kind;
    size_t offset;
    const char *more; /* WORD: the words, their number is the value; NUMBERS: what divides them */
} keys[] = {
    {PLATFORM, "name", TEXT, offsetof(script_platform, name), NULL},
    {PLATFORM, "error", CODE, offsetof(script_platform, error), NULL},
    {DEVICE, "name", TEXT, offsetof(script_device, name), NULL},
    {DEVICE, "type", WORD, offsetof(script_device, type), "gpu cpu accelerator"},
    {DEVICE, "uuid", UUID, offsetof(script_device, uuid), NULL},
    {DEVICE, "pci", PCI, offsetof(script_device, pci), NULL},
    {DEVICE, "memory", NUMBER, offsetof(script_device, memory), NULL},
    {DEVICE, "max_alloc", NUMBER, offsetof(script_device, max_alloc), NULL},
    {DEVICE, "group", NUMBER, offsetof(script_device, group), NULL},
    {DEVICE, "kernel_group", NUMBER, offsetof(script_device, kernel_group), NULL},
    {OPENCL, "stamps", WORD, offsetof(script, opencl.stamps), "sound zero equal reversed missing"},
    {OPENCL, "slow_by", NUMBER, offsetof(script, opencl.slow_by), NULL},
    {CUDA, "devices", NUMBER, offsetof(script, cuda.devices), NULL},
    {CUDA, "count_error", CODE, offsetof(script, cuda.count_error), NULL},
    {CUDA, "driver", NUMBER, offsetof(script, cuda.driver), NULL},
    {CUDA, "memory", NUMBER, offsetof(script, cuda.memory), NULL},
    {CUDA, "capability", NUMBERS, offsetof(script, cuda.capability), "."},
    {CUDA, "name", TEXT, offsetof(script, cuda.name), NULL},
    {NVRTC, "version", NUMBERS, offsetof(script, nvrtc.version), "."},
    {NVRTC, "archs", NUMBERS, offsetof(script, nvrtc.archs), ","},
    {NVRTC, "log_lines", NUMBER, offsetof(script, nvrtc.log_lines), NULL},
    {NVML, "reasons", NUMBER, offsetof(script, nvml.reasons), NULL},
    {NVML, "own_process", WORD, offsetof(script, nvml.own_process), "no yes"},
    {NVML, "part", WORD, offsetof(script, nvml.part), "no yes"},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

typedef struct reader {
    script *out;
    section section;
    char *base; /* of the section's structure */
    uint32_t seen[SECTIONS];
    bool opened[SECTIONS];
    char *why;
    size_t why_size;
} reader;

static bool fail(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(reader *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, r->why_size, format, args);
    va_end(args);
    return false;
}

/* ---- values --------------------------------------------------------------------------------- */

/* A whole number at *p, decimal or 0x; moves *p behind it. */
static bool number(const char **p, int64_t *out) {
    char *end;
    if (!isdigit((unsigned char)**p) && !(**p == '-' && isdigit((unsigned char)(*p)[1])))
        return false;
    errno = 0;
    bool hexadecimal = (*p)[0] == '0' && (*p)[1] == 'x';
    *out = strtoll(*p, &end, hexadecimal ? 16 : 10);
    *p = end;
    return errno == 0;
}

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* One escaped character behind the backslash at p; how many characters it takes, 0 if unknown. */
static size_t escape(const char *p, char *out) {
    static const char known[][2] = {
        {'0', '\0'}, {'n', '\n'}, {'t', '\t'}, {'"', '"'}, {'\\', '\\'}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (p[0] != known[i][0]) continue;
        *out = known[i][1];
        return 1;
    }
    if (p[0] != 'x' || hex_digit(p[1]) < 0 || hex_digit(p[2]) < 0) return 0;
    *out = (char)(hex_digit(p[1]) * 16 + hex_digit(p[2]));
    return 3;
}

static bool read_text(reader *r, const char *value, script_text *out) {
    memset(out, 0, sizeof *out);
    bool quoted = value[0] == '"';
    const char *p = value + quoted;
    while (*p && !(quoted && *p == '"')) {
        if (out->length == sizeof out->bytes - 1) return fail(r, "the text is too long");
        char c = *p++;
        if (quoted && c == '\\') {
            size_t n = escape(p, &c);
            if (n == 0) return fail(r, "unknown escape \\%c", *p);
            p += n;
        }
        out->bytes[out->length++] = c;
    }
    if (quoted && strcmp(p, "\"") != 0) return fail(r, "the text does not end with a quote");
    return true;
}

static bool read_word(reader *r, const char *value, const char *words, int64_t *out) {
    *out = 0;
    for (const char *p = words; *p; (*out)++) {
        size_t n = strcspn(p, " ");
        if (strlen(value) == n && strncmp(p, value, n) == 0) return true;
        p += n + strspn(p + n, " ");
    }
    return fail(r, "'%s' is none of: %s", value, words);
}

static bool read_numbers(reader *r, const char *value, char divider, script_numbers *out) {
    out->count = 0;
    for (const char *p = value;; p += 1 + strspn(p + 1, " ")) {
        if (out->count == SCRIPT_NUMBERS || !number(&p, &out->at[out->count++]))
            return fail(r, "'%s' is no list of up to %d numbers", value, SCRIPT_NUMBERS);
        if (*p == '\0')
            return divider != '.' || out->count == 2 || fail(r, "'%s' is no x.y", value);
        if (*p != divider) return fail(r, "'%s': expected '%c' between numbers", value, divider);
    }
}

static bool read_uuid(reader *r, const char *value, script_numbers *out) {
    out->count = 0;
    for (size_t i = 0; i < 16 && hex_digit(value[2 * i]) >= 0 && hex_digit(value[2 * i + 1]) >= 0;
         i++)
        out->at[out->count++] = hex_digit(value[2 * i]) * 16 + hex_digit(value[2 * i + 1]);
    return (out->count == 16 && !value[32]) || fail(r, "a UUID is 32 hexadecimal digits");
}

static bool read_pci(reader *r, const char *value, script_numbers *out) {
    unsigned v[4];
    int end = 0;
    if (sscanf(value, "%x:%x:%x.%x%n", &v[0], &v[1], &v[2], &v[3], &end) != 4 || value[end])
        return fail(r, "a PCI address is domain:bus:device.function, in hexadecimal");
    for (out->count = 0; out->count < 4; out->count++)
        out->at[out->count] = v[out->count];
    return true;
}

static bool read_value(reader *r, const struct key *key, const char *value) {
    void *to = r->base + key->offset;
    switch (key->kind) {
    case TEXT:
        return read_text(r, value, to);
    case WORD:
        return read_word(r, value, key->more, to);
    case NUMBERS:
        return read_numbers(r, value, key->more[0], to);
    case UUID:
        return read_uuid(r, value, to);
    case PCI:
        return read_pci(r, value, to);
    default:
        return (number(&value, to) && !*value && (key->kind == CODE || *(int64_t *)to >= 0)) ||
               fail(r, "the value of %s is no such number", key->name);
    }
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void set_text(script_text *text, const char *value) {
    text->length = strlen(value);
    memcpy(text->bytes, value, text->length + 1);
}

static void new_device(script_device *device) {
    set_text(&device->name, "Fake device");
    device->name.length++; /* most drivers count the NUL */
    device->memory = (int64_t)4 << 30;
    device->group = 256;
}

static bool open_section(reader *r, const char *line) {
    size_t length = strlen(line);
    r->section = NONE;
    for (section s = PLATFORM; s < SECTIONS; s++)
        if (length == strlen(section_names[s]) + 2 && line[length - 1] == ']' &&
            strncmp(line + 1, section_names[s], length - 2) == 0)
            r->section = s;
    section s = r->section;
    script *out = r->out;
    r->base = (char *)out;
    if (s == NONE) return fail(r, "unknown section %s", line);
    r->seen[s] = 0;
    if (s == PLATFORM) {
        if (out->platform_count == SCRIPT_PLATFORMS) return fail(r, "too many platforms");
        r->base = (char *)&out->platforms[out->platform_count++];
    } else if (s == DEVICE) {
        if (out->platform_count == 0) return fail(r, "a [device] needs a [platform] before it");
        script_platform *platform = &out->platforms[out->platform_count - 1];
        if (platform->device_count == SCRIPT_DEVICES) return fail(r, "too many devices");
        r->base = (char *)&platform->devices[platform->device_count++];
        new_device((script_device *)(void *)r->base);
    } else if (r->opened[s]) {
        return fail(r, "%s for the second time", line);
    }
    r->opened[s] = true;
    return true;
}

/* line is "key = value" without blanks around it. */
static bool set_key(reader *r, char *line) {
    char *equals = strchr(line, '=');
    if (!equals) return fail(r, "neither [section], key = value, fail nor delay: %s", line);
    const char *value = equals + 1 + strspn(equals + 1, " \t");
    while (equals > line && (equals[-1] == ' ' || equals[-1] == '\t'))
        equals--;
    *equals = '\0';
    if (!*value) return fail(r, "%s has no value", line);
    for (size_t i = 0; i < KEYS; i++) {
        if (keys[i].section != r->section || strcmp(keys[i].name, line) != 0) continue;
        if (r->seen[r->section] & 1u << i) return fail(r, "%s for the second time", line);
        r->seen[r->section] |= 1u << i;
        return read_value(r, &keys[i], value);
    }
    return fail(r, r->section ? "unknown key %s in [%s]" : "%s before any section%s", line,
                section_names[r->section]);
}

static size_t prefix_length(const char *function) {
    size_t n = 0;
    while (islower((unsigned char)function[n]))
        n++;
    return n;
}

/* A function of this stand-in, or of another one. */
static bool known_function(const char *function) {
    static const char *const prefixes[] = {"cl", "cuda", "nvrtc", "nvml"};
    size_t n = prefix_length(function);
    bool any = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        any = any || (strlen(prefixes[i]) == n && strncmp(prefixes[i], function, n) == 0);
    if (!script_functions[0] || prefix_length(script_functions[0]) != n ||
        strncmp(function, script_functions[0], n) != 0)
        return any;
    for (const char *const *f = script_functions; *f; f++)
        if (strcmp(*f, function) == 0) return true;
    return false;
}

/* "fail FUNCTION N[+] CODE", "delay FUNCTION MS". */
static bool add_call(reader *r, const char *line) {
    char verb[8], name[64], nth[24] = "", last[24] = "", more;
    int words = sscanf(line, "%7s %63s %23s %23s %c", verb, name, nth, last, &more);
    bool failing = strcmp(verb, "fail") == 0;
    if (words != (failing ? 4 : 3))
        return fail(r, "expected %s", failing ? "fail FUNCTION N[+] CODE" : "delay FUNCTION MS");
    if (!known_function(name)) return fail(r, "no stand-in counts calls of %s", name);
    if (r->out->call_count == SCRIPT_CALLS) return fail(r, "too many lines of fail and delay");
    script_call *call = &r->out->calls[r->out->call_count++];
    memset(call, 0, sizeof *call);
    memcpy(call->name, name, sizeof call->name);
    const char *p = nth, *q = last;
    int64_t first = 0;
    if (!number(&p, &first) || first < (failing ? 1 : 0)) return fail(r, "%s: no count", nth);
    bool later = failing && *p == '+';
    if (p[later]) return fail(r, "%s: no count", nth);
    if (!failing) {
        call->delay_ms = first;
        return true;
    }
    call->first = (uint64_t)first;
    call->last = later ? UINT64_MAX : call->first;
    if (!number(&q, &call->code) || *q || call->code == 0) return fail(r, "%s: no code", last);
    return true;
}

static bool read_line(reader *r, char *line) {
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length && (line[length - 1] == ' ' || line[length - 1] == '\t'))
        line[--length] = '\0';
    if (length == 0 || line[0] == '#') return true;
    if (line[0] == '[') return open_section(r, line);
    if (strncmp(line, "fail ", 5) == 0 || strncmp(line, "delay ", 6) == 0) return add_call(r, line);
    return set_key(r, line);
}

static void set_defaults(script *s) {
    memset(s, 0, sizeof *s);
    s->opencl.slow_by = 1;
    s->cuda.devices = 1;
    s->cuda.driver = 13000;
    s->cuda.memory = (int64_t)1 << 30;
    s->cuda.capability = (script_numbers){2, {9, 0}};
    set_text(&s->cuda.name, "Stand-in GPU");
    s->nvrtc.version = (script_numbers){2, {13, 0}};
    s->nvrtc.archs = (script_numbers){5, {75, 80, 90, 120, 121}};
    s->nvrtc.log_lines = 3;
    s->nvml.own_process = 1;
}

bool script_parse(const char *text, script *out, int *line, char *why, size_t size) {
    reader r = {.out = out, .why = why, .why_size = size};
    set_defaults(out);
    *line = 1;
    for (const char *p = text; *p; (*line)++) {
        char copy[2048];
        size_t n = strcspn(p, "\n");
        if (n >= sizeof copy) return fail(&r, "the line is too long");
        memcpy(copy, p, n);
        copy[n] = '\0';
        if (!read_line(&r, copy)) return false;
        p += n + (p[n] == '\n');
    }
    if (out->platform_count == 0) { /* a sound driver with one device */
        out->platform_count = out->platforms[0].device_count = 1;
        new_device(&out->platforms[0].devices[0]);
    }
    return true;
}

/* ---- what holds now ------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    bool read;
    char path[1024];
    script script;
    struct {
        char name[64];
        uint64_t calls;
    } counts[SCRIPT_CALLS];
} now = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void give_up(const char *path, int line, const char *why) {
    fprintf(stderr, "stand-in: %s:%d: %s\n", path, line, why);
    abort();
}

static void read_script(const char *path) {
    static char text[1 << 16];
    char why[256];
    int line = 0;
    size_t n = 0;
    if (path[0]) {
        FILE *file = fopen(path, "r");
        if (!file) give_up(path, 0, strerror(errno));
        n = fread(text, 1, sizeof text, file);
        fclose(file);
        if (n == sizeof text || memchr(text, '\0', n)) give_up(path, 0, "this is no script");
    }
    text[n] = '\0';
    if (!script_parse(text, &now.script, &line, why, sizeof why)) give_up(path, line, why);
    memset(now.counts, 0, sizeof now.counts);
    snprintf(now.path, sizeof now.path, "%s", path);
    now.read = true;
}

static void update(void) {
    const char *path = getenv("LAP_STANDIN_SCRIPT");
    if (!path) path = "";
    if (!now.read || strcmp(path, now.path) != 0) read_script(path);
}

const script *script_get(void) {
    pthread_mutex_lock(&now.lock);
    update();
    pthread_mutex_unlock(&now.lock);
    return &now.script;
}

bool script_stamp(bool end, uint64_t *stamp) {
    const script *s = script_get();
    if (s->opencl.slow_by > 1) *stamp /= (uint64_t)s->opencl.slow_by;
    switch ((script_stamps)s->opencl.stamps) {
    case STAMPS_SOUND:
        return true;
    case STAMPS_ZERO:
        *stamp = 0;
        return true;
    case STAMPS_EQUAL:
        *stamp = 5000;
        return true;
    case STAMPS_REVERSED:
        *stamp = end ? 4999 : 5000;
        return true;
    default:
        return false;
    }
}

/* Which call of the function this is, from 1. */
static uint64_t count(const char *function) {
    if (!known_function(function)) give_up(function, 0, "is not in script_functions");
    size_t i = 0;
    while (i < SCRIPT_CALLS - 1 && now.counts[i].name[0] &&
           strcmp(now.counts[i].name, function) != 0)
        i++;
    snprintf(now.counts[i].name, sizeof now.counts[i].name, "%s", function);
    return ++now.counts[i].calls;
}

int script_enter(const char *function) {
    int64_t code = 0, ms = 0;
    pthread_mutex_lock(&now.lock);
    update();
    uint64_t n = now.script.call_count ? count(function) : 0;
    for (size_t i = 0; i < now.script.call_count; i++) {
        const script_call *call = &now.script.calls[i];
        if (strcmp(call->name, function) != 0) continue;
        ms += call->delay_ms;
        if (n >= call->first && n <= call->last && code == 0) code = call->code;
    }
    pthread_mutex_unlock(&now.lock);
    if (ms > 0) nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    return (int)code;
}
