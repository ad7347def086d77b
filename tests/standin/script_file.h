/* For tests: writes a script (script.h) and makes it the one that holds. */
#ifndef LAP_TESTS_STANDIN_SCRIPT_FILE_H
#define LAP_TESTS_STANDIN_SCRIPT_FILE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* None any more; the file that there may be is removed. */
static inline void script_none(void) {
    static const char own[] = LAP_TEST_TMP "/standin-";
    const char *path = getenv("LAP_STANDIN_SCRIPT");
    if (path && strncmp(path, own, sizeof own - 1) == 0) unlink(path);
    unsetenv("LAP_STANDIN_SCRIPT");
}

/* Each script is a file of its own, since its name is what tells a stand-in to read again. */
static inline void script_file(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void script_file(const char *format, ...) {
    static int number;
    char path[512];
    script_none();
    snprintf(path, sizeof path, LAP_TEST_TMP "/standin-%d-%d.txt", (int)getpid(), ++number);
    FILE *file = fopen(path, "w");
    if (!file) abort();
    va_list args;
    va_start(args, format);
    vfprintf(file, format, args);
    va_end(args);
    if (fclose(file) != 0) abort();
    setenv("LAP_STANDIN_SCRIPT", path, 1);
}

#endif
