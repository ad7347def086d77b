/* Weight layouts of the tensor-core rows: every weight is where the kernels look for it, once, in
 * the storage type, and everything else is zero. Places are computed here as the kernels do, not
 * as the packers do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/half.h"
#include "base/rng.h"
#include "kernel/pack_mma.h"
#include "kernel/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lap_op conv(int c, int cs, int k, int r) {
    return (lap_op){.kind = LAP_OP_CONV,
                    .residual = -1,
                    .in = {c, 8, 8, cs},
                    .out = {k, 8, 8, (k + 3) / 4 * 4},
                    .r = r,
                    .s = r,
                    .stride = 1,
                    .pad = r / 2};
}

/* Different everywhere, exact in every storage type used here. */
static float weight(size_t i) {
    return (float)(i % 251) + 1;
}

static float *weights_of(size_t count, size_t from) {
    float *w = malloc(count * sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < count; i++)
        w[i] = weight(from + i);
    return w;
}

static float element(lap_precision precision, const void *packed, size_t i) {
    if (precision == LAP_FP16) return lap_half_to_float(((const uint16_t *)packed)[i]);
    if (precision == LAP_BF16) return lap_bf16_to_float(((const uint16_t *)packed)[i]);
    return ((const float *)packed)[i];
}

/* Element `at` of the depth in row n of a step, as ldmatrix will find it. */
static size_t place(size_t step_row, size_t n, size_t at, int rowb, size_t bytes) {
    size_t piece = at * bytes / 16, inside = at * bytes % 16;
    size_t mask = rowb == 128 ? n % 8 : n / 2 % 4;
    return (step_row * (size_t)rowb + (piece ^ mask) * 16 + inside) / bytes;
}

static void check_layout(lap_precision precision, int rowb, int bn, bool halo, bool down,
                         size_t depth) {
    lap_op op = conv((int)depth, (int)depth, 72, 3), partner = conv(64, 64, 72, 1);
    const lap_op *second = down ? &partner : NULL;
    lap_mma_layout layout = {precision, bn, rowb, halo};
    size_t e = lap_element_bytes(precision), chunk = (size_t)rowb / e, width = (size_t)bn;
    size_t chunks = (depth + chunk - 1) / chunk, tails = down ? 64 / chunk : 0,
           steps = chunks * 9 + tails;
    size_t blocks = (72 + width - 1) / width;
    assert_int_equal(lap_pack_mma_bytes(&op, second, &layout),
                     blocks * steps * width * (size_t)rowb);
    float *w = weights_of(72 * depth * 9, 0), *w2 = weights_of((size_t)72 * 64, 5);
    size_t count = lap_pack_mma_bytes(&op, second, &layout) / e;
    void *packed = malloc(count * e + 16);
    assert_non_null(packed);
    memset(packed, 0x5a, count * e + 16);
    lap_pack_mma(&op, w, second, w2, &layout, packed);
    for (size_t i = 0; i < 16; i++)
        assert_int_equal(((unsigned char *)packed)[count * e + i], 0x5a);
    size_t found = 0;
    for (size_t k = 0; k < 72; k++)
        for (size_t step = 0; step < steps; step++)
            for (size_t at = 0; at < chunk; at++) {
                float want;
                if (step >= chunks * 9) {
                    want = w2[k * 64 + (step - chunks * 9) * chunk + at];
                } else {
                    size_t tap = halo ? step % 9 : step / chunks;
                    size_t c = (halo ? step / 9 : step % chunks) * chunk + at;
                    want = c < depth ? w[(k * depth + c) * 9 + tap] : 0;
                }
                size_t n = k % width, row = (k / width * steps + step) * width + n;
                float got = element(precision, packed, place(row, n, at, rowb, e));
                if (got != want)
                    fail_msg("rowb %d bn %d halo %d: channel %zu step %zu at %zu: %g, not %g", rowb,
                             bn, halo, k, step, at, (double)got, (double)want);
                found += want != 0;
            }
    size_t nonzero = 0;
    for (size_t i = 0; i < count; i++)
        nonzero += element(precision, packed, i) != 0;
    assert_int_equal(nonzero, found); /* no weight is zero, so the rest is padding */
    free(packed);
    free(w);
    free(w2);
}

static void layouts(void **state) {
    (void)state;
    static const lap_precision precisions[] = {LAP_TF32, LAP_FP16, LAP_BF16};
    for (size_t p = 0; p < 3; p++)
        for (int rowb = 64; rowb <= 128; rowb *= 2)
            for (int halo = 0; halo < 2; halo++)
                for (int down = 0; down < 2; down++)
                    check_layout(precisions[p], rowb, p == 1 ? 64 : 32, halo != 0, down != 0, 128);
    /* The last chunk of a tap is partly beyond the channels. */
    for (size_t p = 0; p < 3; p++)
        for (int rowb = 64; rowb <= 128; rowb *= 2)
            check_layout(precisions[p], rowb, 64, false, false, 88);
}

/* fp32x3: channel `at` of a row's depth is two halves, 32 bytes apart, that add up to the weight
 * times a power of two which brings the channel's largest below 2^15; what undoes it stands behind
 * all blocks. */
static void split_weights(void **state) {
    (void)state;
    enum { K = 72, C = 64, C2 = 32, BN = 64, COLUMNS = 128 };
    lap_op op = conv(C, C, K, 3), partner = conv(C2, C2, K, 1);
    float *w = malloc(sizeof(float) * K * C * 9), *w2 = malloc(sizeof(float) * K * C2);
    assert_true(w && w2);
    for (size_t i = 0; i < (size_t)K * C * 9; i++)
        w[i] = ldexpf((float)lap_rng_uniform(1, 0, i) - 0.5f, (int)(i / (C * 9)) - 36);
    for (size_t i = 0; i < (size_t)K * C2; i++)
        w2[i] = ldexpf((float)lap_rng_uniform(1, 1, i) - 0.5f, (int)(i / C2) - 36);
    memset(w + (size_t)5 * C * 9, 0, sizeof(float) * C * 9); /* a channel of zeros */
    memset(w2 + (size_t)5 * C2, 0, sizeof(float) * C2);
    for (int rowb = 64; rowb <= 128; rowb *= 2) {
        lap_mma_layout layout = {LAP_FP32X3, BN, rowb, true};
        size_t chunk = (size_t)rowb / 4, steps = C / chunk * 9 + C2 / chunk;
        size_t bytes = lap_pack_mma_bytes(&op, &partner, &layout);
        assert_int_equal(bytes, COLUMNS * (steps * (size_t)rowb + sizeof(float)));
        uint16_t *packed = malloc(bytes);
        assert_non_null(packed);
        memset(packed, 0x5a, bytes);
        lap_pack_mma(&op, w, &partner, w2, &layout, packed);
        const float *scales = (const float *)(packed + COLUMNS * steps * (size_t)rowb / 2);
        for (size_t k = 0; k < K; k++) {
            double most = 0, scale = (double)scales[k];
            for (size_t i = 0; i < steps * chunk; i++) {
                size_t step = i / chunk, at = i % chunk, q = at / 16 * 32 + at % 16;
                bool tail = step >= C / chunk * 9;
                size_t c = (tail ? step - C / chunk * 9 : step / 9) * chunk + at;
                double want = (double)(tail ? w2[k * C2 + c] : w[(k * C + c) * 9 + step % 9]);
                size_t row = (k / BN * steps + step) * BN + k % BN;
                double high = (double)element(LAP_FP16, packed, place(row, k % BN, q, rowb, 2));
                double low = (double)element(LAP_FP16, packed, place(row, k % BN, q + 16, rowb, 2));
                assert_true(fabs(low) <= 0x1p-11 * fabs(high));
                assert_true(fabs((high + low) * scale - want) <=
                            0x1p-22 * fabs(want) + 0x1p-25 * scale);
                most = fmax(most, fabs(high));
            }
            if (k == 5)
                assert_true(most == 0 && scale == 1);
            else
                assert_true(most >= 0x1p13 && most <= 0x1p15);
        }
        for (size_t k = K; k < COLUMNS; k++)
            assert_true(scales[k] == 0);
        free(packed);
    }
    free(w);
    free(w2);
}

static void stem(void **state) {
    (void)state;
    lap_op op = conv(3, 4, 64, 7);
    float *w = weights_of((size_t)64 * 3 * 49, 0);
    for (int p = LAP_TF32; p <= LAP_BF16; p++) {
        lap_precision precision = (lap_precision)p;
        size_t e = lap_element_bytes(precision), count = (size_t)7 * 64 * 32;
        assert_int_equal(lap_pack_stem_bytes(&op, precision), count * e);
        void *packed = malloc(count * e);
        assert_non_null(packed);
        memset(packed, 0x5a, count * e);
        lap_pack_stem(&op, w, precision, packed);
        for (size_t k = 0; k < 64; k++)
            for (size_t r = 0; r < 7; r++)
                for (size_t at = 0; at < 32; at++) {
                    size_t s = at / 4, c = at % 4;
                    float want = s < 7 && c < 3 ? w[((k * 3 + c) * 7 + r) * 7 + s] : 0;
                    size_t i = place(r * 64 + k, k, at, (int)(32 * e), e);
                    assert_true(element(precision, packed, i) == want);
                }
        free(packed);
    }
    free(w);
}

/* Stored elements are rounded, not cut off. */
static void stored_elements(void **state) {
    (void)state;
    uint16_t narrow[2] = {0, 0};
    float wide[2] = {0, 0};
    lap_element_put(LAP_FP16, narrow, 1, 1 + 0x1.8p-11f);
    assert_int_equal(narrow[0], 0);
    assert_int_equal(narrow[1], 0x3C01);
    lap_element_put(LAP_BF16, narrow, 0, 1 + 0x1.8p-8f);
    assert_int_equal(narrow[0], 0x3F81);
    lap_element_put(LAP_TF32, wide, 1, 1 + 0x1.8p-11f);
    assert_true(wide[0] == 0 && wide[1] == 1 + 0x1p-10f);
    lap_element_put(LAP_FP32, wide, 0, 1 + 0x1p-23f);
    assert_true(wide[0] == 1 + 0x1p-23f);
}

/* Rows need the feature; tiles that fit neither the op nor the device are refused; local memory is
 * asked for where the language has dynamic memory only. */
static void rows_need_the_feature(void **state) {
    (void)state;
    lap_op op = conv(64, 64, 64, 3), first = conv(3, 4, 64, 7);
    first.stride = 2;
    lap_device_info gpu = {.type = LAP_DEVICE_GPU,
                           .language = "cu",
                           .units = 100,
                           .local_bytes = 49152,
                           .local_optin_bytes = 232448,
                           .max_group_size = 1024,
                           .max_group_dim = {1024, 1024, 64}};
    lap_case c = {.op = &op, .device = &gpu, .precision = LAP_FP16, .n = 64};
    const lap_kernel_row *row = lap_kernel_find("conv_mma");
    const lap_kernel_row *stem_row = lap_kernel_find("stem_mma");
    assert_false(lap_kernel_can_run(row, &c, false));
    c.features = LAP_FEATURE_MMA(LAP_BF16);
    assert_false(lap_kernel_can_run(row, &c, false));
    c.features = LAP_FEATURE_MMA(LAP_FP16);
    assert_ptr_equal(lap_kernel_choose(&c, false, false), row);
    assert_true(row->valid(&c));
    lap_grid grid;
    assert_true(row->stages[0].grid(&c, &grid));
    assert_true(grid.dynamic_local_bytes > 0 && grid.dynamic_local_bytes <= 232448);
    strcpy(gpu.language, "cl");
    assert_ptr_equal(lap_kernel_choose(&c, false, false), row);
    assert_true(row->stages[0].grid(&c, &grid));
    assert_int_equal(grid.dynamic_local_bytes, 0);
    uint64_t listed = lap_row_local_limit(&c); /* more only where it was seen to be there */
    c.features |= LAP_FEATURE_LARGE_LOCAL;
    assert_true(listed == 49152 && lap_row_local_limit(&c) == 232448);
    row->defaults(&c, &c.params);
    assert_true(row->valid(&c));
    c.features = LAP_FEATURE_MMA(LAP_FP16);
    row->defaults(&c, &c.params);
    op.in.cs = op.in.c = 20; /* no whole chunk */
    assert_false(lap_kernel_can_run(row, &c, false));
    op = conv(64, 64, 64, 3);
    op.stride = 2; /* the line of pixels is no longer shared; gathering is left */
    op.out.h = op.out.w = 4;
    assert_true(lap_kernel_can_run(row, &c, false));
    row->defaults(&c, &c.params);
    assert_int_equal(c.params.value[6], 0);
    c.params.value[6] = 1;
    assert_false(row->valid(&c));
    c.op = &first;
    assert_false(lap_kernel_can_run(row, &c, false));
    assert_true(lap_kernel_can_run(stem_row, &c, false));
    gpu.local_bytes = 32768; /* 36 KiB are needed */
    assert_false(lap_kernel_can_run(stem_row, &c, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),
        cmocka_unit_test(split_weights),
        cmocka_unit_test(stem),
        cmocka_unit_test(stored_elements),
        cmocka_unit_test(rows_need_the_feature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
