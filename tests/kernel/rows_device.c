/* Every kernel row on every device of one backend, op by op and pair by pair, against src/ref:
 * integer data for equal bits, real data within the rounding bound, NaN that must come through.
 * Outputs are poisoned and guarded. GPU rows also run on CPU devices here (told that it is a GPU),
 * on few and small shapes: slow, but their arithmetic is checked without a GPU; so do halves and
 * bfloat16, and the matrix instructions of other vendors, emulated by element (matrix/). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/half.h"
#include "base/rng.h"
#include "device/device.h"
#include "kernel/kernel.h"
#include "ref/ref.h"
#include "shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 16 /* words before and after the output */
#define GUARD_WORD 0x5a5aa5a5u
#define POISON 0x7fff7fff /* a NaN, two of 16 bits */

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

static lap_error err;

static void ok(lap_status status, const char *what) {
    if (status == LAP_OK) return;
    char text[2048];
    lap_error_text(&err, text, sizeof text);
    fail_msg("%s: %s: %s", what, lap_status_name(status), text);
}
#define OK(call) ok((call), #call)

static void *must_alloc(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    assert_non_null(p);
    return p;
}

/* ---- data ----------------------------------------------------------------------------------- */

static double value(fill f, uint64_t stream, size_t i) {
    double u = lap_rng_uniform(1, stream, i);
    return f == FILL_REAL ? (double)(float)(2.0 * u - 1.0) : floor(u * 17.0) - 8.0;
}

static bool is_short(const job *j) {
    return j->c.precision == LAP_FP16 || j->c.precision == LAP_BF16;
}

/* What storage makes of a value. */
static float as_stored(const job *j, double v) {
    if (j->c.precision == LAP_FP16) return lap_half_to_float(lap_half_from_float((float)v));
    if (j->c.precision == LAP_BF16) return lap_bf16_to_float(lap_bf16_from_float((float)v));
    return (float)v;
}

static size_t element_bytes(const job *j) {
    return is_short(j) ? sizeof(uint16_t) : sizeof(float);
}

/* The network's result is float in every precision. */
static size_t out_bytes(const job *j) {
    return j->last->kind == LAP_OP_FC ? sizeof(float) : element_bytes(j);
}

static void put(const job *j, void *to, size_t i, double v) {
    uint16_t bits =
        j->c.precision == LAP_FP16 ? lap_half_from_float((float)v) : lap_bf16_from_float((float)v);
    if (is_short(j))
        ((uint16_t *)to)[i] = bits;
    else
        ((float *)to)[i] = (float)v;
}

static float get(const job *j, const void *from, size_t i, size_t bytes) {
    if (bytes == sizeof(float)) return ((const float *)from)[i];
    uint16_t bits = ((const uint16_t *)from)[i];
    return j->c.precision == LAP_FP16 ? lap_half_to_float(bits) : lap_bf16_to_float(bits);
}

static lap_buffer *upload_bytes(job *j, const void *data, size_t bytes) {
    lap_buffer *buffer;
    OK(lap_buffer_new(j->r->device, bytes, &buffer, &err));
    OK(lap_buffer_write(j->r->queue, buffer, 0, data, bytes, &err));
    return buffer;
}

/* Logical doubles to stored elements; padding channels are zero, as whoever writes a tensor must.
 */
static lap_buffer *upload(job *j, const double *data, const lap_tensor *t, int images) {
    size_t pixels = (size_t)images * (size_t)t->h * (size_t)t->w;
    size_t cs = (size_t)t->cs, channels = (size_t)t->c;
    void *stored = must_alloc(pixels * cs, element_bytes(j));
    for (size_t p = 0; p < pixels; p++)
        for (size_t ch = 0; ch < channels; ch++)
            put(j, stored, p * cs + ch, data[p * channels + ch]);
    lap_buffer *buffer = upload_bytes(j, stored, pixels * cs * element_bytes(j));
    free(stored);
    return buffer;
}

static size_t out_words(const job *j) {
    return (size_t)j->c.n * (size_t)lap_tensor_stored(&j->last->out);
}

static lap_op_weights op_weights(const job *j, const lap_op *op, fill f, uint64_t stream) {
    size_t count = (size_t)lap_op_weight_count(op), k = (size_t)op->out.c;
    lap_op_weights w = {.w_count = count, .k = k};
    if (!count) return w;
    w.w = must_alloc(count, sizeof(float));
    w.bias = must_alloc((size_t)op->out.cs, sizeof(float));
    for (size_t i = 0; i < count; i++)
        w.w[i] = as_stored(j, value(f, stream, i));
    for (size_t i = 0; i < k; i++)
        w.bias[i] = (float)value(f, stream + 1, i);
    return w;
}

/* What the kernels add: the bias of the op that has one, or of both. */
static lap_buffer *upload_bias(job *j) {
    bool both = lap_fusion_two_layers(j->c.fusion); /* one behind the other instead of their sum */
    size_t first = both ? (size_t)j->op.out.cs : 0, count = first + (size_t)j->last->out.cs;
    const float *one = j->weights.bias, *two = j->weights2.bias;
    float *sum = must_alloc(count, sizeof *sum);
    for (size_t i = 0; i < (size_t)j->last->out.c; i++)
        sum[first + i] = (one && !both ? one[i] : 0.0f) + (two ? two[i] : 0.0f);
    for (size_t i = 0; i < first; i++)
        sum[i] = i < (size_t)j->op.out.c ? one[i] : 0.0f;
    lap_buffer *buffer = upload_bytes(j, sum, count * sizeof *sum);
    free(sum);
    return buffer;
}

static void make_weights(job *j, fill f) {
    j->weights = op_weights(j, &j->op, f, 2);
    if (j->c.partner) j->weights2 = op_weights(j, &j->partner, f, 6);
    if (!j->row->packed_bytes) return;
    size_t bytes = j->row->packed_bytes(&j->c);
    unsigned char *packed = must_alloc(bytes + 64, 1);
    memset(packed, 0xff, bytes + 64); /* NaN, should the packer leave a hole */
    if (j->c.partner)
        j->row->pack_fused(&j->c, &j->weights, &j->weights2, packed);
    else
        j->row->pack(&j->c, &j->weights, packed);
    for (size_t i = 0; i < 64; i++)
        if (packed[bytes + i] != 0xff) fail_msg("%s: packer wrote too much", j->row->id);
    j->packed = upload_bytes(j, packed, bytes);
    j->bias = upload_bias(j);
    free(packed);
}

static double *make_input(const job *j, const lap_tensor *t, int n, fill f, uint64_t stream) {
    size_t count = (size_t)n * (size_t)lap_tensor_logical(t);
    double *x = must_alloc(count, sizeof *x);
    for (size_t i = 0; i < count; i++)
        x[i] = (double)as_stored(j, value(f, stream, i));
    return x;
}

static const lap_op_weights *or_null(const lap_op_weights *w) {
    return w->w ? w : NULL;
}

/* The means of what op makes. */
static lap_op pool_behind(const lap_op *op) {
    return (lap_op){.kind = LAP_OP_AVGPOOL,
                    .name = "pool",
                    .residual = -1,
                    .in = op->out,
                    .out = {op->out.c, 1, 1, op->out.cs},
                    .r = op->out.h,
                    .s = op->out.w,
                    .stride = 1};
}

/* What should come out, and the scale of its rounding error: a chain of reference ops. */
static void make_expected(job *j) {
    const lap_op *op = &j->op, *partner = &j->partner;
    int n = (int)j->c.n;
    const lap_op *between = lap_fusion_partner_first(j->c.fusion) ? partner : op;
    size_t middle = (size_t)n * (size_t)lap_tensor_logical(&between->out);
    size_t count = (size_t)n * (size_t)lap_tensor_logical(&j->last->out);
    const lap_op_weights *w = or_null(&j->weights), *w2 = or_null(&j->weights2);
    double *y = must_alloc(middle, sizeof *y), *scale = must_alloc(middle, sizeof *scale);
    j->y = must_alloc(count, sizeof(double));
    j->bound = must_alloc(count, sizeof(double));
    switch (j->c.fusion) {
    case LAP_FUSE_NONE:
        OK(lap_ref_op(op, n, j->x, op->kind == LAP_OP_SCALE ? j->x2 : j->residual, w, j->y,
                      j->bound, &err));
        break;
    case LAP_FUSE_POOL:
        OK(lap_ref_op(op, n, j->x, NULL, w, j->y, j->bound, &err));
        j->mean = must_alloc((size_t)(n * op->out.c), sizeof(double));
        j->mean_bound = must_alloc((size_t)(n * op->out.c), sizeof(double));
        OK(lap_ref_op(partner, n, j->bound, NULL, NULL, j->mean_bound, NULL, &err));
        OK(lap_ref_op(partner, n, j->y, NULL, NULL, j->mean, NULL, &err));
        break;
    case LAP_FUSE_EXPAND: {
        lap_op pool = pool_behind(partner);
        size_t means = (size_t)(n * partner->out.c);
        j->mean = must_alloc(means, sizeof(double));
        j->mean_bound = must_alloc(means, sizeof(double));
        OK(lap_ref_op(op, n, j->x, NULL, w, y, scale, &err));
        OK(lap_ref_op(partner, n, scale, NULL, w2, j->y, j->bound, &err));
        OK(lap_ref_op(partner, n, y, NULL, w2, j->y, NULL, &err));
        OK(lap_ref_op(&pool, n, j->bound, NULL, NULL, j->mean_bound, NULL, &err));
        OK(lap_ref_op(&pool, n, j->y, NULL, NULL, j->mean, NULL, &err));
        break;
    }
    case LAP_FUSE_SCALE:
        OK(lap_ref_op(partner, n, j->x, j->x2, NULL, y, NULL, &err));
        OK(lap_ref_op(op, n, y, j->residual, w, j->y, j->bound, &err));
        break;
    case LAP_FUSE_DOWNSAMPLE: /* the bounds add; y counts twice, which is harmless */
        OK(lap_ref_op(partner, n, j->x2, NULL, w2, y, scale, &err));
        OK(lap_ref_op(op, n, j->x, y, w, j->y, j->bound, &err));
        for (size_t i = 0; i < count; i++)
            j->bound[i] += scale[i];
        break;
    case LAP_FUSE_MAXPOOL: /* a maximum is off by at most the largest error in its window */
        OK(lap_ref_op(op, n, j->x, j->residual, w, y, scale, &err));
        OK(lap_ref_op(partner, n, scale, NULL, NULL, j->bound, NULL, &err));
        OK(lap_ref_op(partner, n, y, NULL, NULL, j->y, NULL, &err));
        break;
    case LAP_FUSE_EXCITE:
    case LAP_FUSE_FC: /* the scale of a mean stands for the mean */
        OK(lap_ref_op(op, n, j->x, NULL, w, y, scale, &err));
        OK(lap_ref_op(partner, n, scale, NULL, w2, j->y, j->bound, &err));
        OK(lap_ref_op(partner, n, y, NULL, w2, j->y, NULL, &err));
        break;
    case LAP_FUSE_COUNT:
        break;
    }
    free(y);
    free(scale);
}

static void make_data(job *j, fill f) {
    const lap_op *op = &j->op;
    int n = (int)j->c.n;
    j->x = make_input(j, &op->in, n, f, 1);
    if (f == FILL_NAN) {
        size_t in_count = (size_t)n * (size_t)lap_tensor_logical(&op->in);
        j->x[in_count / 2] = NAN;
        j->x[in_count - 1] = INFINITY;
    }
    j->in = upload(j, j->x, &op->in, n);
    if (j->c.fusion == LAP_FUSE_DOWNSAMPLE) {
        j->x2 = make_input(j, &j->partner.in, n, f, 5);
        if (f == FILL_NAN) j->x2[0] = NAN;
        j->in2 = upload(j, j->x2, &j->partner.in, n);
    } else if (op->kind == LAP_OP_SCALE || j->c.fusion == LAP_FUSE_SCALE) {
        lap_tensor factors = {op->in.c, 1, 1, op->in.cs};
        j->x2 = make_input(j, &factors, n, f, 5);
        if (f == FILL_NAN) j->x2[0] = NAN;
        j->in2 = upload(j, j->x2, &factors, n);
    }
    if (op->residual >= 0 && op->kind != LAP_OP_SCALE && j->c.fusion != LAP_FUSE_DOWNSAMPLE) {
        j->residual = make_input(j, &op->out, n, f, 4);
        j->res = upload(j, j->residual, &op->out, n);
    }
    make_weights(j, f);
    make_expected(j);
    uint64_t scratch = j->row->scratch_bytes ? j->row->scratch_bytes(&j->c) : 0;
    if (scratch) { /* zero, as the plan provides it */
        OK(lap_buffer_new(j->r->device, (size_t)scratch, &j->scratch, &err));
        OK(lap_buffer_fill(j->r->queue, j->scratch, 0, (size_t)scratch, 0, &err));
    }
}

static void free_data(job *j) {
    lap_buffer **const buffers[] = {&j->in,  &j->in2,    &j->out_view, &j->out,    &j->out2,
                                    &j->res, &j->packed, &j->bias,     &j->scratch};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        lap_buffer_free(*buffers[i]);
        *buffers[i] = NULL;
    }
    free(j->x);
    free(j->x2);
    free(j->residual);
    free(j->y);
    free(j->bound);
    free(j->mean);
    free(j->mean_bound);
    lap_op_weights *const weights[] = {&j->weights, &j->weights2};
    for (int i = 0; i < 2; i++) {
        free(weights[i]->w);
        free(weights[i]->bias);
        *weights[i] = (lap_op_weights){0};
    }
    j->x = j->x2 = j->residual = j->y = j->bound = j->mean = j->mean_bound = NULL;
}

/* ---- running -------------------------------------------------------------------------------- */

/* The guard in front must leave the output as aligned as the device wants its views. */
static size_t guard_bytes(const job *j) {
    size_t align = j->r->info.base_align_bytes ? j->r->info.base_align_bytes : 1;
    return (GUARD * sizeof(uint32_t) + align - 1) / align * align;
}

static void make_output(job *j) {
    size_t guard = guard_bytes(j), bytes = out_words(j) * out_bytes(j);
    OK(lap_buffer_new(j->r->device, bytes + 2 * guard, &j->out, &err));
    OK(lap_buffer_fill(j->r->queue, j->out, 0, bytes + 2 * guard, GUARD_WORD, &err));
    OK(lap_buffer_fill(j->r->queue, j->out, guard, bytes, POISON, &err));
    OK(lap_buffer_view(j->out, guard, bytes, &j->out_view, &err));
    if (!j->mean) return;
    bytes = (size_t)j->c.n * (size_t)j->last->out.cs * element_bytes(j);
    OK(lap_buffer_new(j->r->device, bytes, &j->out2, &err));
    OK(lap_buffer_fill(j->r->queue, j->out2, 0, bytes, POISON, &err));
}

static lap_buffer *role_buffer(const job *j, lap_role role) {
    switch (role) {
    case LAP_ROLE_IN:
        return j->in;
    case LAP_ROLE_OUT:
        return j->out_view;
    case LAP_ROLE_OUT2:
        return j->out2;
    case LAP_ROLE_RESIDUAL:
        return j->res;
    case LAP_ROLE_WEIGHTS:
        return j->packed;
    case LAP_ROLE_BIAS:
        return j->bias;
    case LAP_ROLE_SCRATCH:
        return j->scratch;
    case LAP_ROLE_IN2:
        return j->in2;
    case LAP_ROLE_N:
    case LAP_ROLE_FLAGS:
    case LAP_ROLE_MEMORY: /* chains: tests/plan/chain_device.c */
    case LAP_ROLE_PARAMETERS:
    case LAP_ROLE_TABLE:
    case LAP_ROLE_SYNC:
    case LAP_ROLE_FIRST:
    case LAP_ROLE_COUNT:
        break;
    }
    return NULL;
}

static void run_gemm(const job *j, const lap_stage *stage) {
    lap_gemm gemm = {0};
    stage->gemm(&j->c, &gemm);
    gemm.a = role_buffer(j, stage->roles[0]);
    gemm.b = role_buffer(j, stage->roles[1]);
    gemm.c = role_buffer(j, stage->roles[2]);
    OK(lap_gemm_enqueue(j->r->queue, &gemm, &err));
}

static void run_stages(const job *j) {
    for (int s = 0; s < j->row->stage_count; s++) {
        const lap_stage *stage = &j->row->stages[s];
        if (stage->kind == LAP_STAGE_GEMM) {
            run_gemm(j, stage);
            continue;
        }
        lap_arg args[LAP_MAX_ROLES] = {0};
        int32_t flags =
            (j->op.act == LAP_ACT_RELU ? LAP_FLAG_RELU : 0) | (j->res ? LAP_FLAG_RESIDUAL : 0);
        for (int i = 0; i < stage->role_count; i++) {
            args[i].kind = LAP_ARG_BUFFER;
            args[i].buffer = role_buffer(j, stage->roles[i]);
            if (stage->roles[i] == LAP_ROLE_N)
                args[i] = (lap_arg){.kind = LAP_ARG_I32, .i32 = (int32_t)j->c.n};
            if (stage->roles[i] == LAP_ROLE_FLAGS)
                args[i] = (lap_arg){.kind = LAP_ARG_I32, .i32 = flags};
        }
        lap_grid grid = {0};
        assert_true(stage->grid(&j->c, &grid));
        lap_launch launch = {.kernel = j->kernels[s],
                             .dynamic_local_bytes = grid.dynamic_local_bytes,
                             .args = args,
                             .arg_count = (size_t)stage->role_count};
        memcpy(launch.groups, grid.groups, sizeof launch.groups);
        memcpy(launch.local, grid.local, sizeof launch.local);
        OK(lap_enqueue(j->r->queue, &launch, &err));
    }
    OK(lap_queue_finish(j->r->queue, &err));
}

/* ---- judging -------------------------------------------------------------------------------- */

/* A mean of integers has a finite binary fraction only over a power of two. */
static bool inexact_mean(const job *j) {
    int pixels = j->op.in.h * j->op.in.w;
    return j->c.fusion == LAP_FUSE_FC && (pixels & (pixels - 1)) != 0;
}

/* Of storing a value. */
static double rounding(const job *j, double v) {
    if (!is_short(j) || out_bytes(j) == sizeof(float)) return 0;
    return fabs(v) * (j->c.precision == LAP_FP16 ? 0x1.01p-11 : 0x1.01p-8) + 0x1p-25;
}

static double tolerance(const job *j, size_t i) {
    const lap_op *op = &j->op;
    if (op->kind == LAP_OP_MAXPOOL) return 0.0;
    double terms = (double)op->r * op->s * (op->kind == LAP_OP_AVGPOOL ? 1 : lap_op_depth(op));
    if (j->c.partner)
        terms += j->c.fusion == LAP_FUSE_POOL ? op->out.h * op->out.w : j->partner.in.c;
    int factor = j->row->error_factor ? j->row->error_factor : 1;
    return factor * 4.0 * sqrt(terms) * 0x1p-24 * j->bound[i] + rounding(j, j->y[i]);
}

/* An exact sum, then SiLU or sigmoid: within 16 units of roundoff of the result. */
static bool activated(const job *j, double want, float got) {
    if (lap_fusion_two_layers(j->c.fusion)) return false;
    return j->op.act > LAP_ACT_RELU &&
           fabs((double)got - want) <= 16 * 0x1p-24 * fabs(want) + 1e-30 + rounding(j, want);
}

static bool acceptable(const job *j, fill f, size_t i, float got) {
    double want = j->y[i];
    if (isnan(want)) return isnan(got);
    if (activated(j, want, got)) return true;
    /* Transforms spread NaN and infinity over a tile, which is no fault. */
    if (f == FILL_NAN && isnan(got) && strncmp(j->row->id, "conv_winograd", 13) == 0) return true;
    if (isinf(want)) return (double)got == want;
    bool two = lap_fusion_two_layers(j->c.fusion);
    if (f == FILL_NAN && two && got == (float)want) return true; /* the bound may be NaN */
    if (f == FILL_REAL || j->row->error_factor || inexact_mean(j) || two)
        return fabs((double)got - want) <= tolerance(j, i);
    return got == (out_bytes(j) == sizeof(float) ? (float)want : as_stored(j, want));
}

static void judge_mean(const job *j, const char *where) {
    size_t cs = (size_t)j->last->out.cs, channels = (size_t)j->last->out.c;
    size_t words = (size_t)j->c.n * cs;
    void *all = must_alloc(words, element_bytes(j));
    OK(lap_buffer_read(j->r->queue, j->out2, 0, all, words * element_bytes(j), &err));
    for (size_t i = 0; i < words; i++) {
        float got = get(j, all, i, element_bytes(j));
        size_t ch = i % cs, at = i / cs * channels + ch;
        double want = ch < channels ? j->mean[at] : 0.0, bound = 0.0;
        if (ch < channels)
            bound = j->mean_bound[at] * 4 * sqrt(j->last->out.h * j->last->out.w + j->op.in.c) *
                        0x1p-24 +
                    rounding(j, want);
        if (isnan(want) ? isnan(got) : isinf(want) || fabs((double)got - want) <= bound) continue;
        fail_msg("%s: mean of channel %zu: %.9g, should be %.9g", where, ch, (double)got, want);
    }
    free(all);
}

static void judge(const job *j, fill f, const char *where) {
    size_t words = out_words(j), bytes = words * out_bytes(j), guard = guard_bytes(j);
    size_t cs = (size_t)j->last->out.cs, channels = (size_t)j->last->out.c;
    char *all = must_alloc(bytes + 2 * guard, 1);
    OK(lap_buffer_read(j->r->queue, j->out, 0, all, bytes + 2 * guard, &err));
    for (size_t i = 0; i < 2 * guard; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, all + (i < guard ? i : bytes + i), sizeof word);
        if (word != GUARD_WORD) fail_msg("%s: guard byte %zu overwritten", where, i);
    }
    for (size_t i = 0; i < words; i++) {
        size_t pixel = i / cs, ch = i % cs;
        float got = get(j, all + guard, i, out_bytes(j));
        if (ch >= channels) { /* zero weights times NaN is NaN: allowed there */
            if (f != FILL_NAN && !(got == 0.0f))
                fail_msg("%s: pixel %zu, padding channel: %g", where, pixel, (double)got);
        } else if (!acceptable(j, f, pixel * channels + ch, got)) {
            fail_msg("%s: pixel %zu, channel %zu: %.9g, should be %.9g", where, pixel, ch,
                     (double)got, j->y[pixel * channels + ch]);
        }
    }
    free(all);
    if (j->mean) judge_mean(j, where);
}

/* The same bits again: nothing depends on the order in which groups run. */
static void judge_repeat(job *j, const char *where) {
    size_t bytes = out_words(j) * out_bytes(j);
    void *first = must_alloc(1, bytes), *again = must_alloc(1, bytes);
    OK(lap_buffer_read(j->r->queue, j->out_view, 0, first, bytes, &err));
    OK(lap_buffer_fill(j->r->queue, j->out_view, 0, bytes, POISON, &err));
    run_stages(j);
    OK(lap_buffer_read(j->r->queue, j->out_view, 0, again, bytes, &err));
    if (memcmp(first, again, bytes) != 0) fail_msg("%s: a second run gave other bits", where);
    free(first);
    free(again);
}

/* conv_matrix's text with its instructions in front, and where they exchange operands. */
static char *emulated(const char *text) {
    static const char begin[] = "const int flags) {\n";
    static const char room[] = "    __local uint emulated_room[THREADS * ROOM_WORDS];\n";
    FILE *file = fopen(MATRIX_INSTRUCTIONS, "rb");
    const char *body = strstr(text, begin);
    assert_true(file && body);
    char *all = must_alloc(strlen(text) + 20000, 1);
    size_t used = fread(all, 1, 16000, file);
    fclose(file);
    body += sizeof begin - 1;
    memcpy(all + used, text, (size_t)(body - text));
    used += (size_t)(body - text);
    strcpy(all + used, room);
    strcat(all + used, body);
    return all;
}

/* Builds the row for the case in j; false when a built kernel takes smaller groups only. */
static bool build_job(job *j) {
    bool fits = true;
    lap_define defines[LAP_MAX_DEFINES];
    size_t count = lap_kernel_defines(j->row, &j->c, defines);
    for (int s = 0; s < j->row->stage_count; s++) {
        const lap_stage *stage = &j->row->stages[s];
        if (stage->kind != LAP_STAGE_KERNEL) continue;
        lap_build build = {stage->stem, lap_kernel_source(j->r->info.language, stage->stem),
                           stage->entry, defines, count};
        char *text = strcmp(stage->stem, "conv_matrix") == 0 ? emulated(build.source) : NULL;
        if (text) build.source = text;
        OK(lap_kernel_build(j->r->device, &build, &j->kernels[s], &err));
        free(text);
        lap_grid grid = {0};
        assert_true(stage->grid(&j->c, &grid));
        fits &= grid.local[0] * grid.local[1] * grid.local[2] <=
                lap_kernel_get_info(j->kernels[s])->max_group_size;
    }
    return fits;
}

/* Runs all fills on the case in j. */
static void check_job(job *j) {
    static const char *const fills[] = {"exact", "real", "NaN"};
    char params[128], where[512];
    lap_kernel_params_text(j->row, &j->c.params, params, sizeof params);
    bool fits = build_job(j);
    for (int f = 0; fits && f < FILL_COUNT; f++) {
        snprintf(where, sizeof where, "%s [%s], %s data, n=%d c=%d %dx%d k=%d %dx%d/%d+%d, %d",
                 j->row->id, params, fills[f], (int)j->c.n, j->op.in.c, j->op.in.h, j->op.in.w,
                 j->op.out.c, j->op.r, j->op.s, j->op.stride, j->op.pad, j->partner.out.c);
        make_data(j, (fill)f);
        make_output(j);
        run_stages(j);
        judge(j, (fill)f, where);
        if (f == FILL_REAL) judge_repeat(j, where);
        free_data(j);
    }
    for (int s = 0; s < j->row->stage_count; s++) {
        lap_kernel_free(j->kernels[s]);
        j->kernels[s] = NULL;
    }
    j->r->checked += fits;
    j->r->skipped += !fits;
}

/* LAP_TEST_ROW in the environment: only rows whose name begins so. */
static bool asked_for(const rig *r, const lap_kernel_row *row) {
    const char *only = getenv("LAP_TEST_ROW");
    if (r->only && strncmp(row->id, r->only, strlen(r->only)) != 0) return false;
    return !only || strncmp(row->id, only, strlen(only)) == 0;
}

static bool start_job(job *j, rig *r, const lap_kernel_row *row, const shape *s) {
    memset(j, 0, sizeof *j);
    j->r = r;
    j->row = row;
    j->op = shape_op(s);
    j->partner = shape_partner(s, &j->op);
    j->c = (lap_case){.op = &j->op,
                      .fusion = s->fusion,
                      .partner = s->fusion ? &j->partner : NULL,
                      .device = &r->info,
                      .precision = r->precision,
                      .features = r->features,
                      .n = (uint64_t)s->n};
    if (!asked_for(r, row) || row->chain) return false;
    j->last = lap_fusion_partner_writes(s->fusion) ? &j->partner : &j->op;
    if (!lap_kernel_can_run(row, &j->c, r->has_gemm)) {
        r->tiny = r->info;
        r->tiny.units = 1;
        j->c.device = &r->tiny;
        /* Some rows are for NVIDIA GPUs, but run anywhere. */
        if (r->pretend && !lap_kernel_can_run(row, &j->c, r->has_gemm)) r->tiny.cc_major = 7;
        if (!lap_kernel_can_run(row, &j->c, r->has_gemm)) return false;
    }
    row->defaults(&j->c, &j->c.params);
    assert_true(row->valid(&j->c));
    return true;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_rows(rig *r, const int *indices, size_t index_count) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count * index_count; i++) {
        job j;
        const lap_kernel_row *row = rows[i / index_count];
        /* Done without pretence. */
        if (r->pretend && ((row->naive && !r->precision) || row->needs_gemm)) continue;
        size_t at = i % index_count;
        if (start_job(&j, r, row, &shapes[indices ? indices[at] : (int)at])) check_job(&j);
    }
}

static void defaults_on_all_shapes(void **state) {
    rig *r = *state;
    if (getenv("LAP_TEST_SMALL"))
        check_rows(r, small_shapes, (size_t)small_shape_count);
    else
        check_rows(r, NULL, (size_t)shape_count);
    if (!getenv("LAP_TEST_ROW")) assert_true(r->checked >= 4);
}

/* Each value of each tunable once, the others at their defaults. */
static void check_values(rig *r) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count; i++)
        for (int t = 0; t < rows[i]->tunable_count; t++)
            for (int v = 0; v < rows[i]->tunables[t].value_count; v++) {
                job j;
                const shape *s = &shapes[shape_for(rows[i]->kind, rows[i]->fusion)];
                if (r->pretend && rows[i]->needs_gemm) continue;
                if (!start_job(&j, r, rows[i], s)) continue;
                if (j.c.params.value[t] == rows[i]->tunables[t].values[v]) continue;
                j.c.params.value[t] = rows[i]->tunables[t].values[v];
                if (rows[i]->valid(&j.c)) check_job(&j);
            }
}

static void declared_values(void **state) {
    if (!getenv("LAP_TEST_SMALL")) check_values(*state);
}

static void gpu_rows_on_cpu(void **state) {
    rig *r = *state;
    if (r->info.type != LAP_DEVICE_CPU) return;
    rig gpu = *r;
    gpu.info.type = LAP_DEVICE_GPU;
    gpu.info.simd_width = 32;
    gpu.pretend = true;
    check_rows(&gpu, small_shapes, (size_t)small_shape_count);
    if (!getenv("LAP_TEST_SMALL")) check_values(&gpu);
    r->checked = gpu.checked;
    r->skipped = gpu.skipped;
}

/* Storage of 16 bits, on any device; on a CPU that is said to be a GPU. */
static void short_rows(void **state) {
    rig *r = *state, gpu = *r;
    static const lap_precision precisions[] = {LAP_FP16, LAP_BF16};
    gpu.pretend = r->info.type == LAP_DEVICE_CPU;
    gpu.info.type = LAP_DEVICE_GPU;
    if (gpu.pretend) gpu.info.simd_width = 32;
    for (int i = 0; i < 2; i++) {
        gpu.precision = precisions[i];
        check_rows(&gpu, small_shapes, (size_t)small_shape_count);
    }
    r->checked = gpu.checked;
    r->skipped = gpu.skipped;
}

/* conv_matrix in all its forms, with its instructions emulated; LAP_TEST_MATRIX=1234 in the
 * environment: that alone, in those forms, on more shapes and with other tiles. */
static void emulated_matrix(void **state) {
    static const int matrix_shapes[] = {2, 28, 4, 7, 12, 26, 40, 42};
    rig *r = *state, gpu = *r;
    if (r->info.type != LAP_DEVICE_CPU || strcmp(r->info.language, "cl") != 0) return;
    const char *forms = getenv("LAP_TEST_MATRIX");
    size_t count = forms ? sizeof matrix_shapes / sizeof matrix_shapes[0] : 2;
    gpu.pretend = true;
    gpu.only = "conv_matrix";
    gpu.info.type = LAP_DEVICE_GPU;
    gpu.info.units = 1; /* large tiles */
    gpu.info.max_group_size = 256;
    for (int form = 1; form <= LAP_MATRIX_FORMS; form++) {
        if (forms && !strchr(forms, '0' + form)) continue;
        strcpy(gpu.info.vendor, form <= 2 ? "AMD" : "Intel");
        gpu.precision = form % 2 ? LAP_FP16 : LAP_BF16;
        gpu.features = LAP_FEATURE_MATRIX(form, gpu.precision);
        check_rows(&gpu, matrix_shapes, count);
        gpu.only = "conv_matrix_down";
        if (forms) check_values(&gpu);
        gpu.only = "conv_matrix";
    }
    if (!getenv("LAP_TEST_ROW")) assert_true(gpu.checked >= r->checked + 8);
    r->checked = gpu.checked;
    r->skipped = gpu.skipped;
}

static int run_on(const lap_device_info *info) {
    rig r = {.info = *info};
    OK(lap_device_open(info, &r.device, &err));
    OK(lap_queue_new(r.device, &r.queue, &err));
    r.has_gemm = lap_device_has_gemm(r.device);
    printf("%s (%s)%s%s\n", info->name, info->selector, r.has_gemm ? ", " : "",
           r.has_gemm ? lap_device_gemm_name(r.device) : "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(defaults_on_all_shapes, &r),
        cmocka_unit_test_prestate(declared_values, &r),
        cmocka_unit_test_prestate(gpu_rows_on_cpu, &r),
        cmocka_unit_test_prestate(short_rows, &r),
        cmocka_unit_test_prestate(emulated_matrix, &r),
    };
    const struct CMUnitTest matrix[] = {cmocka_unit_test_prestate(emulated_matrix, &r)};
    int failed = getenv("LAP_TEST_MATRIX") ? cmocka_run_group_tests(matrix, NULL, NULL)
                                           : cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d checked, %d skipped: the built kernel takes no group of that size\n", r.checked,
           r.skipped);
    lap_queue_free(r.queue);
    if (failed == 0) OK(lap_device_close(r.device, &err)); /* nothing left alive */
    return failed;
}

int main(void) {
    lap_device_list *list;
    if (lap_device_enumerate(&list, &err) != LAP_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    int failed = 0, found = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->devices[i].backend, ROWS_BACKEND) != 0) continue;
        found++;
        failed += run_on(&list->devices[i]);
    }
    for (size_t i = 0; !found && i < list->note_count; i++)
        if (strcmp(list->notes[i].backend, ROWS_BACKEND) == 0)
            printf("skipped: %s\n", list->notes[i].reason);
    lap_device_list_free(list);
    if (!found) printf("skipped: no %s device\n", ROWS_BACKEND);
    return found ? failed != 0 : 77;
}
