/* Threads that meet: nobody passes a point before all have come, whoever leaves is not waited for,
 * turns are taken alone. Run under ThreadSanitizer as well (tests/tsan.sh). */
#include "measure/team.h"

#include "base/clock.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MEMBERS = 4, POINTS = 200 };

/* ---- a device that is only a clock ---------------------------------------------------------- */

static atomic_int busy, most_busy; /* members in a pass */

typedef struct toy {
    int index;
    double pass_s;
    size_t passes, fails_at; /* 0: never */
    const lap_team *team;
    lap_rounds rounds;
    lap_rounds_options options;
    lap_latency latency;
    lap_latency_run run;
    double started_s;
    lap_status status;
    lap_error err;
    size_t points;
    pthread_t thread;
} toy;

static void pause_for(double seconds) {
    struct timespec t = {0, (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

static lap_status toy_run(void *context, lap_error *err) {
    toy *t = context;
    int now = atomic_fetch_add(&busy, 1) + 1;
    int seen = atomic_load(&most_busy);
    while (now > seen && !atomic_compare_exchange_weak(&most_busy, &seen, now))
        continue;
    pause_for(t->pass_s);
    atomic_fetch_sub(&busy, 1);
    if (++t->passes == t->fails_at) return LAP_FAIL(err, LAP_E_LAUNCH, "toy %d broke", t->index);
    return LAP_OK;
}

static double now(void *context) {
    (void)context;
    return lap_clock_now();
}

static lap_status nothing(void *context, lap_error *err) {
    (void)context;
    (void)err;
    return LAP_OK;
}

static lap_status elapsed(void *context, double *seconds, lap_error *err) {
    (void)context;
    *seconds = 0;
    return LAP_FAIL(err, LAP_E_TIMER, "no device clock");
}

static const lap_timing timing = {
    .now = now, .before = nothing, .after = nothing, .finish = nothing, .elapsed = elapsed};

static lap_team_work work_of(toy *t) {
    return (lap_team_work){.workload = {toy_run, t}, .timing = &timing};
}

static toy toys[MEMBERS];

static void start(void *(*body)(void *), lap_team_threads **team) {
    assert_int_equal(lap_team_threads_new(MEMBERS, team, NULL), LAP_OK);
    atomic_store(&busy, 0);
    atomic_store(&most_busy, 0);
    for (int i = 0; i < MEMBERS; i++) {
        toys[i].index = i;
        toys[i].passes = 0;
        toys[i].team = lap_team_threads_member(*team, (size_t)i);
    }
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(pthread_create(&toys[i].thread, NULL, body, &toys[i]), 0);
}

static void end(lap_team_threads *team) {
    for (int i = 0; i < MEMBERS; i++)
        pthread_join(toys[i].thread, NULL);
    lap_team_threads_free(team);
}

/* ---- points --------------------------------------------------------------------------------- */

static atomic_size_t arrivals[POINTS];
static atomic_size_t early; /* passed a point before all had come */

static void *meet_often(void *context) {
    toy *t = context;
    lap_team_work work = work_of(t);
    for (size_t i = 0; i < POINTS; i++) {
        if (t->points && i == t->points) {
            t->team->leave(t->team->context);
            return NULL;
        }
        atomic_fetch_add(&arrivals[i], 1);
        t->status = lap_team_meet(t->team, &work, (i + (size_t)t->index) % 3 == 0, &t->err);
        if (t->status != LAP_OK) return NULL;
        size_t wanted = 0;
        for (int k = 0; k < MEMBERS; k++)
            wanted += toys[k].points == 0 || toys[k].points > i;
        if (atomic_load(&arrivals[i]) < wanted) atomic_fetch_add(&early, 1);
    }
    return NULL;
}

static void run_points(void) {
    lap_team_threads *team;
    for (int i = 0; i < POINTS; i++)
        atomic_store(&arrivals[i], 0);
    atomic_store(&early, 0);
    start(meet_often, &team);
    end(team);
    assert_int_equal(atomic_load(&early), 0);
    for (int i = 0; i < MEMBERS; i++)
        assert_int_equal(toys[i].status, LAP_OK);
}

static void nobody_is_early(void **state) {
    (void)state;
    memset(toys, 0, sizeof toys);
    for (int i = 0; i < MEMBERS; i++)
        toys[i].pass_s = 1e-5 * (i + 1);
    run_points();
}

static void who_leaves_is_not_waited_for(void **state) {
    (void)state;
    memset(toys, 0, sizeof toys);
    toys[1].points = 3;
    toys[3].points = 70;
    run_points();
    memset(toys, 0, sizeof toys);
    for (int i = 1; i < MEMBERS; i++) /* all but one, at the same point */
        toys[i].points = 5;
    run_points();
}

static bool always(void *context) {
    (void)context;
    return true;
}

static void waiting_can_be_interrupted(void **state) {
    (void)state;
    lap_team_threads *team;
    lap_error err = {0};
    memset(toys, 0, sizeof toys);
    assert_int_equal(lap_team_threads_new(2, &team, NULL), LAP_OK);
    const lap_team *one = lap_team_threads_member(team, 0), *two = lap_team_threads_member(team, 1);
    lap_team_work work = work_of(&toys[0]);
    work.interrupted = always;
    assert_int_equal(lap_team_meet(one, &work, false, &err), LAP_E_INTERRUPTED);
    one->leave(one->context);
    one->leave(one->context); /* twice is once */
    work.interrupted = NULL;
    assert_int_equal(lap_team_meet(two, &work, false, &err), LAP_OK);
    two->leave(two->context);
    lap_team_threads_free(team);
    lap_team_threads_free(NULL);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static atomic_int alone_busy;

static void *rounds(void *context) {
    toy *t = context;
    lap_team_work work = work_of(t);
    t->status = lap_team_rounds(t->team, &work, &t->options, &t->rounds, &t->err);
    return NULL;
}

static void set_rounds(double pass_s) {
    memset(toys, 0, sizeof toys);
    for (int i = 0; i < MEMBERS; i++) {
        toys[i].pass_s = pass_s;
        toys[i].options = (lap_rounds_options){
            .rounds = 3, .seconds = 0.02, .batch_s = pass_s, .rewarm_s = 1e-6, .batch = 8};
    }
}

static void rounds_alone_and_together(void **state) {
    (void)state;
    lap_team_threads *team;
    set_rounds(0.002);
    start(rounds, &team);
    end(team);
    assert_true(atomic_load(&most_busy) >= 2); /* they did overlap */
    for (int i = 0; i < MEMBERS; i++) {
        const lap_rounds *r = &toys[i].rounds;
        assert_int_equal(toys[i].status, LAP_OK);
        assert_int_equal(r->n, 3);
        assert_int_equal(r->batches, 10);
        assert_int_equal(r->batch, 8);
        assert_true(r->seconds >= 3 * 10 * 0.002);
        for (size_t k = 0; k < 3; k++) {
            /* 8 images in 2 ms or a little more. */
            assert_true(r->alone[k] > 10 && r->alone[k] <= 4000);
            assert_true(r->together[k] > 10 && r->together[k] <= 4000);
        }
    }
}

static int watched_runs;

static lap_status alone_run(void *context, lap_error *err) {
    /* One member takes its turn while the others are at the next point: never two at once. */
    if (atomic_fetch_add(&alone_busy, 1) > 0) watched_runs = -1000000;
    watched_runs++;
    lap_status status = toy_run(context, err);
    atomic_fetch_sub(&alone_busy, 1);
    return status;
}

/* The parts alone of one round; those together overlap on purpose. */
static void *turns_only(void *context) {
    toy *t = context;
    lap_team_work work = work_of(t);
    work.workload.run = alone_run;
    for (size_t turn = 0; turn < t->team->turns; turn++) {
        t->status = lap_team_meet(t->team, &work, false, &t->err);
        if (t->status != LAP_OK) return NULL;
        double ignored;
        for (int i = 0; turn == t->team->turn && i < 20; i++)
            lap_measure_once(&work.workload, &timing, &ignored, NULL);
    }
    return NULL;
}

static void turns_are_alone(void **state) {
    (void)state;
    lap_team_threads *team;
    memset(toys, 0, sizeof toys);
    watched_runs = 0;
    start(turns_only, &team);
    end(team);
    assert_int_equal(watched_runs, MEMBERS * 20);
    assert_int_equal(atomic_load(&most_busy), 1);
}

static void a_member_that_fails_in_a_round(void **state) {
    (void)state;
    lap_team_threads *team;
    set_rounds(0.001);
    toys[2].fails_at = 50;
    start(rounds, &team);
    end(team);
    assert_int_equal(toys[2].status, LAP_E_LAUNCH);
    assert_true(toys[2].rounds.n < 3);
    for (int i = 0; i < MEMBERS; i++)
        if (i != 2) assert_int_equal(toys[i].rounds.n, 3);
}

static void wrong_options(void **state) {
    (void)state;
    lap_team_threads *team;
    set_rounds(0.001);
    for (int i = 0; i < MEMBERS; i++)
        toys[i].options.batch_s = i == 0 ? 0 : 0.001;
    start(rounds, &team);
    end(team);
    assert_int_equal(toys[0].status, LAP_E_ARG);
    assert_int_equal(toys[1].status, LAP_OK);
}

/* ---- latency -------------------------------------------------------------------------------- */

static void *latency(void *context) {
    toy *t = context;
    lap_team_work work = work_of(t);
    lap_latency_options options = {.warmup_count = 2, .repetitions = 10, .passes = 1};
    t->status =
        lap_team_latency(t->team, &work, &options, &t->run, &t->latency, &t->started_s, &t->err);
    t->status = lap_latency_end(&t->run, t->status, &t->err);
    return NULL;
}

/* The fast one has no less company in its last sample than in its first. */
static void everybody_runs_until_all_are_done(void **state) {
    (void)state;
    lap_team_threads *team;
    memset(toys, 0, sizeof toys);
    for (int i = 0; i < MEMBERS; i++)
        toys[i].pass_s = i == 0 ? 0.01 : 0.001;
    start(latency, &team);
    end(team);
    for (int i = 0; i < MEMBERS; i++) {
        assert_int_equal(toys[i].status, LAP_OK);
        assert_int_equal(toys[i].latency.n, 10);
        assert_true(toys[i].started_s > 0);
    }
    /* Ten samples of the slow one take 100 ms: the others went on beside it. */
    assert_true(toys[1].passes > 12 && toys[0].passes < toys[1].passes);
    for (int i = 0; i < MEMBERS; i++)
        lap_latency_free(&toys[i].latency);
}

static void a_member_that_fails_in_its_warm_up(void **state) {
    (void)state;
    lap_team_threads *team;
    memset(toys, 0, sizeof toys);
    toys[1].fails_at = 1;
    start(latency, &team);
    end(team);
    assert_int_equal(toys[1].status, LAP_E_LAUNCH);
    assert_int_equal(toys[1].latency.n, 0);
    for (int i = 0; i < MEMBERS; i++) {
        if (i != 1) assert_int_equal(toys[i].latency.n, 10);
        lap_latency_free(&toys[i].latency);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(nobody_is_early),
                                       cmocka_unit_test(who_leaves_is_not_waited_for),
                                       cmocka_unit_test(waiting_can_be_interrupted),
                                       cmocka_unit_test(rounds_alone_and_together),
                                       cmocka_unit_test(turns_are_alone),
                                       cmocka_unit_test(a_member_that_fails_in_a_round),
                                       cmocka_unit_test(wrong_options),
                                       cmocka_unit_test(everybody_runs_until_all_are_done),
                                       cmocka_unit_test(a_member_that_fails_in_its_warm_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
