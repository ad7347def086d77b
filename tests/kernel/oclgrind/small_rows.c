/* Runs every kernel row on tiny shapes, for a run under Oclgrind, which reports bad accesses, races
 * and uninitialised reads. Results are not judged here (rows_device.c does that) and library GEMMs
 * are left out. GPU rows and CPU rows both run: the device is said to be either.
 * Usage: small_rows whole|split. whole: no row splits a sum between groups. split: only rows that
 * can, made to. Oclgrind knows no order between groups of one launch, so it takes the tickets that
 * order their partial sums for races. Prints the device and how many launches ran. */
#include "device/device.h"
#include "kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPLIT 3

typedef struct shape {
    lap_op_kind kind;
    int n, c, h, w, k, r, s, stride, pad;
    lap_activation act;
    bool residual;
    /* Window of the max-pool (step 2, border 1), input channels of the 1x1 convolution (step 2), or
     * outputs of the layer. */
    lap_fusion fusion;
    int size2;
} shape;

#define NONE LAP_ACT_NONE
#define RELU LAP_ACT_RELU
#define ALONE LAP_FUSE_NONE, 0

static const shape shapes[] = {
    {LAP_OP_CONV, 2, 5, 4, 3, 6, 3, 3, 1, 1, RELU, true, ALONE},
    {LAP_OP_CONV, 1, 16, 5, 5, 36, 3, 3, 2, 1, NONE, false, ALONE},
    {LAP_OP_CONV, 1, 3, 9, 7, 16, 7, 7, 2, 3, RELU, false, ALONE},
    {LAP_OP_CONV, 2, 16, 5, 4, 20, 1, 1, 2, 0, NONE, true, ALONE},
    /* Enough tiles, and whole vectors of channels, for the Winograd rows. */
    {LAP_OP_CONV, 1, 16, 23, 22, 16, 3, 3, 1, 1, RELU, true, ALONE},
    {LAP_OP_CONV, 1, 16, 23, 22, 16, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 8},
    {LAP_OP_MAXPOOL, 2, 6, 5, 4, 6, 3, 3, 2, 1, NONE, false, ALONE},
    {LAP_OP_AVGPOOL, 2, 10, 3, 3, 10, 3, 3, 1, 0, NONE, false, ALONE},
    {LAP_OP_AVGPOOL, 1, 16, 5, 4, 16, 5, 4, 1, 0, NONE, false, ALONE},
    {LAP_OP_FC, 3, 18, 1, 1, 7, 1, 1, 1, 0, NONE, false, ALONE},
    {LAP_OP_FC, 33, 34, 1, 1, 10, 1, 1, 1, 0, NONE, false, ALONE},
    {LAP_OP_CONV, 2, 3, 13, 11, 10, 7, 7, 2, 3, RELU, false, LAP_FUSE_MAXPOOL, 3},
    {LAP_OP_CONV, 2, 10, 4, 3, 20, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 6},
    {LAP_OP_AVGPOOL, 3, 34, 3, 3, 34, 3, 3, 1, 0, NONE, false, LAP_FUSE_FC, 7},
    {LAP_OP_DWCONV, 2, 20, 5, 6, 20, 3, 3, 1, 1, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_DWCONV, 1, 10, 7, 5, 10, 5, 5, 2, 2, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_DWCONV, 2, 20, 5, 6, 20, 3, 3, 1, 1, LAP_ACT_SILU, false, LAP_FUSE_POOL, 0},
    {LAP_OP_DWCONV, 1, 10, 7, 5, 10, 5, 5, 2, 2, LAP_ACT_SILU, false, LAP_FUSE_POOL, 0},
    {LAP_OP_SCALE, 2, 10, 4, 3, 10, 1, 1, 1, 0, NONE, true, ALONE},
    {LAP_OP_CONV, 1, 3, 9, 7, 32, 3, 3, 2, 1, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_CONV, 3, 20, 1, 1, 6, 1, 1, 1, 0, LAP_ACT_SILU, false, LAP_FUSE_EXCITE, 20},
    {LAP_OP_CONV, 2, 20, 5, 3, 12, 1, 1, 1, 0, NONE, true, LAP_FUSE_SCALE, 0},
    {LAP_OP_CONV, 2, 6, 5, 9, 20, 1, 1, 1, 0, LAP_ACT_SILU, false, LAP_FUSE_EXPAND, 3},
    {LAP_OP_CONV, 1, 6, 7, 6, 16, 1, 1, 1, 0, RELU, false, LAP_FUSE_EXPAND, 5},
};

typedef struct rig {
    lap_device *device;
    lap_queue *queue;
    lap_device_info info;
    lap_error err;
    int launches;
} rig;

static void fail(rig *r, const char *what) {
    char text[2048];
    lap_error_text(&r->err, text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static lap_op make_op(const shape *s) {
    lap_op op = {.kind = s->kind,
                 .name = "small",
                 .act = s->act,
                 .residual = s->residual ? 1 : -1,
                 .in = {s->c, s->h, s->w, (s->c + 3) / 4 * 4},
                 .out = {s->k, 1, 1, (s->k + 3) / 4 * 4},
                 .r = s->r,
                 .s = s->s,
                 .stride = s->stride,
                 .pad = s->pad};
    if (s->kind != LAP_OP_AVGPOOL && s->kind != LAP_OP_FC) {
        op.out.h = (s->h + 2 * s->pad - s->r) / s->stride + 1;
        op.out.w = (s->w + 2 * s->pad - s->s) / s->stride + 1;
    }
    return op;
}

static lap_op make_partner(const shape *s, const lap_op *op) {
    lap_op p = {.name = "partner", .residual = -1, .r = 1, .s = 1, .stride = 2, .in = op->out};
    p.out = op->out;
    if (s->fusion == LAP_FUSE_MAXPOOL) {
        p.kind = LAP_OP_MAXPOOL;
        p.r = p.s = s->size2;
        p.pad = 1;
        p.out.h = (op->out.h + 2 - p.r) / 2 + 1;
        p.out.w = (op->out.w + 2 - p.s) / 2 + 1;
    } else if (s->fusion == LAP_FUSE_DOWNSAMPLE) {
        p.kind = LAP_OP_CONV;
        p.in = (lap_tensor){s->size2, 2 * op->out.h - 1, 2 * op->out.w, (s->size2 + 3) / 4 * 4};
    } else if (s->fusion == LAP_FUSE_EXPAND) {
        p.kind = LAP_OP_DWCONV;
        p.act = op->act;
        p.r = p.s = s->size2;
        p.pad = s->size2 / 2;
        p.out.h = (op->out.h + 2 * p.pad - p.r) / 2 + 1;
        p.out.w = (op->out.w + 2 * p.pad - p.s) / 2 + 1;
    } else if (s->fusion == LAP_FUSE_POOL) {
        p.kind = LAP_OP_AVGPOOL;
        p.r = op->out.h, p.s = op->out.w, p.stride = 1;
        p.out.h = p.out.w = 1;
    } else if (s->fusion == LAP_FUSE_SCALE) {
        p.kind = LAP_OP_SCALE;
        p.residual = 3;
        p.in = p.out = op->in;
    } else if (s->fusion == LAP_FUSE_EXCITE) {
        p.kind = LAP_OP_CONV;
        p.act = LAP_ACT_SIGMOID;
        p.stride = 1;
        p.out = (lap_tensor){s->size2, 1, 1, (s->size2 + 3) / 4 * 4};
    } else {
        p.kind = LAP_OP_FC;
        p.stride = 1;
        p.out = (lap_tensor){s->size2, 1, 1, (s->size2 + 3) / 4 * 4};
    }
    return p;
}

/* Written, not filled: Oclgrind takes filled memory for uninitialised. */
static lap_buffer *upload(rig *r, const void *data, size_t bytes) {
    lap_buffer *buffer;
    if (lap_buffer_new(r->device, bytes, &buffer, &r->err) != LAP_OK ||
        lap_buffer_write(r->queue, buffer, 0, data, bytes, &r->err) != LAP_OK)
        fail(r, "buffer");
    return buffer;
}

static lap_buffer *zeros(rig *r, size_t bytes) {
    void *data = calloc(bytes, 1);
    if (!data) exit(1);
    lap_buffer *buffer = upload(r, data, bytes);
    free(data);
    return buffer;
}

static lap_op_weights zero_weights(const lap_op *op) {
    lap_op_weights w = {.w_count = (size_t)lap_op_weight_count(op), .k = (size_t)op->out.c};
    w.w = calloc(w.w_count + 1, sizeof(float));
    w.bias = calloc(w.k, sizeof(float));
    if (!w.w || !w.bias) exit(1);
    return w;
}

static lap_buffer *packed_weights(rig *r, const lap_kernel_row *row, const lap_case *c) {
    if (!row->packed_bytes) return NULL;
    lap_op_weights w = zero_weights(c->op), w2 = zero_weights(c->partner ? c->partner : c->op);
    size_t bytes = row->packed_bytes(c);
    void *packed = malloc(bytes);
    if (!packed) exit(1);
    if (c->partner)
        row->pack_fused(c, &w, &w2, packed);
    else
        row->pack(c, &w, packed);
    lap_buffer *buffer = zeros(r, bytes);
    if (lap_buffer_write(r->queue, buffer, 0, packed, bytes, &r->err) != LAP_OK) fail(r, "weights");
    free(packed);
    free(w.w);
    free(w.bias);
    free(w2.w);
    free(w2.bias);
    return buffer;
}

static void launch(rig *r, const lap_kernel_row *row, const lap_case *c, const lap_stage *stage,
                   lap_buffer *const buffers[]) {
    lap_define defines[LAP_MAX_DEFINES];
    size_t count = lap_kernel_defines(row, c, defines);
    lap_build build = {stage->stem, lap_kernel_source(r->info.language, stage->stem), stage->entry,
                       defines, count};
    lap_kernel *kernel;
    if (lap_kernel_build(r->device, &build, &kernel, &r->err) != LAP_OK) fail(r, row->id);
    int flags = (c->op->act == LAP_ACT_RELU ? LAP_FLAG_RELU : 0) |
                (buffers[LAP_ROLE_RESIDUAL] ? LAP_FLAG_RESIDUAL : 0);
    lap_arg args[LAP_MAX_ROLES] = {0};
    for (int i = 0; i < stage->role_count; i++) {
        lap_role role = stage->roles[i];
        if (role == LAP_ROLE_N || role == LAP_ROLE_FLAGS)
            args[i] = (lap_arg){.kind = LAP_ARG_I32, .i32 = role == LAP_ROLE_N ? (int)c->n : flags};
        else
            args[i] = (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = buffers[role]};
    }
    lap_grid grid = {0};
    if (!stage->grid(c, &grid)) exit(1);
    lap_launch l = {.kernel = kernel, .args = args, .arg_count = (size_t)stage->role_count};
    memcpy(l.groups, grid.groups, sizeof l.groups);
    memcpy(l.local, grid.local, sizeof l.local);
    if (lap_enqueue(r->queue, &l, &r->err) != LAP_OK ||
        lap_queue_finish(r->queue, &r->err) != LAP_OK)
        fail(r, row->id);
    lap_kernel_free(kernel);
    r->launches++;
}

static void run_row(rig *r, const lap_kernel_row *row, const lap_case *c) {
    lap_buffer *buffers[LAP_ROLE_FLAGS + 1] = {0};
    const lap_tensor *to = lap_fusion_partner_writes(c->fusion) ? &c->partner->out : &c->op->out;
    size_t n = (size_t)c->n, in = n * (size_t)lap_tensor_stored(&c->op->in) * sizeof(float);
    size_t out = n * (size_t)lap_tensor_stored(to) * sizeof(float);
    uint64_t scratch = row->scratch_bytes ? row->scratch_bytes(c) : 0;
    buffers[LAP_ROLE_IN] = zeros(r, in);
    buffers[LAP_ROLE_OUT] = zeros(r, out);
    if (c->fusion == LAP_FUSE_DOWNSAMPLE)
        buffers[LAP_ROLE_IN2] =
            zeros(r, n * (size_t)lap_tensor_stored(&c->partner->in) * sizeof(float));
    else if (c->op->residual >= 0 && c->op->kind != LAP_OP_SCALE)
        buffers[LAP_ROLE_RESIDUAL] = zeros(r, out);
    if (c->op->kind == LAP_OP_SCALE || c->fusion == LAP_FUSE_SCALE)
        buffers[LAP_ROLE_IN2] = zeros(r, n * (size_t)c->op->in.cs * sizeof(float));
    if (c->fusion == LAP_FUSE_POOL || c->fusion == LAP_FUSE_EXPAND)
        buffers[LAP_ROLE_OUT2] = zeros(r, n * (size_t)c->partner->out.cs * sizeof(float));
    buffers[LAP_ROLE_WEIGHTS] = packed_weights(r, row, c);
    buffers[LAP_ROLE_BIAS] = zeros(r, (size_t)(c->op->out.cs + to->cs) * sizeof(float));
    if (scratch) buffers[LAP_ROLE_SCRATCH] = zeros(r, (size_t)scratch);
    for (int s = 0; s < row->stage_count; s++)
        if (row->stages[s].kind == LAP_STAGE_KERNEL) launch(r, row, c, &row->stages[s], buffers);
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        lap_buffer_free(buffers[i]);
}

/* Sets the row's number of parts (of a sum's depth, or of the lines whose means are taken); false
 * when the row should not run in this mode. */
static bool set_split(const lap_kernel_row *row, lap_case *c, bool split) {
    for (int i = 0; i < row->tunable_count; i++) {
        const char *name = row->tunables[i].name;
        if (strcmp(name, "SPLITK") == 0) {
            c->params.value[i] = split ? SPLIT : 1;
            return row->valid(c);
        }
        if (strcmp(name, "ROWS") == 0 && c->fusion == LAP_FUSE_POOL) {
            c->params.value[i] = split ? (c->op->out.h + 1) / 2 : c->op->out.h;
            return row->valid(c);
        }
    }
    return !split;
}

static void run_all(rig *r, lap_device_type type, bool split) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    r->info.type = type;
    r->info.simd_width = type == LAP_DEVICE_GPU ? 32 : 8;
    for (size_t i = 0; i < count; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            lap_op op = make_op(&shapes[s]), partner = make_partner(&shapes[s], &op);
            lap_case c = {.op = &op,
                          .fusion = shapes[s].fusion,
                          .partner = shapes[s].fusion ? &partner : NULL,
                          .device = &r->info,
                          .n = (uint64_t)shapes[s].n};
            const char *only = getenv("LAP_TEST_ROW"); /* names that begin so */
            if (only && strncmp(rows[i]->id, only, strlen(only)) != 0) continue;
            if (rows[i]->naive && type == LAP_DEVICE_GPU) continue; /* the same on both */
            if (!lap_kernel_can_run(rows[i], &c, true)) continue;
            rows[i]->defaults(&c, &c.params);
            if (set_split(rows[i], &c, split)) run_row(r, rows[i], &c);
        }
}

int main(int argc, char **argv) {
    bool split = argc == 2 && strcmp(argv[1], "split") == 0;
    if (!split && (argc != 2 || strcmp(argv[1], "whole") != 0)) {
        fprintf(stderr, "usage: small_rows whole|split\n");
        return 2;
    }
    rig r = {0};
    lap_device_list *list;
    if (lap_device_enumerate(&list, &r.err) != LAP_OK) fail(&r, "devices");
    size_t at = 0;
    while (at < list->count && strcmp(list->devices[at].backend, "opencl") != 0)
        at++;
    if (at == list->count) {
        printf("no OpenCL device\n");
        return 1;
    }
    r.info = list->devices[at];
    r.info.units = 1; /* so that rows for full devices run */
    printf("device: %s\n", r.info.name);
    if (lap_device_open(&r.info, &r.device, &r.err) != LAP_OK ||
        lap_queue_new(r.device, &r.queue, &r.err) != LAP_OK)
        fail(&r, "open");
    run_all(&r, LAP_DEVICE_GPU, split);
    run_all(&r, LAP_DEVICE_CPU, split);
    printf("launches: %d\n", r.launches);
    lap_queue_free(r.queue);
    lap_device_list_free(list);
    return lap_device_close(r.device, &r.err) != LAP_OK || r.launches == 0;
}
