/* A result document as read back from a file: what comparing needs of it, nothing else.
 *
 * Texts are never NULL: what the file did not have is "". Counts that are unknown are 0, reals that
 * are unknown are absent. Everything belongs to the document and lives as long as it. Times are
 * seconds. */
#ifndef LAP_COMPARE_DOCUMENT_H
#define LAP_COMPARE_DOCUMENT_H

#include "measure/stats.h"
#include <stdint.h>

struct json_t;
typedef struct lap_document lap_document;

/* One kind of span of a row. */
typedef struct lap_span {
    uint64_t n; /* samples behind it */
    lap_optional mean_s, std_s, p50_s;
    lap_optional relative_error; /* standard error of the mean over the mean */
    bool from_samples;           /* else from the document's summary */
} lap_span;

typedef enum lap_proof { LAP_PROOF_NONE = 0, LAP_PROOF_PASSED, LAP_PROOF_FAILED } lap_proof;

typedef struct lap_record {
    const lap_document *document;
    size_t index; /* in the document's rows */
    bool ok;      /* status is "ok" */
    const char *status, *reason;
    const char *backend, *selector, *platform;
    const char *device, *type, *driver, *api, *uuid, *pci;
    const char *host; /* name of the host in a fleet's document; "" else */
    size_t ordinal;   /* among the document's routes of the same name and platform */
    const char *network, *precision, *weights;
    uint64_t height, width, batch;
    lap_proof proof;   /* failed: the row has no times, whatever the file says */
    const char *clock; /* of latency: "device", "wall" */
    const char *cache; /* "hot", "cold"; "" in files of before there was a choice: hot */
    uint64_t passes;   /* of the network in one sample */
    lap_span latency, wall;
    lap_optional fps;
    uint64_t throughput_batch;
    lap_optional images_per_s;
    lap_optional floor_s; /* of the route: device span of an empty kernel */
    uint64_t others;      /* devices at work at the same time */
    const char *beside;   /* names of all of these; "" when alone */
    const char *trust;    /* the row's own verdict: "stable", "drifting", … */
    char remark[160];     /* what is odd about the row; "" if nothing */
} lap_record;

struct lap_document {
    char *path; /* as given; "-" is standard input */
    const char *started, *version;
    const char *kernels, *prefer, *exclude, *overlap; /* of its [run] section */
    const char *cpu, *os, *kernel;                    /* of the host */
    uint64_t memory_bytes;
    lap_record *rows;
    size_t row_count;
    struct json_t *json; /* owner of the texts */
};

/* "fp32" of "fp32" and of "fp32x3": results of one class have about the same error. */
const char *lap_precision_class(const char *precision);

/* The same run, if perhaps written twice: start, host and every row agree. */
bool lap_document_same(const lap_document *a, const lap_document *b);

#endif
