/* One walk over a JSON text that counts (see json_bounds.h). */
#include "base/json_bounds.h"

#include <stdbool.h>

static lap_status too_many(const char *name, const lap_json_bounds *most, lap_error *err) {
    return LAP_FAIL(err, LAP_E_FORMAT,
                    "%s: more than %zu lists and objects, %zu values or %zu keys; split it", name,
                    most->containers, most->values, most->members);
}

lap_status lap_json_within(const char *name, const char *text, size_t length,
                           const lap_json_bounds *most, lap_error *err) {
    lap_json_bounds seen = {0};
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
            continue;
        }
        quoted = c == '"';
        seen.values += c == ',';
        seen.members += c == ':';
        if (c == '{' || c == '[') {
            seen.containers++;
            seen.depth++;
        } else if ((c == '}' || c == ']') && seen.depth > 0) {
            seen.depth--;
        }
        if (seen.depth > most->depth)
            return LAP_FAIL(err, LAP_E_FORMAT, "%s: nested deeper than %zu levels at byte %zu",
                            name, most->depth, i);
        if (seen.containers > most->containers || seen.values > most->values ||
            seen.members > most->members)
            return too_many(name, most, err);
    }
    return LAP_OK;
}
