/* Empties the last-level cache between repetitions ("cold cache") by copying a buffer twice its
 * size from one half to the other. */
#ifndef LAP_MEASURE_FLUSH_H
#define LAP_MEASURE_FLUSH_H

#include "device/device.h"

typedef struct lap_flush lap_flush;

/* LAP_E_OOM without room for the buffer. Where the device does not tell its cache's size, 128 MiB
 * are touched; lap_flush_bytes says how many it is. */
lap_status lap_flush_open(lap_queue *queue, lap_flush **out, lap_error *err);
uint64_t lap_flush_bytes(const lap_flush *flush);
/* Touch the buffer and wait until that is done. context is the lap_flush: fits lap_workload. */
lap_status lap_flush_run(void *context, lap_error *err);
void lap_flush_close(lap_flush *flush); /* NULL is allowed */

#endif
