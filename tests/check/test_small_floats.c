/* Verification in 16 bits: kernels that are right to the last rounding pass, those that are off by
 * more than it, overflow or lose their way are caught, layer by layer and in the logits. The fake
 * backend's kernels know floats only; here they get theirs from 16 bits and give 16 bits back. */
#include "base/half.h"
#include "check/check.h"
#include "fake_objects.h"
#include "tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What is wrong with the middle value of every convolution's output. */
typedef enum plant {
    RIGHT,
    OFF,       /* by an eighth, half a unit at least: far above any rounding */
    OVERFLOWS, /* 6.6e34, which is infinite in 16 bits of IEEE */
    NO_NUMBER,
    PLANTS
} plant;

static struct {
    plant kind;
    int from; /* the first launch that is spoilt */
    int launches;
} planted;

static fake_kernel_fn originals[4];
static const char *const stems[] = {"conv_naive", "maxpool_naive", "avgpool_naive", "fc_naive"};
enum { CONV, MAXPOOL, AVGPOOL, FC };

static float to_float(uint16_t bits, bool bf16) {
    return bf16 ? lap_bf16_to_float(bits) : lap_half_to_float(bits);
}

static uint16_t to_bits(float value, bool bf16) {
    return bf16 ? lap_bf16_from_float(value) : lap_half_from_float(value);
}

static void spoil(float *out, size_t count) {
    if (++planted.launches < planted.from) return;
    float *value = &out[count / 2 / 8 * 8]; /* a pixel's first channel: never padding */
    if (planted.kind == OFF) *value = *value * 1.125f + 0.5f;
    if (planted.kind == OVERFLOWS) *value = 6.6e34f;
    if (planted.kind == NO_NUMBER) *value = NAN;
}

/* Biases and logits are floats always; the rest is widened, and the output narrowed again. */
static void run(int kind, const lap_define *defines, size_t n, const lap_raw_launch *launch,
                void *const *pointers) {
    static const int outputs[] = {4, 1, 1, 3};
    bool bf16 = fake_define(defines, n, "PRECISION", 0) == LAP_BF16;
    float *wide[LAP_MAX_ARGS] = {NULL};
    void *given[LAP_MAX_ARGS];
    size_t counts[LAP_MAX_ARGS] = {0};
    for (size_t i = 0; i < launch->arg_count; i++) {
        given[i] = pointers[i];
        bool floats = (i == 2 && (kind == CONV || kind == FC)) || (i == 3 && kind == FC);
        if (!pointers[i] || floats) continue;
        counts[i] = ((const fake_buffer *)launch->args[i].buffer)->bytes / 2;
        given[i] = wide[i] = malloc((counts[i] + 1) * sizeof **wide);
        assert_non_null(wide[i]);
        for (size_t k = 0; k < counts[i]; k++)
            wide[i][k] = to_float(((const uint16_t *)pointers[i])[k], bf16);
    }
    originals[kind](defines, n, launch, given);
    int out = outputs[kind];
    if (kind == CONV) spoil(wide[out], counts[out]);
    for (size_t k = 0; wide[out] && k < counts[out]; k++)
        ((uint16_t *)pointers[out])[k] = to_bits(wide[out][k], bf16);
    for (size_t i = 0; i < launch->arg_count; i++)
        free(wide[i]);
}

#define KERNEL(name, kind)                                                                         \
    static void name(const lap_define *defines, size_t n, const lap_raw_launch *launch,            \
                     void *const *pointers) {                                                      \
        run(kind, defines, n, launch, pointers);                                                   \
    }
KERNEL(conv, CONV)
KERNEL(maxpool, MAXPOOL)
KERNEL(avgpool, AVGPOOL)
KERNEL(fc, FC)

static lap_net *net;
static lap_weights *weights;
static lap_expected expected;

static lap_session *begin(plant kind, int from) {
    static const fake_kernel_fn ours[] = {conv, maxpool, avgpool, fc};
    lap_session *session;
    fake_reset();
    for (int i = 0; i < 4; i++) {
        originals[i] = fake_find_kernel(stems[i], stems[i]);
        assert_true(fake_register(stems[i], stems[i], ours[i]));
    }
    fake.devices[0].has_fp16 = true;
    planted.kind = kind;
    planted.from = from;
    planted.launches = 0;
    assert_int_equal(lap_session_open(&fake.devices[0], &session, NULL), LAP_OK);
    return session;
}

static void end(lap_session *session) {
    assert_int_equal(lap_session_close(session, NULL), LAP_OK);
    assert_int_equal(fake_alive(), 0);
}

static lap_status layers(lap_session *session, lap_precision precision, lap_check_mode mode,
                         lap_check_report *report, lap_error *err) {
    lap_plan_options options = {.batch = 3, .naive = true, .precision = precision};
    *report = (lap_check_report){0};
    *err = (lap_error){0};
    return lap_check_layers(session, net, weights, &options, expected.images, mode, NULL, NULL,
                            report, err);
}

static lap_status logits(lap_session *session, lap_precision precision, lap_check_report *report,
                         lap_error *err) {
    lap_plan_options options = {.batch = 3, .naive = true, .precision = precision};
    lap_plan *plan;
    float *values = NULL;
    *report = (lap_check_report){0};
    *err = (lap_error){0};
    assert_int_equal(lap_plan_new(session, net, &options, NULL, NULL, &plan, err), LAP_OK);
    assert_int_equal(lap_plan_upload(plan, weights, err), LAP_OK);
    assert_int_equal(lap_plan_bind(plan, err), LAP_OK);
    lap_status status = lap_check_logits(plan, net, &expected, 3, precision, &values, report, err);
    free(values);
    lap_plan_free(plan);
    return status;
}

static const lap_precision precisions[] = {LAP_FP16, LAP_BF16};

static void test_right(void **state) {
    (void)state;
    for (int p = 0; p < 2; p++) {
        lap_session *session = begin(RIGHT, 0);
        lap_check_report report;
        lap_error err;
        if (layers(session, precisions[p], LAP_CHECK_FULL, &report, &err) != LAP_OK)
            fail_msg("%s", err.message);
        assert_int_equal(report.exact_layers, TINY_OPS);
        assert_int_equal(report.real_layers, TINY_OPS);
        if (logits(session, precisions[p], &report, &err) != LAP_OK) fail_msg("%s", err.message);
        assert_true(report.logits_rel_l2 > 1e-5); /* it is 16 bits that were computed with */
        assert_true(report.logits_rel_l2 <= lap_check_limit(precisions[p]));
        end(session);
    }
}

static void test_wrong(void **state) {
    (void)state;
    for (int p = 0; p < 2; p++)
        for (plant kind = OFF; kind < PLANTS; kind++) {
            lap_session *session = begin(kind, 0);
            lap_check_report report;
            lap_error err;
            assert_int_equal(layers(session, precisions[p], LAP_CHECK_FULL, &report, &err),
                             LAP_E_VERIFY);
            assert_string_equal(report.first_wrong, "conv1");
            assert_int_equal(report.exact_layers, 0);
            if (logits(session, precisions[p], &report, &err) != LAP_E_VERIFY)
                fail_msg("logits with plant %d: %g", (int)kind, report.logits_rel_l2);
            assert_string_equal(report.first_wrong, "logits");
            end(session);
        }
}

/* Right with integers, two launches for each of the four convolutions, wrong with real values: the
 * bound on the rounding finds it. */
static void test_wrong_in_real_values(void **state) {
    (void)state;
    for (int p = 0; p < 2; p++)
        for (plant kind = OFF; kind < PLANTS; kind++) {
            lap_session *session = begin(kind, 9);
            lap_check_report report;
            lap_error err;
            assert_int_equal(layers(session, precisions[p], LAP_CHECK_FULL, &report, &err),
                             LAP_E_VERIFY);
            assert_int_equal(report.exact_layers, TINY_OPS);
            assert_string_equal(report.first_wrong, "conv1");
            assert_non_null(strstr(report.detail, "real check of"));
            end(session);
        }
}

static int set_up(void **state) {
    (void)state;
    lap_registry_add(&fake_ops);
    net = tiny_net();
    weights = tiny_weights(net);
    tiny_expected(net, weights, 2, &expected);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    lap_expected_free(&expected);
    lap_weights_free(weights);
    lap_net_free(net);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_wrong_in_real_values),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
