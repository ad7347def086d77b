/* Writes a state dict as safetensors. Counters come first, so that every tensor is aligned to its
 * own element size, as the format's own writer does it. */
#include "base/text.h"
#include "net/file.h"
#include "net/safetensors.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_FLOATS = 1 << 14 };

static void header_entry(lap_text *text, const lap_state_tensor *t, uint64_t *at) {
    bool counter = t->role == LAP_STATE_BN_COUNTER;
    lap_text_addf(text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", text->length > 1 ? "," : "",
                  t->name, counter ? "I64" : "F32");
    for (int i = 0; i < t->rank; i++)
        lap_text_addf(text, "%s%llu", i ? "," : "", (unsigned long long)t->shape[i]);
    uint64_t end = *at + t->count * (counter ? 8 : 4);
    lap_text_addf(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)*at,
                  (unsigned long long)end);
    *at = end;
}

static lap_status write_header(lap_new_file *file, const lap_state *state, lap_error *err) {
    lap_text text = {0};
    uint64_t at = 0;
    lap_text_add(&text, "{");
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < state->count; i++)
            if ((state->tensors[i].role == LAP_STATE_BN_COUNTER) == (pass == 0))
                header_entry(&text, &state->tensors[i], &at);
    lap_text_add(&text, "}");
    while (!text.failed && text.length % 8 != 0)
        lap_text_add(&text, " ");
    unsigned char length[8];
    lap_store_u64(length, text.length);
    lap_status status = text.failed
                            ? LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for the header", file->path)
                            : lap_file_write(file, length, sizeof length, err);
    if (status == LAP_OK) status = lap_file_write(file, text.data, text.length, err);
    lap_text_free(&text);
    return status;
}

static lap_status write_floats(lap_new_file *file, const float *data, uint64_t count,
                               lap_error *err) {
    unsigned char chunk[CHUNK_FLOATS * 4];
    for (uint64_t done = 0; done < count;) {
        uint64_t n = count - done < CHUNK_FLOATS ? count - done : CHUNK_FLOATS;
        for (uint64_t i = 0; i < n; i++)
            lap_store_f32(chunk + 4 * i, data[done + i]);
        LAP_TRY(lap_file_write(file, chunk, (size_t)n * 4, err));
        done += n;
    }
    return LAP_OK;
}

static lap_status write_values(lap_new_file *file, const lap_state *state, lap_state_fetch fetch,
                               void *context, float *values, lap_error *err) {
    static const unsigned char zero[8];
    for (int i = 0; i < state->count; i++)
        if (state->tensors[i].role == LAP_STATE_BN_COUNTER)
            LAP_TRY(lap_file_write(file, zero, sizeof zero, err));
    for (int i = 0; i < state->count; i++) {
        if (state->tensors[i].role == LAP_STATE_BN_COUNTER) continue;
        LAP_TRY(fetch(context, i, values, err));
        LAP_TRY(write_floats(file, values, state->tensors[i].count, err));
    }
    return LAP_OK;
}

lap_status lap_safetensors_write(const char *path, const lap_state *state, lap_state_fetch fetch,
                                 void *context, bool force, lap_error *err) {
    uint64_t most = 1;
    for (int i = 0; i < state->count; i++)
        if (state->tensors[i].count > most) most = state->tensors[i].count;
    float *values = malloc((size_t)most * sizeof *values);
    if (!values) return LAP_FAIL(err, LAP_E_NOMEM, "%s: no memory for a tensor", path);
    lap_new_file file;
    lap_status status = lap_file_create(path, force, &file, err);
    if (status == LAP_OK) {
        status = write_header(&file, state, err);
        if (status == LAP_OK) status = write_values(&file, state, fetch, context, values, err);
        status = lap_file_finish(&file, status, err);
    }
    free(values);
    return status;
}
