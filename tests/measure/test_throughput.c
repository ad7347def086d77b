/* The batch search against a simulated device with a capacity and failures at chosen batches. */
#include "measure/throughput.h"
#include "near.h"

#include <string.h>

typedef struct simulated {
    uint64_t capacity;  /* largest batch that fits */
    lap_status too_big; /* what a larger one returns */
    uint64_t fault_at;  /* this batch returns `fault` */
    lap_status fault;
    uint64_t slow_above;  /* the rate falls above this batch; 0: never */
    uint64_t dead_clock;  /* this batch shows no time (0 images/s) */
    double trial_s;       /* timed part of a trial, in batches of its own size */
    uint64_t final_limit; /* the final measurement fits up to this; 0: as capacity */
    double final_seconds; /* if not 0: what the final measurement shows */
    uint64_t tried[512];
    size_t tries, measures;
    size_t interrupt_after;
    uint64_t measured_batches;
    double build_s; /* of each try's clock, in building kernels */
} simulated;

static double clock_s;

static double now(void) {
    return clock_s;
}

static double rate_of(const simulated *d, uint64_t batch) {
    double rate = 1000.0 * (double)batch / ((double)batch + 8);
    return d->slow_above && batch > d->slow_above ? rate / 2 : rate;
}

static lap_status try_batch(void *context, uint64_t batch, lap_trial *out, lap_error *err) {
    simulated *d = context;
    assert_true(d->tries < sizeof d->tried / sizeof d->tried[0]);
    d->tried[d->tries++] = batch;
    clock_s += 1 + d->build_s;
    out->build_s = d->build_s;
    if (batch == d->fault_at) return LAP_FAIL(err, d->fault, "scripted fault");
    if (batch > d->capacity) return LAP_FAIL(err, d->too_big, "scripted capacity");
    if (batch != d->dead_clock) out->images_per_s = rate_of(d, batch);
    out->timed_s = d->trial_s * (double)batch / rate_of(d, batch);
    return LAP_OK;
}

static lap_status measure(void *context, uint64_t batch, uint64_t batches, double *seconds,
                          lap_error *err) {
    simulated *d = context;
    d->measures++;
    d->measured_batches = batches;
    if (d->final_limit && batch > d->final_limit) return LAP_FAIL(err, LAP_E_OOM, "final");
    if (batch == d->fault_at) return LAP_FAIL(err, d->fault, "scripted fault");
    *seconds = (double)batch * (double)batches / rate_of(d, batch);
    if (d->final_seconds != 0) *seconds = d->final_seconds;
    return LAP_OK;
}

static bool interrupted(void *context) {
    simulated *d = context;
    return d->interrupt_after > 0 && d->tries >= d->interrupt_after;
}

static lap_throughput_options options_of(simulated *d, lap_search search, uint64_t max_batch) {
    clock_s = 0;
    return (lap_throughput_options){.search = search,
                                    .max_batch = max_batch,
                                    .batches = 100,
                                    .interrupted = interrupted,
                                    .try_batch = try_batch,
                                    .measure = measure,
                                    .context = d,
                                    .now = now};
}

static simulated device(uint64_t capacity) {
    return (simulated){.capacity = capacity, .too_big = LAP_E_OOM};
}

static void assert_tried(const simulated *d, const uint64_t *batches, size_t count) {
    assert_int_equal(d->tries, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(d->tried[i], batches[i]);
}

static void doubling_until_it_fails(void **state) {
    (void)state;
    simulated d = device(100);
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 4096);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_tried(&d, (uint64_t[]){1, 2, 4, 8, 16, 32, 64, 128}, 8);
    assert_int_equal(t.best_batch, 64);
    assert_int_equal(t.curve_count, 8);
    assert_int_equal(t.curve[7].status, LAP_E_OOM);
    assert_none(t.curve[7].images_per_s);
    assert_non_null(strstr(t.curve[7].reason, "scripted capacity"));
    assert_non_null(strstr(t.ended, "batch 128: out of device memory"));
    assert_string_equal(t.search, "doubling");
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.batch, 64);
    assert_int_equal(t.batches, 100);
    /* batch x batches / seconds: the batch is multiplied in */
    assert_some(t.images_per_s, 1000.0 * 64 / 72);
    lap_throughput_free(&t);
}

static void doubling_ends_on_max_batch(void **state) {
    (void)state;
    simulated d = device(UINT64_MAX);
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 10);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_tried(&d, (uint64_t[]){1, 2, 4, 8, 10}, 5);
    assert_string_equal(t.ended, "max_batch reached");
    assert_int_equal(t.best_batch, 10);
    lap_throughput_free(&t);
    d = device(UINT64_MAX);
    o = options_of(&d, LAP_SEARCH_DOUBLING, UINT64_MAX);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK); /* no wrap */
    assert_int_equal(d.tries, 65);
    assert_true(t.best_batch == UINT64_MAX || t.best_batch >= UINT64_C(1) << 50);
    lap_throughput_free(&t);
}

static void linear_by_one(void **state) {
    (void)state;
    simulated d = device(5);
    d.too_big = LAP_E_LAUNCH; /* lazy allocation: it fails at the launch */
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_LINEAR, 100);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_tried(&d, (uint64_t[]){1, 2, 3, 4, 5, 6}, 6);
    assert_int_equal(t.best_batch, 5);
    assert_int_equal(t.curve[5].status, LAP_E_LAUNCH);
    lap_throughput_free(&t);
}

static void binary_finds_the_largest(void **state) {
    (void)state;
    for (uint64_t capacity = 1; capacity < 140; capacity++) {
        simulated d = device(capacity);
        lap_throughput t;
        lap_throughput_options o = options_of(&d, LAP_SEARCH_BINARY, 1000);
        assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
        assert_int_equal(t.best_batch, capacity); /* this device's rate rises with the batch */
        assert_true(d.tries <= 20);
        lap_throughput_free(&t);
    }
    simulated d = device(5000);
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_BINARY, 1000);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.best_batch, 1000);
    lap_throughput_free(&t);
}

static void best_is_the_fastest_not_the_largest(void **state) {
    (void)state;
    simulated d = device(1000);
    d.slow_above = 16;
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 256);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.best_batch, 16);
    lap_throughput_free(&t);
}

static void nothing_fits(void **state) {
    (void)state;
    const lap_search searches[] = {LAP_SEARCH_DOUBLING, LAP_SEARCH_LINEAR, LAP_SEARCH_BINARY};
    for (size_t i = 0; i < 3; i++) {
        simulated d = device(0);
        lap_throughput t;
        lap_error err = {0};
        lap_throughput_options o = options_of(&d, searches[i], 64);
        assert_int_equal(lap_throughput_search(&o, &t, &err), LAP_E_OOM);
        assert_non_null(strstr(err.message, "scripted capacity"));
        assert_int_equal(d.tries, 1);
        assert_int_equal(t.best_batch, 0);
        assert_int_equal(lap_throughput_measure(&o, &t, &err), LAP_E_ARG);
        assert_none(t.images_per_s);
        lap_throughput_free(&t);
    }
}

static void device_fault_ends_and_is_reported(void **state) {
    (void)state;
    simulated d = device(1000);
    d.fault_at = 8;
    d.fault = LAP_E_DEVICE;
    lap_throughput t;
    lap_error err = {0};
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 64);
    assert_int_equal(lap_throughput_search(&o, &t, &err), LAP_E_DEVICE);
    assert_non_null(strstr(err.message, "scripted fault"));
    assert_int_equal(d.tries, 4);
    assert_int_equal(t.curve_count, 4);
    assert_int_equal(t.best_batch, 4); /* what was found stays, for a fresh context */
    assert_int_equal(lap_throughput_measure(&o, &t, &err), LAP_OK);
    assert_int_equal(t.batch, 4);
    lap_throughput_free(&t);
    d = device(6);
    d.fault_at = 7; /* in the bisection, after 8 did not fit */
    d.fault = LAP_E_DEVICE;
    o = options_of(&d, LAP_SEARCH_BINARY, 64);
    assert_int_equal(lap_throughput_search(&o, &t, &err), LAP_E_DEVICE);
    assert_int_equal(t.best_batch, 6);
    lap_throughput_free(&t);
}

static void zero_rate_is_no_rate(void **state) {
    (void)state;
    simulated d = device(1000);
    d.dead_clock = 4;
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 8);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.curve_count, 4);
    assert_int_equal(t.curve[2].status, LAP_E_TIMER);
    assert_none(t.curve[2].images_per_s);
    assert_int_equal(t.best_batch, 8);
    const double dead[] = {-1.0, 0.0, NAN, INFINITY};
    for (size_t i = 0; i < sizeof dead / sizeof dead[0]; i++) {
        if (dead[i] == 0) continue; /* 0 means "not scripted" here; see the next test */
        d.final_seconds = dead[i];
        assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_E_TIMER);
        assert_none(t.images_per_s);
        assert_int_equal(t.batch, 0);
    }
    lap_throughput_free(&t);
}

static lap_status no_time(void *context, uint64_t batch, uint64_t batches, double *seconds,
                          lap_error *err) {
    (void)context, (void)batch, (void)batches, (void)err;
    *seconds = 0;
    return LAP_OK;
}

static void zero_seconds_is_no_rate(void **state) {
    (void)state;
    simulated d = device(1000);
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 2);
    o.measure = no_time;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_E_TIMER);
    assert_none(t.images_per_s);
    lap_throughput_free(&t);
}

static void interrupted_keeps_the_curve(void **state) {
    (void)state;
    simulated d = device(1000);
    d.interrupt_after = 3;
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 1024);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_E_INTERRUPTED);
    assert_int_equal(t.curve_count, 3);
    assert_int_equal(t.best_batch, 4);
    assert_string_equal(t.ended, "interrupted");
    lap_throughput_free(&t);
}

static void max_seconds_ends_the_search(void **state) {
    (void)state;
    simulated d = device(1000);
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_LINEAR, 1024);
    o.max_seconds = 4.5; /* each try takes a second here */
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.curve_count, 5);
    assert_string_equal(t.ended, "max_seconds reached");
    lap_throughput_free(&t);
    d.build_s = 100; /* does not count, also where the batch then fails */
    d.tries = 0;
    d.capacity = 4;
    o = options_of(&d, LAP_SEARCH_BINARY, 1024);
    o.max_seconds = 4.5;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.curve_count, 5); /* 1, 2, 4, 8, 6: and 5 would be the sixth */
    assert_string_equal(t.ended, "max_seconds reached");
    lap_throughput_free(&t);
    d.build_s = 0;
    d.tries = 0;
    d.capacity = 1000;
    o = options_of(&d, LAP_SEARCH_LINEAR, 1024);
    o.max_seconds = 4.5;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.curve_count, 5);
    /* 5 images at 5000/13 a second: 346 batches in 4.5 s, so all 100 are timed */
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_OK);
    assert_int_equal(d.measured_batches, 100);
    o.max_seconds = 0.1;
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.batches, 7);
    assert_int_equal(t.batches_planned, 100);
    assert_some(t.images_per_s, 5000.0 / 13);
    o.max_seconds = 1e-9;
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.batches, 1);
    lap_throughput_free(&t);
}

static void smaller_batch_after_a_late_failure(void **state) {
    (void)state;
    simulated d = device(64);
    d.final_limit = 16;
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 1024);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_OK);
    assert_int_equal(d.measures, 3);
    assert_int_equal(t.batch, 16);
    assert_int_equal(t.best_batch, 64);
    assert_int_equal(t.curve[6].status, LAP_E_OOM); /* 64 is marked */
    lap_throughput_free(&t);
}

static void bad_options(void **state) {
    (void)state;
    simulated d = device(64);
    lap_throughput t;
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 0);
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_E_ARG);
    o = options_of(&d, LAP_SEARCH_DOUBLING, 8);
    o.first_batch = 9;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_E_ARG);
    o = options_of(&d, LAP_SEARCH_DOUBLING, 8);
    o.batches = 0;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_E_ARG);
    assert_int_equal(d.tries, 0);
    lap_search search = LAP_SEARCH_BINARY;
    assert_false(lap_search_parse("bisect", &search));
    assert_true(lap_search_parse("linear", &search));
    assert_int_equal(search, LAP_SEARCH_LINEAR);
}

static void sweep_search(void **state) {
    (void)state;
    simulated d = {.capacity = 29, .too_big = LAP_E_OOM};
    lap_throughput_options o = options_of(&d, LAP_SEARCH_SWEEP, 1000);
    lap_throughput t;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    const uint64_t want[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 28, 30, 29};
    assert_int_equal(d.tries, sizeof want / sizeof *want);
    for (size_t i = 0; i < d.tries; i++)
        assert_int_equal(d.tried[i], want[i]);
    assert_int_equal(t.largest_batch, 29);
    assert_true(t.largest_known);
    lap_throughput_free(&t);
    simulated odd = {.capacity = 1000, .too_big = LAP_E_OOM}; /* from a batch that is no step */
    o = options_of(&odd, LAP_SEARCH_SWEEP, 20);
    o.first_batch = 5;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    const uint64_t odd_want[] = {5, 8, 12, 16, 20};
    assert_int_equal(odd.tries, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(odd.tried[i], odd_want[i]);
    assert_true(t.largest_known); /* max_batch */
    lap_throughput_free(&t);
}

/* rate = 1000 b / (b + 8): 256 gives 969.7, and 97 % of that is reached from 128 on (941). */
static void knee(void **state) {
    (void)state;
    simulated d = {.capacity = 400, .too_big = LAP_E_OOM};
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 4096);
    lap_throughput t;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.best_batch, 256);
    assert_int_equal(t.knee_batch, 128);
    assert_int_equal(t.largest_batch, 256);
    assert_false(t.largest_known); /* 512 failed, what lies between was not tried */
    lap_throughput_free(&t);
}

/* A batch takes (b + 8) ms: 32 take 40. */
static void latency_limit(void **state) {
    (void)state;
    simulated d = {.capacity = 4096, .too_big = LAP_E_OOM};
    lap_throughput_options o = options_of(&d, LAP_SEARCH_DOUBLING, 4096);
    lap_throughput t;
    o.latency_limit_s = 0.0405;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(d.tries, 7); /* 64 is over, nothing larger is tried */
    assert_true(t.curve[6].over_limit && t.curve[6].images_per_s.has);
    assert_int_equal(t.best_batch, 32);
    assert_int_equal(t.largest_batch, 64); /* it fits */
    assert_non_null(strstr(t.ended, "latency_limit_ms"));
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.batch, 32);
    lap_throughput_free(&t);
    o = options_of(&d, LAP_SEARCH_BINARY, 4096); /* finds the largest within it */
    o.latency_limit_s = 0.0405;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.best_batch, 32);
    assert_non_null(strstr(t.ended, "is within latency_limit_ms"));
    lap_throughput_free(&t);
    o = options_of(&d, LAP_SEARCH_DOUBLING, 4096); /* none within: nothing is measured */
    o.latency_limit_s = 0.001;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.best_batch, 0);
    assert_int_equal(t.knee_batch, 0);
    assert_true(t.curve[0].over_limit);
    assert_int_equal(lap_throughput_measure(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.batch, 0);
    assert_false(t.images_per_s.has);
    lap_throughput_free(&t);
}

/* A linear search costs ever more: it ends when it took twice the measurement to come. */
static void search_cost(void **state) {
    (void)state;
    simulated d = {.capacity = 4096, .too_big = LAP_E_OOM, .trial_s = 3};
    lap_throughput_options o = options_of(&d, LAP_SEARCH_LINEAR, 500);
    lap_throughput t;
    o.search_cost = 2;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_non_null(strstr(t.ended, "search_cost"));
    assert_true(t.curve_count > 20 && t.curve_count < 200);
    double final = 100.0 * (double)t.best_batch / rate_of(&d, t.best_batch);
    double last = 3.0 * (double)t.best_batch / rate_of(&d, t.best_batch);
    assert_true(t.search_s > 2 * final - 2 * last && t.search_s < 2 * final + 2 * last);
    lap_throughput_free(&t);
    o.search_cost = 0; /* no limit */
    d.tries = 0;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.curve_count, 500);
    lap_throughput_free(&t);
    simulated twice = {.capacity = 4096, .too_big = LAP_E_OOM, .trial_s = 3};
    o = options_of(&twice, LAP_SEARCH_DOUBLING, 1024); /* doubling stays below it */
    o.search_cost = 2;
    assert_int_equal(lap_throughput_search(&o, &t, NULL), LAP_OK);
    assert_int_equal(t.curve_count, 11);
    lap_throughput_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweep_search),
        cmocka_unit_test(knee),
        cmocka_unit_test(latency_limit),
        cmocka_unit_test(search_cost),
        cmocka_unit_test(doubling_until_it_fails),
        cmocka_unit_test(doubling_ends_on_max_batch),
        cmocka_unit_test(linear_by_one),
        cmocka_unit_test(binary_finds_the_largest),
        cmocka_unit_test(best_is_the_fastest_not_the_largest),
        cmocka_unit_test(nothing_fits),
        cmocka_unit_test(device_fault_ends_and_is_reported),
        cmocka_unit_test(zero_rate_is_no_rate),
        cmocka_unit_test(zero_seconds_is_no_rate),
        cmocka_unit_test(interrupted_keeps_the_curve),
        cmocka_unit_test(max_seconds_ends_the_search),
        cmocka_unit_test(smaller_batch_after_a_late_failure),
        cmocka_unit_test(bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
