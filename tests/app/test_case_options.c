/* Every key about latency and throughput reaches the measuring code: each is set to a value of its
 * own, and what is asked for is compared field by field. */
#include "app/case_options.h"
#include "measure/near.h"

#include <string.h>

static lap_config *config;

static int set_up(void **state) {
    (void)state;
    return lap_config_new(&config, NULL) == LAP_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    lap_config_free(config);
    return 0;
}

static void set(const char *assignment) {
    lap_error err = {0};
    if (lap_config_set(config, assignment, "--set", &err) != LAP_OK) fail_msg("%s", err.message);
}

static lap_latency_options latency(void) {
    const lap_floor floor = {.claimed_s = lap_some(1e-9), .wall_s = lap_some(4e-5)};
    return lap_case_latency_options(config, &floor, 0.07);
}

/* Fields of both kinds of options by name, so that a key that changes another one shows too. */
enum { FIELDS = 13 };

static void latency_fields(const lap_latency_options *o, double *out) {
    const double fields[FIELDS] = {o->burn_in_seconds,
                                   o->warmup_auto,
                                   (double)o->warmup_count,
                                   o->warmup_seconds,
                                   (double)o->repetitions,
                                   o->noise_target,
                                   (double)o->min_samples,
                                   o->max_seconds,
                                   (double)o->passes,
                                   o->passes_auto,
                                   o->rewarm_seconds,
                                   o->tick_s,
                                   o->overhead_s.has ? o->overhead_s.value : -1};
    memcpy(out, fields, sizeof fields);
}

/* Settings are kept from case to case; what one changes is named. */
static void latency_keys(void **state) {
    (void)state;
    enum {
        BURN_IN,
        AUTO,
        WARMUP,
        WARMUP_S,
        REPETITIONS,
        NOISE,
        LEAST,
        MOST_S,
        PASSES,
        PASSES_AUTO
    };
    static const struct {
        const char *set;
        struct {
            int field;
            double value;
        } change[3];
        int changes;
    } cases[] = {
        {"latency:burn_in=3.5", {{BURN_IN, 3.5}}, 1},
        {"latency:warmup=17", {{WARMUP, 17}, {AUTO, 0}}, 2},
        {"latency:warmup=2.5s", {{WARMUP, 0}, {WARMUP_S, 2.5}}, 2},
        {"latency:warmup=auto", {{WARMUP_S, 0}, {AUTO, 1}}, 2},
        {"latency:repetitions=123", {{REPETITIONS, 123}}, 1},
        {"latency:noise_target=0.004", {{0, 0}}, 0}, /* only with the stop below */
        {"latency:max_samples=4567", {{0, 0}}, 0},
        {"latency:min_samples=34", {{LEAST, 34}}, 1},
        {"latency:max_seconds=56", {{MOST_S, 56}}, 1},
        {"latency:passes=7", {{PASSES, 7}, {PASSES_AUTO, 0}}, 2},
        {"latency:stop=relative_noise", {{NOISE, 0.004}, {REPETITIONS, 4567}}, 2},
        {"latency:cache=cold", {{PASSES, 1}}, 1}, /* a second pass would be hot */
        {"latency:cache=hot", {{PASSES, 7}}, 1},
        {"latency:passes=auto", {{PASSES, 0}, {PASSES_AUTO, 1}}, 2},
        {"latency:cache=cold", {{PASSES, 1}, {PASSES_AUTO, 0}}, 2},
        {"latency:cache=hot", {{PASSES, 0}, {PASSES_AUTO, 1}}, 2},
        {"latency:warmup=0", {{AUTO, 0}, {PASSES_AUTO, 0}}, 2}, /* finding out would warm up */
    };
    set("latency:warmup=auto");
    set("latency:stop=fixed");
    set("latency:passes=auto");
    double want[FIELDS], got[FIELDS];
    lap_latency_options o = latency();
    latency_fields(&o, want);
    assert_true(want[AUTO] == 1 && want[PASSES_AUTO] == 1 && want[NOISE] == 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set(cases[i].set);
        for (int k = 0; k < cases[i].changes; k++) {
            double *field = &want[cases[i].change[k].field];
            assert_true(*field != cases[i].change[k].value); /* or it would show nothing */
            *field = cases[i].change[k].value;
        }
        o = latency();
        latency_fields(&o, got);
        for (int f = 0; f < FIELDS; f++)
            if (got[f] != want[f])
                fail_msg("%s: field %d is %g, not %g", cases[i].set, f, got[f], want[f]);
    }
}

/* What was measured of the device's route, and of the runner. */
static void floor_and_turns(void **state) {
    (void)state;
    lap_floor floor = {.claimed_s = lap_some(1e-9), .wall_s = lap_some(4e-5)};
    lap_latency_options o = lap_case_latency_options(config, &floor, 0.07);
    assert_near(o.tick_s, 1e-9);
    assert_some(o.overhead_s, 4e-5);
    assert_near(o.rewarm_seconds, 0.07);
    floor.measured_s = lap_some(3e-8);
    floor.wall_s = lap_none();
    o = lap_case_latency_options(config, &floor, 0);
    assert_near(o.tick_s, 3e-8);
    assert_none(o.overhead_s);
}

static void throughput_keys(void **state) {
    (void)state;
    const lap_search searches[] = {LAP_SEARCH_DOUBLING, LAP_SEARCH_LINEAR, LAP_SEARCH_BINARY,
                                   LAP_SEARCH_SWEEP};
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        char text[64];
        snprintf(text, sizeof text, "throughput:search=%s", lap_search_name(searches[i]));
        set(text);
        assert_int_equal(lap_case_throughput_options(config).search, searches[i]);
    }
    set("throughput:max_batch=77");
    set("throughput:batches=88");
    set("throughput:max_seconds=9.5");
    set("throughput:latency_limit_ms=12.5");
    set("throughput:search_cost=3.5");
    lap_throughput_options o = lap_case_throughput_options(config);
    assert_int_equal(o.first_batch, 0);
    assert_int_equal(o.max_batch, 77);
    assert_int_equal(o.batches, 88);
    assert_near(o.max_seconds, 9.5);
    assert_near(o.latency_limit_s, 0.0125);
    assert_near(o.search_cost, 3.5);
}

int main(void) {
#define CONFIG_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(latency_keys),
        CONFIG_TEST(floor_and_turns),
        CONFIG_TEST(throughput_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
