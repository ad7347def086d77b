/* A plan: a network on one device for one batch size, ready to run.
 *
 * Making one has three phases, so that their costs can be told apart: lap_plan_new chooses rows and
 * builds kernels (through the session's kernel cache, each distinct build once), lap_plan_upload
 * packs and uploads weights, lap_plan_bind allocates activations and prepares the launches. After
 * lap_plan_set_input, lap_plan_run enqueues one forward pass and returns without waiting.
 */
#ifndef LAP_PLAN_PLAN_H
#define LAP_PLAN_PLAN_H

#include "device/device.h"
#include "kernel/kernel.h"
#include "net/op.h"
#include "net/weights.h"

/* A device with one queue and the kernels built so far; shared by the plans made on it. */
typedef struct lap_session {
    lap_device *device;
    lap_queue *queue;
    struct lap_kernel_cache *kernels;
    double open_s;                          /* opening the device and its queue */
    unsigned features;                      /* LAP_FEATURE_*, as far as probed */
    unsigned probed;                        /* the same bits: those that were asked for */
    char lacking[LAP_PRECISION_COUNT][320]; /* why a probed feature is missing */
    /* Kernels whose groups were seen to be resident together. */
    lap_kernel *chain_kernels[LAP_PRECISION_COUNT];
    int chain_count;
} lap_session;

lap_status lap_session_open(const lap_device_info *info, lap_session **out, lap_error *err);
lap_status lap_session_close(lap_session *session, lap_error *err); /* NULL is LAP_OK */
/* Fills features for a precision by running test kernels, once; lap_plan_new does it. Fails only
 * when the device does, not when it lacks something. */
lap_status lap_session_probe(lap_session *session, lap_precision precision, lap_error *err);

/* The same for the matrix instructions of AMD and Intel (conv_matrix), which no device of this
 * project has run yet: lap_plan_new does it unless options leave those rows out. */
lap_status lap_session_probe_matrix(lap_session *session, lap_precision precision, lap_error *err);

/* Asked before the list of kernels: the row that c should run, with c->params filled in, or NULL
 * for the list's own choice. c->n is the batch that is chosen for. What does not accept the case,
 * build or fit is passed over like any other row. */
typedef const lap_kernel_row *(*lap_chooser)(void *context, lap_case *c);

/* Asked between the steps of long work: true ends it with LAP_E_INTERRUPTED. Zero: never. */
typedef struct lap_interrupt {
    bool (*asked)(void *context);
    void *context;
} lap_interrupt;

typedef struct lap_plan_options {
    uint64_t batch;
    uint64_t chosen_for; /* choose rows and parameters as for this batch; 0: batch itself */
    lap_precision precision;
    bool naive;          /* only naive kernels */
    bool unfused;        /* a step for every op */
    bool overlap;        /* in a pass a launch may be started while the one before it ends */
    const char *prefer;  /* ids of rows that are tried before all others, variants too */
    const char *exclude; /* ids of rows that are not to be chosen, "a, b"; NULL or "" for none */
    lap_queue *queue;    /* of the session's device, outlives the plan; NULL: the session's own */
    bool no_reuse;       /* every tensor keeps its own memory (layer checks need it) */
    lap_chooser chooser; /* NULL for none; not asked for naive plans */
    void *chooser_context;
    lap_interrupt interrupt; /* of kernel builds and of checks with the plan */
} lap_plan_options;

typedef struct lap_plan lap_plan;

/* Called before each kernel build and each weight upload: done of total. NULL for none. */
typedef void (*lap_progress)(void *context, const char *what, size_t done, size_t total);

lap_status lap_plan_new(lap_session *session, const lap_net *net, const lap_plan_options *options,
                        lap_progress progress, void *context, lap_plan **out, lap_error *err);
lap_status lap_plan_upload(lap_plan *plan, const lap_weights *weights, lap_error *err);
lap_status lap_plan_bind(lap_plan *plan, lap_error *err);
void lap_plan_free(lap_plan *plan);

/* Bytes of device memory that weights, respectively activations and scratch, take or will take. */
uint64_t lap_plan_weight_bytes(const lap_plan *plan);
uint64_t lap_plan_activation_bytes(const lap_plan *plan);
/* The largest piece of the latter that is one buffer. */
uint64_t lap_plan_largest_bytes(const lap_plan *plan);

/* Upload the batch: image i of the batch is images[i % count]; images are float NCHW. */
lap_status lap_plan_set_input(lap_plan *plan, const float *images, size_t count, lap_error *err);
/* The same without the device: the batch as it is stored, lap_plan_input_bytes of it, for callers
 * that copy it themselves into lap_plan_input_buffer. The plan must be bound. */
lap_status lap_plan_pack_input(const lap_plan *plan, const float *images, size_t count, void *out,
                               lap_error *err);
size_t lap_plan_input_bytes(const lap_plan *plan);
lap_buffer *lap_plan_input_buffer(const lap_plan *plan); /* the plan's own; NULL before the bind */
/* The logits as they are stored: floats, classes padded to the channel stride. */
size_t lap_plan_output_bytes(const lap_plan *plan);
lap_buffer *lap_plan_output_buffer(const lap_plan *plan);
lap_queue *lap_plan_queue(const lap_plan *plan);
/* Enqueue one forward pass. After lap_plan_capture it replays the recorded graph. */
lap_status lap_plan_run(lap_plan *plan, lap_error *err);
/* Record the pass as a graph where the device has graphs; *captured says whether. */
lap_status lap_plan_capture(lap_plan *plan, bool *captured, lap_error *err);
/* Blocking: logits[batch][classes]. */
lap_status lap_plan_logits(lap_plan *plan, float *logits, lap_error *err);

/* Steps for checks and layer tables: one per op, or per pair of ops that one row computes. */
int lap_plan_step_count(const lap_plan *plan);
/* Somebody asked to stop (options.interrupt). */
bool lap_plan_interrupted(const lap_plan *plan);
const lap_op *lap_plan_op(const lap_plan *plan, int step);
lap_fusion lap_plan_fusion(const lap_plan *plan, int step);
const lap_op *lap_plan_partner(const lap_plan *plan, int step); /* NULL without fusion */
/* The average pool whose output the step writes beside its own: the partner or a third op; NULL
 * without.
 */
const lap_op *lap_plan_means(const lap_plan *plan, int step);
/* Index of an op of the plan's network. */
int lap_plan_op_index(const lap_plan *plan, const lap_op *op);
/* The tensor a step writes. */
int lap_plan_output(const lap_plan *plan, int step);
/* "conv1", "conv1+maxpool"; static for the plan's life. */
const char *lap_plan_step_name(const lap_plan *plan, int step);
const lap_kernel_row *lap_plan_row(const lap_plan *plan, int step);
const lap_params *lap_plan_params(const lap_plan *plan, int step);
/* The chooser's row and parameters run this step. */
bool lap_plan_chosen(const lap_plan *plan, int step);
/* Why faster rows were passed over for this step ("" if none were): build errors, limits. */
const char *lap_plan_fallback(const lap_plan *plan, int step);
/* Two steps with the same number run the same kernels (same row and defines). */
int lap_plan_build_id(const lap_plan *plan, int step);
/* Kernel launches (and library calls) in one pass. */
int lap_plan_launch_count(const lap_plan *plan);
lap_status lap_plan_run_step(lap_plan *plan, int step, lap_error *err);
/* Tensor access in logical NHWC doubles/floats, converting the stored layout and element type; only
 * for images first..first+count-1. Blocking. Reading checks nothing. */
lap_status lap_plan_tensor_read(lap_plan *plan, int tensor, uint64_t first, uint64_t count,
                                float *nhwc, lap_error *err);
lap_status lap_plan_tensor_write(lap_plan *plan, int tensor, uint64_t first, uint64_t count,
                                 const float *nhwc, lap_error *err);
/* Count stored padding channels (c..cs-1) of all images that are not zero. Blocking. */
lap_status lap_plan_tensor_padding(lap_plan *plan, int tensor, uint64_t *wrong, lap_error *err);
/* Overwrite a tensor with NaN (padding channels too). */
lap_status lap_plan_tensor_poison(lap_plan *plan, int tensor, lap_error *err);
/* All of them but the input: what a pass does not write itself, it has not. */
lap_status lap_plan_poison(lap_plan *plan, lap_error *err);
/* Every buffer has guard words before and after it. LAP_E_VERIFY names the tensor whose were
 * overwritten. */
lap_status lap_plan_guards_check(lap_plan *plan, lap_error *err);

#endif
