/* Guard words: a write of one word before or after any buffer of a plan is found, and the message
 * names the buffer, the side and the distance. */
#include "fixture.h"
#include "tiny.h"

typedef struct owned {
    const plan_buffer *buffer;
    const char *expected; /* part of the label */
} owned;

static void spoil(lap_session *session, const plan_buffer *buffer, size_t offset) {
    lap_error err = {0};
    uint32_t word = 0;
    MUST(lap_buffer_write(session->queue, buffer->whole, offset, &word, sizeof word, &err));
}

static void restore(lap_session *session, const plan_buffer *buffer, size_t offset) {
    lap_error err = {0};
    uint32_t word = PLAN_GUARD_WORD;
    MUST(lap_buffer_write(session->queue, buffer->whole, offset, &word, sizeof word, &err));
}

static void check_one(lap_session *session, lap_plan *plan, const owned *o) {
    const plan_buffer *b = o->buffer;
    size_t end = PLAN_GUARD_BYTES + b->bytes;
    const struct {
        size_t offset;
        const char *text;
    } places[] = {{0, "4096 bytes before its start"},
                  {PLAN_GUARD_BYTES - 4, "4 bytes before its start"},
                  {end, "0 bytes after its end"},
                  {end + PLAN_GUARD_BYTES - 4, "4092 bytes after its end"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        lap_error err = {0};
        spoil(session, b, places[i].offset);
        assert_int_equal(lap_plan_guards_check(plan, &err), LAP_E_VERIFY);
        if (!strstr(err.message, o->expected) || !strstr(err.message, places[i].text))
            fail_msg("expected '%s' and '%s', got '%s'", o->expected, places[i].text, err.message);
        restore(session, b, places[i].offset);
        MUST(lap_plan_guards_check(plan, &err));
    }
    /* The data itself is free to change. */
    lap_error err = {0};
    spoil(session, b, PLAN_GUARD_BYTES);
    spoil(session, b, end - 4);
    MUST(lap_plan_guards_check(plan, &err));
}

static uint64_t scratch_bytes(const lap_case *c) {
    (void)c;
    return 40;
}

/* The chosen rows, two of them with scratch: one shared, one of its own. */
static void give_scratch(lap_plan *plan, lap_kernel_row rows[2]) {
    for (int i = 0; i < 2; i++) {
        int step = i ? 2 : 0;
        rows[i] = *plan->steps[step].row;
        rows[i].scratch_bytes = scratch_bytes;
        rows[i].scratch_zeroed = i == 1;
        plan->steps[step].row = &rows[i];
    }
    plan->scratch_bytes = 40;
}

static void test_every_buffer(void **state) {
    (void)state;
    start();
    lap_error err = {0};
    lap_net *net = tiny_net();
    lap_weights *weights = tiny_weights(net);
    lap_session *session = open_session();
    lap_plan_options options = {.batch = 2, .naive = true, .no_reuse = true};
    lap_plan *plan;
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    lap_kernel_row rows[2];
    give_scratch(plan, rows);
    MUST(lap_plan_upload(plan, weights, &err));
    MUST(lap_plan_bind(plan, &err));
    MUST(lap_plan_guards_check(plan, &err));

    char labels[64][64];
    size_t count = 0;
    owned all[64];
    for (int s = 0; s < plan->slot_count; s++) {
        snprintf(labels[count], sizeof labels[0], s ? "%s output" : "the input",
                 s ? net->ops[s - 1].name : "");
        all[count] = (owned){&plan->slots[s], labels[count]};
        count++;
    }
    for (int i = 0; i < plan->step_count; i++) {
        const plan_step *step = &plan->steps[i];
        const plan_buffer *buffers[] = {&step->weights, &step->bias, &step->own_scratch};
        const char *const kinds[] = {"weights", "bias", "scratch"};
        for (size_t b = 0; b < 3; b++) {
            if (!buffers[b]->whole) continue;
            snprintf(labels[count], sizeof labels[0], "%s %s", net->ops[i].name, kinds[b]);
            all[count] = (owned){buffers[b], labels[count]};
            count++;
        }
    }
    all[count++] = (owned){&plan->scratch, "outside scratch"};
    /* The tensors, 5 ops with weights and bias, two kinds of scratch. */
    assert_int_equal(count, TINY_OPS + 1 + 2 * 5 + 2);
    for (size_t i = 0; i < count; i++)
        check_one(session, plan, &all[i]);
    lap_plan_free(plan);
    close_session(session);
    lap_weights_free(weights);
    lap_net_free(net);
}

/* Own scratch starts as zeros, and what kernels see of every tensor starts as NaN. */
static void test_first_contents(void **state) {
    (void)state;
    start();
    lap_error err = {0};
    lap_net *net = tiny_net();
    lap_weights *weights = tiny_weights(net);
    lap_session *session = open_session();
    lap_plan_options options = {.batch = 1, .naive = true};
    lap_plan *plan;
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    lap_kernel_row rows[2];
    give_scratch(plan, rows);
    MUST(lap_plan_upload(plan, weights, &err));
    MUST(lap_plan_bind(plan, &err));
    uint32_t words[10];
    MUST(lap_buffer_read(session->queue, plan->steps[2].own_scratch.data, 0, words, sizeof words,
                         &err));
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(words[i], 0);
    for (int s = 0; s < plan->slot_count; s++)
        for (size_t at = 0; at < plan->slots[s].bytes; at += 4) {
            MUST(lap_buffer_read(session->queue, plan->slots[s].data, at, words, 4, &err));
            assert_int_equal(words[0], PLAN_NAN_WORD);
        }
    lap_plan_free(plan);
    close_session(session);
    lap_weights_free(weights);
    lap_net_free(net);
}

/* An alignment that guards cannot keep is refused, not ignored. */
static void test_alignment(void **state) {
    (void)state;
    const uint32_t bad[] = {8192, 3000};
    for (size_t i = 0; i < 2; i++) {
        start();
        fake.devices[0].base_align_bytes = bad[i];
        lap_session *session = open_session();
        plan_buffer buffer;
        lap_error err = {0};
        assert_int_equal(plan_buffer_new(session->queue, 64, "x", &buffer, &err),
                         LAP_E_UNSUPPORTED);
        assert_null(buffer.whole);
        assert_int_equal(plan_buffer_new(session->queue, 0, "x", &buffer, &err), LAP_E_UNSUPPORTED);
        close_session(session);
    }
    start();
    lap_session *session = open_session();
    plan_buffer buffer;
    lap_error err = {0};
    assert_int_equal(plan_buffer_new(session->queue, UINT64_MAX - 1, "x", &buffer, &err),
                     LAP_E_OOM);
    assert_int_equal(plan_buffer_new(session->queue, 0, "x", &buffer, &err), LAP_E_OOM);
    MUST(plan_buffer_new(session->queue, 5, "x", &buffer, &err)); /* rounded up to whole words */
    assert_int_equal(buffer.bytes, 8);
    plan_buffer_free(&buffer);
    close_session(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_buffer),
        cmocka_unit_test(test_first_contents),
        cmocka_unit_test(test_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
