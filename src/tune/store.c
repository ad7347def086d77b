/* The tune store's file and look-up (see store.h). Trusts no line of it. */
#include "tune/store.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION "warmlap-tune/1"
enum { FIELDS = 12, BYTES_MOST = 16 << 20 };

void lap_tune_store_free(lap_tune_store *store) {
    free(store->entries);
    *store = (lap_tune_store){0};
}

static bool same_key(const lap_tune_entry *a, const lap_tune_entry *b) {
    return strcmp(a->step, b->step) == 0 && a->batch == b->batch &&
           strcmp(a->precision, b->precision) == 0 && strcmp(a->device, b->device) == 0 &&
           strcmp(a->uuid, b->uuid) == 0 && strcmp(a->driver, b->driver) == 0 &&
           strcmp(a->toolchain, b->toolchain) == 0;
}

static lap_tune_entry *find(const lap_tune_store *store, const lap_tune_entry *key) {
    for (size_t i = 0; i < store->count; i++)
        if (same_key(&store->entries[i], key)) return &store->entries[i];
    return NULL;
}

static lap_status append(lap_tune_store *store, const lap_tune_entry *entry, lap_error *err) {
    if (store->count == store->capacity) {
        size_t capacity = store->capacity ? 2 * store->capacity : 32;
        lap_tune_entry *more = realloc(store->entries, capacity * sizeof *more);
        if (!more) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store");
        store->entries = more;
        store->capacity = capacity;
    }
    store->entries[store->count++] = *entry;
    return LAP_OK;
}

lap_status lap_tune_store_path(const char *given, char **out, lap_error *err) {
    lap_text text = {0};
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    *out = NULL;
    if (*given)
        lap_text_add(&text, given);
    else if (xdg && xdg[0] == '/')
        lap_text_addf(&text, "%s/warmlap/tune.txt", xdg);
    else if (home && home[0] == '/')
        lap_text_addf(&text, "%s/.local/share/warmlap/tune.txt", home);
    else
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "no place for the tune store: neither XDG_DATA_HOME nor HOME is an "
                        "absolute path; name a file with --store or [run] tune_store");
    if (text.failed) {
        lap_text_free(&text);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store's path");
    }
    *out = text.data;
    return LAP_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool copy_field(char *to, size_t size, const char *from) {
    size_t n = strlen(from);
    char clean[512];
    if (n == 0 || n >= size || n >= sizeof clean) return false;
    memcpy(clean, from, n + 1);
    if (strcmp(lap_text_clean(clean), from) != 0) return false; /* blanks around, bad bytes */
    memcpy(to, from, n + 1);
    return true;
}

static bool read_hash(const char *text, uint64_t *out) {
    if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16) return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

/* "NAME=1 OTHER=2": the names are checked against the row when the entry is used. */
static bool params_shape(const char *text) {
    for (const char *p = text; *p;) {
        size_t word = strcspn(p, " "), name = strcspn(p, "=");
        size_t digits = name < word ? strspn(p + name + 1, "-0123456789") : 0;
        if (name == 0 || digits == 0 || name + 1 + digits != word) return false;
        p += word;
        if (*p && *++p == '\0') return false;
    }
    return true;
}

static bool read_time(const char *text, double *out) {
    return text[0] && text[0] != ' ' && lap_parse_double(text, out) && *out > 0;
}

/* NULL, or what is wrong with the fields. */
static const char *read_fields(char *const *f, lap_tune_entry *e) {
    lap_precision precision;
    if (!copy_field(e->device, sizeof e->device, f[0])) return "field 1: expected a device name";
    if (!copy_field(e->uuid, sizeof e->uuid, f[1])) return "field 2: expected a uuid or -";
    if (!copy_field(e->driver, sizeof e->driver, f[2])) return "field 3: expected a driver version";
    if (!copy_field(e->toolchain, sizeof e->toolchain, f[3]))
        return "field 4: expected a toolchain";
    if (!copy_field(e->step, sizeof e->step, f[4])) return "field 5: expected a step's signature";
    if (!copy_field(e->precision, sizeof e->precision, f[5]) ||
        !lap_precision_parse(e->precision, &precision))
        return "field 6: expected a precision such as fp32";
    if (!lap_parse_u64(f[6], &e->batch) || e->batch == 0 || (e->batch & (e->batch - 1)) != 0)
        return "field 7: expected a batch that is a power of two";
    if (!copy_field(e->kernel, sizeof e->kernel, f[7])) return "field 8: expected a kernel";
    if (!read_hash(f[8], &e->source)) return "field 9: expected 16 hexadecimal digits";
    if (!copy_field(e->params, sizeof e->params, f[9]) ||
        (strcmp(e->params, "-") != 0 && !params_shape(e->params)))
        return "field 10: expected parameters such as BM=64 BN=32, or -";
    if (strcmp(e->params, "-") == 0) e->params[0] = '\0';
    if (!read_time(f[10], &e->default_s)) return "field 11: expected seconds above 0";
    if (!read_time(f[11], &e->tuned_s)) return "field 12: expected seconds above 0";
    return NULL;
}

static lap_status read_line(const char *name, char *line, int number, lap_tune_store *out,
                            lap_error *err) {
    char *fields[FIELDS];
    int count = 0;
    for (char *p = line; p; count++) {
        char *tab = strchr(p, '\t');
        if (count < FIELDS) fields[count] = p;
        if (tab) *tab++ = '\0';
        p = tab;
    }
    if (count != FIELDS)
        return LAP_FAIL(err, LAP_E_FORMAT, "%.400s:%d: %d fields between tabs, expected %d", name,
                        number, count, FIELDS);
    lap_tune_entry entry = {0};
    const char *wrong = read_fields(fields, &entry);
    if (wrong) return LAP_FAIL(err, LAP_E_FORMAT, "%.400s:%d: %s", name, number, wrong);
    const lap_tune_entry *before = find(out, &entry);
    if (before) /* entries stand in the order of their lines, which begin behind the version */
        return LAP_FAIL(err, LAP_E_FORMAT, "%.400s:%d: the key of line %d a second time", name,
                        number, (int)(before - out->entries) + 2);
    return append(out, &entry, err);
}

static lap_status read_version(const char *name, const char *line, lap_error *err) {
    char shown[64];
    if (strcmp(line, VERSION) == 0) return LAP_OK;
    snprintf(shown, sizeof shown, "%.60s", line);
    lap_text_clean(shown);
    return LAP_FAIL(err, LAP_E_FORMAT,
                    "%.400s:1: '%s': this program reads %s only; tune anew with another --store, "
                    "or move the file away",
                    name, shown, VERSION);
}

static lap_status parse_lines(const char *name, char *text, lap_tune_store *out, lap_error *err) {
    int number = 0;
    for (char *line = text; *line;) {
        char *end = strchr(line, '\n');
        number++;
        if (!end)
            return LAP_FAIL(err, LAP_E_FORMAT,
                            "%.400s:%d: the line has no end: the file was cut off", name, number);
        *end = '\0';
        if (number == 1)
            LAP_TRY(read_version(name, line, err));
        else
            LAP_TRY(read_line(name, line, number, out, err));
        line = end + 1;
    }
    if (number == 0)
        return LAP_FAIL(err, LAP_E_FORMAT, "%.400s:1: the file is empty, expected %s", name,
                        VERSION);
    return LAP_OK;
}

lap_status lap_tune_store_parse(const char *name, const char *text, size_t size,
                                lap_tune_store *out, lap_error *err) {
    *out = (lap_tune_store){0};
    if (memchr(text, '\0', size))
        return LAP_FAIL(err, LAP_E_FORMAT, "%.400s: a NUL byte; expected text", name);
    char *copy = malloc(size + 1);
    if (!copy) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store");
    memcpy(copy, text, size);
    copy[size] = '\0';
    lap_status status = parse_lines(name, copy, out, err);
    free(copy);
    if (status != LAP_OK) lap_tune_store_free(out);
    return status;
}

static lap_status io_error(const char *what, const char *path, lap_error *err) {
    return LAP_FAIL(err, LAP_E_IO, "%s the tune store %.400s: %s", what, path, strerror(errno));
}

lap_status lap_tune_store_load(const char *path, lap_tune_store *out, lap_error *err) {
    *out = (lap_tune_store){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 && errno == ENOENT && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        return LAP_FAIL(err, LAP_E_IO,
                        "the tune store %.400s is a symbolic link to a file that does not exist: "
                        "give another name, or remove it",
                        path);
    if (fd < 0) return errno == ENOENT ? LAP_OK : io_error("opening", path, err);
    lap_status status = LAP_OK;
    char *text = NULL;
    size_t have = 0;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > BYTES_MOST)
        status = LAP_FAIL(err, LAP_E_IO,
                          "the tune store %.400s: expected a regular file of at most %d bytes",
                          path, BYTES_MOST);
    else if (!(text = malloc((size_t)st.st_size + 1)))
        status = LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store");
    while (status == LAP_OK && have < (size_t)st.st_size) {
        ssize_t got = read(fd, text + have, (size_t)st.st_size - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) status = io_error("reading", path, err);
        if (got <= 0) break;
        have += (size_t)got;
    }
    close(fd);
    if (status == LAP_OK) status = lap_tune_store_parse(path, text, have, out, err);
    free(text);
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void add_entry(lap_text *text, const lap_tune_entry *e) {
    char slow[40], fast[40];
    lap_format_double(slow, sizeof slow, 6, e->default_s);
    lap_format_double(fast, sizeof fast, 6, e->tuned_s);
    lap_text_addf(text, "%s\t%s\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%s\t%016" PRIx64 "\t%s\t%s\t%s\n",
                  e->device, e->uuid, e->driver, e->toolchain, e->step, e->precision, e->batch,
                  e->kernel, e->source, e->params[0] ? e->params : "-", slow, fast);
}

static lap_status write_file(const char *path, const lap_text *text, lap_error *err) {
    lap_text part = {0};
    lap_text_addf(&part, "%s.%ld.part", path, (long)getpid());
    if (part.failed) {
        lap_text_free(&part);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store");
    }
    (void)unlink(part.data); /* of a process of this number that was killed */
    int fd = open(part.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    bool good = fd >= 0;
    for (size_t done = 0; good && done < text->length;) {
        ssize_t put = write(fd, text->data + done, text->length - done);
        if (put < 0 && errno == EINTR) continue;
        good = put > 0;
        if (good) done += (size_t)put;
    }
    good = good && fsync(fd) == 0;
    if (fd >= 0 && close(fd) != 0) good = false;
    good = good && rename(part.data, path) == 0;
    lap_status status = good ? LAP_OK : io_error("writing", path, err);
    if (!good) (void)unlink(part.data);
    lap_text_free(&part);
    return status;
}

static lap_status merge_locked(const char *path, const lap_tune_entry *entries, size_t count,
                               lap_error *err) {
    lap_tune_store store;
    LAP_TRY(lap_tune_store_load(path, &store, err));
    lap_status status = LAP_OK;
    for (size_t i = 0; i < count && status == LAP_OK; i++) {
        lap_tune_entry *old = find(&store, &entries[i]);
        if (old)
            *old = entries[i];
        else
            status = append(&store, &entries[i], err);
    }
    lap_text text = {0};
    lap_text_add(&text, VERSION "\n");
    for (size_t i = 0; i < store.count; i++)
        add_entry(&text, &store.entries[i]);
    if (status == LAP_OK && text.failed)
        status = LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store");
    if (status == LAP_OK) status = write_file(path, &text, err);
    lap_text_free(&text);
    lap_tune_store_free(&store);
    return status;
}

static void make_folders(char *path) {
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        (void)mkdir(path, 0755); /* what is missing shows when the file is opened */
        *p = '/';
    }
}

static lap_status merge_file(const char *path, const lap_tune_entry *entries, size_t count,
                             lap_error *err) {
    lap_text lock = {0};
    lap_text_addf(&lock, "%s.lock", path);
    if (lock.failed) {
        lap_text_free(&lock);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the tune store");
    }
    make_folders(lock.data);
    int fd = open(lock.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644), locked = -1;
    while (fd >= 0 && (locked = flock(fd, LOCK_EX)) != 0 && errno == EINTR)
        continue;
    lap_status status = fd >= 0 && locked == 0 ? merge_locked(path, entries, count, err)
                                               : io_error("locking", path, err);
    if (fd >= 0) close(fd); /* gives the lock back; the file stays for the next */
    lap_text_free(&lock);
    return status;
}

lap_status lap_tune_store_merge(const char *path, const lap_tune_entry *entries, size_t count,
                                lap_error *err) {
    /* Through a symbolic link the file it names is locked and replaced, not the link. */
    char *real = realpath(path, NULL);
    lap_status status = merge_file(real ? real : path, entries, count, err);
    free(real);
    return status;
}

/* ---- look-up -------------------------------------------------------------------------------- */

static void fill_key(lap_tune_entry *e, const lap_case *c) {
    const lap_device_info *d = c->device;
    snprintf(e->device, sizeof e->device, "%s", d->name[0] ? d->name : "-");
    snprintf(e->driver, sizeof e->driver, "%s", d->driver[0] ? d->driver : "-");
    snprintf(e->toolchain, sizeof e->toolchain, "%s", d->toolchain[0] ? d->toolchain : "-");
    snprintf(e->uuid, sizeof e->uuid, "-");
    for (size_t i = 0; d->has_uuid && i < sizeof d->uuid; i++)
        snprintf(e->uuid + 2 * i, sizeof e->uuid - 2 * i, "%02x", d->uuid[i]);
    lap_tune_signature(c, e->step, sizeof e->step);
    snprintf(e->precision, sizeof e->precision, "%s", lap_precision_name(c->precision));
    e->batch = lap_tune_bucket(c->n);
}

void lap_tune_entry_fill(lap_tune_entry *entry, const lap_case *c, const lap_candidate *candidate) {
    *entry = (lap_tune_entry){0};
    fill_key(entry, c);
    snprintf(entry->kernel, sizeof entry->kernel, "%s", candidate->row->id);
    entry->source = lap_tune_source_hash(candidate->row, c->device->language);
    lap_kernel_params_text(candidate->row, &candidate->params, entry->params, sizeof entry->params);
}

const lap_kernel_row *lap_tune_store_choose(void *context, lap_case *c) {
    const lap_tune_store *store = context;
    lap_tune_entry key = {0};
    fill_key(&key, c);
    const lap_tune_entry *e = find(store, &key);
    const lap_kernel_row *row = e ? lap_kernel_find(e->kernel) : NULL;
    if (!row || row->kind != c->op->kind || row->fusion != c->fusion) return NULL;
    if (e->source != lap_tune_source_hash(row, c->device->language)) return NULL;
    if (!lap_tune_params_parse(row, e->params, &c->params) || !row->valid(c)) return NULL;
    return row;
}
