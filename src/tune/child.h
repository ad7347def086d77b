/* The parent's side of a worker process: start it, exchange lines, notice death and silence.
 * Private to src/tune. */
#ifndef LAP_TUNE_CHILD_H
#define LAP_TUNE_CHILD_H

#include "base/status.h"
#include <stdbool.h>
#include <sys/types.h>

#define LAP_CHILD_ARGS 10

typedef struct lap_child {
    const char *args[LAP_CHILD_ARGS]; /* of the program itself, from its command on; NULL-ended */
    pid_t pid;                        /* 0: none runs */
    int to, from;
    char pending[4096]; /* read, not yet given out */
    size_t have;
    char death[160]; /* how the last one ended: "killed by signal 6 (Aborted)" */
} lap_child;

typedef enum lap_child_line { LAP_CHILD_LINE = 0, LAP_CHILD_DEAD, LAP_CHILD_HUNG } lap_child_line;

/* Start one unless one runs. args must be set. */
lap_status lap_child_start(lap_child *child, lap_error *err);
/* text must end in a newline. False when it is dead. */
bool lap_child_send(lap_child *child, const char *text);
/* Wait for a line, without its newline, at most limit_s seconds. After DEAD or HUNG the child is
 * gone (killed if need be) and death says how. A line longer than size counts as death. */
lap_child_line lap_child_read(lap_child *child, double limit_s, char *line, size_t size);
/* End it: politely, then not. */
void lap_child_stop(lap_child *child);

#endif
