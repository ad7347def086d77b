/* A wire over MPI, and the only file that knows of it: point-to-point messages, none of which is
 * waited for. No collective call is made between initialisation and the end: one process that died
 * would hold up all the others. */
#include "fleet/wire.h"

#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 77, RECEIVING = 16 };

typedef struct outgoing {
    struct outgoing *next;
    MPI_Request request;
    char bytes[];
} outgoing;

typedef struct incoming {
    MPI_Request request;
    char *bytes; /* NULL: free */
    size_t size;
    int from;
} incoming;

typedef struct mpi_wire {
    MPI_Comm comm;
    outgoing *pending;
    incoming slots[RECEIVING];
    size_t first; /* the slot that is handed out next: messages of one sender keep their order */
    size_t used;
} mpi_wire;

static lap_status check(int code, const char *call, lap_error *err) {
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (code == MPI_SUCCESS) return LAP_OK;
    if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) snprintf(text, sizeof text, "error");
    return LAP_FAIL_NATIVE(err, LAP_E_IO, call, code, "MPI", "fleet: %s", text);
}

static void reap(mpi_wire *w) {
    for (outgoing **link = &w->pending; *link;) {
        int done = 0;
        outgoing *o = *link;
        if (MPI_Test(&o->request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
            link = &o->next;
            continue;
        }
        *link = o->next;
        free(o);
    }
}

static lap_status wire_send(void *context, size_t to, const void *bytes, size_t size,
                            lap_error *err) {
    mpi_wire *w = context;
    reap(w);
    if (size > INT_MAX) return LAP_FAIL(err, LAP_E_IO, "fleet: a message of %zu bytes", size);
    outgoing *o = malloc(sizeof *o + size);
    if (!o) return LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory for a message of %zu bytes", size);
    memcpy(o->bytes, bytes, size);
    int code = MPI_Isend(o->bytes, (int)size, MPI_BYTE, (int)to, TAG, w->comm, &o->request);
    if (code != MPI_SUCCESS) {
        free(o);
        return check(code, "MPI_Isend", err);
    }
    o->next = w->pending;
    w->pending = o;
    return LAP_OK;
}

/* Begin to receive whatever is announced, as far as there are slots. */
static lap_status accept_some(mpi_wire *w, lap_error *err) {
    while (w->used < RECEIVING) {
        int there = 0, size = 0;
        MPI_Message message;
        MPI_Status status;
        LAP_TRY(check(MPI_Improbe(MPI_ANY_SOURCE, TAG, w->comm, &there, &message, &status),
                      "MPI_Improbe", err));
        if (!there) return LAP_OK;
        MPI_Get_count(&status, MPI_BYTE, &size);
        incoming *in = &w->slots[(w->first + w->used) % RECEIVING];
        *in = (incoming){.size = (size_t)size, .from = status.MPI_SOURCE};
        in->bytes = malloc((size_t)size + 1);
        if (!in->bytes) return LAP_FAIL(err, LAP_E_NOMEM, "fleet: no memory for %d bytes", size);
        LAP_TRY(check(MPI_Imrecv(in->bytes, size, MPI_BYTE, &message, &in->request), "MPI_Imrecv",
                      err));
        w->used++;
    }
    return LAP_OK;
}

/* Whether an earlier message of the same sender is still under way. */
static bool overtakes(const mpi_wire *w, size_t k) {
    for (size_t i = 0; i < k; i++) {
        const incoming *other = &w->slots[(w->first + i) % RECEIVING];
        if (other->bytes && other->from == w->slots[(w->first + k) % RECEIVING].from) return true;
    }
    return false;
}

static lap_status wire_poll(void *context, size_t *from, void **bytes, size_t *size,
                            lap_error *err) {
    mpi_wire *w = context;
    *bytes = NULL;
    reap(w);
    while (w->used > 0 && !w->slots[w->first].bytes) {
        w->first = (w->first + 1) % RECEIVING;
        w->used--;
    }
    LAP_TRY(accept_some(w, err));
    for (size_t k = 0; k < w->used; k++) {
        incoming *in = &w->slots[(w->first + k) % RECEIVING];
        int done = 0;
        if (!in->bytes || overtakes(w, k)) continue;
        LAP_TRY(check(MPI_Test(&in->request, &done, MPI_STATUS_IGNORE), "MPI_Test", err));
        if (!done) continue;
        *from = (size_t)in->from;
        *bytes = in->bytes;
        *size = in->size;
        in->bytes = NULL;
        return LAP_OK;
    }
    return LAP_OK;
}

/* ---- beginning and end: the two calls that may wait for others ------------------------------ */

static const char *late;

static void too_late(int number) {
    (void)number;
    if (write(STDERR_FILENO, late, strlen(late)) < 0) _exit(1);
    _exit(1);
}

static void bound(double seconds, const char *message) {
    late = message;
    struct sigaction action = {.sa_handler = too_late};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds < 1 ? 1 : seconds < 86400 ? (unsigned)seconds : 86400);
}

static void leave_quietly(int number) {
    (void)number;
    _exit(0);
}

static void wire_close(void *context, bool clean) {
    mpi_wire *w = context;
    for (int i = 0; clean && w->pending && i < 5000; i++) { /* 5 s */
        reap(w);
        usleep(1000);
    }
    if (clean && !w->pending) {
        /* All results are written; whoever hangs here has nothing left to lose. */
        bound(30, "");
        struct sigaction action = {.sa_handler = leave_quietly};
        sigaction(SIGALRM, &action, NULL);
        MPI_Finalize();
        alarm(0);
    }
    /* Messages under way own their memory: it is left to them. */
}

lap_status lap_wire_open_1(double timeout_s, lap_wire *out, lap_error *err);

lap_status lap_wire_open_1(double timeout_s, lap_wire *out, lap_error *err) {
    static mpi_wire wire;
    int rank = 0, size = 1, provided, length = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    /* MPI looks for what the host is made of with hwloc, whose OpenCL part may use the loader
     * before this program does; the one that CUDA brings then shows fewer drivers (docs/FLEETS.md).
     */
    setenv("HWLOC_COMPONENTS", "-opencl", 0);
    bound(timeout_s, "warmlap: fleet: MPI_Init did not return in time: not every process of the "
                     "launcher got there\n");
    int code = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
    alarm(0);
    LAP_TRY(check(code, "MPI_Init_thread", err));
    wire.comm = MPI_COMM_WORLD;
    LAP_TRY(check(MPI_Comm_set_errhandler(wire.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler",
                  err));
    MPI_Comm_rank(wire.comm, &rank);
    MPI_Comm_size(wire.comm, &size);
    MPI_Get_library_version(version, &length);
    *out = (lap_wire){.context = &wire,
                      .rank = (size_t)rank,
                      .size = (size_t)size,
                      .send = wire_send,
                      .poll = wire_poll,
                      .close = wire_close};
    snprintf(out->library, sizeof out->library, "%.*s", (int)strcspn(version, ",\n"), version);
    return LAP_OK;
}
