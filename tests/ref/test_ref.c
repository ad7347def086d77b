/* The reference against loops written straight from the definitions. */
#include "base/rng.h"
#include "base/threads.h"
#include "ref/ref.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- fixtures ------------------------------------------------------------------------------- */

static double *random_values(uint64_t stream, size_t n) {
    double *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = lap_rng_normal(1, stream, i);
    return x;
}

static float *random_floats(uint64_t stream, size_t n) {
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)lap_rng_normal(1, stream, i);
    return x;
}

static lap_op make_op(lap_op_kind kind, int c, int h, int w, int k, int r, int s, int stride,
                      int pad) {
    lap_op op = {
        .kind = kind, .name = "test", .residual = -1, .r = r, .s = s, .stride = stride, .pad = pad};
    op.in = (lap_tensor){c, h, w, c};
    op.out = (lap_tensor){k, (h + 2 * pad - r) / stride + 1, (w + 2 * pad - s) / stride + 1, k};
    return op;
}

typedef struct rig {
    lap_op op;
    int n;
    double *x, *residual;
    lap_op_weights weights;
    double *y, *bound;
} rig;

static rig make_rig(lap_op op, int n) {
    rig t = {.op = op, .n = n};
    size_t in = (size_t)n * (size_t)lap_tensor_logical(&op.in);
    size_t out = (size_t)n * (size_t)lap_tensor_logical(&op.out);
    t.x = random_values(1, in);
    t.residual = op.residual >= 0 ? random_values(2, out) : NULL;
    t.weights.k = (size_t)op.out.c;
    t.weights.w_count = (size_t)lap_op_weight_count(&op);
    t.weights.w = random_floats(3, t.weights.w_count + 1);
    t.weights.bias = random_floats(4, t.weights.k);
    t.y = malloc(out * sizeof *t.y);
    t.bound = malloc(out * sizeof *t.bound);
    assert_non_null(t.y);
    assert_non_null(t.bound);
    return t;
}

static void free_rig(rig *t) {
    free(t->x);
    free(t->residual);
    free(t->weights.w);
    free(t->weights.bias);
    free(t->y);
    free(t->bound);
}

static void run(rig *t, double *bound) {
    lap_error err = {0};
    if (lap_ref_op(&t->op, t->n, t->x, t->residual, &t->weights, t->y, bound, &err) != LAP_OK)
        fail_msg("%s", err.message);
}

/* ---- convolution ---------------------------------------------------------------------------- */

/* One output from the definition; *bound gets the sum of magnitudes. */
static double naive(const rig *t, int image, int p, int q, int k, double *bound) {
    const lap_op *op = &t->op;
    double sum = (double)t->weights.bias[k];
    *bound = fabs(sum);
    for (int c = 0; c < op->in.c; c++)
        for (int r = 0; r < op->r; r++)
            for (int s = 0; s < op->s; s++) {
                int y = p * op->stride + r - op->pad, x = q * op->stride + s - op->pad;
                if (y < 0 || y >= op->in.h || x < 0 || x >= op->in.w) continue;
                double value = t->x[((image * op->in.h + y) * op->in.w + x) * op->in.c + c];
                double product =
                    value * (double)t->weights.w[((k * op->in.c + c) * op->r + r) * op->s + s];
                sum += product;
                *bound += fabs(product);
            }
    if (t->residual) {
        double more = t->residual[((image * op->out.h + p) * op->out.w + q) * op->out.c + k];
        sum += more;
        *bound += fabs(more);
    }
    return op->act == LAP_ACT_RELU && sum < 0.0 ? 0.0 : sum;
}

static void check_conv(lap_op op, int n) {
    rig t = make_rig(op, n);
    run(&t, t.bound);
    size_t at = 0;
    for (int image = 0; image < n; image++)
        for (int p = 0; p < op.out.h; p++)
            for (int q = 0; q < op.out.w; q++)
                for (int k = 0; k < op.out.c; k++, at++) {
                    double bound, y = naive(&t, image, p, q, k, &bound);
                    assert_true(fabs(t.y[at] - y) <= 1e-14 * bound);
                    assert_true(fabs(t.bound[at] - bound) <= 1e-13 * bound);
                }
    free_rig(&t);
}

static void convolutions(void **state) {
    (void)state;
    static const struct {
        int n, c, h, w, k, r, s, stride, pad, relu, residual;
    } cases[] = {
        {1, 3, 33, 45, 64, 7, 7, 2, 3, 1, 0}, {2, 5, 9, 11, 13, 3, 3, 1, 1, 1, 1},
        {3, 8, 7, 7, 16, 3, 3, 2, 1, 0, 1},   {1, 4, 12, 5, 9, 1, 1, 2, 0, 0, 0},
        {2, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0},    {1, 7, 2, 3, 10, 5, 3, 1, 2, 0, 0},
        {1, 2, 10, 19, 3, 1, 4, 3, 1, 1, 1},  {1, 6, 4, 40, 17, 2, 2, 2, 0, 1, 0},
        {1, 2, 1, 1, 5, 7, 7, 2, 3, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lap_op op = make_op(LAP_OP_CONV, cases[i].c, cases[i].h, cases[i].w, cases[i].k, cases[i].r,
                            cases[i].s, cases[i].stride, cases[i].pad);
        op.act = cases[i].relu ? LAP_ACT_RELU : LAP_ACT_NONE;
        op.residual = cases[i].residual ? 7 : -1;
        check_conv(op, cases[i].n);
    }
}

static void fully_connected(void **state) {
    (void)state;
    check_conv(make_op(LAP_OP_FC, 37, 1, 1, 21, 1, 1, 1, 0), 5);
}

/* A NaN goes to exactly the outputs whose window holds it, also through the ReLU. */
static void nan_passes_through(void **state) {
    (void)state;
    lap_op op = make_op(LAP_OP_CONV, 3, 8, 8, 4, 3, 3, 1, 1);
    op.act = LAP_ACT_RELU;
    rig t = make_rig(op, 1);
    t.x[(4 * 8 + 5) * 3 + 1] = NAN;
    run(&t, NULL);
    for (int p = 0; p < 8; p++)
        for (int q = 0; q < 8; q++)
            for (int k = 0; k < 4; k++) {
                bool inside = abs(p - 4) <= 1 && abs(q - 5) <= 1;
                assert_int_equal(isnan(t.y[(p * 8 + q) * 4 + k]) != 0, inside);
            }
    free_rig(&t);
}

/* ---- pools ---------------------------------------------------------------------------------- */

static void max_pool(void **state) {
    (void)state;
    rig t = make_rig(make_op(LAP_OP_MAXPOOL, 5, 9, 12, 5, 3, 3, 2, 1), 2);
    /* All negative, so that zero padding would show. */
    for (size_t i = 0; i < 2 * 9 * 12 * 5; i++)
        t.x[i] = -fabs(t.x[i]) - 1.0;
    run(&t, t.bound);
    size_t at = 0;
    for (int n = 0; n < 2; n++)
        for (int p = 0; p < 5; p++)
            for (int q = 0; q < 6; q++)
                for (int c = 0; c < 5; c++, at++) {
                    double best = -INFINITY, most = 0.0;
                    for (int y = 2 * p - 1; y <= 2 * p + 1; y++)
                        for (int x = 2 * q - 1; x <= 2 * q + 1; x++) {
                            if (y < 0 || y > 8 || x < 0 || x > 11) continue;
                            double v = t.x[((n * 9 + y) * 12 + x) * 5 + c];
                            best = v > best ? v : best;
                            most = fabs(v) > most ? fabs(v) : most;
                        }
                    assert_true(t.y[at] == best);
                    assert_true(t.bound[at] == most);
                }
    assert_int_equal(t.op.out.h, 5);
    assert_int_equal(t.op.out.w, 6);
    t.x[0] = NAN; /* channel 0 of the corner: in the window of output (0, 0) only */
    run(&t, NULL);
    assert_true(isnan(t.y[0]));
    assert_true(!isnan(t.y[1]));
    assert_true(!isnan(t.y[5]));
    free_rig(&t);
}

static void average_pool(void **state) {
    (void)state;
    rig t = make_rig(make_op(LAP_OP_AVGPOOL, 6, 3, 5, 6, 3, 5, 1, 0), 3);
    run(&t, t.bound);
    for (int n = 0; n < 3; n++)
        for (int c = 0; c < 6; c++) {
            double sum = 0.0, most = 0.0;
            for (int i = 0; i < 15; i++) {
                double v = t.x[(n * 15 + i) * 6 + c];
                sum += v;
                most = fabs(v) > most ? fabs(v) : most;
            }
            assert_true(fabs(t.y[n * 6 + c] - sum / 15) < 1e-15 * most);
            assert_true(t.bound[n * 6 + c] == most);
        }
    free_rig(&t);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void thread_count_changes_nothing(void **state) {
    (void)state;
    lap_net *net;
    lap_weights *weights;
    lap_input *input;
    static float image[3 * 64 * 41];
    assert_int_equal(lap_net_build("resnet18", 64, 41, &net, NULL), LAP_OK);
    assert_int_equal(lap_weights_load(net, "synthetic:4", &weights, NULL), LAP_OK);
    assert_int_equal(lap_input_open("synthetic:4", 3, 64, 41, &input, NULL), LAP_OK);
    assert_int_equal(lap_input_image(input, 0, image, NULL), LAP_OK);
    static const int counts[] = {1, 2, 3, 16};
    double first[1000], logits[1000];
    for (size_t i = 0; i < 4; i++) {
        lap_threads_set(counts[i]);
        assert_int_equal(lap_threads(), counts[i]);
        assert_int_equal(lap_ref_forward(net, weights, image, logits, NULL), LAP_OK);
        if (i == 0) memcpy(first, logits, sizeof first);
        assert_memory_equal(first, logits, sizeof first);
    }
    lap_threads_set(0);
    assert_true(lap_threads() >= 1);
    lap_input_free(input);
    lap_weights_free(weights);
    lap_net_free(net);
}

static void refusals(void **state) {
    (void)state;
    lap_op op = make_op(LAP_OP_CONV, 1, 1, 1, 1, 1, 1, 1, 0);
    double x = 1.0, y;
    lap_error err = {0};
    assert_int_equal(lap_ref_op(&op, 1, &x, NULL, NULL, &y, NULL, &err), LAP_E_ARG);
    assert_int_equal(lap_ref_op(&op, 0, &x, NULL, NULL, &y, NULL, &err), LAP_E_ARG);
    op.residual = 3;
    float w = 1.0f;
    lap_op_weights weights = {&w, &w, 1, 1};
    assert_int_equal(lap_ref_op(&op, 1, &x, NULL, &weights, &y, NULL, &err), LAP_E_ARG);
    assert_non_null(strstr(err.message, "residual"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions),       cmocka_unit_test(fully_connected),
        cmocka_unit_test(nan_passes_through), cmocka_unit_test(max_pool),
        cmocka_unit_test(average_pool),       cmocka_unit_test(thread_count_changes_nothing),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
