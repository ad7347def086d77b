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

/* ---- matrix instructions of other vendors -----------------------------------------------------
 */

static int convolutions;
static int64_t form; /* of the instructions that the device has; 0: any */
/* What the planted fault does; fake_plant knows outputs of floats only. */
static enum { RIGHT, ONE_OFF, ONE_NAN, NOTHING } fault;

/* conv_matrix in C: a weight is looked up where its form's instruction wants it. */
typedef struct convolution {
    const lap_define *defines;
    size_t count;
    const uint16_t *in, *in2, *weights;
    int64_t form;
} convolution;

static size_t get(const convolution *c, const char *name) {
    return (size_t)fake_define(c->defines, c->count, name, 0);
}

static float widened(const convolution *c, uint16_t bits) {
    return get(c, "PRECISION") == LAP_FP16 ? lap_half_to_float(bits) : lap_bf16_to_float(bits);
}

static float weight(const convolution *c, size_t k, size_t step, size_t depth) {
    size_t rows = c->form <= 2 ? 16 : 8, row = k % rows, item, element;
    size_t steps = get(c, "R") * get(c, "S") * ((get(c, "CS") + 15) / 16);
    steps += (get(c, "CS2") + 15) / 16;
    const uint16_t *fragment = c->weights + (k / rows * steps + step) * rows * 16;
    if (c->form == 1) { /* 4 elements of each of 64 work-items */
        item = row + depth / 4 * 16, element = depth % 4;
        return widened(c, fragment[item * 4 + element]);
    }
    /* Sums of matrix rows 0, 2, 4 ... are one work-item's, so they have channels 0 to 7. */
    if (c->form == 2) row = row < 8 ? 2 * row : 2 * (row - 8) + 1;
    return widened(c, fragment[row * 16 + depth]);
}

static float pixel_sum(const convolution *c, size_t image, size_t y, size_t x, size_t k) {
    size_t cs = get(c, "CS"), h = get(c, "H"), w = get(c, "W"), cs2 = get(c, "CS2");
    size_t chunks = (cs + 15) / 16, stride2 = get(c, "STRIDE2");
    float sum = 0;
    for (size_t tap = 0; tap < 9; tap++) {
        size_t v = y + tap / 3 - 1, u = x + tap % 3 - 1; /* beyond the border: huge */
        for (size_t ch = 0; v < h && u < w && ch < cs; ch++)
            sum += widened(c, c->in[((image * h + v) * w + u) * cs + ch]) *
                   weight(c, k, tap * chunks + ch / 16, ch % 16);
    }
    for (size_t ch = 0; ch < cs2; ch++)
        sum +=
            widened(
                c,
                c->in2[((image * get(c, "H2") + y * stride2) * get(c, "W2") + x * stride2) * cs2 +
                       ch]) *
            weight(c, k, 9 * chunks + ch / 16, ch % 16);
    return sum;
}

static void conv_matrix(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                        void *const *pointers) {
    convolution c = {defines,     count,       pointers[0],
                     pointers[5], pointers[1], fake_define(defines, count, "FORM", 0)};
    const float *bias = pointers[2];
    const uint16_t *residual = pointers[3];
    uint16_t *out = pointers[4];
    size_t p = get(&c, "P"), q = get(&c, "Q"), ks = get(&c, "KS");
    convolutions++;
    assert_true(c.form && launch->args[6].i32 == 2);
    if (fault == NOTHING) return;
    for (size_t i = 0; i < 2 * p * q * ks; i++) {
        size_t k = i % ks, pixel = i / ks;
        float sum = pixel_sum(&c, pixel / (p * q), pixel / q % p, pixel % q, k) + bias[k];
        if (residual) sum += widened(&c, residual[i]);
        if (sum < 0 || k >= get(&c, "K")) sum = 0;
        if (form && c.form != form) sum = -1; /* another device's layout */
        out[i] =
            get(&c, "PRECISION") == LAP_FP16 ? lap_half_from_float(sum) : lap_bf16_from_float(sum);
    }
    if (fault == ONE_OFF) out[p * q * ks] ^= 1;
    if (fault == ONE_NAN) out[p * q * ks] = 0x7fff;
}

static lap_session *begin_matrix(const char *vendor, int64_t device_form) {
    lap_session *session = begin(false, false);
    lap_error err = {0};
    assert_int_equal(lap_session_close(session, &err), LAP_OK);
    strcpy(fake.devices[0].language, "cl");
    strcpy(fake.devices[0].vendor, vendor);
    fake.devices[0].type = LAP_DEVICE_GPU;
    fake.devices[0].max_group_size = 256;
    convolutions = 0;
    form = device_form;
    fault = RIGHT;
    assert_true(fake_register("conv_matrix", "conv_matrix", conv_matrix));
    assert_int_equal(lap_session_open(&fake.devices[0], &session, &err), LAP_OK);
    return session;
}

/* Each vendor is shown its own forms only; the one that computes right is taken. */
static void matrix_forms(void **state) {
    (void)state;
    static const struct {
        const char *vendor;
        int form, convolutions; /* two each, one of a form that is wrong */
    } devices[] = {{"Advanced Micro Devices, Inc.", 1, 2},
                   {"AMD", 2, 3},
                   {"Intel(R) Corporation", 3, 2},
                   {"Intel(R) Corporation", 4, 3}};
    static const lap_precision precisions[] = {LAP_FP16, LAP_BF16};
    for (size_t i = 0; i < 8; i++) {
        lap_precision precision = precisions[i % 2];
        lap_session *session = begin_matrix(devices[i / 2].vendor, devices[i / 2].form);
        lap_error err = {0};
        for (int again = 0; again < 2; again++) {
            lap_status status = lap_session_probe_matrix(session, precision, &err);
            if (status != LAP_OK) fail_msg("%s", err.message);
            if (session->features != LAP_FEATURE_MATRIX(devices[i / 2].form, precision))
                fail_msg("features %x: %s", session->features, session->lacking[precision]);
            assert_int_equal(convolutions, devices[i / 2].convolutions); /* remembered */
        }
        assert_string_equal(session->lacking[precision], "");
        end(session);
    }
}

static void no_matrix(void **state) {
    (void)state;
    lap_error err = {0};
    for (int i = 1; i < 5; i++) {
        lap_session *session = begin_matrix("Advanced Micro Devices, Inc.", 0);
        if (i <= NOTHING)
            fault = i;
        else
            fake.fail_build_stem = "conv_matrix";
        assert_int_equal(lap_session_probe(session, LAP_FP16, &err), LAP_OK);
        assert_int_equal(lap_session_probe_matrix(session, LAP_FP16, &err), LAP_OK);
        assert_int_equal(session->features, 0);
        const char *text = session->lacking[LAP_FP16];
        if (!strstr(text, "no fp16 matrix instructions are known for this device") ||
            !strstr(text, "; conv_matrix, form 1: ") ||
            !strstr(text,
                    i <= NOTHING ? "a test convolution through conv_matrix in fp16" : "planted"))
            fail_msg("'%s'", text);
        end(session);
    }
    static const char *const others[] = {"Mesa", "NVIDIA Corporation", "ARM"};
    for (size_t i = 0; i < 3; i++) {
        lap_session *session = begin_matrix(others[i], 0);
        assert_int_equal(lap_session_probe_matrix(session, LAP_FP16, &err), LAP_OK);
        assert_int_equal(session->features, 0);
        assert_int_equal(fake.builds, 0);
        end(session);
    }
    lap_session *session = begin_matrix("AMD", 0); /* other precisions have no such kernel */
    assert_int_equal(lap_session_probe_matrix(session, LAP_FP32, &err), LAP_OK);
    assert_int_equal(lap_session_probe_matrix(session, LAP_TF32, &err), LAP_OK);
    assert_int_equal(fake.builds, 0);
    fake.fail_launch = 1; /* refused for once: so is the form, and the next one is asked */
    assert_int_equal(lap_session_probe_matrix(session, LAP_FP16, &err), LAP_OK);
    assert_int_equal(session->features, LAP_FEATURE_MATRIX(2, LAP_FP16));
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
        cmocka_unit_test(no_warpgroups),     cmocka_unit_test(no_unlisted_local),
        cmocka_unit_test(matrix_forms),      cmocka_unit_test(no_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
