/* Whole plans on the fake backend: the phases and their order, uploads, and that sharing memory
 * between tensors changes no bit of the logits. */
#include "fixture.h"
#include "kernel/rows.h"
#include "tiny.h"

static void test_reuse_changes_no_bit(void **state) {
    (void)state;
    start();
    lap_error err = {0};
    lap_net *net;
    lap_weights *weights;
    MUST(lap_net_build("resnet18", 32, 32, &net, &err));
    MUST(lap_weights_load(net, "synthetic:1", &weights, &err));
    lap_input *input;
    MUST(lap_input_open("synthetic:1", 3, 32, 32, &input, &err));
    static float images[2][3 * 32 * 32], logits[2][2 * 1000];
    for (uint64_t i = 0; i < 2; i++)
        MUST(lap_input_image(input, i, images[i], &err));
    lap_session *session = open_session();
    uint64_t bytes[2];
    for (int no_reuse = 0; no_reuse < 2; no_reuse++) {
        lap_plan *plan =
            ready_plan(session, net, weights,
                       (lap_plan_options){.batch = 2, .naive = true, .no_reuse = no_reuse == 1});
        bytes[no_reuse] = lap_plan_activation_bytes(plan);
        MUST(lap_plan_set_input(plan, images[0], 2, &err));
        MUST(lap_plan_run(plan, &err));
        MUST(lap_plan_logits(plan, logits[no_reuse], &err));
        if (!no_reuse) { /* a second run finds its input where the first left it */
            static float again[2 * 1000];
            MUST(lap_plan_run(plan, &err));
            MUST(lap_plan_logits(plan, again, &err));
            assert_memory_equal(again, logits[0], sizeof again);
        }
        MUST(lap_plan_guards_check(plan, &err));
        lap_plan_free(plan);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    assert_memory_not_equal(logits[0], logits[0] + 1000, 1000 * sizeof(float));
    assert_true(bytes[0] < bytes[1] / 2);
    close_session(session);
    lap_input_free(input);
    lap_weights_free(weights);
    lap_net_free(net);
}

typedef struct tiny {
    lap_net *net;
    lap_weights *weights;
    lap_expected expected;
    lap_session *session;
} tiny;

static int set_up(void **state) {
    static tiny t;
    start();
    t.net = tiny_net();
    t.weights = tiny_weights(t.net);
    tiny_expected(t.net, t.weights, 2, &t.expected);
    t.session = open_session();
    *state = &t;
    return 0;
}

static int tear_down(void **state) {
    tiny *t = *state;
    close_session(t->session);
    lap_expected_free(&t->expected);
    lap_weights_free(t->weights);
    lap_net_free(t->net);
    return 0;
}

static void test_uploads(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    uint64_t before = fake.used_bytes[0];
    lap_plan_options options = {.batch = 3, .naive = true};
    lap_plan *plan;
    MUST(lap_plan_new(t->session, t->net, &options, NULL, NULL, &plan, &err));
    assert_int_equal(fake.used_bytes[0], before); /* nothing but kernels yet */
    MUST(lap_plan_upload(plan, t->weights, &err));
    assert_int_equal(fake.used_bytes[0] - before, lap_plan_weight_bytes(plan));
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        const lap_op_weights *w = &t->weights->ops[i];
        if (!w->w) {
            assert_null(step->weights.whole);
            assert_null(step->bias.whole);
            continue;
        }
        size_t bytes = step->row->packed_bytes(&step->c);
        void *want = malloc(bytes), *got = malloc(bytes);
        step->row->pack(&step->c, w, want);
        MUST(lap_buffer_read(t->session->queue, step->weights.data, 0, got, bytes, &err));
        assert_memory_equal(got, want, bytes);
        free(want);
        free(got);
        float bias[16] = {0};
        size_t stored = (size_t)step->op->out.cs;
        assert_int_equal(lap_buffer_bytes(step->bias.data), stored * sizeof *bias);
        MUST(lap_buffer_read(t->session->queue, step->bias.data, 0, bias, stored * sizeof *bias,
                             &err));
        assert_memory_equal(bias, w->bias, w->k * sizeof *bias);
        for (size_t k = w->k; k < stored; k++)
            assert_true(bias[k] == 0.0f);
    }
    uint64_t uploaded = fake.used_bytes[0];
    MUST(lap_plan_bind(plan, &err));
    assert_int_equal(fake.used_bytes[0] - uploaded, lap_plan_activation_bytes(plan));
    lap_plan_free(plan);
}

/* What the plan computes is what the reference computes, image by image. */
static void test_batches(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    for (uint64_t batch = 1; batch <= 5; batch++) {
        lap_plan *plan = ready_plan(t->session, t->net, t->weights,
                                    (lap_plan_options){.batch = batch, .naive = true});
        MUST(lap_plan_set_input(plan, t->expected.images, t->expected.count, &err));
        MUST(lap_plan_run(plan, &err));
        float logits[5][TINY_CLASSES];
        MUST(lap_plan_logits(plan, logits[0], &err));
        for (uint64_t i = 0; i < batch; i++)
            for (size_t k = 0; k < TINY_CLASSES; k++) {
                double want = t->expected.logits[i % 2 * TINY_CLASSES + k];
                assert_true((double)logits[i][k] - want < 1e-4);
                assert_true(want - (double)logits[i][k] < 1e-4);
            }
        lap_plan_free(plan);
    }
}

/* A recorded graph gives the same bits as launches, and is replayed, not recorded again. */
static void test_graph(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    lap_plan *plan =
        ready_plan(t->session, t->net, t->weights, (lap_plan_options){.batch = 2, .naive = true});
    MUST(lap_plan_set_input(plan, t->expected.images, 2, &err));
    MUST(lap_plan_run(plan, &err));
    float before[2 * TINY_CLASSES], after[2 * TINY_CLASSES];
    MUST(lap_plan_logits(plan, before, &err));
    bool captured = false;
    MUST(lap_plan_capture(plan, &captured, &err));
    assert_true(captured);
    uint64_t launches = fake.launches;
    MUST(lap_plan_tensor_poison(plan, t->net->ops[t->net->op_count - 1].output, &err));
    MUST(lap_plan_run(plan, &err));
    assert_int_equal(fake.launches, launches);
    MUST(lap_plan_logits(plan, after, &err));
    assert_memory_equal(before, after, sizeof before);
    MUST(lap_plan_capture(plan, &captured, &err));
    assert_true(captured);
    lap_plan_free(plan);
}

/* Every tensor but the input is NaN, and the next pass gives the same bits. */
static void test_poison(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    lap_plan_options options = {.batch = 1, .naive = true, .no_reuse = true};
    lap_plan *plan = ready_plan(t->session, t->net, t->weights, options);
    MUST(lap_plan_set_input(plan, t->expected.images, 1, &err));
    MUST(lap_plan_run(plan, &err));
    float before[TINY_CLASSES], after[TINY_CLASSES];
    MUST(lap_plan_logits(plan, before, &err));
    MUST(lap_plan_poison(plan, &err));
    for (int i = 0; i < t->net->tensor_count; i++) {
        const lap_tensor *tensor = &t->net->tensors[i];
        size_t count = (size_t)lap_tensor_logical(tensor), finite = 0;
        float *values = malloc(count * sizeof *values);
        assert_non_null(values);
        MUST(lap_plan_tensor_read(plan, i, 0, 1, values, &err));
        for (size_t k = 0; k < count; k++)
            finite += values[k] - values[k] == 0.0f;
        assert_int_equal(finite, i ? 0 : count);
        free(values);
    }
    MUST(lap_plan_run(plan, &err));
    MUST(lap_plan_logits(plan, after, &err));
    assert_memory_equal(before, after, sizeof before);
    lap_plan_free(plan);
}

/* Launches behind the first of a pass may be started early, if that is wanted; a step that runs
 * alone, as it is timed and verified, never is. */
static void test_overlap(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    for (int wanted = 0; wanted < 2; wanted++) {
        lap_plan *plan =
            ready_plan(t->session, t->net, t->weights,
                       (lap_plan_options){.batch = 1, .naive = true, .overlap = wanted});
        MUST(lap_plan_set_input(plan, t->expected.images, 1, &err));
        for (int twice = 0; twice < 2; twice++) {
            uint64_t launches = fake.launches, overlaps = fake.overlaps;
            MUST(lap_plan_run(plan, &err));
            launches = fake.launches - launches;
            assert_true(launches > 1);
            assert_int_equal(fake.overlaps - overlaps, wanted ? launches - 1 : 0);
            overlaps = fake.overlaps;
            for (int i = 0; i < lap_plan_step_count(plan); i++)
                MUST(lap_plan_run_step(plan, i, &err));
            assert_int_equal(fake.overlaps, overlaps);
        }
        lap_plan_free(plan);
    }
}

static void test_order(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    lap_plan_options options = {.batch = 1, .naive = true};
    lap_plan *plan;
    MUST(lap_plan_new(t->session, t->net, &options, NULL, NULL, &plan, &err));
    assert_int_equal(lap_plan_bind(plan, &err), LAP_E_ARG);
    assert_int_equal(lap_plan_run(plan, &err), LAP_E_ARG);
    float logits[TINY_CLASSES];
    assert_int_equal(lap_plan_logits(plan, logits, &err), LAP_E_ARG);
    assert_int_equal(lap_plan_set_input(plan, t->expected.images, 1, &err), LAP_E_ARG);
    lap_weights other = *t->weights;
    other.op_count--;
    assert_int_equal(lap_plan_upload(plan, &other, &err), LAP_E_ARG);
    MUST(lap_plan_upload(plan, t->weights, &err));
    MUST(lap_plan_bind(plan, &err));
    assert_int_equal(lap_plan_bind(plan, &err), LAP_E_ARG);
    assert_int_equal(lap_plan_set_input(plan, t->expected.images, 0, &err), LAP_E_ARG);
    float *one = malloc(sizeof *one);
    assert_int_equal(lap_plan_tensor_read(plan, 0, 1, 1, one, &err), LAP_E_ARG);
    assert_int_equal(lap_plan_tensor_read(plan, 0, UINT64_MAX, 2, one, &err), LAP_E_ARG);
    assert_int_equal(lap_plan_tensor_read(plan, -1, 0, 1, one, &err), LAP_E_ARG);
    assert_int_equal(lap_plan_tensor_read(plan, 99, 0, 1, one, &err), LAP_E_ARG);
    free(one);
    lap_plan_free(plan);
}

static void count_calls(void *context, const char *what, size_t done, size_t total) {
    int *calls = context;
    assert_true(what && *what);
    assert_int_equal(done, *calls);
    assert_int_equal(total, 2 * TINY_OPS);
    ++*calls;
}

/* Equal builds happen once in a session, for all plans in it. */
static void test_builds_are_shared(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    lap_plan_options options = {.batch = 1, .naive = true};
    lap_plan *plan;
    int calls = 0;
    MUST(lap_plan_new(t->session, t->net, &options, count_calls, &calls, &plan, &err));
    assert_int_equal(calls, 2 * TINY_OPS);
    uint64_t builds = fake.builds;
    assert_int_equal(builds, 6);
    lap_plan_free(plan);
    options.batch = 7;
    MUST(lap_plan_new(t->session, t->net, &options, NULL, NULL, &plan, &err));
    assert_int_equal(fake.builds, builds);
    for (int i = 0; i < lap_plan_step_count(plan); i++)
        /* conv3 is conv2 with a residual, which is an argument, not a define. */
        assert_int_equal(lap_plan_build_id(plan, i), i == 3 ? 2 : i);
    lap_plan_free(plan);
}

static void test_padding_and_poison(void **state) {
    const tiny *t = *state;
    lap_error err = {0};
    lap_plan *plan = ready_plan(t->session, t->net, t->weights,
                                (lap_plan_options){.batch = 2, .naive = true, .no_reuse = true});
    MUST(lap_plan_set_input(plan, t->expected.images, 2, &err));
    uint64_t wrong;
    MUST(lap_plan_tensor_padding(plan, 1, &wrong, &err)); /* poisoned when it was bound */
    assert_int_equal(wrong, 2 * 4 * 4 * 2);               /* images, pixels, 8 - 6 channels */
    MUST(lap_plan_run(plan, &err));
    for (int tensor = 0; tensor < t->net->tensor_count; tensor++) {
        MUST(lap_plan_tensor_padding(plan, tensor, &wrong, &err));
        assert_int_equal(wrong, 0);
    }
    MUST(lap_plan_tensor_poison(plan, 1, &err));
    float values[2 * 6 * 4 * 4];
    MUST(lap_plan_tensor_read(plan, 1, 0, 2, values, &err));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(values[i] != values[i]);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)i;
    MUST(lap_plan_tensor_write(plan, 1, 0, 2, values, &err));
    float back[sizeof values / sizeof *values];
    MUST(lap_plan_tensor_read(plan, 1, 0, 2, back, &err));
    assert_memory_equal(values, back, sizeof values);
    MUST(lap_plan_tensor_padding(plan, 1, &wrong, &err));
    assert_int_equal(wrong, 0);
    lap_plan_free(plan);
}

int main(void) {
#define TINY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reuse_changes_no_bit),
        TINY_TEST(test_uploads),
        TINY_TEST(test_batches),
        TINY_TEST(test_graph),
        TINY_TEST(test_poison),
        TINY_TEST(test_overlap),
        TINY_TEST(test_order),
        TINY_TEST(test_builds_are_shared),
        TINY_TEST(test_padding_and_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
