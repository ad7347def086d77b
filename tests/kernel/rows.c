/* The kernel list as data: order, choice, defines, parameter text, grids and weight packers. No
 * device is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "kernel/pack_gpu.h"
#include "kernel/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static lap_device_info device(lap_device_type type, const char *language, uint32_t simd_width) {
    lap_device_info info = {.type = type,
                            .simd_width = simd_width,
                            .units = 4,
                            .memory_bytes = (uint64_t)8 << 30,
                            .max_alloc_bytes = (uint64_t)2 << 30,
                            .local_bytes = 32768,
                            .local_optin_bytes = 32768,
                            .max_group_size = 1024,
                            .max_group_dim = {1024, 1024, 64}};
    strcpy(info.language, language);
    return info;
}

static lap_op conv(int c, int cs, int h, int w, int k, int ks, int r, int s) {
    return (lap_op){.kind = LAP_OP_CONV,
                    .residual = -1,
                    .in = {c, h, w, cs},
                    .out = {k, h + 2 - r + 1, w + 2 - s + 1, ks},
                    .r = r,
                    .s = s,
                    .stride = 1,
                    .pad = 1};
}

static lap_op fc(int c, int k, int ks) {
    return (lap_op){.kind = LAP_OP_FC,
                    .residual = -1,
                    .in = {c, 1, 1, c},
                    .out = {k, 1, 1, ks},
                    .r = 1,
                    .s = 1,
                    .stride = 1};
}

static void list_is_well_formed(void **state) {
    (void)state;
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    int naive_seen[LAP_OP_KIND_COUNT] = {0};
    for (size_t i = 0; i < count; i++) {
        const lap_kernel_row *row = rows[i];
        assert_ptr_equal(lap_kernel_find(row->id), row); /* ids are unique */
        assert_non_null(row->about);
        assert_true(row->stage_count >= 1 && row->stage_count <= LAP_MAX_STAGES);
        assert_true(row->tunable_count <= LAP_MAX_TUNABLES);
        assert_non_null(row->accepts);
        assert_non_null(row->defaults);
        assert_non_null(row->valid);
        bool fused = row->fusion != LAP_FUSE_NONE;
        bool packs = fused ? row->pack_fused != NULL : row->pack != NULL;
        assert_true((row->packed_bytes != NULL) == packs);
        assert_false(naive_seen[row->kind]); /* naive is the last of its kind */
        if (row->naive) naive_seen[row->kind] = 1;
        bool has_weights = row->kind == LAP_OP_CONV || row->kind == LAP_OP_FC ||
                           row->kind == LAP_OP_DWCONV || fused;
        assert_true(packs == has_weights);
    }
    for (int kind = 0; kind < LAP_OP_KIND_COUNT; kind++)
        assert_true(naive_seen[kind]);
    assert_null(lap_kernel_find("no such row"));
}

static void choice_follows_device(void **state) {
    (void)state;
    lap_op op = conv(64, 64, 7, 7, 64, 64, 3, 3), full = fc(64, 100, 100);
    lap_op large = conv(64, 64, 14, 14, 64, 64, 3, 3);
    lap_device_info cpu = device(LAP_DEVICE_CPU, "cl", 16), odd = device(LAP_DEVICE_OTHER, "cl", 0);
    lap_case c = {.op = &op, .device = &cpu, .n = 1};
    assert_string_equal(lap_kernel_choose(&c, false, true)->id, "conv_direct_v");
    assert_int_equal(c.params.value[0], 16);
    assert_string_equal(lap_kernel_choose(&c, true, true)->id, "conv_naive");
    c.op = &large;
    assert_string_equal(lap_kernel_choose(&c, false, true)->id, "conv_winograd_v");
    c.n = 2; /* two images have tiles enough for the transformed weights of F(4x4) */
    assert_string_equal(lap_kernel_choose(&c, false, true)->id, "conv_winograd4_v");
    c.n = 1;
    c.op = &op;
    c.device = &odd; /* the unfolded convolution is a variant and never chosen */
    assert_string_equal(lap_kernel_choose(&c, false, true)->id, "conv_naive");
    assert_true(lap_kernel_can_run(lap_kernel_find("conv_im2col_gemm"), &c, true));
    assert_false(lap_kernel_can_run(lap_kernel_find("conv_im2col_gemm"), &c, false));
    c = (lap_case){.op = &full, .device = &cpu, .n = 1};
    assert_string_equal(lap_kernel_choose(&c, false, true)->id, "fc_gemm");
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "fc_v");
    strcpy(cpu.language, "cu"); /* CPU rows exist in OpenCL C only */
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "fc_naive");
    c.precision = LAP_BF16;
    assert_string_equal(lap_kernel_choose(&c, true, false)->id, "fc_naive");
    c.precision = LAP_FP32X3;
    assert_null(lap_kernel_choose(&c, true, false));
    c.features = LAP_FEATURE_MMA(LAP_FP32X3); /* its elements are floats */
    assert_string_equal(lap_kernel_choose(&c, true, false)->id, "fc_naive");
    lap_define defines[LAP_MAX_DEFINES];
    size_t count = lap_kernel_defines(lap_kernel_find("fc_naive"), &c, defines);
    assert_int_equal(defines[count - 1].value, LAP_FP32);
    c.features = 0;
    c.precision = LAP_TF32; /* only what tensor cores could do as well */
    assert_null(lap_kernel_choose(&c, true, false));
    c.features = LAP_FEATURE_MMA(LAP_TF32);
    assert_string_equal(lap_kernel_choose(&c, true, false)->id, "fc_naive");
}

/* What EfficientNet asks of tensor cores, without a preference. */
static void smooth_and_scaled_by_tensor_cores(void **state) {
    (void)state;
    lap_op op = conv(24, 24, 14, 14, 144, 144, 1, 1), scale = {.kind = LAP_OP_SCALE};
    op.pad = 0;
    op.out.h = op.out.w = 14;
    op.act = LAP_ACT_SILU;
    lap_device_info gpu = device(LAP_DEVICE_GPU, "cu", 32);
    gpu.local_bytes = 49152;
    gpu.local_optin_bytes = 232448;
    lap_case c = {.op = &op, .device = &gpu, .precision = LAP_FP16, .n = 1};
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_igemm");
    for (int i = 0; i < 3; i++) {
        static const lap_precision precisions[] = {LAP_FP16, LAP_TF32, LAP_BF16};
        c.precision = precisions[i];
        c.features = LAP_FEATURE_MMA(precisions[i]);
        c.fusion = LAP_FUSE_NONE;
        c.partner = NULL;
        op.act = LAP_ACT_SILU;
        assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_mma_smooth");
        c.fusion = LAP_FUSE_SCALE;
        c.partner = &scale;
        op.act = LAP_ACT_NONE;
        assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_mma_scale");
    }
    c.precision = LAP_FP32X3; /* fp32's kernels */
    c.features = LAP_FEATURE_MMA(LAP_FP32X3);
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_igemm_scale");
}

static void unfolded_input_must_fit(void **state) {
    (void)state;
    lap_op op = conv(64, 64, 56, 56, 64, 64, 3, 3);
    lap_device_info cpu = device(LAP_DEVICE_CPU, "cl", 16);
    lap_case c = {.op = &op, .device = &cpu, .n = 1};
    const lap_kernel_row *row = lap_kernel_find("conv_im2col_gemm");
    uint64_t image = (uint64_t)56 * 56 * 9 * 64 * 4;
    assert_true(row->scratch_bytes(&c) == image);
    c.n = (1 << 30) / image;
    assert_true(row->accepts(&c));
    cpu.memory_bytes = (uint64_t)4 << 30; /* a quarter of the memory is the limit */
    assert_true(row->accepts(&c));
    c.n += 1;
    assert_false(row->accepts(&c));
    cpu.memory_bytes = (uint64_t)64 << 30;
    assert_true(row->accepts(&c));
    cpu.max_alloc_bytes = 1 << 30;
    assert_false(row->accepts(&c));
    c.n = (uint64_t)1 << 32; /* no wrap */
    assert_true(row->scratch_bytes(&c) == image << 32);
}

static void expect_defines(const lap_define *d, size_t count, const char *expected) {
    char text[1024] = "";
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s=%d", i ? " " : "", d[i].name,
                 (int)d[i].value);
    }
    assert_string_equal(text, expected);
}

static void defines_in_fixed_order(void **state) {
    (void)state;
    lap_define d[LAP_MAX_DEFINES];
    lap_device_info cpu = device(LAP_DEVICE_CPU, "cl", 8);
    lap_op op = conv(3, 4, 10, 20, 5, 8, 3, 5);
    lap_case c = {.op = &op, .device = &cpu, .n = 7};
    const lap_kernel_row *row = lap_kernel_find("conv_direct_v");
    row->defaults(&c, &c.params);
    c.params = (lap_params){{8, 6, 2, 1, 0}};
    expect_defines(d, lap_kernel_defines(row, &c, d),
                   "C=3 CS=4 H=10 W=20 K=5 KS=8 P=10 Q=18 R=3 S=5 STRIDE=1 PAD=1 "
                   "V=8 PIXELS=6 BLOCKS=2 UNROLL=1 IMAGES_INNER=0 PRECISION=0");
    char text[128];
    lap_kernel_params_text(row, &c.params, text, sizeof text);
    assert_string_equal(text, "V=8 PIXELS=6 BLOCKS=2 UNROLL=1 IMAGES_INNER=0");
    char tiny[9];
    lap_kernel_params_text(row, &c.params, tiny, sizeof tiny);
    assert_string_equal(tiny, "V=8 PIXE");
    lap_op full = fc(64, 100, 100);
    c = (lap_case){.op = &full, .device = &cpu, .precision = LAP_FP32, .n = 1};
    row = lap_kernel_find("fc_naive");
    expect_defines(d, lap_kernel_defines(row, &c, d), "C=64 CS=64 K=100 KS=100 PRECISION=0");
    lap_kernel_params_text(row, &c.params, text, sizeof text);
    assert_string_equal(text, "");
    lap_op pool = {.kind = LAP_OP_MAXPOOL,
                   .in = {6, 9, 11, 8},
                   .out = {6, 5, 6, 8},
                   .r = 3,
                   .s = 3,
                   .stride = 2,
                   .pad = 1};
    c.op = &pool;
    row = lap_kernel_find("maxpool_naive");
    expect_defines(d, lap_kernel_defines(row, &c, d),
                   "C=6 CS=8 H=9 W=11 P=5 Q=6 R=3 S=3 STRIDE=2 PAD=1 PRECISION=0");
    pool.kind = LAP_OP_AVGPOOL;
    row = lap_kernel_find("avgpool_naive");
    expect_defines(d, lap_kernel_defines(row, &c, d), "C=6 CS=8 H=9 W=11 PRECISION=0");
}

static void linear_grid_respects_limits(void **state) {
    (void)state;
    lap_device_info info = device(LAP_DEVICE_CPU, "cl", 8);
    lap_op op = conv(3, 4, 10, 20, 5, 8, 3, 3);
    lap_case c = {.op = &op, .device = &info, .n = 70000};
    lap_grid grid;
    assert_true(lap_row_grid_linear(&c, 129, 64, &grid));
    assert_int_equal(grid.groups[0], 3);
    assert_int_equal(grid.groups[1], 65535); /* kernels walk over the rest */
    assert_int_equal(grid.local[0], 64);
    info.max_group_dim[0] = 1;
    assert_true(lap_row_grid_linear(&c, 129, 64, &grid));
    assert_int_equal(grid.groups[0], 129);
    assert_int_equal(grid.local[0], 1);
    assert_false(lap_row_grid_linear(&c, (uint64_t)1 << 31, 64, &grid));
    assert_false(lap_row_grid_linear(&c, 0, 64, &grid));
    c.n = 0;
    assert_false(lap_row_grid_linear(&c, 129, 64, &grid));
}

/* Defaults must be allowed for any shape, and packers must write exactly what they announced. */
static void defaults_valid_and_packers_exact(void **state) {
    (void)state;
    static const int shapes[][4] = {
        {3, 10, 7, 1}, {20, 100, 57, 3}, {64, 64, 224, 5}, {4, 1, 1, 3}};
    static const uint32_t widths[] = {0, 1, 4, 8, 16, 32, 64};
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count * 4 * 7 * 2; i++) {
        const lap_kernel_row *row = rows[i % count];
        const int *s = shapes[i / count % 4];
        lap_device_info info = device(i / count / 28 ? LAP_DEVICE_GPU : LAP_DEVICE_CPU, "cl",
                                      widths[i / count / 4 % 7]);
        int cs = (s[0] + 3) / 4 * 4, ks = (s[1] + 3) / 4 * 4;
        lap_op op = row->kind == LAP_OP_FC ? fc(cs, s[1], ks)
                                           : conv(s[0], cs, s[2], s[2], s[1], ks, s[3], s[3]);
        op.kind = row->kind;
        lap_case c = {.op = &op, .device = &info, .n = 2};
        if (!lap_kernel_can_run(row, &c, true)) continue;
        row->defaults(&c, &c.params);
        assert_true(row->valid(&c));
        if (!row->pack) continue;
        size_t w_count = (size_t)lap_op_weight_count(&op), bytes = row->packed_bytes(&c);
        lap_op_weights weights = {calloc(w_count, sizeof(float)), NULL, w_count, (size_t)s[1]};
        assert_non_null(weights.w);
        double expected = 0.0, sum = 0.0;
        for (size_t w = 0; w < w_count; w++)
            expected += weights.w[w] = (float)(w % 13 + 1);
        unsigned char *packed = malloc(bytes + 64);
        assert_non_null(packed);
        memset(packed, 0xff, bytes + 64); /* NaN words */
        row->pack(&c, &weights, packed);
        for (size_t b = 0; b < 64; b++)
            assert_int_equal(packed[bytes + b], 0xff);
        for (size_t w = 0; w < bytes / sizeof(float); w++)
            sum += ((float *)(void *)packed)[w]; /* a hole would make it NaN */
        /* Every weight once, zeros elsewhere; transformed weights have another sum. */
        if (strncmp(row->id, "conv_winograd", 13) != 0) assert_true(sum == expected);
        assert_true(!isnan(sum));
        free(weights.w);
        free(packed);
    }
}

/* Weight (k, c, r, s) of a 3-channel, 5-output, 2x2 convolution is 1000 k + 100 c + 10 r + s. */
static void packers_place_each_weight(void **state) {
    (void)state;
    lap_op op = conv(3, 4, 4, 4, 5, 8, 2, 2);
    lap_device_info info = device(LAP_DEVICE_CPU, "cl", 4);
    lap_case c = {.op = &op, .device = &info, .n = 1};
    float w[5 * 3 * 4], packed[8 * 3 * 4];
    for (int i = 0; i < 5 * 3 * 4; i++)
        w[i] = (float)(1000 * (i / 12) + 100 * (i / 4 % 3) + 10 * (i / 2 % 2) + i % 2);
    lap_op_weights weights = {w, NULL, 60, 5};
    lap_pack_krsc(&c, &weights, packed);
    for (int k = 0; k < 5; k++)
        for (int tap = 0; tap < 4; tap++)
            for (int ch = 0; ch < 3; ch++) {
                float value = (float)(1000 * k + 100 * ch + 10 * (tap / 2) + tap % 2);
                lap_pack_krsc(&c, &weights, packed);
                assert_true(packed[(k * 4 + tap) * 3 + ch] == value);
                lap_pack_rsck(&c, &weights, packed);
                assert_true(packed[(tap * 3 + ch) * 5 + k] == value);
                lap_pack_blocked(&op, &weights, 4, packed);
                assert_true(packed[((k / 4 * 4 + tap) * 3 + ch) * 4 + k % 4] == value);
            }
    for (int tap = 0; tap < 4; tap++) /* outputs 5..7 do not exist */
        for (int ch = 0; ch < 3; ch++)
            for (int k = 1; k < 4; k++)
                assert_true(packed[((4 + tap) * 3 + ch) * 4 + k] == 0.0f);
}

/* The GPU's Winograd row takes what fills the device and leaves the rest to the product. */
static void winograd_needs_a_full_gpu(void **state) {
    (void)state;
    lap_op op = conv(64, 64, 56, 56, 64, 64, 3, 3);
    lap_device_info gpu = device(LAP_DEVICE_GPU, "cu", 32);
    gpu.units = 132;
    gpu.local_optin_bytes = 232448;
    gpu.cc_major = 9;
    lap_case c = {.op = &op, .device = &gpu, .n = 256};
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_winograd_g");
    assert_int_equal(c.params.value[1], 64);
    lap_grid grid;
    assert_true(lap_kernel_find("conv_winograd_g")->stages[0].grid(&c, &grid));
    assert_int_equal(grid.groups[0], 256 * 28 * 28 / 16);
    assert_int_equal(grid.local[0], 128);
    assert_int_equal(grid.dynamic_local_bytes, 2 * 16 * 8 * (16 + 64) * 4);
    c.n = 1;
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_igemm");
    c.n = 256;
    strcpy(gpu.language, "cl"); /* less local memory: narrower tiles, declared by the kernel */
    gpu.local_bytes = 49152;
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_winograd_g");
    assert_int_equal(c.params.value[1], 32);
    assert_true(lap_kernel_find("conv_winograd_g")->stages[0].grid(&c, &grid));
    assert_int_equal(grid.dynamic_local_bytes, 0);
    c.features = LAP_FEATURE_LARGE_LOCAL; /* more than is listed was found: CUDA's tile */
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_winograd_g");
    assert_int_equal(c.params.value[1], 64);
    c.features = 0;
    gpu.cc_major = 0; /* another vendor's: 32 KiB, no cp.async */
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_winograd_g");
    assert_int_equal(c.params.value[2], 4);
    assert_int_equal(c.params.value[5], 0);
}

/* Kernels for a network whose steps are short: not where each fills the device many times over, nor
 * where a pool that every group makes again is large. */
static void chains_are_for_little_work(void **state) {
    (void)state;
    lap_device_info gpu = device(LAP_DEVICE_GPU, "cu", 32);
    gpu.units = 132;
    gpu.local_bytes = 49152;
    gpu.local_optin_bytes = 232448;
    gpu.cc_major = 8;
    lap_op op = conv(64, 64, 56, 56, 64, 64, 3, 3), wide = conv(64, 64, 256, 512, 64, 64, 3, 3);
    lap_case c = {.op = &op, .device = &gpu, .precision = LAP_FP16, .n = 1};
    c.features = LAP_FEATURE_MMA(LAP_FP16);
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "chain_conv");
    c.op = &wide;
    assert_string_equal(lap_kernel_choose(&c, false, false)->id, "conv_mma");
    lap_op pool = {.kind = LAP_OP_AVGPOOL, .residual = -1, .in = {512, 7, 7, 512}};
    pool.out = (lap_tensor){512, 1, 1, 512};
    lap_op last = fc(512, 1000, 1000);
    c = (lap_case){.op = &pool, .partner = &last, .fusion = LAP_FUSE_FC, .device = &gpu, .n = 1};
    for (int half = 0; half < 2; half++) {
        const lap_kernel_row *row = lap_kernel_find(half ? "chain_pool_fc" : "pool_fc_g");
        c.precision = half ? LAP_FP16 : LAP_FP32;
        c.features = LAP_FEATURE_MMA(LAP_FP16);
        pool.in.h = pool.in.w = 7;
        assert_true(lap_kernel_can_run(row, &c, false));
        pool.in.h = 32, pool.in.w = 64;
        assert_false(lap_kernel_can_run(row, &c, false));
    }
}

/* [K/2][C/4][16][4][2] of 3 channels (stride 4) and 3 outputs, every window all k + 1. */
static void winograd_g_weights(void **state) {
    (void)state;
    static const double ones[4] = {1.0, 1.5, 0.5, 1.0};
    float w[3 * 3 * 9], packed[2 * 16 * 4 * 2];
    for (int i = 0; i < 3 * 3 * 9; i++)
        w[i] = (float)(i / 27 + 1);
    lap_op op = conv(3, 4, 4, 4, 3, 4, 3, 3);
    assert_int_equal(lap_pack_winograd_g_bytes(&op, 2), sizeof packed);
    memset(packed, 0xff, sizeof packed);
    lap_pack_winograd_g(&op, 4, 2, w, packed);
    for (int i = 0; i < 2 * 16 * 4 * 2; i++) {
        int k = i / 128 * 2 + i % 2, p = i / 8 % 16, ch = i / 2 % 4;
        double want = k < 3 && ch < 3 ? (k + 1) * ones[p / 4] * ones[p % 4] : 0.0;
        assert_true((double)packed[i] == want);
    }
}

/* G g G^T of a window that is 1 everywhere, and of single ones at a corner and in the middle. */
static void winograd_weights(void **state) {
    (void)state;
    static const double ones[4] = {1.0, 1.5, 0.5, 1.0}, middle[4] = {0.0, 0.5, -0.5, 0.0};
    static const double corner[4] = {1.0, 0.5, 0.5, 0.0};
    float w[2 * 3 * 9] = {0}, packed[4 * 3 * 16];
    for (int i = 0; i < 9; i++)
        w[i] = 1.0f;      /* k 0, c 0 */
    w[9 + 4] = 1.0f;      /* k 0, c 1 */
    w[27 + 2 * 9] = 1.0f; /* k 1, c 2 */
    lap_op op = conv(3, 4, 4, 4, 2, 4, 3, 3);
    lap_op_weights weights = {w, NULL, 54, 2};
    memset(packed, 0xff, sizeof packed);
    lap_pack_winograd(&op, &weights, 4, 2, packed);
    for (int p = 0; p < 16; p++) {
        const float *at = packed + p * 3 * 4;
        assert_true((double)at[0] == ones[p / 4] * ones[p % 4]);
        assert_true((double)at[4] == middle[p / 4] * middle[p % 4]);
        assert_true((double)at[2 * 4 + 1] == corner[p / 4] * corner[p % 4]);
        assert_true(at[1] == 0.0f && at[2] == 0.0f && at[3] == 0.0f && at[2 * 4 + 3] == 0.0f);
    }
}

/* F(4x4): row i of G is 1, p, p^2 over m'(p), m = x (x^2 - 1/2) (x^2 - 2), and 0, 0, 1 at infinity.
 */
static void winograd4_weights(void **state) {
    (void)state;
    const double points[5] = {0, sqrt(0.5), -sqrt(0.5), sqrt(2), -sqrt(2)};
    double g[6][3] = {{0}};
    for (int i = 0; i < 5; i++) {
        double p = points[i], slope = 5 * p * p * p * p - 7.5 * p * p + 1;
        for (int j = 0; j < 3; j++)
            g[i][j] = (j == 0 ? 1 : j == 1 ? p : p * p) / slope;
    }
    g[5][2] = 1;
    enum { C = 2, K = 3 };
    float w[K * C * 9], packed[4 * C * 36];
    for (int i = 0; i < K * C * 9; i++)
        w[i] = (float)(i * i % 17 - 8);
    lap_op op = conv(C, 4, 4, 4, K, 4, 3, 3);
    lap_op_weights weights = {w, NULL, K * C * 9, K};
    memset(packed, 0xff, sizeof packed);
    lap_pack_winograd(&op, &weights, 2, 4, packed); /* blocks of 2: the second is half empty */
    for (int i = 0; i < 4 * C * 36; i++) {
        int k = i / (2 * C * 36) * 2 + i % 2, c = i / 2 % C, point = i / 2 / C % 36;
        double want = 0;
        for (int r = 0; r < 9 && k < K; r++)
            want += g[point / 6][r / 3] * g[point % 6][r % 3] * (double)w[(k * C + c) * 9 + r];
        if (!(fabs((double)packed[i] - want) <= 1e-6))
            fail_msg("k %d, c %d, point %d: %g, should be %g", k, c, point, (double)packed[i],
                     want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(list_is_well_formed),
        cmocka_unit_test(choice_follows_device),
        cmocka_unit_test(unfolded_input_must_fit),
        cmocka_unit_test(smooth_and_scaled_by_tensor_cores),
        cmocka_unit_test(defines_in_fixed_order),
        cmocka_unit_test(linear_grid_respects_limits),
        cmocka_unit_test(defaults_valid_and_packers_exact),
        cmocka_unit_test(packers_place_each_weight),
        cmocka_unit_test(winograd_weights),
        cmocka_unit_test(winograd_g_weights),
        cmocka_unit_test(winograd_needs_a_full_gpu),
        cmocka_unit_test(chains_are_for_little_work),
        cmocka_unit_test(winograd4_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
