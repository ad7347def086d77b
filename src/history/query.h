/* What is asked of a history: "device=H200,batch=1,last=10". Terms are separated by commas and must
 * all hold:
 *
 *   device=, driver=, host=   part of the name, whatever the case
 *   route=     a selector or its beginning: "cuda", "opencl:1:0"
 *   network=, precision=, version=   exactly
 *   size=HxW, batch=N
 *   run=       the beginning of a run's id
 *   since=, until=   of the start, as far as it is given: "2026-03", "2026-03-01T12:00:00Z"
 *   last=N     only the N latest runs of which something matches; "latest" is last=1
 *   all        nothing; so does an empty query */
#ifndef LAP_HISTORY_QUERY_H
#define LAP_HISTORY_QUERY_H

#include "base/status.h"
#include <stdint.h>

typedef enum lap_term {
    LAP_TERM_DEVICE = 0,
    LAP_TERM_DRIVER,
    LAP_TERM_ROUTE,
    LAP_TERM_NETWORK,
    LAP_TERM_PRECISION,
    LAP_TERM_SIZE,
    LAP_TERM_BATCH,
    LAP_TERM_HOST, /* from here on: of runs */
    LAP_TERM_VERSION,
    LAP_TERM_RUN,
    LAP_TERM_SINCE,
    LAP_TERM_UNTIL,
    LAP_TERM_LAST,
    LAP_TERMS
} lap_term;

typedef struct lap_query {
    char *copy;                    /* owner of the values */
    const char *values[LAP_TERMS]; /* NULL: not asked */
    uint64_t height, width, batch; /* of size and batch */
    uint64_t last;                 /* 0: all */
} lap_query;

const char *lap_term_name(lap_term term);

/* LAP_E_CONFIG names the term that is wrong. A term may stand once. */
lap_status lap_query_parse(const char *text, lap_query *out, lap_error *err);
/* One more term; value must outlive the query. The same errors. */
lap_status lap_query_add(lap_query *query, const char *term, const char *value, lap_error *err);
void lap_query_free(lap_query *query);

#endif
