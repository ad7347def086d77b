/* Files written whole (see whole.h). */
#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool lap_whole_folder(const char *path, char *out, size_t size) {
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (slash == path ? 1 : (size_t)(slash - path)) : 1;
    if (n >= size) return false;
    memcpy(out, slash ? path : ".", n);
    out[n] = '\0';
    return true;
}

int lap_whole_open(const char *path, char *temporary, size_t size) {
    struct stat old;
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        int n = snprintf(temporary, size, "%s.%ld-%u.tmp", path, (long)getpid(), attempt);
        if (n < 0 || (size_t)n >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd >= 0 && stat(path, &old) == 0 && S_ISREG(old.st_mode))
            (void)fchmod(fd, old.st_mode & 0777); /* not every file system can */
        return fd;
    }
    return -1;
}

/* 0 or an errno. */
static int put_in_place(const char *temporary, const char *path, bool force) {
    if (force) return rename(temporary, path) == 0 ? 0 : errno;
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return 0;
    }
    if (errno == EEXIST) return EEXIST;
    /* File systems without hard links: the check and the rename are two steps there. */
    if (access(path, F_OK) == 0) return EEXIST;
    return rename(temporary, path) == 0 ? 0 : errno;
}

/* The name is on disk only when its folder is; not every file system can, and then it is no loss.
 */
static void sync_folder(const char *path) {
    char folder[4096];
    if (!lap_whole_folder(path, folder, sizeof folder)) return;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

int lap_whole_publish(const char *temporary, const char *path, bool force) {
    int code = put_in_place(temporary, path, force);
    if (code == 0) sync_folder(path);
    return code;
}
