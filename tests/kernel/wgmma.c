/* The rows on warpgroup instructions: what a wgmma descriptor names is where packer and kernels put
 * it, by a model of the hardware's addresses; and where the rows are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/half.h"
#include "kernel/pack_mma.h"
#include "kernel/rows.h"

#include <stdlib.h>
#include <string.h>

#define HALF (1ull << 62 | 64ull << 32 | 1ull << 16) /* the kernels' DESCRIPTOR */

/* Address of byte `at` (of 32) of row n of an operand whose depth is contiguous: rows follow each
 * other in eights, 8 rows of 128 bytes at a stride that the descriptor tells; swizzle mode 1
 * exchanges bits 4 to 6 of the address with the three above it. */
static uint64_t address(uint64_t descriptor, uint64_t n, uint64_t at) {
    uint64_t start = (descriptor & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
    uint64_t linear = start + n / 8 * stride + n % 8 * 128 + at;
    assert_int_equal(descriptor >> 62, 1);
    assert_int_equal(descriptor >> 49 & 7, 0); /* no base offset: addresses count, not rows */
    return linear ^ (linear >> 7 & 7) << 4;
}

static lap_op conv(int c, int k, int size, int r) {
    return (lap_op){.kind = LAP_OP_CONV,
                    .residual = -1,
                    .in = {c, size, size, c},
                    .out = {k, size, size, k},
                    .r = r,
                    .s = r,
                    .stride = 1,
                    .pad = r / 2};
}

static float weight(size_t i) {
    return (float)(i % 241) + 1;
}

/* A stage is a step's block of packed weights, copied as it is to a multiple of 1024 bytes. */
static void weights_are_where_descriptors_point(void **state) {
    (void)state;
    enum { C = 128, K = 264, BASE = 3 * 1024 };
    lap_op op = conv(C, K, 8, 3);
    float *w = malloc(sizeof(float) * K * C * 9);
    assert_non_null(w);
    for (size_t i = 0; i < (size_t)K * C * 9; i++)
        w[i] = weight(i);
    for (size_t bn = 64; bn <= 256; bn *= 2)
        for (int halo = 0; halo < 2; halo++) {
            lap_mma_layout layout = {LAP_FP16, (int)bn, 128, halo != 0};
            size_t bytes = lap_pack_mma_bytes(&op, NULL, &layout), steps = C / 64 * 9;
            char *packed = malloc(bytes);
            assert_non_null(packed);
            lap_pack_mma(&op, w, NULL, NULL, &layout, packed);
            for (size_t k = 0; k < K; k++)
                for (size_t i = 0; i < steps * 64; i++) {
                    size_t step = i / 64, at = i % 64;
                    const char *stage = packed + (k / bn * steps + step) * bn * 128;
                    uint64_t descriptor = (HALF | BASE >> 4) + at / 16 * 2;
                    uint64_t from = address(descriptor, k % bn, at % 16 * 2) - BASE;
                    uint16_t got;
                    assert_true(from < bn * 128);
                    memcpy(&got, stage + from, sizeof got);
                    size_t tap = halo ? step % 9 : step / (C / 64);
                    size_t c = (halo ? step / 9 : step % (C / 64)) * 64 + at;
                    assert_true(lap_half_to_float(got) == w[(k * C + c) * 9 + tap]);
                }
            free(packed);
        }
    free(w);
}

/* conv_wgmma_swap: a view of the line of pixels may begin at any of its rows. Row i of the line has
 * its pieces at c ^ (i & 7), as the kernel's copies put them. */
static void views_of_a_line(void **state) {
    (void)state;
    enum { LINE = 73 * 1024, ROWS = 400 };
    for (uint64_t shift = 0; shift < ROWS - 256; shift++)
        for (uint64_t k = 0; k < 4; k++) {
            uint64_t descriptor = (HALF | LINE >> 4) + shift * 8 + k * 2;
            for (uint64_t n = 0; n < 256; n++)
                for (uint64_t at = 0; at < 32; at += 2) {
                    uint64_t row = shift + n, piece = k * 2 + at / 16;
                    uint64_t want = LINE + row * 128 + ((piece ^ (row & 7)) << 4) + at % 16;
                    if (address(descriptor, n, at) != want)
                        fail_msg("shift %d, depth %d, row %d: a byte is not where it was put",
                                 (int)shift, (int)k, (int)n);
                }
        }
}

static lap_device_info hopper(void) {
    return (lap_device_info){.type = LAP_DEVICE_GPU,
                             .language = "cu",
                             .units = 132,
                             .cc_major = 9,
                             .local_bytes = 49152,
                             .local_optin_bytes = 232448,
                             .max_group_size = 1024,
                             .max_group_dim = {1024, 1024, 64}};
}

/* CUDA, compute capability 9.0, tensor cores seen to work, and work for the whole device. */
static void rows_are_for_a_full_hopper(void **state) {
    (void)state;
    static const char *const ids[] = {"conv_wgmma", "conv_wgmma_swap"};
    lap_op op = conv(64, 64, 56, 3);
    for (size_t i = 0; i < 2; i++) {
        const lap_kernel_row *row = lap_kernel_find(ids[i]);
        lap_device_info gpu = hopper();
        lap_case c = {.op = &op, .device = &gpu, .precision = LAP_FP16, .n = 256};
        assert_non_null(row);
        assert_false(lap_kernel_can_run(row, &c, false));
        c.features = LAP_FEATURE_MMA(LAP_FP16);
        assert_true(lap_kernel_can_run(row, &c, false));
        row->defaults(&c, &c.params);
        assert_true(row->valid(&c));
        lap_grid grid;
        assert_true(row->stages[0].grid(&c, &grid));
        assert_true(grid.dynamic_local_bytes <= gpu.local_optin_bytes);
        gpu.cc_minor = 3;
        assert_false(lap_kernel_can_run(row, &c, false));
        gpu = hopper();
        gpu.cc_major = 12;
        assert_false(lap_kernel_can_run(row, &c, false));
        gpu = hopper();
        strcpy(gpu.language, "cl");
        assert_false(lap_kernel_can_run(row, &c, false));
        gpu = hopper();
        gpu.local_optin_bytes = 32768;
        assert_false(lap_kernel_can_run(row, &c, false));
        gpu = hopper();
        c.n = 1;
        assert_false(lap_kernel_can_run(row, &c, false));
        c.n = 256;
        op.in.c = op.in.cs = 48; /* no whole chunk */
        assert_false(lap_kernel_can_run(row, &c, false));
        op = conv(64, 64, 56, 3);
    }
}

static bool takes(const char *id, const lap_op *op, size_t n, const lap_device_info *gpu) {
    lap_case c = {.op = op, .device = gpu, .precision = LAP_FP16, .n = n};
    c.features = LAP_FEATURE_MMA(LAP_FP16) | LAP_FEATURE_WGMMA(LAP_FP16);
    return lap_kernel_can_run(lap_kernel_find(id), &c, false);
}

/* Fewer groups than multiprocessors: conv_mma's, which can share a deep tile among them. */
static void little_work_is_for_others(void **state) {
    (void)state;
    lap_device_info gpu = hopper();
    lap_op stage1 = conv(64, 64, 56, 3), stage3 = conv(256, 256, 14, 3),
           stage4 = conv(512, 512, 7, 3), one = conv(256, 64, 56, 1);
    assert_false(takes("conv_wgmma", &stage1, 1, &gpu));
    assert_true(takes("conv_wgmma", &stage1, 2, &gpu));   /* 98 tiles of 64x64 */
    assert_true(takes("conv_wgmma", &stage3, 8, &gpu));   /* 100 */
    assert_false(takes("conv_wgmma", &stage3, 4, &gpu));  /* 52 */
    assert_false(takes("conv_wgmma", &stage4, 16, &gpu)); /* 104, but deep */
    assert_true(takes("conv_wgmma", &stage4, 64, &gpu));
    assert_true(takes("conv_wgmma", &one, 256, &gpu));
}

/* NVIDIA's OpenCL was seen to refuse more than 256 work-items of it. */
static void groups_are_smaller_in_opencl(void **state) {
    (void)state;
    static const char *const ids[] = {"conv_wgmma", "conv_wgmma_swap"};
    lap_op ops[] = {conv(64, 64, 56, 3), conv(128, 128, 28, 3), conv(256, 256, 14, 3),
                    conv(512, 512, 7, 3)};
    lap_device_info gpu = hopper();
    uint32_t most[2] = {0, 0};
    for (int cl = 0; cl < 2; cl++) {
        strcpy(gpu.language, cl ? "cl" : "cu");
        for (size_t i = 0; i < 2; i++)
            for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++)
                for (size_t n = 8; n <= 512; n *= 2) {
                    lap_case c = {.op = &ops[o], .device = &gpu, .precision = LAP_FP16, .n = n};
                    c.features = LAP_FEATURE_MMA(LAP_FP16) | LAP_FEATURE_WGMMA(LAP_FP16) |
                                 LAP_FEATURE_LARGE_LOCAL;
                    const lap_kernel_row *row = lap_kernel_find(ids[i]);
                    lap_grid grid;
                    if (!lap_kernel_can_run(row, &c, false)) continue;
                    row->defaults(&c, &c.params);
                    assert_true(row->stages[0].grid(&c, &grid));
                    if (grid.local[0] > most[cl]) most[cl] = grid.local[0];
                }
    }
    assert_int_equal(most[0], 384);
    assert_int_equal(most[1], 256);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_where_descriptors_point),
        cmocka_unit_test(views_of_a_line),
        cmocka_unit_test(rows_are_for_a_full_hopper),
        cmocka_unit_test(little_work_is_for_others),
        cmocka_unit_test(groups_are_smaller_in_opencl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
