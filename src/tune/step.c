/* Steps on their own (see step.h): the small network, forced kernels, interleaved timing. */
#include "tune/step.h"

#include "base/rng.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPS_MOST = 5, REPEATS_MOST = 64, ROUNDS_MOST = 64 };

/* ---- the network ---------------------------------------------------------------------------- */

static const lap_op *writer(const lap_net *net, int tensor) {
    for (int i = 0; i < net->op_count; i++)
        if (net->ops[i].output == tensor) return &net->ops[i];
    return NULL;
}

/* Appends a copy of op that reads the given tensors of the small network. */
static int add(lap_net *to, const lap_op *op, int input, int residual) {
    lap_op *copy = &to->ops[to->op_count];
    *copy = *op;
    copy->input = input;
    copy->residual = residual;
    copy->output = ++to->op_count;
    to->tensors[copy->output] = op->out;
    to->tensor_count = to->op_count + 1;
    return copy->output;
}

/* The network's last tensor is float in every precision and the step's must not be, so something
 * stands behind it. */
static void add_tail(lap_net *to, int tensor) {
    const lap_tensor *in = &to->tensors[tensor];
    lap_op tail = {.kind = LAP_OP_AVGPOOL,
                   .name = "tail",
                   .in = *in,
                   .out = {.c = in->c, .h = 1, .w = 1, .cs = in->cs},
                   .r = in->h,
                   .s = in->w,
                   .stride = 1};
    add(to, &tail, tensor, -1);
}

/* A 1x1 convolution from the step's input that makes a tensor of shape out. */
static int add_side(lap_net *to, const lap_tensor *out, int stride) {
    lap_op side = {
        .kind = LAP_OP_CONV, .in = to->tensors[0], .out = *out, .r = 1, .s = 1, .stride = stride};
    snprintf(side.name, sizeof side.name, "side%d", to->op_count);
    return add(to, &side, 0, -1);
}

/* op reads two tensors that come from further away: one of them is the input, or both are made
 * from it by 1x1 convolutions, as in a bottleneck. */
static lap_status add_far_pair(const lap_net *net, const lap_step_ref *ref, lap_net *to, int *out,
                               lap_error *err) {
    const lap_op *op = &net->ops[ref->op];
    if (op->in.h != op->out.h || op->in.w != op->out.w)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "%s: its inputs have no common origin two ops back and different sizes",
                        op->name);
    if (ref->fusion == LAP_FUSE_DOWNSAMPLE) {
        const lap_op *partner = &net->ops[ref->partner];
        to->tensors[0] = partner->in;
        int input = add_side(to, &op->in, partner->stride);
        int residual = add(to, partner, 0, -1);
        *out = add(to, op, input, residual);
        return LAP_OK;
    }
    to->tensors[0] = op->in;
    int residual = add_side(to, &op->out, 1);
    *out = add(to, op, 0, residual);
    return LAP_OK;
}

/* op reads two tensors: `made` by one convolution from what the other one is, or comes from. */
static lap_status add_pair(const lap_net *net, const lap_step_ref *ref, lap_net *to, int *out,
                           lap_error *err) {
    const lap_op *op = &net->ops[ref->op];
    const lap_op *made = writer(net, op->input), *side = writer(net, op->residual);
    bool direct = made && made->input == op->residual;
    bool sided = made && side && side->input == made->input && side->residual < 0;
    if (!made || made->residual >= 0 || (!direct && !sided))
        return add_far_pair(net, ref, to, out, err);
    to->tensors[0] = made->in;
    int input = add(to, made, 0, -1);
    int residual = direct ? 0 : add(to, side, 0, -1);
    *out = add(to, op, input, residual);
    return LAP_OK;
}

/* A SCALE, alone or with the convolution behind it: the factors are the input's means. */
static lap_status add_scaled(const lap_net *net, const lap_step_ref *ref, lap_net *to, int *out) {
    const lap_op *op = &net->ops[ref->op];
    bool alone = op->kind == LAP_OP_SCALE;
    const lap_op *scale = alone ? op : &net->ops[ref->partner];
    to->tensors[0] = scale->in;
    add_tail(to, 0);
    int factors = to->op_count;
    int residual = !alone && op->residual >= 0 ? add_side(to, &op->out, 1) : -1;
    *out = add(to, scale, 0, factors);
    if (alone) return LAP_OK;
    *out = add(to, op, *out, residual);
    return LAP_OK;
}

static lap_status add_step(const lap_net *net, const lap_step_ref *ref, lap_net *to, int *out,
                           lap_error *err) {
    const lap_op *op = &net->ops[ref->op];
    if (op->kind == LAP_OP_SCALE || ref->fusion == LAP_FUSE_SCALE)
        return add_scaled(net, ref, to, out);
    if (op->residual >= 0) return add_pair(net, ref, to, out, err);
    to->tensors[0] = op->in;
    *out = add(to, op, 0, -1);
    if (lap_fusion_partner_writes(ref->fusion) || ref->fusion == LAP_FUSE_POOL)
        *out = add(to, &net->ops[ref->partner], *out, -1);
    /* Its means: as the network has them, a pool over all of it. */
    if (ref->fusion == LAP_FUSE_EXPAND) add_tail(to, *out);
    if (ref->fusion == LAP_FUSE_EXPAND) *out = to->op_count;
    return LAP_OK;
}

/* Uniform values of about the variance that keeps activations in range. */
static lap_status random_weights(const lap_net *net, lap_weights **out, lap_error *err) {
    lap_weights *w = calloc(1, sizeof *w);
    if (w) w->ops = calloc((size_t)net->op_count, sizeof *w->ops);
    if (!w || !w->ops) {
        free(w);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a step's weights");
    }
    w->op_count = net->op_count;
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        size_t count = (size_t)lap_op_weight_count(op), k = (size_t)op->out.c;
        if (count == 0) continue;
        lap_op_weights *to = &w->ops[i];
        *to = (lap_op_weights){.w = malloc(count * sizeof *to->w),
                               .bias = malloc(k * sizeof *to->bias),
                               .w_count = count,
                               .k = k};
        if (!to->w || !to->bias) {
            lap_weights_free(w);
            return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a step's weights");
        }
        double scale = sqrt(24.0 * (double)k / (double)count);
        for (size_t j = 0; j < count; j++)
            to->w[j] = (float)((lap_rng_uniform(11, (uint64_t)i, j) - 0.5) * scale);
        for (size_t j = 0; j < k; j++)
            to->bias[j] = (float)(lap_rng_uniform(12, (uint64_t)i, j) - 0.5);
    }
    *out = w;
    return LAP_OK;
}

static lap_status random_images(const lap_tensor *t, float **out, lap_error *err) {
    size_t count = 2 * (size_t)lap_tensor_logical(t);
    *out = malloc(count * sizeof **out);
    if (!*out) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a step's input");
    for (size_t i = 0; i < count; i++)
        (*out)[i] = (float)(4 * lap_rng_uniform(13, 0, i) - 2);
    return LAP_OK;
}

static int step_index(const lap_tune_step *step) {
    int index = 0; /* a fused partner has no step of its own */
    for (int i = 0; i < step->net->op_count; i++, index++)
        if (strcmp(step->net->ops[i].name, step->name) == 0) break;
    return lap_fusion_partner_first(step->fusion) ? index - 1 : index;
}

lap_status lap_tune_step_new(const lap_net *net, const lap_step_ref *ref, lap_tune_step *out,
                             lap_error *err) {
    *out = (lap_tune_step){.fusion = ref->fusion, .unfused = ref->fusion == LAP_FUSE_NONE};
    const lap_op *op = &net->ops[ref->op];
    snprintf(out->name, sizeof out->name, "%s", op->name);
    lap_net *to = out->net = calloc(1, sizeof *to);
    if (to) to->ops = calloc(OPS_MOST, sizeof *to->ops);
    if (to) to->tensors = calloc(OPS_MOST + 1, sizeof *to->tensors);
    lap_status status = LAP_OK;
    if (!to || !to->ops || !to->tensors)
        status = LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for a network of its own", op->name);
    int tensor = 0;
    if (status == LAP_OK) status = add_step(net, ref, to, &tensor, err);
    if (status == LAP_OK) {
        const lap_op *last = &net->ops[net->op_count - 1];
        const lap_op *end = ref->partner >= 0 ? &net->ops[ref->partner] : op;
        if (op != last && end != last) add_tail(to, tensor);
        to->model = "step";
        to->height = to->tensors[0].h;
        to->width = to->tensors[0].w;
        to->classes = (int)lap_tensor_logical(&to->ops[to->op_count - 1].out);
        out->index = step_index(out);
        status = random_weights(to, &out->weights, err);
    }
    if (status == LAP_OK) status = random_images(&to->tensors[0], &out->images, err);
    if (status != LAP_OK) lap_tune_step_free(out);
    return status;
}

void lap_tune_step_free(lap_tune_step *step) {
    if (step->net) lap_net_free(step->net);
    if (step->weights) lap_weights_free(step->weights);
    free(step->images);
    *step = (lap_tune_step){0};
}

/* ---- forcing a candidate -------------------------------------------------------------------- */

static const lap_kernel_row *force(void *context, lap_case *c) {
    const lap_forced *forced = context;
    const lap_kernel_row *row = forced->candidate->row;
    if (c->fusion != forced->step->fusion || strcmp(c->op->name, forced->step->name) != 0)
        return NULL;
    c->params = forced->candidate->params;
    return row;
}

lap_plan_options lap_tune_step_options(const lap_forced *forced, lap_precision precision,
                                       uint64_t batch) {
    return (lap_plan_options){.batch = batch,
                              .precision = precision,
                              .unfused = forced->step->unfused,
                              .no_reuse = true,
                              .chooser = forced->candidate ? force : NULL,
                              .chooser_context = (void *)forced};
}

/* ---- timing --------------------------------------------------------------------------------- */

static lap_status make_plan(lap_bench *b, lap_session *session, lap_precision precision,
                            uint64_t batch, lap_error *err) {
    const lap_tune_step *step = b->forced.step;
    lap_plan_options options = lap_tune_step_options(&b->forced, precision, batch);
    LAP_TRY(lap_plan_new(session, step->net, &options, NULL, NULL, &b->plan, err));
    if (step->index >= lap_plan_step_count(b->plan) ||
        lap_plan_fusion(b->plan, step->index) != step->fusion ||
        (b->forced.candidate && !lap_plan_chosen(b->plan, step->index)))
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%.1000s",
                        step->index < lap_plan_step_count(b->plan) &&
                                *lap_plan_fallback(b->plan, step->index)
                            ? lap_plan_fallback(b->plan, step->index)
                            : "the plan did not take it");
    LAP_TRY(lap_plan_upload(b->plan, step->weights, err));
    LAP_TRY(lap_plan_bind(b->plan, err));
    return lap_plan_set_input(b->plan, step->images, 2, err);
}

static lap_status enqueue(const lap_bench *b, lap_session *session, lap_error *err) {
    if (b->graph) return lap_graph_launch(b->graph, session->queue, err);
    for (uint64_t i = 0; i < b->repeats; i++)
        LAP_TRY(lap_plan_run_step(b->plan, b->forced.step->index, err));
    return LAP_OK;
}

/* Seconds of one run of the step, by the device's clock if its stamps are good. */
static lap_status sample(const lap_bench *b, lap_session *session, const lap_timing *timing,
                         double *seconds, lap_error *err) {
    void *context = timing->context;
    double start = timing->now(context), device_s = 0;
    LAP_TRY(timing->before(context, err));
    LAP_TRY(enqueue(b, session, err));
    LAP_TRY(timing->after(context, err));
    LAP_TRY(timing->finish(context, err));
    double wall_s = timing->now(context) - start;
    lap_error detail = {0};
    lap_status status = timing->elapsed(context, &device_s, &detail);
    if (status != LAP_OK && status != LAP_E_TIMER) {
        if (err) *err = detail;
        return status;
    }
    *seconds = (status == LAP_OK && device_s > 0 ? device_s : wall_s) / (double)b->repeats;
    return LAP_OK;
}

static lap_status record(lap_bench *b, lap_session *session, lap_error *err) {
    if (!lap_device_has_graphs(session->device) || b->repeats < 2) return LAP_OK;
    LAP_TRY(lap_queue_finish(session->queue, err));
    LAP_TRY(lap_graph_begin(session->queue, err));
    lap_graph *graph = NULL;
    lap_status status = enqueue(b, session, err);
    lap_status ended = lap_graph_end(session->queue, &graph, status == LAP_OK ? err : NULL);
    if (status == LAP_OK) status = ended;
    if (status == LAP_OK)
        b->graph = graph;
    else
        lap_graph_free(graph);
    return status;
}

lap_status lap_bench_open(lap_bench *b, lap_session *session, const lap_timing *timing,
                          lap_precision precision, uint64_t batch, double sample_s,
                          lap_error *err) {
    b->repeats = 1;
    lap_status status = make_plan(b, session, precision, batch, err);
    /* Once to fault, or to be loaded; the steps before this one make its inputs. */
    for (int i = 0; status == LAP_OK && i <= b->forced.step->index; i++)
        status = lap_plan_run_step(b->plan, i, err);
    if (status == LAP_OK) status = lap_queue_finish(session->queue, err);
    double once = 0;
    if (status == LAP_OK) status = sample(b, session, timing, &once, err);
    if (status == LAP_OK) {
        double wanted = once > 0 ? sample_s / once : REPEATS_MOST;
        b->repeats = wanted < 1 ? 1 : wanted > REPEATS_MOST ? REPEATS_MOST : (uint64_t)wanted;
        status = record(b, session, err);
    }
    if (status != LAP_OK) lap_bench_close(b);
    return status;
}

void lap_bench_close(lap_bench *b) {
    lap_graph_free(b->graph);
    lap_plan_free(b->plan);
    b->graph = NULL;
    b->plan = NULL;
}

lap_status lap_bench_time(lap_bench *benches, size_t count, lap_session *session,
                          const lap_timing *timing, int rounds, lap_error *err) {
    if (rounds > ROUNDS_MOST) rounds = ROUNDS_MOST;
    double *samples = calloc(count * ROUNDS_MOST, sizeof *samples), ignored;
    if (!samples) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for samples");
    lap_status status = LAP_OK;
    for (size_t i = 0; i < count && status == LAP_OK; i++) /* the graph's first launch is slow */
        status = sample(&benches[i], session, timing, &ignored, err);
    for (int r = 0; r < rounds && status == LAP_OK; r++)
        for (size_t i = 0; i < count && status == LAP_OK; i++)
            status =
                sample(&benches[i], session, timing, &samples[i * ROUNDS_MOST + (size_t)r], err);
    for (size_t i = 0; i < count && status == LAP_OK; i++) {
        lap_stats stats;
        status = lap_stats_compute(samples + i * ROUNDS_MOST, (size_t)rounds, &stats, err);
        benches[i].best_s = stats.min.value;
        benches[i].median_s = stats.p50.value;
    }
    free(samples);
    return status;
}
