/* Joining a fleet: who is there, whether they fit together, which devices they have, whose turn is
 * when. */
#include "base/clock.h"
#include "fleet/fleet.h"
#include "fleet/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
            const char *b = fleet_word(json_object_get(theirs, section), key);
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
    if (why[0]) fleet_fail_rank(r, LAP_RANK_REFUSED, why);
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

static lap_status join_as_root(lap_fleet *f, const lap_fleet_card *card, lap_error *err) {
    f->ranks = calloc(f->size, sizeof *f->ranks);
    if (!f->ranks) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a fleet of %zu", f->size);
    lap_rank *me = &f->ranks[0];
    me->state = LAP_RANK_JOINED;
    me->pid = card->pid;
    snprintf(me->host, sizeof me->host, "%s", card->host);
    snprintf(me->version, sizeof me->version, "%s", card->version);
    LAP_TRY(fleet_wait_for_all(f, LAP_RANK_MISSING, err));
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
        if (!fleet_present(r)) continue;
        if (r->state == LAP_RANK_JOINED) count_locals(f, i, &r->local_rank, &all);
        if (i == 0) {
            f->local_rank = r->local_rank;
            f->local_size = all;
            continue;
        }
        LAP_TRY(fleet_send_json(
            f, i, PLAN,
            json_pack("{s:s, s:I, s:I}", "refused", r->state == LAP_RANK_REFUSED ? r->reason : "",
                      "local_rank", (json_int_t)r->local_rank, "local_size", (json_int_t)all),
            err));
    }
    return LAP_OK;
}

static lap_status wait_for_answer(lap_fleet *f, json_t **out, lap_error *err) {
    while (!f->answered) {
        bool any;
        LAP_TRY(fleet_serve(f, &any, err));
        if (!any) lap_clock_sleep(FLEET_NAP_S * 5);
    }
    f->answered = false;
    *out = json_loads(f->answer, 0, NULL);
    if (!*out) return LAP_FAIL(err, LAP_E_FORMAT, "fleet: rank 0's answer cannot be read");
    const char *refused = fleet_word(*out, "refused");
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
    if (fleet_is_root(f)) return join_as_root(f, card, err);
    /* Rank 0 may wait for others to join for as long as it takes, without a word to this one. */
    f->root_heard_s += timeout_s;
    LAP_TRY(fleet_send_json(f, 0, HELLO,
                            json_pack("{s:s, s:s, s:I, s:O}", "host_name", card->host, "version",
                                      card->version, "pid", (json_int_t)card->pid, "config",
                                      card->config),
                            err));
    json_t *answer;
    LAP_TRY(wait_for_answer(f, &answer, err));
    f->local_rank = (size_t)fleet_number(answer, "local_rank");
    f->local_size = (size_t)fleet_number(answer, "local_size");
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
        if (fleet_measures(&f->ranks[i])) names[n++] = f->ranks[i].device;
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
        turn += fleet_measures(&f->ranks[k]) && strcmp(f->ranks[k].host, f->ranks[i].host) == 0;
    return turn;
}

static lap_status plan_turns(lap_fleet *f, lap_error *err) {
    LAP_TRY(name_devices(f, err));
    size_t *turns = calloc(f->size, sizeof *turns);
    if (!turns) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a fleet of %zu", f->size);
    for (size_t i = 0; i < f->size; i++) {
        if (!fleet_measures(&f->ranks[i])) continue;
        turns[i] = turn_of(f, i);
        if (turns[i] + 1 > f->turns) f->turns = turns[i] + 1;
    }
    f->turn = turns[0];
    lap_status status = LAP_OK;
    for (size_t i = 1; i < f->size && status == LAP_OK; i++)
        if (fleet_measures(&f->ranks[i]))
            status =
                fleet_send_json(f, i, PLAN,
                                json_pack("{s:s, s:I, s:I, s:I, s:s}", "refused", "", "turn",
                                          (json_int_t)turns[i], "turns", (json_int_t)f->turns,
                                          "others", (json_int_t)f->others, "devices", f->devices),
                                err);
    free(turns);
    return status;
}

lap_status lap_fleet_ready(lap_fleet *f, const char *selector, const char *device, const char *why,
                           lap_error *err) {
    if (fleet_is_root(f)) {
        lap_rank *me = &f->ranks[0];
        snprintf(me->selector, sizeof me->selector, "%s", selector);
        snprintf(me->device, sizeof me->device, "%s", device);
        me->state = LAP_RANK_ACTIVE;
        if (*why) fleet_fail_rank(me, LAP_RANK_FAILED, why);
        LAP_TRY(fleet_wait_for_all(f, LAP_RANK_JOINED, err));
        return plan_turns(f, err);
    }
    LAP_TRY(fleet_send_json(
        f, 0, READY,
        json_pack("{s:s, s:s, s:s}", "selector", selector, "device", device, "why", why), err));
    if (*why) return LAP_OK; /* rank 0 knows, and asks nothing more of this one */
    json_t *answer;
    LAP_TRY(wait_for_answer(f, &answer, err));
    f->turn = (size_t)fleet_number(answer, "turn");
    f->turns = (size_t)fleet_number(answer, "turns");
    f->others = (size_t)fleet_number(answer, "others");
    snprintf(f->devices, sizeof f->devices, "%s", fleet_word(answer, "devices"));
    json_decref(answer);
    return LAP_OK;
}
