/* Private to src/compare: typed access to the members of a JSON object, with the place in the
 * message. A member that is missing or null is absent; one of another type is LAP_E_FORMAT. */
#ifndef LAP_COMPARE_FIELDS_H
#define LAP_COMPARE_FIELDS_H

#include "base/status.h"
#include "measure/stats.h"
#include <jansson.h>
#include <stdint.h>

typedef struct lap_fields {
    const char *path; /* of the file */
    char place[64];   /* of the object: "rows[3].latency"; "" for the document */
    lap_error *err;
} lap_fields;

/* "FILE: rows[3].latency.mean_s is a string; expected a number or null" */
lap_status lap_field_wrong(const lap_fields *f, const char *key, const json_t *value,
                           const char *expected);

lap_status lap_field_text(const lap_fields *f, const json_t *object, const char *key,
                          const char **out); /* "" if absent */
/* Zero or above: everything that these documents hold is. */
lap_status lap_field_real(const lap_fields *f, const json_t *object, const char *key,
                          lap_optional *out);
lap_status lap_field_count(const lap_fields *f, const json_t *object, const char *key,
                           uint64_t *out); /* a whole number; 0 if absent */
lap_status lap_field_object(const lap_fields *f, json_t *object, const char *key,
                            json_t **out); /* NULL if absent */
lap_status lap_field_array(const lap_fields *f, json_t *object, const char *key, json_t **out);

#endif
