/* Parameter spaces: complete, valid, reproducible; texts that survive a round trip. */
#include "tune/space.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static lap_net *net;
static lap_device_info device;

static int set_up(void **state) {
    (void)state;
    device = (lap_device_info){.backend = "x",
                               .language = "cu",
                               .type = LAP_DEVICE_GPU,
                               .local_bytes = 49152,
                               .local_optin_bytes = 49152,
                               .max_group_size = 1024,
                               .max_group_dim = {1024, 1024, 64},
                               .units = 100};
    return lap_net_build("resnet18", 224, 224, &net, NULL) == LAP_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    lap_net_free(net);
    return 0;
}

static bool contains(const lap_candidate *list, size_t count, const lap_candidate *one) {
    for (size_t i = 0; i < count; i++)
        if (lap_candidate_same(&list[i], one)) return true;
    return false;
}

static void test_space(void **state) {
    (void)state;
    for (int i = 0; i < net->op_count; i++) {
        lap_case c = {.op = &net->ops[i], .device = &device, .n = 8};
        lap_candidate *space, *again, *other;
        size_t count, count_again, naive_from = 0, same_place = 0;
        assert_int_equal(lap_space_new(&c, false, 1, &space, &count, NULL), LAP_OK);
        assert_int_equal(lap_space_new(&c, false, 1, &again, &count_again, NULL), LAP_OK);
        assert_int_equal(count, count_again);
        assert_true(count > 0);
        for (size_t k = 0; k < count; k++) {
            lap_case trial = c;
            trial.params = space[k].params;
            assert_true(lap_candidate_same(&space[k], &again[k]));
            assert_true(space[k].row->valid(&trial));
            assert_false(space[k].row->variant);
            assert_true(lap_kernel_can_run(space[k].row, &trial, false));
            if (!space[k].row->naive) naive_from = k + 1;
        }
        for (size_t k = 0; k < naive_from; k++)
            assert_false(space[k].row->naive); /* they come last */
        for (size_t k = 0; k + 1 < count && k < 100; k++)
            assert_false(contains(space + k + 1, count - k - 1, &space[k]));
        assert_int_equal(lap_space_new(&c, false, 2, &other, &count_again, NULL), LAP_OK);
        assert_int_equal(count, count_again);
        for (size_t k = 0; k < count; k++)
            same_place += lap_candidate_same(&space[k], &other[k]);
        if (count > 50) assert_true(same_place < count / 2);
        free(space);
        free(again);
        free(other);
    }
}

static void test_neighbours(void **state) {
    (void)state;
    lap_case c = {.op = &net->ops[2], .device = &device, .n = 8};
    lap_candidate *space, near[2 * LAP_MAX_TUNABLES];
    size_t count;
    assert_int_equal(lap_space_new(&c, false, 1, &space, &count, NULL), LAP_OK);
    size_t n = lap_space_neighbours(&c, &space[0], near);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        int differences = 0;
        for (int t = 0; t < near[i].row->tunable_count; t++)
            differences += near[i].params.value[t] != space[0].params.value[t];
        assert_int_equal(differences, 1);
        assert_true(contains(space, count, &near[i]));
    }
    free(space);
}

static void test_texts(void **state) {
    (void)state;
    lap_case c = {.op = &net->ops[2], .device = &device, .n = 8};
    lap_candidate *space, back;
    size_t count;
    char word[LAP_TUNE_TEXT + 64], signature[LAP_TUNE_TEXT], other[LAP_TUNE_TEXT];
    assert_int_equal(lap_space_new(&c, false, 1, &space, &count, NULL), LAP_OK);
    for (size_t i = 0; i < count; i++) {
        lap_candidate_text(&space[i], word, sizeof word);
        assert_null(strchr(word, ' '));
        assert_true(lap_candidate_parse(word, &back));
        assert_true(lap_candidate_same(&back, &space[i]));
    }
    free(space);
    const char *const bad[] = {"",
                               "nothing",
                               "conv_igemm",
                               "conv_igemm:BM=64",
                               "avgpool_g:ROWS=",
                               "avgpool_g:ROWS=4,ROWS=4",
                               "avgpool_g:ROWS=4,",
                               "avgpool_g:ROW=4",
                               "avgpool_g:ROWS=4x",
                               "avgpool_g:ROWS=99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (lap_candidate_parse(bad[i], &back)) fail_msg("accepted: %s", bad[i]);
    lap_tune_signature(&c, signature, sizeof signature);
    assert_string_equal(signature, "conv 64x56x56 64x56x56 3x3/1+1");
    c.op = &net->ops[3]; /* the same, with a residual */
    lap_tune_signature(&c, other, sizeof other);
    assert_string_equal(other, "conv 64x56x56 64x56x56 3x3/1+1 add");
    c.op = &net->ops[0];
    c.fusion = LAP_FUSE_MAXPOOL;
    c.partner = &net->ops[1];
    lap_tune_signature(&c, other, sizeof other);
    assert_string_equal(other, "conv 3x224x224 64x112x112 7x7/2+3 then maxpool 64x112x112 64x56x56 "
                               "3x3/2+1");
    const lap_kernel_row *row = lap_kernel_find("conv_igemm");
    assert_true(lap_tune_source_hash(row, "cu") != 0);
    assert_true(lap_tune_source_hash(row, "cu") != lap_tune_source_hash(row, "cl"));
    assert_true(lap_tune_source_hash(row, "none") == 0);
    const uint64_t buckets[][2] = {{1, 1}, {2, 2}, {3, 2}, {4, 4}, {7, 4}, {8, 8}, {1000, 512}};
    for (size_t i = 0; i < sizeof buckets / sizeof *buckets; i++)
        assert_int_equal(lap_tune_bucket(buckets[i][0]), buckets[i][1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_space, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_neighbours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_texts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
