/* What the intervals are worth, on recorded samples: a slowdown of 1 % is found by intervals of the
 * median that do not overlap in at least 95 of 100 comparisons, with at most 5 false alarms in 100
 * comparisons of a thing with itself. Sets are drawn from the recording in runs of neighbours, so
 * that they have its autocorrelation; how many samples that takes follows from the interval of a
 * first set and is printed. Every file data/samples_*.txt takes part: lines "# ...", then a span
 * each. */
#include "base/rng.h"
#include "base/text.h"
#include "measure/stats.h"
#include "near.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

enum { RUN = 20, COMPARISONS = 100, MOST = 100000 };
static const double SLOWDOWN = 1.01;
/* Two medians 1 % apart, each within +-0.28 % in 95 of 100 cases: their difference has a standard
 * error of 0.28 / 1.96 * sqrt(2) = 0.2 %, and must exceed 0.56 %: 2.2 standard errors below 1 %,
 * which is 98 of 100. */
static const double HALF_WIDTH = 0.0028;

static double *recorded, *set_a, *set_b;
static size_t recorded_n;

static void read_samples(const char *path) {
    char line[256];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    recorded_n = 0;
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] == '#' || !line[0]) continue;
        assert_true(recorded_n < MOST);
        if (!lap_parse_double(line, &recorded[recorded_n++])) fail_msg("%s: '%s'", path, line);
    }
    fclose(f);
    assert_true(recorded_n >= 100);
}

/* n samples: runs of neighbours from random places, the recording being a ring. */
static void draw(double *out, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) {
        double place = lap_rng_uniform(seed, 11, i / RUN);
        size_t start = (size_t)(place * (double)recorded_n);
        out[i] = recorded[(start + i % RUN) % recorded_n];
    }
}

static lap_stats stats_of(const double *x, size_t n) {
    lap_stats s;
    assert_int_equal(lap_stats_compute(x, n, &s, NULL), LAP_OK);
    return s;
}

static bool apart(const lap_stats *a, const lap_stats *b) {
    assert_true(a->p50_ci.has && b->p50_ci.has);
    return a->p50_ci.high < b->p50_ci.low || b->p50_ci.high < a->p50_ci.low;
}

/* Comparisons with non-overlapping intervals, B being so much slower than A. */
static int found(size_t n, double slowdown, uint64_t seed) {
    int count = 0;
    for (uint64_t k = 0; k < COMPARISONS; k++) {
        draw(set_a, n, seed + 2 * k);
        draw(set_b, n, seed + 2 * k + 1);
        for (size_t i = 0; i < n; i++)
            set_b[i] *= slowdown;
        lap_stats a = stats_of(set_a, n), b = stats_of(set_b, n);
        count += apart(&a, &b);
    }
    return count;
}

/* False alarms of intervals that take the samples for independent. */
static int plain_false_alarms(size_t n, uint64_t seed) {
    int count = 0;
    size_t rank = lap_median_rank_95(n);
    for (uint64_t k = 0; k < COMPARISONS; k++) {
        draw(set_a, n, seed + 2 * k);
        draw(set_b, n, seed + 2 * k + 1);
        lap_sort(set_a, n);
        lap_sort(set_b, n);
        count += set_a[n - rank] < set_b[rank - 1] || set_b[n - rank] < set_a[rank - 1];
    }
    return count;
}

enum { LEAST = 50 };

/* From the interval of a first set, as a user would find it. */
static size_t samples_needed(void) {
    enum { FIRST = 4000 };
    draw(set_a, FIRST, 1);
    lap_stats s = stats_of(set_a, FIRST);
    double half = (s.p50_ci.high - s.p50_ci.low) / 2 / s.p50.value;
    double n = FIRST * (half / HALF_WIDTH) * (half / HALF_WIDTH);
    return n < LEAST ? LEAST : n > MOST ? MOST : (size_t)n;
}

static void planted_slowdown(void **state) {
    (void)state;
    glob_t files;
    int limited = 0;
    assert_int_equal(glob(LAP_TEST_DATA "/samples_*.txt", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        read_samples(files.gl_pathv[i]);
        size_t n = samples_needed();
        int true_ones = found(n, SLOWDOWN, 1000), false_ones = found(n, 1, 5000);
        int too_few = found(n / 20 + 20, SLOWDOWN, 9000);
        print_message("%s: n = %zu: found in %d of 100, false alarms %d of 100 (not widened: %d); "
                      "with n = %zu found in %d\n",
                      strrchr(files.gl_pathv[i], '/') + 1, n, true_ones, false_ones,
                      plain_false_alarms(n, 5000), n / 20 + 20, too_few);
        assert_true(true_ones >= 95);
        assert_true(false_ones <= 5);
        /* The number of samples is what does it, where it is not the least number already. */
        if (n > LEAST) {
            assert_true(too_few < 50);
            limited++;
        }
    }
    assert_true(limited > 0);
    globfree(&files);
}

/* A thing against itself while the machine slows down by 5 %: one after the other, the second half
 * is blamed; in blocks that take turns, both have it alike. */
static void turns_share_the_drift(void **state) {
    (void)state;
    enum { N = 2000, BLOCK = 20 };
    int sequential = 0, interleaved = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        for (size_t i = 0; i < 2 * N; i++) {
            double x = (1 + 0.05 * (double)i / (2 * N)) * (1 + 0.01 * lap_rng_normal(seed, 4, i));
            (i < N ? set_a : set_b)[i % N] = x;
        }
        lap_stats a = stats_of(set_a, N), b = stats_of(set_b, N);
        sequential += apart(&a, &b);
        for (size_t i = 0, na = 0, nb = 0; i < 2 * N; i++) {
            double x = (1 + 0.05 * (double)i / (2 * N)) * (1 + 0.01 * lap_rng_normal(seed, 4, i));
            size_t round = i / (2 * BLOCK);
            bool second = i / BLOCK % 2, swapped = lap_rng_uniform(seed, 5, round) < 0.5;
            if (second == swapped)
                set_a[na++] = x;
            else
                set_b[nb++] = x;
        }
        a = stats_of(set_a, N);
        b = stats_of(set_b, N);
        interleaved += apart(&a, &b);
    }
    print_message("false alarms under drift: %d of 100 one after the other, %d in turns\n",
                  sequential, interleaved);
    assert_int_equal(sequential, 100);
    assert_true(interleaved <= 5);
}

int main(void) {
    recorded = calloc(MOST, sizeof *recorded);
    set_a = calloc(MOST, sizeof *set_a);
    set_b = calloc(MOST, sizeof *set_b);
    if (!recorded || !set_a || !set_b) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_slowdown),
        cmocka_unit_test(turns_share_the_drift),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(recorded);
    free(set_a);
    free(set_b);
    return failed;
}
