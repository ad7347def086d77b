/* The protocol of a fleet (see fleet.h), over any wire. */
#include "fleet/fleet.h"
#include "base/clock.h"
#include "fleet/protocol.h"
#include "report/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 0x77310001, EPOCH_BITS = 24, WINDOW = 8 };

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

bool fleet_is_root(const lap_fleet *f) {
    return f->rank == 0;
}

void fleet_fail_rank(lap_rank *r, lap_rank_state state, const char *reason) {
    r->state = state;
    snprintf(r->reason, sizeof r->reason, "%.390s", reason);
}

bool fleet_measures(const lap_rank *r) {
    return r->state == LAP_RANK_ACTIVE;
}

bool fleet_present(const lap_rank *r) {
    return r->state != LAP_RANK_MISSING && r->state != LAP_RANK_LOST;
}

/* ---- messages ------------------------------------------------------------------------------- */

static lap_status send_to(lap_fleet *f, size_t to, fleet_kind k, uint64_t value, const char *bytes,
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
    if (fleet_is_root(f)) { /* the others go on */
        fleet_fail_rank(&f->ranks[to], LAP_RANK_LOST, detail.message);
        return LAP_OK;
    }
    if (err) *err = detail;
    return status;
}

lap_status fleet_send_json(lap_fleet *f, size_t to, fleet_kind k, json_t *json, lap_error *err) {
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!text) return LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory for a message");
    lap_status status = send_to(f, to, k, 0, text, strlen(text) + 1, err);
    free(text);
    return status;
}

const char *fleet_word(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

uint64_t fleet_number(const json_t *object, const char *key) {
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n > 0 ? (uint64_t)n : 0;
}

/* ---- rank 0: what others say ---------------------------------------------------------------- */

static void take_hello(lap_rank *r, const char *text) {
    json_t *o = json_loads(text, 0, NULL);
    r->state = LAP_RANK_JOINED;
    snprintf(r->host, sizeof r->host, "%s", fleet_word(o, "host_name"));
    snprintf(r->version, sizeof r->version, "%s", fleet_word(o, "version"));
    r->pid = fleet_number(o, "pid");
    json_decref(o);
    free(r->result);
    r->result = strdup(text); /* the configuration in it is compared once all are here */
}

static void take_ready(lap_rank *r, const char *text) {
    json_t *o = json_loads(text, 0, NULL);
    snprintf(r->selector, sizeof r->selector, "%s", fleet_word(o, "selector"));
    snprintf(r->device, sizeof r->device, "%s", fleet_word(o, "device"));
    const char *why = fleet_word(o, "why");
    r->state = LAP_RANK_ACTIVE;
    if (*why) fleet_fail_rank(r, LAP_RANK_FAILED, why);
    json_decref(o);
}

static void take_result(lap_rank *r, uint64_t status, const char *bytes, size_t size) {
    size_t json = strnlen(bytes, size);
    if (size == 0 || bytes[size - 1] != '\0' || json + 1 >= size) {
        fleet_fail_rank(r, LAP_RANK_FAILED, "its result cannot be read");
        return;
    }
    free(r->result);
    r->result = malloc(size);
    if (!r->result) {
        fleet_fail_rank(r, LAP_RANK_FAILED, "no memory for its result");
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
    switch ((fleet_kind)h->kind) {
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
    switch ((fleet_kind)h->kind) {
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
            if (fleet_is_root(f))
                take_at_root(f, from, &h, (char *)bytes + sizeof h, size - sizeof h);
            else if (from == 0)
                take_elsewhere(f, &h, (char *)bytes + sizeof h, size - sizeof h);
        } else if (good && fleet_is_root(f)) {
            fleet_fail_rank(&f->ranks[from], LAP_RANK_REFUSED, "is another version of warmlap");
        }
        free(bytes);
    }
}

/* ---- signs of life, points ------------------------------------------------------------------ */

static lap_status beat(lap_fleet *f, lap_error *err) {
    double now = lap_clock_now();
    if (now - f->beat_s < f->timeout_s / 8) return LAP_OK;
    f->beat_s = now;
    if (!fleet_is_root(f)) return send_to(f, 0, BEAT, 0, NULL, 0, err);
    for (size_t i = 1; i < f->size; i++)
        if (fleet_present(&f->ranks[i])) LAP_TRY(send_to(f, i, BEAT, 0, NULL, 0, err));
    return LAP_OK;
}

/* The point up to which nobody need wait. */
static uint64_t reached(const lap_fleet *f) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < f->size; i++) {
        const lap_rank *r = &f->ranks[i];
        uint64_t at = r->arrived > r->left ? r->arrived : r->left;
        if (fleet_measures(r) && at < least) least = at;
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
        char reason[200], seconds[40];
        lap_format_rate(seconds, sizeof seconds, now - r->heard_s, false);
        snprintf(reason, sizeof reason, "no sign of life for %s s ([run] fleet_timeout = %g)",
                 seconds, f->timeout_s);
        fleet_fail_rank(r, LAP_RANK_LOST, reason);
    }
}

lap_status fleet_serve(lap_fleet *f, bool *any, lap_error *err) {
    LAP_TRY(receive_all(f, any, err));
    LAP_TRY(beat(f, err));
    if (fleet_is_root(f)) {
        lose_the_silent(f);
        release(f);
        return LAP_OK;
    }
    if (f->bye && !f->leaving) return LAP_FAIL(err, LAP_E_IO, "fleet: rank 0 has ended the run");
    double silent = lap_clock_now() - f->root_heard_s;
    if (silent <= f->timeout_s || f->bye) return LAP_OK;
    char seconds[40];
    lap_format_rate(seconds, sizeof seconds, silent, false);
    return LAP_FAIL(err, LAP_E_IO,
                    "fleet: rank 0 gave no sign of life for %s s ([run] fleet_timeout = %g)",
                    seconds, f->timeout_s);
}

lap_status fleet_wait_for_all(lap_fleet *f, lap_rank_state still, lap_error *err) {
    double begun = lap_clock_now();
    for (;;) {
        bool any, waiting = false;
        LAP_TRY(fleet_serve(f, &any, err));
        for (size_t i = 1; i < f->size; i++)
            waiting = waiting || f->ranks[i].state == still;
        if (!waiting) return LAP_OK;
        if (still == LAP_RANK_MISSING && lap_clock_now() - begun > f->timeout_s) return LAP_OK;
        if (!any) lap_clock_sleep(FLEET_NAP_S * 5);
    }
}

void lap_fleet_beat(lap_fleet *f) {
    bool any;
    lap_error ignored = {0};
    if (lap_clock_now() - f->beat_s < f->timeout_s / 8) return;
    fleet_serve(f, &any, &ignored); /* what is wrong is found again where something is waited for */
}

static lap_status team_arrive(void *context, lap_error *err) {
    lap_fleet *f = context;
    f->point++;
    if (!fleet_is_root(f)) return send_to(f, 0, ARRIVE, f->point, NULL, 0, err);
    f->ranks[0].arrived = f->point;
    return LAP_OK;
}

static lap_status team_passed(void *context, bool wait, bool *yes, lap_error *err) {
    lap_fleet *f = context;
    bool any;
    LAP_TRY(fleet_serve(f, &any, err));
    *yes = fleet_is_root(f) ? reached(f) >= f->point : f->go >= f->point;
    if (!*yes && wait && !any) lap_clock_sleep(FLEET_NAP_S);
    return LAP_OK;
}

static void team_leave(void *context) {
    lap_fleet *f = context;
    uint64_t last = ((f->epoch + 1) << EPOCH_BITS) - 1;
    if (fleet_is_root(f))
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
    LAP_TRY(fleet_wait_for_all(f, LAP_RANK_ACTIVE, err));
    for (size_t i = 1; i < f->size; i++) {
        lap_rank *r = &f->ranks[i];
        for (; asked < f->size && asked < i + WINDOW; asked++)
            if (f->ranks[asked].state == LAP_RANK_DONE)
                LAP_TRY(send_to(f, asked, COLLECT, 0, NULL, 0, err));
        while (r->state == LAP_RANK_DONE) {
            bool any;
            LAP_TRY(fleet_serve(f, &any, err));
            if (!any) lap_clock_sleep(FLEET_NAP_S);
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
        LAP_TRY(fleet_serve(f, &any, err));
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
        if (!any) lap_clock_sleep(FLEET_NAP_S * 5);
    }
    return LAP_OK;
}

void lap_fleet_leave(lap_fleet *f) {
    bool clean = f->bye;
    if (fleet_is_root(f) && f->ranks) {
        clean = true;
        for (size_t i = 1; i < f->size; i++) {
            if (fleet_present(&f->ranks[i])) send_to(f, i, BYE, 0, NULL, 0, NULL);
            clean = clean && fleet_present(&f->ranks[i]);
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
