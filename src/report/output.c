/* Writing documents whole or not at all (see output.h). */
#include "report/output.h"
#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static lap_status io_error(lap_error *err, const char *what, const char *path, int code) {
    return LAP_FAIL(err, LAP_E_IO, "%s '%s': %s", what, path, strerror(code));
}

/* What stands at path. */
typedef enum kind { NOTHING, REGULAR, STREAM, OTHER } kind;

/* Writing to a pipe, a socket or a character device overwrites nothing. */
static kind kind_of(const char *path, mode_t *mode) {
    struct stat info;
    *mode = 0;
    if (stat(path, &info) != 0) return errno == ENOENT ? NOTHING : OTHER;
    *mode = info.st_mode;
    if (S_ISREG(info.st_mode)) return REGULAR;
    return S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode) ? STREAM : OTHER;
}

static lap_status refuse(const char *path, lap_error *err) {
    return LAP_FAIL(err, LAP_E_IO,
                    "output '%s' exists already: give another name, remove it, or use --force",
                    path);
}

/* A link to nothing: writing through it would make a file elsewhere, which nobody asked for. */
static bool dangles(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

static lap_status check_place(const char *path, bool force, lap_error *err) {
    if (!path[0])
        return LAP_FAIL(err, LAP_E_IO, "output '': a file name, or - for standard output");
    mode_t mode;
    kind k = kind_of(path, &mode);
    if (S_ISDIR(mode)) return LAP_FAIL(err, LAP_E_IO, "output '%s' is a folder, not a file", path);
    if (k == OTHER)
        return mode ? LAP_FAIL(err, LAP_E_IO, "output '%s' is no file and no stream", path)
                    : io_error(err, "output", path, errno);
    if (k == STREAM)
        return access(path, W_OK) == 0 ? LAP_OK : io_error(err, "cannot write", path, errno);
    if (k == NOTHING && dangles(path))
        return LAP_FAIL(
            err, LAP_E_IO,
            "output '%s' is a symbolic link to a file that does not exist: give another "
            "name, or remove it",
            path);
    if (k == REGULAR && !force) return refuse(path, err);
    char folder[PATH_SIZE];
    if (!lap_whole_folder(path, folder, sizeof folder))
        return io_error(err, "output", path, ENAMETOOLONG);
    struct stat info;
    if (stat(folder, &info) != 0) return io_error(err, "the output's folder", folder, errno);
    if (!S_ISDIR(info.st_mode)) return io_error(err, "the output's folder", folder, ENOTDIR);
    if (access(folder, W_OK | X_OK) != 0)
        return io_error(err, "cannot write into the output's folder", folder, errno);
    return LAP_OK;
}

/* ---- writing -------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t length) {
    while (length > 0) {
        ssize_t n = write(fd, data, length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n < 0 ? errno : EIO;
        data += n;
        length -= (size_t)n;
    }
    return 0;
}

static lap_status write_stream(const char *path, const char *data, size_t length, lap_error *err) {
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return io_error(err, "cannot open", path, errno);
    int code = write_all(fd, data, length);
    if (close(fd) != 0 && code == 0) code = errno;
    return code ? io_error(err, "cannot write", path, code) : LAP_OK;
}

static lap_status write_stdout(const char *data, size_t length, lap_error *err) {
    /* Through stdio, so that it keeps its order with what was printed before. */
    size_t n = fwrite(data, 1, length, stdout);
    if (n == length && fflush(stdout) == 0) return LAP_OK;
    return io_error(err, "cannot write", "standard output", errno ? errno : EIO);
}

/* Some folders look writable and are not (/proc, a full disk): the only proof is to do it. */
static lap_status try_file(const char *path, lap_error *err) {
    char temporary[PATH_SIZE];
    int fd = lap_whole_open(path, temporary, sizeof temporary);
    if (fd < 0) return io_error(err, "cannot create a file beside", path, errno);
    close(fd);
    unlink(temporary);
    return LAP_OK;
}

lap_status lap_output_check(const char *path, bool force, lap_error *err) {
    if (strcmp(path, "-") == 0) return LAP_OK;
    LAP_TRY(check_place(path, force, err));
    mode_t mode;
    kind k = kind_of(path, &mode);
    if (k == STREAM) return LAP_OK;
    char *real = k == REGULAR ? realpath(path, NULL) : NULL;
    lap_status status = try_file(real ? real : path, err);
    free(real);
    return status;
}

static lap_status write_file(const char *path, const char *data, size_t length, bool force,
                             lap_error *err) {
    char temporary[PATH_SIZE];
    int fd = lap_whole_open(path, temporary, sizeof temporary);
    if (fd < 0) return io_error(err, "cannot create a file beside", path, errno);
    int code = write_all(fd, data, length);
    if (code == 0 && fsync(fd) != 0 && errno != EINVAL) code = errno;
    if (close(fd) != 0 && code == 0) code = errno;
    if (code == 0) code = lap_whole_publish(temporary, path, force);
    if (code == 0) return LAP_OK;
    unlink(temporary);
    return code == EEXIST ? refuse(path, err) : io_error(err, "cannot write", path, code);
}

lap_status lap_output_write(const char *path, const char *data, size_t length, bool force,
                            lap_error *err) {
    if (strcmp(path, "-") == 0) return write_stdout(data, length, err);
    LAP_TRY(check_place(path, force, err));
    mode_t mode;
    kind k = kind_of(path, &mode);
    if (k == STREAM) return write_stream(path, data, length, err);
    /* Through a symbolic link the file it names is replaced, not the link. */
    char *real = k == REGULAR ? realpath(path, NULL) : NULL;
    lap_status status = write_file(real ? real : path, data, length, force, err);
    free(real);
    return status;
}

/* ---- one file by two names ------------------------------------------------------------------ */

/* The folder, resolved, and the name in it; NULL when there is no such folder. */
static char *place_of(const char *path) {
    char folder[PATH_SIZE];
    const char *slash = strrchr(path, '/');
    if (!lap_whole_folder(path, folder, sizeof folder)) return NULL;
    char *real = realpath(folder, NULL);
    if (!real) return NULL;
    const char *name = slash ? slash + 1 : path;
    size_t size = strlen(real) + strlen(name) + 2;
    char *place = malloc(size);
    if (place) snprintf(place, size, "%s/%s", real, name);
    free(real);
    return place;
}

bool lap_output_same(const char *a, const char *b) {
    struct stat x, y;
    if (strcmp(a, b) == 0) return true;
    if (strcmp(a, "-") == 0 || strcmp(b, "-") == 0) return false;
    bool there = stat(a, &x) == 0, other = stat(b, &y) == 0;
    if (there && other) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    if (there || other) return false;
    char *p = place_of(a), *q = place_of(b);
    bool same = p && q && strcmp(p, q) == 0;
    free(p);
    free(q);
    return same;
}

lap_status lap_output_apart(const char *path, const char *input, const char *what, lap_error *err) {
    struct stat info;
    if (strcmp(path, "-") == 0 || strcmp(input, "-") == 0) return LAP_OK;
    /* Streams are not destroyed by writing, and what does not exist is not read. */
    if (stat(input, &info) != 0 || !S_ISREG(info.st_mode) || !lap_output_same(path, input))
        return LAP_OK;
    return LAP_FAIL(err, LAP_E_IO,
                    "output '%.400s' is %s%s%.400s%s, which the command reads: give another name "
                    "(--force does not overwrite what is read)",
                    path, what, strcmp(path, input) ? " '" : "", strcmp(path, input) ? input : "",
                    strcmp(path, input) ? "'" : "");
}

/* ---- what must not be lost ------------------------------------------------------------------ */

/* A new file in folder, named after path; its own path in kept. */
static bool keep_in(const char *folder, const char *path, const char *data, size_t length,
                    char *kept, size_t size) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        int n = snprintf(kept, size, "%s/%s.kept-%ld-%u", folder, *name ? name : "warmlap",
                         (long)getpid(), attempt);
        if (n < 0 || (size_t)n >= size) return false;
        lap_error detail = {0};
        if (access(kept, F_OK) == 0) continue;
        return write_file(kept, data, length, false, &detail) == LAP_OK;
    }
    return false;
}

/* Somewhere else than at path; where is in kept. */
static bool keep(const char *path, const char *data, size_t length, char kept[PATH_SIZE]) {
    mode_t mode;
    char beside[PATH_SIZE];
    const char *temporary = getenv("TMPDIR");
    if (kind_of(path, &mode) != STREAM && lap_whole_folder(path, beside, sizeof beside) &&
        keep_in(beside, path, data, length, kept, PATH_SIZE))
        return true;
    if (temporary && *temporary && keep_in(temporary, path, data, length, kept, PATH_SIZE))
        return true;
    return keep_in("/tmp", path, data, length, kept, PATH_SIZE);
}

static lap_status is_elsewhere(const lap_error *why, const char *kept, lap_error *err) {
    return LAP_FAIL(err, LAP_E_IO, "%.700s; the document is in '%.700s' instead", why->message,
                    kept);
}

lap_status lap_output_save(const char *path, const char *data, size_t length, bool force,
                           lap_error *err) {
    lap_error detail = {0};
    lap_status status = lap_output_write(path, data, length, force, &detail);
    if (status == LAP_OK) return status;
    char kept[PATH_SIZE];
    if (strcmp(path, "-") != 0 && keep(path, data, length, kept))
        return is_elsewhere(&detail, kept, err);
    if (err) *err = detail;
    return status;
}

/* ---- documents that grow -------------------------------------------------------------------- */

bool lap_output_again(const char *path) {
    mode_t mode;
    if (strcmp(path, "-") == 0) return false;
    kind k = kind_of(path, &mode);
    return k == NOTHING || k == REGULAR;
}

static void remember(lap_output_slot *slot, const char *path) {
    struct stat info;
    slot->written = stat(path, &info) == 0;
    if (!slot->written) return;
    slot->device = info.st_dev;
    slot->file = info.st_ino;
    slot->size = (uint64_t)info.st_size;
    slot->seconds = info.st_mtim.tv_sec;
    slot->nanoseconds = info.st_mtim.tv_nsec;
    snprintf(slot->path, sizeof slot->path, "%s", path);
}

/* Nobody else has touched what was written, or it is gone. */
static bool still_ours(const lap_output_slot *slot) {
    lap_output_slot now = {0};
    remember(&now, slot->path);
    if (!now.written) return errno == ENOENT;
    return now.device == slot->device && now.file == slot->file && now.size == slot->size &&
           now.seconds == slot->seconds && now.nanoseconds == slot->nanoseconds;
}

static lap_status write_slot(lap_output_slot *slot, const char *path, const char *data,
                             size_t length, bool force, lap_error *err) {
    if (!slot->written) return lap_output_write(path, data, length, force, err);
    if (still_ours(slot)) return lap_output_write(slot->path, data, length, true, err);
    return LAP_FAIL(err, LAP_E_IO, "'%.700s' was changed by somebody else meanwhile", slot->path);
}

lap_status lap_output_update(lap_output_slot *slot, const char *path, const char *data,
                             size_t length, bool force, lap_error *err) {
    lap_error detail = {0};
    lap_status status = write_slot(slot, path, data, length, force, &detail);
    if (status == LAP_OK) {
        char where[PATH_SIZE];
        snprintf(where, sizeof where, "%s", slot->written ? slot->path : path);
        remember(slot, where);
    } else {
        char kept[PATH_SIZE];
        if (!keep(path, data, length, kept)) {
            /* What was written before is still there, and is tried again with the next row. */
            if (err) *err = detail;
            return status;
        }
        if (slot->trouble.status == LAP_OK) slot->trouble = detail;
        remember(slot, kept);
    }
    if (slot->trouble.status == LAP_OK) return LAP_OK;
    return is_elsewhere(&slot->trouble, slot->path, err);
}
