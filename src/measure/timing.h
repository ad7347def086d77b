/* Where time comes from: a host clock, two event slots (before, after) and a wait.
 *
 * A table of functions, so that the protocol can be tested against a scripted clock. The one for
 * real queues is lap_timing_open.
 */
#ifndef LAP_MEASURE_TIMING_H
#define LAP_MEASURE_TIMING_H

#include "device/device.h"

typedef struct lap_timing {
    double (*now)(void *context);                        /* host clock, seconds */
    lap_status (*before)(void *context, lap_error *err); /* record event D */
    lap_status (*after)(void *context, lap_error *err);  /* record event E */
    lap_status (*finish)(void *context, lap_error *err); /* wait for everything enqueued */
    lap_status (*elapsed)(void *context, double *seconds, lap_error *err); /* E - D */
    void *context;
    double resolution_s; /* of the event stamps; 0 unknown */
} lap_timing;

/* Events and waits on queue, which must outlive the timing. */
lap_status lap_timing_open(lap_queue *queue, lap_timing *out, lap_error *err);
void lap_timing_close(lap_timing *timing); /* NULL or zeroed is allowed */

#endif
