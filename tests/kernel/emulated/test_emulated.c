/* The text of the chained kernels, run without a GPU: the whole network in one launch against its
 * steps one by one and against a later run, bit by bit, with other images in between, whose values
 * no step may find in place of its own; and every distinct step on integers against the reference.
 */
#include "emulator.h"

#include "plan/fixture.h"

#include "base/half.h"
#include "check/check.h"

enum { SIZE = 32 };

static lap_net *net;
static lap_weights *weights;
static float images[2 * 3 * SIZE * SIZE], others[2 * 3 * SIZE * SIZE];
static int longest;

static float element(int64_t precision, const unsigned char *row, size_t i) {
    uint16_t narrow;
    float wide;
    memcpy(&narrow, row + 2 * i, sizeof narrow);
    if (precision == LAP_FP16) return lap_half_to_float(narrow);
    memcpy(&wide, row + 4 * i, sizeof wide);
    return wide;
}

static void product(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                    void *const *pointers) {
    (void)launch;
    int64_t precision = fake_define(defines, count, "PRECISION", 0);
    const unsigned char *in = pointers[0];
    float *out = pointers[1];
    size_t depth = precision == LAP_TF32 ? 8 : 16;
    for (size_t row = 0; row < 16; row++)
        for (size_t column = 0; column < 8; column++) {
            float sum = 0;
            for (size_t i = 0; i < depth; i++)
                sum += element(precision, in + row * 32, i) *
                       element(precision, in + (16 + column) * 32, i);
            out[row * 8 + column] = sum;
        }
}

static emulated_launch launch_of(const lap_define *defines, size_t count,
                                 const lap_raw_launch *launch, void *const *pointers) {
    emulated_launch l = {.memory = pointers[0],
                         .weights = pointers[1],
                         .table = pointers[2],
                         .sync = pointers[3],
                         .first = launch->args[4].i32,
                         .count = launch->args[5].i32,
                         .groups = launch->groups[0],
                         .local_bytes = (uint32_t)fake_define(defines, count, "LOCAL", 0)};
    if (l.count > longest) longest = l.count;
    return l;
}

static void chain(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                  void *const *pointers) {
    emulated_launch l = launch_of(defines, count, launch, pointers);
    if (fake_define(defines, count, "PRECISION", 0) == LAP_TF32)
        emulated_chain_tf32(&l);
    else
        emulated_chain_fp16(&l);
}

typedef struct setup {
    lap_precision precision;
    uint32_t units;
    uint64_t batch;
} setup;

static lap_session *begin(const setup *s) {
    start();
    longest = 0;
    fake.devices[0].cc_major = 9;
    fake.devices[0].units = s->units;
    fake.devices[0].local_bytes = fake.devices[0].local_optin_bytes = 49152;
    assert_true(fake_register("probe_mma", "probe_mma", product));
    assert_true(fake_register("chain", "chain", chain));
    return open_session();
}

static void run_whole(lap_plan *plan, float *logits) {
    lap_error err = {0};
    MUST(lap_plan_run(plan, &err));
    MUST(lap_plan_logits(plan, logits, &err));
}

static void same_bits(lap_session *session, const lap_plan_options *options) {
    static float together[3000], again[3000], alone[3000];
    lap_error err = {0};
    lap_plan *plan = ready_plan(session, net, weights, *options);
    MUST(lap_plan_set_input(plan, images, 2, &err));
    assert_int_equal(lap_plan_launch_count(plan), 1);
    run_whole(plan, together);
    MUST(lap_plan_set_input(plan, others, 2, &err));
    run_whole(plan, again);
    assert_memory_not_equal(together, again, sizeof again);
    MUST(lap_plan_set_input(plan, images, 2, &err));
    run_whole(plan, again);
    assert_int_equal(longest, lap_plan_step_count(plan));
    assert_memory_equal(together, again, sizeof again);
    MUST(lap_plan_tensor_poison(plan, lap_plan_output(plan, 17), &err));
    for (int i = 0; i < lap_plan_step_count(plan); i++)
        MUST(lap_plan_run_step(plan, i, &err));
    MUST(lap_plan_logits(plan, alone, &err));
    assert_memory_equal(together, alone, sizeof alone);
    MUST(lap_plan_guards_check(plan, &err));
    lap_plan_free(plan);
}

static void check(const setup *s) {
    lap_session *session = begin(s);
    lap_error err = {0};
    lap_plan_options options = {.batch = s->batch, .precision = s->precision};
    same_bits(session, &options);
    lap_check_report report = {0};
    lap_status status = lap_check_layers(session, net, weights, &options, images, LAP_CHECK_QUICK,
                                         NULL, NULL, &report, &err);
    if (status != LAP_OK) fail_msg("%s: %s %s", report.first_wrong, report.detail, err.message);
    assert_true(report.exact_layers >= 10); /* every distinct step once */
    assert_int_equal(report.exact_layers, report.exact_wanted);
    close_session(session);
}

static void tf32(void **state) {
    (void)state;
    check(&(setup){.precision = LAP_TF32, .units = 32, .batch = 1});
}

static void fp16(void **state) {
    (void)state;
    check(&(setup){.precision = LAP_FP16, .units = 12, .batch = 1});
}

int main(void) {
    lap_error err = {0};
    if (lap_net_build("resnet18", SIZE, SIZE, &net, &err) != LAP_OK ||
        lap_weights_load(net, "synthetic:1", &weights, &err) != LAP_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < 2 * 3 * SIZE * SIZE; i++)
        images[i] = (float)(i * 7 % 31 - 15) / 16, others[i] = (float)(i * 5 % 29 - 14) / 16;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tf32),
        cmocka_unit_test(fp16),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lap_weights_free(weights);
    lap_net_free(net);
    return failed;
}
