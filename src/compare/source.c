/* Bytes of a file, and JSON within its bounds (see source.h). Knows no document. */
#include "compare/source.h"
#include "base/json_bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };
static const lap_json_bounds bounds = {LAP_DOCUMENT_DEPTH, 1000000, 4000000, 2000000};

static lap_status read_error(lap_error *err, const char *path) {
    return LAP_FAIL(err, LAP_E_IO, "%s: %s", path, strerror(errno));
}

/* By reading, not by asking for the size: pipes have none, and that of a file may change. */
static lap_status read_all(int fd, const char *path, lap_text *out, lap_error *err) {
    char *chunk = malloc(CHUNK);
    if (!chunk) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory to read it", path);
    lap_status status = LAP_OK;
    while (status == LAP_OK) {
        ssize_t got = read(fd, chunk, CHUNK);
        if (got == 0) break;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = read_error(err, path);
        } else if (out->length + (size_t)got > LAP_DOCUMENT_BYTES) {
            status = LAP_FAIL(err, LAP_E_FORMAT,
                              "%s: longer than %d MiB; a result document of that size was not "
                              "written by warmlap (or with samples = yes of very long runs)",
                              path, LAP_DOCUMENT_BYTES >> 20);
        } else {
            lap_text_addn(out, chunk, (size_t)got);
            if (out->failed) status = LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory", path);
        }
    }
    free(chunk);
    return status;
}

static lap_status open_input(const char *path, int *fd, lap_error *err) {
    struct stat info;
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0) return read_error(err, path);
    if (fstat(*fd, &info) == 0 && S_ISDIR(info.st_mode)) {
        close(*fd);
        return LAP_FAIL(err, LAP_E_IO, "%s: is a folder; expected a result file (run --json FILE)",
                        path);
    }
    return LAP_OK;
}

lap_status lap_source_read(const char *path, lap_text *out, lap_error *err) {
    int fd = STDIN_FILENO;
    bool standard = strcmp(path, "-") == 0;
    if (!standard) LAP_TRY(open_input(path, &fd, err));
    lap_status status = read_all(fd, path, out, err);
    if (!standard) close(fd);
    if (status == LAP_OK && out->length == 0)
        status = LAP_FAIL(err, LAP_E_FORMAT, "%s: is empty; expected a result document", path);
    return status;
}

lap_status lap_source_json(const char *name, const char *text, size_t length, json_t **out,
                           lap_error *err) {
    LAP_TRY(lap_json_within(name, text, length, &bounds, err));
    json_error_t where;
    *out = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (*out) return LAP_OK;
    lap_text_clean(where.text);
    return LAP_FAIL(err, LAP_E_FORMAT, "%s:%d:%d: %s; expected one JSON document", name, where.line,
                    where.column, where.text);
}
