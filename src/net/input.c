/* Input images: synthetic ones, or those of a .npy file.
 *
 * Synthetic image i of seed S: element j (order [channel][row][column]) of channel c is
 *     0.5 * lap_rng_normal(S, A + i, j) + sqrt(0.75) * lap_rng_normal(S, B + i, c)
 * with A = lap_rng_stream("input"), B = lap_rng_stream("input.cast"), both sums modulo 2^64, in
 * double, rounded once to float. Each element is standard normal. The second term, a colour cast,
 * is there because pure noise all looks alike to a network: without it nearly every image
 * would get the same class. An image depends on its own number only, not on how many are made or in
 * which order.
 */
#include "base/rng.h"
#include "base/text.h"
#include "net/file.h"
#include "net/npy.h"
#include "net/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char synthetic_prefix[] = "synthetic:";

enum { CHUNK_FLOATS = 1 << 14 };

struct lap_input {
    int fd; /* -1: synthetic */
    char *path;
    uint64_t seed;
    uint64_t images; /* in the file */
    uint64_t data;   /* file offset of the first image */
    uint64_t values; /* per image */
    uint64_t channels;
};

static lap_status open_npy(lap_input *input, int channels, int height, int width, lap_error *err) {
    uint64_t size;
    LAP_TRY(lap_file_open(input->path, &input->fd, &size, err));
    lap_npy npy;
    LAP_TRY(lap_npy_read_header(input->fd, input->path, size, &npy, err));
    bool same = npy.rank == 4 && npy.shape[1] == (uint64_t)channels &&
                npy.shape[2] == (uint64_t)height && npy.shape[3] == (uint64_t)width;
    if (!same) {
        lap_text found = {0};
        for (int i = 0; i < npy.rank; i++)
            lap_text_addf(&found, "%s%llu", i ? ", " : "", (unsigned long long)npy.shape[i]);
        lap_status status = LAP_FAIL(err, LAP_E_FORMAT, "%s: shape (%s): expected (n, %d, %d, %d)",
                                     input->path, lap_text_get(&found), channels, height, width);
        lap_text_free(&found);
        return status;
    }
    input->images = npy.shape[0];
    input->data = npy.data;
    return LAP_OK;
}

lap_status lap_input_open(const char *spec, int channels, int height, int width, lap_input **out,
                          lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_input_open: out is NULL");
    *out = NULL;
    if (!spec || channels < 1 || height < 1 || width < 1)
        return LAP_FAIL(err, LAP_E_ARG, "lap_input_open: a spec and sizes of at least 1 expected");
    size_t prefix = sizeof synthetic_prefix - 1;
    bool synthetic = strncmp(spec, synthetic_prefix, prefix) == 0;
    uint64_t seed = 0;
    if (spec[0] == '\0' || (synthetic && !lap_parse_u64(spec + prefix, &seed)))
        return LAP_FAIL(err, LAP_E_CONFIG,
                        "input \"%s\": expected synthetic:SEED (SEED 0 to 2^64-1) or the path of a "
                        ".npy file",
                        spec);
    lap_input *input = calloc(1, sizeof *input);
    if (input) input->path = strdup(spec);
    if (!input || !input->path) {
        free(input);
        return LAP_FAIL(err, LAP_E_NOMEM, "input \"%s\": no memory", spec);
    }
    input->fd = -1;
    input->seed = seed;
    input->images = UINT64_MAX;
    input->channels = (uint64_t)channels;
    input->values = (uint64_t)channels * (uint64_t)height * (uint64_t)width;
    if (!synthetic) {
        lap_status status = open_npy(input, channels, height, width, err);
        if (status != LAP_OK) {
            lap_input_free(input);
            return status;
        }
    }
    *out = input;
    return LAP_OK;
}

static lap_status read_image(const lap_input *input, uint64_t index, float *out, lap_error *err) {
    unsigned char chunk[CHUNK_FLOATS * 4];
    for (uint64_t done = 0; done < input->values;) {
        uint64_t n = input->values - done < CHUNK_FLOATS ? input->values - done : CHUNK_FLOATS;
        uint64_t at = input->data + (index * input->values + done) * 4;
        LAP_TRY(lap_file_read(input->fd, input->path, at, chunk, (size_t)n * 4, err));
        for (uint64_t i = 0; i < n; i++) {
            out[done + i] = lap_load_f32(chunk + 4 * i);
            if (!isfinite(out[done + i]))
                return LAP_FAIL(err, LAP_E_FORMAT,
                                "%s: image %llu, value %llu is %g: expected a finite number",
                                input->path, (unsigned long long)index,
                                (unsigned long long)(done + i), (double)out[done + i]);
        }
        done += n;
    }
    return LAP_OK;
}

lap_status lap_input_image(const lap_input *input, uint64_t index, float *out, lap_error *err) {
    if (!input || !out) return LAP_FAIL(err, LAP_E_ARG, "lap_input_image: input or out is NULL");
    if (input->fd >= 0) return read_image(input, index % input->images, out, err);
    uint64_t noise = lap_rng_stream("input") + index, cast = lap_rng_stream("input.cast") + index;
    uint64_t plane = input->values / input->channels;
    for (uint64_t c = 0; c < input->channels; c++) {
        double offset = sqrt(0.75) * lap_rng_normal(input->seed, cast, c);
        for (uint64_t j = c * plane; j < (c + 1) * plane; j++)
            out[j] = (float)(0.5 * lap_rng_normal(input->seed, noise, j) + offset);
    }
    return LAP_OK;
}

uint64_t lap_input_distinct(const lap_input *input) {
    return input->images;
}

void lap_input_free(lap_input *input) {
    if (!input) return;
    if (input->fd >= 0) close(input->fd);
    free(input->path);
    free(input);
}
