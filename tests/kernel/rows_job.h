/* One row of the table on one op, as the tests of rows run it: its data, its buffers, its verdict.
 */
#ifndef LAP_TEST_KERNEL_ROWS_JOB_H
#define LAP_TEST_KERNEL_ROWS_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/device.h"
#include "kernel/kernel.h"
#include "ref/ref.h"

typedef enum fill { FILL_EXACT, FILL_REAL, FILL_NAN, FILL_COUNT } fill;

typedef struct rig {
    lap_device *device;
    lap_queue *queue;
    lap_device_info info; /* what rows are told; the type may be a pretence */
    lap_device_info tiny; /* the same with one unit, for rows that want work for a whole device */
    bool pretend, has_gemm;
    lap_precision precision;
    unsigned features;
    const char *only;     /* rows whose name begins so; NULL: all */
    int checked, skipped; /* skipped: the built kernel takes no group of that size */
} rig;

typedef struct job { /* one row on one op */
    rig *r;
    const lap_kernel_row *row;
    lap_case c;
    lap_op op, partner;
    const lap_op *last; /* of both, the one whose output is written */
    lap_kernel *kernels[LAP_MAX_STAGES];
    double *x, *x2, *residual, *y, *bound; /* logical, as lap_ref_op wants them */
    double *mean, *mean_bound;             /* the second output's; NULL without */
    lap_op_weights weights, weights2;      /* 2: of the partner */
    lap_buffer *in, *in2, *out, *out_view, *out2, *res, *packed, *bias, *scratch;
} job;

extern lap_error job_err;

/* Fails the test, with job_err, when status is not LAP_OK. */
void job_ok(lap_status status, const char *what);
#define OK(call) job_ok((call), #call)
void *must_alloc(size_t count, size_t size);

/* What storage makes of a value, bytes of an element, and of one of the output; the stored value at
 * i of elements of so many bytes. */
bool job_is_short(const job *j);
float job_as_stored(const job *j, double v);
size_t job_element_bytes(const job *j);
size_t job_out_bytes(const job *j);
float job_get(const job *j, const void *from, size_t i, size_t bytes);
size_t job_out_words(const job *j);

/* Input, weights, and what should come out. */
void job_make_data(job *j, fill f);
void job_free_data(job *j);

/* Runs the built kernels on fresh data and fails the test where the output is wrong; a second run
 * must give the same bits. */
void job_run(job *j);
void job_judge(const job *j, fill f, const char *where);
void job_judge_repeat(job *j, const char *where);

#endif
