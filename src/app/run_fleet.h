/* `warmlap run` as one rank of a fleet. */
#ifndef LAP_APP_RUN_FLEET_H
#define LAP_APP_RUN_FLEET_H

#include "app/run_job.h"

/* Does [run] fleet ask for one here? */
bool lap_app_fleet_wanted(const lap_config *config);

/* All of it: join, measure, gather, write, print (rank 0). *alone: the launcher started one process
 * only; nothing was done. check: cmd_run.c's, of everything that can be wrong before measuring. */
lap_status lap_app_run_fleet(lap_job *job, lap_status (*check)(const lap_job *, lap_error *),
                             bool *alone, int *exit_status, lap_error *err);

#endif
