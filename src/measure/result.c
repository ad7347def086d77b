/* Result rows: filling, failing and freeing. Derived values are in derive.c; nothing here measures
 * or formats for people beyond the reason of a failure. */
#include "measure/result.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lap_row_status_name(lap_row_status status) {
    switch (status) {
    case LAP_ROW_OK:
        return "ok";
    case LAP_ROW_FAILED:
        return "failed";
    case LAP_ROW_UNSUPPORTED:
        return "unsupported";
    case LAP_ROW_SKIPPED:
        return "skipped";
    }
    return "failed";
}

const char *lap_clock_kind_name(lap_clock_kind clock) {
    return clock == LAP_CLOCK_WALL ? "wall" : "device";
}

void lap_row_init(lap_row *row) {
    memset(row, 0, sizeof *row);
}

void lap_latency_free(lap_latency *latency) {
    if (!latency) return;
    free(latency->samples);
    memset(latency, 0, sizeof *latency);
}

void lap_throughput_free(lap_throughput *throughput) {
    if (!throughput) return;
    free(throughput->curve);
    memset(throughput, 0, sizeof *throughput);
}

void lap_row_free(lap_row *row) {
    if (!row) return;
    free(row->reason);
    free(row->document);
    free(row->kernels);
    free(row->layers);
    for (size_t i = 0; i < row->note_count; i++)
        free(row->notes[i]);
    free(row->notes);
    lap_latency_free(&row->latency);
    lap_throughput_free(&row->throughput);
    memset(row, 0, sizeof *row);
}

/* ---- growing arrays ------------------------------------------------------------------------- */

/* Room for one more of `size` bytes; NULL leaves the array as it was. */
static void *grow(void *array, size_t count, size_t *capacity, size_t size) {
    if (count < *capacity) return array;
    size_t more = *capacity ? *capacity * 2 : 8;
    void *bigger = more <= SIZE_MAX / size ? realloc(array, more * size) : NULL;
    if (bigger) *capacity = more;
    return bigger;
}

bool lap_row_note(lap_row *row, const char *format, ...) {
    lap_text text = {0};
    char line[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (size_t i = 0; i < row->note_count; i++)
        if (strcmp(row->notes[i], line) == 0) return true; /* said already */
    lap_text_add(&text, line);
    char **notes = grow(row->notes, row->note_count, &row->note_capacity, sizeof *notes);
    if (notes) row->notes = notes;
    if (!notes || text.failed) {
        lap_text_free(&text);
        return false;
    }
    row->notes[row->note_count++] = text.data;
    return true;
}

bool lap_row_add_kernel(lap_row *row, const char *layer, const char *kernel, const char *params,
                        const char *choice) {
    lap_row_kernel *kernels =
        grow(row->kernels, row->kernel_count, &row->kernel_capacity, sizeof *kernels);
    if (!kernels) return false;
    row->kernels = kernels;
    lap_row_kernel *k = &kernels[row->kernel_count++];
    snprintf(k->layer, sizeof k->layer, "%s", layer);
    snprintf(k->kernel, sizeof k->kernel, "%s", kernel);
    snprintf(k->params, sizeof k->params, "%s", params);
    snprintf(k->choice, sizeof k->choice, "%s", choice);
    return true;
}

bool lap_row_add_layer(lap_row *row, const lap_layer *layer) {
    lap_layer *layers = grow(row->layers, row->layer_count, &row->layer_capacity, sizeof *layers);
    if (!layers) return false;
    row->layers = layers;
    row->layers[row->layer_count++] = *layer;
    return true;
}

/* ---- failing -------------------------------------------------------------------------------- */

static lap_row_status status_of(lap_status cause) {
    if (cause == LAP_E_UNSUPPORTED) return LAP_ROW_UNSUPPORTED;
    if (cause == LAP_E_INTERRUPTED) return LAP_ROW_SKIPPED;
    return LAP_ROW_FAILED;
}

static void remove_times(lap_row *row) {
    lap_latency_free(&row->latency);
    lap_throughput_free(&row->throughput);
    memset(&row->telemetry, 0, sizeof row->telemetry); /* of runs that count for nothing */
    row->fps = row->flops_per_s = lap_none();
    row->cold.first_s = lap_none(); /* the first wrong inference is no faster than the others */
    for (size_t i = 0; i < row->layer_count; i++) {
        lap_layer *layer = &row->layers[i];
        layer->device_s = layer->flops_per_s = layer->bytes_per_s = lap_none();
        layer->share = lap_none();
        layer->bound = NULL;
    }
    row->copies = (lap_copies){0};
    row->layer_sum = (lap_layer_sum){0};
    row->pipeline = (lap_pipeline){0};
    row->streams = (lap_streams){0};
    row->concurrent.rounds = (lap_rounds){0};
}

/* A copy of text, NULL on a lack of memory. */
static char *copy_text(const char *text) {
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

void lap_row_fail(lap_row *row, lap_status cause, const lap_error *err) {
    char text[2048];
    if (cause == LAP_OK) cause = LAP_E_INTERNAL; /* a failure without a cause is one of ours */
    if (!err || lap_error_text(err, text, sizeof text) == 0)
        snprintf(text, sizeof text, "%s", lap_status_name(cause));
    if (cause == LAP_E_VERIFY) remove_times(row);
    if (row->status != LAP_ROW_OK) {
        lap_row_note(row, "and then: %s", text);
        /* A wrong result outweighs whatever failed before: it decides the exit status. */
        if (cause != LAP_E_VERIFY) return;
    }
    row->status = status_of(cause);
    row->cause = cause;
    char *reason = copy_text(text);
    if (!reason) return; /* reports show the cause's name instead */
    free(row->reason);
    row->reason = reason;
}

void lap_row_skip(lap_row *row, const char *reason) {
    if (row->status != LAP_ROW_OK) return;
    row->status = LAP_ROW_SKIPPED;
    free(row->reason);
    row->reason = copy_text(reason);
}

int lap_rows_exit_status(const lap_row *rows, size_t count) {
    int status = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].cause == LAP_E_VERIFY) return 4;
        if (rows[i].status != LAP_ROW_OK && rows[i].cause != LAP_E_INTERRUPTED) status = 1;
    }
    return status;
}
