/* Work done in a process of its own, so that a driver that crashes, never returns or is killed
 * takes nothing with it. The parent forks before any driver is loaded, opens no device, and can do
 * so again after a worker's death. docs/RELIABILITY.md says what that means for a run. */
#ifndef LAP_APP_SUPERVISE_H
#define LAP_APP_SUPERVISE_H

#include "app/link.h"

typedef struct lap_supervision {
    int (*work)(void *context, lap_link *link);              /* in the worker; its exit status */
    void (*take)(void *context, const lap_message *message); /* in the parent */
    void *context;
    double silence_s;     /* the longest without a sign of life; 0: for ever */
    const bool *finished; /* all that matters has arrived: only the leaving is left */
} lap_supervision;

typedef enum lap_worker_end {
    LAP_WORKER_ENDED = 0, /* by itself, with exit status 0 */
    LAP_WORKER_DIED,      /* by a signal, or with another exit status */
    LAP_WORKER_HUNG,      /* no sign of life for silence_s: killed */
    LAP_WORKER_LEFT       /* the user asked a second time: killed */
} lap_worker_end;

typedef struct lap_worker_outcome {
    lap_worker_end end;
    char text[320]; /* "was killed by signal 11 (Segmentation fault)"; "" for ENDED */
} lap_worker_outcome;

/* Fork, pass messages on until the worker has ended, say how. lap_app_watch_signals_for_worker must
 * have been called. LAP_E_INTERNAL when there can be no process. */
lap_status lap_supervise(const lap_supervision *s, lap_worker_outcome *out, lap_error *err);

#endif
