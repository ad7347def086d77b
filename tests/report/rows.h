/* Rows for renderer tests: a good one, hostile names, failures, zeros. */
#ifndef LAP_TESTS_REPORT_ROWS_H
#define LAP_TESTS_REPORT_ROWS_H

#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { ROW_COUNT = 5 };

typedef struct sample_rows {
    lap_row rows[ROW_COUNT];
    lap_host_info host;
    lap_report_setting settings[3];
    lap_report_library libraries[1];
    lap_report report;
} sample_rows;

/* rows[0] good, with everything; [1] hostile names of full length; [2] failed before anything was
 * measured; [3] ok but every time is zero; [4] unsupported, with markup in its reason. */
sample_rows *sample_rows_new(void);
/* n device spans around `seconds`, alternating by +-d. */
void sample_rows_latency(lap_row *row, size_t n, double seconds, double d);
void sample_rows_free(sample_rows *rows);

#endif
