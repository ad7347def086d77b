/* Copies, the cold cache and the elementwise workload on the fake device. */
#include "fake_queue.h"
#include "measure/copies.h"
#include "measure/elementwise.h"
#include "measure/flush.h"

static int set_up(void **state) {
    (void)state;
    fresh_fake();
    return 0;
}

/* A clock on which every look costs a millisecond: a copy takes one. */
static double fake_time;
static double ticking(void) {
    return fake_time += 1e-3;
}
static double standing(void) {
    return 5;
}

typedef struct rig {
    lap_session *session;
    lap_buffer *in, *out;
    char data[1024];
    lap_copies_job job;
} rig;

static void open_rig(rig *r) {
    r->session = begin_session();
    MUST(lap_buffer_new(r->session->device, 1024, &r->in, &must_error));
    MUST(lap_buffer_new(r->session->device, 512, &r->out, &must_error));
    memset(r->data, 7, sizeof r->data);
    r->job = (lap_copies_job){.queue = r->session->queue,
                              .input = r->in,
                              .data = r->data,
                              .input_bytes = 1024,
                              .output = r->out,
                              .output_bytes = 512,
                              .now = ticking};
}

static void close_rig(rig *r) {
    lap_buffer_free(r->in);
    lap_buffer_free(r->out);
    end_session(r->session);
}

static void copies(void **state) {
    (void)state;
    rig r;
    open_rig(&r);
    lap_copies c;
    MUST(lap_copies_measure(&r.job, &c, &must_error));
    assert_true(c.has);
    assert_true(c.upload_pageable.median_s.has &&
                fabs(c.upload_pageable.median_s.value - 1e-3) < 1e-9);
    assert_true(fabs(c.upload_pinned.bytes_per_s.value - 1024e3) < 1);
    assert_true(fabs(c.download_pinned.bytes_per_s.value - 512e3) < 1);
    assert_int_equal(c.download_pageable.bytes, 512);
    assert_string_equal(c.reason, "");
    char back[1024]; /* the input is still right afterwards */
    MUST(lap_buffer_read(r.session->queue, r.in, 0, back, sizeof back, &must_error));
    assert_memory_equal(back, r.data, sizeof back);
    close_rig(&r);
}

static void copies_without_pinned_memory(void **state) {
    (void)state;
    rig r;
    open_rig(&r);
    lap_device_ops saved = fake_ops;
    fake_ops.pinned_new = NULL;
    lap_copies c;
    MUST(lap_copies_measure(&r.job, &c, &must_error));
    assert_true(c.has && c.upload_pageable.median_s.has);
    assert_none(c.upload_pinned.median_s);
    assert_none(c.upload_pinned.bytes_per_s);
    assert_non_null(strstr(c.reason, "no pinned host memory"));
    fake_ops = saved;
    close_rig(&r);
}

/* A clock that stands still gives no time and no rate, not an infinite one. */
static void copies_without_clock(void **state) {
    (void)state;
    rig r;
    open_rig(&r);
    r.job.now = standing;
    lap_copies c;
    MUST(lap_copies_measure(&r.job, &c, &must_error));
    assert_none(c.upload_pageable.median_s);
    assert_none(c.upload_pageable.bytes_per_s);
    close_rig(&r);
}

static bool yes(void *context) {
    (void)context;
    return true;
}

static void copies_stop(void **state) {
    (void)state;
    rig r;
    open_rig(&r);
    r.job.interrupted = yes;
    lap_copies c;
    lap_error err = {0};
    assert_int_equal(lap_copies_measure(&r.job, &c, &err), LAP_E_INTERRUPTED);
    close_rig(&r);
}

static void flush(void **state) {
    (void)state;
    lap_session *session = begin_session();
    lap_flush *f;
    MUST(lap_flush_open(session->queue, &f, &must_error));
    assert_int_equal(lap_flush_bytes(f), 2 * (4 << 20)); /* a GPU's 64 KiB are not believed */
    uint64_t launches = fake.launches;
    MUST(lap_flush_run(f, &must_error));
    assert_int_equal(fake.launches, launches + 1);
    lap_flush_close(f);
    fake.devices[0].type = LAP_DEVICE_CPU;
    fake.devices[0].cache_bytes = 0; /* not told: a size that is large enough for most */
    lap_session *unknown = begin_session();
    lap_error err = {0};
    assert_int_equal(lap_flush_open(unknown->queue, &f, &err), LAP_E_OOM); /* 64 MiB device */
    assert_null(f);
    assert_non_null(strstr(err.message, "flushing the cache"));
    MUST(lap_session_close(unknown, &must_error));
    end_session(session);
}

/* ---- the elementwise workload --------------------------------------------------------------- */

static lap_status check_with(const char *unused, uint64_t elements, lap_elementwise_report *report,
                             lap_error *err) {
    (void)unused;
    lap_session *session = begin_session();
    lap_elementwise *w;
    MUST(lap_elementwise_open(session->queue, elements, &w, &must_error));
    MUST(lap_elementwise_run(w, &must_error));
    lap_status status = lap_elementwise_check(w, report, err);
    lap_elementwise_close(w);
    end_session(session);
    return status;
}

static void elementwise_right(void **state) {
    (void)state;
    const uint64_t sizes[] = {1, 3, 4, 16383, 16385, (1 << 20) + 5};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        lap_elementwise_report report;
        MUST(check_with("", sizes[i], &report, &must_error));
        assert_int_equal(report.compared, sizes[i] < 1 << 20 ? sizes[i] : 1 << 20);
        for (int op = 0; op < LAP_ELEMENTWISE_OPS; op++)
            assert_true(report.worst_ulp[op] <= lap_elementwise_bound[op]);
    }
}

static void off_by_ulps(const lap_define *defines, size_t count, const lap_raw_launch *launch,
                        void *const *pointers) {
    (void)defines, (void)count;
    const float *a = pointers[0];
    float *out = pointers[2];
    for (size_t i = 0; i < 4 * (size_t)launch->args[3].i32; i++) {
        out[i] = sinf(a[i]);
        for (int k = 0; k < 7 && i == 1000; k++)
            out[i] = nextafterf(out[i], 2);
    }
}

static void elementwise_wrong(void **state) {
    (void)state;
    lap_elementwise_report report;
    lap_error err = {0};
    const fake_plant_kind kinds[] = {FAKE_PLANT_WRONG, FAKE_PLANT_NAN, FAKE_PLANT_NOTHING};
    for (int i = 0; i < 3; i++) {
        fake_plant("elementwise", kinds[i]);
        assert_int_equal(check_with("", 5000, &report, &err), LAP_E_VERIFY);
        assert_non_null(strstr(err.message, "mul: element"));
    }
    fake_plant("elementwise", FAKE_PLANT_NONE);
    fake_register("elementwise", "elementwise_sin", off_by_ulps);
    assert_int_equal(check_with("", 5000, &report, &err), LAP_E_VERIFY);
    assert_non_null(strstr(err.message, "sin: element 1000"));
    assert_non_null(strstr(err.message, "at most 4"));
}

static void elementwise_sizes(void **state) {
    (void)state;
    lap_session *session = begin_session();
    lap_elementwise *w;
    lap_error err = {0};
    assert_int_equal(lap_elementwise_open(session->queue, 0, &w, &err), LAP_E_ARG);
    assert_int_equal(lap_elementwise_open(session->queue, (uint64_t)1 << 32, &w, &err), LAP_E_ARG);
    assert_int_equal(lap_elementwise_open(session->queue, 1 << 26, &w, &err), LAP_E_OOM);
    assert_non_null(strstr(err.message, "3 x 67108864 floats"));
    assert_null(w);
    end_session(session);
}

int main(void) {
#define FAKE_TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        FAKE_TEST(copies),
        FAKE_TEST(copies_without_pinned_memory),
        FAKE_TEST(copies_without_clock),
        FAKE_TEST(copies_stop),
        FAKE_TEST(flush),
        FAKE_TEST(elementwise_right),
        FAKE_TEST(elementwise_wrong),
        FAKE_TEST(elementwise_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
