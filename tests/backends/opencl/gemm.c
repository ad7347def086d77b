/* The library's matrix product against a plain loop. Small whole numbers: every sum is exact, so
 * results must be equal to the bit. */
#include "rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    size_t m, n, k, pad;
    bool b_transposed;
    float beta;
} shape;

static float small(size_t i) {
    return (float)((int)(i * 2654435761u % 17u) - 8);
}

/* Matrices that begin some elements into their buffers, with rows longer than needed. */
static void check(rig *r, shape s) {
    const size_t lda = s.k + s.pad, ldb = (s.b_transposed ? s.k : s.n) + s.pad, ldc = s.n + s.pad;
    const size_t b_rows = s.b_transposed ? s.n : s.k;
    const size_t a_first = 3 * s.pad, b_first = 5 * s.pad, c_first = 7 * s.pad;
    const size_t na = a_first + s.m * lda, nb = b_first + b_rows * ldb, nc = c_first + s.m * ldc;
    float *a = malloc(na * 4), *b = malloc(nb * 4), *c = malloc(nc * 4), *want = malloc(nc * 4);
    assert_true(a && b && c && want);
    for (size_t i = 0; i < na; i++)
        a[i] = small(i);
    for (size_t i = 0; i < nb; i++)
        b[i] = small(i + 99);
    for (size_t i = 0; i < nc; i++)
        c[i] = s.beta == 0 ? NAN : small(i + 7); /* beta 0 must not read C */
    memcpy(want, c, nc * 4);
    for (size_t i = 0; i < s.m; i++)
        for (size_t j = 0; j < s.n; j++) {
            float sum = 0;
            for (size_t l = 0; l < s.k; l++)
                sum += a[a_first + i * lda + l] *
                       b[b_first + (s.b_transposed ? j * ldb + l : l * ldb + j)];
            float *at = &want[c_first + i * ldc + j];
            *at = s.beta == 0 ? sum : sum + s.beta * *at;
        }
    lap_raw_gemm g = {.m = s.m,
                      .n = s.n,
                      .k = s.k,
                      .a_offset = a_first,
                      .b_offset = b_first,
                      .c_offset = c_first,
                      .lda = lda,
                      .ldb = ldb,
                      .ldc = ldc,
                      .b_transposed = s.b_transposed,
                      .beta = s.beta};
    g.a = rig_buffer(r, na * 4);
    g.b = rig_buffer(r, nb * 4);
    g.c = rig_buffer(r, nc * 4);
    rig_ok(r, lap_opencl_ops.buffer_write(r->queue, g.a, 0, a, na * 4, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_write(r->queue, g.b, 0, b, nb * 4, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_write(r->queue, g.c, 0, c, nc * 4, &r->err));
    rig_ok(r, lap_opencl_ops.gemm(r->queue, &g, &r->err));
    rig_ok(r, lap_opencl_ops.buffer_read(r->queue, g.c, 0, c, nc * 4, &r->err));
    assert_memory_equal(c, want, nc * 4); /* also what lies around C */
    lap_opencl_ops.buffer_free(g.a);
    lap_opencl_ops.buffer_free(g.b);
    lap_opencl_ops.buffer_free(g.c);
    free(a);
    free(b);
    free(c);
    free(want);
}

static void test_products(void **state) {
    rig *r = *state;
    const size_t sizes[][4] = {{1, 1, 1, 0}, {7, 5, 9, 2}, {64, 64, 32, 0}, {33, 130, 17, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int transposed = 0; transposed < 2; transposed++)
            for (int beta = 0; beta < 2; beta++)
                check(r, (shape){sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3],
                                 transposed == 1, (float)beta});
}

/* Large enough for the kernels that copy and pad first (several commands for one product). */
static void test_large_product(void **state) {
    check(*state, (shape){400, 401, 210, 1, true, 1.0f});
    check(*state, (shape){400, 401, 210, 1, false, 0.0f});
}

static void test_name_and_errors(void **state) {
    rig *r = *state;
    const char *why = NULL, *name = lap_opencl_ops.gemm_name(r->device, &why);
    if (!name) fail_msg("%s", why);
    assert_int_equal(strncmp(name, "CLBlast", 7), 0);
    void *buffer = rig_buffer(r, 64);
    lap_raw_gemm g = {.m = 4,
                      .n = 4,
                      .k = 4,
                      .a = buffer,
                      .b = buffer,
                      .c = buffer,
                      .lda = 4,
                      .ldb = 4,
                      .ldc = 3};
    assert_int_equal(lap_opencl_ops.gemm(r->queue, &g, &r->err), LAP_E_LAUNCH);
    assert_string_equal(r->err.call, "CLBlastSgemm");
    assert_string_equal(r->err.native_name, "CLBlastInvalidLeadDimC");
    assert_non_null(strstr(r->err.message, "4 x 4 x 4"));
    lap_opencl_ops.buffer_free(buffer);
}

/* A product that is the first command after a record is timed from before its first kernel, and
 * costs an extra command only then. */
static void test_timed(void **state) {
    rig *r = *state;
    const size_t n = 400, bytes = n * n * 4;
    lap_raw_gemm g = {.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    g.a = g.b = rig_buffer(r, bytes);
    g.c = rig_buffer(r, bytes);
    rig_ok(r, lap_opencl_ops.buffer_fill(r->queue, g.a, 0, bytes, 0, &r->err));
    rig_ok(r, lap_opencl_ops.gemm(r->queue, &g, &r->err)); /* compiles */
    rig_ok(r, lap_opencl_ops.queue_finish(r->queue, &r->err));
    void *a = NULL, *b = NULL;
    rig_ok(r, lap_opencl_ops.event_new(r->device, &a, &r->err));
    rig_ok(r, lap_opencl_ops.event_new(r->device, &b, &r->err));

    staged.fills = 0;
    rig_ok(r, lap_opencl_ops.gemm(r->queue, &g, &r->err));
    assert_int_equal(staged.fills, 0);
    rig_ok(r, lap_opencl_ops.event_record(a, r->queue, &r->err));
    rig_ok(r, lap_opencl_ops.gemm(r->queue, &g, &r->err));
    assert_int_equal(staged.fills, 1);
    rig_ok(r, lap_opencl_ops.gemm(r->queue, &g, &r->err));
    assert_int_equal(staged.fills, 1);
    rig_ok(r, lap_opencl_ops.event_record(b, r->queue, &r->err));
    rig_ok(r, lap_opencl_ops.event_wait(b, &r->err));
    double seconds = 0;
    rig_ok(r, lap_opencl_ops.event_elapsed(a, b, &seconds, &r->err));
    assert_true(seconds > 1e-5 && seconds < 60);
    lap_opencl_ops.event_free(a);
    lap_opencl_ops.event_free(b);
    lap_opencl_ops.buffer_free(g.a);
    lap_opencl_ops.buffer_free(g.c);
}

/* The library caches programs by context; a second device must not meet the first one's. */
static void test_reopened_device(void **state) {
    rig *r = *state;
    for (size_t i = 0; i < 2; i++) {
        rig other = {.info = r->info};
        rig_ok(&other, lap_opencl_ops.open(&other.info, &other.device, &other.err));
        rig_ok(&other, lap_opencl_ops.queue_new(other.device, &other.queue, &other.err));
        check(&other, (shape){16, 16, 16, 0, false, 0.0f});
        lap_opencl_ops.queue_free(other.queue);
        lap_opencl_ops.close(other.device);
        assert_int_equal(staged.caches_cleared, i + 1);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(test_products, rig_unstage),
    cmocka_unit_test_teardown(test_large_product, rig_unstage),
    cmocka_unit_test_teardown(test_name_and_errors, rig_unstage),
    cmocka_unit_test_teardown(test_timed, rig_unstage),
    cmocka_unit_test_teardown(test_reopened_device, rig_unstage),
};

RIG_MAIN(tests)
