/* A whole network on the fake backend: logits against the reference, planted bad kernels, and
 * device faults along the way, none of which may leak or pass for a result. */
#include "fixture.h"

#include "plan/plan.h"
#include "ref/ref.h"
#include <math.h>
#include <stdio.h>

static lap_error err;
static lap_net *net;
static lap_weights *weights;
static float image[3 * 32 * 32], logits[1000];
static double want[1000];
static bool no_reuse; /* plan option: every tensor in memory of its own */

static void take(const char *model) {
    lap_input *input;
    assert_ok(lap_net_build(model, 32, 32, &net, &err));
    assert_ok(lap_weights_load(net, "synthetic:1", &weights, &err));
    assert_ok(lap_input_open("synthetic:1", 3, 32, 32, &input, &err));
    assert_ok(lap_input_image(input, 0, image, &err));
    assert_ok(lap_ref_forward(net, weights, image, want, &err));
    lap_input_free(input);
}

static int setup(void **state) {
    (void)state;
    take(lap_net_models()[0]);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    lap_weights_free(weights);
    lap_net_free(net);
    return 0;
}

static lap_status forward(lap_session *session, lap_plan **plan, lap_error *error) {
    lap_plan_options options = {
        .batch = 1, .precision = LAP_FP32, .naive = true, .no_reuse = no_reuse};
    LAP_TRY(lap_plan_new(session, net, &options, NULL, NULL, plan, error));
    LAP_TRY(lap_plan_upload(*plan, weights, error));
    LAP_TRY(lap_plan_bind(*plan, error));
    LAP_TRY(lap_plan_set_input(*plan, image, 1, error));
    LAP_TRY(lap_plan_run(*plan, error));
    LAP_TRY(lap_plan_logits(*plan, logits, error));
    return lap_plan_guards_check(*plan, error);
}

static lap_status run(lap_error *error) {
    lap_session *session = NULL;
    lap_plan *plan = NULL;
    memset(logits, 0xFF, sizeof logits);
    lap_status status = lap_session_open(&fake.devices[0], &session, error);
    if (status == LAP_OK) status = forward(session, &plan, error);
    lap_plan_free(plan);
    assert_int_equal(lap_session_close(session, NULL), LAP_OK);
    assert_int_equal(fake_alive(), 0);
    assert_int_equal(fake.used_bytes[0], 0);
    return status;
}

/* Relative L2 distance of the logits from the reference. */
static double distance(void) {
    double difference = 0, length = 0;
    for (int i = 0; i < 1000; i++) {
        difference += (logits[i] - want[i]) * (logits[i] - want[i]);
        length += want[i] * want[i];
    }
    return sqrt(difference / length);
}

static void test_logits(void **state) {
    (void)state;
    for (int deferred = 0; deferred < 2; deferred++) {
        fake_setup();
        fake.deferred = deferred;
        assert_ok(run(&err));
        printf("relative distance of the logits: %.2g\n", distance());
        assert_true(distance() <= 3e-6);
    }
}

/* Every network that there is, its tensors sharing memory and not. */
static void test_every_network(void **state) {
    for (const char *const *model = lap_net_models(); *model; model++) {
        teardown(state);
        take(*model);
        for (int apart = 0; apart < 2; apart++) {
            fake_setup();
            no_reuse = apart;
            assert_ok(run(&err));
            printf("%s: relative distance of the logits %.2g\n", *model, distance());
            assert_true(distance() <= 3e-6);
        }
    }
    no_reuse = false;
    fake_setup();
    fake_plant("scale_naive", FAKE_PLANT_WRONG); /* the last network's */
    assert_ok(run(&err));
    assert_false(distance() <= 3e-6);
    teardown(state);
    setup(state);
}

static void test_plants(void **state) {
    (void)state;
    static const fake_plant_kind kinds[] = {FAKE_PLANT_WRONG, FAKE_PLANT_NAN, FAKE_PLANT_NOTHING};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        fake_setup();
        fake_plant("conv_naive", kinds[i]);
        assert_ok(run(&err));
        assert_false(distance() <= 3e-6);
    }
    fake_setup();
    /* In shared memory the word behind a small tensor may be nobody's; in its own it is a guard. */
    fake_plant("avgpool_naive", FAKE_PLANT_OUT_OF_BOUNDS);
    no_reuse = true;
    assert_fails(run(&err), LAP_E_VERIFY, "something wrote outside");
    no_reuse = false;
}

/* Every call at first, then every eleventh: a forward pass repeats the same few. */
static void test_faults(void **state) {
    (void)state;
    uint64_t nth = 1, calls, planted = 0;
    for (;;) {
        fake_setup();
        lap_device_fault_arm(nth, LAP_E_OOM);
        lap_error_clear(&err);
        lap_status status = run(&err);
        calls = lap_device_fault_arm(0, LAP_OK);
        if (nth > calls) break;
        planted++;
        assert_int_equal(status, LAP_E_OOM);
        assert_int_equal(err.status, LAP_E_OOM);
        nth += nth < 20 ? 1 : 11;
    }
    assert_ok(run(&err));
    printf("faults planted at %llu of %llu device calls\n", (unsigned long long)planted,
           (unsigned long long)calls);
    assert_true(planted > 20);
}

static void test_out_of_memory(void **state) {
    (void)state;
    fake_setup();
    fake.devices[0].memory_bytes = 20 << 20; /* less than the weights */
    assert_fails(run(&err), LAP_E_OOM, "");
    fake_setup();
    fake.fail_launch = 5;
    fake.fail_launch_status = LAP_E_DEVICE;
    fake.sticky = fake.fail_at_finish = true;
    assert_fails(run(&err), LAP_E_DEVICE, "");
    fake_setup();
    fake.fail_build_stem = "fc_naive";
    /* The plan found no other kernel for the layer; the reason must survive. */
    assert_fails(run(&err), LAP_E_UNSUPPORTED, "planted build failure");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits),        cmocka_unit_test(test_every_network),
        cmocka_unit_test(test_plants),        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
