/* The steps of writing a file whole or not at all: under another name beside it, then put in its
 * place, so that a reader, a full disk or a crash never sees half of it. */
#ifndef LAP_BASE_WHOLE_H
#define LAP_BASE_WHOLE_H

#include <stdbool.h>
#include <stddef.h>

/* The folder part of path, "." if it has none; false where out is too small. */
bool lap_whole_folder(const char *path, char *out, size_t size);

/* A new file beside path, with the permissions of the one that it may replace; its name goes to
 * temporary. The descriptor, or -1 with errno. */
int lap_whole_open(const char *path, char *temporary, size_t size);

/* Put the finished and closed file in place, and the folder on disk. 0 or an errno, and the file is
 * still at temporary then; EEXIST when path is there and force does not replace it. */
int lap_whole_publish(const char *temporary, const char *path, bool force);

#endif
