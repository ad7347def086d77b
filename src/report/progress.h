/* Progress on stderr: a bar that is redrawn when it is a terminal, a quiet line a step otherwise.
 * Writes to the stream it was given and nowhere else; standard output stays clean.
 */
#ifndef LAP_REPORT_PROGRESS_H
#define LAP_REPORT_PROGRESS_H

#include "report/terminal.h"
#include <stdio.h>

typedef struct lap_meter {
    FILE *stream; /* NULL: silent */
    lap_style style;
    char step[160]; /* what is being done */
    bool drawn;     /* a bar stands on the current line */
    double last_drawn_s, step_started_s;
    /* Told of each step, and with NULL of progress in it, whether anything is drawn or not. */
    void (*watch)(void *context, const char *step);
    void *watch_context;
} lap_meter;

void lap_meter_init(lap_meter *meter, FILE *stream, const lap_style *style);

/* Begin a step: "cuda:0 batch 1: warm-up". Without a terminal this prints one line. */
void lap_meter_step(lap_meter *meter, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* done of total within the step; total 0 means unknown. Has the signature of the progress callbacks
 * of plans and measurements; context is the lap_meter. Cheap when called often. */
void lap_meter_progress(void *context, const char *what, size_t done, size_t total);

/* A message of its own line, above the bar. */
void lap_meter_say(lap_meter *meter, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Remove the bar: before anything else is written to the terminal, and at the end. */
void lap_meter_clear(lap_meter *meter);

#endif
