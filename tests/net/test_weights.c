/* Weights: folding, the synthetic set, its range in use, and the way out to a file and back. */
#include "base/rng.h"
#include "net/safetensors.h"
#include "ref/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const path = LAP_TEST_TMP "/weights.safetensors";

static lap_net *build(int height, int width) {
    lap_net *net;
    assert_int_equal(lap_net_build("resnet18", height, width, &net, NULL), LAP_OK);
    return net;
}

static lap_weights *load(const lap_net *net, const char *spec) {
    lap_weights *weights;
    lap_error err = {0};
    if (lap_weights_load(net, spec, &weights, &err) != LAP_OK) fail_msg("%s", err.message);
    return weights;
}

/* Bits of the folded set: the same on every machine, compiler and image size. */
static void pinned_hash(void **state) {
    (void)state;
    lap_net *net = build(32, 32);
    lap_weights *weights = load(net, "synthetic:1"), *other = load(net, "synthetic:2");
    assert_string_equal(weights->hash, "17061df24bbaf99a");
    assert_string_equal(weights->source, "synthetic:1");
    assert_string_not_equal(other->hash, weights->hash);
    lap_weights_free(weights);
    lap_weights_free(other);
    lap_net_free(net);
}

static double normal(const char *name, uint64_t i, double scale) {
    return (double)(float)(lap_rng_normal(3, lap_rng_stream(name), i) * scale);
}

static double uniform(const char *name, uint64_t i, double low, double width) {
    return (double)(float)(low + width * lap_rng_uniform(3, lap_rng_stream(name), i));
}

/* layer1.0.conv2 of seed 3, from the definitions in synthetic.c and weights.h. */
static void folding(void **state) {
    (void)state;
    lap_net *net = build(32, 32);
    lap_weights *weights = load(net, "synthetic:3");
    int at = 0;
    while (strcmp(net->ops[at].name, "layer1.0.conv2") != 0)
        at++;
    const lap_op_weights *op = &weights->ops[at];
    assert_int_equal(op->k, 64);
    assert_int_equal(op->w_count, 64 * 64 * 9);
    for (uint64_t k = 0; k < 64; k++) {
        double gamma = uniform("layer1.0.bn2.weight", k, 0.2, 0.2);
        double beta = normal("layer1.0.bn2.bias", k, 0.1);
        double mean = normal("layer1.0.bn2.running_mean", k, 0.1);
        double scale = gamma / sqrt(uniform("layer1.0.bn2.running_var", k, 0.8, 0.4) + 1e-5);
        assert_true(op->bias[k] == (float)(beta - mean * scale));
        for (uint64_t i = k * 576; i < (k + 1) * 576; i++)
            assert_true(op->w[i] ==
                        (float)(normal("layer1.0.conv2.weight", i, sqrt(2.0 / 576)) * scale));
    }
    /* The fully connected layer is not folded; pools have nothing. */
    const lap_op_weights *fc = &weights->ops[net->op_count - 1];
    assert_true(fc->bias[999] == (float)normal("fc.bias", 999, 0.01));
    assert_true(fc->w[511999] == (float)normal("fc.weight", 511999, sqrt(1.0 / 512)));
    assert_null(weights->ops[1].w);
    lap_weights_free(weights);
    lap_net_free(net);
}

static void round_trip(void **state) {
    (void)state;
    lap_net *net = build(32, 32);
    lap_error err = {0};
    unlink(path);
    assert_int_equal(lap_weights_export(net, 1, path, false, &err), LAP_OK);
    lap_weights *read = load(net, path), *made = load(net, "synthetic:1");
    assert_string_equal(read->hash, made->hash);
    assert_string_equal(read->source, path);
    lap_weights_free(read);
    lap_weights_free(made);
    assert_int_equal(lap_weights_export(net, 1, path, false, &err), LAP_E_IO);
    assert_non_null(strstr(err.message, "--force"));
    assert_int_equal(lap_weights_export(net, 2, path, true, &err), LAP_OK);
    read = load(net, path);
    assert_string_not_equal(read->hash, "17061df24bbaf99a");
    lap_weights_free(read);
    assert_int_equal(lap_weights_export(net, 1, "/dev/full", true, &err), LAP_E_IO);
    lap_net_free(net);
}

/* A state dict that is fine as a file, but not as a batch norm. */
static lap_status fetch_negative_variance(void *context, int index, float *out, lap_error *err) {
    (void)err;
    const lap_state *state = context;
    const lap_state_tensor *t = &state->tensors[index];
    for (uint64_t i = 0; i < t->count; i++)
        out[i] = t->role == LAP_STATE_BN_VARIANCE && i == 5 ? -1.0f : 1.0f;
    return LAP_OK;
}

static void bad_variance(void **state) {
    (void)state;
    lap_net *net = build(32, 32);
    lap_state dict;
    lap_error err = {0};
    assert_int_equal(lap_state_new(net, &dict, &err), LAP_OK);
    assert_int_equal(lap_safetensors_write(path, &dict, fetch_negative_variance, &dict, true, &err),
                     LAP_OK);
    lap_weights *weights = (lap_weights *)&dict;
    assert_int_equal(lap_weights_load(net, path, &weights, &err), LAP_E_FORMAT);
    assert_null(weights);
    assert_non_null(strstr(err.message, "bn1.running_var[5] is -1"));
    lap_state_free(&dict);
    lap_net_free(net);
    unlink(path);
}

static void bad_specs(void **state) {
    (void)state;
    lap_net *net = build(32, 32);
    static const char *const bad[] = {"", "synthetic:", "synthetic:1 2", "synthetic:-1"};
    lap_weights *weights;
    lap_error err = {0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(lap_weights_load(net, bad[i], &weights, &err), LAP_E_CONFIG);
        assert_null(weights);
    }
    assert_int_equal(lap_weights_load(net, "/", &weights, &err), LAP_E_IO);
    lap_weights_free(NULL);
    lap_net_free(net);
}

/* ---- range ---------------------------------------------------------------------------------- */

static double largest(const double *x, size_t n) {
    double most = 0.0;
    for (size_t i = 0; i < n; i++)
        if (!(fabs(x[i]) <= most)) most = fabs(x[i]);
    return most;
}

/* Logits of one image; every activation on the way must stay of order 1 (a fp16 kernel holds them
 * all), and no layer may have died. */
static void forward(const lap_net *net, const lap_weights *weights, const float *image,
                    double *logits) {
    double *values[32] = {0};
    size_t pixels = (size_t)net->height * (size_t)net->width;
    values[0] = malloc(pixels * 3 * sizeof(double));
    for (size_t i = 0; i < pixels * 3; i++)
        values[0][i] = (double)image[i % 3 * pixels + i / 3];
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        size_t n = (size_t)lap_tensor_logical(&op->out);
        values[i + 1] = malloc(n * sizeof(double));
        const double *residual = op->residual >= 0 ? values[op->residual] : NULL;
        assert_int_equal(lap_ref_op(op, 1, values[op->input], residual, &weights->ops[i],
                                    values[i + 1], NULL, NULL),
                         LAP_OK);
        double most = largest(values[i + 1], n);
        assert_true(most > 0.5 && most < 100.0);
    }
    memcpy(logits, values[net->op_count], 1000 * sizeof *logits);
    for (int i = 0; i <= net->op_count; i++)
        free(values[i]);
}

static double spread(const double *logits) {
    double mean = 0.0, variance = 0.0;
    for (int i = 0; i < 1000; i++)
        mean += logits[i] / 1000;
    for (int i = 0; i < 1000; i++)
        variance += (logits[i] - mean) * (logits[i] - mean) / 1000;
    return sqrt(variance);
}

static double relative_l2(const double *a, const double *b) {
    double difference = 0.0, norm = 0.0;
    for (int i = 0; i < 1000; i++) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
    }
    return sqrt(difference / norm);
}

/* Two images must be far apart compared with any tolerance, or a kernel that reads the wrong image
 * would go unnoticed. */
static void activations_stay_in_range(void **state) {
    (void)state;
    lap_net *net = build(96, 64);
    float image[96 * 64 * 3];
    for (int seed = 1; seed <= 3; seed++) {
        char spec[32];
        snprintf(spec, sizeof spec, "synthetic:%d", seed);
        lap_weights *weights = load(net, spec);
        lap_input *input;
        assert_int_equal(lap_input_open(spec, 3, 96, 64, &input, NULL), LAP_OK);
        double logits[3][1000];
        for (uint64_t i = 0; i < 3; i++) {
            assert_int_equal(lap_input_image(input, i, image, NULL), LAP_OK);
            forward(net, weights, image, logits[i]);
            assert_true(spread(logits[i]) > 0.5);
            for (uint64_t j = 0; j < i; j++)
                assert_true(relative_l2(logits[i], logits[j]) > 0.1);
        }
        lap_input_free(input);
        lap_weights_free(weights);
    }
    lap_net_free(net);
}

static int top1(const lap_net *net, const lap_weights *weights, const lap_input *input,
                uint64_t index, float *image) {
    double logits[1000];
    assert_int_equal(lap_input_image(input, index, image, NULL), LAP_OK);
    assert_int_equal(lap_ref_forward(net, weights, image, logits, NULL), LAP_OK);
    int top = 0;
    for (int i = 1; i < 1000; i++)
        if (logits[i] > logits[top]) top = i;
    return top;
}

/* The default set on the default images: not all the same class. */
static void classes_differ(void **state) {
    (void)state;
    lap_net *net = build(224, 224);
    lap_weights *weights = load(net, "synthetic:1");
    lap_input *input;
    assert_int_equal(lap_input_open("synthetic:1", 3, 224, 224, &input, NULL), LAP_OK);
    float *image = malloc(224 * 224 * 3 * sizeof *image);
    assert_int_equal(top1(net, weights, input, 0, image), 883);
    assert_int_equal(top1(net, weights, input, 2, image), 576);
    free(image);
    lap_input_free(input);
    lap_weights_free(weights);
    lap_net_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned_hash),    cmocka_unit_test(folding),
        cmocka_unit_test(round_trip),     cmocka_unit_test(bad_variance),
        cmocka_unit_test(bad_specs),      cmocka_unit_test(activations_stay_in_range),
        cmocka_unit_test(classes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
