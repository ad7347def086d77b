/* Files of built kernels (see build_cache.h). Knows keys and bytes, not what is in them. */
#include "device/build_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char MAGIC[16] = "warmlap-built/1";
static const char SUFFIX[] = ".built", PART[] = ".part";
enum { PART_STALE_S = 24 * 3600 };
static const uint64_t ENTRY_MOST = 64u << 20; /* larger than any program binary seen, by far */

struct lap_build_cache {
    char *folder; /* NULL: nothing is read or written */
    uint64_t max_bytes;
    unsigned parts; /* makes names of unfinished files distinct */
    bool stored;
    char problem[640];
};

/* What stands before key and bytes. Made and read on one machine: no byte order to agree on. */
typedef struct header {
    char magic[16];
    uint64_t key_bytes, bytes, hash; /* hash: of key and bytes */
} header;

static uint64_t fnv1a(uint64_t hash, const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001B3u;
    return hash;
}

static const uint64_t FNV_START = 0xCBF29CE484222325u, OTHER_START = 0x9AE16A3B2F90404Fu;

static void problem(lap_build_cache *cache, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void problem(lap_build_cache *cache, const char *format, ...) {
    if (cache->problem[0]) return; /* the first is what a reader can act on */
    va_list args;
    va_start(args, format);
    vsnprintf(cache->problem, sizeof cache->problem, format, args);
    va_end(args);
    lap_text_clean(cache->problem);
}

/* ---- the folder ----------------------------------------------------------------------------- */

static char *join(const char *folder, const char *name) {
    lap_text text = {0};
    lap_text_addf(&text, "%s/%s", folder, name);
    if (!text.failed) return text.data;
    lap_text_free(&text);
    return NULL;
}

/* Where the user's caches are; NULL with the problem set. A relative path is to be ignored, says
 * the XDG base directory specification. */
static char *default_folder(lap_build_cache *cache) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/') return join(xdg, "warmlap");
    if (home && home[0] == '/') return join(home, ".cache/warmlap");
    problem(cache, "built kernels are not kept: neither XDG_CACHE_HOME nor HOME is an absolute "
                   "path");
    return NULL;
}

static bool make_folders(char *path) {
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        bool made = mkdir(path, 0700) == 0 || errno == EEXIST || errno == EROFS;
        *p = '/';
        if (!made) return false;
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Only what nobody else can have written is ever loaded into a driver. */
static bool is_own(const struct stat *st) {
    return st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool folder_usable(lap_build_cache *cache, char *folder) {
    struct stat st;
    if (!make_folders(folder) || stat(folder, &st) != 0) {
        problem(cache, "built kernels are not kept: %.400s: %s", folder, strerror(errno));
        return false;
    }
    if (!S_ISDIR(st.st_mode) || !is_own(&st)) {
        problem(cache,
                "built kernels are not kept: %.400s must be a folder of this user that nobody else "
                "may write to (mode 0700)",
                folder);
        return false;
    }
    return true;
}

lap_status lap_build_cache_open(const char *folder, uint64_t max_bytes, lap_build_cache **out,
                                lap_error *err) {
    *out = NULL;
    lap_build_cache *cache = calloc(1, sizeof *cache);
    if (!cache) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the cache of built kernels");
    cache->max_bytes = max_bytes ? max_bytes : LAP_BUILD_CACHE_BYTES;
    char *path = folder ? strdup(folder) : default_folder(cache);
    if (path && folder_usable(cache, path)) {
        cache->folder = path;
    } else {
        problem(cache, "built kernels are not kept: no memory");
        free(path);
    }
    *out = cache;
    return LAP_OK;
}

const char *lap_build_cache_problem(const lap_build_cache *cache) {
    return cache ? cache->problem : "";
}

/* ---- keys ----------------------------------------------------------------------------------- */

void lap_build_cache_key(const lap_device_info *info, const char *fixed_options,
                         const lap_build *build, lap_text *key) {
    size_t length = strlen(build->source);
    lap_text_addf(key,
                  "program %s\nbackend %s %s\nplatform %s\ndevice %s\ncapability %d.%d\ndriver "
                  "%s\ntoolchain %s\nsource %s %s %zu %016" PRIx64 " %016" PRIx64 "\n",
                  LAP_VERSION, info->backend, fixed_options ? fixed_options : "", info->platform,
                  info->name, info->cc_major, info->cc_minor, info->driver, info->toolchain,
                  build->stem, build->entry, length, fnv1a(FNV_START, build->source, length),
                  fnv1a(OTHER_START, build->source, length));
    for (size_t i = 0; i < build->define_count; i++)
        lap_text_addf(key, "%s=%" PRId64 "\n", build->defines[i].name, build->defines[i].value);
}

static char *entry_path(const lap_build_cache *cache, const char *key) {
    char name[64];
    snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64 "%s",
             fnv1a(FNV_START, key, strlen(key)), fnv1a(OTHER_START, key, strlen(key)), SUFFIX);
    return join(cache->folder, name);
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_whole(int fd, void *to, size_t n) {
    unsigned char *p = to;
    while (n > 0) {
        ssize_t got = read(fd, p, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

/* The bytes behind key, or NULL: whatever is not exactly as it was written is no entry. */
static void *read_entry(int fd, const char *key, size_t *size) {
    struct stat st;
    header h;
    size_t key_bytes = strlen(key);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || !is_own(&st)) return NULL;
    if (!read_whole(fd, &h, sizeof h) || memcmp(h.magic, MAGIC, sizeof MAGIC) != 0) return NULL;
    if (h.key_bytes != key_bytes || h.bytes == 0 || h.bytes > ENTRY_MOST) return NULL;
    if ((uint64_t)st.st_size != sizeof h + h.key_bytes + h.bytes) return NULL;
    char *text = malloc(key_bytes + 1);
    void *bytes = malloc((size_t)h.bytes);
    bool good = text && bytes && read_whole(fd, text, key_bytes) &&
                memcmp(text, key, key_bytes) == 0 && read_whole(fd, bytes, (size_t)h.bytes) &&
                fnv1a(fnv1a(FNV_START, key, key_bytes), bytes, (size_t)h.bytes) == h.hash;
    free(text);
    if (good) {
        *size = (size_t)h.bytes;
        return bytes;
    }
    free(bytes);
    return NULL;
}

bool lap_build_cache_read(lap_build_cache *cache, const char *key, void **bytes, size_t *size) {
    *bytes = NULL;
    *size = 0;
    char *path = cache->folder ? entry_path(cache, key) : NULL;
    if (!path) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        *bytes = read_entry(fd, key, size);
        if (*bytes)
            (void)futimens(fd, NULL); /* used now: the pruning goes by it */
        else
            (void)unlink(path);
        close(fd);
    } else if (errno == ELOOP) {
        (void)unlink(path); /* a symbolic link is none of ours */
    }
    free(path);
    return *bytes != NULL;
}

void lap_build_cache_drop(lap_build_cache *cache, const char *key) {
    char *path = cache->folder ? entry_path(cache, key) : NULL;
    if (path) (void)unlink(path);
    free(path);
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool write_whole(int fd, const void *from, size_t n) {
    const unsigned char *p = from;
    while (n > 0) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

static bool write_entry(const char *path, const char *key, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return false;
    header h = {.key_bytes = strlen(key), .bytes = size};
    memcpy(h.magic, MAGIC, sizeof MAGIC);
    h.hash = fnv1a(fnv1a(FNV_START, key, (size_t)h.key_bytes), bytes, size);
    bool good = write_whole(fd, &h, sizeof h) && write_whole(fd, key, (size_t)h.key_bytes) &&
                write_whole(fd, bytes, size);
    if (close(fd) != 0) good = false;
    return good;
}

void lap_build_cache_write(lap_build_cache *cache, const char *key, const void *bytes,
                           size_t size) {
    if (!cache->folder || size == 0 || size > ENTRY_MOST) return;
    char part_name[64];
    snprintf(part_name, sizeof part_name, "%ld-%u%s", (long)getpid(), cache->parts++, PART);
    char *path = entry_path(cache, key), *part = join(cache->folder, part_name);
    if (path && part) {
        if (write_entry(part, key, bytes, size) && rename(part, path) == 0) {
            cache->stored = true;
        } else {
            problem(cache, "built kernels are not kept: writing to %.400s: %s", cache->folder,
                    strerror(errno));
            (void)unlink(part);
        }
    }
    free(path);
    free(part);
}

/* ---- pruning -------------------------------------------------------------------------------- */

typedef struct entry {
    char name[64];
    uint64_t bytes;
    struct timespec used;
} entry;

static bool ends_with(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static int by_use(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec) return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec) return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Entries of the folder; unfinished files that some killed process left are removed on the way. */
static entry *list_entries(DIR *dir, size_t *count, uint64_t *total) {
    entry *entries = NULL;
    size_t capacity = 0;
    for (struct dirent *d; (d = readdir(dir));) {
        struct stat st;
        bool built = ends_with(d->d_name, SUFFIX), part = ends_with(d->d_name, PART);
        if ((!built && !part) || strlen(d->d_name) >= sizeof entries->name) continue;
        if (fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (part) {
            if (st.st_mtime < time(NULL) - PART_STALE_S) (void)unlinkat(dirfd(dir), d->d_name, 0);
            continue;
        }
        if (*count == capacity) {
            capacity = capacity ? 2 * capacity : 256;
            entry *more = realloc(entries, capacity * sizeof *more);
            if (!more) break;
            entries = more;
        }
        entry *e = &entries[(*count)++];
        *e = (entry){.bytes = (uint64_t)st.st_size, .used = st.st_mtim};
        memcpy(e->name, d->d_name, strlen(d->d_name) + 1);
        *total += e->bytes;
    }
    return entries;
}

static void prune(const lap_build_cache *cache) {
    DIR *dir = opendir(cache->folder);
    if (!dir) return;
    size_t count = 0;
    uint64_t total = 0;
    entry *entries = list_entries(dir, &count, &total);
    if (total > cache->max_bytes) {
        qsort(entries, count, sizeof *entries, by_use);
        for (size_t i = 0; i < count && total > cache->max_bytes; i++)
            if (unlinkat(dirfd(dir), entries[i].name, 0) == 0) total -= entries[i].bytes;
    }
    free(entries);
    closedir(dir);
}

void lap_build_cache_close(lap_build_cache *cache) {
    if (!cache) return;
    if (cache->folder && cache->stored) prune(cache);
    free(cache->folder);
    free(cache);
}
