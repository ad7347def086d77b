/* Compiling: options, defines, kernel facts, and build logs of every kind of brokenness. */
#include "rig.h"

#include "kernel/kernel.h"
#include "kernel/tools.h"

#include "base/comma_locale.h"

#include <string.h>

static const char good[] = "__kernel void k(__global int *out) {\n"
                           "    __local int t[64];\n"
                           "    t[get_local_id(0)] = VALUE;\n"
                           "    barrier(CLK_LOCAL_MEM_FENCE);\n"
                           "    out[get_global_id(0)] = t[0] + (OTHER);\n"
                           "}\n";
static const char bad[] = "__kernel void k(__global int *out) { out[0] = no_such_name; }\n";

static lap_status build(rig *r, const char *source, const char *entry, void **kernel,
                        lap_kernel_info *info) {
    const lap_define defines[] = {{"VALUE", 1234567}, {"OTHER", -4}};
    lap_build b = {
        .stem = "stem_x", .source = source, .entry = entry, .defines = defines, .define_count = 2};
    return lap_opencl_ops.kernel_build(r->device, &b, kernel, info, &r->err);
}

static void check_value(rig *r) {
    void *kernel = NULL, *out = rig_buffer(r, 64);
    lap_kernel_info info;
    rig_ok(r, build(r, good, "k", &kernel, &info));
    assert_string_equal(staged.options, "-cl-std=CL1.2 -DVALUE=1234567 -DOTHER=-4");
    lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {1, 1, 1}, .arg_count = 1};
    launch.args[0] = rig_buffer_arg(out);
    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err));
    int32_t got = 0;
    rig_ok(r, lap_opencl_ops.buffer_read(r->queue, out, 0, &got, 4, &r->err));
    assert_int_equal(got, 1234563);
    assert_in_range(info.max_group_size, 1, r->info.max_group_size);
    /* The kernel has 256 bytes of local memory; some drivers do not tell. */
    assert_true(info.local_bytes == 0 || info.local_bytes >= 256);
    lap_opencl_ops.buffer_free(out);
    lap_opencl_ops.kernel_free(kernel);
}

static void test_defines(void **state) {
    check_value(*state);
}

/* Grouping or decimal commas of a locale must not reach the compiler. */
static void test_defines_under_other_locale(void **state) {
    comma_locale_or_skip();
    check_value(*state);
    setlocale(LC_ALL, "C");
}

/* A source with instructions of a target that the driver does not compile for: its PTX comes back
 * with them and for that target. */
static const char hiding[] = "#define HIDE \"//@sm_90a \"\n"
                             "__kernel void k(__global int *out) { out[0] = 1; }\n";
static const char raised[] = "__kernel void k(__global int *out) { out[0] = 2; }\n";

static void test_raised_target(void **state) {
    rig *r = *state;
    void *kernel = NULL, *out = rig_buffer(r, 64);
    lap_kernel_info info;
    staged.binary = "// a.target sm_90x\n.version 9.0\n.target sm_90, texmode_independent\n"
                    "//@sm_90a wgmma.fence;\nret; //@sm_90a {a; b;}\n// //@sm_80 c\n";
    staged.reloaded = raised;
    rig_ok(r, build(r, hiding, "k", &kernel, &info));
    assert_string_equal(staged.loaded,
                        "// a.target sm_90x\n.version 9.0\n.target sm_90a, texmode_independent\n"
                        "wgmma.fence;\nret; {a; b;}\n// //@sm_80 c\n");
    lap_raw_launch launch = {.groups = {1, 1, 1}, .local = {1, 1, 1}, .arg_count = 1};
    launch.args[0] = rig_buffer_arg(out);
    rig_ok(r, lap_opencl_ops.enqueue(r->queue, kernel, &launch, &r->err));
    int32_t got = 0;
    rig_ok(r, lap_opencl_ops.buffer_read(r->queue, out, 0, &got, 4, &r->err));
    assert_int_equal(got, 2); /* the second program is what runs */
    lap_opencl_ops.buffer_free(out);
    lap_opencl_ops.kernel_free(kernel);
    staged.loaded[0] = '\0'; /* without the mark nothing is loaded again */
    rig_ok(r, build(r, raised, "k", &kernel, &info));
    assert_string_equal(staged.loaded, "");
    lap_opencl_ops.kernel_free(kernel);
}

static void expect_not_raised(rig *r, const char *binary, lap_status want, const char *text) {
    void *kernel = (void *)r;
    lap_kernel_info info;
    staged.binary = binary;
    staged.reloaded = raised;
    assert_int_equal(build(r, hiding, "k", &kernel, &info), want);
    assert_null(kernel);
    if (!strstr(r->err.message, text) || !strstr(r->err.message, "stem_x"))
        fail_msg("'%s' does not say '%s'", r->err.message, text);
}

static void test_target_not_raised(void **state) {
    rig *r = *state;
    static const char *const foreign[] = {".target sm_89\n//@sm_90a x;",
                                          "\x7f"
                                          "ELF",
                                          ".target sm_90a\n//@sm_90a x;", "//@sm_90a x;",
                                          ".target "};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        expect_not_raised(r, foreign[i], LAP_E_BUILD, "not PTX for sm_90, which");
    expect_not_raised(r, ".target sm_90\nret;", LAP_E_BUILD, "no instruction for sm_90a");
    expect_not_raised(r, "", LAP_E_UNSUPPORTED, "no binary");
    staged.binary_code = CL_INVALID_BINARY;
    expect_not_raised(r, ".target sm_90\n//@sm_90a x;", LAP_E_BUILD,
                      "making a program of a binary");
}

static void test_error_log(void **state) {
    rig *r = *state;
    void *kernel = (void *)state;
    lap_kernel_info info;
    assert_int_equal(build(r, bad, "k", &kernel, &info), LAP_E_BUILD);
    assert_null(kernel);
    assert_int_equal(r->err.native, CL_BUILD_PROGRAM_FAILURE);
    assert_string_equal(r->err.native_name, "CL_BUILD_PROGRAM_FAILURE");
    assert_string_equal(r->err.call, "clBuildProgram");
    assert_non_null(strstr(r->err.message, "stem_x"));
    assert_non_null(strstr(r->err.message, "-DVALUE=1234567"));
    assert_non_null(strstr(r->err.message, "no_such_name")); /* the driver's own words */
}

static void expect_text(rig *r, log_mode mode, const char *text) {
    void *kernel = NULL;
    lap_kernel_info info;
    staged.log = mode;
    assert_int_equal(build(r, bad, "k", &kernel, &info), LAP_E_BUILD);
    assert_null(kernel);
    assert_non_null(strstr(r->err.message, text));
}

static void test_broken_logs(void **state) {
    rig *r = *state;
    expect_text(r, LOG_ERROR, "no build log");
    expect_text(r, LOG_EMPTY, "no build log");
    expect_text(r, LOG_ONE_BYTE, "empty build log");
    expect_text(r, LOG_HUGE, "xxxx");
}

/* An entry of the stem; NULL where no row and no tool has it, or no row in this precision. */
static const char *entry_of(const char *stem, lap_precision precision) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count; i++)
        for (int s = 0; s < rows[i]->stage_count; s++)
            if (rows[i]->stages[s].stem && strcmp(rows[i]->stages[s].stem, stem) == 0)
                return rows[i]->precisions & (1u << precision) ? rows[i]->stages[s].entry : NULL;
    const lap_tool *tool;
    for (size_t i = 0; (tool = lap_tool_at(i)); i++)
        if (strcmp(tool->stem, stem) == 0) return precision == LAP_FP32 ? tool->entries[0] : NULL;
    return NULL;
}

/* Every kernel that needs no other vendor's instructions, in every precision that a row of it has,
 * is OpenCL C 1.2 without a warning: no size_t or bool argument, nothing that a strict compiler
 * refuses. */
static void test_strict(void **state) {
    rig *r = *state;
    const char *language, *stem, *text;
    int built = 0;
    staged.more_options = "-Werror";
    for (size_t i = 0; lap_kernel_source_at(i, &language, &stem, &text); i++)
        for (lap_precision p = LAP_FP32; p < LAP_PRECISION_COUNT; p++) {
            const char *entry = entry_of(stem, p);
            if (strcmp(language, "cl") != 0 || !entry) continue;
            if (strstr(text, "asm") || strstr(text, "_builtin_") || strstr(text, "intel_"))
                continue;
            /* Vectors that every processor has: larger ones are a warning in themselves. */
            const lap_define defines[] = {{"PRECISION", p}, {"V", 4}};
            lap_build b = {.stem = stem,
                           .source = text,
                           .entry = entry,
                           .defines = defines,
                           .define_count = 2};
            void *kernel = NULL;
            lap_kernel_info info;
            if (lap_opencl_ops.kernel_build(r->device, &b, &kernel, &info, &r->err) != LAP_OK)
                fail_msg("%s in %s: %s", stem, lap_precision_name(p), r->err.message);
            lap_opencl_ops.kernel_free(kernel);
            built++;
        }
    print_message("%d builds without a warning\n", built);
    assert_true(built > 30);
    void *kernel = NULL; /* and warnings are errors here */
    lap_kernel_info info;
    lap_build b = {.stem = "x",
                   .source = "#warning planted\n__kernel void k(__global int *a) { a[0] = 1; }\n",
                   .entry = "k"};
    assert_int_equal(lap_opencl_ops.kernel_build(r->device, &b, &kernel, &info, &r->err),
                     LAP_E_BUILD);
}

static void test_late_failure(void **state) {
    rig *r = *state;
    void *kernel = NULL;
    lap_kernel_info info;
    staged.build_fails_late = true;
    assert_int_equal(build(r, good, "k", &kernel, &info), LAP_E_BUILD);
    assert_null(kernel);
}

static void test_missing_entry(void **state) {
    rig *r = *state;
    void *kernel = NULL;
    lap_kernel_info info;
    assert_int_equal(build(r, good, "absent", &kernel, &info), LAP_E_BUILD);
    assert_null(kernel);
    assert_non_null(strstr(r->err.message, "absent"));
    assert_non_null(strstr(r->err.message, "stem_x"));
    assert_string_equal(r->err.call, "clCreateKernel");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(test_defines, rig_unstage),
    cmocka_unit_test_teardown(test_defines_under_other_locale, rig_unstage),
    cmocka_unit_test_teardown(test_raised_target, rig_unstage),
    cmocka_unit_test_teardown(test_target_not_raised, rig_unstage),
    cmocka_unit_test_teardown(test_error_log, rig_unstage),
    cmocka_unit_test_teardown(test_broken_logs, rig_unstage),
    cmocka_unit_test_teardown(test_strict, rig_unstage),
    cmocka_unit_test_teardown(test_late_failure, rig_unstage),
    cmocka_unit_test_teardown(test_missing_entry, rig_unstage),
};

RIG_MAIN(tests)
