/* Documents of `warmlap spans` (schema warmlap-spans/1), read back. Untrusted, like all of them. */
#ifndef LAP_PAGE_SPANS_H
#define LAP_PAGE_SPANS_H

#include "measure/stats.h"
#include <stdint.h>

struct json_t;

#define LAP_SPANS_SCHEMA "warmlap-spans/1"

/* Submission, wall and device, in this order. */
enum { LAP_SPAN_SUBMIT, LAP_SPAN_WALL, LAP_SPAN_DEVICE, LAP_SPANS };

typedef struct lap_spans_side {
    lap_optional mean_s[LAP_SPANS], std_s[LAP_SPANS];
    lap_optional (*repeats)[LAP_SPANS];
    size_t count;
} lap_spans_side;

typedef struct lap_spans_case {
    const char *status, *reason, *selector, *device;
    uint64_t size[3];
    lap_spans_side cold, warm; /* without and with warm-up */
} lap_spans_case;

typedef struct lap_spans_document {
    char *path;
    const char *started, *version, *cpu, *os, *kernel;
    lap_spans_case *rows;
    size_t row_count;
    struct json_t *json; /* owner of the texts */
} lap_spans_document;

/* root becomes the document's, also on failure. LAP_E_FORMAT, LAP_E_NOMEM. */
lap_status lap_spans_take(const char *name, struct json_t *root, lap_spans_document **out,
                          lap_error *err);
void lap_spans_free(lap_spans_document *document); /* NULL is allowed */

#endif
