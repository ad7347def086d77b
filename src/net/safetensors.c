/* Reads safetensors: 8 bytes little-endian header length, a JSON header, then the data. Trusts
 * nothing in the file; see safetensors.h. */
#include "net/safetensors.h"

#include "base/half.h"
#include "base/json_bounds.h"
#include "base/text.h"
#include "net/file.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_MAX = 100 << 20, CHUNK = 1 << 16 };
/* Four levels and seven lists and objects a tensor are what a header has; metadata is flat. */
static const lap_json_bounds bounds = {8, 100000, 400000, 400000};

typedef enum dtype { DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_I64, DTYPE_COUNT } dtype;

static const struct {
    const char *name;
    unsigned bytes;
} dtypes[DTYPE_COUNT] = {
    [DTYPE_F32] = {"F32", 4},
    [DTYPE_F16] = {"F16", 2},
    [DTYPE_BF16] = {"BF16", 2},
    [DTYPE_I64] = {"I64", 8},
};

typedef struct place {
    bool present;
    dtype type;
    uint64_t begin, end; /* within the data section */
} place;

struct lap_safetensors {
    int fd;
    char *path;
    const lap_state *state;
    place *places;  /* parallel to state->tensors */
    uint64_t data;  /* file offset of the data section */
    uint64_t bytes; /* its length */
};

/* A name from the file, safe to print. */
typedef struct shown {
    char text[96];
} shown;

static shown show(const char *name) {
    shown s;
    size_t n = strlen(name);
    if (n >= sizeof s.text) n = sizeof s.text - 1;
    memcpy(s.text, name, n);
    s.text[n] = '\0';
    lap_text_clean(s.text);
    return s;
}

/* ---- one entry of the header ---------------------------------------------------------------- */

static lap_status unknown_name(const lap_safetensors *file, const char *name, lap_error *err) {
    const lap_state *state = file->state;
    const char *closest = NULL;
    const char **names = malloc((size_t)state->count * sizeof *names);
    if (!names) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", file->path);
    size_t length = strlen(name);
    for (int i = 0; i < state->count; i++) {
        names[i] = state->tensors[i].name;
        /* Wrapped models prepend "module." or "model.": a prefix is the usual difference. */
        size_t n = strlen(names[i]);
        bool longer = length > n + 1 && name[length - n - 1] == '.';
        if (longer && strcmp(name + length - n, names[i]) == 0) closest = names[i];
    }
    if (!closest) closest = lap_text_closest(name, names, (size_t)state->count);
    free(names);
    if (closest)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: unknown tensor \"%s\": the closest expected name is \"%s\"",
                        file->path, show(name).text, closest);
    return LAP_FAIL(err, LAP_E_FORMAT,
                    "%s: unknown tensor \"%s\": expected torchvision's names, such as \"%s\"",
                    file->path, show(name).text, state->tensors[0].name);
}

static bool parse_dtype(const json_t *value, lap_state_role role, dtype *out) {
    const char *text = json_string_value(value);
    if (!text) return false;
    bool counter = role == LAP_STATE_BN_COUNTER;
    for (int i = 0; i < DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].name) != 0) continue;
        *out = (dtype)i;
        return counter == (i == DTYPE_I64);
    }
    return false;
}

static void shape_text(const lap_state_tensor *t, char *out, size_t size) {
    size_t n = 0;
    out[n++] = '[';
    for (int i = 0; i < t->rank && n + 24 < size; i++) {
        int more =
            snprintf(out + n, size - n, "%s%llu", i ? "," : "", (unsigned long long)t->shape[i]);
        n += (size_t)more;
    }
    snprintf(out + n, size - n, "]");
}

static bool parse_count(const json_t *value, uint64_t *out) {
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bool same_shape(const json_t *value, const lap_state_tensor *t) {
    if (!json_is_array(value) || json_array_size(value) != (size_t)t->rank) return false;
    for (int i = 0; i < t->rank; i++) {
        uint64_t n;
        if (!parse_count(json_array_get(value, (size_t)i), &n) || n != t->shape[i]) return false;
    }
    return true;
}

static lap_status parse_offsets(const lap_safetensors *file, const lap_state_tensor *t,
                                const json_t *value, place *to, lap_error *err) {
    uint64_t begin, end;
    if (!json_is_array(value) || json_array_size(value) != 2 ||
        !parse_count(json_array_get(value, 0), &begin) ||
        !parse_count(json_array_get(value, 1), &end))
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: %s: data_offsets: expected [BEGIN, END], two whole numbers",
                        file->path, t->name);
    uint64_t need = t->count * dtypes[to->type].bytes;
    if (begin > end || end > file->bytes)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: %s: data_offsets [%llu, %llu]: expected a range within the %llu bytes "
                        "of data",
                        file->path, t->name, (unsigned long long)begin, (unsigned long long)end,
                        (unsigned long long)file->bytes);
    if (end - begin != need)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: %s: data_offsets span %llu bytes: expected %llu (%llu values of %s)",
                        file->path, t->name, (unsigned long long)(end - begin),
                        (unsigned long long)need, (unsigned long long)t->count,
                        dtypes[to->type].name);
    to->begin = begin;
    to->end = end;
    return LAP_OK;
}

static lap_status parse_tensor(const lap_safetensors *file, const lap_state_tensor *t,
                               const json_t *value, place *to, lap_error *err) {
    const json_t *type = json_object_get(value, "dtype");
    const json_t *shape = json_object_get(value, "shape");
    const json_t *offsets = json_object_get(value, "data_offsets");
    if (!type || !shape || !offsets || json_object_size(value) != 3)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: %s: expected an object of dtype, shape and data_offsets", file->path,
                        t->name);
    if (!parse_dtype(type, t->role, &to->type)) {
        const char *text = json_string_value(type);
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: %s: dtype %s: expected %s", file->path, t->name,
                        text ? show(text).text : "is not a string",
                        t->role == LAP_STATE_BN_COUNTER ? "I64" : "F32, F16 or BF16");
    }
    if (!same_shape(shape, t)) {
        char expected[96], *found = json_dumps(shape, JSON_COMPACT | JSON_ENCODE_ANY);
        shape_text(t, expected, sizeof expected);
        lap_status status = LAP_FAIL(err, LAP_E_FORMAT, "%s: %s: shape %s: expected %s", file->path,
                                     t->name, found ? show(found).text : "?", expected);
        free(found);
        return status;
    }
    LAP_TRY(parse_offsets(file, t, offsets, to, err));
    to->present = true;
    return LAP_OK;
}

/* ---- the header ----------------------------------------------------------------------------- */

static int find_tensor(const lap_state *state, const char *name) {
    for (int i = 0; i < state->count; i++)
        if (strcmp(state->tensors[i].name, name) == 0) return i;
    return -1;
}

static lap_status parse_entries(lap_safetensors *file, json_t *root, lap_error *err) {
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value) {
        if (strcmp(name, "__metadata__") == 0) continue;
        int i = find_tensor(file->state, name);
        if (i < 0) return unknown_name(file, name, err);
        LAP_TRY(parse_tensor(file, &file->state->tensors[i], value, &file->places[i], err));
    }
    int missing = 0;
    const char *first = NULL;
    for (int i = 0; i < file->state->count; i++) {
        if (file->places[i].present || file->state->tensors[i].role == LAP_STATE_BN_COUNTER)
            continue;
        if (missing++ == 0) first = file->state->tensors[i].name;
    }
    if (missing > 0)
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: tensor \"%s\" is missing (%d missing in all)",
                        file->path, first, missing);
    return LAP_OK;
}

static int by_begin(const void *a, const void *b) {
    const place *x = *(const place *const *)a, *y = *(const place *const *)b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The format wants the tensors to fill the data section with no overlap, gap or rest. */
static lap_status check_layout(const lap_safetensors *file, lap_error *err) {
    const lap_state *state = file->state;
    const place **sorted = malloc((size_t)state->count * sizeof *sorted);
    if (!sorted) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", file->path);
    size_t n = 0;
    for (int i = 0; i < state->count; i++)
        if (file->places[i].present) sorted[n++] = &file->places[i];
    qsort(sorted, n, sizeof *sorted, by_begin);
    uint64_t at = 0;
    lap_status status = LAP_OK;
    for (size_t i = 0; i < n && status == LAP_OK; i++) {
        if (sorted[i]->begin != at)
            status = LAP_FAIL(
                err, LAP_E_FORMAT, "%s: %s begins at byte %llu of the data: expected %llu (%s)",
                file->path, state->tensors[sorted[i] - file->places].name,
                (unsigned long long)sorted[i]->begin, (unsigned long long)at,
                sorted[i]->begin < at ? "it overlaps another tensor" : "a gap is not allowed");
        at = sorted[i]->end;
    }
    if (status == LAP_OK && at != file->bytes)
        status =
            LAP_FAIL(err, LAP_E_FORMAT, "%s: %llu bytes of data, but the tensors end at byte %llu",
                     file->path, (unsigned long long)file->bytes, (unsigned long long)at);
    free(sorted);
    return status;
}

static lap_status parse_header(lap_safetensors *file, const char *text, size_t n, lap_error *err) {
    json_error_t where;
    LAP_TRY(lap_json_within(file->path, text, n, &bounds, err));
    json_t *root =
        n > 0 && text[0] == '{' ? json_loadb(text, n, JSON_REJECT_DUPLICATES, &where) : NULL;
    if (!root && (n == 0 || text[0] != '{'))
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: the header does not begin with '{': not a safetensors file",
                        file->path);
    if (!root)
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: the header is not valid JSON: %s (byte %d)",
                        file->path, show(where.text).text, where.position);
    lap_status status =
        json_is_object(root)
            ? parse_entries(file, root, err)
            : LAP_FAIL(err, LAP_E_FORMAT, "%s: the header is not a JSON object", file->path);
    json_decref(root);
    if (status == LAP_OK) status = check_layout(file, err);
    return status;
}

static lap_status read_header(lap_safetensors *file, uint64_t size, lap_error *err) {
    unsigned char head[8];
    if (size < sizeof head)
        return LAP_FAIL(
            err, LAP_E_FORMAT,
            "%s: %llu bytes: not a safetensors file (8 bytes of header length expected)",
            file->path, (unsigned long long)size);
    LAP_TRY(lap_file_read(file->fd, file->path, 0, head, sizeof head, err));
    uint64_t n = lap_load_u64(head);
    uint64_t most = size - 8 < HEADER_MAX ? size - 8 : HEADER_MAX;
    if (n > most)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: header length %llu: expected at most %llu (the rest of the file, and "
                        "100 MiB)",
                        file->path, (unsigned long long)n, (unsigned long long)most);
    file->data = 8 + n;
    file->bytes = size - file->data;
    char *text = malloc((size_t)n + 1);
    if (!text) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for the header", file->path);
    lap_status status = lap_file_read(file->fd, file->path, 8, text, (size_t)n, err);
    if (status == LAP_OK) status = parse_header(file, text, (size_t)n, err);
    free(text);
    return status;
}

lap_status lap_safetensors_open(const char *path, const lap_state *state, lap_safetensors **out,
                                lap_error *err) {
    *out = NULL;
    lap_safetensors *file = calloc(1, sizeof *file);
    if (!file) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", path);
    file->fd = -1;
    file->state = state;
    file->path = strdup(path);
    file->places = calloc((size_t)state->count, sizeof *file->places);
    uint64_t size = 0;
    lap_status status = file->path && file->places
                            ? lap_file_open(path, &file->fd, &size, err)
                            : LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", path);
    if (status == LAP_OK) status = read_header(file, size, err);
    if (status != LAP_OK) {
        lap_safetensors_close(file);
        return status;
    }
    *out = file;
    return LAP_OK;
}

void lap_safetensors_close(lap_safetensors *file) {
    if (!file) return;
    if (file->fd >= 0) close(file->fd);
    free(file->path);
    free(file->places);
    free(file);
}

/* ---- values --------------------------------------------------------------------------------- */

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float decode(dtype type, const unsigned char *p) {
    switch (type) {
    case DTYPE_F16:
        return lap_half_to_float(lap_load_u16(p));
    case DTYPE_BF16:
        return from_bits((uint32_t)lap_load_u16(p) << 16);
    default:
        return lap_load_f32(p);
    }
}

lap_status lap_safetensors_fetch(void *context, int index, float *out, lap_error *err) {
    const lap_safetensors *file = context;
    const lap_state_tensor *t = &file->state->tensors[index];
    const place *at = &file->places[index];
    unsigned width = dtypes[at->type].bytes;
    unsigned char chunk[CHUNK];
    for (uint64_t done = 0; done < t->count;) {
        uint64_t n = CHUNK / width < t->count - done ? CHUNK / width : t->count - done;
        LAP_TRY(lap_file_read(file->fd, file->path, file->data + at->begin + done * width, chunk,
                              (size_t)n * width, err));
        for (uint64_t i = 0; i < n; i++) {
            float value = decode(at->type, chunk + i * width);
            if (!isfinite(value))
                return LAP_FAIL(err, LAP_E_FORMAT,
                                "%s: %s: element %llu is %g: expected a finite "
                                "number",
                                file->path, t->name, (unsigned long long)(done + i), (double)value);
            out[done + i] = value;
        }
        done += n;
    }
    return LAP_OK;
}
