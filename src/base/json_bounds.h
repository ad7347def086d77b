/* What a JSON text may hold, found out before a parser takes memory and stack for it. */
#ifndef LAP_BASE_JSON_BOUNDS_H
#define LAP_BASE_JSON_BOUNDS_H

#include "base/status.h"

typedef struct lap_json_bounds {
    size_t depth;      /* levels of lists and objects */
    size_t containers; /* lists and objects */
    size_t values;     /* that follow another one in a list or object */
    size_t members;    /* keys of objects */
} lap_json_bounds;

/* LAP_E_FORMAT when text has more than most; name is for the message. Texts in quotes are skipped;
 * whether the rest is JSON at all is the parser's business. */
lap_status lap_json_within(const char *name, const char *text, size_t length,
                           const lap_json_bounds *most, lap_error *err);

#endif
