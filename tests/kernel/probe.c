/* The probe of matrix instructions on the fake backend: what counts as having them, what as lacking
 * them, and what as a failing device. A session asks once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/half.h"
#include "fake_backend.h"
#include "kernel/probe.h"
#include "plan/plan.h"

#include <string.h>

static int runs;

static float element(int64_t precision, const unsigned char *row, size_t i) {
    uint16_t narrow;
    float wide;
    memcpy(&narrow, row + 2 * i, sizeof narrow);
    if (precision == LAP_FP16) return lap_half_to_float(narrow);
    if (precision == LAP_BF16) return lap_bf16_to_float(narrow);
    memcpy(&wide, row + 4 * i, sizeof wide);
    return wide;
}

static void multiply(int64_t precision, size_t rows, size_t columns, size_t row_bytes,
                     const unsigned char *in, float *out) {
    size_t depth = row_bytes / (precision == LAP_TF32 ? 4 : 2);
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < columns; column++) {
            float sum = 0;
            for (size_t i = 0; i < depth; i++)
                sum += element(precision, in + row * row_bytes, i) *
                       element(precision, in + (rows + column) * row_bytes, i);
            out[row * columns + column] = sum;
        }
}

/* The kernels in C. */
static void product(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                    void *const *pointers) {
    (void)launch;
    runs++;
    multiply(fake_define(defines, count, "PRECISION", 0), 16, 8, 32, pointers[0], pointers[1]);
}

static int warpgroup_runs;

static void warpgroup_product(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                              void *const *pointers) {
    assert_int_equal(launch->local[0], 128);
    warpgroup_runs++;
    multiply(fake_define(defines, count, "PRECISION", 0), 64, 64, 128, pointers[0], pointers[1]);
}

static lap_session *begin(bool nvidia, bool buildable) {
    fake_reset();
    runs = 0;
    lap_registry_add(&fake_ops);
    strcpy(fake.devices[0].language, "cu");
    fake.devices[0].cc_major = nvidia ? 9 : 0;
    if (buildable) assert_true(fake_register("probe_mma", "probe_mma", product));
    lap_session *session;
    lap_error err = {0};
    assert_int_equal(lap_session_open(&fake.devices[0], &session, &err), LAP_OK);
    return session;
}

static void end(lap_session *session) {
    lap_error err = {0};
    assert_int_equal(lap_session_close(session, &err), LAP_OK);
    assert_int_equal(fake_alive(), 0);
}

static void right_product(void **state) {
    (void)state;
    lap_session *session = begin(true, true);
    lap_error err = {0};
    static const lap_precision narrow[] = {LAP_TF32, LAP_FP16, LAP_BF16};
    unsigned expected = 0;
    for (size_t i = 0; i < 3; i++) {
        expected |= LAP_FEATURE_MMA(narrow[i]);
        assert_int_equal(lap_session_probe(session, narrow[i], &err), LAP_OK);
        assert_int_equal(session->features, expected);
        assert_string_equal(session->lacking[narrow[i]], "");
        assert_int_equal(lap_session_probe(session, narrow[i], &err), LAP_OK); /* remembered */
    }
    assert_int_equal(runs, 3);
    assert_int_equal(lap_session_probe(session, LAP_FP32X3, &err),
                     LAP_OK); /* by products of fp16 */
    assert_int_equal(session->features, expected | LAP_FEATURE_MMA(LAP_FP32X3));
    assert_int_equal(runs--, 4);
    assert_int_equal(lap_session_probe(session, LAP_FP32, &err), LAP_OK); /* needs nothing */
    assert_int_equal(runs, 3);
    end(session);
}

static void expect_lacking(lap_session *session, const char *text) {
    lap_error err = {0};
    assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK);
    assert_int_equal(session->features, 0);
    if (!strstr(session->lacking[LAP_FP16], text))
        fail_msg("'%s' says nothing of '%s'", session->lacking[LAP_FP16], text);
    uint64_t builds = fake.builds;
    assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK); /* once is enough */
    assert_int_equal(fake.builds, builds);
    end(session);
}

static void lacking(void **state) {
    (void)state;
    lap_session *session = begin(false, true);
    expect_lacking(session, "no fp16 matrix instructions are known for this device");
    assert_int_equal(runs, 0); /* another vendor's compiler never sees it */
    session = begin(true, true);
    fake.fail_build_stem = "probe_mma";
    expect_lacking(session, "planted");
    static const fake_plant_kind wrong[] = {FAKE_PLANT_WRONG, FAKE_PLANT_NAN, FAKE_PLANT_NOTHING};
    for (size_t i = 0; i < 3; i++) {
        session = begin(true, true);
        fake_plant("probe_mma", wrong[i]);
        expect_lacking(session, "a test product of fp16 matrix instructions gave");
    }
}

/* A device that fails is no device that lacks something. */
static void failing_device(void **state) {
    (void)state;
    lap_session *session = begin(true, true);
    fake.fail_launch = 1;
    lap_error err = {0};
    assert_int_equal(lap_session_probe(session, LAP_TF32, &err), LAP_E_LAUNCH);
    assert_int_equal(session->features, 0);
    assert_int_equal(session->probed, 0);
    assert_int_equal(lap_session_probe(session, LAP_TF32, &err), LAP_OK); /* asks again */
    assert_int_equal(session->features, LAP_FEATURE_MMA(LAP_TF32));
    end(session);
}

/* ---- unlisted local memory ------------------------------------------------------------------- */

static int64_t local_bytes;

static void local_memory(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                         void *const *pointers) {
    local_bytes = fake_define(defines, count, "LOCAL_BYTES", 0);
    uint32_t *out = pointers[0], items = launch->groups[0] * launch->local[0];
    for (uint32_t i = 0; i < items; i++)
        out[i] = i + 1;
}

static lap_session *begin_local(const char *language, uint64_t most) {
    lap_session *session = begin(true, true);
    lap_error err = {0};
    assert_int_equal(lap_session_close(session, &err), LAP_OK);
    strcpy(fake.devices[0].language, language);
    fake.devices[0].local_optin_bytes = most;
    local_bytes = 0;
    assert_true(fake_register("probe_local", "probe_local", local_memory));
    assert_int_equal(lap_session_open(&fake.devices[0], &session, &err), LAP_OK);
    return session;
}

static void unlisted_local(void **state) {
    (void)state;
    lap_error err = {0};
    lap_session *session = begin_local("cl", 232448);
    assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK);
    assert_int_equal(session->features, LAP_FEATURE_MMA(LAP_FP16) | LAP_FEATURE_LARGE_LOCAL);
    assert_int_equal(local_bytes, 232448);
    uint64_t builds = fake.builds;
    assert_int_equal(lap_session_probe(session, LAP_BF16, &err), LAP_OK);
    assert_int_equal(fake.builds, builds + 1); /* of the product: memory is asked for once */
    end(session);
    session = begin_local("cl", 232448); /* fp32 asks for the memory alone */
    assert_int_equal(lap_session_probe(session, LAP_FP32, &err), LAP_OK);
    assert_int_equal(session->features, LAP_FEATURE_LARGE_LOCAL);
    assert_int_equal(runs, 0);
    end(session);
    session = begin_local("cl", fake.devices[0].local_bytes); /* nothing to find */
    assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK);
    assert_int_equal(session->features, LAP_FEATURE_MMA(LAP_FP16));
    end(session);
    session = begin_local("cu", 232448); /* nothing to declare */
    assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK);
    assert_true(session->features == LAP_FEATURE_MMA(LAP_FP16) && local_bytes == 0);
    end(session);
}

/* Without the memory the matrix instructions are used all the same. */
static void no_unlisted_local(void **state) {
    (void)state;
    lap_error err = {0};
    static const fake_plant_kind wrong[] = {FAKE_PLANT_WRONG, FAKE_PLANT_NOTHING};
    for (size_t i = 0; i < 3; i++) {
        lap_session *session = begin_local("cl", 232448);
        if (i < 2)
            fake_plant("probe_local", wrong[i]);
        else
            fake.fail_build_stem = "probe_local";
        assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK);
        assert_int_equal(session->features, LAP_FEATURE_MMA(LAP_FP16));
        end(session);
    }
}

static lap_session *begin_hopper(const char *language, int major) {
    lap_session *session = begin_local(language, fake.devices[0].local_bytes);
    lap_error err = {0};
    assert_int_equal(lap_session_close(session, &err), LAP_OK);
    fake.devices[0].cc_major = major;
    warpgroup_runs = 0;
    assert_true(fake_register("probe_wgmma", "probe_wgmma", warpgroup_product));
    assert_int_equal(lap_session_open(&fake.devices[0], &session, &err), LAP_OK);
    return session;
}

/* OpenCL is asked for them where they may be; CUDA has them by the device's version. */
static void warpgroups(void **state) {
    (void)state;
    static const struct {
        const char *language;
        int major;
        lap_precision precision;
        bool has;
    } cases[] = {{"cl", 9, LAP_FP16, true},    {"cl", 9, LAP_BF16, true},
                 {"cl", 9, LAP_TF32, true},    {"cl", 8, LAP_FP16, false},
                 {"cl", 9, LAP_FP32X3, false}, {"cu", 9, LAP_FP16, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        lap_session *session = begin_hopper(cases[i].language, cases[i].major);
        lap_error err = {0};
        lap_precision precision = cases[i].precision;
        assert_int_equal(lap_session_probe(session, precision, &err), LAP_OK);
        unsigned wanted = LAP_FEATURE_MMA(precision);
        if (cases[i].has) wanted |= LAP_FEATURE_WGMMA(precision);
        assert_int_equal(session->features, wanted);
        assert_int_equal(warpgroup_runs, cases[i].has);
        end(session);
    }
}

/* Without them the others are used. */
static void no_warpgroups(void **state) {
    (void)state;
    static const fake_plant_kind wrong[] = {FAKE_PLANT_WRONG, FAKE_PLANT_NAN, FAKE_PLANT_NOTHING};
    for (size_t i = 0; i < 4; i++) {
        lap_session *session = begin_hopper("cl", 9);
        lap_error err = {0};
        if (i < 3)
            fake_plant("probe_wgmma", wrong[i]);
        else
            fake.fail_build_stem = "probe_wgmma";
        assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK);
        assert_int_equal(session->features, LAP_FEATURE_MMA(LAP_FP16));
        end(session);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_product),     cmocka_unit_test(lacking),
        cmocka_unit_test(failing_device),    cmocka_unit_test(unlisted_local),
        cmocka_unit_test(no_unlisted_local), cmocka_unit_test(warpgroups),
        cmocka_unit_test(no_warpgroups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
