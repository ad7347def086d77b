/* The memory layout on thousands of made-up networks: tensors that are alive at the same time never
 * share memory, whatever the order of uses. */
#include "base/rng.h"
#include "plan/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OPS = 24, NETS = 3000 };

static uint64_t counter;

static int below(int n) {
    return (int)(lap_rng_uniform(42, 0, counter++) * n);
}

static const lap_kernel_row plain = {.id = "plain"};

typedef struct made {
    lap_op ops[OPS];
    lap_tensor tensors[OPS + 1];
    plan_step steps[OPS];
    lap_net net;
    lap_plan plan;
} made;

/* Op i reads any earlier tensor, now and then a second one, and writes tensor i + 1. */
static void make(made *m, bool no_reuse) {
    memset(m, 0, sizeof *m);
    m->net = (lap_net){.ops = m->ops, .tensors = m->tensors};
    m->net.op_count = 1 + below(OPS);
    m->net.tensor_count = m->net.op_count + 1;
    for (int t = 0; t < m->net.tensor_count; t++) {
        int c = 4 * (1 + below(8));
        m->tensors[t] = (lap_tensor){.c = c, .h = 1 + below(9), .w = 1 + below(9), .cs = c};
    }
    for (int i = 0; i < m->net.op_count; i++) {
        lap_op *op = &m->ops[i];
        op->input = below(3) ? i : below(i + 1);
        op->residual = below(3) ? -1 : below(i + 1);
        op->output = i + 1;
        m->steps[i].row = &plain;
        m->steps[i].op = op;
        m->steps[i].output = op->output;
    }
    m->plan = (lap_plan){.net = &m->net,
                         .steps = m->steps,
                         .step_count = m->net.op_count,
                         .options = {.batch = 1 + (uint64_t)below(5), .no_reuse = no_reuse}};
}

static void clear(made *m) {
    free(m->plan.slot_of);
    free(m->plan.slot_bytes);
    free(m->plan.slots);
}

/* First and last op during which a tensor's bytes matter, computed without src/plan. The input is
 * needed again by the next run; what nobody reads is a result. */
static void life(const made *m, int t, int *from, int *to) {
    *from = t - 1;
    *to = -1;
    for (int i = 0; i < m->net.op_count; i++)
        if (m->ops[i].input == t || m->ops[i].residual == t) *to = i;
    if (t == 0 || *to < 0) *to = OPS + 1;
}

static bool overlap(const made *m, int a, int b) {
    int a0, a1, b0, b1;
    life(m, a, &a0, &a1);
    life(m, b, &b0, &b1);
    return a0 <= b1 && b0 <= a1;
}

static uint64_t check(const made *m) {
    const lap_plan *plan = &m->plan;
    for (int a = 0; a < m->net.tensor_count; a++) {
        int slot = plan->slot_of[a];
        assert_in_range(slot, 0, plan->slot_count - 1);
        uint64_t bytes = lap_tensor_stored(&m->tensors[a]) * 4 * plan->options.batch;
        assert_true(plan->slot_bytes[slot] >= bytes);
        for (int b = 0; b < a; b++)
            if (overlap(m, a, b) && plan->slot_of[b] == slot)
                fail_msg("tensors %d and %d are alive together and share slot %d", b, a, slot);
    }
    uint64_t sum = 0;
    for (int s = 0; s < plan->slot_count; s++)
        sum += plan->slot_bytes[s];
    return sum;
}

static void test_live_tensors(void **state) {
    (void)state;
    static made m;
    int shared = 0;
    for (int i = 0; i < NETS; i++) {
        make(&m, false);
        assert_int_equal(plan_memory_layout(&m.plan, NULL), LAP_OK);
        check(&m);
        shared += m.plan.slot_count < m.net.tensor_count;
        clear(&m);
    }
    assert_true(shared > NETS / 2); /* else the test proves nothing */
}

static void test_no_reuse(void **state) {
    (void)state;
    static made m;
    for (int i = 0; i < 200; i++) {
        make(&m, true);
        assert_int_equal(plan_memory_layout(&m.plan, NULL), LAP_OK);
        check(&m);
        assert_int_equal(m.plan.slot_count, m.net.tensor_count);
        clear(&m);
    }
}

/* Scratch that need not be zeroed is shared: the largest wins. */
static uint64_t scratch_a(const lap_case *c) {
    return 100 * c->n;
}

static uint64_t scratch_b(const lap_case *c) {
    return (UINT64_C(3) << 32) * c->n;
}

static void test_scratch(void **state) {
    (void)state;
    static made m;
    const lap_kernel_row a = {.scratch_bytes = scratch_a}, b = {.scratch_bytes = scratch_b};
    const lap_kernel_row own = {.scratch_bytes = scratch_b, .scratch_zeroed = true};
    do {
        make(&m, false);
    } while (m.net.op_count < 3);
    const lap_kernel_row *rows[] = {&a, &b, &own};
    for (int i = 0; i < 3; i++) {
        m.steps[i].row = rows[i];
        m.steps[i].c.n = i == 2 ? 9 : 2; /* the zeroed one is not part of the shared scratch */
    }
    assert_int_equal(plan_memory_layout(&m.plan, NULL), LAP_OK);
    assert_true(m.plan.scratch_bytes == UINT64_C(6) << 32);
    clear(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_live_tensors),
        cmocka_unit_test(test_no_reuse),
        cmocka_unit_test(test_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
