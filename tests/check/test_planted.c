/* Verification catches kernels that are wrong, in every op and in every way planted here, and names
 * the layer. Each defect is planted in one layer at a time; all others are right. */
#include "bad.h"
#include "check/check.h"
#include "tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct rig {
    lap_net *net;
    lap_weights *weights;
    lap_expected expected;
    lap_session *session;
    lap_plan_options options;
} rig;

static lap_session *open_session(void) {
    lap_session *session;
    assert_int_equal(lap_session_open(&fake.devices[0], &session, NULL), LAP_OK);
    return session;
}

static int set_up(void **state) {
    static rig r;
    r = (rig){.options = {.batch = 3, .naive = true}};
    fake_reset();
    lap_registry_add(&fake_ops);
    r.net = tiny_net();
    r.weights = tiny_weights(r.net);
    tiny_expected(r.net, r.weights, 2, &r.expected);
    r.session = open_session();
    *state = &r;
    return 0;
}

static int tear_down(void **state) {
    rig *r = *state;
    assert_int_equal(lap_session_close(r->session, NULL), LAP_OK);
    assert_int_equal(fake_alive(), 0);
    assert_int_equal(fake.red_zone_hits, 0);
    lap_expected_free(&r->expected);
    lap_weights_free(r->weights);
    lap_net_free(r->net);
    return 0;
}

/* A fresh session, so that kernels built before a defect was planted are not used. */
static void plant(rig *r, int op, bad_kind kind, uint64_t good) {
    assert_int_equal(lap_session_close(r->session, NULL), LAP_OK);
    assert_int_equal(fake_alive(), 0);
    fake_reset();
    bad_plant(&r->net->ops[op], kind, good);
    r->session = open_session();
}

static lap_status layers(rig *r, lap_check_mode mode, lap_check_report *report, lap_error *err) {
    *report = (lap_check_report){0};
    *err = (lap_error){0};
    return lap_check_layers(r->session, r->net, r->weights, &r->options, r->expected.images, mode,
                            NULL, NULL, report, err);
}

static void test_right_network_passes(void **state) {
    rig *r = *state;
    lap_check_report report;
    lap_error err;
    assert_int_equal(layers(r, LAP_CHECK_FULL, &report, &err), LAP_OK);
    assert_int_equal(report.exact_layers, TINY_OPS);
    assert_int_equal(report.exact_wanted, TINY_OPS);
    assert_int_equal(report.real_layers, TINY_OPS);
    assert_int_equal(report.real_wanted, TINY_OPS);
    assert_string_equal(report.first_wrong, "");
    assert_int_equal(layers(r, LAP_CHECK_QUICK, &report, &err), LAP_OK);
    assert_int_equal(report.exact_layers, TINY_OPS);
    assert_int_equal(report.real_layers, 0);
    uint64_t launches = fake.launches;
    assert_int_equal(layers(r, LAP_CHECK_OFF, &report, &err), LAP_OK);
    assert_int_equal(fake.launches, launches);
    assert_int_equal(report.exact_layers, 0);
    assert_false(report.passed);
}

static void expect_caught(rig *r, int op, bad_kind kind, lap_check_mode mode) {
    plant(r, op, kind, 0);
    lap_check_report report;
    lap_error err;
    lap_status status = layers(r, mode, &report, &err);
    const char *name = r->net->ops[op].name;
    if (status != LAP_E_VERIFY)
        fail_msg("defect %d in %s: status %s", (int)kind, name, lap_status_name(status));
    assert_true(bad_launches() > 0);
    assert_false(report.passed);
    bool guard = kind == BAD_AFTER || kind == BAD_BEFORE;
    assert_string_equal(report.first_wrong, guard ? "memory guards" : name);
    if (!strstr(report.detail, name))
        fail_msg("defect %d in %s: detail '%s'", (int)kind, name, report.detail);
    assert_string_equal(err.message, report.detail);
    if (guard) assert_non_null(strstr(report.detail, kind == BAD_AFTER ? "after" : "before"));
    /* Layers before it were found right. */
    if (!guard) assert_int_equal(report.exact_layers, op);
}

static void test_each_op(void **state) {
    rig *r = *state;
    const bad_kind kinds[] = {BAD_WRONG,  BAD_NAN,   BAD_INF,    BAD_NOTHING,
                              BAD_BEFORE, BAD_AFTER, BAD_RANDOM, BAD_LATE};
    for (int op = 0; op < r->net->op_count; op++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            expect_caught(r, op, kinds[k], LAP_CHECK_FULL);
            expect_caught(r, op, kinds[k], LAP_CHECK_QUICK);
        }
}

static void test_padding(void **state) {
    rig *r = *state;
    int tried = 0;
    for (int op = 0; op < r->net->op_count; op++) {
        if (r->net->ops[op].out.c == r->net->ops[op].out.cs) continue;
        tried++;
        expect_caught(r, op, BAD_PADDING, LAP_CHECK_FULL);
        expect_caught(r, op, BAD_PADDING, LAP_CHECK_QUICK);
    }
    assert_int_equal(tried, 5);
}

/* Right in the exact check's runs, wrong in the real one's: only the full mode sees it there. */
static void test_real_check(void **state) {
    rig *r = *state;
    for (int op = 0; op < r->net->op_count; op++) {
        plant(r, op, BAD_LATE, 2);
        lap_check_report report;
        lap_error err;
        assert_int_equal(layers(r, LAP_CHECK_FULL, &report, &err), LAP_E_VERIFY);
        assert_string_equal(report.first_wrong, r->net->ops[op].name);
        assert_non_null(strstr(report.detail, "real check of"));
        assert_int_equal(report.exact_layers, TINY_OPS);
        assert_int_equal(report.real_layers, op);
    }
}

/* The second run writes nothing: what is there is the first run's, and right. */
static void test_idle_second_run(void **state) {
    rig *r = *state;
    for (int op = 0; op < r->net->op_count; op++) {
        plant(r, op, BAD_IDLE, 1);
        lap_check_report report;
        lap_error err;
        assert_int_equal(layers(r, LAP_CHECK_QUICK, &report, &err), LAP_E_VERIFY);
        assert_string_equal(report.first_wrong, r->net->ops[op].name);
    }
}

static lap_status logits_of(rig *r, lap_plan **plan, float **logits, lap_check_report *report,
                            lap_error *err) {
    *report = (lap_check_report){0};
    *err = (lap_error){0};
    assert_int_equal(lap_plan_new(r->session, r->net, &r->options, NULL, NULL, plan, err), LAP_OK);
    assert_int_equal(lap_plan_upload(*plan, r->weights, err), LAP_OK);
    assert_int_equal(lap_plan_bind(*plan, err), LAP_OK);
    return lap_check_logits(*plan, r->net, &r->expected, r->options.batch, LAP_FP32, logits, report,
                            err);
}

static void test_logits(void **state) {
    rig *r = *state;
    lap_check_report report;
    lap_error err;
    lap_plan *plan;
    float *logits;
    if (logits_of(r, &plan, &logits, &report, &err) != LAP_OK) fail_msg("%s", err.message);
    assert_true(report.passed && report.has_logits);
    assert_int_equal(report.images, 3);
    assert_true(report.logits_rel_l2 > 0 && report.logits_rel_l2 < 3e-6);
    assert_int_equal(lap_check_unchanged(plan, r->net, 3, logits, &report, &err), LAP_OK);
    assert_true(report.passed);
    free(logits);
    lap_plan_free(plan);

    const bad_kind kinds[] = {BAD_WRONG, BAD_NAN, BAD_INF, BAD_NOTHING, BAD_RANDOM, BAD_LATE};
    int fc = r->net->op_count - 1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        plant(r, fc, kinds[k], 1);
        lap_status status = logits_of(r, &plan, &logits, &report, &err);
        lap_plan_free(plan);
        if (status != LAP_E_VERIFY)
            fail_msg("defect %d: %s", (int)kinds[k], lap_status_name(status));
        assert_null(logits);
        assert_false(report.passed);
        assert_string_equal(report.first_wrong, "logits");
        assert_true(strlen(report.detail) > 0);
    }
    /* The largest tensor fills its memory. Behind a smaller one that shares a larger one's memory
     * there is slack, where nobody is hurt; the layer check, where nothing is shared, sees those.
     */
    plant(r, 0, BAD_AFTER, 0);
    assert_int_equal(logits_of(r, &plan, &logits, &report, &err), LAP_E_VERIFY);
    assert_string_equal(report.first_wrong, "memory guards");
    lap_plan_free(plan);
}

/* Single precision that is secretly less: integers are right, real values are not. */
static void test_secret_tf32(void **state) {
    rig *r = *state;
    for (int op = 0; op < r->net->op_count; op++) {
        if (!r->weights->ops[op].w) continue;
        lap_check_report report;
        lap_error err;
        plant(r, op, BAD_TF32, 0);
        assert_int_equal(layers(r, LAP_CHECK_FULL, &report, &err), LAP_E_VERIFY);
        assert_string_equal(report.first_wrong, r->net->ops[op].name);
        assert_non_null(strstr(report.detail, "real check of"));
        assert_int_equal(report.exact_layers, TINY_OPS);
        lap_plan *plan;
        float *logits;
        assert_int_equal(logits_of(r, &plan, &logits, &report, &err), LAP_E_VERIFY);
        assert_string_equal(report.first_wrong, "logits");
        lap_plan_free(plan);
    }
}

static void test_limits(void **state) {
    rig *r = *state;
    static const double documented[LAP_PRECISION_COUNT] = {[LAP_FP32] = 3e-6,
                                                           [LAP_FP32X3] = 3e-6,
                                                           [LAP_TF32] = 3e-3,
                                                           [LAP_FP16] = 3e-3,
                                                           [LAP_BF16] = 2e-2};
    for (int p = 0; p < LAP_PRECISION_COUNT; p++)
        assert_true(lap_check_limit((lap_precision)p) == documented[p]);
    size_t count = r->expected.count * (size_t)r->expected.classes;
    const double errors[] = {1e-6, 1e-5};
    for (size_t e = 0; e < 2; e++) {
        for (size_t i = 0; i < count; i++)
            r->expected.logits[i] *= 1 + errors[e];
        lap_check_report report;
        lap_error err;
        lap_plan *plan;
        float *logits;
        assert_int_equal(logits_of(r, &plan, &logits, &report, &err), e ? LAP_E_VERIFY : LAP_OK);
        assert_true(fabs(report.logits_rel_l2 / errors[e] - 1) < 0.3);
        free(logits);
        lap_plan_free(plan);
    }
}

/* An infinity from a layer below must not pass because infinity equals infinity. */
static void test_infinite_activations(void **state) {
    rig *r = *state;
    lap_check_report report;
    lap_error err;
    float *w = r->weights->ops[0].w, kept = w[0];
    w[0] = 3e38f;
    for (size_t i = 0; i < 3 * 64; i++)
        r->expected.images[i] = 4;
    lap_status status = layers(r, LAP_CHECK_FULL, &report, &err);
    w[0] = kept;
    assert_int_equal(status, LAP_E_VERIFY);
    assert_string_equal(report.first_wrong, "conv1");
}

static void test_nan_weights(void **state) {
    rig *r = *state;
    for (int op = 0; op < r->net->op_count; op++) {
        if (!r->weights->ops[op].w) continue;
        lap_check_report report;
        lap_error err;
        float *w = r->weights->ops[op].w, kept = w[5];
        w[5] = NAN;
        lap_status status = layers(r, LAP_CHECK_FULL, &report, &err);
        assert_int_equal(status, LAP_E_VERIFY);
        assert_string_equal(report.first_wrong, r->net->ops[op].name);
        lap_expected expected = r->expected;
        tiny_expected(r->net, r->weights, 2, &r->expected); /* the reference is NaN too */
        lap_plan *plan;
        float *logits;
        assert_int_equal(logits_of(r, &plan, &logits, &report, &err), LAP_E_VERIFY);
        assert_non_null(strstr(report.detail, "not finite"));
        lap_plan_free(plan);
        lap_expected_free(&r->expected);
        r->expected = expected;
        w[5] = kept;
    }
}

enum { VERIFIED = 2, TIMED = 8, CHECK = 1 }; /* runs */

/* A plan that passed, and its timed runs behind that. */
static void run_verified(rig *r, lap_plan **plan, float **logits, lap_check_report *report,
                         lap_error *err) {
    assert_int_equal(logits_of(r, plan, logits, report, err), LAP_OK);
    for (int run = 0; run < TIMED; run++)
        assert_int_equal(lap_plan_run(*plan, err), LAP_OK);
}

/* Right while it is verified, wrong or idle later: the check after the timed runs finds it, in what
 * they left or in the one more run it makes. */
static void test_unchanged(void **state) {
    rig *r = *state;
    const bad_kind kinds[] = {BAD_LATE, BAD_IDLE, BAD_ONCE};
    for (int op = 0; op < r->net->op_count; op++)
        for (size_t i = 0; i < 12; i++) {
            bool in_check = i % 6 >= 3;   /* bad from the check's own run on, else the last timed */
            r->options.no_reuse = i >= 6; /* what an idle kernel leaves is what was right before */
            plant(r, op, kinds[i % 3], VERIFIED + TIMED + CHECK + (in_check ? 1 : 0));
            lap_check_report report;
            lap_error err;
            lap_plan *plan;
            float *logits;
            run_verified(r, &plan, &logits, &report, &err);
            assert_int_equal(lap_check_unchanged(plan, r->net, 3, logits, &report, &err), LAP_OK);
            assert_true(report.passed);
            assert_int_equal(lap_plan_run(plan, &err), LAP_OK);
            assert_int_equal(lap_check_unchanged(plan, r->net, 3, logits, &report, &err),
                             LAP_E_VERIFY);
            assert_false(report.passed);
            assert_string_equal(report.first_wrong, "logits");
            free(logits);
            lap_plan_free(plan);
        }
}

/* Right results, but one of the runs wrote where it must not. */
static void test_guards_after_timed_runs(void **state) {
    rig *r = *state;
    r->options.no_reuse = true; /* no slack behind any output */
    for (int op = 0; op < r->net->op_count; op++)
        for (int late = 0; late <= TIMED; late += TIMED / 2) {
            plant(r, op, BAD_BEHIND, (uint64_t)(VERIFIED + late));
            lap_check_report report;
            lap_error err;
            lap_plan *plan;
            float *logits;
            run_verified(r, &plan, &logits, &report, &err);
            assert_int_equal(lap_check_unchanged(plan, r->net, 3, logits, &report, &err),
                             LAP_E_VERIFY);
            assert_false(report.passed);
            assert_string_equal(report.first_wrong, "memory guards");
            assert_non_null(strstr(err.message, r->net->ops[op].name));
            free(logits);
            lap_plan_free(plan);
        }
}

static int asks_left;

static bool stop_later(void *context) {
    (void)context;
    return asks_left-- <= 0;
}

/* Stopped wherever it asks, at least once a layer; nothing is called wrong and nothing leaks. */
static void test_interrupted(void **state) {
    rig *r = *state;
    r->options.interrupt.asked = stop_later;
    lap_check_report report;
    lap_error err;
    int asked = 0;
    for (;; asked++) {
        asks_left = asked;
        lap_status status = layers(r, LAP_CHECK_FULL, &report, &err);
        assert_string_equal(report.first_wrong, "");
        if (status == LAP_OK) break;
        assert_int_equal(status, LAP_E_INTERRUPTED);
        assert_non_null(strstr(err.message, "interrupted"));
    }
    assert_true(asked >= 4 * TINY_OPS); /* the kernels and the check of each layer, twice */
    /* The logits: asked before each of the two runs, the plan being made already. */
    lap_plan *plan = NULL;
    float *logits = NULL;
    asks_left = 1000;
    assert_int_equal(logits_of(r, &plan, &logits, &report, &err), LAP_OK);
    free(logits);
    for (asked = 0; asked < 2; asked++) {
        asks_left = asked;
        assert_int_equal(lap_check_logits(plan, r->net, &r->expected, r->options.batch, LAP_FP32,
                                          &logits, &report, &err),
                         LAP_E_INTERRUPTED);
        assert_null(logits);
        assert_false(report.passed);
    }
    lap_plan_free(plan);
    asks_left = 1;
    lap_expected expected;
    lap_input *input;
    const lap_tensor *in = &r->net->tensors[0];
    assert_int_equal(lap_input_open("synthetic:1", in->c, in->h, in->w, &input, NULL), LAP_OK);
    assert_int_equal(lap_expected_new(r->net, r->weights, input, 2, false, NULL, NULL,
                                      &r->options.interrupt, &expected, &err),
                     LAP_E_INTERRUPTED);
    assert_null(expected.images);
    /* Where nothing is checked there is no reference, and no memory that could pass for one. */
    assert_int_equal(
        lap_expected_new(r->net, r->weights, input, 2, true, NULL, NULL, NULL, &expected, &err),
        LAP_OK);
    assert_int_equal(expected.count, 2);
    assert_non_null(expected.images);
    assert_null(expected.logits);
    lap_expected_free(&expected);
    lap_input_free(input);
}

int main(void) {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        RIG_TEST(test_right_network_passes),
        RIG_TEST(test_each_op),
        RIG_TEST(test_padding),
        RIG_TEST(test_real_check),
        RIG_TEST(test_idle_second_run),
        RIG_TEST(test_logits),
        RIG_TEST(test_secret_tf32),
        RIG_TEST(test_limits),
        RIG_TEST(test_infinite_activations),
        RIG_TEST(test_nan_weights),
        RIG_TEST(test_unchanged),
        RIG_TEST(test_guards_after_timed_runs),
        RIG_TEST(test_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
