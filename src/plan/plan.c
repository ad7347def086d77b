/* Makes and runs plans. Chooses nothing itself (choose.c) and measures nothing. */
#include "plan/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- making --------------------------------------------------------------------------------- */

static bool same_build(const plan_step *a, const plan_step *b) {
    if (a->row != b->row) return false;
    if (memcmp(a->kernels, b->kernels, sizeof a->kernels) != 0) return false;
    const lap_op *x = a->op, *y = b->op;
    return memcmp(&x->in, &y->in, sizeof x->in) == 0 &&
           memcmp(&x->out, &y->out, sizeof x->out) == 0 && x->r == y->r && x->s == y->s &&
           x->stride == y->stride && x->pad == y->pad;
}

static void name_step(plan_step *step, lap_fusion fusion) {
    step->output = step->op->output;
    if (lap_fusion_partner_writes(fusion)) step->output = step->partner->output;
    snprintf(step->name, sizeof step->name, "%s%s%s", step->op->name, step->partner ? "+" : "",
             step->partner ? step->partner->name : "");
}

/* A fused step for op index, if a row exists that runs; false leaves the step empty. */
static lap_status try_fused(lap_plan *plan, int index, const bool *absorbed, plan_step *step,
                            bool *done, lap_error *err) {
    lap_fusion fusion;
    *done = false;
    step->op = &plan->net->ops[index];
    step->partner = plan_partner(plan->net, index, &fusion);
    /* A partner that another step computes already is none. */
    bool taken = step->partner && absorbed[lap_plan_op_index(plan, step->partner)];
    if (!step->partner || taken || plan->options.naive || plan->options.unfused) {
        step->partner = NULL;
        return LAP_OK;
    }
    lap_status status = plan_choose(plan, step, fusion, err);
    if (status == LAP_OK) {
        name_step(step, fusion);
        if (fusion == LAP_FUSE_POOL) step->means = step->partner;
        if (fusion == LAP_FUSE_EXPAND) step->means = plan_means(plan->net, step->partner);
        *done = true;
        return LAP_OK;
    }
    if (status != LAP_E_UNSUPPORTED) return status;
    lap_error_clear(err);
    *step = (plan_step){.op = step->op, .fallback = step->fallback};
    return LAP_OK;
}

/* Fused steps first, since they decide which ops need no step of their own. */
static lap_status choose_all(lap_plan *plan, bool *absorbed, lap_progress progress, void *context,
                             lap_error *err) {
    const lap_net *net = plan->net;
    size_t total = (size_t)net->op_count;
    plan_step *steps = plan->steps;
    for (int i = 0; i < net->op_count; i++) {
        if (progress) progress(context, net->ops[i].name, (size_t)i, 2 * total);
        bool done;
        if (absorbed[i]) continue;
        LAP_TRY(try_fused(plan, i, absorbed, &steps[i], &done, err));
        if (done) absorbed[lap_plan_op_index(plan, steps[i].partner)] = true;
        if (done && steps[i].means) absorbed[lap_plan_op_index(plan, steps[i].means)] = true;
    }
    for (int i = 0; i < net->op_count; i++) {
        if (progress) progress(context, net->ops[i].name, total + (size_t)i, 2 * total);
        if (absorbed[i]) continue;
        plan_step *step = &steps[plan->step_count];
        if (step != &steps[i]) {
            *step = steps[i];
            steps[i] = (plan_step){0};
        }
        if (!step->row) {
            LAP_TRY(plan_choose(plan, step, LAP_FUSE_NONE, err));
            name_step(step, LAP_FUSE_NONE);
        }
        step->build_id = plan->step_count;
        for (int j = plan->step_count - 1; j >= 0; j--)
            if (same_build(step, &steps[j])) step->build_id = steps[j].build_id;
        plan->step_count++;
    }
    return LAP_OK;
}

static lap_status make_steps(lap_plan *plan, lap_progress progress, void *context, lap_error *err) {
    size_t count = (size_t)plan->net->op_count;
    plan->steps = calloc(count, sizeof *plan->steps);
    bool *absorbed = calloc(count, sizeof *absorbed);
    lap_status status = plan->steps && absorbed
                            ? choose_all(plan, absorbed, progress, context, err)
                            : LAP_FAIL(err, LAP_E_NOMEM, "no memory for a plan's steps");
    free(absorbed);
    return status;
}

lap_status lap_plan_new(lap_session *session, const lap_net *net, const lap_plan_options *options,
                        lap_progress progress, void *context, lap_plan **out, lap_error *err) {
    *out = NULL;
    if (options->batch == 0 || options->batch > INT32_MAX)
        return LAP_FAIL(err, LAP_E_ARG, "batch %llu: expected 1 to %d",
                        (unsigned long long)options->batch, INT32_MAX);
    LAP_TRY(lap_session_probe(session, options->precision, err));
    if (plan_wants_matrix(options))
        LAP_TRY(lap_session_probe_matrix(session, options->precision, err));
    lap_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a plan");
    plan->session = session;
    plan->queue = options->queue ? options->queue : session->queue;
    plan->net = net;
    plan->options = *options;
    lap_status status = make_steps(plan, progress, context, err);
    if (status == LAP_OK) plan_chain_form(plan);
    if (status == LAP_OK) status = plan_memory_layout(plan, err);
    if (status != LAP_OK) {
        lap_plan_free(plan);
        return status;
    }
    *out = plan;
    return LAP_OK;
}

void lap_plan_free(lap_plan *plan) {
    if (!plan) return;
    lap_graph_free(plan->graph);
    for (int i = 0; plan->steps && i < plan->net->op_count; i++) {
        plan_step *step = &plan->steps[i];
        plan_buffer_free(&step->weights);
        plan_buffer_free(&step->bias);
        plan_buffer_free(&step->own_scratch);
        free(step->fallback);
    }
    for (int i = 0; plan->slots && i < plan->slot_count; i++)
        plan_buffer_free(&plan->slots[i]);
    plan_buffer_free(&plan->scratch);
    plan_buffer_free(&plan->table);
    plan_buffer_free(&plan->sync);
    plan_arena_free(&plan->memory);
    plan_arena_free(&plan->parameters);
    free(plan->steps);
    free(plan->slot_of);
    free(plan->slot_bytes);
    free(plan->slots);
    free(plan);
}

/* ---- weights -------------------------------------------------------------------------------- */

static lap_status upload(lap_plan *plan, const plan_step *step, plan_buffer *to, const char *what,
                         const void *data, size_t bytes, lap_error *err) {
    char label[64];
    snprintf(label, sizeof label, "%.50s %s", step->name, what);
    plan_arena none = {0}, *arena = plan_chained(step) ? &plan->parameters : &none;
    if (!to->whole) LAP_TRY(plan_buffer_in(arena, plan->queue, bytes, label, to, err));
    return lap_buffer_write(plan->queue, to->data, 0, data, bytes, err);
}

/* The bias that the step's kernels add, padded to the output's channel stride. */
static void fill_bias(const plan_step *step, const lap_op_weights *w, const lap_op_weights *partner,
                      float *bias) {
    const lap_op_weights *first = step->c.fusion == LAP_FUSE_FC ? partner : w;
    for (size_t i = 0; lap_fusion_two_layers(step->c.fusion) && i < partner->k; i++)
        bias[(size_t)step->op->out.cs + i] = partner->bias[i];
    for (size_t i = 0; i < first->k; i++) {
        double sum = (double)first->bias[i];
        if (step->c.fusion == LAP_FUSE_DOWNSAMPLE) sum += (double)partner->bias[i];
        bias[i] = (float)sum;
    }
}

int plan_bias_stride(const plan_step *step) {
    if (step->c.fusion == LAP_FUSE_FC) return step->partner->out.cs;
    return step->op->out.cs + (lap_fusion_two_layers(step->c.fusion) ? step->partner->out.cs : 0);
}

static lap_status upload_step(lap_plan *plan, plan_step *step, const lap_weights *weights,
                              lap_error *err) {
    if (!step->row->packed_bytes) return LAP_OK;
    const lap_op_weights *w = &weights->ops[lap_plan_op_index(plan, step->op)], *partner = NULL;
    if (step->partner) partner = &weights->ops[lap_plan_op_index(plan, step->partner)];
    size_t bytes = step->row->packed_bytes(&step->c);
    size_t bias_count = (size_t)plan_bias_stride(step);
    void *packed = malloc(bytes);
    float *bias = calloc(bias_count, sizeof *bias);
    lap_status status = LAP_OK;
    if (!packed || !bias) {
        status = LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory to pack weights", step->name);
    } else {
        if (step->partner)
            step->row->pack_fused(&step->c, w, partner, packed);
        else
            step->row->pack(&step->c, w, packed);
        fill_bias(step, w, partner, bias);
        status = upload(plan, step, &step->weights, "weights", packed, bytes, err);
        if (status == LAP_OK)
            status = upload(plan, step, &step->bias, "bias", bias, bias_count * sizeof *bias, err);
    }
    free(packed);
    free(bias);
    return status;
}

lap_status lap_plan_upload(lap_plan *plan, const lap_weights *weights, lap_error *err) {
    if (weights->op_count != plan->net->op_count)
        return LAP_FAIL(err, LAP_E_ARG, "weights of %d ops for a network of %d", weights->op_count,
                        plan->net->op_count);
    LAP_TRY(plan_chain_parameters(plan, err));
    for (int i = 0; i < plan->step_count; i++)
        LAP_TRY(upload_step(plan, &plan->steps[i], weights, err));
    plan->uploaded = true;
    return LAP_OK;
}

/* ---- binding -------------------------------------------------------------------------------- */

static lap_buffer *tensor_buffer(const lap_plan *plan, int tensor) {
    return tensor < 0 ? NULL : plan->slots[plan->slot_of[tensor]].data;
}

static lap_buffer *role_buffer(const lap_plan *plan, const plan_step *step, lap_role role) {
    switch (role) {
    case LAP_ROLE_IN:
        return tensor_buffer(plan, plan_step_input(step));
    case LAP_ROLE_OUT:
        return tensor_buffer(plan, step->output);
    case LAP_ROLE_OUT2:
        return step->means ? tensor_buffer(plan, step->means->output) : NULL;
    case LAP_ROLE_RESIDUAL:
        if (step->c.fusion == LAP_FUSE_DOWNSAMPLE) return NULL;
        return tensor_buffer(plan, step->op->residual);
    case LAP_ROLE_IN2:
        return tensor_buffer(plan, plan_step_second(step));
    case LAP_ROLE_WEIGHTS:
        return step->weights.data;
    case LAP_ROLE_BIAS:
        return step->bias.data;
    case LAP_ROLE_SCRATCH:
        return step->own_scratch.data ? step->own_scratch.data : plan->scratch.data;
    case LAP_ROLE_MEMORY:
        return plan->memory.whole;
    case LAP_ROLE_PARAMETERS:
        return plan->parameters.whole;
    case LAP_ROLE_TABLE:
        return plan->table.data;
    case LAP_ROLE_SYNC:
        return plan->sync.data;
    case LAP_ROLE_N:
    case LAP_ROLE_FLAGS:
    case LAP_ROLE_FIRST:
    case LAP_ROLE_COUNT:
        break;
    }
    return NULL;
}

int plan_flags(const plan_step *step) {
    bool residual = step->op->residual >= 0 && step->c.fusion != LAP_FUSE_DOWNSAMPLE;
    return (step->op->act == LAP_ACT_RELU ? LAP_FLAG_RELU : 0) | (residual ? LAP_FLAG_RESIDUAL : 0);
}

static lap_arg number_arg(int value) {
    return (lap_arg){.kind = LAP_ARG_I32, .i32 = (int32_t)value};
}

static lap_arg role_arg(const lap_plan *plan, const plan_step *step, lap_role role) {
    if (role == LAP_ROLE_N) return number_arg((int)plan->options.batch);
    if (role == LAP_ROLE_FLAGS) return number_arg(plan_flags(step));
    if (role == LAP_ROLE_FIRST) return number_arg(step->chain_index);
    if (role == LAP_ROLE_COUNT) return number_arg(1);
    return (lap_arg){.kind = LAP_ARG_BUFFER, .buffer = role_buffer(plan, step, role)};
}

static void bind_step(lap_plan *plan, plan_step *step) {
    for (int i = 0; i < step->row->stage_count; i++) {
        const lap_stage *stage = &step->row->stages[i];
        plan_launch *launch = &step->launches[i];
        if (stage->kind == LAP_STAGE_GEMM) {
            launch->gemm = (lap_gemm){.a = role_buffer(plan, step, stage->roles[0]),
                                      .b = role_buffer(plan, step, stage->roles[1]),
                                      .c = role_buffer(plan, step, stage->roles[2])};
            stage->gemm(&step->c, &launch->gemm);
            continue;
        }
        for (int a = 0; a < stage->role_count; a++)
            launch->args[a] = role_arg(plan, step, stage->roles[a]);
        launch->launch.args = launch->args;
        launch->launch.arg_count = (size_t)stage->role_count;
    }
}

static lap_status bind_scratch(lap_plan *plan, plan_step *step, lap_error *err) {
    if (!step->row->scratch_bytes || !step->row->scratch_zeroed) return LAP_OK;
    uint64_t bytes = step->row->scratch_bytes(&step->c);
    if (bytes == 0) return LAP_OK;
    char label[64];
    snprintf(label, sizeof label, "%.50s scratch", step->name);
    plan_arena none = {0}, *arena = plan_chained(step) ? &plan->memory : &none;
    LAP_TRY(plan_buffer_in(arena, plan->queue, bytes, label, &step->own_scratch, err));
    return lap_buffer_fill(plan->queue, step->own_scratch.data, 0, step->own_scratch.bytes, 0, err);
}

/* The name of the first tensor that lives in a slot labels it. */
static void slot_label(const lap_plan *plan, int slot, char *label, size_t size) {
    if (plan->slot_of[0] == slot) {
        snprintf(label, size, "the input");
        return;
    }
    for (int i = 0; i < plan->step_count; i++)
        if (plan->slot_of[plan->steps[i].output] == slot) {
            snprintf(label, size, "%.50s output", plan->steps[i].name);
            return;
        }
}

lap_status lap_plan_bind(lap_plan *plan, lap_error *err) {
    if (!plan->uploaded || plan->bound)
        return LAP_FAIL(err, LAP_E_ARG, "a plan is bound once, after its weights are uploaded");
    lap_queue *queue = plan->queue;
    LAP_TRY(plan_chain_memory(plan, err));
    for (int s = 0; s < plan->slot_count; s++) {
        char label[64] = "activations";
        slot_label(plan, s, label, sizeof label);
        LAP_TRY(
            plan_buffer_in(&plan->memory, queue, plan->slot_bytes[s], label, &plan->slots[s], err));
        LAP_TRY(lap_buffer_fill(queue, plan->slots[s].data, 0, plan->slots[s].bytes, PLAN_NAN_WORD,
                                err));
    }
    if (plan->scratch_bytes)
        LAP_TRY(plan_buffer_new(queue, plan->scratch_bytes, "scratch", &plan->scratch, err));
    for (int i = 0; i < plan->step_count; i++)
        LAP_TRY(bind_scratch(plan, &plan->steps[i], err));
    LAP_TRY(plan_chain_table(plan, err));
    for (int i = 0; i < plan->step_count; i++)
        bind_step(plan, &plan->steps[i]);
    /* Some drivers allocate only now: find out here, not in a timed run. */
    LAP_TRY(lap_queue_finish(queue, err));
    plan->bound = true;
    return LAP_OK;
}

uint64_t lap_plan_weight_bytes(const lap_plan *plan) {
    uint64_t bytes = 0;
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (!step->row->packed_bytes) continue;
        bytes += step->row->packed_bytes(&step->c) + 4u * (uint64_t)plan_bias_stride(step);
        bytes += 4 * PLAN_GUARD_BYTES;
    }
    return bytes;
}

uint64_t lap_plan_activation_bytes(const lap_plan *plan) {
    uint64_t bytes = plan->scratch_bytes;
    for (int s = 0; s < plan->slot_count; s++)
        bytes += plan->slot_bytes[s] + 2 * PLAN_GUARD_BYTES;
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (step->row->scratch_bytes && step->row->scratch_zeroed)
            bytes += step->row->scratch_bytes(&step->c);
    }
    return bytes;
}

uint64_t lap_plan_largest_bytes(const lap_plan *plan) {
    uint64_t bytes = plan->scratch_bytes;
    for (int s = 0; s < plan->slot_count; s++)
        if (plan->slot_bytes[s] + 2 * PLAN_GUARD_BYTES > bytes)
            bytes = plan->slot_bytes[s] + 2 * PLAN_GUARD_BYTES;
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (plan_chained(step)) return lap_plan_activation_bytes(plan); /* one buffer for all */
        uint64_t own = step->row->scratch_bytes && step->row->scratch_zeroed
                           ? step->row->scratch_bytes(&step->c)
                           : 0;
        if (own > bytes) bytes = own;
    }
    return bytes;
}

/* ---- running -------------------------------------------------------------------------------- */

/* overlap: behind another launch of the same pass. more: another step of it follows at once. */
static lap_status run_step(lap_plan *plan, int index, bool overlap, bool more, lap_error *err) {
    plan_step *step = &plan->steps[index];
    for (int i = 0; i < step->row->stage_count; i++) {
        plan_launch *launch = &step->launches[i];
        launch->launch.overlap = overlap;
        launch->launch.unstamped = more || i + 1 < step->row->stage_count;
        lap_status status = launch->kind == LAP_STAGE_GEMM
                                ? lap_gemm_enqueue(plan->queue, &launch->gemm, err)
                                : lap_enqueue(plan->queue, &launch->launch, err);
        if (status != LAP_OK) {
            lap_error_prefix(err, "%s: kernel %s: ", step->name, step->row->id);
            return status;
        }
    }
    return LAP_OK;
}

/* Alone, as layers are timed and verified: nothing overlaps. */
lap_status lap_plan_run_step(lap_plan *plan, int index, lap_error *err) {
    return run_step(plan, index, false, false, err);
}

lap_status lap_plan_run(lap_plan *plan, lap_error *err) {
    if (!plan->bound) return LAP_FAIL(err, LAP_E_ARG, "a plan runs only after it is bound");
    if (plan->graph) return lap_graph_launch(plan->graph, plan->queue, err);
    for (int i = 0, next; i < plan->step_count; i = next) {
        next = i + plan->steps[i].chain_count;
        bool more = next < plan->step_count;
        LAP_TRY(plan->steps[i].chain_count > 1
                    ? plan_chain_run(plan, i, more, err)
                    : run_step(plan, i, i > 0 && plan->options.overlap, more, err));
    }
    return LAP_OK;
}

lap_status lap_plan_capture(lap_plan *plan, bool *captured, lap_error *err) {
    *captured = plan->graph != NULL;
    if (plan->graph || !lap_device_has_graphs(plan->session->device)) return LAP_OK;
    lap_queue *queue = plan->queue;
    LAP_TRY(lap_queue_finish(queue, err));
    LAP_TRY(lap_graph_begin(queue, err));
    lap_status status = lap_plan_run(plan, err);
    lap_graph *graph = NULL;
    /* A capture that began must end, whatever happened inside it. */
    lap_status ended = lap_graph_end(queue, &graph, status == LAP_OK ? err : NULL);
    if (status == LAP_OK) status = ended;
    if (status != LAP_OK) {
        lap_graph_free(graph);
        return status;
    }
    plan->graph = graph;
    *captured = true;
    return LAP_OK;
}

/* ---- looking inside ------------------------------------------------------------------------- */

bool lap_plan_interrupted(const lap_plan *plan) {
    const lap_interrupt *interrupt = &plan->options.interrupt;
    return interrupt->asked && interrupt->asked(interrupt->context);
}

int lap_plan_step_count(const lap_plan *plan) {
    return plan->step_count;
}

const lap_op *lap_plan_op(const lap_plan *plan, int step) {
    return plan->steps[step].op;
}

lap_fusion lap_plan_fusion(const lap_plan *plan, int step) {
    return plan->steps[step].c.fusion;
}

const lap_op *lap_plan_partner(const lap_plan *plan, int step) {
    return plan->steps[step].partner;
}

const lap_op *lap_plan_means(const lap_plan *plan, int step) {
    return plan->steps[step].means;
}

int lap_plan_op_index(const lap_plan *plan, const lap_op *op) {
    return (int)(op - plan->net->ops);
}

int lap_plan_output(const lap_plan *plan, int step) {
    return plan->steps[step].output;
}

const char *lap_plan_step_name(const lap_plan *plan, int step) {
    return plan->steps[step].name;
}

const lap_kernel_row *lap_plan_row(const lap_plan *plan, int step) {
    return plan->steps[step].row;
}

const lap_params *lap_plan_params(const lap_plan *plan, int step) {
    return &plan->steps[step].c.params;
}

bool lap_plan_chosen(const lap_plan *plan, int step) {
    return plan->steps[step].chosen;
}

const char *lap_plan_fallback(const lap_plan *plan, int step) {
    return plan->steps[step].fallback ? plan->steps[step].fallback : "";
}

int lap_plan_build_id(const lap_plan *plan, int step) {
    return plan->steps[step].build_id;
}

int lap_plan_launch_count(const lap_plan *plan) {
    int count = 0;
    for (int i = 0; i < plan->step_count; i += plan->steps[i].chain_count)
        count += plan->steps[i].row->stage_count;
    return count;
}

lap_status lap_plan_guards_check(lap_plan *plan, lap_error *err) {
    lap_queue *queue = plan->queue;
    LAP_TRY(plan_chain_check(plan, err));
    if (plan->table.whole) LAP_TRY(plan_buffer_check(queue, &plan->table, err));
    if (plan->sync.whole) LAP_TRY(plan_buffer_check(queue, &plan->sync, err));
    for (int s = 0; s < plan->slot_count; s++)
        LAP_TRY(plan_buffer_check(queue, &plan->slots[s], err));
    if (plan->scratch.whole) LAP_TRY(plan_buffer_check(queue, &plan->scratch, err));
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        const plan_buffer *buffers[] = {&step->weights, &step->bias, &step->own_scratch};
        for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
            if (buffers[b]->whole) LAP_TRY(plan_buffer_check(queue, buffers[b], err));
    }
    return LAP_OK;
}
