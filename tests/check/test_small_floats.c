/* Verification in 16 bits: kernels that are right to the last rounding pass, those that are off by
 * more than it, overflow or lose their way are caught, layer by layer and in the logits. The fake
 * backend's kernels know floats only; here they get theirs from 16 bits and give 16 bits back. And
 * the limit on a layer's error, by value, in every precision. */
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
    PLANTS,
    INSIDE, /* as far off as the limit allows: the last stored value within it */
    OUTSIDE /* the first stored value beyond it */
} plant;

static struct {
    plant kind;
    int from; /* the first launch that is spoilt */
    int launches;
    int integers;         /* launches with integers before those with real values */
    int until;            /* the last launch that is spoilt; 0: all that follow */
    int batch_from;       /* from this launch on the last image, where the value is the smallest */
    double beyond;        /* by how much the last one was OUTSIDE */
    const lap_op *op;     /* INSIDE, OUTSIDE: the convolution at hand, */
    lap_precision stored; /* and how its output is stored */
} planted;

static lap_net *net;
static lap_weights *weights;
static lap_expected expected;

static fake_kernel_fn originals[4];
static const char *const stems[] = {"conv_naive", "maxpool_naive", "avgpool_naive", "fc_naive"};
enum { CONV, MAXPOOL, AVGPOOL, FC };

static float to_float(uint16_t bits, bool bf16) {
    return bf16 ? lap_bf16_to_float(bits) : lap_half_to_float(bits);
}

static uint16_t to_bits(float value, bool bf16) {
    return bf16 ? lap_bf16_from_float(value) : lap_half_from_float(value);
}

/* The limit as check.h states it: what a sum may be off by for each unit of its terms. */
static double limit_of(lap_precision precision, const lap_op *op) {
    double terms = (double)(op->r * op->s * op->in.c);
    switch (precision) {
    case LAP_TF32:
    case LAP_FP16:
        return 8 * ldexp(1, -11);
    case LAP_BF16:
        return 8 * ldexp(1, -8);
    default:
        return 4 * sqrt(terms) * ldexp(1, -24);
    }
}

enum { INTEGER_LAUNCHES = 8 }; /* of the exact check of all layers, which comes first: two each */

/* What the limit becomes behind an activation: of the sums' scale, and of the value. */
static double behind(const lap_op *op, double y, double sum, double *scale) {
    double e = 1 / (1 + exp(-y));
    *scale = sum;
    switch (op->act) {
    case LAP_ACT_RELU:
        return y < 0 ? 0 : y;
    case LAP_ACT_SILU:
        *scale = 1.1 * sum + 2 * fabs(y * e);
        return y * e;
    case LAP_ACT_SIGMOID:
        *scale = sum / 4 + 2 * e;
        return e;
    default:
        return y;
    }
}

static double stored(double value) {
    bool small = planted.stored == LAP_FP16 || planted.stored == LAP_BF16, bf16;
    bf16 = planted.stored == LAP_BF16;
    return small ? (double)to_float(to_bits((float)value, bf16), bf16) : value;
}

/* The first channel of a pixel of the batch, and what it may be off by, from the layer's own
 * weights (the integers of the exact check are only where the launch has them, [K][R][S][C]) and
 * what the launch was given. */
static double exact(float *const *given, size_t pixel, double *allowed) {
    const lap_op *op = planted.op;
    const lap_op_weights *w = &weights->ops[op - net->ops];
    const float *in = given[0], *residual = given[3];
    bool integers = planted.launches <= planted.integers;
    size_t pixels = (size_t)op->out.h * (size_t)op->out.w, image = pixel / pixels;
    int p = (int)(pixel % pixels) / op->out.w, q = (int)(pixel % pixels) % op->out.w;
    double y = (double)(integers ? given[2][0] : w->bias[0]), sum = fabs(y);
    for (int c = 0; c < op->in.c; c++)
        for (int tap = 0; tap < op->r * op->s; tap++) {
            int row = p * op->stride - op->pad + tap / op->s;
            int col = q * op->stride - op->pad + tap % op->s;
            if (row < 0 || col < 0 || row >= op->in.h || col >= op->in.w) continue;
            size_t at = (image * (size_t)op->in.h + (size_t)row) * (size_t)op->in.w + (size_t)col;
            float weight = integers ? given[1][tap * op->in.c + c] : w->w[c * op->r * op->s + tap];
            double term = (double)in[at * (size_t)op->in.cs + (size_t)c] * (double)weight;
            y += term;
            sum += fabs(term);
        }
    if (residual) {
        y += (double)residual[pixel * (size_t)op->out.cs];
        sum += fabs((double)residual[pixel * (size_t)op->out.cs]);
    }
    y = behind(op, y, sum, &sum);
    *allowed = limit_of(planted.stored, op) * sum;
    if (integers) { /* the sum is right: 16 units of roundoff of what is stored */
        bool wide = planted.stored == LAP_FP32 || planted.stored == LAP_FP32X3;
        y = stored(y);
        *allowed = 16 * (wide ? ldexp(1, -24) : limit_of(planted.stored, op) / 8) * fabs(y);
    }
    if (planted.stored == LAP_FP16)
        *allowed += ldexp(1, -24);
    else if (integers)
        *allowed += 1e-30;
    return y;
}

/* The stored value next to a positive one, not above it or above it. */
static double neighbour(double value, bool above) {
    if (planted.stored == LAP_FP16 || planted.stored == LAP_BF16) {
        bool bf16 = planted.stored == LAP_BF16;
        uint16_t bits = to_bits((float)value, bf16);
        double near = (double)to_float(bits, bf16);
        if (above && near <= value) bits++;
        if (!above && near > value) bits--;
        return (double)to_float(bits, bf16);
    }
    float near = (float)value;
    if (above && (double)near <= value) near = nextafterf(near, INFINITY);
    if (!above && (double)near > value) near = nextafterf(near, 0);
    return (double)near;
}

/* Away from zero, so that it is one step of the storage from a value inside to one outside. */
static void spoil_to_limit(float *out, size_t count, float *const *given) {
    size_t cs = (size_t)planted.op->out.cs, pixel = count / 2 / cs;
    size_t pixels = (size_t)planted.op->out.h * (size_t)planted.op->out.w;
    double allowed, value = exact(given, pixel, &allowed);
    bool last = planted.batch_from && planted.launches >= planted.batch_from;
    for (size_t i = count / cs - pixels; last && i < count / cs; i++) {
        double other_allowed, other = exact(given, i, &other_allowed);
        if (i > count / cs - pixels && fabs(other) + other_allowed >= fabs(value) + allowed)
            continue;
        value = other;
        allowed = other_allowed;
        pixel = i;
    }
    double edge = fabs(value) + allowed, got = neighbour(edge, planted.kind == OUTSIDE);
    planted.beyond = got - edge;
    out[pixel * cs] = (float)copysign(got, value);
}

static void spoil(float *out, size_t count) {
    float *value = &out[count / 2 / 8 * 8]; /* a pixel's first channel: never padding */
    if (planted.kind == OFF) *value = *value * 1.125f + 0.5f;
    if (planted.kind == OVERFLOWS) *value = 6.6e34f;
    if (planted.kind == NO_NUMBER) *value = NAN;
}

/* The convolution of that geometry. */
static const lap_op *conv_of(const lap_define *defines, size_t n, const void *residual) {
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        if (op->kind == LAP_OP_CONV && fake_define(defines, n, "C", 0) == op->in.c &&
            fake_define(defines, n, "K", 0) == op->out.c &&
            (residual != NULL) == (op->residual >= 0))
            return op;
    }
    fail();
    return NULL;
}

static void spoil_conv(const lap_define *defines, size_t n, void *const *given, size_t count) {
    if (++planted.launches < planted.from) return;
    if (planted.until && planted.launches > planted.until) return;
    if (planted.kind < PLANTS) {
        spoil(given[4], count);
        return;
    }
    planted.op = conv_of(defines, n, given[3]);
    float *floats[] = {given[0], given[1], given[2], given[3]};
    spoil_to_limit(given[4], count, floats);
}

/* Biases and logits are floats always; the rest is widened, and the output narrowed again. */
static void run(int kind, const lap_define *defines, size_t n, const lap_raw_launch *launch,
                void *const *pointers) {
    static const int outputs[] = {4, 1, 1, 3};
    bool bf16 = fake_define(defines, n, "PRECISION", 0) == LAP_BF16;
    bool small = bf16 || fake_define(defines, n, "PRECISION", 0) == LAP_FP16;
    float *wide[LAP_MAX_ARGS] = {NULL};
    void *given[LAP_MAX_ARGS];
    size_t counts[LAP_MAX_ARGS] = {0};
    for (size_t i = 0; i < launch->arg_count; i++) {
        given[i] = pointers[i];
        bool floats = (i == 2 && (kind == CONV || kind == FC)) || (i == 3 && kind == FC);
        if (!pointers[i] || floats) continue;
        counts[i] = ((const fake_buffer *)launch->args[i].buffer)->bytes / (small ? 2 : 4);
        if (!small) continue;
        given[i] = wide[i] = malloc((counts[i] + 1) * sizeof **wide);
        assert_non_null(wide[i]);
        for (size_t k = 0; k < counts[i]; k++)
            wide[i][k] = to_float(((const uint16_t *)pointers[i])[k], bf16);
    }
    originals[kind](defines, n, launch, given);
    int out = outputs[kind];
    if (kind == CONV) spoil_conv(defines, n, given, counts[out]);
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

static lap_session *begin(plant kind, int from) {
    static const fake_kernel_fn ours[] = {conv, maxpool, avgpool, fc};
    lap_session *session;
    fake_reset();
    for (int i = 0; i < 4; i++) {
        originals[i] = fake_find_kernel(stems[i], stems[i]);
        assert_true(fake_register(stems[i], stems[i], ours[i]));
    }
    fake.devices[0].has_fp16 = true;
    memset(&planted, 0, sizeof planted);
    planted.kind = kind;
    planted.from = from;
    planted.integers = INTEGER_LAUNCHES;
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

/* What the real check allows, to one step of the storage, in each precision and convolution: two
 * launches of each, behind the exact check's eight. */
static void test_limit(void **state) {
    (void)state;
    static const int convolutions[] = {0, 2, 3, 4};
    for (int p = 0; p < LAP_PRECISION_COUNT; p++)
        for (int i = -1; i < 4; i++) {
            lap_session *session = begin(i < 0 ? INSIDE : OUTSIDE, i < 0 ? 9 : 9 + 2 * i);
            planted.stored = (lap_precision)p;
            session->features |= LAP_FEATURE_MMA(p); /* or tf32 and fp32x3 are not there */
            session->probed |= 1u << p;
            lap_check_report report;
            lap_error err;
            lap_status status = layers(session, (lap_precision)p, LAP_CHECK_FULL, &report, &err);
            const char *name = lap_precision_name((lap_precision)p);
            assert_int_equal(report.exact_layers, TINY_OPS);
            if (i < 0 && status != LAP_OK) fail_msg("%s, within: %s", name, err.message);
            if (i < 0) assert_int_equal(report.real_layers, TINY_OPS);
            if (i >= 0 && status != LAP_E_VERIFY)
                fail_msg("%s, %g beyond the limit: not found", name, planted.beyond);
            if (i >= 0) assert_string_equal(report.first_wrong, net->ops[convolutions[i]].name);
            if (i >= 0) assert_non_null(strstr(report.detail, "real check of"));
            end(session);
        }
}

/* The same behind SiLU and a sigmoid, with integers too, whose sums are exact. */
static void test_limit_of_activations(void **state) {
    (void)state;
    enum { CONV2 = 2 };
    lap_op *op = &net->ops[CONV2];
    const lap_activation acts[] = {LAP_ACT_SILU, LAP_ACT_SIGMOID}, kept = op->act;
    for (int p = 0; p < LAP_PRECISION_COUNT; p++)
        for (int i = 0; i < 8; i++) {
            bool outside = i & 1, real = i & 2;
            op->act = acts[i / 4];
            int from = real ? INTEGER_LAUNCHES + 3 : 3;
            lap_session *session = begin(outside ? OUTSIDE : INSIDE, from);
            planted.until = from + 1;
            planted.stored = (lap_precision)p;
            session->features |= LAP_FEATURE_MMA(p);
            session->probed |= 1u << p;
            lap_check_report report;
            lap_error err;
            lap_status status = layers(session, (lap_precision)p, LAP_CHECK_FULL, &report, &err);
            const char *name = lap_precision_name((lap_precision)p);
            if (!outside && status != LAP_OK) fail_msg("%s, within: %s", name, err.message);
            if (outside && status != LAP_E_VERIFY)
                fail_msg("%s, activation %d, %g beyond the limit: not found", name, (int)op->act,
                         planted.beyond);
            if (outside)
                assert_non_null(
                    strstr(report.detail, real ? "real check of conv2" : "exact check of conv2"));
            end(session);
        }
    op->act = kept;
}

/* The limit is the same for all images of a batch: half storage's smallest step is allowed once,
 * not once more with each pair that is looked at. */
static void test_limit_of_late_images(void **state) {
    (void)state;
    enum { BATCH = 512, LAUNCHES_BEFORE = 2 + 2 + 3 };
    for (int outside = 0; outside < 2; outside++) {
        lap_session *session = begin(outside ? OUTSIDE : INSIDE, LAUNCHES_BEFORE + 1);
        planted.stored = LAP_FP16;
        planted.batch_from = LAUNCHES_BEFORE + 1;
        planted.integers = 2; /* of the one layer */
        lap_plan_options options = {.batch = BATCH, .naive = true, .precision = LAP_FP16};
        lap_check_report report;
        lap_error err = {0};
        lap_status status =
            lap_check_step(session, net, weights, &options, expected.images, 0, &report, &err);
        assert_int_equal(planted.launches, LAUNCHES_BEFORE + 1);
        if (outside) {
            assert_true(planted.beyond > 0 && planted.beyond < (BATCH / 2 - 1) * ldexp(1, -24));
            assert_int_equal(status, LAP_E_VERIFY);
            assert_non_null(strstr(report.detail, "batch check of conv1"));
            assert_non_null(strstr(report.detail, "1 values wrong, first at image 511, channel 0"));
        } else if (status != LAP_OK) {
            fail_msg("%s", err.message);
        }
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
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_of_activations),
        cmocka_unit_test(test_limit_of_late_images),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
