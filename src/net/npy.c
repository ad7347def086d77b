/* Reads and writes NumPy's .npy format, float32 in C order only. The header is a Python dictionary
 * literal; the small parser here takes the three keys numpy writes and nothing else. */
#include "net/npy.h"
#include "base/text.h"
#include "net/file.h"
#include "net/weights.h"

#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 1 << 20 };

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

typedef struct parser {
    const char *p; /* terminated text */
    const char *path;
    lap_error *err;
} parser;

static void skip_blanks(parser *in) {
    while (*in->p == ' ' || *in->p == '\t' || *in->p == '\n')
        in->p++;
}

static bool accept(parser *in, const char *token) {
    skip_blanks(in);
    size_t n = strlen(token);
    if (strncmp(in->p, token, n) != 0) return false;
    in->p += n;
    return true;
}

static lap_status malformed(parser *in, const char *expected) {
    char near[24];
    snprintf(near, sizeof near, "%s", in->p);
    lap_text_clean(near);
    return LAP_FAIL(in->err, LAP_E_FORMAT, "%s: npy header: expected %s at \"%s\"", in->path,
                    expected, near);
}

/* 'text' or "text" without escapes. */
static lap_status parse_string(parser *in, char *out, size_t size) {
    skip_blanks(in);
    char quote = *in->p;
    if (quote != '\'' && quote != '"') return malformed(in, "a quoted string");
    const char *end = strchr(in->p + 1, quote);
    size_t n = end ? (size_t)(end - in->p - 1) : size;
    if (n >= size) return malformed(in, "a short quoted string");
    memcpy(out, in->p + 1, n);
    out[n] = '\0';
    in->p = end + 1;
    return LAP_OK;
}

static lap_status parse_shape(parser *in, lap_npy *out) {
    if (!accept(in, "(")) return malformed(in, "a tuple");
    out->rank = 0;
    while (!accept(in, ")")) {
        if (out->rank == LAP_NPY_RANK_MAX) return malformed(in, "at most 8 dimensions");
        if (*in->p < '0' || *in->p > '9') return malformed(in, "a dimension");
        uint64_t n = 0;
        for (; *in->p >= '0' && *in->p <= '9'; in->p++) {
            if (n > UINT64_MAX / 10 - 1) return malformed(in, "a dimension below 2^60");
            n = n * 10 + (uint64_t)(*in->p - '0');
        }
        out->shape[out->rank++] = n;
        if (accept(in, ",")) continue;
        if (out->rank == 1 || !accept(in, ")")) return malformed(in, "',' or ')'");
        break;
    }
    return LAP_OK;
}

static lap_status parse_value(parser *in, const char *key, lap_npy *out) {
    if (strcmp(key, "descr") == 0) {
        char descr[32];
        skip_blanks(in);
        if (*in->p == '[') return malformed(in, "'<f4' (a structured array is not an image)");
        LAP_TRY(parse_string(in, descr, sizeof descr));
        if (strcmp(descr, "<f4") == 0) return LAP_OK;
        lap_text_clean(descr);
        return LAP_FAIL(in->err, LAP_E_FORMAT,
                        "%s: dtype \"%s\": expected \"<f4\" (save it with "
                        "numpy.save(path, x.astype(\"<f4\")))",
                        in->path, descr);
    }
    if (strcmp(key, "fortran_order") == 0) {
        if (accept(in, "False")) return LAP_OK;
        if (accept(in, "True"))
            return LAP_FAIL(in->err, LAP_E_FORMAT,
                            "%s: Fortran order: expected C order (numpy.ascontiguousarray)",
                            in->path);
        return malformed(in, "True or False");
    }
    return parse_shape(in, out);
}

static lap_status parse_dict(parser *in, lap_npy *out) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false};
    if (!accept(in, "{")) return malformed(in, "'{'");
    while (!accept(in, "}")) {
        char key[32];
        LAP_TRY(parse_string(in, key, sizeof key));
        int k = 0;
        while (k < 3 && strcmp(key, keys[k]) != 0)
            k++;
        if (k == 3 || seen[k])
            return LAP_FAIL(in->err, LAP_E_FORMAT,
                            "%s: npy header: key \"%s\": expected descr, fortran_order and shape, "
                            "once each",
                            in->path, lap_text_clean(key));
        seen[k] = true;
        if (!accept(in, ":")) return malformed(in, "':'");
        LAP_TRY(parse_value(in, key, out));
        if (accept(in, ",")) continue;
        if (!accept(in, "}")) return malformed(in, "',' or '}'");
        break;
    }
    for (int k = 0; k < 3; k++)
        if (!seen[k])
            return LAP_FAIL(in->err, LAP_E_FORMAT, "%s: npy header: key \"%s\" is missing",
                            in->path, keys[k]);
    skip_blanks(in);
    return *in->p ? malformed(in, "the end of the header") : LAP_OK;
}

/* The data must fill the rest of the file exactly. */
static lap_status check_size(const char *path, uint64_t size, const lap_npy *npy, lap_error *err) {
    uint64_t bytes = 4;
    for (int i = 0; i < npy->rank; i++) {
        uint64_t n = npy->shape[i];
        if (n == 0 || bytes > size / n)
            return LAP_FAIL(err, LAP_E_FORMAT, "%s: dimension %d of the shape is %llu: %s", path, i,
                            (unsigned long long)n,
                            n ? "the file holds less data than its shape says"
                              : "expected at least 1");
        bytes *= n;
    }
    if (bytes != size - npy->data)
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: %llu bytes of data: its shape needs %llu", path,
                        (unsigned long long)(size - npy->data), (unsigned long long)bytes);
    return LAP_OK;
}

lap_status lap_npy_read_header(int fd, const char *path, uint64_t size, lap_npy *out,
                               lap_error *err) {
    *out = (lap_npy){0};
    unsigned char head[12] = {0};
    size_t have = size < sizeof head ? (size_t)size : sizeof head;
    LAP_TRY(lap_file_read(fd, path, 0, head, have, err));
    if (have < 10 || memcmp(head, magic, sizeof magic) != 0)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: not a .npy file (it does not begin with "
                        "\\x93NUMPY)",
                        path);
    if (head[6] < 1 || head[6] > 3 || head[7] != 0)
        return LAP_FAIL(err, LAP_E_FORMAT, "%s: npy version %u.%u: expected 1.0, 2.0 or 3.0", path,
                        head[6], head[7]);
    uint64_t start = head[6] == 1 ? 10 : 12;
    uint64_t n = head[6] == 1 ? lap_load_u16(head + 8) : lap_load_u32(head + 8);
    if (size < start || n > size - start || n > HEADER_MAX)
        return LAP_FAIL(err, LAP_E_FORMAT,
                        "%s: npy header of %llu bytes: the file has %llu (and 1 MiB is the limit)",
                        path, (unsigned long long)n, (unsigned long long)size);
    char *text = malloc((size_t)n + 1);
    if (!text) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for the header", path);
    lap_status status = lap_file_read(fd, path, start, text, (size_t)n, err);
    if (status == LAP_OK) {
        text[n] = '\0';
        parser in = {text, path, err};
        status = memchr(text, '\0', (size_t)n)
                     ? LAP_FAIL(err, LAP_E_FORMAT, "%s: npy header: holds a NUL byte", path)
                     : parse_dict(&in, out);
    }
    free(text);
    out->data = start + n;
    return status == LAP_OK ? check_size(path, size, out, err) : status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static lap_status write_header(lap_new_file *file, const uint64_t *shape, int rank,
                               lap_error *err) {
    char text[320];
    size_t n =
        (size_t)snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < rank; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%llu%s", (unsigned long long)shape[i],
                              rank == 1      ? ","
                              : i + 1 < rank ? ", "
                                             : "");
    n += (size_t)snprintf(text + n, sizeof text - n, "), }");
    /* numpy aligns the data to 64 bytes and ends the header with a newline. */
    while ((10 + n + 1) % 64 != 0)
        text[n++] = ' ';
    text[n++] = '\n';
    unsigned char head[10] = {0};
    memcpy(head, magic, sizeof magic);
    head[6] = 1;
    head[8] = (unsigned char)(n & 0xFF);
    head[9] = (unsigned char)(n >> 8);
    LAP_TRY(lap_file_write(file, head, sizeof head, err));
    return lap_file_write(file, text, n, err);
}

lap_status lap_npy_write(const char *path, const float *data, const uint64_t *shape, int rank,
                         bool force, lap_error *err) {
    if (!path || !data || !shape || rank < 1 || rank > LAP_NPY_RANK_MAX)
        return LAP_FAIL(err, LAP_E_ARG, "lap_npy_write: rank %d: expected 1 to %d, and no NULL",
                        rank, LAP_NPY_RANK_MAX);
    uint64_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= shape[i];
    lap_new_file file;
    LAP_TRY(lap_file_create(path, force, &file, err));
    lap_status status = write_header(&file, shape, rank, err);
    for (uint64_t i = 0; i < count && status == LAP_OK; i++) {
        unsigned char bytes[4];
        lap_store_f32(bytes, data[i]);
        status = lap_file_write(&file, bytes, sizeof bytes, err);
    }
    return lap_file_finish(&file, status, err);
}
