/* Result documents named on a command line (see inputs.h). */
#include "app/inputs.h"
#include "history/history.h"
#include "report/output.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What a file is, whatever it is called. */
struct lap_input_file {
    dev_t device;
    ino_t inode;
};

/* A row of a run that the history gave already. */
struct lap_input_row {
    char run_id[72];
    uint64_t row;
};

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

/* ---- from the history ----------------------------------------------------------------------- */

static const char history_prefix[] = "history:";

static int by_row(const void *a, const void *b) {
    const struct lap_input_row *x = a, *y = b;
    if (x->row != y->row) return x->row < y->row ? -1 : 1;
    return strcmp(x->run_id, y->run_id);
}

/* The document's rows that match and that no query before gave, and no others. Sets *left to their
 * number. */
static lap_status keep_rows(lap_inputs *in, json_t *root, const lap_history_paper *paper,
                            size_t *left, lap_error *err) {
    json_t *rows = json_object_get(root, "rows"), *kept = json_array();
    struct lap_input_row *list =
        realloc(in->rows, (in->row_count + paper->row_count + 1) * sizeof *list);
    if (list) in->rows = list;
    if (!kept || !list) {
        json_decref(kept);
        return LAP_FAIL(err, LAP_E_NOMEM, "history: no memory for the rows of a run");
    }
    for (size_t i = 0; i < paper->row_count; i++) {
        struct lap_input_row *given = &list[in->row_count];
        given->row = paper->rows[i];
        snprintf(given->run_id, sizeof given->run_id, "%s", paper->run_id);
        if (bsearch(given, list, in->sorted_rows, sizeof *list, by_row)) continue;
        if (json_array_append(kept, json_array_get(rows, (size_t)paper->rows[i])) != 0) {
            json_decref(kept);
            return LAP_FAIL(err, LAP_E_FORMAT, "history: run %.8s has other rows than were added",
                            paper->run_id);
        }
        in->row_count++;
    }
    *left = json_array_size(kept);
    json_object_set_new(root, "rows", kept);
    return LAP_OK;
}

typedef struct taking {
    lap_inputs *inputs;
    size_t papers;
} taking;

static lap_status take_paper(void *context, const lap_history_paper *paper, lap_error *err) {
    taking *t = context;
    lap_inputs *in = t->inputs;
    char name[32];
    t->papers++;
    json_t *root;
    snprintf(name, sizeof name, "%s%.8s", history_prefix, paper->run_id);
    LAP_TRY(lap_source_json(name, paper->text, paper->length, &root, err));
    size_t left = 0;
    lap_status status = keep_rows(in, root, paper, &left, err);
    if (status == LAP_OK && (left > 0 || paper->row_count == 0))
        return add_document(in, name, root, err);
    json_decref(root);
    return status;
}

static lap_status add_matching(lap_inputs *in, const char *text, lap_error *err) {
    char *path;
    lap_query query;
    lap_history *history = NULL;
    taking t = {.inputs = in};
    LAP_TRY(lap_query_parse(text, &query, err));
    lap_status status = lap_history_path(in->database, &path, err);
    if (status == LAP_OK) {
        status = lap_history_open(path, LAP_HISTORY_READ, &history, err);
        free(path);
    }
    if (status == LAP_OK) status = lap_history_papers(history, &query, take_paper, &t, err);
    lap_history_close(history);
    lap_query_free(&query);
    if (in->rows) qsort(in->rows, in->row_count, sizeof *in->rows, by_row);
    in->sorted_rows = in->row_count;
    if (status == LAP_OK && t.papers == 0)
        status = LAP_FAIL(err, LAP_E_CONFIG, "%s%.100s: nothing matches", history_prefix, text);
    return status;
}

/* ---- all of them ---------------------------------------------------------------------------- */

lap_status lap_inputs_add_baseline(lap_inputs *in, const char *path, lap_error *err) {
    LAP_TRY(lap_inputs_add(in, path, err));
    if (in->count == 1) return LAP_OK;
    return LAP_FAIL(err, LAP_E_CONFIG,
                    "--baseline %.100s: %zu documents with rows to compare with; expected one%s",
                    path, in->count, in->count > 1 ? " (add latest or run=ID to the query)" : "");
}

/* Sets *seen when this file was read already, and notes it down otherwise. What is no file (a pipe)
 * is never seen. */
static lap_status note_file(lap_inputs *in, const char *path, bool *seen, lap_error *err) {
    struct stat info;
    *seen = false;
    if (strcmp(path, "-") == 0 || stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return LAP_OK;
    for (size_t i = 0; i < in->file_count; i++)
        if (in->files[i].device == info.st_dev && in->files[i].inode == info.st_ino) *seen = true;
    if (*seen) return LAP_OK;
    struct lap_input_file *list = realloc(in->files, (in->file_count + 1) * sizeof *list);
    if (!list) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", path);
    in->files = list;
    list[in->file_count++] = (struct lap_input_file){info.st_dev, info.st_ino};
    return LAP_OK;
}

lap_status lap_inputs_add(lap_inputs *in, const char *path, lap_error *err) {
    bool seen;
    if (strncmp(path, history_prefix, strlen(history_prefix)) == 0)
        return add_matching(in, path + strlen(history_prefix), err);
    LAP_TRY(note_file(in, path, &seen, err));
    if (seen) return LAP_OK;
    lap_text text = {0};
    lap_status status = lap_source_read(path, &text, err);
    if (status == LAP_OK) status = add_text(in, path, &text, err);
    lap_text_free(&text);
    return status;
}

static bool of_history(const char *name) {
    return strncmp(name, history_prefix, strlen(history_prefix)) == 0;
}

lap_status lap_inputs_spare(const char *output, char *const *files, int count, const char *baseline,
                            const char *database, lap_error *err) {
    bool asked = database || (baseline && of_history(baseline));
    for (int i = 0; i < count; i++) {
        LAP_TRY(lap_output_apart(output, files[i], "the input", err));
        asked = asked || of_history(files[i]);
    }
    if (baseline) LAP_TRY(lap_output_apart(output, baseline, "the baseline", err));
    if (!asked) return LAP_OK;
    char *path;
    LAP_TRY(lap_history_path(database, &path, err));
    lap_status status = lap_output_apart(output, path, "the history", err);
    free(path);
    return status;
}

void lap_inputs_free(lap_inputs *in) {
    for (size_t i = 0; i < in->count; i++)
        lap_document_free(in->documents[i]);
    for (size_t i = 0; i < in->spans_count; i++)
        lap_spans_free(in->spans[i]);
    free(in->documents);
    free(in->spans);
    free(in->files);
    free(in->rows);
    *in = (lap_inputs){0};
}

bool lap_inputs_is_file(const char *baseline) {
    struct stat info;
    size_t n = strlen(baseline);
    /* A folder that happens to be called cuda is none. */
    bool exists = stat(baseline, &info) == 0 && !S_ISDIR(info.st_mode);
    return strcmp(baseline, "-") == 0 ||
           strncmp(baseline, history_prefix, strlen(history_prefix)) == 0 || exists ||
           strchr(baseline, '/') || (n > 5 && strcmp(baseline + n - 5, ".json") == 0);
}
