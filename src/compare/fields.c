/* Members of JSON objects, checked (see fields.h). Knows types, not what a member means. */
#include "compare/fields.h"

#include <math.h>

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
    case JSON_REAL:
        return json_number_value(value) < 0 ? "a negative number" : "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        return "null";
    }
    return "unknown";
}

lap_status lap_field_wrong(const lap_fields *f, const char *key, const json_t *value,
                           const char *expected) {
    return LAP_FAIL(f->err, LAP_E_FORMAT, "%s: %s%s%s is %s; expected %s", f->path, f->place,
                    f->place[0] ? "." : "", key, type_name(value), expected);
}

/* NULL for what is missing or null. */
static json_t *member(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NULL : value;
}

lap_status lap_field_text(const lap_fields *f, const json_t *object, const char *key,
                          const char **out) {
    json_t *value = member(object, key);
    *out = "";
    if (!value) return LAP_OK;
    if (!json_is_string(value)) return lap_field_wrong(f, key, value, "a string or null");
    *out = json_string_value(value);
    return LAP_OK;
}

lap_status lap_field_real(const lap_fields *f, const json_t *object, const char *key,
                          lap_optional *out) {
    json_t *value = member(object, key);
    *out = lap_none();
    if (!value) return LAP_OK;
    double number = json_number_value(value);
    if (!json_is_number(value) || !(number >= 0) || !isfinite(number))
        return lap_field_wrong(f, key, value, "a number from 0 up, or null");
    *out = lap_some(number);
    return LAP_OK;
}

lap_status lap_field_count(const lap_fields *f, const json_t *object, const char *key,
                           uint64_t *out) {
    json_t *value = member(object, key);
    *out = 0;
    if (!value) return LAP_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return lap_field_wrong(f, key, value, "a whole number from 0 up, or null");
    *out = (uint64_t)json_integer_value(value);
    return LAP_OK;
}

lap_status lap_field_object(const lap_fields *f, json_t *object, const char *key, json_t **out) {
    *out = member(object, key);
    if (*out && !json_is_object(*out)) return lap_field_wrong(f, key, *out, "an object or null");
    return LAP_OK;
}

lap_status lap_field_array(const lap_fields *f, json_t *object, const char *key, json_t **out) {
    *out = member(object, key);
    if (*out && !json_is_array(*out)) return lap_field_wrong(f, key, *out, "an array or null");
    return LAP_OK;
}
