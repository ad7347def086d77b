/* Sums over devices at the same time, against numbers worked out by hand. */
#include "measure/sets.h"

#include "near.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static lap_set_member of(double together_1, double together_2, double alone_1, double alone_2) {
    lap_set_member m = {.ok = true, .rounds = {.n = 2, .batch = 4, .batches = 5}};
    m.rounds.together[0] = together_1;
    m.rounds.together[1] = together_2;
    m.rounds.alone[0] = alone_1;
    m.rounds.alone[1] = alone_2;
    return m;
}

static void close_to(lap_optional seen, double wanted) {
    if (!seen.has || fabs(seen.value - wanted) > 1e-9 * fabs(wanted) + 1e-12)
        fail_msg("%s%.15g, expected %.15g", seen.has ? "" : "absent ", seen.value, wanted);
}

static void sums_and_intervals(void **state) {
    (void)state;
    lap_set_member members[] = {of(90, 110, 100, 125), of(10, 10, 20, 25)};
    lap_set set = {.members = members, .count = 2, .batch = 1};
    lap_set_derive(&set);
    assert_int_equal(set.rated, 2);
    assert_int_equal(set.rounds, 2);
    /* Sums of the rounds are 100 and 120: mean 110, deviation sqrt(200), t for one degree of
     * freedom 12.7062047. */
    close_to(set.rate.value, 110);
    assert_true(fabs(set.rate.half.value - 12.7062047 * sqrt(200.0 / 2)) < 1e-4);
    close_to(set.alone_rate.value, 135);
    /* 100 / 120 and 120 / 150. */
    close_to(set.scaling.value, (100.0 / 120 + 120.0 / 150) / 2);
    close_to(members[0].scaling.value, (90.0 / 100 + 110.0 / 125) / 2);
    assert_int_equal(set.slowest, 1);
    close_to(set.slowest_rate, 10);
    close_to(set.fastest_rate, 100);
    close_to(set.spread, sqrt(45.0 * 45 * 2) / 55);
    assert_false(set.skew_s.has);
    assert_int_equal(set.timed, 0);
    assert_false(set.fps.value.has);
}

/* Three rounds of two members, the fast one last. */
static void three_rounds(void **state) {
    (void)state;
    lap_set_member members[] = {of(10, 12, 20, 20), of(90, 120, 100, 125)};
    for (int i = 0; i < 2; i++)
        members[i].rounds.n = 3;
    members[0].rounds.together[2] = 14;
    members[0].rounds.alone[2] = 20;
    members[1].rounds.together[2] = 96;
    members[1].rounds.alone[2] = 100;
    lap_set set = {.members = members, .count = 2, .batch = 1};
    lap_set_derive(&set);
    /* 100, 132, 110: mean 114, squares 196 + 324 + 16; t for two degrees of freedom. */
    close_to(set.rate.value, 114);
    assert_true(fabs(set.rate.half.value - 4.30265273 * sqrt(536.0 / 2 / 3)) < 1e-6);
    close_to(members[0].rate.value, 12);
    assert_true(fabs(members[0].rate.half.value - 4.30265273 * sqrt(8.0 / 2 / 3)) < 1e-6);
    assert_int_equal(set.slowest, 0);
    close_to(set.slowest_rate, 12);
    close_to(set.fastest_rate, 102);
    close_to(set.spread, sqrt(45.0 * 45 * 2) / 57);
}

static void same_case(void **state) {
    (void)state;
    const lap_set a = {
        .network = "resnet18", .precision = "fp16", .height = 3, .width = 4, .batch = 5};
    lap_set b = a;
    assert_true(lap_set_same(&a, &b));
    b.height = 4;
    assert_false(lap_set_same(&a, &b));
    b = a;
    b.width = 3;
    assert_false(lap_set_same(&a, &b));
    b = a;
    b.batch = 6;
    assert_false(lap_set_same(&a, &b));
    b = a;
    b.precision[2] = '3';
    assert_false(lap_set_same(&a, &b));
    b = a;
    b.network[6] = '5';
    assert_false(lap_set_same(&a, &b));
}

static void latencies(void **state) {
    (void)state;
    lap_set_member members[2] = {{.ok = true,
                                  .mean_s = lap_some(0.01),
                                  .mean_error = lap_some(0.01),
                                  .alone_mean_s = lap_some(0.008),
                                  .alone_mean_error = lap_some(0.02),
                                  .started_s = 5},
                                 {.ok = true,
                                  .mean_s = lap_some(0.04),
                                  .mean_error = lap_some(0.01),
                                  .alone_mean_s = lap_some(0.04),
                                  .alone_mean_error = lap_some(0.02),
                                  .started_s = 5.25}};
    lap_set set = {.members = members, .count = 2, .batch = 2};
    lap_set_derive(&set);
    assert_int_equal(set.timed, 2);
    close_to(set.fps.value, 2 / 0.01 + 2 / 0.04);
    close_to(set.fps.half, 1.959963984540054 * hypot(200 * 0.01, 50 * 0.01));
    close_to(set.alone_fps.value, 2 / 0.008 + 2 / 0.04);
    close_to(set.fps_scaling.value, 250.0 / 300);
    close_to(members[0].slowdown.value, 1.25);
    close_to(members[0].slowdown.half, 1.25 * 1.959963984540054 * hypot(0.01, 0.02));
    close_to(set.skew_s, 0.25);
    assert_int_equal(set.slowest, 1);
    /* Few samples know their own spread badly: Student's t for 2 and 4 degrees of freedom. */
    members[0].mean_n = 3;
    members[0].alone_mean_n = 5;
    lap_set_derive(&set);
    assert_true(fabs(members[0].fps.half.value / (4.30265273 * 200 * 0.01) - 1) < 1e-7);
    assert_true(fabs(members[0].alone_fps.half.value / (2.77644511 * 250 * 0.02) - 1) < 1e-7);
    close_to(members[1].fps.half, 1.959963984540054 * 50 * 0.01);
    members[1].alone_mean_s = lap_none(); /* a sum of one is no sum of two */
    lap_set_derive(&set);
    assert_false(set.alone_fps.value.has || set.fps_scaling.value.has);
    set.fleet = true; /* clocks of other hosts have other origins */
    lap_set_derive(&set);
    assert_false(set.skew_s.has);
}

static void failures_are_left_out(void **state) {
    (void)state;
    lap_set_member members[] = {of(90, 110, 100, 125), of(10, 10, 20, 25), of(1, 1, 1, 1)};
    members[1].ok = false;
    members[2].rounds.n = 1; /* interrupted in the second round */
    lap_set set = {.members = members, .count = 3, .batch = 1};
    lap_set_derive(&set);
    assert_int_equal(set.rated, 2);
    assert_int_equal(set.rounds, 1);
    close_to(set.rate.value, 91);
    assert_false(set.rate.half.has); /* one round has no spread */
    assert_false(members[1].rate.value.has);
    assert_true(members[1].alone_rate.value.has);
    assert_int_equal(set.slowest, 2);
    members[0].ok = members[2].ok = false;
    lap_set_derive(&set);
    assert_int_equal(set.rated, 0);
    assert_false(set.rate.value.has || set.scaling.value.has || set.spread.has);
    assert_int_equal(set.slowest, LAP_SET_NOBODY);
    members[0] = of(90, 90, 0, 0); /* no time alone: no ratio, and no infinity */
    lap_set_derive(&set);
    assert_true(set.rate.value.has);
    assert_false(set.scaling.value.has || members[0].scaling.value.has);
}

static void sets_from_rows(void **state) {
    (void)state;
    lap_row rows[4];
    lap_set *sets;
    size_t count;
    for (int i = 0; i < 4; i++)
        lap_row_init(&rows[i]);
    assert_int_equal(lap_sets_of_rows(rows, 4, &sets, &count, NULL), LAP_OK);
    assert_true(count == 0 && sets == NULL);
    for (int i = 2; i < 4; i++) {
        rows[i].concurrent =
            (lap_concurrent){.others = 1, .set = 1, .alone_row = (size_t)i - 2, .rounds = {.n = 1}};
        rows[i].concurrent.rounds.together[0] = 10 * i;
        rows[i].concurrent.rounds.alone[0] = 20 * i;
        snprintf(rows[i].network, sizeof rows[i].network, "net");
        rows[i].batch = 8;
    }
    lap_row_fail(&rows[3], LAP_E_OOM, NULL);
    assert_int_equal(lap_sets_of_rows(rows, 4, &sets, &count, NULL), LAP_OK);
    assert_int_equal(count, 1);
    assert_int_equal(sets[0].count, 2);
    assert_string_equal(sets[0].network, "net");
    assert_int_equal(sets[0].batch, 8);
    assert_int_equal(sets[0].rated, 1);
    close_to(sets[0].rate.value, 20);
    close_to(sets[0].scaling.value, 0.5);
    assert_int_equal(sets[0].members[1].row, 3);
    assert_int_equal(sets[0].members[1].alone, 1);
    assert_true(sets[0].members[1].reason[0]);
    lap_sets_free(sets, count);
    lap_row_free(&rows[3]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_intervals),    cmocka_unit_test(latencies),
        cmocka_unit_test(three_rounds),          cmocka_unit_test(same_case),
        cmocka_unit_test(failures_are_left_out), cmocka_unit_test(sets_from_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
