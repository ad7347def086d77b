/* What a route can resolve: the step of its timers, and the cost of a kernel that does nothing. A
 * latency near either is one of the timer or of the launch path, not of the device.
 */
#ifndef LAP_MEASURE_FLOOR_H
#define LAP_MEASURE_FLOOR_H

#include "measure/stats.h"
#include "measure/timing.h"

typedef struct lap_floor {
    bool has;
    size_t bad_stamps;                       /* missing, zero or reversed ones seen */
    lap_optional claimed_s;                  /* step of the device's stamps as the API tells it */
    lap_optional measured_s;                 /* smallest difference seen between two device spans */
    lap_optional host_s;                     /* smallest step seen of the host clock */
    lap_optional device_s, wall_s, submit_s; /* medians of one empty kernel: device span, wall span,
                                                submission */
} lap_floor;

/* One launch of the empty kernel; `run` enqueues and returns without waiting. */
typedef struct lap_empty {
    lap_status (*run)(void *context, lap_error *err);
    void *context;
} lap_empty;

/* Measure with an open timing; out is overwritten. Bad stamps leave device_s and measured_s absent.
 * Errors: the launch's or the queue's, with out zeroed. */
lap_status lap_floor_measure(const lap_empty *empty, const lap_timing *timing, lap_floor *out,
                             lap_error *err);

/* The step to reckon with: as measured, else as claimed, 0 if unknown. */
double lap_floor_resolution(const lap_floor *floor);

/* The same on a queue: builds the project's empty kernel for the queue's device first. */
lap_status lap_floor_of_queue(lap_queue *queue, const lap_timing *timing, lap_floor *out,
                              lap_error *err);

#endif
