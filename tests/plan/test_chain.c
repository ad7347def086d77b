/* Chains of steps: which steps become one launch, what the launch is told, and what happens when
 * its groups cannot wait for each other. The kernel is a C function here that reads the table, the
 * offsets and the packed weights as the real ones do. */
#include "fixture.h"

#include "base/half.h"
#include "check/check.h"
#include "kernel/chain.h"

#include <math.h>

enum { ROWS = 16, COLUMNS = 8, DEPTH = 8 }; /* of the probe's product, tf32 */

static struct {
    int launches, rehearsals, longest; /* of the chain; most steps in one launch */
    bool never_together, gives_up;     /* the barrier's failures */
    int wrong_step;                    /* in the table; -1: none */
} chain;

static void product(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                    void *const *pointers) {
    (void)defines, (void)count, (void)launch;
    const float *in = pointers[0];
    float *out = pointers[1];
    for (int row = 0; row < ROWS; row++)
        for (int column = 0; column < COLUMNS; column++) {
            float sum = 0;
            for (int k = 0; k < DEPTH; k++)
                sum += in[row * DEPTH + k] * in[(ROWS + column) * DEPTH + k];
            out[row * COLUMNS + column] = sum;
        }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

typedef struct shown_step {
    const int32_t *t;
    const float *in, *second, *weights, *bias;
    float *out;
} shown_step;

static const int block_of_kind[] = {32, 16, 32};

/* The word of output channel k and channel c (of a line of 32), where lanes of a warp have theirs.
 */
static float lane_word(const float *tap, int k, int c, int block) {
    int lane = k % 8 * 4 + c % 4, word = c % 8 / 4, column = k % block / 8;
    return tap[column / 2 * 128 + lane * 4 + column % 2 * 2 + word];
}

static float conv_weight(const shown_step *s, int k, int c, int tap) {
    int block = block_of_kind[s->t[LAP_CHAIN_KIND]], tap_words = block * 8;
    int depth = s->t[LAP_CHAIN_PHASES] * 9 + s->t[LAP_CHAIN_TAILS];
    const float *w = s->weights + (size_t)(k / block) * (size_t)(depth * 4 * tap_words);
    int quarter = c / 32 * 4 + c % 32 / 8;
    return lane_word(w + (quarter * 9 + tap) * tap_words, k, c, block);
}

static float tail_weight(const shown_step *s, int k, int c) {
    int block = block_of_kind[s->t[LAP_CHAIN_KIND]], tap_words = block * 8;
    int phases = s->t[LAP_CHAIN_PHASES], tails = s->t[LAP_CHAIN_TAILS];
    const float *w =
        s->weights + (size_t)(k / block) * (size_t)((phases * 9 + tails) * 4 * tap_words);
    w += phases * 36 * tap_words;
    return lane_word(w + (c % 32 / 8 * tails + c / 32) * tap_words, k, c, block);
}

static void conv(const shown_step *s) {
    const int32_t *t = s->t;
    int w = t[LAP_CHAIN_IN_W], h = t[LAP_CHAIN_IN_H], cs = t[LAP_CHAIN_IN_BYTES] / 4;
    int stride = t[LAP_CHAIN_STEP], ks = t[LAP_CHAIN_OUT_C], out_w = t[LAP_CHAIN_OUT_W];
    assert_int_equal(cs, t[LAP_CHAIN_PHASES] * 32);
    for (int row = 0; row < t[LAP_CHAIN_ROWS]; row++) {
        int image = row / t[LAP_CHAIN_PIXELS], pixel = row % t[LAP_CHAIN_PIXELS];
        int y0 = pixel / out_w * stride - 1, x0 = pixel % out_w * stride - 1;
        for (int k = 0; k < ks; k++) {
            float sum = s->bias[k];
            for (int tap = 0; tap < 9; tap++) {
                int y = y0 + tap / 3, x = x0 + tap % 3;
                if (y < 0 || y >= h || x < 0 || x >= w) continue;
                const float *from = s->in + (size_t)((image * h + y) * w + x) * (size_t)cs;
                for (int c = 0; c < cs; c++)
                    sum += from[c] * conv_weight(s, k, c, tap);
            }
            int at =
                image * t[LAP_CHAIN_SECOND_IMAGE] +
                (pixel / out_w * t[LAP_CHAIN_SECOND_W] + pixel % out_w) * t[LAP_CHAIN_SECOND_STEP];
            for (int c = 0; c < t[LAP_CHAIN_TAILS] * 32; c++)
                sum += s->second[at * t[LAP_CHAIN_SECOND_BYTES] / 4 + c] * tail_weight(s, k, c);
            if (t[LAP_CHAIN_FLAGS] & LAP_FLAG_RESIDUAL) sum += s->second[row * ks + k];
            if (t[LAP_CHAIN_FLAGS] & LAP_FLAG_RELU) sum = sum < 0 ? 0 : sum;
            s->out[row * ks + k] = lap_tf32_round(sum);
        }
    }
}

static float stem_pixel(const shown_step *s, int image, int y, int x, int k) {
    const int32_t *t = s->t;
    float sum = s->bias[k];
    for (int r = 0; r < 7; r++)
        for (int i = 0; i < 7 * 4; i++) {
            int iy = y * 2 - 3 + r, ix = x * 2 - 3 + i / 4;
            if (iy < 0 || iy >= t[LAP_CHAIN_IN_H] || ix < 0 || ix >= t[LAP_CHAIN_IN_W]) continue;
            int at = ((image * t[LAP_CHAIN_IN_H] + iy) * t[LAP_CHAIN_IN_W] + ix) * 4 + i % 4;
            const float *w = s->weights + ((k / 32 * 7 + r) * 4 + i / 8) * 256;
            sum += lap_tf32_round(s->in[at]) * lane_word(w, k, i, 32);
        }
    if (t[LAP_CHAIN_FLAGS] & LAP_FLAG_RELU) sum = sum < 0 ? 0 : sum;
    return lap_tf32_round(sum);
}

static void stem(const shown_step *s) {
    const int32_t *t = s->t;
    int ks = t[LAP_CHAIN_OUT_C], out_w = t[LAP_CHAIN_OUT_W];
    int tiles = t[LAP_CHAIN_COLUMNS] * ((t[LAP_CHAIN_PIXELS] / out_w + 6) / 7) * (ks / 32);
    for (int i = 0; i < t[LAP_CHAIN_ITEMS] / tiles * t[LAP_CHAIN_PIXELS]; i++)
        for (int k = 0; k < ks; k++) {
            int image = i / t[LAP_CHAIN_PIXELS], p = i % t[LAP_CHAIN_PIXELS];
            float best = -INFINITY;
            for (int e = 0; e < 9; e++) {
                int y = p / out_w * 2 - 1 + e / 3, x = p % out_w * 2 - 1 + e % 3;
                if (y < 0 || y >= t[LAP_CHAIN_CONV_H] || x < 0 || x >= t[LAP_CHAIN_CONV_W])
                    continue;
                best = fmaxf(best, stem_pixel(s, image, y, x, k));
            }
            s->out[i * ks + k] = best;
        }
}

static void pool_fc(const shown_step *s) {
    const int32_t *t = s->t;
    int cs = t[LAP_CHAIN_IN_BYTES] / 4, pixels = t[LAP_CHAIN_PIXELS], ks = t[LAP_CHAIN_OUT_C];
    for (int image = 0; image < t[LAP_CHAIN_IMAGES]; image++)
        for (int k = 0; k < ks; k++) {
            float sum = s->bias[k];
            for (int c = 0; c < cs; c++) {
                float mean = 0;
                for (int p = 0; p < pixels; p++)
                    mean += s->in[(image * pixels + p) * cs + c];
                sum += mean / (float)pixels * s->weights[k * cs + c];
            }
            s->out[image * ks + k] = sum;
        }
}

static void run_step(char *memory, const char *weights, const int32_t *t, bool wrong) {
    shown_step s = {.t = t,
                    .in = (const float *)(memory + (size_t)(uint32_t)t[LAP_CHAIN_IN] * 16),
                    .second = (const float *)(memory + (size_t)(uint32_t)t[LAP_CHAIN_SECOND] * 16),
                    .out = (float *)(memory + (size_t)(uint32_t)t[LAP_CHAIN_OUT] * 16),
                    .weights =
                        (const float *)(weights + (size_t)(uint32_t)t[LAP_CHAIN_WEIGHTS] * 16),
                    .bias = (const float *)(weights + (size_t)(uint32_t)t[LAP_CHAIN_BIAS] * 16)};
    if (t[LAP_CHAIN_KIND] < 3)
        conv(&s);
    else if (t[LAP_CHAIN_KIND] == 3)
        stem(&s);
    else
        pool_fc(&s);
    if (wrong) s.out[0] += 1;
}

static void chain_kernel(const lap_define *defines, size_t define_count,
                         const lap_raw_launch *launch, void *const *pointers) {
    assert_int_equal(define_count, 2); /* the same for every step */
    assert_int_equal(fake_define(defines, define_count, "PRECISION", -1), LAP_TF32);
    uint32_t *sync = pointers[3], groups = launch->groups[0];
    int first = launch->args[4].i32, count = launch->args[5].i32;
    if (count < 0) {
        chain.rehearsals++;
        sync[0] += groups * (uint32_t)(-count - 1);
        sync[LAP_CHAIN_SYNC_FAILED] = chain.never_together;
        return;
    }
    chain.launches++;
    if (count > chain.longest) chain.longest = count;
    const int32_t *table = pointers[2];
    for (int i = first; i < first + count; i++)
        run_step(pointers[0], pointers[1], table + i * LAP_CHAIN_WORDS, i == chain.wrong_step);
    sync[0] += groups * (uint32_t)(count - 1);
    if (chain.gives_up && count > 1) sync[LAP_CHAIN_SYNC_FAILED] = 1;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static lap_net *net;
static lap_weights *weights;

static lap_session *begin(void) {
    start();
    memset(&chain, 0, sizeof chain);
    chain.wrong_step = -1;
    fake.devices[0].cc_major = 9;
    fake.devices[0].local_bytes = fake.devices[0].local_optin_bytes = 49152;
    assert_true(fake_register("probe_mma", "probe_mma", product));
    assert_true(fake_register("chain", "chain", chain_kernel));
    return open_session();
}

static lap_plan_options options_of(void) {
    return (lap_plan_options){.batch = 1, .precision = LAP_TF32};
}

static void fill_image(float *image) {
    for (int i = 0; i < 3 * 32 * 32; i++)
        image[i] = (float)(i * 7 % 31 - 15) / 16;
}

static lap_plan *plan_with_input(lap_session *session, lap_plan_options options) {
    float image[3 * 32 * 32];
    lap_error err = {0};
    fill_image(image);
    lap_plan *plan = ready_plan(session, net, weights, options);
    MUST(lap_plan_set_input(plan, image, 1, &err));
    return plan;
}

/* The whole network is one launch, and gives the bits that its steps give one by one. */
static void one_launch(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_error err = {0};
    lap_plan *plan = plan_with_input(session, options_of());
    assert_int_equal(lap_plan_step_count(plan), 18);
    assert_int_equal(lap_plan_launch_count(plan), 1);
    assert_int_equal(chain.rehearsals, 1); /* once for a kernel */
    for (int i = 0; i < 18; i++) {
        assert_non_null(lap_plan_row(plan, i)->chain);
        assert_string_equal(lap_plan_fallback(plan, i), "");
    }
    float together[1000], alone[1000];
    MUST(lap_plan_run(plan, &err));
    MUST(lap_plan_logits(plan, together, &err));
    assert_int_equal(chain.launches, 1);
    assert_int_equal(chain.longest, 18);
    MUST(lap_plan_tensor_poison(plan, lap_plan_output(plan, 17), &err));
    for (int i = 0; i < 18; i++)
        MUST(lap_plan_run_step(plan, i, &err));
    MUST(lap_plan_logits(plan, alone, &err));
    assert_int_equal(chain.launches, 19);
    assert_memory_equal(together, alone, sizeof alone);
    MUST(lap_plan_guards_check(plan, &err));
    lap_plan_free(plan);
    close_session(session);
}

static lap_check_report checked(lap_session *session, lap_status expected) {
    float image[3 * 32 * 32];
    lap_error err = {0};
    lap_check_report report = {0};
    lap_plan_options options = options_of();
    fill_image(image);
    lap_status status = lap_check_layers(session, net, weights, &options, image, LAP_CHECK_FULL,
                                         NULL, NULL, &report, &err);
    if (status != expected) fail_msg("%s: %s", report.first_wrong, report.detail);
    return report;
}

/* Table, offsets and packed weights of every step, held to the reference; and a step that is wrong
 * is found. */
static void steps_are_right(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_check_report report = checked(session, LAP_OK);
    assert_int_equal(report.exact_layers, 18);
    assert_int_equal(report.real_layers, 18);
    chain.wrong_step = 7;
    report = checked(session, LAP_E_VERIFY);
    assert_string_equal(report.first_wrong, "layer2.1.conv1");
    close_session(session);
}

/* Two steps of which the second reads the first's output as its residual are not one launch: the
 * residual is fetched before the barrier. No network here has such steps, so one is made. */
static void residual_is_older(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_plan *plan = plan_with_input(session, options_of());
    assert_int_equal(plan->steps[0].chain_count, 18);
    const lap_op *real = plan->steps[4].op;
    lap_op op = *real;
    op.residual = plan->steps[3].output;
    plan->steps[4].op = &op;
    plan_chain_form(plan);
    assert_int_equal(plan->steps[0].chain_count, 4);
    assert_int_equal(plan->steps[4].chain_count, 14);
    assert_int_equal(lap_plan_launch_count(plan), 2);
    op.residual = plan->steps[2].output; /* one older: fine */
    plan_chain_form(plan);
    assert_int_equal(plan->steps[0].chain_count, 18);
    plan->steps[4].op = real;
    lap_plan_free(plan);
    close_session(session);
}

static void expect_fallback(lap_session *session, lap_plan_options options, const char *why) {
    lap_plan *plan = plan_with_input(session, options);
    for (int i = 0; i < lap_plan_step_count(plan); i++) {
        assert_null(lap_plan_row(plan, i)->chain);
        if (why && i == 0 && !strstr(lap_plan_fallback(plan, i), why))
            fail_msg("'%s' says nothing of '%s'", lap_plan_fallback(plan, i), why);
    }
    assert_int_equal(chain.launches, 0);
    lap_plan_free(plan);
}

static void other_kernels_instead(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_error err = {0};
    chain.never_together = true;
    expect_fallback(session, options_of(), "not resident together");
    chain.never_together = false;
    lap_queue *queue;
    MUST(lap_queue_new(session->device, &queue, &err));
    lap_plan_options options = options_of();
    options.queue = queue;
    expect_fallback(session, options, "while other queues use the device");
    lap_queue_free(queue);
    options = options_of();
    options.exclude = "chain_conv, chain_conv_down, chain_stem_pool, chain_pool_fc";
    expect_fallback(session, options, NULL);
    options = options_of();
    options.batch = 3; /* not measured to be faster */
    expect_fallback(session, options, NULL);
    close_session(session);
}

/* A barrier that gives up in a run is an error where results are read, not a wrong result. */
static void giving_up_is_told(void **state) {
    (void)state;
    lap_session *session = begin();
    lap_error err = {0};
    float logits[1000];
    lap_plan *plan = plan_with_input(session, options_of());
    chain.gives_up = true;
    MUST(lap_plan_run(plan, &err));
    assert_int_equal(lap_plan_logits(plan, logits, &err), LAP_E_LAUNCH);
    if (!strstr(err.message, "exclude = chain_conv")) fail_msg("%s", err.message);
    assert_int_equal(lap_plan_guards_check(plan, &err), LAP_E_LAUNCH);
    lap_plan_free(plan);
    close_session(session);
}

int main(void) {
    lap_error err = {0};
    if (lap_net_build("resnet18", 32, 32, &net, &err) != LAP_OK ||
        lap_weights_load(net, "synthetic:1", &weights, &err) != LAP_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_launch),        cmocka_unit_test(steps_are_right),
        cmocka_unit_test(residual_is_older), cmocka_unit_test(other_kernels_instead),
        cmocka_unit_test(giving_up_is_told),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    lap_weights_free(weights);
    lap_net_free(net);
    return failed;
}
