/* The protocol of a fleet (see fleet.h), over any wire. */
#include "fleet/fleet.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x77310001, EPOCH_BITS = 24, WINDOW = 8 };

typedef enum kind {
    HELLO = 1, /* to 0: who I am */
    PLAN,      /* from 0: the answer to HELLO and to READY */
    READY,     /* to 0: what I measure */
    ARRIVE,    /* to 0, value: point */
    GO,        /* from 0, value: point */
    LEAVE,     /* to 0, value: the last point that must not wait for me */
    BEAT,
    DONE,    /* to 0 */
    COLLECT, /* from 0 */
    RESULT,  /* to 0, value: exit status; JSON, '\0', CSV, '\0' */
    BYE      /* from 0 */
} kind;

typedef struct head {
    uint32_t magic, kind;
    uint64_t value;
} head;

const char *lap_rank_state_name(lap_rank_state state) {
    switch (state) {
    case LAP_RANK_MISSING:
        return "missing";
    case LAP_RANK_JOINED:
    case LAP_RANK_ACTIVE:
    case LAP_RANK_DONE:
        return "unfinished";
    case LAP_RANK_OK:
        return "ok";
    case LAP_RANK_REFUSED:
        return "refused";
    case LAP_RANK_FAILED:
        return "failed";
    case LAP_RANK_LOST:
        return "lost";
    }
    return "unknown";
}

static bool is_root(const lap_fleet *f) {
    return f->rank == 0;
}

static void fail_rank(lap_rank *r, lap_rank_state state, const char *reason) {
    r->state = state;
    snprintf(r->reason, sizeof r->reason, "%.390s", reason);
}

/* Whether its points count. */
static bool measures(const lap_rank *r) {
    return r->state == LAP_RANK_ACTIVE;
}

static bool present(const lap_rank *r) {
    return r->state != LAP_RANK_MISSING && r->state != LAP_RANK_LOST;
}

/* ---- messages ------------------------------------------------------------------------------- */

static lap_status send_to(lap_fleet *f, size_t to, kind k, uint64_t value, const char *bytes,
                          size_t size, lap_error *err) {
    head h = {MAGIC, (uint32_t)k, value};
    char small[sizeof h + 1];
    char *message = size ? malloc(sizeof h + size) : small;
    if (!message) return LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory for %zu bytes", size);
    memcpy(message, &h, sizeof h);
    if (size) memcpy(message + sizeof h, bytes, size);
    lap_error detail = {0};
    lap_status status = f->wire.send(f->wire.context, to, message, sizeof h + size, &detail);
    if (size) free(message);
    if (status == LAP_OK) return LAP_OK;
    if (is_root(f)) { /* the others go on */
        fail_rank(&f->ranks[to], LAP_RANK_LOST, detail.message);
        return LAP_OK;
    }
    if (err) *err = detail;
    return status;
}

static lap_status send_json(lap_fleet *f, size_t to, kind k, json_t *json, lap_error *err) {
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text) return LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory for a message");
    lap_status status = send_to(f, to, k, 0, text, strlen(text) + 1, err);
    free(text);
    return status;
}

static const char *word(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t number(const json_t *object, const char *key) {
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 ? (uint64_t)n : 0;
}

/* ---- rank 0: what others say ---------------------------------------------------------------- */

static void take_hello(lap_rank *r, const char *text) {
    json_t *o = json_loads(text, 0, NULL);
    r->state = LAP_RANK_JOINED;
    snprintf(r->host, sizeof r->host, "%s", word(o, "host_name"));
    snprintf(r->version, sizeof r->version, "%s", word(o, "version"));
    r->pid = number(o, "pid");
    json_decref(o);
    free(r->result);
    r->result = strdup(text); /* the configuration in it is compared once all are here */
}

static void take_ready(lap_rank *r, const char *text) {
    json_t *o = json_loads(text, 0, NULL);
    snprintf(r->selector, sizeof r->selector, "%s", word(o, "selector"));
    snprintf(r->device, sizeof r->device, "%s", word(o, "device"));
    const char *why = word(o, "why");
    r->state = LAP_RANK_ACTIVE;
    if (*why) fail_rank(r, LAP_RANK_FAILED, why);
    json_decref(o);
}

static void take_result(lap_rank *r, uint64_t status, const char *bytes, size_t size) {
    size_t json = strnlen(bytes, size);
    if (size == 0 || bytes[size - 1] != '\0' || json + 1 >= size) {
        fail_rank(r, LAP_RANK_FAILED, "its result cannot be read");
        return;
    }
    free(r->result);
    r->result = malloc(size);
    if (!r->result) {
        fail_rank(r, LAP_RANK_FAILED, "no memory for its result");
        return;
    }
    memcpy(r->result, bytes, size);
    r->result_size = size;
    r->exit_status = (int)status;
    r->state = LAP_RANK_OK;
}

static void take_at_root(lap_fleet *f, size_t from, const head *h, const char *bytes, size_t size) {
    lap_rank *r = &f->ranks[from];
    bool text = size > 0 && bytes[size - 1] == '\0';
    r->heard_s = lap_clock_now();
    if (r->state == LAP_RANK_LOST) return; /* given up is given up: others were told */
    switch ((kind)h->kind) {
    case HELLO:
        if (text) take_hello(r, bytes);
        break;
    case READY:
        if (text && r->state == LAP_RANK_JOINED) take_ready(r, bytes);
        break;
    case ARRIVE:
        r->arrived = h->value;
        r->waits = true;
        break;
    case LEAVE:
        if (h->value > r->left) r->left = h->value;
        r->waits = false;
        break;
    case DONE:
        if (r->state == LAP_RANK_ACTIVE) r->state = LAP_RANK_DONE;
        break;
    case RESULT:
        if (r->state == LAP_RANK_DONE) take_result(r, h->value, bytes, size);
        break;
    default:
        break;
    }
}

static void take_elsewhere(lap_fleet *f, const head *h, const char *bytes, size_t size) {
    f->root_heard_s = lap_clock_now();
    switch ((kind)h->kind) {
    case PLAN:
        if (size == 0 || bytes[size - 1] != '\0') break;
        free(f->answer);
        f->answer = strdup(bytes);
        f->answered = f->answer != NULL;
        break;
    case GO:
        if (h->value > f->go) f->go = h->value;
        break;
    case COLLECT:
        f->collect = true;
        break;
    case BYE:
        f->bye = true;
        break;
    default:
        break;
    }
}

static lap_status receive_all(lap_fleet *f, bool *any, lap_error *err) {
    *any = false;
    for (;;) {
        size_t from, size;
        void *bytes = NULL;
        head h;
        LAP_TRY(f->wire.poll(f->wire.context, &from, &bytes, &size, err));
        if (!bytes) return LAP_OK;
        *any = true;
        bool good = size >= sizeof h && from < f->size;
        if (good) memcpy(&h, bytes, sizeof h);
        if (good && h.magic == MAGIC) {
            if (is_root(f))
                take_at_root(f, from, &h, (char *)bytes + sizeof h, size - sizeof h);
            else if (from == 0)
                take_elsewhere(f, &h, (char *)bytes + sizeof h, size - sizeof h);
        } else if (good && is_root(f)) {
            fail_rank(&f->ranks[from], LAP_RANK_REFUSED, "is another version of warmlap");
        }
        free(bytes);
    }
}

/* ---- signs of life, points ------------------------------------------------------------------ */

static lap_status beat(lap_fleet *f, lap_error *err) {
    double now = lap_clock_now();
    if (now - f->beat_s < f->timeout_s / 8) return LAP_OK;
    f->beat_s = now;
    if (!is_root(f)) return send_to(f, 0, BEAT, 0, NULL, 0, err);
    for (size_t i = 1; i < f->size; i++)
        if (present(&f->ranks[i])) LAP_TRY(send_to(f, i, BEAT, 0, NULL, 0, err));
    return LAP_OK;
}

/* The point up to which nobody need wait. */
static uint64_t reached(const lap_fleet *f) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < f->size; i++) {
        const lap_rank *r = &f->ranks[i];
        uint64_t at = r->arrived > r->left ? r->arrived : r->left;
        if (measures(r) && at < least) least = at;
    }
    return least;
}

static void release(lap_fleet *f) {
    uint64_t upto = reached(f);
    for (size_t i = 1; i < f->size; i++) {
        lap_rank *r = &f->ranks[i];
        if (!r->waits || r->arrived > upto) continue;
        r->waits = false;
        send_to(f, i, GO, r->arrived, NULL, 0, NULL);
    }
}

static void lose_the_silent(lap_fleet *f) {
    double now = lap_clock_now();
    for (size_t i = 1; i < f->size; i++) {
        lap_rank *r = &f->ranks[i];
        bool awaited =
            r->state == LAP_RANK_JOINED || r->state == LAP_RANK_ACTIVE || r->state == LAP_RANK_DONE;
        if (!awaited || now - r->heard_s <= f->timeout_s) continue;
        char reason[200];
        snprintf(reason, sizeof reason, "no sign of life for %.3g s ([run] fleet_timeout = %g)",
                 now - r->heard_s, f->timeout_s);
        fail_rank(r, LAP_RANK_LOST, reason);
    }
}

/* Everything that needs doing now and then. *any: something came. */
static lap_status serve(lap_fleet *f, bool *any, lap_error *err) {
    LAP_TRY(receive_all(f, any, err));
    LAP_TRY(beat(f, err));
    if (is_root(f)) {
        lose_the_silent(f);
        release(f);
        return LAP_OK;
    }
    if (f->bye && !f->leaving) return LAP_FAIL(err, LAP_E_IO, "fleet: rank 0 has ended the run");
    double silent = lap_clock_now() - f->root_heard_s;
    if (silent <= f->timeout_s || f->bye) return LAP_OK;
    return LAP_FAIL(err, LAP_E_IO,
                    "fleet: rank 0 gave no sign of life for %.3g s ([run] fleet_timeout = %g)",
                    silent, f->timeout_s);
}

void lap_fleet_beat(lap_fleet *f) {
    bool any;
    lap_error ignored = {0};
    if (lap_clock_now() - f->beat_s < f->timeout_s / 8) return;
    serve(f, &any, &ignored); /* what is wrong is found again where something is waited for */
}

static const double NAP_S = 2e-4;

static lap_status team_arrive(void *context, lap_error *err) {
    lap_fleet *f = context;
    f->point++;
    if (!is_root(f)) return send_to(f, 0, ARRIVE, f->point, NULL, 0, err);
    f->ranks[0].arrived = f->point;
    return LAP_OK;
}

static lap_status team_passed(void *context, bool wait, bool *yes, lap_error *err) {
    lap_fleet *f = context;
    bool any;
    LAP_TRY(serve(f, &any, err));
    *yes = is_root(f) ? reached(f) >= f->point : f->go >= f->point;
    if (!*yes && wait && !any) lap_clock_sleep(NAP_S);
    return LAP_OK;
}

static void team_leave(void *context) {
    lap_fleet *f = context;
    uint64_t last = ((f->epoch + 1) << EPOCH_BITS) - 1;
    if (is_root(f))
        f->ranks[0].left = last;
    else
        send_to(f, 0, LEAVE, last, NULL, 0, NULL);
}

const lap_team *lap_fleet_team(lap_fleet *f) {
    f->epoch++;
    f->point = f->epoch << EPOCH_BITS;
    f->team = (lap_team){.context = f,
                         .turn = f->turn,
                         .turns = f->turns,
                         .arrive = team_arrive,
                         .passed = team_passed,
                         .leave = team_leave};
    return &f->team;
}

/* ---- joining -------------------------------------------------------------------------------- */

/* What may differ between processes of one fleet: where they write, and which device they take. */
static bool may_differ(const char *section, const char *key) {
    return strcmp(section, "output") == 0 ||
           (strcmp(section, "run") == 0 &&
            (strcmp(key, "device") == 0 || strcmp(key, "tune_store") == 0));
}

/* The first key that differs, in words; "" when none does. */
static void compare_configs(json_t *mine, json_t *theirs, char *out, size_t size) {
    const char *section, *key;
    json_t *keys, *value;
    out[0] = '\0';
    json_object_foreach(mine, section, keys) {
        json_object_foreach(keys, key, value) {
            const char *a = json_string_value(value);
            const char *b = word(json_object_get(theirs, section), key);
            if (may_differ(section, key) || strcmp(a ? a : "", b) == 0) continue;
            snprintf(out, size, "another configuration: [%s] %s = %.100s, and rank 0 has %.100s",
                     section, key, b, a);
            return;
        }
    }
}

static void judge_rank(lap_fleet *f, size_t i, const lap_fleet_card *card) {
    lap_rank *r = &f->ranks[i];
    char why[400] = "";
    if (r->state != LAP_RANK_JOINED || i == 0) return;
    json_t *o = r->result ? json_loads(r->result, 0, NULL) : NULL;
    free(r->result);
    r->result = NULL;
    if (strcmp(r->version, card->version) != 0)
        snprintf(why, sizeof why, "another version: warmlap %s, and rank 0 is %s", r->version,
                 card->version);
    else
        compare_configs(card->config, json_object_get(o, "config"), why, sizeof why);
    json_decref(o);
    if (why[0]) fail_rank(r, LAP_RANK_REFUSED, why);
}

/* Counted by host, over everybody who joined. */
static void count_locals(lap_fleet *f, size_t i, size_t *before, size_t *all) {
    *before = *all = 0;
    for (size_t k = 0; k < f->size; k++) {
        const lap_rank *r = &f->ranks[k];
        if (r->state != LAP_RANK_JOINED || strcmp(r->host, f->ranks[i].host) != 0) continue;
        *before += k < i;
        ++*all;
    }
}

/* Until pred holds for nobody, or the time is over. */
static lap_status wait_for_all(lap_fleet *f, lap_rank_state still, lap_error *err) {
    double begun = lap_clock_now();
    for (;;) {
        bool any, waiting = false;
        LAP_TRY(serve(f, &any, err));
        for (size_t i = 1; i < f->size; i++)
            waiting = waiting || f->ranks[i].state == still;
        if (!waiting) return LAP_OK;
        if (still == LAP_RANK_MISSING && lap_clock_now() - begun > f->timeout_s) return LAP_OK;
        if (!any) lap_clock_sleep(NAP_S * 5);
    }
}

static lap_status join_as_root(lap_fleet *f, const lap_fleet_card *card, lap_error *err) {
    f->ranks = calloc(f->size, sizeof *f->ranks);
    if (!f->ranks) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a fleet of %zu", f->size);
    lap_rank *me = &f->ranks[0];
    me->state = LAP_RANK_JOINED;
    me->pid = card->pid;
    snprintf(me->host, sizeof me->host, "%s", card->host);
    snprintf(me->version, sizeof me->version, "%s", card->version);
    LAP_TRY(wait_for_all(f, LAP_RANK_MISSING, err));
    for (size_t i = 1; i < f->size; i++) {
        if (f->ranks[i].state != LAP_RANK_MISSING) continue;
        snprintf(f->ranks[i].reason, sizeof f->ranks[i].reason,
                 "did not join within %g s ([run] fleet_timeout)", f->timeout_s);
        f->ranks[i].state = LAP_RANK_LOST;
    }
    for (size_t i = 0; i < f->size; i++)
        judge_rank(f, i, card);
    for (size_t i = 0; i < f->size; i++) {
        lap_rank *r = &f->ranks[i];
        size_t all = 0;
        if (!present(r)) continue;
        if (r->state == LAP_RANK_JOINED) count_locals(f, i, &r->local_rank, &all);
        if (i == 0) {
            f->local_rank = r->local_rank;
            f->local_size = all;
            continue;
        }
        LAP_TRY(send_json(f, i, PLAN,
                          json_pack("{s:s, s:I, s:I}", "refused",
                                    r->state == LAP_RANK_REFUSED ? r->reason : "", "local_rank",
                                    (json_int_t)r->local_rank, "local_size", (json_int_t)all),
                          err));
    }
    return LAP_OK;
}

static lap_status wait_for_answer(lap_fleet *f, json_t **out, lap_error *err) {
    while (!f->answered) {
        bool any;
        LAP_TRY(serve(f, &any, err));
        if (!any) lap_clock_sleep(NAP_S * 5);
    }
    f->answered = false;
    *out = json_loads(f->answer, 0, NULL);
    if (!*out) return LAP_FAIL(err, LAP_E_FORMAT, "fleet: rank 0's answer cannot be read");
    const char *refused = word(*out, "refused");
    if (!*refused) return LAP_OK;
    lap_status status =
        LAP_FAIL(err, LAP_E_CONFIG, "fleet: rank 0 refuses rank %zu: %s", f->rank, refused);
    json_decref(*out);
    return status;
}

lap_status lap_fleet_join(lap_fleet *f, const lap_wire *wire, const lap_fleet_card *card,
                          double timeout_s, lap_error *err) {
    *f = (lap_fleet){.wire = *wire, .timeout_s = timeout_s, .rank = wire->rank, .size = wire->size};
    f->beat_s = f->root_heard_s = lap_clock_now();
    if (is_root(f)) return join_as_root(f, card, err);
    /* Rank 0 may wait for others to join for as long as it takes, without a word to this one. */
    f->root_heard_s += timeout_s;
    LAP_TRY(
        send_json(f, 0, HELLO,
                  json_pack("{s:s, s:s, s:I, s:O}", "host_name", card->host, "version",
                            card->version, "pid", (json_int_t)card->pid, "config", card->config),
                  err));
    json_t *answer;
    LAP_TRY(wait_for_answer(f, &answer, err));
    f->local_rank = (size_t)number(answer, "local_rank");
    f->local_size = (size_t)number(answer, "local_size");
    json_decref(answer);
    return LAP_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "4 x NVIDIA H200": of all that are active. */
static lap_status name_devices(lap_fleet *f, lap_error *err) {
    const char **names = malloc(f->size * sizeof *names);
    size_t n = 0;
    lap_text text = {0};
    if (!names) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a fleet of %zu", f->size);
    for (size_t i = 0; i < f->size; i++)
        if (measures(&f->ranks[i])) names[n++] = f->ranks[i].device;
    qsort(names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n;) {
        size_t same = 1;
        while (i + same < n && strcmp(names[i], names[i + same]) == 0)
            same++;
        lap_text_addf(&text, "%s%zu x %s", i ? " + " : "", same, names[i]);
        i += same;
    }
    snprintf(f->devices, sizeof f->devices, "%s", lap_text_get(&text));
    f->others = n ? n - 1 : 0;
    lap_text_free(&text);
    free(names);
    return LAP_OK;
}

/* Of a host's active ranks, one after the other; hosts do not wait for each other. */
static size_t turn_of(const lap_fleet *f, size_t i) {
    size_t turn = 0;
    for (size_t k = 0; k < i; k++)
        turn += measures(&f->ranks[k]) && strcmp(f->ranks[k].host, f->ranks[i].host) == 0;
    return turn;
}

static lap_status plan_turns(lap_fleet *f, lap_error *err) {
    LAP_TRY(name_devices(f, err));
    size_t *turns = calloc(f->size, sizeof *turns);
    if (!turns) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a fleet of %zu", f->size);
    for (size_t i = 0; i < f->size; i++) {
        if (!measures(&f->ranks[i])) continue;
        turns[i] = turn_of(f, i);
        if (turns[i] + 1 > f->turns) f->turns = turns[i] + 1;
    }
    f->turn = turns[0];
    lap_status status = LAP_OK;
    for (size_t i = 1; i < f->size && status == LAP_OK; i++)
        if (measures(&f->ranks[i]))
            status = send_json(f, i, PLAN,
                               json_pack("{s:s, s:I, s:I, s:I, s:s}", "refused", "", "turn",
                                         (json_int_t)turns[i], "turns", (json_int_t)f->turns,
                                         "others", (json_int_t)f->others, "devices", f->devices),
                               err);
    free(turns);
    return status;
}

lap_status lap_fleet_ready(lap_fleet *f, const char *selector, const char *device, const char *why,
                           lap_error *err) {
    if (is_root(f)) {
        lap_rank *me = &f->ranks[0];
        snprintf(me->selector, sizeof me->selector, "%s", selector);
        snprintf(me->device, sizeof me->device, "%s", device);
        me->state = LAP_RANK_ACTIVE;
        if (*why) fail_rank(me, LAP_RANK_FAILED, why);
        LAP_TRY(wait_for_all(f, LAP_RANK_JOINED, err));
        return plan_turns(f, err);
    }
    LAP_TRY(send_json(
        f, 0, READY,
        json_pack("{s:s, s:s, s:s}", "selector", selector, "device", device, "why", why), err));
    if (*why) return LAP_OK; /* rank 0 knows, and asks nothing more of this one */
    json_t *answer;
    LAP_TRY(wait_for_answer(f, &answer, err));
    f->turn = (size_t)number(answer, "turn");
    f->turns = (size_t)number(answer, "turns");
    f->others = (size_t)number(answer, "others");
    snprintf(f->devices, sizeof f->devices, "%s", word(answer, "devices"));
    json_decref(answer);
    return LAP_OK;
}

/* ---- gathering ------------------------------------------------------------------------------ */

static lap_status hand_over(lap_fleet *f, size_t i, lap_fleet_result *result, void *context) {
    lap_rank *r = &f->ranks[i];
    const char *csv = r->result + strlen(r->result) + 1;
    lap_status status = result(context, i, r->result, strlen(r->result), csv);
    free(r->result);
    r->result = NULL;
    return status;
}

lap_status lap_fleet_gather(lap_fleet *f, lap_fleet_result *result, void *context, lap_error *err) {
    size_t asked = 1;
    if (f->ranks[0].state == LAP_RANK_ACTIVE) f->ranks[0].state = LAP_RANK_OK;
    LAP_TRY(wait_for_all(f, LAP_RANK_ACTIVE, err));
    for (size_t i = 1; i < f->size; i++) {
        lap_rank *r = &f->ranks[i];
        for (; asked < f->size && asked < i + WINDOW; asked++)
            if (f->ranks[asked].state == LAP_RANK_DONE)
                LAP_TRY(send_to(f, asked, COLLECT, 0, NULL, 0, err));
        while (r->state == LAP_RANK_DONE) {
            bool any;
            LAP_TRY(serve(f, &any, err));
            if (!any) lap_clock_sleep(NAP_S);
        }
        if (r->state == LAP_RANK_OK && r->result) LAP_TRY(hand_over(f, i, result, context));
    }
    return LAP_OK;
}

lap_status lap_fleet_deliver(lap_fleet *f, int exit_status, const char *json, const char *csv,
                             lap_error *err) {
    bool given = json == NULL;
    f->leaving = true;
    if (json) LAP_TRY(send_to(f, 0, DONE, 0, NULL, 0, err));
    while (!f->bye) {
        bool any;
        LAP_TRY(serve(f, &any, err));
        if (f->collect && !given) {
            size_t a = strlen(json) + 1, b = strlen(csv) + 1;
            char *both = malloc(a + b);
            if (!both) return LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory for the result");
            memcpy(both, json, a);
            memcpy(both + a, csv, b);
            lap_status status = send_to(f, 0, RESULT, (uint64_t)exit_status, both, a + b, err);
            free(both);
            LAP_TRY(status);
            given = true;
        }
        if (!any) lap_clock_sleep(NAP_S * 5);
    }
    return LAP_OK;
}

void lap_fleet_leave(lap_fleet *f) {
    bool clean = f->bye;
    if (is_root(f) && f->ranks) {
        clean = true;
        for (size_t i = 1; i < f->size; i++) {
            if (present(&f->ranks[i])) send_to(f, i, BYE, 0, NULL, 0, NULL);
            clean = clean && present(&f->ranks[i]);
        }
        for (size_t i = 0; i < f->size; i++)
            free(f->ranks[i].result);
    }
    free(f->ranks);
    f->ranks = NULL;
    free(f->answer);
    f->answer = NULL;
    if (f->wire.close) f->wire.close(f->wire.context, clean);
    f->wire.close = NULL;
}
