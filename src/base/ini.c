/* Strict INI reading: scan the bytes, hand a cleaned copy to iniparser, compare what both saw.
 * iniparser 4.1 takes a missing closing quote, text after one, a duplicate key and a line joined by
 * a backslash without a word, so the scan refuses these before iniparser sees them. */
#include "base/ini.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <iniparser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct scanner {
    lap_ini *ini;
    lap_error *err;
    lap_text clean;      /* what iniparser gets: a line for a line */
    const char *section; /* the open section, owned by an entry; NULL before the first */
    int line;
} scanner;

#define FAIL(s, ...) fail_line((s)->err, (s)->ini->name, (s)->line, __VA_ARGS__)

static lap_status fail_line(lap_error *err, const char *name, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static lap_status fail_line(lap_error *err, const char *name, int line, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return LAP_FAIL(err, LAP_E_CONFIG, "%.400s:%d: %s", name, line, text);
}

static lap_status no_memory(lap_error *err) {
    return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a configuration file");
}

void lap_ini_free(lap_ini *ini) {
    if (!ini) return;
    for (size_t i = 0; i < ini->count; i++) {
        free(ini->entries[i].section);
        free(ini->entries[i].key);
        free(ini->entries[i].value);
    }
    free(ini->entries);
    free(ini->name);
    free(ini);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* text is terminated at size. Refuse whatever is not a UTF-8 text; say on which line. */
static lap_status check_bytes(const char *name, const char *text, size_t size, lap_error *err) {
    const unsigned char *b = (const unsigned char *)text;
    if (size >= 2 && ((b[0] == 0xFF && b[1] == 0xFE) || (b[0] == 0xFE && b[1] == 0xFF)))
        return fail_line(err, name, 1, "the file is UTF-16 or UTF-32; save it as UTF-8");
    int line = 1;
    size_t start = 0; /* of the line */
    for (size_t i = 0; i < size;) {
        size_t n = lap_text_utf8(text + i);
        if (b[i] == '\0')
            return fail_line(err, name, line,
                             "a zero byte; the file is binary or UTF-16, expected UTF-8 text");
        if (n == 0)
            return fail_line(err, name, line, "byte 0x%02X is not valid UTF-8; save it as UTF-8",
                             b[i]);
        bool line_end = b[i] == '\n' || (b[i] == '\r' && b[i + 1] == '\n');
        if (b[i] == '\r' && !line_end)
            return fail_line(err, name, line, "a carriage return that does not end the line");
        bool c1 = b[i] == 0xC2 && b[i + 1] < 0xA0; /* U+0080..U+009F: CSI and the like */
        if ((b[i] < 0x20 && b[i] != '\t' && !line_end) || b[i] == 0x7F || c1)
            return fail_line(err, name, line, "control character 0x%02X; expected text",
                             c1 ? b[i + 1] : b[i]);
        if (!line_end && i + n - start > LAP_INI_LINE_MAX)
            return fail_line(err, name, line, "the line is longer than %u bytes", LAP_INI_LINE_MAX);
        if (b[i] == '\n') {
            line++;
            start = i + 1;
        }
        i += n;
    }
    return LAP_OK;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static bool blank(char c) {
    return c == ' ' || c == '\t';
}

/* Trim blanks at both ends, in place. */
static char *trim(char *s) {
    while (blank(*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && blank(s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

/* A copy in lower case if s is a name (with '-' when dash), else NULL with *bad set. */
static char *name_copy(const char *s, bool dash, bool *bad) {
    *bad = *s == '\0';
    for (const char *p = s; *p && !*bad; p++) {
        bool letter = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
        *bad = !(letter || (*p >= '0' && *p <= '9') || *p == '_' || (dash && *p == '-'));
    }
    if (*bad) return NULL;
    char *copy = strdup(s);
    for (char *p = copy; p && *p; p++)
        if (*p >= 'A' && *p <= 'Z') *p = (char)(*p - 'A' + 'a');
    return copy;
}

/* Append; takes the strings over, also on failure. value is copied. */
static lap_status add_entry(scanner *s, char *section, char *key, const char *value) {
    lap_ini *ini = s->ini;
    lap_ini_entry entry = {section, key, value ? strdup(value) : NULL, s->line};
    lap_status status = LAP_OK;
    if (!section || (value && (!key || !entry.value)))
        status = no_memory(s->err);
    else if (ini->count >= LAP_INI_ENTRIES_MAX)
        status = FAIL(s, "more than %u sections and keys in one file", LAP_INI_ENTRIES_MAX);
    if (status != LAP_OK) {
        free(section);
        free(key);
        free(entry.value);
        return status;
    }
    ini->entries[ini->count++] = entry;
    return LAP_OK;
}

static lap_status scan_section(scanner *s, char *line) {
    char *end = strchr(line, ']');
    if (!end) return FAIL(s, "'%.60s' has no ']'; expected [section]", line);
    char *rest = trim(end + 1);
    if (*rest && *rest != ';' && *rest != '#')
        return FAIL(s, "'%.60s' after ']'; expected nothing or a comment", rest);
    *end = '\0';
    bool bad;
    char *name = name_copy(trim(line + 1), true, &bad);
    if (bad)
        return FAIL(s, "'%.60s' is no section name; expected letters, digits, '_' and '-'",
                    trim(line + 1));
    LAP_TRY(add_entry(s, name, NULL, NULL));
    s->section = s->ini->entries[s->ini->count - 1].section;
    lap_text_addf(&s->clean, "[%s]\n", s->section);
    return LAP_OK;
}

/* Cut quotes, comment and blanks off a value in place: *value is moved to its start. */
static lap_status scan_value(scanner *s, const char *key, char **value) {
    char *v = *value;
    char quote = *v;
    if (quote != '"' && quote != '\'') {
        v[strcspn(v, ";#")] = '\0';
        *value = trim(v);
        if (strchr(v, '"'))
            return FAIL(s,
                        "%.60s = %.200s: a quote inside the value; quotes go around the whole "
                        "value (use ' around a value that holds \")",
                        key, v);
        return LAP_OK;
    }
    char *end = strchr(v + 1, quote);
    if (!end) return FAIL(s, "%.60s = %.200s: the closing %c is missing", key, v, quote);
    char *rest = trim(end + 1);
    if (*rest && *rest != ';' && *rest != '#')
        return FAIL(s, "%.60s: '%.60s' after the closing %c; expected nothing or a comment", key,
                    rest, quote);
    *end = '\0';
    *value = v + 1;
    return LAP_OK;
}

static lap_status scan_pair(scanner *s, char *line) {
    char *equals = strchr(line, '=');
    if (!equals)
        return FAIL(s, "'%.60s': expected [section], key = value or a comment (; or #)", line);
    if (line[strlen(line) - 1] == '\\')
        return FAIL(s, "the line ends in '\\'; a line cannot be continued on the next one");
    lap_text_addf(&s->clean, "%s\n", line);
    *equals = '\0';
    char *name = trim(line), *value = trim(equals + 1);
    bool bad;
    char *key = name_copy(name, false, &bad);
    if (bad)
        return FAIL(s, "'%.60s' is no key; expected letters, digits and '_' before the '='", name);
    if (!key) return no_memory(s->err);
    lap_status status = LAP_OK;
    if (!s->section) status = FAIL(s, "%.60s stands before the first [section]", key);
    for (size_t i = 0; i < s->ini->count && status == LAP_OK; i++) {
        const lap_ini_entry *e = &s->ini->entries[i];
        if (e->key && !strcmp(e->key, key) && !strcmp(e->section, s->section))
            status = FAIL(s, "[%.60s] %.60s was given on line %d already; expected it once",
                          s->section, key, e->line);
    }
    if (status == LAP_OK) status = scan_value(s, key, &value);
    if (status != LAP_OK) {
        free(key);
        return status;
    }
    return add_entry(s, strdup(s->section), key, value);
}

static lap_status scan(scanner *s, const char *text) {
    if (!strncmp(text, "\xEF\xBB\xBF", 3)) text += 3;
    for (s->line = 1; *text; s->line++) {
        size_t n = strcspn(text, "\n");
        char buffer[LAP_INI_LINE_MAX + 2];
        size_t keep = n > 0 && text[n - 1] == '\r' ? n - 1 : n;
        if (keep >= sizeof buffer)
            return LAP_FAIL(s->err, LAP_E_INTERNAL, "a long line passed the check for its length");
        memcpy(buffer, text, keep);
        buffer[keep] = '\0';
        char *line = trim(buffer);
        if (*line == '\0' || *line == ';' || *line == '#')
            lap_text_add(&s->clean, "\n");
        else if (*line == '[')
            LAP_TRY(scan_section(s, line));
        else
            LAP_TRY(scan_pair(s, line));
        text += n + (text[n] == '\n');
    }
    return s->clean.failed ? no_memory(s->err) : LAP_OK;
}

/* ---- iniparser ------------------------------------------------------------------------------ */

static int silent(const char *format, ...) {
    (void)format;
    return 0;
}

/* iniparser 4.1 loads from a path only: an anonymous file through /proc or, where that is not
 * mounted, a file of its own in TMPDIR or /tmp. named: to be unlinked. -1 with errno. */
static int open_copy(char *path, size_t size, bool *named) {
    int fd = memfd_create("warmlap-ini", MFD_CLOEXEC);
    snprintf(path, size, "/proc/self/fd/%d", fd);
    *named = fd >= 0 && access(path, R_OK) != 0;
    if (fd >= 0 && !*named) return fd;
    if (fd >= 0) close(fd);
    const char *folder = getenv("TMPDIR");
    int n = snprintf(path, size, "%s/warmlap-ini.XXXXXX", folder && *folder ? folder : "/tmp");
    if (n < 0 || (size_t)n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    *named = fd >= 0;
    return fd;
}

static lap_status load_dictionary(scanner *s, dictionary **out) {
    *out = NULL;
    char path[1024];
    bool named;
    int fd = open_copy(path, sizeof path, &named);
    if (fd < 0)
        return LAP_FAIL(s->err, LAP_E_INTERNAL, "a copy of the file for iniparser: %s: %s", path,
                        strerror(errno));
    const char *data = lap_text_get(&s->clean);
    size_t left = s->clean.length;
    while (left > 0) {
        ssize_t n = write(fd, data, left);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            close(fd);
            if (named) (void)unlink(path);
            return LAP_FAIL(s->err, LAP_E_INTERNAL, "writing an anonymous file failed: %s",
                            strerror(errno));
        }
        data += n;
        left -= (size_t)n;
    }
    iniparser_set_error_callback(silent);
    *out = iniparser_load(path);
    iniparser_set_error_callback(NULL);
    close(fd);
    if (named) (void)unlink(path);
    if (!*out)
        return LAP_FAIL(s->err, LAP_E_CONFIG, "%.400s: iniparser cannot read the file",
                        s->ini->name);
    return LAP_OK;
}

/* The values become iniparser's; any difference to the scan means that one of the two misreads. */
static lap_status take_values(scanner *s, const dictionary *d) {
    size_t keys = 0, theirs = 0;
    for (size_t i = 0; i < s->ini->count; i++) {
        lap_ini_entry *e = &s->ini->entries[i];
        if (!e->key) continue;
        keys++;
        char name[2 * LAP_INI_LINE_MAX + 4];
        snprintf(name, sizeof name, "%s:%s", e->section, e->key);
        const char *value = iniparser_getstring(d, name, NULL);
        if (!value || strcmp(value, e->value) != 0) {
            s->line = e->line;
            return FAIL(s, "%.60s is ambiguous: it reads as '%.200s' or as '%.200s'; quote it",
                        e->key, e->value, value ? value : "(nothing)");
        }
        char *copy = strdup(value);
        if (!copy) return no_memory(s->err);
        free(e->value);
        e->value = copy;
    }
    int sections = iniparser_getnsec(d);
    for (int i = 0; i < sections; i++) {
        int n = iniparser_getsecnkeys(d, iniparser_getsecname(d, i));
        theirs += n > 0 ? (size_t)n : 0;
    }
    if (theirs != keys)
        return LAP_FAIL(s->err, LAP_E_CONFIG, "%.400s: iniparser sees %zu keys, the scan %zu",
                        s->ini->name, theirs, keys);
    return LAP_OK;
}

/* ---- whole files ---------------------------------------------------------------------------- */

/* text is terminated at size. */
static lap_status parse_text(const char *name, const char *text, size_t size, lap_ini **out,
                             lap_error *err) {
    scanner s = {.err = err};
    dictionary *d = NULL;
    lap_status status = LAP_OK;
    s.ini = calloc(1, sizeof *s.ini);
    if (s.ini) {
        s.ini->name = strdup(name);
        s.ini->entries = calloc(LAP_INI_ENTRIES_MAX, sizeof *s.ini->entries);
    }
    if (!s.ini || !s.ini->name || !s.ini->entries) {
        status = no_memory(err);
        goto out;
    }
    lap_text_clean(s.ini->name);
    if ((status = check_bytes(s.ini->name, text, size, err)) != LAP_OK) goto out;
    if ((status = scan(&s, text)) != LAP_OK) goto out;
    if ((status = load_dictionary(&s, &d)) != LAP_OK) goto out;
    status = take_values(&s, d);
out:
    if (d) iniparser_freedict(d);
    lap_text_free(&s.clean);
    if (status == LAP_OK)
        *out = s.ini;
    else
        lap_ini_free(s.ini);
    return status;
}

lap_status lap_ini_parse(const char *name, const void *bytes, size_t size, lap_ini **out,
                         lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_ini_parse: out is NULL");
    *out = NULL;
    if (!name || (!bytes && size)) return LAP_FAIL(err, LAP_E_ARG, "lap_ini_parse: NULL argument");
    if (size > LAP_INI_BYTES_MAX)
        return LAP_FAIL(err, LAP_E_CONFIG, "%.400s: more than %u bytes; no configuration file",
                        name, LAP_INI_BYTES_MAX);
    char *text = malloc(size + 1);
    if (!text) return no_memory(err);
    if (size) memcpy(text, bytes, size);
    text[size] = '\0';
    lap_status status = parse_text(name, text, size, out, err);
    free(text);
    return status;
}

static lap_status read_file(int fd, const char *name, char **text, size_t *size, lap_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return LAP_FAIL(err, LAP_E_CONFIG, "%.400s: %s", name, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return LAP_FAIL(err, LAP_E_CONFIG, "%.400s: a directory; expected a configuration file",
                        name);
    if (!S_ISREG(st.st_mode))
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "%.400s: a device, pipe or socket; expected a regular file", name);
    size_t limit = LAP_INI_BYTES_MAX + 1; /* one more tells "too large" from "just fits" */
    char *data = malloc(limit + 1);
    if (!data) return no_memory(err);
    size_t used = 0;
    while (used < limit) {
        ssize_t n = read(fd, data + used, limit - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            free(data);
            return LAP_FAIL(err, LAP_E_CONFIG, "%.400s: reading failed: %s", name, strerror(errno));
        }
        if (n == 0) break;
        used += (size_t)n;
    }
    data[used] = '\0';
    *text = data;
    *size = used;
    return LAP_OK;
}

lap_status lap_ini_load(const char *path, lap_ini **out, lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_ini_load: out is NULL");
    *out = NULL;
    if (!path) return LAP_FAIL(err, LAP_E_ARG, "lap_ini_load: path is NULL");
    char *name = strdup(path);
    if (!name) return no_memory(err);
    lap_text_clean(name);
    /* O_NONBLOCK: opening a pipe must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *text = NULL;
    size_t size = 0;
    lap_status status;
    if (fd < 0)
        status = LAP_FAIL(err, LAP_E_CONFIG, "%.400s: cannot open the configuration file: %s", name,
                          strerror(errno));
    else
        status = read_file(fd, name, &text, &size, err);
    if (fd >= 0) close(fd);
    if (status == LAP_OK) status = lap_ini_parse(name, text, size, out, err);
    free(text);
    free(name);
    return status;
}
