/* The fake backend's naive kernels against the reference, so that tests which run whole networks on
 * it stand on firm ground; and the planted bad kernels, each of which must show. */
#include "fixture.h"

#include "ref/ref.h"
#include <math.h>
#include <stdio.h>

static lap_error err;

enum { IMAGES = 2, FLOATS = 4096 };

typedef struct run {
    lap_op op;
    const char *stem;
    float in[FLOATS], residual[FLOATS], packed[FLOATS], bias[64], out[FLOATS];
    float torch[FLOATS]; /* [k][c][r][s] */
    double x[FLOATS], res[FLOATS], want[FLOATS];
} run;

static run r;

static lap_tensor tensor(int c, int h, int w) {
    return (lap_tensor){.c = c, .h = h, .w = w, .cs = (c + 3) / 4 * 4};
}

/* Small integers: every sum is exact, so results must be equal to the bit. */
static float value(size_t i) {
    return (float)((int)(i * 2654435761u >> 7 & 15) - 8);
}

static void spread(const lap_tensor *t, float *stored, double *logical, size_t seed) {
    size_t pixels = (size_t)(IMAGES * t->h * t->w), cs = (size_t)t->cs, n = (size_t)t->c;
    for (size_t p = 0; p < pixels; p++) {
        for (size_t c = 0; c < cs; c++) {
            float v = c < n ? value(seed + p * n + c) : 0;
            stored[p * cs + c] = v;
            if (c < n) logical[p * n + c] = v;
        }
    }
}

static void prepare(void) {
    const lap_op *op = &r.op;
    spread(&op->in, r.in, r.x, 1);
    spread(&op->out, r.residual, r.res, 77);
    memset(r.bias, 0, sizeof r.bias);
    size_t window = (size_t)(op->r * op->s), c_count = (size_t)op->in.c,
           k_count = (size_t)op->out.c;
    bool weights = op->kind == LAP_OP_CONV || op->kind == LAP_OP_FC;
    for (size_t k = 0; weights && k < k_count; k++) {
        r.bias[k] = value(k * 3);
        for (size_t c = 0; c < c_count; c++) {
            for (size_t i = 0; i < window; i++) {
                float v = value(5 + (k * c_count + c) * window + i);
                r.torch[(k * c_count + c) * window + i] = v;
                r.packed[(k * window + i) * c_count + c] = v;
            }
        }
    }
}

static size_t fill_defines(lap_define *d) {
    const lap_op *op = &r.op;
    const struct {
        const char *name;
        int value;
    } all[] = {{"C", op->in.c},  {"CS", op->in.cs},  {"H", op->in.h},        {"W", op->in.w},
               {"K", op->out.c}, {"KS", op->out.cs}, {"P", op->out.h},       {"Q", op->out.w},
               {"R", op->r},     {"S", op->s},       {"STRIDE", op->stride}, {"PAD", op->pad}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        snprintf(d[i].name, sizeof d[i].name, "%s", all[i].name);
        d[i].value = all[i].value;
    }
    return sizeof all / sizeof all[0];
}

static lap_buffer *upload(lap_queue *queue, const float *data) {
    lap_buffer *buffer;
    assert_ok(lap_buffer_new(lap_queue_device(queue), sizeof r.in, &buffer, &err));
    assert_ok(lap_buffer_write(queue, buffer, 0, data, sizeof r.in, &err));
    return buffer;
}

/* Runs the op on the fake; r.out starts as NaN everywhere. */
static void execute(void) {
    lap_device *device = open_fake(0);
    lap_queue *queue;
    lap_kernel *kernel;
    lap_define defines[16];
    lap_build build = {.stem = r.stem, .source = "-", .entry = r.stem, .defines = defines};
    build.define_count = fill_defines(defines);
    assert_ok(lap_queue_new(device, &queue, &err));
    assert_ok(lap_kernel_build(device, &build, &kernel, &err));
    for (size_t i = 0; i < FLOATS; i++)
        r.out[i] = NAN;
    static float bias[FLOATS];
    memcpy(bias, r.bias, sizeof r.bias);
    lap_buffer *in = upload(queue, r.in), *weights = upload(queue, r.packed);
    lap_buffer *b = upload(queue, bias), *out = upload(queue, r.out);
    lap_buffer *residual = r.op.residual >= 0 ? upload(queue, r.residual) : NULL;
    int32_t flags = (r.op.act == LAP_ACT_RELU ? 1 : 0) | (residual ? 2 : 0);
    lap_arg conv[] = {{.buffer = in},
                      {.buffer = weights},
                      {.buffer = b},
                      {.buffer = residual},
                      {.buffer = out},
                      {.kind = LAP_ARG_I32, .i32 = IMAGES},
                      {.kind = LAP_ARG_I32, .i32 = flags}};
    lap_arg fc[] = {conv[0], conv[1], conv[2], conv[4], conv[5]};
    lap_arg pool[] = {conv[0], conv[4], conv[5]};
    lap_launch launch = {.kernel = kernel, .groups = {1, 1, 1}, .local = {1, 1, 1}};
    launch.args = r.op.kind == LAP_OP_CONV ? conv : r.op.kind == LAP_OP_FC ? fc : pool;
    launch.arg_count = r.op.kind == LAP_OP_CONV ? 7 : r.op.kind == LAP_OP_FC ? 5 : 3;
    assert_ok(lap_enqueue(queue, &launch, &err));
    assert_ok(lap_buffer_read(queue, out, 0, r.out, sizeof r.out, &err));
    lap_buffer *all[] = {in, weights, b, out, residual};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        lap_buffer_free(all[i]);
    lap_kernel_free(kernel);
    lap_queue_free(queue);
    assert_ok(lap_device_close(device, &err));
}

/* Differences from the reference in the output, padding channels and what follows included. */
static size_t count_wrong(void) {
    const lap_op *op = &r.op;
    lap_op_weights w = {.w = r.torch, .bias = r.bias};
    w.k = (size_t)op->out.c;
    w.w_count = (size_t)(op->out.c * op->in.c * op->r * op->s);
    bool weights = op->kind == LAP_OP_CONV || op->kind == LAP_OP_FC;
    assert_ok(lap_ref_op(op, IMAGES, r.x, op->residual >= 0 ? r.res : NULL, weights ? &w : NULL,
                         r.want, NULL, &err));
    size_t cs = (size_t)op->out.cs, n = (size_t)op->out.c, wrong = 0;
    size_t count = (size_t)(IMAGES * op->out.h * op->out.w) * cs;
    for (size_t i = 0; i < count; i++) {
        float want = i % cs < n ? (float)r.want[i / cs * n + i % cs] : 0;
        wrong += !(r.out[i] == want);
    }
    for (size_t i = count; i < FLOATS; i++)
        wrong += isnan(r.out[i]) ? 0 : 1;
    return wrong;
}

static void set_op(lap_op_kind kind, const char *stem, lap_tensor in, lap_tensor out, int window,
                   int stride, int pad, int residual, bool relu) {
    r.stem = stem;
    r.op = (lap_op){.kind = kind,
                    .residual = residual,
                    .act = relu ? LAP_ACT_RELU : LAP_ACT_NONE,
                    .in = in,
                    .out = out,
                    .r = window,
                    .s = window,
                    .stride = stride,
                    .pad = pad};
    if (kind == LAP_OP_AVGPOOL) {
        r.op.r = in.h;
        r.op.s = in.w;
    }
    snprintf(r.op.name, sizeof r.op.name, "%s", stem);
    prepare();
}

static void check(void) {
    execute();
    assert_int_equal(count_wrong(), 0);
}

static void test_kernels(void **state) {
    (void)state;
    fake_setup();
    static const char conv[] = "conv_naive";
    set_op(LAP_OP_CONV, conv, tensor(3, 9, 7), tensor(6, 5, 4), 3, 2, 1, -1, true);
    check();
    set_op(LAP_OP_CONV, conv, tensor(5, 4, 6), tensor(8, 4, 6), 3, 1, 1, 0, true);
    check();
    set_op(LAP_OP_CONV, conv, tensor(4, 5, 5), tensor(7, 3, 3), 1, 2, 0, 0, false);
    check();
    set_op(LAP_OP_CONV, conv, tensor(3, 8, 8), tensor(4, 4, 4), 7, 2, 3, -1, false);
    check();
    set_op(LAP_OP_MAXPOOL, "maxpool_naive", tensor(5, 7, 8), tensor(5, 4, 4), 3, 2, 1, -1, false);
    check();
    /* A window of one lets negative values through: padding is minus infinity, not zero. */
    set_op(LAP_OP_MAXPOOL, "maxpool_naive", tensor(5, 4, 4), tensor(5, 4, 4), 1, 1, 0, -1, false);
    check();
    set_op(LAP_OP_AVGPOOL, "avgpool_naive", tensor(6, 4, 4), tensor(6, 1, 1), 1, 1, 0, -1, false);
    check();
    set_op(LAP_OP_FC, "fc_naive", tensor(12, 1, 1), tensor(10, 1, 1), 1, 1, 0, -1, false);
    check();
}

static void test_plants(void **state) {
    (void)state;
    fake_setup();
    set_op(LAP_OP_CONV, "conv_naive", tensor(3, 9, 7), tensor(6, 5, 4), 3, 2, 1, -1, true);
    static const struct {
        fake_plant_kind kind;
        size_t wrong;
    } plants[] = {{FAKE_PLANT_WRONG, 1},
                  {FAKE_PLANT_NAN, 1},
                  {FAKE_PLANT_NOTHING, IMAGES * 5 * 4 * 8},
                  {FAKE_PLANT_OUT_OF_BOUNDS, 1},
                  {FAKE_PLANT_NONE, 0}};
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        fake_plant("conv_naive", plants[i].kind);
        execute();
        assert_int_equal(count_wrong(), plants[i].wrong);
    }
    assert_int_equal(fake.red_zone_hits, 0);
}

/* Behind a buffer that is exactly full lies the red zone. */
static void test_red_zone(void **state) {
    (void)state;
    fake_setup();
    fake_plant("add", FAKE_PLANT_OUT_OF_BOUNDS);
    lap_device *device = open_fake(0);
    lap_queue *queue;
    lap_kernel *kernel;
    lap_buffer *buffer;
    assert_ok(lap_queue_new(device, &queue, &err));
    assert_ok(build_add(device, 1, &kernel, &err));
    assert_ok(lap_buffer_new(device, 64, &buffer, &err));
    assert_ok(enqueue_add(queue, kernel, buffer, 1, &err));
    lap_buffer_free(buffer);
    assert_int_equal(fake.red_zone_hits, 1);
    lap_kernel_free(kernel);
    lap_queue_free(queue);
    assert_ok(lap_device_close(device, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_plants),
        cmocka_unit_test(test_red_zone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
