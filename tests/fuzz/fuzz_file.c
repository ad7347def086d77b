/* What the targets share: an input as a file in memory, and broken promises. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void fuzz_broken(const char *condition, const char *file, int line) {
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

const char *fuzz_file(const uint8_t *data, size_t size) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    FUZZ_HOLDS(fd >= 0 && ftruncate(fd, 0) == 0);
    FUZZ_HOLDS(size == 0 || pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}
