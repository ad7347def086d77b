/* A network from end to end: uploads, compute and downloads, on three queues and double-buffered,
 * so that the copies of one batch run while another is computed; and the same work one after the
 * other, and without copies, to tell what that is worth. */
#ifndef LAP_MEASURE_PIPELINE_H
#define LAP_MEASURE_PIPELINE_H

#include "measure/extras.h"
#include "plan/plan.h"

typedef struct lap_pipeline_job {
    lap_plan *plans[2]; /* alike, bound, on one queue; their results were verified */
    const void *input;  /* the packed batch, lap_plan_input_bytes of it */
    uint64_t batch, batches;
    double max_seconds;                 /* for each of the three ways; 0: no limit */
    bool (*interrupted)(void *context); /* NULL: never */
    void *context;
    double (*now)(void); /* NULL: lap_clock_now */
} lap_pipeline_job;

/* Every downloaded result of the last two batches must be equal, bit for bit, to that of a run on
 * its own: LAP_E_VERIFY otherwise. Where the device cannot copy asynchronously, out->reason says so
 * and only the other two rates are there. Other errors: the device's; LAP_E_INTERRUPTED. */
lap_status lap_pipeline_measure(const lap_pipeline_job *job, lap_pipeline *out, lap_error *err);

#endif
