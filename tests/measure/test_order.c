/* Intervals, trend, groups and outliers: known values, coverage in simulation, and small n. */
#include "base/rng.h"
#include "measure/stats.h"
#include "near.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 2000 };

static lap_stats stats_of(const double *x, size_t n) {
    lap_stats s;
    assert_int_equal(lap_stats_compute(x, n, &s, NULL), LAP_OK);
    return s;
}

static void normals(double *x, size_t n, double mean, double std, uint64_t seed) {
    for (size_t i = 0; i < n; i++)
        x[i] = mean + std * lap_rng_normal(seed, 7, i);
}

static void close_to(double got, double want, double by) {
    if (!(fabs(got - want) <= by)) fail_msg("got %.9g, want %.9g", got, want);
}

/* Textbook values of the 97.5 % point. */
static void student_is_student(void **state) {
    (void)state;
    close_to(lap_student_95(1), 12.7062, 1e-4);
    close_to(lap_student_95(2), 4.30265, 1e-5);
    close_to(lap_student_95(9), 2.26216, 1e-5);
    close_to(lap_student_95(30), 2.04227, 1e-5);
    close_to(lap_student_95(200), 1.97190, 1e-5);
    close_to(lap_student_95(201), 1.97184, 1e-5); /* the expansion meets the series */
    close_to(lap_student_95(1000000), 1.95997, 1e-5);
}

/* Binomial tables: the rank r with P(B < r) <= 2.5 %. */
static void median_ranks(void **state) {
    (void)state;
    const size_t want[][2] = {{1, 0},  {2, 0},  {5, 0},  {6, 1},   {8, 1},    {9, 2},     {10, 2},
                              {15, 4}, {20, 6}, {25, 8}, {50, 18}, {100, 40}, {1000, 469}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (lap_median_rank_95(want[i][0]) != want[i][1])
            fail_msg("n = %zu: %zu", want[i][0], lap_median_rank_95(want[i][0]));
    assert_in_range(lap_median_rank_95(1001), 468, 470);
    assert_in_range(lap_median_rank_95(1000000), 499019, 499021);
}

static void small_n_behaves(void **state) {
    (void)state;
    lap_stats s = stats_of((double[]){2}, 1);
    assert_some(s.mad, 0);
    assert_false(s.mean_ci.has || s.p50_ci.has || s.drift.has || s.modes.has || s.has_outliers);
    assert_none(s.autocorrelation);
    assert_none(lap_relative_error(&s));
    s = stats_of((double[]){2, 4}, 2);
    assert_some(s.mad, 1);
    assert_true(s.mean_ci.has); /* 3 +- 12.7 * sqrt(2) / sqrt(2) */
    close_to(s.mean_ci.low, 3 - 12.7062, 1e-3);
    assert_false(s.p50_ci.has);
    assert_some(lap_relative_error(&s), 1.0 / 3);
    s = stats_of((double[]){1, 2, 3, 4, 5, 100}, 6);
    assert_true(s.p50_ci.has && s.p50_ci.low == 1 && s.p50_ci.high == 100);
    assert_some(s.mad, 1.5);
    assert_true(s.has_outliers && s.outliers_high == 1 && s.outliers_low == 0);
    s = stats_of((double[]){5, 5, 5, 5, 5, 9}, 6); /* no spread to measure outliers by */
    assert_some(s.mad, 0);
    assert_false(s.has_outliers);
    assert_true(s.max.value == 9); /* and nothing is dropped */
}

/* Both intervals hold the truth in 95 of 100 cases, give or take the luck of 400 draws. */
static void intervals_cover(void **state) {
    (void)state;
    static double x[MOST];
    const size_t sizes[] = {2, 6, 10, 50, 300};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        int mean = 0, median = 0;
        for (uint64_t seed = 0; seed < 400; seed++) {
            normals(x, sizes[k], 10, 1, seed * 1000 + k);
            lap_stats s = stats_of(x, sizes[k]);
            mean += s.mean_ci.low <= 10 && s.mean_ci.high >= 10;
            median += !s.p50_ci.has || (s.p50_ci.low <= 10 && s.p50_ci.high >= 10);
        }
        if (mean < 368 || mean > 396) fail_msg("n = %zu: mean in %d of 400", sizes[k], mean);
        if (median < 368) fail_msg("n = %zu: median in %d of 400", sizes[k], median);
    }
}

/* x[i] = 0.6 x[i-1] + noise: the plain interval holds the truth far too seldom. */
static void neighbours_widen_intervals(void **state) {
    (void)state;
    static double x[MOST];
    int held = 0, plain = 0;
    enum { N = 300 };
    for (uint64_t seed = 0; seed < 200; seed++) {
        double last = 0;
        for (size_t i = 0; i < N; i++)
            x[i] = 10 + (last = 0.6 * last + lap_rng_normal(seed, 3, i));
        lap_stats s = stats_of(x, N);
        assert_true(s.widening > 1.2 && s.widening < 3.5); /* 2 in theory */
        held += s.mean_ci.low <= 10 && s.mean_ci.high >= 10;
        double half = (s.mean_ci.high - s.mean_ci.low) / 2 / s.widening;
        plain += fabs(s.mean.value - 10) <= half;
    }
    if (held < 180) fail_msg("the widened interval held in %d of 200", held);
    if (plain > 160) fail_msg("the plain one held in %d of 200: nothing to widen", plain);
}

static void correlation_with_time(void **state) {
    (void)state;
    double rho, x[] = {1, 2, 3, 4, 5};
    assert_true(lap_rank_correlation(x, 5, &rho));
    close_to(rho, 1, 1e-12);
    double y[] = {5, 4, 3, 2, 1};
    assert_true(lap_rank_correlation(y, 5, &rho));
    close_to(rho, -1, 1e-12);
    double ties[] = {1, 1, 2, 2}; /* ranks 1.5 1.5 3.5 3.5 */
    assert_true(lap_rank_correlation(ties, 4, &rho));
    close_to(rho, 0.894427191, 1e-9);
    double flat[] = {3, 3, 3};
    assert_true(lap_rank_correlation(flat, 3, &rho));
    assert_true(rho == 0);
    close_to(lap_spearman_p(0.5, 20), 0.02475, 1e-4); /* t = 2.449, 18 degrees */
    assert_true(lap_spearman_p(1, 20) == 0 && lap_spearman_p(0, 20) > 0.999);
    assert_true(lap_spearman_p(0.9, 2) == 1);
}

static void drift_is_found(void **state) {
    (void)state;
    static double x[MOST];
    int found = 0, false_alarms = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        normals(x, 100, 1, 0.01, seed);
        lap_stats s = stats_of(x, 100);
        false_alarms += s.drift.p < 0.001;
        for (size_t i = 0; i < 100; i++)
            x[i] *= 1 + 0.05 * (double)i / 99;
        s = stats_of(x, 100);
        found += s.drift.p < 0.001 && s.drift.rho > 0.5;
        close_to(s.drift.relative, 0.033, 0.012);
    }
    assert_int_equal(found, 200);
    assert_true(false_alarms <= 2);
}

static void groups_are_found(void **state) {
    (void)state;
    static double x[MOST];
    double most_normal = 0, least_two = 1, most_skewed = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        normals(x, 100, 10, 0.1, seed);
        lap_stats s = stats_of(x, 100);
        if (s.modes.share > most_normal) most_normal = s.modes.share;
        for (size_t i = 0; i < 100; i++)
            x[i] = 10 + exp(lap_rng_normal(seed, 9, i)); /* a long right tail */
        s = stats_of(x, 100);
        if (s.modes.share > most_skewed) most_skewed = s.modes.share;
        normals(x, 100, 10, 0.1, seed);
        for (size_t i = 0; i < 30; i++)
            x[i * 3] += 1;
        x[50] = 500; /* one far outlier hides nothing */
        s = stats_of(x, 100);
        if (s.modes.share < least_two) least_two = s.modes.share;
        close_to(s.modes.low, 10, 0.1);
        close_to(s.modes.high, 11, 0.1);
        close_to(s.modes.upper_part, 0.30, 0.02);
    }
    print_message("share explained: normal at most %.2f, skewed at most %.2f, two groups at least "
                  "%.2f\n",
                  most_normal, most_skewed, least_two);
    assert_true(most_normal < 0.85 && most_skewed < 0.85 && least_two > 0.9);
    normals(x, 29, 10, 0.1, 1);
    assert_false(stats_of(x, 29).modes.has);
    for (size_t i = 0; i < 100; i++)
        x[i] = 3;
    assert_true(stats_of(x, 100).modes.share == 0);
}

static void outliers_are_counted_not_dropped(void **state) {
    (void)state;
    static double x[MOST];
    normals(x, 100, 10, 0.1, 5);
    x[3] = 20;
    x[77] = 30;
    x[5] = 1;
    lap_stats s = stats_of(x, 100);
    assert_int_equal(s.outliers_high, 2);
    assert_int_equal(s.outliers_low, 1);
    assert_int_equal(s.n, 100);
    assert_true(s.max.value == 30 && s.min.value == 1);
}

/* ---- by definition -------------------------------------------------------------------------- */

/* The definitions of docs/METHOD.md, written down once more without regard to speed. */
static double mean_of(const double *x, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] / (double)n;
    return sum;
}

static double correlation_of(const double *x, size_t n, size_t lag) {
    double mean = mean_of(x, n), products = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    for (size_t i = 0; i + lag < n; i++)
        products += (x[i] - mean) * (x[i + lag] - mean);
    return products / squares;
}

static double widening_of(const double *x, size_t n) {
    double time = 1;
    for (size_t lag = 1; lag + 1 < n / 4 && lag < 400; lag += 2) {
        double pair = correlation_of(x, n, lag) + correlation_of(x, n, lag + 1);
        if (!(pair > 2 * sqrt(2.0 / (double)n))) break;
        time += 2 * pair;
    }
    return sqrt(time);
}

static double median_of(const double *x, size_t n) {
    double lower = 0, upper = 0;
    for (size_t i = 0; i < n; i++) {
        size_t below = 0;
        for (size_t j = 0; j < n; j++)
            below += x[j] < x[i] || (x[j] == x[i] && j < i);
        if (below == (n - 1) / 2) lower = x[i];
        if (below == n / 2) upper = x[i];
    }
    return (lower + upper) / 2;
}

static double ordered(const double *x, size_t n, size_t rank) { /* from 1 */
    for (size_t i = 0; i < n; i++) {
        size_t below = 0;
        for (size_t j = 0; j < n; j++)
            below += x[j] < x[i] || (x[j] == x[i] && j < i);
        if (below + 1 == rank) return x[i];
    }
    fail();
    return 0;
}

static void check_by_definition(const double *x, size_t n) {
    static double sides[MOST], deviations[MOST];
    lap_stats s = stats_of(x, n);
    double mean = mean_of(x, n), median = median_of(x, n), squares = 0;
    for (size_t i = 0; i < n; i++) {
        squares += (x[i] - mean) * (x[i] - mean);
        sides[i] = x[i] > median ? 1 : x[i] < median ? -1 : 0;
        deviations[i] = fabs(x[i] - median);
    }
    double std = sqrt(squares / (double)(n - 1)), mad = median_of(deviations, n);
    size_t low = 0, high = 0;
    assert_int_equal(s.has_outliers, mad > 0);
    for (size_t i = 0; i < n && mad > 0; i++) {
        low += x[i] < median - 3.5 / 0.6745 * mad;
        high += x[i] > median + 3.5 / 0.6745 * mad;
    }
    close_to(s.mean.value, mean, 1e-9);
    close_to(s.std.value, std, 1e-9);
    close_to(s.p50.value, median, 1e-12);
    close_to(s.mad.value, mad, 1e-12);
    assert_int_equal(s.outliers_low, low);
    assert_int_equal(s.outliers_high, high);
    close_to(s.autocorrelation.value, correlation_of(x, n, 1), 1e-9);
    close_to(s.widening, widening_of(x, n), 1e-9);
    close_to(s.p50_widening, widening_of(sides, n), 1e-9);
    double half = lap_student_95(n - 1) * std / sqrt((double)n) * s.widening;
    close_to(s.mean_ci.low, mean - half, 1e-9);
    close_to(s.mean_ci.high, mean + half, 1e-9);
    double middle = (double)(n + 1) / 2;
    double rank = floor(middle - (middle - (double)lap_median_rank_95(n)) * s.p50_widening);
    if (rank < 1) rank = 1;
    assert_true(s.p50_ci.low == ordered(x, n, (size_t)rank));
    assert_true(s.p50_ci.high == ordered(x, n, n + 1 - (size_t)rank));
    size_t third = n / 3;
    double change = median_of(x + n - third, third) / median_of(x, third) - 1;
    close_to(s.drift.relative, change, 1e-12);
    close_to(lap_relative_error(&s).value, std / sqrt((double)n) * s.widening / mean, 1e-9);
}

static void by_definition(void **state) {
    (void)state;
    static double x[MOST];
    const size_t sizes[] = {10, 11, 12, 13, 29, 100, 301, 1001};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int kind = 0; kind < 4; kind++) {
            double last = 0;
            size_t n = sizes[k];
            for (size_t i = 0; i < n; i++) {
                double e = lap_rng_normal(k, 11, i);
                last = 0.9 * last + e;
                x[i] = 10 + (kind == 0 ? e : 0.3 * last);
                /* Runs on one side of the median, by amounts that have nothing in common. */
                if (kind == 2) x[i] = 10 + (i / 15 % 2 ? 1 : -1) * fabs(e);
                if (kind == 3) x[i] = floor(x[i] * 2) / 2 + (i % 17 == 0 ? 4 : 0); /* ties */
            }
            check_by_definition(x, n);
        }
}

/* Independent samples have about none, those that follow the one before theirs, alternating ones a
 * negative one, which widens nothing. */
static void autocorrelation_has_a_sign(void **state) {
    (void)state;
    static double x[MOST];
    double sum[3] = {0};
    for (uint64_t seed = 0; seed < 20; seed++)
        for (int kind = 0; kind < 3; kind++) {
            double last = 0, follow = kind == 0 ? 0 : kind == 1 ? 0.7 : -0.7;
            for (size_t i = 0; i < 500; i++)
                x[i] = 5 + (last = follow * last + lap_rng_normal(seed, 13, i));
            lap_stats s = stats_of(x, 500);
            sum[kind] += s.autocorrelation.value / 20;
            if (kind == 2) assert_true(s.widening == 1);
        }
    close_to(sum[0], 0, 0.03);
    close_to(sum[1], 0.7, 0.03);
    close_to(sum[2], -0.7, 0.03);
}

/* By integration of Student's density, on both sides of where the series gives way; a plain normal
 * deviate is a quarter too small there. */
static void spearman_p_is_student(void **state) {
    (void)state;
    const struct {
        double rho;
        size_t n;
        double p;
    } known[] = {{0.2, 100, 0.04603629},  {0.25, 203, 3.216028e-4}, {0.23, 210, 7.843505e-4},
                 {0.2, 300, 4.922941e-4}, {0.1, 1001, 1.535714e-3}, {0.05, 1000, 0.1140726},
                 {0.5, 400, 1.08830e-26}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        double p = lap_spearman_p(known[i].rho, known[i].n), by = i == 6 ? 5e-3 : 1e-4;
        if (!(fabs(p / known[i].p - 1) < by)) fail_msg("%zu: %.9g", i, p);
        assert_true(lap_spearman_p(-known[i].rho, known[i].n) == p);
    }
    assert_true(lap_spearman_p(1, 1000) == 0 && lap_spearman_p(0, 1000) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(student_is_student),
        cmocka_unit_test(median_ranks),
        cmocka_unit_test(small_n_behaves),
        cmocka_unit_test(intervals_cover),
        cmocka_unit_test(neighbours_widen_intervals),
        cmocka_unit_test(correlation_with_time),
        cmocka_unit_test(drift_is_found),
        cmocka_unit_test(groups_are_found),
        cmocka_unit_test(outliers_are_counted_not_dropped),
        cmocka_unit_test(by_definition),
        cmocka_unit_test(autocorrelation_has_a_sign),
        cmocka_unit_test(spearman_p_is_student),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
