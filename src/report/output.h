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
 * exists and force is not set, the folder does not exist or is not writable, or path is a folder.
 */
lap_status lap_output_check(const char *path, bool force, lap_error *err);

/* Write length bytes. path "-" is standard output. Without force an existing file is refused, also
 * one that appeared in the meantime. A pipe or character device (/dev/null) is written in place.
 * Error: LAP_E_IO. */
lap_status lap_output_write(const char *path, const char *data, size_t length, bool force,
                            lap_error *err);

#endif
