/* Reading result documents. The files are other people's: nothing in them is believed before it was
 * checked, and no size in them decides how much memory is taken.
 *
 * Limits: 64 MiB of text, 32 levels, a million arrays and objects, four million values, two
 * million keys, ten thousand rows. NaN, infinities, duplicate keys, NULs and text that is not UTF-8
 * are errors, as is anything behind the document. */
#ifndef LAP_COMPARE_LOAD_H
#define LAP_COMPARE_LOAD_H

#include "compare/document.h"
#include "compare/source.h"

/* path "-" is standard input. Errors name the file and the place: LAP_E_IO when it cannot be read,
 * LAP_E_FORMAT when it is no result document, or one of another schema version. */
lap_status lap_document_load(const char *path, lap_document **out, lap_error *err);

/* The same, with everything that was read still in document->json. */
lap_status lap_document_load_whole(const char *path, lap_document **out, lap_error *err);

/* As lap_document_load, from memory; name is for messages and becomes path. */
lap_status lap_document_parse(const char *name, const char *text, size_t length, lap_document **out,
                              lap_error *err);

/* The same from JSON that was read already and becomes the document's, also on failure. whole: the
 * lists that comparing has no use for (samples, layers, kernels, ...) stay in the JSON. */
lap_status lap_document_take(const char *name, struct json_t *root, bool whole, lap_document **out,
                             lap_error *err);

void lap_document_free(lap_document *document); /* NULL is allowed */

#endif
