/* Data of a row's test: in, weights, and by the reference what should come out (see rows_job.h). */
#include "rows_job.h"

#include "base/half.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

lap_error job_err;

void job_ok(lap_status status, const char *what) {
    if (status == LAP_OK) return;
    char text[2048];
    lap_error_text(&job_err, text, sizeof text);
    fail_msg("%s: %s: %s", what, lap_status_name(status), text);
}

void *must_alloc(size_t count, size_t size) {
    void *p = calloc(count ? count : 1, size);
    assert_non_null(p);
    return p;
}

static double value(fill f, uint64_t stream, size_t i) {
    double u = lap_rng_uniform(1, stream, i);
    return f == FILL_REAL ? (double)(float)(2.0 * u - 1.0) : floor(u * 17.0) - 8.0;
}

bool job_is_short(const job *j) {
    return j->c.precision == LAP_FP16 || j->c.precision == LAP_BF16;
}

/* What storage makes of a value. */
float job_as_stored(const job *j, double v) {
    if (j->c.precision == LAP_FP16) return lap_half_to_float(lap_half_from_float((float)v));
    if (j->c.precision == LAP_BF16) return lap_bf16_to_float(lap_bf16_from_float((float)v));
    return (float)v;
}

size_t job_element_bytes(const job *j) {
    return job_is_short(j) ? sizeof(uint16_t) : sizeof(float);
}

/* The network's result is float in every precision. */
size_t job_out_bytes(const job *j) {
    return j->last->kind == LAP_OP_FC ? sizeof(float) : job_element_bytes(j);
}

static void put(const job *j, void *to, size_t i, double v) {
    uint16_t bits =
        j->c.precision == LAP_FP16 ? lap_half_from_float((float)v) : lap_bf16_from_float((float)v);
    if (job_is_short(j))
        ((uint16_t *)to)[i] = bits;
    else
        ((float *)to)[i] = (float)v;
}

float job_get(const job *j, const void *from, size_t i, size_t bytes) {
    if (bytes == sizeof(float)) return ((const float *)from)[i];
    uint16_t bits = ((const uint16_t *)from)[i];
    return j->c.precision == LAP_FP16 ? lap_half_to_float(bits) : lap_bf16_to_float(bits);
}

static lap_buffer *upload_bytes(job *j, const void *data, size_t bytes) {
    lap_buffer *buffer;
    OK(lap_buffer_new(j->r->device, bytes, &buffer, &job_err));
    OK(lap_buffer_write(j->r->queue, buffer, 0, data, bytes, &job_err));
    return buffer;
}

/* Logical doubles to stored elements; padding channels are zero, as whoever writes a tensor must.
 */
static lap_buffer *upload(job *j, const double *data, const lap_tensor *t, int images) {
    size_t pixels = (size_t)images * (size_t)t->h * (size_t)t->w;
    size_t cs = (size_t)t->cs, channels = (size_t)t->c;
    void *stored = must_alloc(pixels * cs, job_element_bytes(j));
    for (size_t p = 0; p < pixels; p++)
        for (size_t ch = 0; ch < channels; ch++)
            put(j, stored, p * cs + ch, data[p * channels + ch]);
    lap_buffer *buffer = upload_bytes(j, stored, pixels * cs * job_element_bytes(j));
    free(stored);
    return buffer;
}

size_t job_out_words(const job *j) {
    return (size_t)j->c.n * (size_t)lap_tensor_stored(&j->last->out);
}

static lap_op_weights op_weights(const job *j, const lap_op *op, fill f, uint64_t stream) {
    size_t count = (size_t)lap_op_weight_count(op), k = (size_t)op->out.c;
    lap_op_weights w = {.w_count = count, .k = k};
    if (!count) return w;
    w.w = must_alloc(count, sizeof(float));
    w.bias = must_alloc((size_t)op->out.cs, sizeof(float));
    for (size_t i = 0; i < count; i++)
        w.w[i] = job_as_stored(j, value(f, stream, i));
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
        x[i] = (double)job_as_stored(j, value(f, stream, i));
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
                      j->bound, &job_err));
        break;
    case LAP_FUSE_POOL:
        OK(lap_ref_op(op, n, j->x, NULL, w, j->y, j->bound, &job_err));
        j->mean = must_alloc((size_t)(n * op->out.c), sizeof(double));
        j->mean_bound = must_alloc((size_t)(n * op->out.c), sizeof(double));
        OK(lap_ref_op(partner, n, j->bound, NULL, NULL, j->mean_bound, NULL, &job_err));
        OK(lap_ref_op(partner, n, j->y, NULL, NULL, j->mean, NULL, &job_err));
        break;
    case LAP_FUSE_EXPAND: {
        lap_op pool = pool_behind(partner);
        size_t means = (size_t)(n * partner->out.c);
        j->mean = must_alloc(means, sizeof(double));
        j->mean_bound = must_alloc(means, sizeof(double));
        OK(lap_ref_op(op, n, j->x, NULL, w, y, scale, &job_err));
        OK(lap_ref_op(partner, n, scale, NULL, w2, j->y, j->bound, &job_err));
        OK(lap_ref_op(partner, n, y, NULL, w2, j->y, NULL, &job_err));
        OK(lap_ref_op(&pool, n, j->bound, NULL, NULL, j->mean_bound, NULL, &job_err));
        OK(lap_ref_op(&pool, n, j->y, NULL, NULL, j->mean, NULL, &job_err));
        break;
    }
    case LAP_FUSE_SCALE:
        OK(lap_ref_op(partner, n, j->x, j->x2, NULL, y, NULL, &job_err));
        OK(lap_ref_op(op, n, y, j->residual, w, j->y, j->bound, &job_err));
        break;
    case LAP_FUSE_DOWNSAMPLE: /* the bounds add; y counts twice, which is harmless */
        OK(lap_ref_op(partner, n, j->x2, NULL, w2, y, scale, &job_err));
        OK(lap_ref_op(op, n, j->x, y, w, j->y, j->bound, &job_err));
        for (size_t i = 0; i < count; i++)
            j->bound[i] += scale[i];
        break;
    case LAP_FUSE_MAXPOOL: /* a maximum is off by at most the largest error in its window */
        OK(lap_ref_op(op, n, j->x, j->residual, w, y, scale, &job_err));
        OK(lap_ref_op(partner, n, scale, NULL, NULL, j->bound, NULL, &job_err));
        OK(lap_ref_op(partner, n, y, NULL, NULL, j->y, NULL, &job_err));
        break;
    case LAP_FUSE_EXCITE:
    case LAP_FUSE_FC: /* the scale of a mean stands for the mean */
        OK(lap_ref_op(op, n, j->x, NULL, w, y, scale, &job_err));
        OK(lap_ref_op(partner, n, scale, NULL, w2, j->y, j->bound, &job_err));
        OK(lap_ref_op(partner, n, y, NULL, w2, j->y, NULL, &job_err));
        break;
    case LAP_FUSE_COUNT:
        break;
    }
    free(y);
    free(scale);
}

void job_make_data(job *j, fill f) {
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
        OK(lap_buffer_new(j->r->device, (size_t)scratch, &j->scratch, &job_err));
        OK(lap_buffer_fill(j->r->queue, j->scratch, 0, (size_t)scratch, 0, &job_err));
    }
}

void job_free_data(job *j) {
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
