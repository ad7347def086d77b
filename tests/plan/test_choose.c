/* Which kernel a plan takes: the first that accepts, builds and fits, and what it says about those
 * it passed over. Every row of the list can be built here, by functions that do nothing. */
#include "fixture.h"
#include "tiny.h"

static void nothing(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                    void *const *pointers) {
    (void)defines;
    (void)count;
    (void)launch;
    (void)pointers;
}

static lap_net *net; /* resnet18 at 32x32: real shapes for the rows to judge */
static lap_weights *weights;

static lap_session *begin(void) {
    start();
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count; i++)
        for (int s = 0; s < rows[i]->stage_count; s++)
            if (rows[i]->stages[s].kind == LAP_STAGE_KERNEL && !rows[i]->naive)
                assert_true(
                    fake_register(rows[i]->stages[s].stem, rows[i]->stages[s].entry, nothing));
    return open_session();
}

/* A step for every op, so that steps and ops have the same index. */
static lap_plan *new_plan(lap_session *session, lap_plan_options options) {
    options.unfused = true;
    lap_plan *plan;
    lap_error err = {0};
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    return plan;
}

static void test_first_that_accepts(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_plan *plan = new_plan(session, (lap_plan_options){.batch = 4});
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        assert_string_equal(lap_plan_fallback(plan, i), "");
        lap_case c = {
            .op = &net->ops[i], .device = &fake.devices[0], .precision = LAP_FP32, .n = 4};
        const lap_kernel_row *want = lap_kernel_choose(&c, false, false);
        assert_ptr_equal(lap_plan_row(plan, i), want);
        assert_false(want->naive); /* a GPU has better ones for every kind */
        assert_memory_equal(lap_plan_params(plan, i), &c.params, sizeof c.params);
    }
    lap_plan_free(plan);
    plan = new_plan(session, (lap_plan_options){.batch = 4, .naive = true});
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        assert_true(lap_plan_row(plan, i)->naive);
        assert_string_equal(lap_plan_fallback(plan, i), "");
    }
    lap_plan_free(plan);
    close_session(session);
}

/* Pairs that a row computes together make one step; what does not build falls apart again. */
static void test_pairs(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_plan *plan;
    lap_error err = {0};
    lap_plan_options options = {.batch = 1};
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    assert_int_equal(lap_plan_step_count(plan), net->op_count - 5);
    assert_string_equal(lap_plan_step_name(plan, 0), "conv1+maxpool");
    assert_int_equal(lap_plan_fusion(plan, 0), LAP_FUSE_MAXPOOL);
    int last = lap_plan_step_count(plan) - 1;
    assert_string_equal(lap_plan_step_name(plan, last), "avgpool+fc");
    assert_int_equal(lap_plan_output(plan, last), net->ops[net->op_count - 1].output);
    lap_plan_free(plan);
    close_session(session);

    session = begin();
    fake.fail_build_stem = "stem_g";
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    assert_int_equal(lap_plan_step_count(plan), net->op_count - 4);
    assert_string_equal(lap_plan_step_name(plan, 0), "conv1");
    assert_non_null(strstr(lap_plan_fallback(plan, 0), "stem_g: "));
    lap_plan_free(plan);
    close_session(session);
}

static void test_build_failure(void **state) {
    (void)state;
    lap_session *session = begin();
    fake.fail_build_stem = "conv_igemm";
    const char *others = "conv_winograd_g, conv_winograd_down_g";
    lap_plan *plan = new_plan(session, (lap_plan_options){.batch = 4, .exclude = others});
    int convolutions = 0;
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        const char *why = lap_plan_fallback(plan, i);
        if (net->ops[i].kind != LAP_OP_CONV) {
            if (!strstr(why, "conv_igemm")) assert_string_equal(why, "");
            continue;
        }
        convolutions++;
        assert_string_equal(lap_plan_row(plan, i)->id, "conv_naive");
        if (!strstr(why, "conv_igemm: ") || !strstr(why, "planted build failure"))
            fail_msg("%s: passed over says '%s'", net->ops[i].name, why);
    }
    assert_int_equal(convolutions, 20);
    lap_plan_free(plan);
    close_session(session);
}

static bool uses(const lap_plan *plan, const char *id) {
    for (int i = 0; i < lap_plan_step_count(plan); i++)
        if (strcmp(lap_plan_row(plan, i)->id, id) == 0) return true;
    return false;
}

/* A row whose test convolution fails, as all do here where nothing computes, leaves halves to the
 * ordinary kernels; who excludes it is spared the test. */
static void test_matrix_refused(void **state) {
    (void)state;
    lap_session *session = begin();
    close_session(session);
    strcpy(fake.devices[0].language, "cl");
    strcpy(fake.devices[0].vendor, "Intel(R) Corporation");
    for (int excluded = 0; excluded < 2; excluded++) {
        session = open_session();
        lap_plan *plan;
        lap_error err = {0};
        lap_plan_options options = {.batch = 4, .precision = LAP_FP16};
        if (excluded) options.exclude = "conv_matrix, conv_matrix_down";
        MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
        assert_false(uses(plan, "conv_matrix"));
        assert_false(uses(plan, "conv_naive"));
        assert_true(uses(plan, "conv_igemm"));
        bool tried = strstr(session->lacking[LAP_FP16], "conv_matrix, form 3: ") != NULL;
        assert_int_equal(tried, !excluded);
        lap_plan_free(plan);
        close_session(session);
    }
}

/* ... one that computes is used for whatever it takes. */
static void test_matrix_used(void **state) {
    (void)state;
    lap_session *session = begin();
    close_session(session);
    strcpy(fake.devices[0].language, "cl");
    strcpy(fake.devices[0].vendor, "Intel(R) Corporation");
    session = open_session();
    lap_error err = {0};
    lap_plan *plan;
    session->features = session->probed = LAP_FEATURE_MATRIX(4, LAP_FP16);
    lap_plan_options options = {.batch = 4, .precision = LAP_FP16};
    MUST(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err));
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        const lap_op *op = lap_plan_op(plan, i);
        bool expected = op->kind == LAP_OP_CONV && op->in.c >= 16;
        bool down = lap_plan_fusion(plan, i) == LAP_FUSE_DOWNSAMPLE;
        const char *id = lap_plan_row(plan, i)->id;
        if (expected) assert_string_equal(id, down ? "conv_matrix_down" : "conv_matrix");
    }
    assert_true(uses(plan, "conv_matrix_down"));
    lap_plan_free(plan);
    close_session(session);
}

/* The device faults while a kernel is built: no other kernel is tried. */
static void test_fault_is_no_fallback(void **state) {
    (void)state;
    const lap_status faults[] = {LAP_E_DEVICE, LAP_E_OOM, LAP_E_LAUNCH};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        lap_session *session = begin();
        lap_error err = {0};
        lap_plan *plan;
        lap_plan_options options = {.batch = 4};
        lap_device_fault_arm(1, faults[i]);
        assert_int_equal(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err), faults[i]);
        lap_device_fault_arm(0, LAP_OK);
        assert_null(plan);
        assert_int_equal(fake.builds, 0);
        assert_non_null(strstr(err.message, "conv1: kernel "));
        close_session(session);
    }
}

static void test_no_kernel(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_error err = {0};
    lap_plan *plan;
    lap_plan_options options = {.batch = 4, .precision = LAP_FP32X3};
    assert_int_equal(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err),
                     LAP_E_UNSUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(err.message, "conv1: no conv kernel in fp32x3"));
    close_session(session);
}

/* Whole names only; what is left out is no reason for a note, but for an error it is. */
/* Preferred rows come first in their kind, variants among them; other kinds are as before. */
static void test_prefer(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_plan_options options = {.batch = 4, .prefer = "conv_naive, fc_naive"};
    lap_plan *plan = new_plan(session, options);
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        lap_op_kind kind = lap_plan_op(plan, i)->kind;
        bool preferred = kind == LAP_OP_CONV || kind == LAP_OP_FC;
        assert_int_equal(lap_plan_row(plan, i)->naive, preferred);
        assert_string_equal(lap_plan_fallback(plan, i), "");
    }
    lap_plan_free(plan);
    close_session(session);
}

static void test_exclude(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_plan_options options = {
        .batch = 4, .unfused = true, .exclude = "maxpool_, fc_v , conv_igemm"};
    lap_plan *plan = new_plan(session, options);
    int convolutions = 0;
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        const char *id = lap_plan_row(plan, i)->id;
        assert_string_not_equal(id, "conv_igemm");
        convolutions += strcmp(id, "conv_naive") == 0;
        if (strncmp(id, "maxpool", 7) == 0) assert_string_equal(id, "maxpool_g");
        assert_string_equal(lap_plan_fallback(plan, i), "");
    }
    assert_true(convolutions > 0);
    lap_plan_free(plan);
    lap_error err = {0};
    lap_plan_options none = {.batch = 4, .exclude = "conv_naive", .naive = true};
    assert_int_equal(lap_plan_new(session, net, &none, NULL, NULL, &plan, &err), LAP_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "excluded: conv_naive"));
    close_session(session);
}

static void test_chosen_for(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_plan *small = new_plan(session, (lap_plan_options){.batch = 1});
    lap_plan *large = new_plan(session, (lap_plan_options){.batch = 256});
    lap_plan *as_large = new_plan(session, (lap_plan_options){.batch = 1, .chosen_for = 256});
    int differences = 0;
    for (int i = 0; i < lap_plan_step_count(large); i++) {
        assert_ptr_equal(lap_plan_row(as_large, i), lap_plan_row(large, i));
        assert_memory_equal(lap_plan_params(as_large, i), lap_plan_params(large, i),
                            sizeof(lap_params));
        differences +=
            lap_plan_row(small, i) != lap_plan_row(large, i) ||
            memcmp(lap_plan_params(small, i), lap_plan_params(large, i), sizeof(lap_params)) != 0;
        /* The grid is the small batch's all the same. */
        const lap_launch *a = &as_large->steps[i].launches[0].launch;
        const lap_launch *b = &large->steps[i].launches[0].launch;
        assert_true((uint64_t)a->groups[0] * a->groups[1] * a->groups[2] <
                    (uint64_t)b->groups[0] * b->groups[1] * b->groups[2]);
    }
    assert_true(differences > 0); /* else chosen_for could not be told from the batch */
    lap_plan_free(small);
    lap_plan_free(large);
    lap_plan_free(as_large);
    close_session(session);
}

typedef enum limited { KERNEL, DEVICE, DIMENSION, LIMITED_COUNT } limited;

/* Every launch keeps to the limit, naive ones still cover every output, and what was passed over is
 * said to be too large. The limit may be the kernel's, the device's, or that of its first
 * dimension alone, as on CPU devices of macOS: (1024, 1, 1) or (1, 1, 1). */
static void check_limit(uint32_t limit, limited of) {
    lap_session *session = begin();
    lap_session_close(session, NULL);
    uint32_t *dim = fake.devices[0].max_group_dim;
    if (of == DEVICE) fake.devices[0].max_group_size = limit;
    if (of == KERNEL) fake.kernel_group_limit = limit;
    if (of == DIMENSION) dim[0] = limit, dim[1] = dim[2] = 1;
    session = open_session();
    lap_error err = {0};
    lap_plan *plan = ready_plan(session, net, weights, (lap_plan_options){.batch = 2});
    int naive = 0;
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        const lap_kernel_row *row = lap_plan_row(plan, i);
        for (int s = 0; s < row->stage_count; s++) {
            const lap_launch *l = &plan->steps[i].launches[s].launch;
            assert_true((uint64_t)l->local[0] * l->local[1] * l->local[2] <= limit);
            for (int k = 0; k < 3; k++)
                assert_true(l->local[k] <= fake.devices[0].max_group_dim[k]);
            if (row->naive)
                assert_true((uint64_t)l->groups[0] * l->local[0] >=
                            lap_tensor_stored(&lap_plan_op(plan, i)->out));
        }
        if (!row->naive) continue;
        naive++;
        const char *why = lap_plan_fallback(plan, i);
        char text[32];
        snprintf(text, sizeof text, "at most %u", limit);
        /* A row may also refuse such a device itself; then there is nothing to be said. */
        if (*why && !strstr(why, text)) fail_msg("passed over says '%s'", why);
        if (of == KERNEL) assert_true(*why);
    }
    if (limit == 1) assert_true(naive > 0);
    MUST(lap_plan_run(plan, &err));
    lap_plan_free(plan);
    close_session(session);
}

static void test_group_limits(void **state) {
    (void)state;
    for (limited of = KERNEL; of < LIMITED_COUNT; of++) {
        check_limit(1, of);
        check_limit(64, of);
    }
    check_limit(1024, DIMENSION);
}

static lap_plan *plan_of(const lap_net *of, lap_session **session, uint32_t device_limit,
                         uint32_t kernel_limit) {
    *session = begin();
    lap_session_close(*session, NULL);
    if (device_limit) fake.devices[0].max_group_size = device_limit;
    fake.kernel_group_limit = kernel_limit;
    *session = open_session();
    lap_error err = {0};
    lap_plan_options options = {.batch = 2};
    lap_plan *plan;
    MUST(lap_plan_new(*session, of, &options, NULL, NULL, &plan, &err));
    return plan;
}

/* A limit that only the built kernels tell leads to the rows and parameters that the same limit of
 * the device does: not to the next row, let alone to a naive one. */
static void check_limit_of_kernels(const lap_net *of, uint32_t limit, const char *a_row) {
    enum { MOST_STEPS = 128 };
    const char *ids[MOST_STEPS];
    lap_params params[MOST_STEPS];
    lap_session *session;
    lap_plan *plan = plan_of(of, &session, limit, 0);
    int steps = lap_plan_step_count(plan);
    assert_in_range(steps, 1, MOST_STEPS);
    for (int i = 0; i < steps; i++) {
        ids[i] = lap_plan_row(plan, i)->id;
        params[i] = *lap_plan_params(plan, i);
    }
    lap_plan_free(plan);
    lap_session_close(session, NULL);

    plan = plan_of(of, &session, 0, limit);
    assert_int_equal(lap_plan_step_count(plan), steps);
    char told[64];
    snprintf(told, sizeof told, "at most %u: smaller groups taken", limit);
    int smaller = 0;
    for (int i = 0; i < steps; i++) {
        assert_false(lap_plan_row(plan, i)->naive);
        assert_string_equal(lap_plan_row(plan, i)->id, ids[i]);
        assert_memory_equal(lap_plan_params(plan, i), &params[i], sizeof params[i]);
        const char *passed = lap_plan_fallback(plan, i);
        smaller += strcmp(ids[i], a_row) == 0 && strstr(passed, told);
    }
    assert_true(smaller > 0);
    lap_plan_free(plan);
    close_session(session);
}

static void test_limit_of_kernels(void **state) {
    (void)state;
    lap_net *second;
    lap_error err = {0};
    MUST(lap_net_build("efficientnet_b0", 224, 224, &second, &err));
    check_limit_of_kernels(net, 128, "conv_igemm");
    check_limit_of_kernels(second, 256, "excite_g");
    check_limit_of_kernels(second, 128, "excite_g");
    check_limit_of_kernels(second, 64, "excite_g");
    check_limit_of_kernels(net, 64, "conv_igemm");
    lap_net_free(second);
}

static void test_batch_range(void **state) {
    (void)state;
    lap_session *session = begin();
    const uint64_t bad[] = {0, (uint64_t)INT32_MAX + 1, UINT64_C(1) << 32, UINT64_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        lap_error err = {0};
        lap_plan *plan;
        lap_plan_options options = {.batch = bad[i]};
        assert_int_equal(lap_plan_new(session, net, &options, NULL, NULL, &plan, &err), LAP_E_ARG);
        assert_null(plan);
        assert_non_null(strstr(err.message, "expected 1 to 2147483647"));
    }
    close_session(session);
}

static int make_net(void **state) {
    (void)state;
    return lap_net_build("resnet18", 32, 32, &net, NULL) == LAP_OK &&
                   lap_weights_load(net, "synthetic:1", &weights, NULL) == LAP_OK
               ? 0
               : -1;
}

static int free_net(void **state) {
    (void)state;
    lap_weights_free(weights);
    lap_net_free(net);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_that_accepts),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_build_failure),
        cmocka_unit_test(test_matrix_refused),
        cmocka_unit_test(test_matrix_used),
        cmocka_unit_test(test_fault_is_no_fallback),
        cmocka_unit_test(test_no_kernel),
        cmocka_unit_test(test_prefer),
        cmocka_unit_test(test_exclude),
        cmocka_unit_test(test_chosen_for),
        cmocka_unit_test(test_group_limits),
        cmocka_unit_test(test_limit_of_kernels),
        cmocka_unit_test(test_batch_range),
    };
    return cmocka_run_group_tests(tests, make_net, free_net);
}
