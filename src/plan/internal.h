/* Private to src/plan: what a plan is made of. */
#ifndef LAP_PLAN_INTERNAL_H
#define LAP_PLAN_INTERNAL_H

#include "kernel/chain.h"
#include "plan/plan.h"

/* Guard words on both sides of every buffer. Both patterns are NaN in every
 * storage type, so that a kernel which reads
 * past an end spoils its own result, and one which writes there is seen by lap_plan_guards_check.
 */
#define PLAN_GUARD_BYTES 4096u
#define PLAN_GUARD_WORD 0x7FFE7FFEu
#define PLAN_NAN_WORD 0x7FFF7FFFu

typedef struct plan_buffer {
    lap_buffer *whole; /* guard, data, guard */
    lap_buffer *data;  /* view of the middle */
    size_t offset;     /* of the first guard in whole */
    size_t bytes;
    bool borrowed; /* whole belongs to an arena */
    char label[64];
} plan_buffer;

/* Memory that many buffers, each between its guards, are parts of. */
typedef struct plan_arena {
    lap_buffer *whole; /* NULL: there is none */
    size_t bytes, used;
} plan_arena;

lap_status plan_buffer_new(lap_queue *queue, uint64_t bytes, const char *label, plan_buffer *out,
                           lap_error *err);
/* The same in an arena, which outlives it; like plan_buffer_new if arena->whole is NULL. */
lap_status plan_buffer_in(plan_arena *arena, lap_queue *queue, uint64_t bytes, const char *label,
                          plan_buffer *out, lap_error *err);
void plan_buffer_free(plan_buffer *buffer);
/* What a buffer takes of an arena. */
uint64_t plan_arena_room(uint64_t bytes);
lap_status plan_arena_new(lap_queue *queue, uint64_t bytes, const char *label, plan_arena *out,
                          lap_error *err);
void plan_arena_free(plan_arena *arena);
lap_status plan_buffer_check(lap_queue *queue, const plan_buffer *buffer, lap_error *err);

typedef struct plan_launch {
    lap_stage_kind kind;
    lap_launch launch; /* args points into the struct's own array */
    lap_arg args[LAP_MAX_ROLES];
    lap_gemm gemm;
} plan_launch;

typedef struct plan_step {
    const lap_op *op;
    const lap_op *partner; /* NULL without fusion */
    const lap_op *means;   /* the average pool whose output is written beside; NULL without */
    int output;            /* tensor */
    char name[100];
    const lap_kernel_row *row;
    lap_case c;                          /* n is the plan's batch, params as chosen */
    lap_kernel *kernels[LAP_MAX_STAGES]; /* the session cache owns them */
    int build_id;
    bool chosen;    /* by the options' chooser */
    char *fallback; /* NULL when the first acceptable row was taken */
    plan_buffer weights, bias;
    plan_buffer own_scratch; /* rows with scratch_zeroed */
    plan_launch launches[LAP_MAX_STAGES];
    int chain_index; /* in the plan's table of steps; -1: not chained */
    int chain_count; /* steps, from this one, that one launch runs */
} plan_step;

struct lap_plan {
    lap_session *session;
    lap_queue *queue;
    const lap_net *net;
    lap_plan_options options;
    plan_step *steps;
    int step_count;
    int *slot_of; /* per tensor: index into slots */
    plan_buffer *slots;
    uint64_t *slot_bytes;
    int slot_count;
    plan_buffer scratch; /* shared */
    uint64_t scratch_bytes;
    plan_arena memory, parameters; /* of plans with chained steps */
    plan_buffer table, sync;       /* of the chained steps */
    lap_graph *graph;
    bool uploaded, bound;
};

/* plan.c, for chain.c */
int plan_bias_stride(const plan_step *step);
int plan_flags(const plan_step *step); /* LAP_FLAG_* */

/* chain.c: does the step's row allow a chain? */
bool plan_chained(const plan_step *step);
/* May this launch's groups wait for each other? Once a kernel; LAP_E_UNSUPPORTED: no. */
lap_status plan_chain_test(lap_plan *plan, const lap_launch *launch, lap_error *err);
/* Which steps are one launch: fills chain_index and chain_count. */
void plan_chain_form(lap_plan *plan);
/* Make plan->parameters, plan->memory, plan->table and plan->sync if there are chained steps. */
lap_status plan_chain_parameters(lap_plan *plan, lap_error *err);
lap_status plan_chain_memory(lap_plan *plan, lap_error *err);
lap_status plan_chain_table(lap_plan *plan, lap_error *err);
/* Enqueue the chain that begins at a step; more: another step of the pass follows at once. */
lap_status plan_chain_run(lap_plan *plan, int first, bool more, lap_error *err);
/* LAP_E_LAUNCH if a barrier has given up since the bind. Blocking. */
lap_status plan_chain_check(lap_plan *plan, lap_error *err);

/* Bytes of a stored element. Logits are float in every precision. */
unsigned plan_tensor_element(const lap_plan *plan, int tensor);
uint64_t plan_tensor_bytes(const lap_plan *plan, int tensor);
/* memory.c: slots by liveness. Fills slot_of, slot_bytes, slot_count, scratch_bytes. */
lap_status plan_memory_layout(lap_plan *plan, lap_error *err);

/* choose.c: pick a row for the step's op (and partner) and build its kernels. */
bool plan_wants_matrix(const lap_plan_options *options);
lap_status plan_choose(lap_plan *plan, plan_step *step, lap_fusion fusion, lap_error *err);

/* fuse.c: the op that could be computed together with op index, and how; NULL if there is none. */
const lap_op *plan_partner(const lap_net *net, int index, lap_fusion *fusion);

/* A pool over all of a depthwise convolution's output, which others may read too; NULL if there is
 * none.
 */
const lap_op *plan_means(const lap_net *net, const lap_op *op);

/* The tensor that LAP_ROLE_IN stands for, and the one that LAP_ROLE_IN2 does (-1: none). */
int plan_step_input(const plan_step *step);
int plan_step_second(const plan_step *step);

/* cache.c */
typedef struct lap_kernel_cache lap_kernel_cache;
lap_status lap_kernel_cache_new(lap_kernel_cache **out, lap_error *err);
void lap_kernel_cache_free(lap_kernel_cache *cache);
/* The kernel for (stem, entry, defines): built on first request. The cache owns it. */
lap_status lap_kernel_cache_get(lap_kernel_cache *cache, lap_device *device, const char *stem,
                                const char *entry, const lap_define *defines, size_t define_count,
                                lap_kernel **out, lap_error *err);

#endif
