/* Writing documents: whole or not at all.
 *
 * A file is written under a temporary name beside it, flushed to disk and renamed, so that a
 * reader, a full disk or a crash never sees half of it.
 */
#ifndef LAP_REPORT_OUTPUT_H
#define LAP_REPORT_OUTPUT_H

#include "base/status.h"
#include <stdbool.h>

/* Can path be written later? For checking before a long run: "-" always; LAP_E_IO when the file
 * exists and force is not set, path is a folder, or no file can be made beside it, which is tried.
 */
lap_status lap_output_check(const char *path, bool force, lap_error *err);

/* Write length bytes. path "-" is standard output. Without force an existing file is refused, also
 * one that appeared in the meantime. A pipe or character device (/dev/null) is written in place.
 * Error: LAP_E_IO. */
lap_status lap_output_write(const char *path, const char *data, size_t length, bool force,
                            lap_error *err);

/* The same for what took long to make: a document that cannot be written is kept in a new file
 * beside path, or in TMPDIR or /tmp. Still an error, LAP_E_IO, whose message says where it is.
 * Standard output has no such file. */
lap_status lap_output_save(const char *path, const char *data, size_t length, bool force,
                           lap_error *err);

#endif
