/* The reference against logits that others computed in float64 from the exported weights: PyTorch
 * (tests/data/make_logits.py), for EfficientNet-B0 a NumPy program (make_logits_numpy.py), with
 * which PyTorch agrees to 2e-15 (make_logits.py --compare). */
#include "net/weights.h"
#include "ref/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* They keep the weights unfolded in double; here they are folded and rounded once to float, a
 * relative error of at most 2^-24 = 6e-8 a weight, which reaches the logits as 4e-8 (ResNets) and
 * 1.9e-7 (EfficientNet-B0, four times as many layers). All else is double on both sides (1e-15). A
 * wrong pixel, layer or order of operations is above 1e-3. */

static void check_image(const char *model, FILE *file, unsigned number, int height, int width,
                        int count, double tolerance) {
    lap_error err = {0};
    lap_net *net;
    lap_weights *weights;
    lap_input *input;
    assert_int_equal(lap_net_build(model, height, width, &net, &err), LAP_OK);
    assert_int_equal(lap_weights_load(net, "synthetic:1", &weights, &err), LAP_OK);
    assert_int_equal(lap_input_open("synthetic:1", 3, height, width, &input, &err), LAP_OK);
    assert_int_equal(count, net->classes);
    float *image = malloc((size_t)height * (size_t)width * 3 * sizeof *image);
    double *logits = malloc((size_t)count * sizeof *logits);
    assert_non_null(image);
    assert_non_null(logits);
    assert_int_equal(lap_input_image(input, number, image, &err), LAP_OK);
    assert_int_equal(lap_ref_forward(net, weights, image, logits, &err), LAP_OK);
    double difference = 0.0, norm = 0.0;
    for (int i = 0; i < count; i++) {
        double theirs;
        assert_int_equal(fscanf(file, "%lf", &theirs), 1);
        difference += (logits[i] - theirs) * (logits[i] - theirs);
        norm += theirs * theirs;
    }
    double relative = sqrt(difference / norm);
    print_message("%s, image %u %dx%d: relative L2 %.3g, limit %.3g\n", model, number, height,
                  width, relative, tolerance);
    assert_true(norm > 0.0);
    assert_true(relative <= tolerance);
    free(image);
    free(logits);
    lap_input_free(input);
    lap_weights_free(weights);
    lap_net_free(net);
}

static void agrees(const char *model, double tolerance) {
    char path[512];
    snprintf(path, sizeof path, LAP_TEST_DATA "/logits_%s_synthetic1.txt", model);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("%s is not there", path);
    assert_int_equal(fscanf(file, "#%*[^\n]"), 0);
    int cases = 0, height, width, count;
    unsigned number;
    while (fscanf(file, " image %u %d %d %d", &number, &height, &width, &count) == 4) {
        check_image(model, file, number, height, width, count, tolerance);
        cases++;
    }
    assert_true(feof(file));
    fclose(file);
    assert_int_equal(cases, 3);
}

static const struct {
    const char *model;
    double tolerance;
} models[] = {
    {"resnet18", 1e-7},
    {"resnet34", 1e-7},
    {"resnet50", 1e-7},
    {"efficientnet_b0", 4e-7},
};

/* No network that nobody else has computed. */
static void all_agree(void **state) {
    (void)state;
    size_t count = 0;
    for (const char *const *name = lap_net_models(); *name; name++, count++) {
        if (count == sizeof models / sizeof *models || strcmp(*name, models[count].model) != 0)
            fail_msg("%s: no logits by somebody else to compare with", *name);
        agrees(*name, models[count].tolerance);
    }
    assert_int_equal(count, sizeof models / sizeof *models);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
