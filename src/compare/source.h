/* Untrusted JSON files: their bytes, and their values within bounds. Which document it is, and
 * whether it is one, is for others to say (load.h, page/spans.h). */
#ifndef LAP_COMPARE_SOURCE_H
#define LAP_COMPARE_SOURCE_H

#include "base/text.h"

struct json_t;

enum { LAP_DOCUMENT_BYTES = 64 << 20, LAP_DOCUMENT_DEPTH = 32 };

/* Append everything that is in the file; path "-" is standard input. LAP_E_IO when it cannot be
 * read, LAP_E_FORMAT when it is empty or too long. */
lap_status lap_source_read(const char *path, lap_text *out, lap_error *err);

/* The bounds are those of load.h. name is for messages. LAP_E_FORMAT with line and column. */
lap_status lap_source_json(const char *name, const char *text, size_t length, struct json_t **out,
                           lap_error *err);

#endif
