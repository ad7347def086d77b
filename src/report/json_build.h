/* Building JSON values, shared by all that writes documents. Static inline, so that short names
 * stay private to the files that include this; what is not is src/report's own. */
#ifndef LAP_REPORT_JSON_BUILD_H
#define LAP_REPORT_JSON_BUILD_H

#include "base/text.h"
#include "report/report.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* json_object_set_new and its like accept NULL as a value by failing; a failure anywhere is
 * remembered here, so that no half document is ever written. */
typedef struct builder {
    bool failed;
} builder;

static inline void set(builder *b, json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) b->failed = true;
}

static inline void push(builder *b, json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0) b->failed = true;
}

/* Text that is not valid UTF-8 is not lost, only its bad bytes are. */
static inline json_t *text_value(const char *s) {
    json_t *value = json_string(s);
    if (value) return value;
    size_t n = strlen(s) + 1;
    char *copy = malloc(n);
    if (!copy) return NULL;
    memcpy(copy, s, n);
    value = json_string(lap_text_clean(copy));
    free(copy);
    return value;
}

static inline void set_text(builder *b, json_t *object, const char *key, const char *s) {
    set(b, object, key, s ? text_value(s) : json_null());
}

/* Empty means unknown. */
static inline void set_known(builder *b, json_t *object, const char *key, const char *s) {
    set_text(b, object, key, s[0] ? s : NULL);
}

static inline json_t *real_value(lap_optional value) {
    lap_optional finite = value.has ? lap_some(value.value) : value;
    return finite.has ? json_real(finite.value) : json_null();
}

static inline void set_real(builder *b, json_t *object, const char *key, lap_optional value) {
    set(b, object, key, real_value(value));
}

static inline json_t *count_value(uint64_t value) {
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static inline void set_count(builder *b, json_t *object, const char *key, uint64_t value) {
    set(b, object, key, count_value(value));
}

/* Zero means unknown. */
static inline void set_size(builder *b, json_t *object, const char *key, uint64_t value) {
    set(b, object, key, value ? count_value(value) : json_null());
}

static inline void set_flag(builder *b, json_t *object, const char *key, bool value) {
    set(b, object, key, json_boolean(value));
}

/* json.c: a device; a document with everything but its rows. */
json_t *lap_json_device(builder *b, const lap_device_info *device);
json_t *lap_json_head(builder *b, const lap_report *report, const char *schema);
/* The text of a document, which is taken over; nothing is added when anything failed in it. */
lap_status lap_json_finish(builder *b, json_t *document, lap_text *out, lap_error *err);

/* json_extras.c: what a row has besides latency, throughput and layers. */
void lap_json_extras(builder *b, json_t *row_object, const lap_row *row);

/* json_sets.c: a row's part in a set; all sets. */
void lap_json_concurrent(builder *b, json_t *row_object, const lap_row *row);
json_t *lap_json_sets(builder *b, const lap_set *sets, size_t count);

#endif
