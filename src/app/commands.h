/* The commands of the program. argv[0] is the command's name. Each returns the exit status:
 * 0 ok, 1 a row failed, 2 usage or configuration, 3 no matching device, 4 verification failed,
 * 5 slower than a gate allows, 130 interrupted. */
#ifndef LAP_APP_COMMANDS_H
#define LAP_APP_COMMANDS_H

#include "base/status.h"
#include <stdatomic.h>
#include <stdbool.h>

enum {
    LAP_EXIT_OK = 0,
    LAP_EXIT_FAILED = 1,
    LAP_EXIT_USAGE = 2,
    LAP_EXIT_NO_DEVICE = 3,
    LAP_EXIT_WRONG = 4,
    LAP_EXIT_SLOWER = 5,
    LAP_EXIT_INTERRUPTED = 130
};

int cmd_devices(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_weights(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_history(int argc, char **argv);
int cmd_spans(int argc, char **argv);
int cmd_pitfalls(int argc, char **argv);

/* From now on Ctrl-C and SIGTERM only ask; whether somebody asked. */
void lap_app_watch_signals(void);
bool lap_app_interrupted(void *context);

/* The same where a worker process does the work: the second request is the caller's to see, only
 * the third ends the process. */
void lap_app_watch_signals_for_worker(void);
int lap_app_interruptions(void); /* requests so far */
/* What a worker and its parent share. Not signals: drivers bring handlers of their own. */
typedef struct lap_app_shared {
    atomic_ulong beats; /* signs of life, also with every call of lap_app_interrupted */
    atomic_int stop;    /* the parent asks to stop */
} lap_app_shared;
/* In the worker: what a terminal sends to all is the parent's to handle. */
void lap_app_become_worker(lap_app_shared *shared);
void lap_app_beat(void);

/* The exit status for a failure, and one line about it on stderr. */
int lap_app_exit_status(lap_status status);
int lap_app_complain(const lap_error *err);

/* The value of option name at argv[*i], "name=value" or in the next word, past which *i then moves:
 * "" where there is none, NULL where argv[*i] is another word. */
const char *lap_app_option_value(int argc, char **argv, int *i, const char *name);

/* Name and version of every library the program was built with or found, "name version" a line;
 * used by --version and by result documents. Iterates: false past the end. */
bool lap_app_library(size_t index, const char **name, const char **version);

#endif
