/* How the processes of a fleet reach each other: messages that arrive once, in order from each
 * sender, or not at all. No call waits. The MPI module (mpi.c) has one, tests have one in memory.
 */
#ifndef LAP_FLEET_WIRE_H
#define LAP_FLEET_WIRE_H

#include "base/status.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct lap_wire {
    void *context;
    size_t rank, size;
    char library[128]; /* what carries the messages */
    /* The bytes are copied. */
    lap_status (*send)(void *context, size_t to, const void *bytes, size_t size, lap_error *err);
    /* The next message that is here: *bytes is to be freed, NULL when there is none. */
    lap_status (*poll)(void *context, size_t *from, void **bytes, size_t *size, lap_error *err);
    /* Leave. clean: everybody does, so that it can be said to the launcher; otherwise nobody is
     * waited for, and the process should end soon. */
    void (*close)(void *context, bool clean);
} lap_wire;

/* Opening the wire of this launcher; must return within the time, or end the process. */
typedef lap_status lap_wire_open(double timeout_s, lap_wire *out, lap_error *err);

/* The module's one symbol, and its form: changed with lap_wire. */
#define LAP_WIRE_SYMBOL "lap_wire_open_1"

/* module.c: was this process started by an MPI launcher, as one of several? Reads the environment
 * only. *name: its variable. */
bool lap_fleet_launched(const char **name);
/* Loads the module and opens its wire. LAP_E_UNSUPPORTED when this build or machine has none. */
lap_status lap_fleet_wire_open(double timeout_s, lap_wire *out, lap_error *err);

#endif
