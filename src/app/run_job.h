/* One `warmlap run` or `verify`: what is planned, and what came out of it by now. Private to
 * cmd_run.c and run_job.c.
 *
 * The work is done here or ([run] isolate) in a worker process. Then this process opens no device:
 * it learns the rows from the worker, writes the documents, and survives the worker. */
#ifndef LAP_APP_RUN_JOB_H
#define LAP_APP_RUN_JOB_H

#include "app/documents.h"
#include "app/link.h"
#include "app/options.h"
#include "app/runner.h"

typedef enum lap_row_progress {
    LAP_ROW_PENDING = 0,
    LAP_ROW_RUNNING,
    LAP_ROW_DONE
} lap_row_progress;

typedef struct lap_job_row {
    lap_row row;    /* described, then as it is by now */
    lap_row so_far; /* measured, but not finished; has_so_far */
    bool has_so_far;
    lap_row_progress progress;
    bool suspect; /* ran beside others when their process died: to be worked on alone */
    bool todo;    /* of the next worker */
} lap_job_row;

typedef struct lap_job {
    lap_command command;
    const lap_options *options;
    const lap_config *config;
    /* Where the work is done. */
    lap_device_list *list;
    size_t *chosen, chosen_count;
    lap_run_case *cases; /* all of the plan */
    lap_alone *alone;    /* per row of the plan, once it is done: for the rows beside others */
    lap_meter meter;
    struct lap_fleet *fleet; /* this process is a rank of one; NULL: it is not */
    bool fleet_ready;        /* rank 0 knows what this one measures */
    lap_link *link;          /* to the parent; NULL: there is none */
    /* Everywhere. */
    lap_job_row *rows;
    size_t count;
    bool planned;     /* every row is known */
    unsigned attempt; /* workers before this one */
    lap_documents documents;
    /* Of the worker, as its parent knows it. */
    char step[160];
    bool finished; /* nothing more is to come: every row is done, or it has lost a device */
    bool lost;     /* it has: what is left is for the next one */
    lap_error failure;
    bool warned; /* that a document cannot be written */
} lap_job;

/* Plan and work on all rows. The rows are then complete, whatever their status; an error is about
 * everything else. */
lap_status lap_job_run(lap_job *job, lap_error *err);
void lap_job_free(lap_job *job);

/* The rows as they are by now, one after the other, for renderers; free() it, the rows stay the
 * job's.
 */
lap_row *lap_job_rows(const lap_job *job);

/* cmd_run.c: what is planned, from the devices there are. job->cases and *count. */
lap_status lap_job_plan(lap_job *job, size_t *count, lap_error *err);

#endif
