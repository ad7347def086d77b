/* What a report tells of a row beyond what comparing needs: samples, layers, curve, sensors,
 * kernels.
 *
 * Read from documents that were loaded whole (lap_document_take), and checked like them. Texts
 * belong to the document and are never NULL. Times are seconds. */
#ifndef LAP_PAGE_DETAILS_H
#define LAP_PAGE_DETAILS_H

#include "compare/document.h"

typedef struct lap_layer_detail {
    const char *name, *kind, *kernel, *bound;
    uint64_t flops, bytes;
    lap_optional device_s, flops_per_s, intensity, share;
} lap_layer_detail;

/* A batch size that a search tried. */
typedef struct lap_point_detail {
    uint64_t batch;
    lap_optional images_per_s, batch_s;
    bool over_limit;
    const char *status, *reason;
} lap_point_detail;

typedef struct lap_sensor_detail {
    lap_optional at_s, clock_mhz, power_w, temperature_c;
} lap_sensor_detail;

typedef struct lap_sensors_detail {
    const char *source, *reasons;
    lap_optional clock_min_mhz, clock_mean_mhz, clock_max_mhz, memory_clock_mhz;
    lap_optional temperature_c, power_w, energy_per_image_j, throttled_share;
    lap_sensor_detail *points; /* readings in order; none in documents of older versions */
    size_t count;
} lap_sensors_detail;

typedef struct lap_detail {
    const lap_record *record;
    double *samples; /* of the row's clock, in order; stats are theirs */
    size_t sample_count;
    lap_stats stats;
    lap_optional min_s, p50_s, p90_s, p95_s, p99_s, max_s; /* as the document has them */
    lap_optional submit_s, wall_s, device_s;               /* medians of the three spans */
    lap_layer_detail *layers;
    size_t layer_count;
    lap_optional peak_flops_per_s, memory_bytes_per_s, cache_bytes_per_s; /* ceilings */
    lap_point_detail *curve;
    size_t curve_count;
    uint64_t knee_batch, best_batch;
    const char *search_ended;
    lap_sensors_detail sensors;
    lap_optional open_s, build_s, upload_s, first_s; /* costs paid once */
    const char *clock_reason, *verdict_reason, *vendor, *toolchain;
    uint64_t memory_bytes, units;
    struct json_t *notes; /* borrowed; a list of texts, or NULL */
} lap_detail;

/* One for every row of the document. LAP_E_FORMAT names what has the wrong type, LAP_E_NOMEM. */
lap_status lap_details_read(const lap_document *document, lap_detail **out, lap_error *err);
void lap_details_free(lap_detail *details, size_t count); /* NULL is allowed */

#endif
