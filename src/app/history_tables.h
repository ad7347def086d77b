/* What `warmlap history` shows: grids of runs, rows and trends. */
#ifndef LAP_APP_HISTORY_TABLES_H
#define LAP_APP_HISTORY_TABLES_H

#include "history/grid.h"
#include "history/trend.h"

lap_grid *lap_history_list_grid(void);
void lap_history_list_add(lap_grid *grid, const lap_history_run *run);

lap_grid *lap_history_show_grid(const lap_metric *metric); /* NULL: all of them */
void lap_history_show_add(lap_grid *grid, const lap_history_row *row, bool utf8);

lap_grid *lap_history_trend_grid(void);
/* What the values beneath "First", "Best" and "Latest" are, and their unit. */
const char *lap_history_trend_legend(lap_metric metric);
/* A row for each case; a remark where it is not a device alone, verified and timed as usual. */
void lap_history_trends_add(lap_grid *grid, lap_metric metric, const lap_trends *trends, bool utf8);

#endif
