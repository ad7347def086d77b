/* Every model by its published and independently counted figures, at 224x224. A new network is a
 * table in src/net and a line here. */
#include "net/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Parameters and multiply-adds: as torchvision's documentation has them (rounded there). The last
 * is fvcore's convention, which counts batch norms and average pools besides multiply-adds;
 * tests/data/count_flops.py compares it with fvcore itself. */
static const struct {
    const char *model;
    int ops;
    uint64_t parameters, macs, fvcore;
} models[] = {
    {"resnet18", 23, 11689512, 1814073344, 1819065856},
    {"resnet34", 39, 21797672, 3663761408, 3671262720},
    {"resnet50", 56, 25557032, 4089184256, 4111512576},
    {"efficientnet_b0", 115, 5288548, 385814752, 401659392},
};
#define MODELS (sizeof models / sizeof models[0])

static lap_net *build(const char *model, int side) {
    lap_net *net;
    lap_error err = {0};
    if (lap_net_build(model, side, side, &net, &err) != LAP_OK) fail_msg("%s", err.message);
    return net;
}

static void counts(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        lap_net *net = build(models[i].model, 224);
        print_message("%s: %d ops, %llu parameters, %llu multiply-adds, fvcore %llu\n", net->model,
                      net->op_count, (unsigned long long)lap_net_parameters(net),
                      (unsigned long long)lap_net_macs(net),
                      (unsigned long long)lap_net_fvcore(net));
        assert_string_equal(net->model, models[i].model);
        assert_int_equal(lap_net_parameters(net), models[i].parameters);
        assert_int_equal(net->op_count, models[i].ops);
        assert_int_equal(lap_net_macs(net), models[i].macs);
        assert_int_equal(lap_net_fvcore(net), models[i].fvcore);
        assert_int_equal(net->classes, 1000);
        lap_net_free(net);
    }
}

/* No model without a line above. */
static void all_are_listed(void **state) {
    (void)state;
    size_t count = 0;
    for (const char *const *name = lap_net_models(); *name; name++, count++)
        assert_string_equal(*name, models[count].model);
    assert_int_equal(count, MODELS);
}

/* Every op reads what an earlier one wrote, every tensor but the last is read, names are unique. */
static void tables_are_sound(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        lap_net *net = build(models[i].model, 97);
        for (int o = 0; o < net->op_count; o++) {
            const lap_op *op = &net->ops[o];
            assert_true(op->input >= 0 && op->input < op->output);
            assert_true(op->residual < op->output);
            bool read = o + 1 == net->op_count;
            for (int p = o + 1; p < net->op_count; p++) {
                read |= net->ops[p].input == op->output || net->ops[p].residual == op->output;
                assert_string_not_equal(net->ops[p].name, op->name);
                if (op->bn[0]) assert_string_not_equal(net->ops[p].bn, op->bn);
            }
            if (!read) fail_msg("%s: nobody reads %s", net->model, op->name);
        }
        lap_net_free(net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(all_are_listed),
        cmocka_unit_test(tables_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
