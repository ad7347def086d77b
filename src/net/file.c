/* Bounded file access. Uses read, not mmap: a file that shrinks while it is read is then an error
 * instead of a SIGBUS. */
#include "net/file.h"
#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static lap_status errno_fail(lap_error *err, const char *path) {
    int code = errno;
    char text[128];
    /* The GNU strerror_r returns the text; the file names _GNU_SOURCE for the whole project. */
    return LAP_FAIL(err, LAP_E_IO, "%s: %s", path, strerror_r(code, text, sizeof text));
}

lap_status lap_file_open(const char *path, int *fd, uint64_t *size, lap_error *err) {
    *fd = -1;
    *size = 0;
    /* O_NONBLOCK: opening a pipe must not wait for a writer. */
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0) return errno_fail(err, path);
    struct stat st;
    if (fstat(opened, &st) != 0) {
        lap_status status = errno_fail(err, path);
        close(opened);
        return status;
    }
    lap_status status = LAP_OK;
    if (!S_ISREG(st.st_mode)) {
        status = LAP_FAIL(err, LAP_E_IO, "%s: is %s: expected a regular file", path,
                          S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
    } else if (st.st_size == 0) {
        status = LAP_FAIL(err, LAP_E_FORMAT, "%s: the file is empty", path);
    }
    if (status != LAP_OK) {
        close(opened);
        return status;
    }
    *fd = opened;
    *size = (uint64_t)st.st_size;
    return LAP_OK;
}

lap_status lap_file_read(int fd, const char *path, uint64_t offset, void *out, size_t n,
                         lap_error *err) {
    unsigned char *p = out;
    while (n > 0) {
        ssize_t got = pread(fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno_fail(err, path);
        if (got == 0)
            return LAP_FAIL(err, LAP_E_IO,
                            "%s: ends at byte %llu: it became shorter while being "
                            "read",
                            path, (unsigned long long)offset);
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return LAP_OK;
}

static lap_status exists(lap_error *err, const char *path) {
    return LAP_FAIL(err, LAP_E_IO, "%s: exists already: use --force to overwrite it", path);
}

lap_status lap_file_create(const char *path, bool force, lap_new_file *out, lap_error *err) {
    *out = (lap_new_file){.path = path, .force = force};
    struct stat old;
    bool there = stat(path, &old) == 0;
    if (there && !force) return exists(err, path);
    bool whole = !there || S_ISREG(old.st_mode);
    /* Through a symbolic link the file it names is replaced, not the link. */
    out->target = there && whole ? realpath(path, NULL) : strdup(path);
    if (!out->target) return errno_fail(err, path);
    int fd = whole ? lap_whole_open(out->target, out->temporary, sizeof out->temporary)
                   : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (!whole) out->temporary[0] = '\0';
    if (fd >= 0) out->stream = fdopen(fd, "wb");
    if (out->stream) return LAP_OK;
    lap_status status = errno_fail(err, path);
    if (fd >= 0) close(fd);
    if (fd >= 0 && out->temporary[0]) unlink(out->temporary);
    free(out->target);
    return status;
}

lap_status lap_file_write(lap_new_file *file, const void *data, size_t n, lap_error *err) {
    if (fwrite(data, 1, n, file->stream) == n) return LAP_OK;
    return errno_fail(err, file->path);
}

lap_status lap_file_finish(lap_new_file *file, lap_status status, lap_error *err) {
    bool whole = file->temporary[0] != '\0';
    if (status == LAP_OK && fflush(file->stream) != 0) status = errno_fail(err, file->path);
    if (status == LAP_OK && whole && fsync(fileno(file->stream)) != 0 && errno != EINVAL)
        status = errno_fail(err, file->path);
    if (fclose(file->stream) != 0 && status == LAP_OK) status = errno_fail(err, file->path);
    if (status == LAP_OK && whole) {
        int code = lap_whole_publish(file->temporary, file->target, file->force);
        errno = code;
        if (code) status = code == EEXIST ? exists(err, file->path) : errno_fail(err, file->path);
    }
    if (status != LAP_OK && whole) unlink(file->temporary);
    free(file->target);
    *file = (lap_new_file){0};
    return status;
}

uint16_t lap_load_u16(const unsigned char *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t lap_load_u32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint64_t lap_load_u64(const unsigned char *p) {
    return (uint64_t)lap_load_u32(p) | (uint64_t)lap_load_u32(p + 4) << 32;
}

float lap_load_f32(const unsigned char *p) {
    uint32_t bits = lap_load_u32(p);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void lap_store_u64(unsigned char *p, uint64_t value) {
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(value >> 8 * i);
}

void lap_store_f32(unsigned char *p, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(bits >> 8 * i);
}
