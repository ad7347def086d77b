/* Whole rows on a fake device whose memory is not what it seems: pieces that hold nothing beyond
 * the largest allocation, room that is only found missing when it is used, a context that refuses
 * everything after it lacked memory once. Each time the search ends there, and what is measured is
 * verified. */
#include "case_fixture.h"
#include "fake_objects.h"

enum { FITS = 8, TOO_MUCH = 16 };

static case_rig rig;
static lap_device_info device; /* what the program is told, as opposed to what the fake has */
static uint64_t piece;         /* the largest buffer of a batch that fits */

static void *poisoned; /* a device handle */
static lap_status (*real_new)(void *, size_t, void **, lap_error *);

static lap_status poisoning_new(void *handle, size_t bytes, void **out, lap_error *err) {
    if (poisoned == handle) return LAP_FAIL(err, LAP_E_OOM, "nothing is given any more");
    lap_status status = real_new(handle, bytes, out, err);
    if (status == LAP_E_OOM) poisoned = handle;
    return status;
}

static lap_status (*real_open)(const lap_device_info *, void **, lap_error *);

static lap_status fresh_open(const lap_device_info *info, void **out, lap_error *err) {
    lap_status status = real_open(info, out, err);
    if (poisoned == *out) poisoned = NULL; /* a new one at the same address */
    return status;
}

static void search_up_to(int batch, lap_row *row) {
    char text[64];
    snprintf(text, sizeof text, "throughput:max_batch=%d", batch);
    rig_set(&rig, text);
    lap_runner_case(&rig.runner, &rig.c, row);
}

static int set_up(void **state) {
    (void)state;
    rig_open(&rig);
    device = fake.devices[0];
    rig.c.device = &device;
    rig.c.latency = false;
    rig_set(&rig, "output:layers=no");
    rig_set(&rig, "throughput:search_cost=0");
    real_new = fake_ops.buffer_new;
    real_open = fake_ops.open;
    lap_row row;
    search_up_to(FITS, &row);
    assert_int_equal(row.status, LAP_ROW_OK);
    piece = fake.largest_buffer;
    lap_row_free(&row);
    search_up_to(TOO_MUCH, &row);
    assert_int_equal(row.status, LAP_ROW_OK);
    assert_true(fake.largest_buffer > piece); /* so it is the batch that decides */
    assert_int_equal(row.throughput.largest_batch, TOO_MUCH);
    lap_row_free(&row);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    fake_ops.buffer_new = real_new;
    fake_ops.open = real_open;
    rig_close(&rig);
    return 0;
}

/* The row is right and has a throughput at FITS or below; TOO_MUCH is a point of the curve that
 * says why it is none. */
static void expect_smaller(const char *why) {
    lap_row row;
    search_up_to(TOO_MUCH, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_true(row.verified.passed);
    const lap_throughput *t = &row.throughput;
    assert_true(t->images_per_s.has);
    assert_in_range(t->batch, 1, FITS);
    assert_int_equal(t->largest_batch, FITS);
    const lap_curve_point *last = &t->curve[t->curve_count - 1];
    assert_int_equal(last->batch, TOO_MUCH);
    assert_int_equal(last->status, LAP_E_OOM);
    assert_false(last->images_per_s.has);
    if (!strstr(last->reason, why)) fail_msg("'%s' is not in: %s", why, last->reason);
    lap_row_free(&row);
}

/* Larger buffers are given without a word, and hold nothing. */
static void largest_allocation(void **state) {
    (void)state;
    device.max_alloc_bytes = piece;
    fake.pretend_bytes = (size_t)piece;
    expect_smaller("in one piece, the device's largest allocation is");
}

/* ... and where the device claims too much, such a batch is found wrong: no rate of it is told. */
static void largest_allocation_unsaid(void **state) {
    (void)state;
    fake.pretend_bytes = (size_t)piece;
    lap_row row;
    search_up_to(TOO_MUCH, &row);
    assert_int_equal(row.status, LAP_ROW_FAILED);
    assert_int_equal(row.cause, LAP_E_VERIFY);
    assert_non_null(strstr(row.reason, "batch 16: "));
    assert_no_times(&row);
    lap_row_free(&row);
}

/* [throughput] memory_fraction of what the device has, and no other share. */
static void safe_share(void **state) {
    (void)state;
    enum { LARGEST = 128 };
    rig.c.batch = 1;
    for (int i = 0; i < 3; i++) {
        bool small = i == 2;
        rig_set(&rig, small ? "throughput:memory_fraction=0.25" : "throughput:memory_fraction=0.8");
        lap_row row;
        search_up_to(LARGEST, &row);
        if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
        const lap_throughput *t = &row.throughput;
        const lap_curve_point *last = &t->curve[t->curve_count - 1];
        assert_int_equal(t->largest_batch == LARGEST, !small);
        assert_int_equal(last->status, small ? LAP_E_OOM : LAP_OK);
        if (small) assert_non_null(strstr(last->reason, "([throughput] memory_fraction)"));
        lap_row_free(&row);
        /* The first had all the memory there is, the others twice what it took. */
        if (i == 0) fake.devices[0].memory_bytes = device.memory_bytes = 2 * fake.peak_bytes[0];
    }
}

static void missing_when_used(void **state) {
    (void)state;
    fake.devices[0].max_alloc_bytes = piece;
    device.max_alloc_bytes = 0;
    fake.lazy_memory = true;
    expect_smaller("promised");
}

/* Nothing works any more in a context that lacked memory once: the batch that is measured at the
 * end, and others after the first that failed, need a fresh one. */
static void context_of_no_use(void **state) {
    (void)state;
    fake.devices[0].max_alloc_bytes = piece;
    device.max_alloc_bytes = 0;
    fake_ops.buffer_new = poisoning_new;
    fake_ops.open = fresh_open;
    expect_smaller("no room for");
    rig_set(&rig, "throughput:search=binary");
    lap_row row;
    search_up_to(TOO_MUCH, &row);
    if (row.status != LAP_ROW_OK) fail_msg("%s", row.reason);
    assert_true(row.throughput.images_per_s.has);
    assert_in_range(row.throughput.largest_batch, FITS, TOO_MUCH - 1);
    lap_row_free(&row);
}

int main(void) {
#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        RIG_TEST(largest_allocation), RIG_TEST(largest_allocation_unsaid), RIG_TEST(safe_share),
        RIG_TEST(missing_when_used),  RIG_TEST(context_of_no_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
