/* Runs every kernel row, in every precision, on tiny shapes, for a run under a checker of device
 * code: Oclgrind (races, uninitialised reads) or compute-sanitizer (memcheck, racecheck, initcheck,
 * synccheck). Values are not judged here (rows_judge.c does that); library GEMMs are left out, and
 * chains, which only whole networks have. Outputs, and scratch that may hold garbage, are not
 * written before; outputs are read back. GPU rows and CPU rows both run: the device is said to be
 * either.
 *
 * small_rows BACKEND whole|split|both [ROW]: runs them, or this row only, and prints the device and
 * how many launches ran. whole: no row splits a sum between groups. split: only rows that can, made
 * to; Oclgrind knows no order between groups of one launch, so it takes the tickets that order
 * their partial sums for races.
 *
 * small_rows BACKEND list: the rows that run so; needs no device.
 *
 * small_rows cuda planted-TOOL: one kernel with the fault that TOOL of compute-sanitizer finds.
 *
 * Environment: LAP_TEST_ROW: rows whose names begin so. LAP_TEST_PRECISIONS: these, separated by
 * blanks. LAP_TEST_ONE_SHAPE: of the shapes that a row takes, only the first. LAP_TEST_CACHE: a
 * folder for built kernels. */
#include "device/build_cache.h"
#include "device/device.h"
#include "kernel/kernel.h"
#include "kernel/probe.h"
#include "kernel/rows.h"

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
    /* Enough tiles, and whole vectors of channels, for the Winograd rows; the others do without:
     * these are large for a simulator. */
    {LAP_OP_CONV, 1, 16, 23, 22, 16, 3, 3, 1, 1, RELU, true, ALONE},
    {LAP_OP_CONV, 1, 16, 23, 22, 16, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 8},
    {LAP_OP_CONV, 2, 5, 4, 3, 6, 3, 3, 1, 1, RELU, true, ALONE},
    {LAP_OP_CONV, 1, 16, 5, 5, 36, 3, 3, 2, 1, NONE, false, ALONE},
    {LAP_OP_CONV, 1, 3, 9, 7, 16, 7, 7, 2, 3, RELU, false, ALONE},
    {LAP_OP_CONV, 2, 16, 5, 4, 20, 1, 1, 2, 0, NONE, true, ALONE},
    {LAP_OP_MAXPOOL, 2, 6, 5, 4, 6, 3, 3, 2, 1, NONE, false, ALONE},
    {LAP_OP_AVGPOOL, 2, 10, 3, 3, 10, 3, 3, 1, 0, NONE, false, ALONE},
    {LAP_OP_AVGPOOL, 1, 16, 5, 4, 16, 5, 4, 1, 0, NONE, false, ALONE},
    {LAP_OP_FC, 3, 18, 1, 1, 7, 1, 1, 1, 0, NONE, false, ALONE},
    {LAP_OP_FC, 33, 34, 1, 1, 10, 1, 1, 1, 0, NONE, false, ALONE},
    {LAP_OP_CONV, 2, 3, 13, 11, 10, 7, 7, 2, 3, RELU, false, LAP_FUSE_MAXPOOL, 3},
    {LAP_OP_CONV, 2, 10, 4, 3, 20, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 6},
    {LAP_OP_AVGPOOL, 3, 34, 3, 3, 34, 3, 3, 1, 0, NONE, false, LAP_FUSE_FC, 7},
    {LAP_OP_AVGPOOL, 2, 32, 3, 2, 32, 3, 2, 1, 0, NONE, false, LAP_FUSE_FC, 7},
    {LAP_OP_DWCONV, 2, 20, 5, 6, 20, 3, 3, 1, 1, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_DWCONV, 1, 10, 7, 5, 10, 5, 5, 2, 2, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_DWCONV, 2, 20, 5, 6, 20, 3, 3, 1, 1, LAP_ACT_SILU, false, LAP_FUSE_POOL, 0},
    {LAP_OP_DWCONV, 1, 10, 7, 5, 10, 5, 5, 2, 2, LAP_ACT_SILU, false, LAP_FUSE_POOL, 0},
    /* Enough threads for dwconv_r, once with its weights in local memory. */
    {LAP_OP_DWCONV, 9, 36, 5, 6, 36, 3, 3, 1, 1, LAP_ACT_SILU, false, LAP_FUSE_POOL, 0},
    {LAP_OP_DWCONV, 11, 14, 2, 11, 14, 5, 5, 1, 2, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_SCALE, 2, 10, 4, 3, 10, 1, 1, 1, 0, NONE, true, ALONE},
    {LAP_OP_CONV, 1, 3, 9, 7, 32, 3, 3, 2, 1, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_CONV, 3, 20, 1, 1, 6, 1, 1, 1, 0, LAP_ACT_SILU, false, LAP_FUSE_EXCITE, 20},
    {LAP_OP_CONV, 2, 20, 5, 3, 12, 1, 1, 1, 0, NONE, true, LAP_FUSE_SCALE, 0},
    {LAP_OP_CONV, 2, 6, 5, 9, 20, 1, 1, 1, 0, LAP_ACT_SILU, false, LAP_FUSE_EXPAND, 3},
    {LAP_OP_CONV, 1, 6, 7, 6, 16, 1, 1, 1, 0, RELU, false, LAP_FUSE_EXPAND, 5},
    /* For matrix instructions. */
    {LAP_OP_CONV, 2, 32, 7, 6, 64, 3, 3, 1, 1, RELU, true, ALONE},
    {LAP_OP_CONV, 3, 64, 9, 9, 72, 3, 3, 2, 1, NONE, false, ALONE},
    {LAP_OP_CONV, 2, 64, 5, 6, 64, 3, 3, 1, 1, RELU, true, LAP_FUSE_DOWNSAMPLE, 32},
    {LAP_OP_CONV, 2, 32, 5, 6, 96, 1, 1, 1, 0, LAP_ACT_SILU, false, ALONE},
    {LAP_OP_CONV, 2, 48, 5, 3, 24, 1, 1, 1, 0, NONE, true, LAP_FUSE_SCALE, 0},
    {LAP_OP_CONV, 2, 3, 20, 23, 64, 7, 7, 2, 3, RELU, false, ALONE},
    {LAP_OP_CONV, 2, 3, 20, 23, 64, 7, 7, 2, 3, RELU, false, LAP_FUSE_MAXPOOL, 3},
    {LAP_OP_FC, 130, 128, 1, 1, 64, 1, 1, 1, 0, NONE, false, ALONE},
    {LAP_OP_CONV, 16, 64, 16, 16, 64, 3, 3, 1, 1, RELU, true, ALONE},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0], WINOGRAD_SHAPES = 2, PLAIN_SHAPES = SHAPES - 9 };

typedef struct rig {
    lap_device *device;
    lap_queue *queue;
    lap_device_info info;
    unsigned features;
    lap_error err;
    const char *only; /* the row asked for, NULL for all */
    bool count_only;  /* no device: count the launches */
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

static lap_buffer *unwritten(rig *r, size_t bytes) {
    lap_buffer *buffer;
    if (lap_buffer_new(r->device, bytes, &buffer, &r->err) != LAP_OK) fail(r, "buffer");
    return buffer;
}

/* Written, not filled: Oclgrind takes filled memory for uninitialised. */
static lap_buffer *zeros(rig *r, size_t bytes) {
    lap_buffer *buffer = unwritten(r, bytes);
    void *data = calloc(bytes, 1);
    if (!data) exit(1);
    if (lap_buffer_write(r->queue, buffer, 0, data, bytes, &r->err) != LAP_OK) fail(r, "buffer");
    free(data);
    return buffer;
}

/* Every byte of an output is written by the kernel, and a checker sees it where it was not. */
static void read_back(rig *r, lap_buffer *buffer, size_t bytes) {
    void *data = malloc(bytes);
    if (!data) exit(1);
    if (lap_buffer_read(r->queue, buffer, 0, data, bytes, &r->err) != LAP_OK) fail(r, "output");
    free(data);
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
    lap_buffer *buffer = unwritten(r, bytes);
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
    lap_launch l = {.kernel = kernel,
                    .dynamic_local_bytes = grid.dynamic_local_bytes,
                    .args = args,
                    .arg_count = (size_t)stage->role_count};
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
    const lap_op *last = lap_fusion_partner_writes(c->fusion) ? c->partner : c->op;
    const lap_tensor *to = &last->out;
    size_t n = (size_t)c->n, element = lap_element_bytes(c->precision);
    size_t out_element = last->kind == LAP_OP_FC ? sizeof(float) : element; /* logits */
    size_t out = n * (size_t)lap_tensor_stored(to) * out_element;
    size_t means = n * (size_t)to->cs * element;
    uint64_t scratch = row->scratch_bytes ? row->scratch_bytes(c) : 0;
    buffers[LAP_ROLE_IN] = zeros(r, n * (size_t)lap_tensor_stored(&c->op->in) * element);
    bool gemm = row->needs_gemm; /* the library would have written before what the kernels read */
    buffers[LAP_ROLE_OUT] = gemm ? zeros(r, out) : unwritten(r, out);
    if (c->fusion == LAP_FUSE_DOWNSAMPLE)
        buffers[LAP_ROLE_IN2] = zeros(r, n * (size_t)lap_tensor_stored(&c->partner->in) * element);
    else if (c->op->residual >= 0 && c->op->kind != LAP_OP_SCALE)
        buffers[LAP_ROLE_RESIDUAL] = zeros(r, out);
    if (c->op->kind == LAP_OP_SCALE || c->fusion == LAP_FUSE_SCALE)
        buffers[LAP_ROLE_IN2] = zeros(r, n * (size_t)c->op->in.cs * element);
    if (c->fusion == LAP_FUSE_POOL || c->fusion == LAP_FUSE_EXPAND)
        buffers[LAP_ROLE_OUT2] = unwritten(r, means);
    buffers[LAP_ROLE_WEIGHTS] = packed_weights(r, row, c);
    buffers[LAP_ROLE_BIAS] = zeros(r, (size_t)(c->op->out.cs + to->cs) * sizeof(float));
    if (scratch)
        buffers[LAP_ROLE_SCRATCH] =
            row->scratch_zeroed || gemm ? zeros(r, (size_t)scratch) : unwritten(r, (size_t)scratch);
    for (int s = 0; s < row->stage_count; s++)
        if (row->stages[s].kind == LAP_STAGE_KERNEL) launch(r, row, c, &row->stages[s], buffers);
    read_back(r, buffers[LAP_ROLE_OUT], out);
    if (buffers[LAP_ROLE_OUT2]) read_back(r, buffers[LAP_ROLE_OUT2], means);
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

static bool asked_for(const rig *r, const lap_kernel_row *row) {
    const char *prefix = getenv("LAP_TEST_ROW");
    if (r->only && strcmp(row->id, r->only) != 0) return false;
    return !prefix || strncmp(row->id, prefix, strlen(prefix)) == 0;
}

static bool precision_asked_for(lap_precision precision) {
    const char *names = getenv("LAP_TEST_PRECISIONS"), *name = lap_precision_name(precision);
    size_t length = strlen(name);
    for (const char *at = names; at && (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
    return !names;
}

/* The row on one shape in one precision, if it takes it: whether it did. */
static bool try_row(rig *r, const lap_kernel_row *row, const shape *s, lap_precision precision,
                    bool split) {
    lap_op op = make_op(s), partner = make_partner(s, &op);
    lap_case c = {.op = &op,
                  .fusion = s->fusion,
                  .partner = s->fusion ? &partner : NULL,
                  .device = &r->info,
                  .precision = precision,
                  .features = r->features,
                  .n = (uint64_t)s->n};
    /* Rows of fp32 serve fp32x3 with the same kernels. */
    if (!(row->precisions & 1u << precision) || !precision_asked_for(precision)) return false;
    if (s < shapes + WINOGRAD_SHAPES && !strstr(row->id, "winograd")) return false;
    lap_device_info nvidia = r->info;
    if (!lap_kernel_can_run(row, &c, true) && nvidia.type == LAP_DEVICE_GPU && !nvidia.cc_major) {
        nvidia.cc_major = 7; /* some rows are for NVIDIA GPUs, but run anywhere */
        c.device = &nvidia;
    }
    if (!lap_kernel_can_run(row, &c, true)) return false;
    row->defaults(&c, &c.params);
    if (!set_split(row, &c, split)) return false;
    if (!r->count_only) run_row(r, row, &c);
    for (int i = 0; r->count_only && i < row->stage_count; i++)
        r->launches += row->stages[i].kind == LAP_STAGE_KERNEL;
    return true;
}

static void run_all(rig *r, lap_device_type type, bool split) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    r->info.type = type;
    r->info.simd_width = type == LAP_DEVICE_GPU ? 32 : 8;
    for (size_t i = 0; i < count; i++) {
        if (!asked_for(r, rows[i]) || rows[i]->chain) continue;
        if (rows[i]->naive && type == LAP_DEVICE_GPU && strcmp(r->info.language, "cl") == 0)
            continue; /* the same on both */
        bool done[LAP_PRECISION_COUNT] = {false};
        for (size_t s = 0; s < (r->features ? SHAPES : PLAIN_SHAPES); s++)
            for (int p = 0; p < LAP_PRECISION_COUNT; p++)
                if (!done[p] && try_row(r, rows[i], &shapes[s], (lap_precision)p, split))
                    done[p] = getenv("LAP_TEST_ONE_SHAPE") != NULL;
    }
}

static void run_mode(rig *r, bool split) {
    run_all(r, LAP_DEVICE_GPU, split);
    if (strcmp(r->info.language, "cl") == 0) run_all(r, LAP_DEVICE_CPU, split);
}

/* ---- an NVIDIA GPU -------------------------------------------------------------------------- */

static int list(const char *backend) {
    bool cuda = strcmp(backend, "cuda") == 0;
    rig r = {.info = {.units = 1,
                      .memory_bytes = UINT64_C(1) << 36,
                      .local_bytes = 49152,
                      .local_optin_bytes = cuda ? 232448 : 49152,
                      .max_group_size = 1024,
                      .max_group_dim = {1024, 1024, 64},
                      .cc_major = cuda ? 9 : 0},
             .features = cuda ? ~0u : 0, /* a simulator has none */
             .count_only = true};
    snprintf(r.info.backend, sizeof r.info.backend, "%s", backend);
    snprintf(r.info.language, sizeof r.info.language, "%s", cuda ? "cu" : "cl");
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->chain) continue;
        r.only = rows[i]->id;
        r.launches = 0;
        run_mode(&r, false);
        int whole = r.launches;
        run_mode(&r, true);
        if (r.launches > 0) printf("%s %d %d\n", r.only, whole, r.launches - whole);
    }
    return 0;
}

/* Kernels with one fault each; n is 32, the group has 64 threads. */
static const struct {
    const char *tool, *text;
} planted[] = {
    {"memcheck", "extern \"C\" __global__ void planted(float *x, float *y, int n) {\n"
                 "  y[threadIdx.x + n] = x[0];\n}\n"},
    {"racecheck", "extern \"C\" __global__ void planted(float *x, float *y, int n) {\n"
                  "  __shared__ float s[64];\n  s[threadIdx.x] = x[0];\n"
                  "  if (threadIdx.x < n) y[threadIdx.x] = s[threadIdx.x + n];\n}\n"},
    {"initcheck", "extern \"C\" __global__ void planted(float *x, float *y, int n) {\n"
                  "  if (threadIdx.x < n) y[threadIdx.x] += x[0];\n}\n"},
    {"synccheck", "extern \"C\" __global__ void planted(float *x, float *y, int n) {\n"
                  "  if (threadIdx.x < n / 2) __syncthreads();\n"
                  "  if (threadIdx.x < n) y[threadIdx.x] = x[0];\n}\n"},
};

static int plant(rig *r, const char *tool) {
    for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
        if (strcmp(planted[i].tool, tool) != 0) continue;
        lap_build build = {"planted", planted[i].text, "planted", NULL, 0};
        lap_kernel *kernel;
        lap_buffer *x = zeros(r, 64 * sizeof(float)), *y = unwritten(r, 64 * sizeof(float));
        if (lap_kernel_build(r->device, &build, &kernel, &r->err) != LAP_OK) fail(r, "planted");
        lap_arg args[] = {{.kind = LAP_ARG_BUFFER, .buffer = x},
                          {.kind = LAP_ARG_BUFFER, .buffer = y},
                          {.kind = LAP_ARG_I32, .i32 = 32}};
        lap_launch l = {.kernel = kernel,
                        .groups = {1, 1, 1},
                        .local = {64, 1, 1},
                        .args = args,
                        .arg_count = 3};
        if (lap_enqueue(r->queue, &l, &r->err) != LAP_OK ||
            lap_queue_finish(r->queue, &r->err) != LAP_OK)
            fail(r, "planted");
        printf("planted: ran\n");
        exit(0);
    }
    fprintf(stderr, "no fault is known for %s\n", tool);
    return 2;
}

static void find_features(rig *r) {
    for (int p = 0; p < LAP_PRECISION_COUNT; p++) {
        lap_precision made_of = p == LAP_FP32X3 ? LAP_FP16 : (lap_precision)p;
        if (p != LAP_FP32 && lap_probe_mma(r->queue, made_of, NULL) == LAP_OK)
            r->features |= LAP_FEATURE_MMA(p);
    }
    if (lap_probe_local(r->queue, NULL) == LAP_OK) r->features |= LAP_FEATURE_LARGE_LOCAL;
}

static int run(rig *r, const char *mode) {
    if (strncmp(mode, "planted-", 8) == 0) return plant(r, mode + 8);
    if (strcmp(r->info.language, "cu") == 0) find_features(r);
    if (strcmp(mode, "split") != 0) run_mode(r, false);
    if (strcmp(mode, "whole") != 0) run_mode(r, true);
    printf("launches: %d\n", r->launches);
    return r->launches == 0;
}

int main(int argc, char **argv) {
    static const char *const modes[] = {"whole", "split", "both", "planted-"};
    bool known = false;
    for (size_t i = 0; argc >= 3 && i < sizeof modes / sizeof modes[0]; i++)
        known |= strncmp(argv[2], modes[i], strlen(modes[i])) == 0;
    if (argc == 3 && strcmp(argv[2], "list") == 0) return list(argv[1]);
    if (argc > 4 || !known) {
        fprintf(stderr,
                "usage: small_rows BACKEND whole|split|both [ROW]\n"
                "       small_rows cuda|opencl list\n       small_rows cuda planted-TOOL\n");
        return 2;
    }
    rig r = {.only = argc == 4 ? argv[3] : NULL};
    lap_device_list *devices;
    if (lap_device_enumerate(&devices, &r.err) != LAP_OK) fail(&r, "devices");
    size_t at = 0;
    while (at < devices->count && strcmp(devices->devices[at].backend, argv[1]) != 0)
        at++;
    if (at == devices->count) {
        printf("no device of %s\n", argv[1]);
        return 77;
    }
    r.info = devices->devices[at];
    r.info.units = 1; /* so that rows for full devices run */
    printf("device: %s\n", r.info.name);
    if (lap_device_open(&r.info, &r.device, &r.err) != LAP_OK ||
        lap_queue_new(r.device, &r.queue, &r.err) != LAP_OK)
        fail(&r, "open");
    lap_build_cache *cache = NULL;
    if (getenv("LAP_TEST_CACHE") &&
        lap_build_cache_open(getenv("LAP_TEST_CACHE"), 0, &cache, &r.err) != LAP_OK)
        fail(&r, "cache");
    lap_device_use_cache(r.device, cache);
    int status = run(&r, argv[2]);
    lap_queue_free(r.queue);
    lap_device_list_free(devices);
    if (lap_device_close(r.device, &r.err) != LAP_OK) fail(&r, "close");
    lap_build_cache_close(cache);
    return status;
}
