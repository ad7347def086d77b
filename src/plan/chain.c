/* Chains: neighbouring steps whose rows allow it become one launch (kernel/chain.h). Tensors and
 * parameters of such a plan lie in one buffer each, so that a kernel finds them by offset; the
 * steps are described by a table on the device. Each step can still be run alone, by the same
 * kernel. */
#include "plan/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REHEARSALS 64 /* barriers in the test of a kernel */

bool plan_chained(const plan_step *step) {
    return step->row && step->row->chain;
}

static bool any_chained(const lap_plan *plan) {
    for (int i = 0; i < plan->step_count; i++)
        if (plan_chained(&plan->steps[i])) return true;
    return false;
}

/* ---- may a kernel wait for all of its groups? ------------------------------------------------ */

static lap_status rehearse(lap_queue *queue, const lap_launch *planned, lap_buffer *sync,
                           lap_error *err) {
    uint32_t words[LAP_CHAIN_SYNC_BYTES / 4];
    lap_arg args[] = {{.buffer = sync},
                      {.buffer = sync},
                      {.buffer = sync},
                      {.buffer = sync},
                      {.kind = LAP_ARG_I32, .i32 = 0},
                      {.kind = LAP_ARG_I32, .i32 = -REHEARSALS}};
    lap_launch launch = *planned;
    launch.args = args;
    launch.arg_count = sizeof args / sizeof args[0];
    LAP_TRY(lap_buffer_fill(queue, sync, 0, sizeof words, 0, err));
    LAP_TRY(lap_enqueue(queue, &launch, err));
    LAP_TRY(lap_buffer_read(queue, sync, 0, words, sizeof words, err));
    uint64_t wanted = (uint64_t)planned->groups[0] * (REHEARSALS - 1);
    uint64_t arrived = (uint64_t)words[1] << 32 | words[0];
    if (words[LAP_CHAIN_SYNC_FAILED] == 0 && arrived == wanted) return LAP_OK;
    return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                    "%u groups are not resident together (their barrier saw %" PRIu64 " of %" PRIu64
                    " arrivals)",
                    planned->groups[0], arrived, wanted);
}

static lap_status test_kernel(lap_plan *plan, const lap_launch *launch, lap_error *err) {
    uint64_t groups;
    LAP_TRY(lap_kernel_resident(launch->kernel, launch->local, launch->dynamic_local_bytes, &groups,
                                err));
    if (groups > 0 && groups < launch->groups[0])
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "%u groups must be resident together, the device holds %" PRIu64,
                        launch->groups[0], groups);
    lap_buffer *sync = NULL;
    LAP_TRY(lap_buffer_new(plan->session->device, LAP_CHAIN_SYNC_BYTES, &sync, err));
    lap_status status = rehearse(plan->queue, launch, sync, err);
    lap_buffer_free(sync);
    return status;
}

lap_status plan_chain_test(lap_plan *plan, const lap_launch *launch, lap_error *err) {
    lap_session *session = plan->session;
    if (plan->queue != session->queue)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "its groups wait for each other, which must not be while other queues use "
                        "the device");
    for (int i = 0; i < session->chain_count; i++)
        if (session->chain_kernels[i] == launch->kernel) return LAP_OK;
    LAP_TRY(test_kernel(plan, launch, err));
    if (session->chain_count < LAP_PRECISION_COUNT)
        session->chain_kernels[session->chain_count++] = launch->kernel;
    return LAP_OK;
}

/* ---- runs of steps --------------------------------------------------------------------------- */

static int second_tensor(const plan_step *step) {
    return step->c.fusion == LAP_FUSE_DOWNSAMPLE ? step->partner->input : step->op->residual;
}

/* A step's second input is read before the barrier in front of it: it must be older than the step
 * before. */
static bool follows(const lap_plan *plan, int i) {
    const plan_step *step = &plan->steps[i], *before = &plan->steps[i - 1];
    if (!plan_chained(step) || !plan_chained(before)) return false;
    return step->kernels[0] == before->kernels[0] && second_tensor(step) != before->output;
}

void plan_chain_form(lap_plan *plan) {
    int index = 0;
    for (int i = 0; i < plan->step_count; i++) {
        plan_step *step = &plan->steps[i];
        step->chain_index = plan_chained(step) ? index++ : -1;
        step->chain_count = 1;
    }
    for (int i = 0; i < plan->step_count; i += plan->steps[i].chain_count)
        while (i + plan->steps[i].chain_count < plan->step_count &&
               follows(plan, i + plan->steps[i].chain_count))
            plan->steps[i].chain_count++;
}

/* ---- memory ---------------------------------------------------------------------------------- */

lap_status plan_chain_parameters(lap_plan *plan, lap_error *err) {
    uint64_t bytes = 0;
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (!plan_chained(step) || plan->parameters.whole) continue;
        bytes += plan_arena_room(step->row->packed_bytes(&step->c));
        bytes += plan_arena_room(4 * (uint64_t)plan_bias_stride(step));
    }
    return bytes == 0 ? LAP_OK
                      : plan_arena_new(plan->queue, bytes, "parameters", &plan->parameters, err);
}

lap_status plan_chain_memory(lap_plan *plan, lap_error *err) {
    if (!any_chained(plan)) return LAP_OK;
    uint64_t bytes = 0;
    for (int s = 0; s < plan->slot_count; s++)
        bytes += plan_arena_room(plan->slot_bytes[s]);
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (!plan_chained(step) || !step->row->scratch_bytes) continue;
        uint64_t scratch = step->row->scratch_bytes(&step->c);
        if (scratch) bytes += plan_arena_room(scratch);
    }
    return plan_arena_new(plan->queue, bytes, "activations", &plan->memory, err);
}

static int32_t place_of(const plan_buffer *buffer) {
    /* Unsigned on the device: 64 GiB. */
    return (int32_t)(uint32_t)((buffer->offset + PLAN_GUARD_BYTES) / LAP_CHAIN_PIECE);
}

static int32_t place_of_tensor(const lap_plan *plan, int tensor) {
    return tensor < 0 ? 0 : place_of(&plan->slots[plan->slot_of[tensor]]);
}

static void fill_words(const lap_plan *plan, const plan_step *step, int32_t *words) {
    step->row->chain(&step->c, words);
    words[LAP_CHAIN_IN] = place_of_tensor(plan, step->op->input);
    words[LAP_CHAIN_OUT] = place_of_tensor(plan, step->output);
    words[LAP_CHAIN_SECOND] = place_of_tensor(plan, second_tensor(step));
    words[LAP_CHAIN_WEIGHTS] = place_of(&step->weights);
    words[LAP_CHAIN_BIAS] = place_of(&step->bias);
    words[LAP_CHAIN_FLAGS] = plan_flags(step);
    words[LAP_CHAIN_SCRATCH] = step->own_scratch.data ? place_of(&step->own_scratch) : 0;
}

lap_status plan_chain_table(lap_plan *plan, lap_error *err) {
    if (!any_chained(plan)) return LAP_OK;
    size_t bytes = (size_t)plan->step_count * LAP_CHAIN_WORDS * sizeof(int32_t);
    int32_t *words = calloc(1, bytes);
    if (!words) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a table of steps");
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (plan_chained(step)) fill_words(plan, step, words + step->chain_index * LAP_CHAIN_WORDS);
    }
    lap_status status = plan_buffer_new(plan->queue, bytes, "table of steps", &plan->table, err);
    if (status == LAP_OK)
        status = lap_buffer_write(plan->queue, plan->table.data, 0, words, bytes, err);
    free(words);
    if (status == LAP_OK)
        status = plan_buffer_new(plan->queue, LAP_CHAIN_SYNC_BYTES, "barrier", &plan->sync, err);
    if (status == LAP_OK)
        status = lap_buffer_fill(plan->queue, plan->sync.data, 0, LAP_CHAIN_SYNC_BYTES, 0, err);
    return status;
}

/* ---- running --------------------------------------------------------------------------------- */

lap_status plan_chain_run(lap_plan *plan, int first, bool more, lap_error *err) {
    const plan_step *step = &plan->steps[first];
    const lap_stage *stage = &step->row->stages[0];
    plan_launch all = step->launches[0];
    all.launch.args = all.args;
    all.launch.unstamped = more;
    for (int a = 0; a < stage->role_count; a++)
        if (stage->roles[a] == LAP_ROLE_COUNT) all.args[a].i32 = step->chain_count;
    lap_status status = lap_enqueue(plan->queue, &all.launch, err);
    if (status != LAP_OK)
        lap_error_prefix(err, "%s to %s: kernel %s: ", step->name,
                         plan->steps[first + step->chain_count - 1].name, stage->stem);
    return status;
}

lap_status plan_chain_check(lap_plan *plan, lap_error *err) {
    if (!plan->sync.whole) return LAP_OK;
    uint32_t failed;
    LAP_TRY(lap_buffer_read(plan->queue, plan->sync.data, 4 * LAP_CHAIN_SYNC_FAILED, &failed,
                            sizeof failed, err));
    if (failed == 0) return LAP_OK;
    return LAP_FAIL(err, LAP_E_LAUNCH,
                    "a chain of steps gave up: its groups, which wait for each other, were not "
                    "all resident; is the device shared? [run] exclude = chain_conv, "
                    "chain_conv_down, chain_stem_pool, chain_pool_fc does without");
}
