/* The check of one step at a whole batch holds the second output to its limit too: a depthwise
 * convolution that writes the means of its channels beside, on the fake device. */
#include "check/check.h"
#include "fake_objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CHANNELS = 8, SIDE = 3, BATCH = 7 };

/* Of the means: what is wrong, in which image, and only where there are as many as in a batch. */
typedef enum plant { RIGHT, WRONG, NOTHING, PADDING } plant;
static plant planted;
static size_t image;
static fake_kernel_fn plain;

/* IN, WEIGHTS, BIAS, OUT, OUT2, N, FLAGS: the plain kernel has no OUT2. */
static void with_means(const lap_define *defines, size_t n, const lap_raw_launch *launch,
                       void *const *pointers) {
    lap_raw_launch less = *launch;
    less.args[4] = launch->args[5];
    less.args[5] = launch->args[6];
    less.arg_count--;
    plain(defines, n, &less, pointers);
    const float *out = pointers[3];
    float *means = pointers[4];
    size_t images = (size_t)launch->args[5].i32, cs = (size_t)fake_define(defines, n, "CS", 0);
    for (size_t i = 0; i < images; i++) {
        if (images == BATCH && planted == NOTHING && i == image) continue;
        for (size_t k = 0; k < cs; k++) {
            float sum = 0;
            for (size_t p = 0; p < SIDE * SIDE; p++)
                sum += out[(i * SIDE * SIDE + p) * cs + k];
            means[i * cs + k] = sum / (SIDE * SIDE);
        }
    }
    if (images != BATCH) return;
    if (planted == WRONG) means[image * cs + 1] += 1;
    if (planted == PADDING) means[image * cs + cs - 1] = 1;
}

static lap_tensor shape(int channels, int side) {
    return (lap_tensor){.c = channels, .h = side, .w = side, .cs = (channels + 3) / 4 * 4};
}

/* The convolution, and the pool that is its partner. */
static void check(int channels, lap_status want, const char *detail) {
    lap_tensor tensors[] = {shape(channels, SIDE), shape(channels, SIDE), shape(channels, 1)};
    lap_op ops[] = {{.kind = LAP_OP_DWCONV,
                     .name = "dw",
                     .output = 1,
                     .residual = -1,
                     .in = tensors[0],
                     .out = tensors[1],
                     .r = 3,
                     .s = 3,
                     .stride = 1,
                     .pad = 1},
                    {.kind = LAP_OP_AVGPOOL,
                     .name = "pool",
                     .input = 1,
                     .output = 2,
                     .residual = -1,
                     .in = tensors[1],
                     .out = tensors[2],
                     .r = SIDE,
                     .s = SIDE,
                     .stride = 1}};
    lap_net net = {.model = "means",
                   .height = SIDE,
                   .width = SIDE,
                   .classes = channels,
                   .ops = ops,
                   .op_count = 2,
                   .tensors = tensors,
                   .tensor_count = 3};
    float w[CHANNELS * 9], bias[CHANNELS], images[2 * CHANNELS * SIDE * SIDE];
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = 0.25f * (float)(i % 7) - 0.6f;
    for (size_t i = 0; i < CHANNELS; i++)
        bias[i] = 0.125f * (float)i;
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = 0.5f * (float)(i % 11) - 2.3f;
    lap_op_weights of[] = {
        {.w = w, .bias = bias, .w_count = (size_t)channels * 9, .k = (size_t)channels}, {0}};
    lap_weights weights = {.ops = of, .op_count = 2};
    lap_session *session;
    assert_int_equal(lap_session_open(&fake.devices[0], &session, NULL), LAP_OK);
    lap_plan_options options = {.batch = BATCH, .prefer = "dwconv_pool_v"};
    lap_check_report report;
    lap_error err = {0};
    lap_status status = lap_check_step(session, &net, &weights, &options, images, 0, &report, &err);
    if (status != want) fail_msg("status %d, image %zu: %s", (int)status, image, err.message);
    if (detail && !strstr(report.detail, detail)) fail_msg("'%s'", report.detail);
    assert_int_equal(report.passed, want == LAP_OK);
    assert_int_equal(lap_session_close(session, NULL), LAP_OK);
    assert_int_equal(fake_alive(), 0);
}

static int set_up(void **state) {
    (void)state;
    fake_reset();
    lap_registry_add(&fake_ops);
    fake.devices[0].type = LAP_DEVICE_CPU; /* the row is for these */
    fake.devices[0].units = 1;
    plain = fake_find_kernel("dwconv_naive", "dwconv_naive");
    assert_true(fake_register("dwconv_v", "dwconv_v", with_means));
    planted = RIGHT;
    return 0;
}

static void test_right(void **state) {
    (void)state;
    check(CHANNELS, LAP_OK, NULL);
    check(CHANNELS - 1, LAP_OK, NULL);
}

static void test_wrong(void **state) {
    (void)state;
    for (image = 0; image < BATCH; image++) {
        char detail[80];
        snprintf(detail, sizeof detail, "second output check of dw+pool (kernel dwconv_pool_v)");
        planted = WRONG;
        check(CHANNELS, LAP_E_VERIFY, detail);
        snprintf(detail, sizeof detail, "1 values wrong, first at image %zu, channel 1", image);
        check(CHANNELS, LAP_E_VERIFY, detail);
        snprintf(detail, sizeof detail, "first at image %zu, channel 0", image);
        planted = NOTHING;
        check(CHANNELS, LAP_E_VERIFY, detail);
        planted = PADDING;
        check(CHANNELS - 1, LAP_E_VERIFY, "padding channels are not zero");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_right, set_up),
        cmocka_unit_test_setup(test_wrong, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
