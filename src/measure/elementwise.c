/* See elementwise.h. The inputs repeat with a period, so that the host need not hold whole tensors;
 * a period that shares no factor with any tile keeps a kernel from getting away with a wrong index.
 */
#include "measure/elementwise.h"
#include "base/rng.h"
#include "kernel/tools.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { PERIOD = 1048573, PIECE = 16384, PIECES = 64, GROUP = 256 };

const char *const lap_elementwise_name[LAP_ELEMENTWISE_OPS] = {"mul", "add", "sin", "cos"};
/* A little above a half: the reference is rounded as well. */
const double lap_elementwise_bound[LAP_ELEMENTWISE_OPS] = {0.5000001, 0.5000001, 4, 4};

struct lap_elementwise {
    lap_queue *queue;
    uint64_t elements, quads;
    lap_buffer *a, *b, *out;
    float *base_a, *base_b; /* one period */
    lap_kernel *kernels[LAP_ELEMENTWISE_OPS];
    lap_arg args[4];
    lap_launch launches[LAP_ELEMENTWISE_OPS];
};

static lap_status make_inputs(lap_elementwise *w, lap_error *err) {
    w->base_a = malloc(PERIOD * sizeof(float));
    w->base_b = malloc(PERIOD * sizeof(float));
    if (!w->base_a || !w->base_b) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the inputs");
    const double pi = 3.14159265358979323846;
    for (uint64_t i = 0; i < PERIOD; i++) {
        w->base_a[i] = (float)((2 * lap_rng_uniform(1, 101, i) - 1) * pi);
        w->base_b[i] = (float)((2 * lap_rng_uniform(1, 102, i) - 1) * pi);
    }
    return LAP_OK;
}

static lap_status upload(lap_elementwise *w, lap_buffer *to, const float *base, lap_error *err) {
    for (uint64_t at = 0; at < w->elements; at += PERIOD) {
        uint64_t n = w->elements - at < PERIOD ? w->elements - at : PERIOD;
        LAP_TRY(lap_buffer_write(w->queue, to, (size_t)at * sizeof(float), base,
                                 (size_t)n * sizeof(float), err));
    }
    return LAP_OK;
}

static lap_status build(lap_elementwise *w, int op, lap_error *err) {
    static const char *const entries[] = {"elementwise_mul", "elementwise_add", "elementwise_sin",
                                          "elementwise_cos"};
    lap_device *device = lap_queue_device(w->queue);
    LAP_TRY(lap_tool_build(device, "elementwise", entries[op], NULL, 0, &w->kernels[op], err));
    uint32_t most = lap_kernel_get_info(w->kernels[op])->max_group_size;
    uint32_t group = most && most < GROUP ? most : GROUP;
    w->launches[op] = (lap_launch){.kernel = w->kernels[op],
                                   .groups = {(uint32_t)((w->quads + group - 1) / group), 1, 1},
                                   .local = {group, 1, 1},
                                   .args = w->args,
                                   .arg_count = 4};
    return LAP_OK;
}

static lap_status prepare(lap_elementwise *w, lap_error *err) {
    lap_device *device = lap_queue_device(w->queue);
    size_t bytes = (size_t)w->quads * 4 * sizeof(float);
    lap_buffer **buffers[] = {&w->a, &w->b, &w->out};
    for (int i = 0; i < 3; i++) {
        LAP_TRY(lap_buffer_new(device, bytes, buffers[i], err));
        LAP_TRY(lap_buffer_fill(w->queue, *buffers[i], 0, bytes, 0, err));
        w->args[i] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = *buffers[i]};
    }
    w->args[3] = (lap_arg){.kind = LAP_ARG_I32, .i32 = (int32_t)w->quads};
    LAP_TRY(make_inputs(w, err));
    LAP_TRY(upload(w, w->a, w->base_a, err));
    LAP_TRY(upload(w, w->b, w->base_b, err));
    for (int op = 0; op < LAP_ELEMENTWISE_OPS; op++)
        LAP_TRY(build(w, op, err));
    return lap_queue_finish(w->queue, err);
}

lap_status lap_elementwise_open(lap_queue *queue, uint64_t elements, lap_elementwise **out,
                                lap_error *err) {
    *out = NULL;
    if (elements == 0 || elements > 0x7FFFFFFCu)
        return LAP_FAIL(err, LAP_E_ARG, "%llu elements: expected 1 to 2147483644",
                        (unsigned long long)elements);
    lap_elementwise *w = calloc(1, sizeof *w);
    if (!w) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the elementwise workload");
    w->queue = queue;
    w->elements = elements;
    w->quads = (elements + 3) / 4;
    lap_status status = prepare(w, err);
    if (status != LAP_OK) {
        lap_error_prefix(err,
                         "elementwise workload of 3 x %llu floats: ", (unsigned long long)elements);
        lap_elementwise_close(w);
        return status;
    }
    *out = w;
    return LAP_OK;
}

lap_status lap_elementwise_run(void *context, lap_error *err) {
    lap_elementwise *w = context;
    for (int op = 0; op < LAP_ELEMENTWISE_OPS; op++)
        LAP_TRY(lap_enqueue(w->queue, &w->launches[op], err));
    return LAP_OK;
}

void lap_elementwise_close(lap_elementwise *w) {
    if (!w) return;
    for (int op = 0; op < LAP_ELEMENTWISE_OPS; op++)
        lap_kernel_free(w->kernels[op]);
    lap_buffer_free(w->a);
    lap_buffer_free(w->b);
    lap_buffer_free(w->out);
    free(w->base_a);
    free(w->base_b);
    free(w);
}

/* ---- verification --------------------------------------------------------------------------- */

static double reference(int op, double a, double b) {
    switch (op) {
    case 0:
        return a * b;
    case 1:
        return a + b;
    case 2:
        return sin(a);
    default:
        return cos(b);
    }
}

/* Distance in units in the last place of a float near `want`. NaN and infinity are far away. */
static double ulps(float got, double want) {
    int exponent;
    double size = fabs(want) > (double)FLT_MIN ? fabs(want) : (double)FLT_MIN;
    frexp(size, &exponent);
    double off = fabs((double)got - want) / ldexp(1.0, exponent - FLT_MANT_DIG);
    return off >= 0 ? off : INFINITY;
}

static lap_status compare(const lap_elementwise *w, int op, uint64_t at, uint64_t n,
                          const float *got, double *worst, lap_error *err) {
    for (uint64_t i = 0; i < n; i++) {
        double a = (double)w->base_a[(at + i) % PERIOD], b = (double)w->base_b[(at + i) % PERIOD];
        double want = reference(op, a, b), off = ulps(got[i], want);
        if (off > *worst) *worst = off;
        if (!(off <= lap_elementwise_bound[op]))
            return LAP_FAIL(err, LAP_E_VERIFY,
                            "%s: element %llu is %.9g instead of %.9g, %.3g ulp off, at most %.3g "
                            "allowed",
                            lap_elementwise_name[op], (unsigned long long)(at + i), (double)got[i],
                            want, off, lap_elementwise_bound[op]);
    }
    return LAP_OK;
}

static lap_status check_op(lap_elementwise *w, int op, float *got, lap_elementwise_report *out,
                           lap_error *err) {
    LAP_TRY(lap_buffer_fill(w->queue, w->out, 0, lap_buffer_bytes(w->out), 0x7FFF7FFFu, err));
    LAP_TRY(lap_enqueue(w->queue, &w->launches[op], err));
    /* All of what is small; else pieces evenly spread, the first and the last elements among them.
     */
    bool whole = w->elements <= (uint64_t)PIECE * PIECES;
    uint64_t pieces = whole ? (w->elements + PIECE - 1) / PIECE : PIECES;
    uint64_t room = w->elements > PIECE ? w->elements - PIECE : 0;
    out->compared = 0;
    for (uint64_t p = 0; p < pieces; p++) {
        uint64_t at = whole ? p * PIECE : room / (PIECES - 1) * p;
        if (!whole && p == pieces - 1) at = room;
        uint64_t n = w->elements - at < PIECE ? w->elements - at : PIECE;
        LAP_TRY(lap_buffer_read(w->queue, w->out, (size_t)at * sizeof(float), got,
                                (size_t)n * sizeof(float), err));
        LAP_TRY(compare(w, op, at, n, got, &out->worst_ulp[op], err));
        out->compared += n;
    }
    return LAP_OK;
}

lap_status lap_elementwise_check(lap_elementwise *w, lap_elementwise_report *out, lap_error *err) {
    *out = (lap_elementwise_report){0};
    float *got = malloc(PIECE * sizeof *got);
    if (!got) return LAP_FAIL(err, LAP_E_NOMEM, "no memory to verify the elementwise workload");
    lap_status status = LAP_OK;
    for (int op = 0; op < LAP_ELEMENTWISE_OPS && status == LAP_OK; op++)
        status = check_op(w, op, got, out, err);
    free(got);
    return status;
}
