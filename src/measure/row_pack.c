/* Packing rows (see row_pack.h): the structure itself, then what it owns, in the order of the list
 * in own(). A member of lap_row that owns memory stands in three places: lap_row_free, own, and
 * tests/measure/test_row_pack.c, which fills every one. */
#include "measure/row_pack.h"

#include <stdlib.h>
#include <string.h>

enum { OWNED = 6, TEXTS = 2 };

typedef struct owned {
    void **at;
    size_t size; /* bytes; of the first TEXTS, which are texts, unknown from the counts */
} owned;

/* Arrays of plain elements. */
static void own(lap_row *row, owned out[OWNED]) {
    out[0] = (owned){(void **)&row->reason, 0};
    out[1] = (owned){(void **)&row->document, 0};
    out[2] = (owned){(void **)&row->kernels, row->kernel_count * sizeof *row->kernels};
    out[3] = (owned){(void **)&row->latency.samples, row->latency.n * sizeof *row->latency.samples};
    out[4] = (owned){(void **)&row->throughput.curve,
                     row->throughput.curve_count * sizeof *row->throughput.curve};
    out[5] = (owned){(void **)&row->layers, row->layer_count * sizeof *row->layers};
}

static void add(lap_text *out, const void *data, size_t size) {
    if (size) lap_text_addn(out, data, size);
}

bool lap_row_pack(const lap_row *row, lap_text *out) {
    lap_row copy = *row;
    owned parts[OWNED];
    own(&copy, parts);
    add(out, row, sizeof *row);
    for (size_t i = 0; i < TEXTS; i++) {
        parts[i].size = *parts[i].at ? strlen(*parts[i].at) + 1 : 0;
        add(out, &parts[i].size, sizeof parts[i].size);
    }
    for (size_t i = 0; i < OWNED; i++)
        add(out, *parts[i].at, parts[i].size);
    for (size_t i = 0; i < row->note_count; i++) {
        size_t size = strlen(row->notes[i]) + 1;
        add(out, &size, sizeof size);
        add(out, row->notes[i], size);
    }
    return !out->failed;
}

typedef struct reader {
    const char *at;
    size_t left;
    bool bad;
} reader;

static void take(reader *in, void *out, size_t size) {
    in->bad = in->bad || size > in->left;
    if (in->bad || !size) return;
    memcpy(out, in->at, size);
    in->at += size;
    in->left -= size;
}

/* An array of its own; NULL for none. */
static void *take_array(reader *in, size_t size) {
    in->bad = in->bad || size > in->left;
    void *array = !in->bad && size ? malloc(size) : NULL;
    in->bad = in->bad || (size && !array);
    if (!in->bad) take(in, array, size);
    return array;
}

static void take_notes(reader *in, lap_row *row, size_t count) {
    row->notes = !in->bad && count ? calloc(count, sizeof *row->notes) : NULL;
    in->bad = in->bad || (count && !row->notes);
    row->note_capacity = row->notes ? count : 0;
    for (size_t i = 0; i < count && !in->bad; i++) {
        size_t size = 0;
        take(in, &size, sizeof size);
        row->notes[i] = take_array(in, size);
        in->bad = in->bad || !row->notes[i];
        row->note_count += row->notes[i] != NULL;
    }
}

bool lap_row_unpack(const char *bytes, size_t size, lap_row *row) {
    reader in = {bytes, size, false};
    lap_row_init(row);
    take(&in, row, sizeof *row);
    size_t notes = row->note_count;
    owned parts[OWNED];
    own(row, parts);
    for (size_t i = 0; i < OWNED; i++)
        *parts[i].at = NULL; /* another process's pointers */
    row->notes = NULL;
    row->note_count = 0;
    row->kernel_capacity = row->kernel_count;
    row->layer_capacity = row->layer_count;
    row->throughput.curve_capacity = row->throughput.curve_count;
    for (size_t i = 0; i < TEXTS; i++)
        take(&in, &parts[i].size, sizeof parts[i].size);
    for (size_t i = 0; i < OWNED; i++)
        *parts[i].at = take_array(&in, parts[i].size);
    take_notes(&in, row, notes);
    if (!in.bad && in.left == 0) return true;
    lap_row_free(row);
    return false;
}
