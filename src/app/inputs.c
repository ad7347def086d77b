/* Result documents named on a command line (see inputs.h). */
#include "app/inputs.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One more pointer in list, of count so far. NULL on a lack of memory. */
static void *longer(void *list, size_t count) {
    return realloc(list, (count + 1) * sizeof(void *));
}

static lap_status add_document(lap_inputs *in, const char *name, json_t *root, lap_error *err) {
    lap_document **list = longer(in->documents, in->count);
    if (!list) {
        json_decref(root);
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", name);
    }
    in->documents = list;
    LAP_TRY(lap_document_take(name, root, in->report, &list[in->count], err));
    in->count++;
    return LAP_OK;
}

static lap_status add_spans(lap_inputs *in, const char *name, json_t *root, lap_error *err) {
    lap_spans_document **list = longer(in->spans, in->spans_count);
    if (!list) {
        json_decref(root);
        return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", name);
    }
    in->spans = list;
    LAP_TRY(lap_spans_take(name, root, &list[in->spans_count], err));
    in->spans_count++;
    return LAP_OK;
}

static lap_status add_text(lap_inputs *in, const char *name, const lap_text *text, lap_error *err) {
    json_t *root;
    LAP_TRY(lap_source_json(name, text->data, text->length, &root, err));
    const char *schema = json_string_value(json_object_get(root, "schema"));
    if (in->report && schema && strcmp(schema, LAP_SPANS_SCHEMA) == 0)
        return add_spans(in, name, root, err);
    return add_document(in, name, root, err);
}

lap_status lap_inputs_add(lap_inputs *in, const char *path, lap_error *err) {
    lap_text text = {0};
    lap_status status = lap_source_read(path, &text, err);
    if (status == LAP_OK) status = add_text(in, path, &text, err);
    lap_text_free(&text);
    return status;
}

void lap_inputs_free(lap_inputs *in) {
    for (size_t i = 0; i < in->count; i++)
        lap_document_free(in->documents[i]);
    for (size_t i = 0; i < in->spans_count; i++)
        lap_spans_free(in->spans[i]);
    free(in->documents);
    free(in->spans);
    *in = (lap_inputs){0};
}

bool lap_inputs_is_file(const char *baseline) {
    struct stat info;
    size_t n = strlen(baseline);
    /* A folder that happens to be called cuda is none. */
    bool exists = stat(baseline, &info) == 0 && !S_ISDIR(info.st_mode);
    return strcmp(baseline, "-") == 0 || exists || strchr(baseline, '/') ||
           (n > 5 && strcmp(baseline + n - 5, ".json") == 0);
}
