/* Pipeline, several queues, and the pitfalls, with a tiny network on the fake device. */
#include "fake_queue.h"
#include "measure/pipeline.h"
#include "measure/pitfalls.h"
#include "measure/streams.h"
#include "tiny.h"

enum { BATCH = 2, QUEUES = 3 };

static struct {
    lap_net *net;
    lap_weights *weights;
    lap_expected expected;
    lap_session *session;
    lap_plan *plans[QUEUES];
    lap_queue *queues[QUEUES];
    void *packed;
} t;

static lap_plan *new_plan(lap_queue *queue) {
    lap_plan *plan;
    lap_plan_options options = {.batch = BATCH, .naive = true, .queue = queue};
    MUST(lap_plan_new(t.session, t.net, &options, NULL, NULL, &plan, &must_error));
    MUST(lap_plan_upload(plan, t.weights, &must_error));
    MUST(lap_plan_bind(plan, &must_error));
    MUST(lap_plan_set_input(plan, t.expected.images, t.expected.count, &must_error));
    return plan;
}

static void open_plans(bool own_queues) {
    for (int i = 0; i < QUEUES; i++) {
        if (own_queues) MUST(lap_queue_new(t.session->device, &t.queues[i], &must_error));
        t.plans[i] = new_plan(t.queues[i]);
        assert_ptr_equal(lap_plan_queue(t.plans[i]), own_queues ? t.queues[i] : t.session->queue);
    }
    t.packed = malloc(lap_plan_input_bytes(t.plans[0]));
    assert_non_null(t.packed);
    MUST(lap_plan_pack_input(t.plans[0], t.expected.images, t.expected.count, t.packed,
                             &must_error));
}

static int set_up(void **state) {
    (void)state;
    fresh_fake();
    memset(&t, 0, sizeof t);
    t.net = tiny_net();
    t.weights = tiny_weights(t.net);
    tiny_expected(t.net, t.weights, 2, &t.expected);
    t.session = begin_session();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < QUEUES; i++)
        lap_plan_free(t.plans[i]);
    for (int i = 0; i < QUEUES; i++)
        lap_queue_free(t.queues[i]);
    free(t.packed);
    end_session(t.session);
    lap_expected_free(&t.expected);
    lap_weights_free(t.weights);
    lap_net_free(t.net);
    return 0;
}

/* Packed input is what set_input uploads, bit for bit. */
static void packed_input(void **state) {
    (void)state;
    open_plans(false);
    size_t bytes = lap_plan_input_bytes(t.plans[0]);
    char *uploaded = malloc(bytes);
    assert_non_null(uploaded);
    MUST(lap_buffer_read(t.session->queue, lap_plan_input_buffer(t.plans[0]), 0, uploaded, bytes,
                         &must_error));
    assert_memory_equal(uploaded, t.packed, bytes);
    free(uploaded);
}

/* A host clock that shows how long the device has been at work, one thing after the other; and how
 * often each plan ran, told by where it puts its logits. */
static const double LAUNCH_S = 1e-5, COPY_S = 3e-5;
static struct {
    const void *output[QUEUES + 1];
    size_t count[QUEUES + 1];
} ran;

static double busy(void) {
    return (double)fake.launches * LAUNCH_S + (double)fake.copies * COPY_S;
}

static double count_runs(const char *stem, const lap_raw_launch *launch) {
    size_t i = 0;
    if (strcmp(stem, "fc_naive") != 0) return LAUNCH_S;
    while (i < QUEUES && ran.output[i] && ran.output[i] != launch->args[3].buffer)
        i++;
    ran.output[i] = launch->args[3].buffer;
    ran.count[i]++;
    return LAUNCH_S;
}

static void begin_counting(void) {
    memset(&ran, 0, sizeof ran);
    fake.cost = count_runs;
}

static lap_pipeline_job pipeline_job(void) {
    return (lap_pipeline_job){
        .plans = {t.plans[0], t.plans[1]}, .input = t.packed, .batch = BATCH, .batches = 5};
}

/* The clock is a difference of sums. */
static void assert_rate(lap_optional got, double want) {
    if (!got.has || !(fabs(got.value / want - 1) < 1e-9))
        fail_msg("%g, not %g", got.has ? got.value : NAN, want);
}

static void pipeline(void **state) {
    (void)state;
    open_plans(false);
    for (int deferred = 0; deferred < 2; deferred++) {
        fake.deferred = deferred;
        lap_pipeline_job job = pipeline_job();
        job.now = busy;
        lap_pipeline out;
        begin_counting();
        MUST(lap_pipeline_measure(&job, &out, &must_error));
        assert_true(out.has && out.pinned);
        assert_int_equal(out.batch, BATCH);
        assert_int_equal(out.batches, 5);
        double once = TINY_OPS * LAUNCH_S;
        assert_rate(out.compute_images_per_s, BATCH / once);
        assert_rate(out.serial_images_per_s, BATCH / (once + 2 * COPY_S));
        assert_rate(out.images_per_s, BATCH / (once + 2 * COPY_S));
        /* Three ways, each 2 runs to warm up and 5 more, two to check their order, one to compare
         * with. */
        assert_int_equal(ran.count[0], 3 * 4 + 2);
        assert_int_equal(ran.count[1], 3 * 3 + 1);
        assert_int_equal(ran.count[2], 0);
        assert_string_equal(out.reason, "");
    }
}

/* Each of the three ways has the time for itself: batches are begun until it is over, on the host's
 * clock, and at least two. */
static void pipeline_in_time(void **state) {
    (void)state;
    open_plans(false);
    const double once = TINY_OPS * LAUNCH_S, copied = once + 2 * COPY_S;
    const struct {
        double seconds;
        uint64_t compute, others;
    } cases[] = {{7.5 * once, 8, 5}, {0.1 * once, 2, 2}, {100 * copied, 50, 50}, {0, 50, 50}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_pipeline_job job = pipeline_job();
        job.now = busy;
        job.batches = 50;
        job.max_seconds = cases[i].seconds;
        lap_pipeline out;
        begin_counting();
        MUST(lap_pipeline_measure(&job, &out, &must_error));
        assert_int_equal(out.batches, cases[i].others);
        /* Beside those: two of each way to warm up, two that check the order, one to compare
         * with. */
        assert_int_equal(ran.count[0] + ran.count[1],
                         cases[i].compute + 2 * cases[i].others + 3 * 2 + 2 + 1);
        assert_rate(out.compute_images_per_s, BATCH / once);
        assert_rate(out.serial_images_per_s, BATCH / copied);
        assert_rate(out.images_per_s, BATCH / copied);
    }
}

static unsigned finishes;
static lap_status (*real_finish)(void *queue, lap_error *err);
static lap_status count_finishes(void *queue, lap_error *err) {
    finishes++;
    return real_finish(queue, err);
}

/* Passes alone have nothing that holds the host back: it waits after every 32, so that no queue
 * grows without end. */
static void pipeline_bounds_its_queue(void **state) {
    (void)state;
    open_plans(false);
    lap_device_ops saved = fake_ops;
    real_finish = fake_ops.queue_finish;
    fake_ops.queue_finish = count_finishes;
    const uint64_t batches[] = {31, 32, 63, 64, 70};
    const unsigned more[] = {0, 1, 1, 2, 2};
    unsigned without = 0;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        lap_pipeline_job job = pipeline_job();
        job.batches = batches[i];
        lap_pipeline out;
        finishes = 0;
        lap_status status = lap_pipeline_measure(&job, &out, &must_error);
        if (i == 0) without = finishes;
        if (status != LAP_OK || finishes != without + more[i])
            fail_msg("%llu batches: %u waits", (unsigned long long)batches[i], finishes);
    }
    fake_ops = saved;
}

static lap_status no_wait(void *queue, void *event, lap_error *err) {
    (void)queue, (void)event, (void)err;
    return LAP_OK;
}

/* The planted fault of this whole idea: queues that do not wait for each other. */
static void pipeline_without_waits(void **state) {
    (void)state;
    open_plans(false);
    lap_device_ops saved = fake_ops;
    fake_ops.queue_wait_event = no_wait;
    fake.deferred = true;
    lap_pipeline_job job = pipeline_job();
    lap_pipeline out;
    lap_error err = {0};
    lap_status status = lap_pipeline_measure(&job, &out, &err);
    fake_ops = saved;
    assert_int_equal(status, LAP_E_VERIFY);
    assert_false(out.has);
    assert_non_null(strstr(err.message, "pipeline: the results of slot"));
}

static void pipeline_without_async(void **state) {
    (void)state;
    open_plans(false);
    lap_device_ops saved = fake_ops;
    fake_ops.buffer_read_async = NULL;
    fake_ops.pinned_new = NULL;
    lap_pipeline_job job = pipeline_job();
    lap_pipeline out;
    MUST(lap_pipeline_measure(&job, &out, &must_error));
    fake_ops = saved;
    assert_true(out.has && !out.pinned && out.serial_images_per_s.has);
    assert_none(out.images_per_s);
    assert_non_null(strstr(out.reason, "cannot copy asynchronously"));
}

static bool yes(void *context) {
    (void)context;
    return true;
}

/* A fault at every device call comes out, and nothing leaks (tear_down looks). Only pinned memory
 * can be done without, and the last three calls are those that wait before everything is freed. */
static void pipeline_faults(void **state) {
    (void)state;
    open_plans(false);
    uint64_t calls = UINT64_MAX;
    for (uint64_t nth = 0; nth <= calls; nth++) {
        lap_pipeline_job job = pipeline_job();
        lap_pipeline out;
        lap_error err = {0};
        lap_device_fault_arm(nth ? nth : UINT64_MAX, LAP_E_LAUNCH);
        lap_status status = lap_pipeline_measure(&job, &out, &err);
        uint64_t made = lap_device_fault_arm(0, LAP_OK);
        if (nth == 0) calls = made;
        bool harmless = nth == 0 || nth > calls - 3;
        if (status != (harmless || !out.pinned ? LAP_OK : LAP_E_LAUNCH) &&
            !(status == LAP_E_LAUNCH && !out.has))
            fail_msg("call %llu of %llu: %d", (unsigned long long)nth, (unsigned long long)calls,
                     (int)status);
        if (status != LAP_OK) assert_non_null(strstr(err.message, "planted fault"));
    }
    assert_true(calls > 100);
}

static lap_streams_job streams_job(size_t count) {
    return (lap_streams_job){.plans = t.plans, .count = count, .batch = BATCH, .batches = 100};
}

static void streams(void **state) {
    (void)state;
    open_plans(true);
    fake.deferred = true;
    for (size_t count = 1; count <= QUEUES; count++) {
        lap_streams_job job = streams_job(count);
        job.now = busy;
        lap_stream_point point;
        begin_counting();
        uint64_t launches = fake.launches;
        MUST(lap_streams_measure(&job, &point, &must_error));
        assert_int_equal(point.streams, count);
        assert_int_equal(point.batches, 100);
        /* All of them, and one more on every queue to warm up. */
        uint64_t each = (uint64_t)lap_plan_launch_count(t.plans[0]);
        assert_int_equal(fake.launches - launches, (100 + count) * each);
        for (size_t i = 0; i <= QUEUES; i++) /* on every queue in turn */
            assert_int_equal(ran.count[i], i < count ? 1 + (100 + count - 1 - i) / count : 0);
        /* A batch waits for those of all other queues. */
        double once = TINY_OPS * LAUNCH_S;
        assert_int_equal(point.batch, BATCH);
        assert_rate(point.images_per_s, BATCH / once);
        assert_rate(point.latency_p50_s, (double)count * once);
        assert_rate(point.latency_max_s, (double)count * once);
        assert_true(point.latency_p99_s.has);
    }
}

/* Batches are begun until the time is over, one on every queue at least. */
static void streams_in_time(void **state) {
    (void)state;
    open_plans(true);
    const double once = TINY_OPS * LAUNCH_S;
    const struct {
        double seconds;
        uint64_t batches;
    } cases[] = {{10.5 * once, 11}, {0.1 * once, QUEUES}, {1000 * once, 100}, {0, 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lap_streams_job job = streams_job(QUEUES);
        job.now = busy;
        job.max_seconds = cases[i].seconds;
        lap_stream_point point;
        fake.launches += 1000; /* the clock does not begin at zero */
        MUST(lap_streams_measure(&job, &point, &must_error));
        assert_int_equal(point.batches, cases[i].batches);
        assert_rate(point.images_per_s, BATCH / once);
    }
}

static double still(void) {
    return 3;
}

static void streams_refused(void **state) {
    (void)state;
    open_plans(true);
    lap_streams_job job = streams_job(0);
    lap_stream_point point;
    lap_error err = {0};
    assert_int_equal(lap_streams_measure(&job, &point, &err), LAP_E_ARG);
    job = streams_job(2);
    job.interrupted = yes;
    assert_int_equal(lap_streams_measure(&job, &point, &err), LAP_E_INTERRUPTED);
    job = streams_job(2);
    job.now = still; /* no time, no rate */
    assert_int_equal(lap_streams_measure(&job, &point, &err), LAP_E_TIMER);
    assert_none(point.images_per_s);
}

/* ---- pitfalls ------------------------------------------------------------------------------- */

static void histogram(void **state) {
    (void)state;
    double x[] = {1, 2, 2, 3, NAN};
    lap_histogram h;
    lap_histogram_fill(x, 5, &h);
    assert_near(h.low, 1);
    assert_near(h.high, 3);
    assert_int_equal(h.counts[0], 1);
    assert_int_equal(h.counts[LAP_HISTOGRAM_BINS / 2], 2);
    assert_int_equal(h.counts[LAP_HISTOGRAM_BINS - 1], 1);
    assert_int_equal(h.most, 2);
    lap_histogram_fill(x, 1, &h); /* one sample: no width, no division by zero */
    assert_int_equal(h.counts[0], 1);
    lap_histogram_fill(x, 0, &h);
    assert_int_equal(h.most, 0);
    lap_histogram_fill(x + 4, 1, &h);
    assert_int_equal(h.most, 0);
}

/* Device time is real here, so that what is not waited for shows. The first run is slow. */
static unsigned runs_seen;
static double slow_start(const char *stem, const lap_raw_launch *launch) {
    (void)launch;
    if (strcmp(stem, "fc_naive") != 0) return 1e-5;
    return runs_seen++ == 0 ? 0.05 : 2e-3;
}

static void pitfalls(void **state) {
    (void)state;
    open_plans(false);
    runs_seen = 0;
    fake.real_time = true;
    fake.cost = slow_start;
    fake.copy_bytes_per_s = 1e6;
    lap_timing timing;
    MUST(lap_timing_open(t.session->queue, &timing, &must_error));
    lap_pitfalls_job job = {.plan = t.plans[0],
                            .packed = t.packed,
                            .timing = &timing,
                            .repetitions = 12,
                            .warmup_count = 2};
    lap_pitfalls p;
    MUST(lap_pitfalls_cold(&job, &p, &must_error));
    MUST(lap_pitfalls_measure(&job, &p, &must_error));
    const lap_way *right = &p.ways[LAP_WAY_RIGHT];
    assert_int_equal(p.clock, LAP_CLOCK_DEVICE);
    assert_int_equal(right->n, 12);
    assert_some(right->factor, 1);
    assert_true(fabs(right->stats.mean.value - 2.06e-3) < 1e-4);
    assert_true(p.ways[LAP_WAY_NO_WARMUP].n == 10 && p.ways[LAP_WAY_NO_WARMUP].factor.value > 2);
    assert_true(p.ways[LAP_WAY_NO_WAIT].factor.value < 0.5);
    assert_true(p.ways[LAP_WAY_COPIES_PAGEABLE].factor.value > 1.2);
    assert_true(p.ways[LAP_WAY_COPIES_PINNED].has);
    assert_int_equal(p.ways[LAP_WAY_ONE_SAMPLE].stats.n, 1);
    assert_none(p.ways[LAP_WAY_ONE_SAMPLE].stats.std);
    assert_true(p.ways[LAP_WAY_ONE_SAMPLE].factor.has);
    lap_pitfalls_free(&p);
    lap_timing_close(&timing);
}

/* What one sample would have said is the first; how far it could be off, the furthest of all, in
 * either direction. */
static unsigned calls_of_fc;
static double one_far_off(const char *stem, const lap_raw_launch *launch) {
    (void)launch;
    static const double slow[] = {1e-3, 1e-3, 0.9e-3, 0.2e-3, 1.1e-3, 1e-3, 1e-3, 2e-3, 1e-3, 1e-3};
    if (strcmp(stem, "fc_naive") != 0) return 0;
    return slow[calls_of_fc++ % 10];
}

static void factors(void **state) {
    (void)state;
    open_plans(false);
    fake.cost = one_far_off;
    lap_timing timing;
    MUST(lap_timing_open(t.session->queue, &timing, &must_error));
    lap_pitfalls_job job = {
        .plan = t.plans[0], .packed = t.packed, .timing = &timing, .repetitions = 10};
    lap_pitfalls p = {0};
    calls_of_fc = 0;
    fake.real_time = true; /* or the stamps would be longer than what the host saw */
    MUST(lap_pitfalls_measure(&job, &p, &must_error));
    assert_int_equal(p.clock, LAP_CLOCK_DEVICE);
    const double mean = 1.02e-3;
    const lap_way *one = &p.ways[LAP_WAY_ONE_SAMPLE];
    assert_true(fabs(p.ways[LAP_WAY_RIGHT].stats.mean.value / mean - 1) < 1e-6);
    assert_true(fabs(one->stats.mean.value / 1e-3 - 1) < 1e-6);
    assert_true(fabs(one->factor.value / (0.2e-3 / mean) - 1) < 1e-6);
    for (int i = 0; i < LAP_WAYS; i++) {
        const lap_way *w = &p.ways[i];
        if (!w->has || i == LAP_WAY_ONE_SAMPLE) continue;
        assert_true(fabs(w->factor.value / (w->stats.mean.value / mean) - 1) < 1e-6);
        assert_int_equal(i == LAP_WAY_RIGHT, w->factor.value == 1);
    }
    lap_pitfalls_free(&p);
    lap_timing_close(&timing);
}

static void pitfalls_without_pinned(void **state) {
    (void)state;
    open_plans(false);
    lap_device_ops saved = fake_ops;
    fake_ops.pinned_new = NULL;
    lap_timing timing;
    MUST(lap_timing_open(t.session->queue, &timing, &must_error));
    lap_pitfalls_job job = {
        .plan = t.plans[0], .packed = t.packed, .timing = &timing, .repetitions = 3};
    lap_pitfalls p;
    MUST(lap_pitfalls_cold(&job, &p, &must_error));
    MUST(lap_pitfalls_measure(&job, &p, &must_error));
    fake_ops = saved;
    assert_false(p.ways[LAP_WAY_COPIES_PINNED].has);
    assert_none(p.ways[LAP_WAY_COPIES_PINNED].factor);
    assert_non_null(strstr(p.ways[LAP_WAY_COPIES_PINNED].reason, "pinned"));
    lap_pitfalls_free(&p);
    lap_timing_close(&timing);
}

int main(void) {
#define LOAD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        LOAD_TEST(packed_input),
        LOAD_TEST(pipeline),
        LOAD_TEST(pipeline_in_time),
        LOAD_TEST(pipeline_bounds_its_queue),
        LOAD_TEST(pipeline_without_waits),
        LOAD_TEST(pipeline_without_async),
        LOAD_TEST(pipeline_faults),
        LOAD_TEST(streams),
        LOAD_TEST(streams_in_time),
        LOAD_TEST(streams_refused),
        cmocka_unit_test(histogram),
        LOAD_TEST(pitfalls),
        LOAD_TEST(factors),
        LOAD_TEST(pitfalls_without_pinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
