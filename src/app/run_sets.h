/* Which cases are measured at the same time. */
#ifndef LAP_APP_RUN_SETS_H
#define LAP_APP_RUN_SETS_H

#include "app/runner.h"

/* Appends to cases[0..lone), which has room for as many again, those that run at the same time and
 * sets *count to all. A set is one network, size, precision and batch, with every physical device
 * once; further routes to a device make further sets. A set of one is none. */
lap_status lap_app_add_sets(lap_run_case *cases, size_t lone, size_t *count, lap_error *err);

#endif
