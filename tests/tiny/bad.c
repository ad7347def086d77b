/* See bad.h. */
#include "bad.h"

#include "fake_objects.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    lap_op op;
    bad_kind kind;
    uint64_t good, launches;
    const float *first; /* where the launch after the good ones wrote */
    const char *stem;   /* wrapped */
    fake_kernel_fn original;
} bad;

static bool is_planted(const lap_define *d, size_t n, const lap_raw_launch *launch) {
    const lap_op *op = &bad.op;
    bool same = fake_define(d, n, "C", 0) == op->in.c;
    if (op->kind != LAP_OP_FC)
        same =
            same && fake_define(d, n, "H", 0) == op->in.h && fake_define(d, n, "W", 0) == op->in.w;
    if (op->kind == LAP_OP_CONV || op->kind == LAP_OP_FC)
        same = same && fake_define(d, n, "K", 0) == op->out.c;
    if (op->kind == LAP_OP_CONV)
        same = same && fake_define(d, n, "R", 0) == op->r &&
               fake_define(d, n, "STRIDE", 0) == op->stride &&
               (launch->args[3].buffer != NULL) == (op->residual >= 0);
    return same;
}

static float *output_of(const lap_raw_launch *launch, void *const *pointers, size_t *count) {
    float *out = NULL;
    int64_t images = 0;
    for (size_t i = 0; i < launch->arg_count; i++) {
        if (pointers[i]) out = pointers[i];
        if (launch->args[i].kind == LAP_ARG_I32 && images == 0) images = launch->args[i].i32;
    }
    *count = (size_t)images * (size_t)lap_tensor_stored(&bad.op.out);
    return out;
}

static void spoil(float *out, size_t count) {
    /* The middle of the batch, a channel that is no padding. */
    float *value = &out[count / 2 / (size_t)bad.op.out.cs * (size_t)bad.op.out.cs];
    switch (bad.kind) {
    case BAD_WRONG:
        *value += 1;
        break;
    case BAD_NAN:
        *value = NAN;
        break;
    case BAD_INF:
        *value = INFINITY;
        break;
    case BAD_AFTER:
        out[count] = 1;
        break;
    case BAD_BEFORE:
        out[-1] = 1;
        break;
    case BAD_PADDING:
        out[bad.op.out.cs - 1] = 1e-30f;
        break;
    case BAD_RANDOM:
        if (bad.launches % 2) *value = nextafterf(*value, INFINITY);
        break;
    case BAD_LATE:
        if (bad.launches > bad.good) *value += 1;
        break;
    case BAD_ONCE:
        if (bad.launches == bad.good + 1) *value += 1;
        break;
    case BAD_BEHIND:
        if (bad.launches == bad.good + 1) out[count] = 1;
        break;
    case BAD_SECOND:
        if (bad.launches == bad.good + 1) bad.first = out;
        if (bad.launches > bad.good && out != bad.first) *value += 1;
        break;
    case BAD_NONE:
    case BAD_NOTHING:
    case BAD_IDLE:
    case BAD_TF32:
        break;
    }
}

/* A copy of a buffer with 10 fraction bits, to nearest even. */
static float *in_tf32(const lap_raw_arg *arg) {
    const fake_buffer *buffer = arg->buffer;
    uint32_t *bits = malloc(buffer->bytes);
    if (!bits) abort();
    memcpy(bits, buffer->data, buffer->bytes);
    for (size_t i = 0; i < buffer->bytes / 4; i++)
        bits[i] = (bits[i] + 0xFFFu + (bits[i] >> 13 & 1u)) & ~0x1FFFu;
    return (float *)(void *)bits;
}

static void run_tf32(const lap_define *defines, size_t n, const lap_raw_launch *launch,
                     void *const *pointers) {
    void *rounded[LAP_MAX_ARGS];
    memcpy(rounded, pointers, launch->arg_count * sizeof *rounded);
    for (size_t i = 0; i < 2; i++)
        rounded[i] = in_tf32(&launch->args[i]);
    bad.original(defines, n, launch, rounded);
    free(rounded[0]);
    free(rounded[1]);
}

static void run(const lap_define *defines, size_t n, const lap_raw_launch *launch,
                void *const *pointers) {
    bool planted = is_planted(defines, n, launch);
    if (planted) bad.launches++;
    if (planted && bad.kind == BAD_NOTHING) return;
    if (planted && bad.kind == BAD_IDLE && bad.launches > bad.good) return;
    (planted && bad.kind == BAD_TF32 ? run_tf32 : bad.original)(defines, n, launch, pointers);
    size_t count;
    float *out = output_of(launch, pointers, &count);
    if (planted) spoil(out, count);
}

void bad_plant(const lap_op *op, bad_kind kind, uint64_t good) {
    static const char *const stems[] = {"conv_naive", "maxpool_naive", "avgpool_naive", "fc_naive"};
    const char *stem = stems[op->kind];
    /* One wrapper, so one kernel at a time: put back the one that was wrapped before. */
    if (bad.stem && fake_find_kernel(bad.stem, bad.stem) == run)
        fake_register(bad.stem, bad.stem, bad.original);
    bad.op = *op;
    bad.kind = kind;
    bad.good = good;
    bad.launches = 0;
    bad.first = NULL;
    bad.stem = stem;
    bad.original = fake_find_kernel(stem, stem);
    if (!fake_register(stem, stem, run)) abort();
}

uint64_t bad_launches(void) {
    return bad.launches;
}
