/* Tuning the cases that a configuration names: what `warmlap tune` does, and `run --tune` before it
 * runs. Prints nothing but progress. */
#ifndef LAP_APP_TUNE_CASES_H
#define LAP_APP_TUNE_CASES_H

#include "app/options.h"
#include "report/progress.h"
#include "tune/store.h"

typedef struct lap_app_tune_job {
    const lap_config *config;
    const lap_device_list *list;
    const size_t *chosen; /* indices into list */
    size_t chosen_count;
    lap_meter *meter;
    double seconds;    /* for each case */
    const char *store; /* path; NULL: find out only, write nothing */
} lap_app_tune_job;

/* Each device, network, size, precision and batch of [latency] batch in turn; what one found is
 * stored before the next begins. table gets a table per case, also for those that failed. Returns
 * the first failure, after all were tried; LAP_E_INTERRUPTED ends at once, with what was found. */
lap_status lap_app_tune(const lap_app_tune_job *job, lap_text *table, lap_error *err);

#endif
