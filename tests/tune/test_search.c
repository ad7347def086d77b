/* The search on the fake device: this program is its own worker. One kernel, conv_direct_v, is real
 * enough to be verified; what it costs follows from its parameters, and in one mode or another some
 * parameters make it lie, die, hang or fail to build. */
#include "fake_backend.h"
#include "tune/child.h"
#include "tune/search.h"
#include "tune/worker.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define MODE "TUNE_TEST_MODE"

/* ---- the worker ----------------------------------------------------------------------------- */

static bool mode_is(const char *word) {
    const char *mode = getenv(MODE);
    return mode && strcmp(mode, word) == 0;
}

/* What it takes: set by the launch that ran last, whose device time is asked for then. */
static int last_pixels, last_blocks;
/* Somebody looked at a result of BLOCKS=4 in the layer at hand, which has so many weights. */
static int looked_at, looked_weights;

/* The device's time: fewer blocks are slower; BLOCKS=3 is twice as fast as BLOCKS=2. */
static double cost(const char *stem, const lap_raw_launch *launch) {
    (void)launch;
    if (strcmp(stem, "conv_direct_v") != 0) return 1e-3;
    if (mode_is("liar") && last_blocks == 4) return 1e-4; /* nothing is faster than doing nothing */
    /* Fast until it is verified, and 17 times slower than the default ever after. */
    if (mode_is("fickle") && last_blocks == 4) return looked_at ? 17 * 4e-3 : 1e-4;
    return last_blocks == 3 ? 2e-3 : 4e-3 + 1e-5 * last_pixels;
}

static float dot(const lap_define *d, size_t n, const float *in, const float *w, int p, int q,
                 int block) {
    int h = (int)fake_define(d, n, "H", 0), width = (int)fake_define(d, n, "W", 0);
    int c = (int)fake_define(d, n, "C", 0), cs = (int)fake_define(d, n, "CS", 0);
    int r = (int)fake_define(d, n, "R", 0), s = (int)fake_define(d, n, "S", 0);
    int stride = (int)fake_define(d, n, "STRIDE", 1), pad = (int)fake_define(d, n, "PAD", 0);
    float sum = 0;
    for (int y = 0; y < r; y++)
        for (int x = 0; x < s; x++) {
            int row = p * stride - pad + y, column = q * stride - pad + x;
            if (row < 0 || column < 0 || row >= h || column >= width) continue;
            for (int k = 0; k < c; k++)
                sum += in[(row * width + column) * cs + k] * w[((y * s + x) * c + k) * block];
        }
    return sum;
}

/* IN, WEIGHTS [K/block][R][S][C][block], BIAS, RESIDUAL, OUT, N, FLAGS */
static void conv_direct_v(const lap_define *d, size_t n, const lap_raw_launch *launch,
                          void *const *pointers) {
    int p = (int)fake_define(d, n, "P", 1), q = (int)fake_define(d, n, "Q", 1);
    int k = (int)fake_define(d, n, "K", 1), ks = (int)fake_define(d, n, "KS", 4);
    int c = (int)fake_define(d, n, "C", 1), cs = (int)fake_define(d, n, "CS", 4);
    int taps = (int)(fake_define(d, n, "R", 1) * fake_define(d, n, "S", 1));
    int size_in = (int)(fake_define(d, n, "H", 1) * fake_define(d, n, "W", 1)) * cs;
    last_blocks = (int)fake_define(d, n, "BLOCKS", 1);
    last_pixels = (int)fake_define(d, n, "PIXELS", 1);
    int block = (int)fake_define(d, n, "V", 8) * last_blocks;
    if (looked_weights != k * c * taps) looked_at = 0;
    looked_weights = k * c * taps;
    /* The default's blocks are 1 and 2. */
    if (mode_is("abort") && last_blocks == 4) abort();
    if (mode_is("hang") && last_blocks == 4 && k == 64) sleep(3600);
    const float *in = pointers[0], *w = pointers[1], *bias = pointers[2], *residual = pointers[3];
    float *out = pointers[4];
    /* Work is done where somebody looks: checks poison the output first, timed runs do not. */
    if (!isnan(out[0])) return;
    looked_at |= last_blocks == 4;
    for (int i = 0; i < launch->args[5].i32; i++)
        for (int at = 0; at < p * q * ks; at++) {
            int o = at % ks, pixel = at / ks;
            size_t to = (size_t)i * (size_t)(p * q * ks) + (size_t)at;
            float y = 0;
            if (o < k) {
                y = dot(d, n, in + (size_t)i * (size_t)size_in,
                        w + (size_t)(o / block) * (size_t)(taps * c * block) + o % block, pixel / q,
                        pixel % q, block) +
                    bias[o];
                if (launch->args[6].i32 & 2) y += residual[to];
                if (launch->args[6].i32 & 1 && y < 0) y = 0;
            }
            out[to] = y;
        }
    if (mode_is("liar") && last_blocks == 4) out[0] += 1;
}

static void set_device(void) {
    fake_reset();
    lap_device_info *d = &fake.devices[0];
    d->type = LAP_DEVICE_CPU;
    d->simd_width = 8;
    snprintf(d->language, sizeof d->language, "cl");
    lap_registry_add(&fake_ops);
}

static int worker(int argc, char **argv) {
    set_device();
    if (!fake_register("conv_direct_v", "conv_direct_v", conv_direct_v)) return 1;
    fake.cost = cost;
    if (mode_is("closed")) fake.open_status = LAP_E_DEVICE;
    if (mode_is("build")) fake.fail_build_stem = "conv_direct_v";
    return lap_tune_worker(argc, argv);
}

/* ---- the tests ------------------------------------------------------------------------------ */

static lap_tune_job job_for(const char *mode) {
    set_device();
    setenv(MODE, mode, 1);
    return (lap_tune_job){.device = &fake.devices[0],
                          .model = "resnet18",
                          .height = 32,
                          .width = 32,
                          .batch = 3,
                          .seconds = 60,
                          .candidates = 8,
                          .limit_s = 5,
                          .seed = 1};
}

static lap_tuning tune(const lap_tune_job *job) {
    lap_tuning tuning;
    lap_error err = {0};
    if (lap_tune(job, &tuning, &err) != LAP_OK) fail_msg("%s", err.message);
    assert_true(tuning.count > 10);
    assert_int_equal(fake_alive(), 0); /* nothing is opened in this process */
    return tuning;
}

static bool is_direct(const lap_tune_outcome *o) {
    return strcmp(o->standard.row->id, "conv_direct_v") == 0;
}

static int blocks_of(const lap_candidate *c) {
    return strcmp(c->row->id, "conv_direct_v") == 0 ? c->params.value[2] : 0;
}

static void test_finds_the_fastest(void **state) {
    (void)state;
    lap_tune_job job = job_for("");
    job.candidates = 16;
    lap_tuning tuning = tune(&job);
    int found = 0, layers = 0;
    size_t steps = 0;
    for (size_t i = 0; i < tuning.count; i++) {
        const lap_tune_outcome *o = &tuning.outcomes[i];
        steps += o->steps;
        assert_int_equal(o->c.n, 2); /* the bucket of 3 */
        assert_true(o->best_s <= o->standard_s);
        assert_true(o->tried <= 16);
        if (!is_direct(o)) continue;
        layers++;
        assert_true(o->space > o->tried && o->tried > 1);
        assert_int_equal(o->wrong, 0);
        if (blocks_of(&o->best) != 3) continue;
        found++;
        assert_true(o->standard_s / o->best_s > 1.9 && o->standard_s / o->best_s < 2.2);
    }
    assert_true(steps >= 20);
    if (found < layers / 2) fail_msg("%d of %d layers got the fast kernel", found, layers);
    lap_tuning_free(&tuning);
}

static void test_same_seed_same_result(void **state) {
    (void)state;
    lap_tune_job job = job_for("");
    job.candidates = 4;
    lap_tuning one = tune(&job), two = tune(&job);
    assert_int_equal(one.count, two.count);
    for (size_t i = 0; i < one.count; i++) {
        assert_int_equal(one.outcomes[i].tried, two.outcomes[i].tried);
        assert_true(blocks_of(&one.outcomes[i].best) == blocks_of(&two.outcomes[i].best));
    }
    lap_tuning_free(&one);
    lap_tuning_free(&two);
}

/* The fastest is wrong: it is found out, and a right one wins. */
static void test_liar(void **state) {
    (void)state;
    lap_tune_job job = job_for("liar");
    lap_tuning tuning = tune(&job);
    size_t wrong = 0;
    for (size_t i = 0; i < tuning.count; i++) {
        const lap_tune_outcome *o = &tuning.outcomes[i];
        wrong += o->wrong;
        assert_int_not_equal(blocks_of(&o->best), 4);
        if (o->wrong) assert_non_null(strstr(o->note, "BLOCKS=4"));
    }
    assert_true(wrong > 0);
    lap_tuning_free(&tuning);
}

/* The fastest while it is tried, and right; once more beside the default it is far slower: the last
 * word is that one's, and nothing slower than the default is ever chosen. */
static void test_fickle(void **state) {
    (void)state;
    lap_tune_job job = job_for("fickle");
    lap_tuning tuning = tune(&job);
    size_t kept = 0;
    for (size_t i = 0; i < tuning.count; i++) {
        const lap_tune_outcome *o = &tuning.outcomes[i];
        assert_int_not_equal(blocks_of(&o->best), 4);
        assert_true(o->best_s <= o->standard_s);
        kept += is_direct(o) && lap_candidate_same(&o->best, &o->standard);
    }
    assert_true(kept > 0);
    lap_tuning_free(&tuning);
}

/* A candidate that takes its process down costs itself only. */
static void test_death(void **state) {
    (void)state;
    lap_tune_job job = job_for("abort");
    lap_tuning tuning = tune(&job);
    size_t failed = 0, won = 0;
    for (size_t i = 0; i < tuning.count; i++) {
        const lap_tune_outcome *o = &tuning.outcomes[i];
        failed += o->failed;
        won += blocks_of(&o->best) == 3;
        assert_int_not_equal(blocks_of(&o->best), 4);
        assert_true(o->standard_s > 0);
        if (strncmp(o->note, "conv_direct_v:", 14) == 0 && strstr(o->note, "BLOCKS=4"))
            assert_non_null(strstr(o->note, "signal 6"));
    }
    assert_true(failed > 0);
    assert_true(won > 0);
    lap_tuning_free(&tuning);
}

static void test_hang(void **state) {
    (void)state;
    lap_tune_job job = job_for("hang");
    job.limit_s = 1;
    job.candidates = 12;
    lap_tuning tuning = tune(&job);
    size_t hung = 0;
    for (size_t i = 0; i < tuning.count; i++) {
        const lap_tune_outcome *o = &tuning.outcomes[i];
        hung += strstr(o->note, "no sign of life") != NULL;
        if (o->c.op->out.c == 64) assert_int_not_equal(blocks_of(&o->best), 4);
    }
    assert_true(hung > 0);
    lap_tuning_free(&tuning);
}

/* What does not build is passed over, the default included: then the naive kernel is. */
static void test_build_failure(void **state) {
    (void)state;
    lap_tune_job job = job_for("build");
    job.candidates = 3;
    lap_tuning tuning = tune(&job);
    for (size_t i = 0; i < tuning.count; i++) {
        const lap_tune_outcome *o = &tuning.outcomes[i];
        assert_true(o->best.row->naive);
        if (o->c.op->kind == LAP_OP_CONV) assert_true(o->failed > 0);
    }
    lap_tuning_free(&tuning);
}

static bool stop_at_once(void *context) {
    (void)context;
    return true;
}

static void test_interrupted(void **state) {
    (void)state;
    lap_tune_job job = job_for("");
    job.interrupted = stop_at_once;
    lap_tuning tuning;
    lap_error err = {0};
    assert_int_equal(lap_tune(&job, &tuning, &err), LAP_E_INTERRUPTED);
    lap_tuning_free(&tuning);
    job.interrupted = NULL;
    job.model = "nothing";
    assert_int_equal(lap_tune(&job, &tuning, &err), LAP_E_CONFIG);
    lap_tuning_free(&tuning);
}

/* The device cannot be opened: one error, that says so. */
static void test_closed(void **state) {
    (void)state;
    lap_tune_job job = job_for("closed");
    lap_tuning tuning;
    lap_error err = {0};
    assert_int_equal(lap_tune(&job, &tuning, &err), LAP_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, job.device->selector));
    assert_int_equal(tuning.count, 0);
    lap_tuning_free(&tuning);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    if (argc > 1 && strcmp(argv[1], LAP_TUNE_WORKER) == 0) return worker(argc - 1, argv + 1);
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_the_fastest),
        cmocka_unit_test(test_same_seed_same_result),
        cmocka_unit_test(test_liar),
        cmocka_unit_test(test_fickle),
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_build_failure),
        cmocka_unit_test(test_interrupted),
        cmocka_unit_test(test_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
