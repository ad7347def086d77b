/* What surrounds a row's latency: the state of the cache before each repetition, and the copies
 * that no repetition contains. */
#include "app/runner_internal.h"

#include "measure/copies.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

lap_status run_cache_open(lap_case_run *run, lap_latency_options *options, lap_error *err) {
    lap_cache_mode mode = run->runner->config->latency.cache;
    snprintf(run->row->cache, sizeof run->row->cache, "%s", lap_cache_mode_name(mode));
    if (mode == LAP_CACHE_HOT) return LAP_OK;
    LAP_TRY(lap_flush_open(run->session->queue, &run->flush, err));
    run->row->flush_bytes = lap_flush_bytes(run->flush);
    lap_row_note(run->row, "cold cache: %.4g MiB are touched before each repetition%s",
                 (double)run->row->flush_bytes / (1 << 20),
                 run->c->device->cache_bytes ? "" : "; the device does not tell its cache's size");
    options->prepare = lap_flush_run;
    options->prepare_context = run->flush;
    return LAP_OK;
}

void run_cache_close(lap_case_run *run) {
    lap_flush_close(run->flush);
    run->flush = NULL;
}

lap_status run_copies(lap_case_run *run, lap_error *err) {
    const lap_expected *expected = &run->runner->expected;
    lap_meter_step(run->runner->meter, "%s: copies", run->label);
    size_t bytes = lap_plan_input_bytes(run->plan);
    void *packed = malloc(bytes);
    if (!packed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for an input of %zu bytes", bytes);
    lap_status status =
        lap_plan_pack_input(run->plan, expected->images, expected->count, packed, err);
    lap_copies_job job = {.queue = lap_plan_queue(run->plan),
                          .input = lap_plan_input_buffer(run->plan),
                          .data = packed,
                          .input_bytes = bytes,
                          .output = lap_plan_output_buffer(run->plan),
                          .output_bytes = lap_plan_output_bytes(run->plan),
                          .interrupted = run_interrupted,
                          .context = run};
    if (status == LAP_OK) status = lap_copies_measure(&job, &run->row->copies, err);
    free(packed);
    return status;
}
