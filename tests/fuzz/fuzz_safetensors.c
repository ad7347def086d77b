/* A weight file, held to a small made-up network's tensors. */
#include "fuzz.h"

#include "net/safetensors.h"

#include <math.h>

static lap_state_tensor tensors[] = {
    {"a.weight", LAP_STATE_WEIGHT, NULL, 2, {2, 3}, 6, false},
    {"a.bias", LAP_STATE_BIAS, NULL, 1, {2}, 2, false},
    {"n.num_batches_tracked", LAP_STATE_BN_COUNTER, NULL, 0, {0}, 1, false},
};
static const lap_state state = {tensors, 3, NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lap_error err = {0};
    lap_safetensors *file = NULL;
    lap_status status = lap_safetensors_open(fuzz_file(data, size), &state, &file, &err);
    FUZZ_HOLDS((status == LAP_OK) == (file != NULL));
    FUZZ_HOLDS(status == LAP_OK || (status == LAP_E_FORMAT && err.message[0]));
    for (int i = 0; status == LAP_OK && i < 2; i++) {
        float values[6] = {0};
        status = lap_safetensors_fetch(file, i, values, &err);
        FUZZ_HOLDS(status == LAP_OK || status == LAP_E_FORMAT);
        for (int k = 0; status == LAP_OK && k < 6; k++)
            FUZZ_HOLDS(isfinite(values[k]));
    }
    lap_safetensors_close(file);
    return 0;
}
