/* Every kernel row on every device of one backend, op by op, against src/ref: integer data for
 * equal bits, real data within the rounding bound, NaN that must come through. Outputs are poisoned
 * and guarded. GPU rows also run on CPU devices here (told that it is a GPU), on few and small
 * shapes: slow, but their arithmetic is checked without a GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "device/device.h"
#include "kernel/kernel.h"
#include "ref/ref.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 16 /* words before and after the output */
#define GUARD_WORD 0x5a5aa5a5u
#define POISON 0x7fc0dead /* a NaN */

typedef enum fill { FILL_EXACT, FILL_REAL, FILL_NAN, FILL_COUNT } fill;

typedef struct rig {
    lap_device *device;
    lap_queue *queue;
    lap_device_info info; /* what rows are told; the type may be a pretence */
    bool pretend, has_gemm;
    int checked;
} rig;

typedef struct job { /* one row on one op */
    rig *r;
    const lap_kernel_row *row;
    lap_case c;
    lap_op op;
    lap_kernel *kernels[LAP_MAX_STAGES];
    double *x, *residual, *y, *bound; /* logical, as lap_ref_op wants them */
    lap_op_weights weights;
    lap_buffer *in, *out, *out_view, *res, *packed, *bias, *scratch;
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

/* ---- shapes --------------------------------------------------------------------------------- */

typedef struct shape {
    lap_op_kind kind;
    int n, c, h, w, k, r, s, stride, pad;
    bool relu, residual;
} shape;

static const shape shapes[] = {
    {LAP_OP_CONV, 2, 3, 13, 13, 10, 3, 3, 1, 1, true, true},
    {LAP_OP_CONV, 1, 3, 45, 57, 64, 7, 7, 2, 3, true, false},
    {LAP_OP_CONV, 3, 20, 7, 7, 100, 3, 3, 1, 1, true, true},
    {LAP_OP_CONV, 1, 64, 14, 28, 64, 3, 3, 1, 1, false, true},
    {LAP_OP_CONV, 2, 64, 13, 9, 64, 3, 3, 2, 1, true, false},
    {LAP_OP_CONV, 2, 64, 14, 14, 100, 1, 1, 2, 0, false, false},
    {LAP_OP_CONV, 1, 4, 9, 7, 64, 5, 5, 1, 0, true, true},
    {LAP_OP_CONV, 1, 20, 11, 30, 64, 5, 5, 2, 3, false, true},
    {LAP_OP_CONV, 3, 4, 1, 1, 10, 3, 3, 1, 1, false, false},
    {LAP_OP_CONV, 1, 5, 8, 3, 20, 4, 2, 1, 0, true, false},
    {LAP_OP_CONV, 1, 4, 6, 5, 12, 3, 3, 1, 3, true, false},   /* more border than window */
    {LAP_OP_CONV, 2, 32, 15, 13, 48, 3, 3, 1, 1, true, true}, /* odd sizes for tiles */
    {LAP_OP_CONV, 1, 16, 16, 11, 16, 3, 3, 1, 0, false, false},
    {LAP_OP_MAXPOOL, 2, 64, 15, 56, 64, 3, 3, 2, 1, false, false},
    {LAP_OP_MAXPOOL, 1, 3, 7, 7, 3, 2, 2, 2, 0, false, false},
    {LAP_OP_MAXPOOL, 3, 20, 5, 9, 20, 3, 3, 1, 1, false, false},
    {LAP_OP_AVGPOOL, 3, 512, 7, 7, 512, 7, 7, 1, 0, false, false},
    {LAP_OP_AVGPOOL, 1, 10, 5, 3, 10, 5, 3, 1, 0, false, false},
    {LAP_OP_FC, 1, 512, 1, 1, 1000, 1, 1, 1, 0, false, false},
    {LAP_OP_FC, 7, 64, 1, 1, 10, 1, 1, 1, 0, false, false},
    {LAP_OP_FC, 4, 20, 1, 1, 70, 1, 1, 1, 0, false, false},
};
/* Those on which a CPU stands in for a GPU, and all that a simulator gets. */
static const int small[] = {0, 5, 12, 15, 17, 19};

static lap_op make_op(const shape *s) {
    lap_op op = {.kind = s->kind, .relu = s->relu, .residual = s->residual ? 2 : -1};
    snprintf(op.name, sizeof op.name, "shape");
    op.in = (lap_tensor){s->c, s->h, s->w, (s->c + 3) / 4 * 4};
    op.out = (lap_tensor){s->k, 1, 1, (s->k + 3) / 4 * 4};
    if (s->kind == LAP_OP_CONV || s->kind == LAP_OP_MAXPOOL) {
        op.out.h = (s->h + 2 * s->pad - s->r) / s->stride + 1;
        op.out.w = (s->w + 2 * s->pad - s->s) / s->stride + 1;
    }
    op.r = s->r;
    op.s = s->s;
    op.stride = s->stride;
    op.pad = s->pad;
    return op;
}

/* ---- data ----------------------------------------------------------------------------------- */

static double value(fill f, uint64_t stream, size_t i) {
    double u = lap_rng_uniform(1, stream, i);
    return f == FILL_REAL ? (double)(float)(2.0 * u - 1.0) : floor(u * 17.0) - 8.0;
}

/* Logical doubles to stored floats; padding channels are zero, as whoever writes a tensor must. */
static lap_buffer *upload(job *j, const double *data, const lap_tensor *t, int images) {
    size_t pixels = (size_t)images * (size_t)t->h * (size_t)t->w;
    size_t cs = (size_t)t->cs, channels = (size_t)t->c;
    float *stored = must_alloc(pixels * cs, sizeof *stored);
    for (size_t p = 0; p < pixels; p++)
        for (size_t ch = 0; ch < channels; ch++)
            stored[p * cs + ch] = (float)data[p * channels + ch];
    lap_buffer *buffer;
    OK(lap_buffer_new(j->r->device, pixels * cs * sizeof *stored, &buffer, &err));
    OK(lap_buffer_write(j->r->queue, buffer, 0, stored, pixels * cs * sizeof *stored, &err));
    free(stored);
    return buffer;
}

static lap_buffer *upload_bytes(job *j, const void *data, size_t bytes) {
    lap_buffer *buffer;
    OK(lap_buffer_new(j->r->device, bytes, &buffer, &err));
    OK(lap_buffer_write(j->r->queue, buffer, 0, data, bytes, &err));
    return buffer;
}

static size_t out_words(const job *j) {
    return (size_t)j->c.n * (size_t)lap_tensor_stored(&j->op.out);
}

static void make_weights(job *j, fill f) {
    const lap_op *op = &j->op;
    size_t count = (size_t)lap_op_weight_count(op), k = (size_t)op->out.c;
    j->weights = (lap_op_weights){.w_count = count, .k = k};
    if (!count) return;
    j->weights.w = must_alloc(count, sizeof(float));
    j->weights.bias = must_alloc((size_t)op->out.cs, sizeof(float));
    for (size_t i = 0; i < count; i++)
        j->weights.w[i] = (float)value(f, 2, i);
    for (size_t i = 0; i < k; i++)
        j->weights.bias[i] = (float)value(f, 3, i);
    size_t bytes = j->row->packed_bytes(&j->c);
    unsigned char *packed = must_alloc(bytes + 64, 1);
    memset(packed, 0xff, bytes + 64); /* NaN, should the packer leave a hole */
    j->row->pack(&j->c, &j->weights, packed);
    for (size_t i = 0; i < 64; i++)
        if (packed[bytes + i] != 0xff) fail_msg("%s: packer wrote too much", j->row->id);
    j->packed = upload_bytes(j, packed, bytes);
    j->bias = upload_bytes(j, j->weights.bias, (size_t)op->out.cs * sizeof(float));
    free(packed);
}

static void make_data(job *j, fill f) {
    const lap_op *op = &j->op;
    int n = (int)j->c.n;
    size_t in_count = (size_t)n * (size_t)lap_tensor_logical(&op->in);
    size_t out_count = (size_t)n * (size_t)lap_tensor_logical(&op->out);
    j->x = must_alloc(in_count, sizeof(double));
    for (size_t i = 0; i < in_count; i++)
        j->x[i] = value(f, 1, i);
    if (f == FILL_NAN) {
        j->x[in_count / 2] = NAN;
        j->x[in_count - 1] = INFINITY;
    }
    j->in = upload(j, j->x, &op->in, n);
    if (op->residual >= 0) {
        j->residual = must_alloc(out_count, sizeof(double));
        for (size_t i = 0; i < out_count; i++)
            j->residual[i] = value(f, 4, i);
        j->res = upload(j, j->residual, &op->out, n);
    }
    make_weights(j, f);
    j->y = must_alloc(out_count, sizeof(double));
    j->bound = must_alloc(out_count, sizeof(double));
    OK(lap_ref_op(op, n, j->x, j->residual, j->weights.w ? &j->weights : NULL, j->y, j->bound,
                  &err));
    uint64_t scratch = j->row->scratch_bytes ? j->row->scratch_bytes(&j->c) : 0;
    if (scratch) { /* zero, as the plan provides it */
        OK(lap_buffer_new(j->r->device, (size_t)scratch, &j->scratch, &err));
        OK(lap_buffer_fill(j->r->queue, j->scratch, 0, (size_t)scratch, 0, &err));
    }
}

static void free_data(job *j) {
    lap_buffer *const buffers[] = {j->in,     j->out_view, j->out,    j->res,
                                   j->packed, j->bias,     j->scratch};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        lap_buffer_free(buffers[i]);
    free(j->x);
    free(j->residual);
    free(j->y);
    free(j->bound);
    free(j->weights.w);
    free(j->weights.bias);
    j->in = j->out = j->out_view = j->res = j->packed = j->bias = j->scratch = NULL;
    j->x = j->residual = j->y = j->bound = NULL;
    j->weights = (lap_op_weights){0};
}

/* ---- running -------------------------------------------------------------------------------- */

/* The guard in front must leave the output as aligned as the device wants its views. */
static size_t guard_bytes(const job *j) {
    size_t align = j->r->info.base_align_bytes ? j->r->info.base_align_bytes : 1;
    return (GUARD * sizeof(uint32_t) + align - 1) / align * align;
}

static void make_output(job *j) {
    size_t guard = guard_bytes(j), bytes = out_words(j) * sizeof(float);
    OK(lap_buffer_new(j->r->device, bytes + 2 * guard, &j->out, &err));
    OK(lap_buffer_fill(j->r->queue, j->out, 0, bytes + 2 * guard, GUARD_WORD, &err));
    OK(lap_buffer_fill(j->r->queue, j->out, guard, bytes, POISON, &err));
    OK(lap_buffer_view(j->out, guard, bytes, &j->out_view, &err));
}

static lap_buffer *role_buffer(const job *j, lap_role role) {
    switch (role) {
    case LAP_ROLE_IN:
        return j->in;
    case LAP_ROLE_OUT:
        return j->out_view;
    case LAP_ROLE_RESIDUAL:
        return j->res;
    case LAP_ROLE_WEIGHTS:
        return j->packed;
    case LAP_ROLE_BIAS:
        return j->bias;
    case LAP_ROLE_SCRATCH:
        return j->scratch;
    case LAP_ROLE_IN2: /* fused rows do not accept single ops */
    case LAP_ROLE_N:
    case LAP_ROLE_FLAGS:
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
        int32_t flags = (j->op.relu ? LAP_FLAG_RELU : 0) | (j->res ? LAP_FLAG_RESIDUAL : 0);
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

static double tolerance(const job *j, fill f, size_t i) {
    const lap_op *op = &j->op;
    if (f != FILL_REAL || op->kind == LAP_OP_MAXPOOL) return 0.0;
    double terms = (double)op->r * op->s * (op->kind == LAP_OP_AVGPOOL ? 1 : op->in.c);
    return 4.0 * sqrt(terms) * 0x1p-24 * j->bound[i];
}

static bool acceptable(const job *j, fill f, size_t i, float got) {
    double want = j->y[i];
    if (isnan(want)) return isnan(got);
    /* Transforms spread NaN and infinity over a tile, which is no fault. */
    if (f == FILL_NAN && isnan(got) && strncmp(j->row->id, "conv_winograd", 13) == 0) return true;
    if (isinf(want)) return (double)got == want;
    if (f == FILL_REAL) return fabs((double)got - want) <= tolerance(j, f, i);
    return got == (float)want;
}

static void judge(const job *j, fill f, const char *where) {
    size_t words = out_words(j), guard = guard_bytes(j) / sizeof(uint32_t);
    size_t cs = (size_t)j->op.out.cs, channels = (size_t)j->op.out.c;
    float *all = must_alloc(words + 2 * guard, sizeof *all);
    OK(lap_buffer_read(j->r->queue, j->out, 0, all, (words + 2 * guard) * sizeof *all, &err));
    for (size_t i = 0; i < guard * 2; i++) {
        uint32_t word;
        memcpy(&word, all + (i < guard ? i : words + i), sizeof word);
        if (word != GUARD_WORD) fail_msg("%s: guard word %zu overwritten", where, i);
    }
    for (size_t i = 0; i < words; i++) {
        size_t pixel = i / cs, ch = i % cs;
        float got = all[guard + i];
        if (ch >= channels) { /* zero weights times NaN is NaN: allowed there */
            if (f != FILL_NAN && !(got == 0.0f))
                fail_msg("%s: pixel %zu, padding channel: %g", where, pixel, (double)got);
        } else if (!acceptable(j, f, pixel * channels + ch, got)) {
            fail_msg("%s: pixel %zu, channel %zu: %.9g, should be %.9g", where, pixel, ch,
                     (double)got, j->y[pixel * channels + ch]);
        }
    }
    free(all);
}

/* Builds the row for the case in j and runs all fills. */
static void check_job(job *j) {
    static const char *const fills[] = {"exact", "real", "NaN"};
    char params[128], where[512];
    lap_kernel_params_text(j->row, &j->c.params, params, sizeof params);
    lap_define defines[LAP_MAX_DEFINES];
    size_t count = lap_kernel_defines(j->row, &j->c, defines);
    for (int s = 0; s < j->row->stage_count; s++) {
        const lap_stage *stage = &j->row->stages[s];
        if (stage->kind != LAP_STAGE_KERNEL) continue;
        lap_build build = {stage->stem, lap_kernel_source(j->r->info.language, stage->stem),
                           stage->entry, defines, count};
        OK(lap_kernel_build(j->r->device, &build, &j->kernels[s], &err));
    }
    for (int f = 0; f < FILL_COUNT; f++) {
        snprintf(where, sizeof where, "%s [%s], %s data, n=%d c=%d %dx%d k=%d %dx%d/%d+%d",
                 j->row->id, params, fills[f], (int)j->c.n, j->op.in.c, j->op.in.h, j->op.in.w,
                 j->op.out.c, j->op.r, j->op.s, j->op.stride, j->op.pad);
        make_data(j, (fill)f);
        make_output(j);
        run_stages(j);
        judge(j, (fill)f, where);
        free_data(j);
    }
    for (int s = 0; s < j->row->stage_count; s++) {
        lap_kernel_free(j->kernels[s]);
        j->kernels[s] = NULL;
    }
    j->r->checked++;
}

static bool start_job(job *j, rig *r, const lap_kernel_row *row, const shape *s) {
    memset(j, 0, sizeof *j);
    j->r = r;
    j->row = row;
    j->op = make_op(s);
    j->c = (lap_case){.op = &j->op, .device = &r->info, .n = (uint64_t)s->n};
    if (!lap_kernel_can_run(row, &j->c, r->has_gemm)) return false;
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
        if (r->pretend && (row->naive || row->needs_gemm)) continue; /* done without pretence */
        size_t at = i % index_count;
        if (start_job(&j, r, row, &shapes[indices ? indices[at] : (int)at])) check_job(&j);
    }
}

static void defaults_on_all_shapes(void **state) {
    rig *r = *state;
    if (getenv("LAP_TEST_SMALL"))
        check_rows(r, small, sizeof small / sizeof small[0]);
    else
        check_rows(r, NULL, sizeof shapes / sizeof shapes[0]);
    assert_true(r->checked >= 4);
}

/* Each value of each tunable once, the others at their defaults. */
static void declared_values(void **state) {
    rig *r = *state;
    if (getenv("LAP_TEST_SMALL")) return;
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    static const int one_of_kind[LAP_OP_KIND_COUNT] = {11, 13, 16, 20};
    for (size_t i = 0; i < count; i++)
        for (int t = 0; t < rows[i]->tunable_count; t++)
            for (int v = 0; v < rows[i]->tunables[t].value_count; v++) {
                job j;
                if (!start_job(&j, r, rows[i], &shapes[one_of_kind[rows[i]->kind]])) continue;
                if (j.c.params.value[t] == rows[i]->tunables[t].values[v]) continue;
                j.c.params.value[t] = rows[i]->tunables[t].values[v];
                if (rows[i]->valid(&j.c)) check_job(&j);
            }
}

static void gpu_rows_on_cpu(void **state) {
    rig *r = *state;
    if (r->info.type != LAP_DEVICE_CPU) return;
    rig gpu = *r;
    gpu.info.type = LAP_DEVICE_GPU;
    gpu.info.simd_width = 32;
    gpu.pretend = true;
    check_rows(&gpu, small, sizeof small / sizeof small[0]);
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
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
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
