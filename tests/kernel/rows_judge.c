/* Running a row's kernels, and judging what they wrote (see rows_job.h). */
#include "rows_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 16 /* words before and after the output */
#define GUARD_WORD 0x5a5aa5a5u
#define POISON 0x7fff7fff /* a NaN, two of 16 bits */

/* The guard in front must leave the output as aligned as the device wants its views. */
static size_t guard_bytes(const job *j) {
    size_t align = j->r->info.base_align_bytes ? j->r->info.base_align_bytes : 1;
    return (GUARD * sizeof(uint32_t) + align - 1) / align * align;
}

static void make_output(job *j) {
    size_t guard = guard_bytes(j), bytes = job_out_words(j) * job_out_bytes(j);
    OK(lap_buffer_new(j->r->device, bytes + 2 * guard, &j->out, &job_err));
    OK(lap_buffer_fill(j->r->queue, j->out, 0, bytes + 2 * guard, GUARD_WORD, &job_err));
    OK(lap_buffer_fill(j->r->queue, j->out, guard, bytes, POISON, &job_err));
    OK(lap_buffer_view(j->out, guard, bytes, &j->out_view, &job_err));
    if (!j->mean) return;
    bytes = (size_t)j->c.n * (size_t)j->last->out.cs * job_element_bytes(j);
    OK(lap_buffer_new(j->r->device, bytes, &j->out2, &job_err));
    OK(lap_buffer_fill(j->r->queue, j->out2, 0, bytes, POISON, &job_err));
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
    OK(lap_gemm_enqueue(j->r->queue, &gemm, &job_err));
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
        OK(lap_enqueue(j->r->queue, &launch, &job_err));
    }
    OK(lap_queue_finish(j->r->queue, &job_err));
}

/* A mean of integers has a finite binary fraction only over a power of two. */
static bool inexact_mean(const job *j) {
    int pixels = j->op.in.h * j->op.in.w;
    return j->c.fusion == LAP_FUSE_FC && (pixels & (pixels - 1)) != 0;
}

/* Of storing a value. */
static double rounding(const job *j, double v) {
    if (!job_is_short(j) || job_out_bytes(j) == sizeof(float)) return 0;
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
    return got == (job_out_bytes(j) == sizeof(float) ? (float)want : job_as_stored(j, want));
}

static void judge_mean(const job *j, const char *where) {
    size_t cs = (size_t)j->last->out.cs, channels = (size_t)j->last->out.c;
    size_t words = (size_t)j->c.n * cs;
    void *all = must_alloc(words, job_element_bytes(j));
    OK(lap_buffer_read(j->r->queue, j->out2, 0, all, words * job_element_bytes(j), &job_err));
    for (size_t i = 0; i < words; i++) {
        float got = job_get(j, all, i, job_element_bytes(j));
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

void job_judge(const job *j, fill f, const char *where) {
    size_t words = job_out_words(j), bytes = words * job_out_bytes(j), guard = guard_bytes(j);
    size_t cs = (size_t)j->last->out.cs, channels = (size_t)j->last->out.c;
    char *all = must_alloc(bytes + 2 * guard, 1);
    OK(lap_buffer_read(j->r->queue, j->out, 0, all, bytes + 2 * guard, &job_err));
    for (size_t i = 0; i < 2 * guard; i += sizeof(uint32_t)) {
        uint32_t word;
        memcpy(&word, all + (i < guard ? i : bytes + i), sizeof word);
        if (word != GUARD_WORD) fail_msg("%s: guard byte %zu overwritten", where, i);
    }
    for (size_t i = 0; i < words; i++) {
        size_t pixel = i / cs, ch = i % cs;
        float got = job_get(j, all + guard, i, job_out_bytes(j));
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
void job_judge_repeat(job *j, const char *where) {
    size_t bytes = job_out_words(j) * job_out_bytes(j);
    void *first = must_alloc(1, bytes), *again = must_alloc(1, bytes);
    OK(lap_buffer_read(j->r->queue, j->out_view, 0, first, bytes, &job_err));
    OK(lap_buffer_fill(j->r->queue, j->out_view, 0, bytes, POISON, &job_err));
    run_stages(j);
    OK(lap_buffer_read(j->r->queue, j->out_view, 0, again, bytes, &job_err));
    if (memcmp(first, again, bytes) != 0) fail_msg("%s: a second run gave other bits", where);
    free(first);
    free(again);
}

void job_run(job *j) {
    make_output(j);
    run_stages(j);
}
