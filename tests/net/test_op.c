/* Shapes, work and bytes of ResNet-18, and the builder's refusals. */
#include "net/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static lap_net *build(int height, int width) {
    lap_net *net;
    lap_error err = {0};
    if (lap_net_build("resnet18", height, width, &net, &err) != LAP_OK) fail_msg("%s", err.message);
    return net;
}

static const lap_op *find(const lap_net *net, const char *name) {
    for (int i = 0; i < net->op_count; i++)
        if (strcmp(net->ops[i].name, name) == 0) return &net->ops[i];
    fail_msg("no op %s", name);
    return NULL;
}

/* Published for torchvision's model at 224x224, batch 1. */
static void fixed_points(void **state) {
    (void)state;
    lap_net *net = build(224, 224);
    assert_int_equal(lap_net_parameters(net), 11689512);
    assert_int_equal(lap_net_macs(net), 1814073344);
    assert_int_equal(lap_net_flops(net), 2 * 1814073344ull);
    assert_int_equal(lap_net_fvcore(net), 1819065856);
    assert_int_equal(net->classes, 1000);
    assert_int_equal(net->op_count, 23);
    assert_int_equal(net->tensor_count, 24);
    lap_net_free(net);
}

typedef struct expected {
    const char *name, *bn, *input, *residual;
    int c, h, w, r, stride, pad;
    lap_activation act;
} expected;

#define X(name, bn, in, res, c, h, w, r, stride, pad, relu)                                        \
    { name, bn, in, res, c, h, w, r, stride, pad, relu ? LAP_ACT_RELU : LAP_ACT_NONE }

/* Written out by hand for 33x45, where every stage rounds differently. */
static const expected odd[] = {
    X("conv1", "bn1", "", "", 64, 17, 23, 7, 2, 3, 1),
    X("maxpool", "", "conv1", "", 64, 9, 12, 3, 2, 1, 0),
    X("layer1.0.conv1", "layer1.0.bn1", "maxpool", "", 64, 9, 12, 3, 1, 1, 1),
    X("layer1.0.conv2", "layer1.0.bn2", "layer1.0.conv1", "maxpool", 64, 9, 12, 3, 1, 1, 1),
    X("layer1.1.conv1", "layer1.1.bn1", "layer1.0.conv2", "", 64, 9, 12, 3, 1, 1, 1),
    X("layer1.1.conv2", "layer1.1.bn2", "layer1.1.conv1", "layer1.0.conv2", 64, 9, 12, 3, 1, 1, 1),
    X("layer2.0.conv1", "layer2.0.bn1", "layer1.1.conv2", "", 128, 5, 6, 3, 2, 1, 1),
    X("layer2.0.downsample.0", "layer2.0.downsample.1", "layer1.1.conv2", "", 128, 5, 6, 1, 2, 0,
      0),
    X("layer2.0.conv2", "layer2.0.bn2", "layer2.0.conv1", "layer2.0.downsample.0", 128, 5, 6, 3, 1,
      1, 1),
    X("layer2.1.conv1", "layer2.1.bn1", "layer2.0.conv2", "", 128, 5, 6, 3, 1, 1, 1),
    X("layer2.1.conv2", "layer2.1.bn2", "layer2.1.conv1", "layer2.0.conv2", 128, 5, 6, 3, 1, 1, 1),
    X("layer3.0.conv1", "layer3.0.bn1", "layer2.1.conv2", "", 256, 3, 3, 3, 2, 1, 1),
    X("layer3.0.downsample.0", "layer3.0.downsample.1", "layer2.1.conv2", "", 256, 3, 3, 1, 2, 0,
      0),
    X("layer3.0.conv2", "layer3.0.bn2", "layer3.0.conv1", "layer3.0.downsample.0", 256, 3, 3, 3, 1,
      1, 1),
    X("layer3.1.conv1", "layer3.1.bn1", "layer3.0.conv2", "", 256, 3, 3, 3, 1, 1, 1),
    X("layer3.1.conv2", "layer3.1.bn2", "layer3.1.conv1", "layer3.0.conv2", 256, 3, 3, 3, 1, 1, 1),
    X("layer4.0.conv1", "layer4.0.bn1", "layer3.1.conv2", "", 512, 2, 2, 3, 2, 1, 1),
    X("layer4.0.downsample.0", "layer4.0.downsample.1", "layer3.1.conv2", "", 512, 2, 2, 1, 2, 0,
      0),
    X("layer4.0.conv2", "layer4.0.bn2", "layer4.0.conv1", "layer4.0.downsample.0", 512, 2, 2, 3, 1,
      1, 1),
    X("layer4.1.conv1", "layer4.1.bn1", "layer4.0.conv2", "", 512, 2, 2, 3, 1, 1, 1),
    X("layer4.1.conv2", "layer4.1.bn2", "layer4.1.conv1", "layer4.0.conv2", 512, 2, 2, 3, 1, 1, 1),
    X("avgpool", "", "layer4.1.conv2", "", 512, 1, 1, 2, 1, 0, 0),
    X("fc", "", "avgpool", "", 1000, 1, 1, 1, 1, 0, 0),
};

/* The op that wrote a tensor; "" for the image and for no tensor. */
static const char *writer(const lap_net *net, int tensor) {
    return tensor > 0 ? net->ops[tensor - 1].name : "";
}

static void every_op_of_an_odd_size(void **state) {
    (void)state;
    lap_net *net = build(33, 45);
    assert_int_equal(net->op_count, sizeof odd / sizeof odd[0]);
    for (int i = 0; i < net->op_count; i++) {
        const lap_op *op = &net->ops[i];
        const expected *e = &odd[i];
        assert_string_equal(op->name, e->name);
        assert_string_equal(op->bn, e->bn);
        assert_string_equal(writer(net, op->input), e->input);
        assert_string_equal(writer(net, op->residual), e->residual);
        assert_int_equal(op->residual >= 0, e->residual[0] != '\0');
        assert_int_equal(op->out.c, e->c);
        assert_int_equal(op->out.h, e->h);
        assert_int_equal(op->out.w, e->w);
        assert_int_equal(op->r, e->r);
        assert_int_equal(op->s, e->r);
        assert_int_equal(op->stride, e->stride);
        assert_int_equal(op->pad, e->pad);
        assert_int_equal(op->act, e->act);
        assert_int_equal(op->output, i + 1);
        assert_memory_equal(&op->in, &net->tensors[op->input], sizeof op->in);
        assert_memory_equal(&op->out, &net->tensors[op->output], sizeof op->out);
    }
    assert_int_equal(net->tensors[0].c, 3);
    assert_int_equal(net->tensors[0].cs, 4);
    assert_int_equal(lap_tensor_stored(&net->tensors[0]), 33 * 45 * 4);
    assert_int_equal(lap_tensor_logical(&net->tensors[0]), 33 * 45 * 3);
    lap_net_free(net);
}

static void shapes_at_224(void **state) {
    (void)state;
    static const int sides[][2] = {{0, 224}, {1, 112}, {2, 56}, {6, 56}, {7, 28},
                                   {12, 14}, {17, 7},  {21, 7}, {22, 1}, {23, 1}};
    lap_net *net = build(224, 224);
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        assert_int_equal(net->tensors[sides[i][0]].h, sides[i][1]);
        assert_int_equal(net->tensors[sides[i][0]].w, sides[i][1]);
    }
    lap_net_free(net);
}

/* What no output needs is not among the least bytes: pixels that a step leaps over, and taps of a
 * window that lie in the border for every output. */
static void bytes_that_are_needed(void **state) {
    (void)state;
    lap_net *net = build(224, 224);
    const lap_op *down = find(net, "layer2.0.downsample.0"), *stem = find(net, "conv1");
    assert_int_equal(lap_op_reads(down), 28 * 28 * 64); /* of 56 x 56 */
    assert_int_equal(lap_op_bytes(down, 3, 4),
                     (3 * (28 * 28 * 64 + 28 * 28 * 128) + 64 * 128 + 128) * 4);
    assert_int_equal(lap_op_reads(stem), 224 * 224 * 3);
    lap_net_free(net);
    net = build(32, 32); /* the last layers' images are 1 x 1 */
    const lap_op *conv = find(net, "layer4.1.conv1"), *first = find(net, "layer4.0.conv1");
    assert_int_equal(lap_op_weight_count(conv), 512 * 512 * 9);
    assert_int_equal(lap_op_bytes(conv, 2, 4), (2 * 1024 + 512 * 512 + 512) * 4);
    /* 2 x 2 to 1 x 1 with step 2 and border 1: four of nine taps. */
    assert_int_equal(lap_op_bytes(first, 1, 4), (4 * 256 + 512 + 512 * 256 * 4 + 512) * 4);
    lap_net_free(net);
    net = build(35, 67); /* odd sizes: every pixel is read where windows overlap */
    const lap_op *pool = find(net, "maxpool");
    assert_int_equal(lap_op_reads(pool), lap_tensor_logical(&pool->in));
    lap_net_free(net);
}

static void work_and_bytes_of_one_op(void **state) {
    (void)state;
    lap_net *net = build(224, 224);
    const lap_op *conv = find(net, "layer2.0.conv2"), *pool = find(net, "avgpool");
    const lap_op *fc = find(net, "fc"), *max = find(net, "maxpool");
    uint64_t image = 28 * 28 * 128, weights = 128 * 128 * 9;
    assert_int_equal(lap_op_weight_count(conv), weights);
    assert_int_equal(lap_op_macs(conv), image * 128 * 9);
    assert_int_equal(lap_op_flops(conv), image * 128 * 9 * 2);
    assert_int_equal(lap_op_fvcore(conv), image * 128 * 9 + 2 * image);
    assert_int_equal(lap_op_bytes(conv, 5, 4), 5 * 3 * image * 4 + weights * 4 + 128 * 4);
    assert_int_equal(lap_op_bytes(conv, 5, 2), 5 * 3 * image * 2 + weights * 2 + 128 * 4);
    assert_int_equal(lap_op_macs(pool), 0);
    assert_int_equal(lap_op_fvcore(pool), 7 * 7 * 512);
    assert_int_equal(lap_op_bytes(pool, 1, 4), (7 * 7 * 512 + 512) * 4);
    assert_int_equal(lap_op_fvcore(fc), 512000);
    assert_int_equal(lap_op_bytes(fc, 2, 4), (2 * 1512 + 512000 + 1000) * 4);
    assert_int_equal(lap_op_fvcore(max), 0);
    lap_net_free(net);
}

static void large_images_count_in_64_bits(void **state) {
    (void)state;
    lap_net *net = build(1024, 2048);
    /* Everything but the fc scales exactly: both sides are multiples of 32. */
    assert_int_equal(lap_net_macs(net), (1814073344ull - 512000) / 49 * (32 * 64) + 512000);
    lap_net_free(net);
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *model, *says;
        int h, w;
    } cases[] = {
        {"resnet19", "resnet18", 224, 224},
        {"resnet18", "height 31", 31, 224},
        {"resnet18", "width 0", 224, 0},
        {"resnet18", "width -5", 32, -5},
        {"resnet18", "height", 2147483647, 2147483647},
        {"resnet18", "conv1 would hold", 16384, 16384},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lap_net *net = (lap_net *)cases; /* anything but NULL */
        lap_error err = {0};
        assert_int_equal(lap_net_build(cases[i].model, cases[i].h, cases[i].w, &net, &err),
                         LAP_E_CONFIG);
        assert_null(net);
        assert_non_null(strstr(err.message, cases[i].says));
    }
    lap_net *net = build(32, 32);
    lap_net_free(net);
    lap_net_free(NULL);
}

static void names(void **state) {
    (void)state;
    lap_precision p = LAP_FP16;
    for (int i = 0; i < LAP_PRECISION_COUNT; i++) {
        assert_true(lap_precision_parse(lap_precision_name((lap_precision)i), &p));
        assert_int_equal(p, i);
    }
    assert_false(lap_precision_parse("fp64", &p));
    assert_string_equal(lap_op_kind_name(LAP_OP_AVGPOOL), "avgpool");
    assert_string_equal(lap_net_models()[0], "resnet18");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_points),
        cmocka_unit_test(every_op_of_an_odd_size),
        cmocka_unit_test(shapes_at_224),
        cmocka_unit_test(work_and_bytes_of_one_op),
        cmocka_unit_test(bytes_that_are_needed),
        cmocka_unit_test(large_images_count_in_64_bits),
        cmocka_unit_test(refusals),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
