/* Private to src/fleet: what joining and the rest of the protocol share. */
#ifndef LAP_FLEET_PROTOCOL_H
#define LAP_FLEET_PROTOCOL_H

#include "fleet/fleet.h"

typedef enum fleet_kind {
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
} fleet_kind;

#define FLEET_NAP_S 2e-4 /* between two looks at the wire */

bool fleet_is_root(const lap_fleet *f);
void fleet_fail_rank(lap_rank *r, lap_rank_state state, const char *reason);
/* Whether its points count. */
bool fleet_measures(const lap_rank *r);
bool fleet_present(const lap_rank *r);
/* Takes json. */
lap_status fleet_send_json(lap_fleet *f, size_t to, fleet_kind k, json_t *json, lap_error *err);
/* Of a message: "" and 0 where there is none. */
const char *fleet_word(const json_t *object, const char *key);
uint64_t fleet_number(const json_t *object, const char *key);
/* Everything that needs doing now and then. *any: something came. */
lap_status fleet_serve(lap_fleet *f, bool *any, lap_error *err);
/* Until nobody is in that state; for those that are missing, at most for the time limit. */
lap_status fleet_wait_for_all(lap_fleet *f, lap_rank_state still, lap_error *err);

#endif
