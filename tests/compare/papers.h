/* Result documents made for tests: text is assembled, then goes through the loader as a file would.
 */
#ifndef LAP_TESTS_COMPARE_PAPERS_H
#define LAP_TESTS_COMPARE_PAPERS_H

#include "compare/compare.h"
#include "compare/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* One row; what is 0 or NULL gets the value in the comment. */
typedef struct paper_row {
    const char *status;     /* "ok" */
    const char *reason;     /* null */
    const char *device;     /* "NVIDIA H200" */
    const char *backend;    /* "cuda" */
    const char *selector;   /* backend ":0" */
    const char *api;        /* "CUDA 13.0", "OpenCL 3.0" otherwise */
    const char *uuid, *pci; /* null */
    const char *network;    /* "resnet18" */
    const char *precision;  /* "fp32" */
    const char *clock;      /* "device" */
    const char *verified;   /* "true"; "null" writes no verification at all */
    const char *trust;      /* left out */
    const char *cache;      /* left out */
    int size;               /* 224 */
    int width;              /* size */
    unsigned batch;         /* 1 */
    double mean;            /* 0: no latency */
    double std;             /* < 0: null */
    unsigned n;             /* 100 */
    unsigned passes;        /* 1 */
    double p50;             /* mean */
    double images_per_s;    /* 0: no throughput */
    double floor;           /* 0: left out */
    double wall;            /* mean of the wall spans; 0: twice the mean */
    unsigned others;        /* devices at the same time, and */
    const char *beside;     /* all of them; NULL: two of the default */
    const char *host;       /* of a fleet's row */
} paper_row;

typedef struct paper {
    const char *name, *started, *cpu, *version, *weights; /* "a.json", … */
    const char *kernels;                                  /* "default" */
} paper;

/* The document, loaded; the test fails when it does not load. */
lap_document *paper_load(const paper *paper, const paper_row *rows, size_t count);
/* Its text; the caller frees it. */
void paper_text(const paper *paper, const paper_row *rows, size_t count, lap_text *out);

/* A comparison of so many documents. */
void papers_compare(const lap_document *const *documents, size_t count,
                    const lap_compare_options *options, lap_comparison *out);

/* The line of a row of a document; the test fails when there is none. */
const lap_line *line_of(const lap_comparison *c, const lap_document *d, size_t row);

/* A device name of 256 characters with everything that means something somewhere. */
const char *hostile_name(void);

#endif
