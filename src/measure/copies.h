/* What copies between host and device cost: blocking copies of a given size, from and to pageable
 * and pinned host memory, on the host's clock. */
#ifndef LAP_MEASURE_COPIES_H
#define LAP_MEASURE_COPIES_H

#include "device/device.h"
#include "measure/extras.h"

typedef struct lap_copies_job {
    lap_queue *queue;
    lap_buffer *input; /* is written with data again and again */
    const void *data;
    size_t input_bytes;
    lap_buffer *output; /* is only read */
    size_t output_bytes;
    bool (*interrupted)(void *context); /* NULL: never */
    void *context;
    double (*now)(void); /* NULL: lap_clock_now */
} lap_copies_job;

/* Errors: what a copy fails with; LAP_E_INTERRUPTED; LAP_E_NOMEM. That there is no pinned memory is
 * none: out->reason then says so. */
lap_status lap_copies_measure(const lap_copies_job *job, lap_copies *out, lap_error *err);

#endif
