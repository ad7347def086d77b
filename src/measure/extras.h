/* Parts of a result row besides latency and the batch search: where the time goes (copies), the
 * pipeline from end to end, several queues at once. Data only; filled by the measuring code, read
 * by renderers. Part of result.h. Times are seconds; absent values are absent, never 0.
 */
#ifndef LAP_MEASURE_EXTRAS_H
#define LAP_MEASURE_EXTRAS_H

#include "measure/stats.h"
#include <stdint.h>

/* One way of copying a row's data; host time of a blocking copy on an idle queue. */
typedef struct lap_copy_time {
    uint64_t bytes;
    size_t n;
    lap_optional median_s, std_s;
    lap_optional bytes_per_s; /* bytes / median */
} lap_copy_time;

typedef struct lap_copies {
    bool has;
    lap_copy_time upload_pageable, upload_pinned;     /* the input batch */
    lap_copy_time download_pageable, download_pinned; /* the logits */
    char reason[256]; /* why the pinned ones are absent; "" when they are not */
} lap_copies;

/* Every layer timed in a pass of its own, with events between layers. */
typedef struct lap_layer_sum {
    lap_optional sum_s;        /* of the layers' medians */
    lap_optional pass_s;       /* median from the first event to the last of the same passes */
    lap_optional whole_s;      /* the row's latency, without events in between */
    lap_optional difference_s; /* sum_s - whole_s; derived by lap_row_finish */
} lap_layer_sum;

/* Images per second with uploads and downloads, double-buffered against compute. */
typedef struct lap_pipeline {
    bool has;
    uint64_t batch, batches;
    lap_optional images_per_s;         /* uploads, compute and downloads on three queues */
    lap_optional serial_images_per_s;  /* the same work on one queue, one after the other */
    lap_optional compute_images_per_s; /* without copies */
    bool pinned;                       /* host memory was pinned */
    char reason[256];                  /* why there is no value; "" when there is */
} lap_pipeline;

/* Several queues at once, each with a plan and activations of its own. */
typedef struct lap_stream_point {
    uint64_t streams, batch, batches; /* batches in all */
    lap_optional images_per_s;
    lap_optional latency_mean_s, latency_p50_s, latency_p99_s, latency_max_s; /* under this load */
    lap_status status;
    char reason[256]; /* "" when ok */
} lap_stream_point;

enum { LAP_MAX_STREAM_POINTS = 8 };

typedef struct lap_streams {
    lap_stream_point points[LAP_MAX_STREAM_POINTS];
    size_t count;
} lap_streams;

#endif
