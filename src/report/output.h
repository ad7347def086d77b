/* Writing documents: whole or not at all.
 *
 * A file is written under a temporary name beside it, flushed to disk and renamed, so that a
 * reader, a full disk or a crash never sees half of it.
 */
#ifndef LAP_REPORT_OUTPUT_H
#define LAP_REPORT_OUTPUT_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

/* Can path be written later? For checking before a long run: "-" always; LAP_E_IO when the file
 * exists and force is not set, path is a folder or a link to nothing, or no file can be made beside
 * it, which is tried. */
lap_status lap_output_check(const char *path, bool force, lap_error *err);

/* Do both names mean one place: the same spelling, the same file, or, where there is none yet, the
 * same name in the same folder? */
bool lap_output_same(const char *a, const char *b);
/* LAP_E_IO when path is the file that is read as input, by whatever name and link; for before the
 * work, and whatever force says. what is the input in words: "the baseline". Standard streams and
 * names of no file pass. */
lap_status lap_output_apart(const char *path, const char *input, const char *what, lap_error *err);

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

/* A document that is written again and again, each time whole: where it is by now. Zero-initialise.
 */
typedef struct lap_output_slot {
    bool written;
    uint64_t device, file, size; /* what was written last, to know whether it is still there, */
    int64_t seconds, nanoseconds;
    char path[4096];   /* and where: the path given, or where it had to be kept instead */
    lap_error trouble; /* why it is elsewhere; LAP_OK when it is not */
} lap_output_slot;

/* As lap_output_save. What the slot wrote is replaced; a file that somebody else put there
 * meanwhile, or changed, is not touched, and the document kept elsewhere from then on (LAP_E_IO
 * each time, and the message says where). Regular files only: lap_output_again says whether path is
 * one. */
lap_status lap_output_update(lap_output_slot *slot, const char *path, const char *data,
                             size_t length, bool force, lap_error *err);
/* Is path something that can be written more than once (no stream)? */
bool lap_output_again(const char *path);

#endif
