/* Which tensors share memory: slots by liveness. A tensor's slot is free again after the last op
 * that reads it; a tensor between fused ops has none. The input is never given away (runs repeat),
 * nor is the output. */
#include "plan/internal.h"

#include <stdlib.h>

unsigned plan_tensor_element(const lap_plan *plan, int tensor) {
    bool logits = tensor == plan->net->ops[plan->net->op_count - 1].output;
    bool small = plan->options.precision == LAP_FP16 || plan->options.precision == LAP_BF16;
    return small && !logits ? 2 : 4;
}

uint64_t plan_tensor_bytes(const lap_plan *plan, int tensor) {
    return lap_tensor_stored(&plan->net->tensors[tensor]) * plan_tensor_element(plan, tensor) *
           plan->options.batch;
}

int plan_step_input(const plan_step *step) {
    return step->c.fusion == LAP_FUSE_SCALE ? step->partner->input : step->op->input;
}

int plan_step_second(const plan_step *step) {
    if (step->c.fusion == LAP_FUSE_SCALE) return step->partner->residual;
    if (step->c.fusion == LAP_FUSE_DOWNSAMPLE) return step->partner->input;
    return step->op->kind == LAP_OP_SCALE ? step->op->residual : -1;
}

static bool reads(const plan_step *step, int tensor) {
    if (plan_step_input(step) == tensor || plan_step_second(step) == tensor) return true;
    return step->c.fusion != LAP_FUSE_DOWNSAMPLE && step->op->residual == tensor;
}

/* The last step that reads the tensor; past the end for the input, which must survive the run, and
 * for results, which no step reads. */
static int last_use(const lap_plan *plan, int tensor) {
    int last = -1;
    for (int i = 0; i < plan->step_count; i++)
        if (reads(&plan->steps[i], tensor)) last = i;
    return tensor == 0 || last < 0 ? plan->step_count : last;
}

/* A free slot for bytes: the smallest that is large enough, else the largest to be grown, else new.
 */
static int take_slot(lap_plan *plan, const int *busy_until, int now, uint64_t bytes) {
    int best = -1;
    for (int s = 0; s < plan->slot_count; s++) {
        if (plan->options.no_reuse || busy_until[s] >= now) continue;
        if (best < 0) {
            best = s;
            continue;
        }
        uint64_t have = plan->slot_bytes[s], had = plan->slot_bytes[best];
        bool fits = have >= bytes, fitted = had >= bytes;
        if (fits != fitted ? fits : fits ? have < had : have > had) best = s;
    }
    if (best < 0) {
        best = plan->slot_count++;
        plan->slot_bytes[best] = 0;
    }
    if (plan->slot_bytes[best] < bytes) plan->slot_bytes[best] = bytes;
    return best;
}

lap_status plan_memory_layout(lap_plan *plan, lap_error *err) {
    const lap_net *net = plan->net;
    size_t n = (size_t)net->tensor_count;
    plan->slot_of = malloc(n * sizeof *plan->slot_of);
    plan->slot_bytes = calloc(n, sizeof *plan->slot_bytes);
    plan->slots = calloc(n, sizeof *plan->slots);
    int *busy_until = calloc(n, sizeof *busy_until);
    if (!plan->slot_of || !plan->slot_bytes || !plan->slots || !busy_until) {
        free(busy_until);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a plan's layout");
    }
    for (int t = 0; t < net->tensor_count; t++)
        plan->slot_of[t] = -1;
    /* Step i writes its output while reading its inputs, so a slot is free for it only if its last
     * use was before i. */
    plan->slot_of[0] = take_slot(plan, busy_until, 0, plan_tensor_bytes(plan, 0));
    busy_until[plan->slot_of[0]] = last_use(plan, 0);
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        int written[] = {step->output, step->means ? step->means->output : -1};
        for (int w = 0; w < 2 && written[w] >= 0; w++) {
            int t = written[w];
            int slot = take_slot(plan, busy_until, i, plan_tensor_bytes(plan, t));
            plan->slot_of[t] = slot;
            busy_until[slot] = last_use(plan, t);
        }
    }
    free(busy_until);
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        if (!step->row->scratch_bytes || step->row->scratch_zeroed) continue;
        uint64_t bytes = step->row->scratch_bytes(&step->c);
        if (bytes > plan->scratch_bytes) plan->scratch_bytes = bytes;
    }
    return LAP_OK;
}
