/* The protocol of a fleet over a wire in memory: a thread for each rank. Who is late, other or gone
 * is named, the rest goes on, nobody waits for ever. */
#include "base/clock.h"
#include "fleet/merge.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = 4, PARTS = 3 };

/* ---- the wire ------------------------------------------------------------------------------- */

typedef struct letter {
    struct letter *next;
    size_t from, size;
    char bytes[];
} letter;

typedef struct box {
    letter *first, **last;
} box;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static box boxes[RANKS];

typedef struct rank {
    size_t index;
    lap_wire wire;
    lap_fleet fleet;
    const char *version, *host, *why;
    const char *setting;
    double late_s; /* before it joins */
    double slow_s; /* before its first point */
    int dies;      /* 1: never joins, 2: after ready, 3: after its first part; says nothing more */
    int leaves;    /* leaves the first part at once */
    size_t met;    /* points it passed */
    lap_status status;
    lap_error err;
    pthread_t thread;
} rank;

static rank ranks[RANKS];
static atomic_size_t arrivals[PARTS][20];
static atomic_size_t early; /* passed a point before all had come */

static lap_status mem_send(void *context, size_t to, const void *bytes, size_t size,
                           lap_error *err) {
    (void)err;
    rank *r = context;
    letter *l = malloc(sizeof *l + size);
    *l = (letter){.from = r->index, .size = size};
    memcpy(l->bytes, bytes, size);
    pthread_mutex_lock(&lock);
    *boxes[to].last = l;
    boxes[to].last = &l->next;
    pthread_mutex_unlock(&lock);
    return LAP_OK;
}

static lap_status mem_poll(void *context, size_t *from, void **bytes, size_t *size,
                           lap_error *err) {
    (void)err;
    rank *r = context;
    box *b = &boxes[r->index];
    *bytes = NULL;
    pthread_mutex_lock(&lock);
    letter *l = b->first;
    if (l) {
        b->first = l->next;
        if (!b->first) b->last = &b->first;
    }
    pthread_mutex_unlock(&lock);
    if (!l) return LAP_OK;
    *from = l->from;
    *size = l->size;
    *bytes = malloc(l->size);
    memcpy(*bytes, l->bytes, l->size);
    free(l);
    return LAP_OK;
}

/* ---- one rank ------------------------------------------------------------------------------- */

static char document[20000];
static size_t documents;
static size_t order[RANKS];

static lap_status on_result(void *context, size_t index, const char *json, size_t size,
                            const char *csv) {
    (void)context;
    assert_string_equal(json, document);
    assert_int_equal(size, strlen(document));
    assert_string_equal(csv, "a,b\r\n");
    order[documents++] = index;
    return LAP_OK;
}

static lap_status idle(void *context, lap_error *err) {
    (void)context;
    (void)err;
    return LAP_OK;
}

static double now(void *context) {
    (void)context;
    return lap_clock_now();
}

static lap_status measure(rank *r) {
    const lap_timing timing = {.now = now, .before = idle, .after = idle, .finish = idle};
    lap_team_work work = {.workload = {idle, NULL}, .timing = &timing};
    if (r->slow_s > 0) lap_clock_sleep(r->slow_s);
    for (int part = 0; part < PARTS; part++) {
        const lap_team *team = lap_fleet_team(&r->fleet);
        if (r->leaves && part == 0) {
            team->leave(team->context);
            continue;
        }
        for (int k = 0; k < 20; k++) {
            atomic_fetch_add(&arrivals[part][k], 1);
            LAP_TRY(lap_team_meet(team, &work, k % 2 == 0, &r->err));
            if (atomic_load(&arrivals[part][k]) < RANKS) atomic_fetch_add(&early, 1);
            r->met++;
        }
        if (r->dies == 3) return LAP_OK;
    }
    return LAP_OK;
}

static void run(rank *r) {
    json_t *config = json_pack("{s:{s:s}, s:{s:s}}", "run", "rounds", r->setting, "output", "json",
                               r->index ? "x" : "y");
    lap_fleet_card card = {r->host, r->version, 100 + r->index, config};
    if (r->late_s > 0) lap_clock_sleep(r->late_s);
    if (r->dies != 1) r->status = lap_fleet_join(&r->fleet, &r->wire, &card, 1.5, &r->err);
    json_decref(config);
    if (r->dies == 1) return;
    bool fit = r->status == LAP_OK && !r->why;
    if (r->status == LAP_OK)
        r->status = lap_fleet_ready(&r->fleet, "fake:0", "Fake", r->why ? r->why : "", &r->err);
    if (r->dies == 2) return;
    if (fit && r->status == LAP_OK) r->status = measure(r);
    if (r->dies == 3) return;
    if (r->index == 0)
        r->status = lap_fleet_gather(&r->fleet, on_result, NULL, &r->err);
    else
        lap_fleet_deliver(&r->fleet, 0, fit ? document : NULL, "a,b\r\n", &r->err);
}

static void *body(void *context) {
    run(context);
    return NULL;
}

static int set_up(void **state) {
    (void)state;
    memset(ranks, 0, sizeof ranks);
    for (int part = 0; part < PARTS; part++)
        for (int k = 0; k < 20; k++)
            atomic_store(&arrivals[part][k], 0);
    atomic_store(&early, 0);
    documents = 0;
    memset(document, 'x', sizeof document - 1);
    for (size_t i = 0; i < RANKS; i++) {
        boxes[i] = (box){.last = &boxes[i].first};
        ranks[i].index = i;
        ranks[i].version = "1";
        ranks[i].setting = "5";
        ranks[i].host = i < 2 ? "a" : "b";
        ranks[i].wire = (lap_wire){
            .context = &ranks[i], .rank = i, .size = RANKS, .send = mem_send, .poll = mem_poll};
    }
    return 0;
}

static void all(void) {
    double begun = lap_clock_now();
    for (size_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, body, &ranks[i]), 0);
    /* Rank 0's good-bye lets the others go. */
    pthread_join(ranks[0].thread, NULL);
    assert_int_equal(ranks[0].status, LAP_OK);
    assert_true(lap_clock_now() - begun < 30);
}

static void end(void) {
    lap_fleet_leave(&ranks[0].fleet);
    for (size_t i = 1; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        lap_fleet_leave(&ranks[i].fleet);
    }
    for (size_t i = 0; i < RANKS; i++)
        for (letter *l = boxes[i].first; l;) {
            letter *next = l->next;
            free(l);
            l = next;
        }
}

static const lap_rank *seen(size_t i) {
    return &ranks[0].fleet.ranks[i];
}

static void everybody(void **state) {
    (void)state;
    ranks[2].slow_s = 0.3; /* the others wait for it */
    all();
    assert_int_equal(atomic_load(&early), 0);
    assert_int_equal(documents, RANKS - 1);
    for (size_t i = 0; i < RANKS; i++) {
        assert_int_equal(seen(i)->state, LAP_RANK_OK);
        assert_int_equal(seen(i)->local_rank, i % 2);
        assert_int_equal(ranks[i].met, PARTS * 20);
        assert_int_equal(ranks[i].fleet.turn, i % 2); /* two on each host */
        assert_int_equal(ranks[i].fleet.turns, 2);
        assert_int_equal(ranks[i].fleet.others, RANKS - 1);
        assert_string_equal(ranks[i].fleet.devices, "4 x Fake");
        if (i > 0) assert_int_equal(order[i - 1], i); /* in the order of the ranks */
    }
    end();
}

static void others_are_refused(void **state) {
    (void)state;
    ranks[1].version = "2";
    ranks[2].setting = "6";
    all();
    assert_int_equal(seen(1)->state, LAP_RANK_REFUSED);
    assert_non_null(strstr(seen(1)->reason, "another version: warmlap 2, and rank 0 is 1"));
    assert_int_equal(seen(2)->state, LAP_RANK_REFUSED);
    assert_non_null(strstr(seen(2)->reason, "[run] rounds = 6, and rank 0 has 5"));
    assert_int_equal(seen(3)->state, LAP_RANK_OK);
    assert_int_equal(ranks[3].met, PARTS * 20);
    assert_string_equal(ranks[3].fleet.devices, "2 x Fake");
    end();
}

static void one_without_a_device(void **state) {
    (void)state;
    for (size_t who = 0; who < 2; who++) {
        set_up(NULL);
        ranks[who].why = "no device";
        all();
        assert_int_equal(seen(who)->state, LAP_RANK_FAILED);
        assert_string_equal(seen(who)->reason, "no device");
        assert_int_equal(documents, who == 0 ? 3 : 2);
        assert_int_equal(ranks[2].met, PARTS * 20);
        end();
    }
}

static void one_that_leaves_a_part(void **state) {
    (void)state;
    for (size_t who = 0; who < 2; who++) {
        set_up(NULL);
        ranks[who].leaves = 1;
        all();
        for (size_t i = 0; i < RANKS; i++) {
            assert_int_equal(seen(i)->state, LAP_RANK_OK);
            assert_int_equal(ranks[i].met, i == who ? (PARTS - 1) * 20 : PARTS * 20);
        }
        end();
    }
}

static void the_silent_are_left_behind(void **state) {
    (void)state;
    for (int when = 1; when <= 3; when++) {
        set_up(NULL);
        ranks[2].dies = when;
        all();
        assert_int_equal(seen(2)->state, LAP_RANK_LOST);
        assert_non_null(strstr(seen(2)->reason, "fleet_timeout"));
        assert_int_equal(documents, 2);
        assert_int_equal(ranks[1].met, PARTS * 20);
        assert_int_equal(ranks[3].met, PARTS * 20);
        end();
    }
}

/* The others find out by themselves. */
static void rank_0_dies(void **state) {
    (void)state;
    ranks[0].dies = 3;
    all();
    for (size_t i = 1; i < RANKS; i++) {
        pthread_join(ranks[i].thread, NULL);
        assert_int_equal(ranks[i].status, LAP_E_IO);
        assert_non_null(strstr(ranks[i].err.message, "rank 0 gave no sign of life"));
        lap_fleet_leave(&ranks[i].fleet);
    }
    lap_fleet_leave(&ranks[0].fleet);
    for (size_t i = 0; i < RANKS; i++)
        while (boxes[i].first) {
            letter *next = boxes[i].first->next;
            free(boxes[i].first);
            boxes[i].first = next;
        }
}

static void late_but_there(void **state) {
    (void)state;
    ranks[3].late_s = 0.8;
    all();
    assert_int_equal(seen(3)->state, LAP_RANK_OK);
    end();
}

static void bad_documents_are_refused(void **state) {
    (void)state;
    lap_merge *m;
    lap_rank r[2] = {{.state = LAP_RANK_OK}, {.state = LAP_RANK_LOST, .reason = "gone"}};
    const char *const bad[] = {"",
                               "x",
                               "[]",
                               "{}",
                               "{\"schema\": \"warmlap/9\", \"rows\": []}",
                               "{\"schema\": \"warmlap/1\", \"rows\": [1]}",
                               "{\"schema\": \"warmlap/1\", \"rows\": [{\"concurrent\": {\"set\": "
                               "99999999}}]}"};
    assert_int_equal(lap_merge_new(2, &m, NULL), LAP_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(lap_merge_add(m, 0, "a", bad[i], strlen(bad[i]), NULL), LAP_E_FORMAT);
    lap_merge_head head = {"", "", 1};
    lap_text text = {0};
    assert_int_equal(lap_merge_sum(m, r, NULL), LAP_OK);
    assert_int_equal(lap_merge_write(m, r, &head, &text, NULL), LAP_E_NODEVICE);
    lap_text_free(&text);
    lap_merge_free(m);
}

/* A rank whose document turns out to be bad after a row of it was taken has no part in the sum;
 * reasons and paths that are not UTF-8, cut in the middle of a character for one, are told all the
 * same. */
static void what_is_told_of_a_bad_rank(void **state) {
    (void)state;
    static const char half[] =
        "{\"schema\": \"warmlap/1\", \"rows\": [{\"status\": \"ok\", \"selector\": \"cuda:0\", "
        "\"concurrent\": {\"set\": 1, \"alone_images_per_s\": [9], \"images_per_s\": [8]}}, 1]}";
    static const char good[] =
        "{\"schema\": \"warmlap/1\", \"config\": {\"output\": {}}, \"rows\": [{\"status\": \"ok\", "
        "\"selector\": \"cuda:0\", \"concurrent\": {\"set\": 1, \"alone_images_per_s\": [5], "
        "\"images_per_s\": [4]}}]}";
    lap_merge *m;
    lap_rank r[2] = {{.state = LAP_RANK_OK},
                     {.state = LAP_RANK_FAILED, .reason = "cut in two: \xc2"}};
    size_t count;
    assert_int_equal(lap_merge_new(2, &m, NULL), LAP_OK);
    assert_int_equal(lap_merge_add(m, 1, "b", half, strlen(half), NULL), LAP_E_FORMAT);
    assert_int_equal(lap_merge_add(m, 0, "a", good, strlen(good), NULL), LAP_OK);
    assert_int_equal(lap_merge_sum(m, r, NULL), LAP_OK);
    const lap_set *sets = lap_merge_sets(m, &count);
    assert_int_equal(count, 1);
    assert_int_equal(sets[0].rated, 1);
    assert_true(sets[0].rate.value.value == 4);
    assert_false(sets[0].members[1].ok);
    lap_merge_head head = {"caf\xe9.json", "", 1};
    lap_text text = {0};
    assert_int_equal(lap_merge_write(m, r, &head, &text, NULL), LAP_OK);
    json_t *o = json_loads(lap_text_get(&text), 0, NULL);
    assert_non_null(o);
    json_t *told = json_array_get(json_object_get(json_object_get(o, "fleet"), "ranks"), 1);
    assert_string_equal(json_string_value(json_object_get(told, "reason")), "cut in two: ?");
    json_t *output = json_object_get(json_object_get(o, "config"), "output");
    assert_string_equal(json_string_value(json_object_get(output, "json")), "caf?.json");
    json_decref(o);
    lap_text_free(&text);
    lap_merge_free(m);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {TEST(everybody),
                                       TEST(others_are_refused),
                                       TEST(one_without_a_device),
                                       TEST(one_that_leaves_a_part),
                                       TEST(the_silent_are_left_behind),
                                       TEST(rank_0_dies),
                                       TEST(late_but_there),
                                       TEST(bad_documents_are_refused),
                                       TEST(what_is_told_of_a_bad_rank)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
