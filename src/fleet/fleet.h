/* One `warmlap run` by many processes: they join, take turns and run at the same time, and rank 0
 * gathers what they found. Rank 0 decides everything; nobody waits for anybody without end: whoever
 * gives no sign of life for the time-out is left behind and named.
 *
 * Messages go between rank 0 and the others only. */
#ifndef LAP_FLEET_FLEET_H
#define LAP_FLEET_FLEET_H

#include "base/text.h"
#include "fleet/wire.h"
#include "measure/team.h"

#include <jansson.h>
#include <stdint.h>

typedef enum lap_rank_state {
    LAP_RANK_MISSING = 0, /* nothing was heard of it */
    LAP_RANK_JOINED,
    LAP_RANK_ACTIVE, /* has a device, and measures */
    LAP_RANK_DONE,   /* has measured */
    LAP_RANK_OK,     /* its document is here */
    LAP_RANK_REFUSED,
    LAP_RANK_FAILED,
    LAP_RANK_LOST
} lap_rank_state;

const char *lap_rank_state_name(lap_rank_state state);

typedef struct lap_rank {
    lap_rank_state state;
    char reason[400];
    char host[128], version[48], selector[64], device[LAP_DEVICE_NAME];
    uint64_t pid;
    size_t local_rank; /* among those of its host */
    int exit_status;   /* of its rows */
    /* private */
    uint64_t arrived; /* the last point */
    uint64_t left;    /* points up to this are not waited for */
    bool waits;
    double heard_s;
    char *result; /* until it is taken */
    size_t result_size;
} lap_rank;

/* What a process says of itself when it joins. */
typedef struct lap_fleet_card {
    const char *host, *version;
    uint64_t pid;
    json_t *config; /* section{key: text}; what must agree is compared; borrowed */
} lap_fleet_card;

typedef struct lap_fleet {
    lap_wire wire;
    double timeout_s;
    size_t rank, size;
    lap_rank *ranks; /* of all: rank 0 only */
    /* Of this process. */
    size_t local_rank, local_size;
    size_t turn, turns;
    size_t others;     /* active beside this one */
    char devices[512]; /* of all that are active */
    lap_team team;
    /* private */
    uint64_t point, go, epoch;
    double beat_s, root_heard_s;
    bool collect, leaving, bye;
    char *answer; /* rank 0's last PLAN */
    bool answered;
} lap_fleet;

/* Step 1: say who this is. Fills local_rank and local_size. LAP_E_CONFIG when rank 0 refuses this
 * process (another version, another configuration: the message says which); then only
 * lap_fleet_leave is left. */
lap_status lap_fleet_join(lap_fleet *fleet, const lap_wire *wire, const lap_fleet_card *card,
                          double timeout_s, lap_error *err);
/* Step 2: what this process measures; or, with why, that it cannot. Fills turn, turns, others and
 * devices. */
lap_status lap_fleet_ready(lap_fleet *fleet, const char *selector, const char *device,
                           const char *why, lap_error *err);

/* Step 3: meeting points. A new team for every part; all processes ask for the same ones in the
 * same order. */
const lap_team *lap_fleet_team(lap_fleet *fleet);
/* A sign of life; cheap, to be called often from the thread that owns the fleet. */
void lap_fleet_beat(lap_fleet *fleet);

/* Step 4, rank 0: wait until all have measured, then take the documents in the order of the ranks.
 * result is called for each that arrives: JSON and CSV text ("" for none), both '\0'-terminated. */
typedef lap_status lap_fleet_result(void *context, size_t rank, const char *json, size_t json_size,
                                    const char *csv);
lap_status lap_fleet_gather(lap_fleet *fleet, lap_fleet_result *result, void *context,
                            lap_error *err);
/* Step 4, the others: hand the document over when rank 0 asks for it, and wait for its good-bye.
 * json NULL: there is none, only the good-bye is waited for. */
lap_status lap_fleet_deliver(lap_fleet *fleet, int exit_status, const char *json, const char *csv,
                             lap_error *err);

/* The end. Everybody who is still there is told; clean when nobody was lost. */
void lap_fleet_leave(lap_fleet *fleet);

#endif
