/* An image file of 2 x 3 pixels. */
#include "fuzz.h"

#include "net/weights.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lap_error err = {0};
    lap_input *input = NULL;
    lap_status status = lap_input_open(fuzz_file(data, size), 3, 2, 3, &input, &err);
    FUZZ_HOLDS((status == LAP_OK) == (input != NULL));
    FUZZ_HOLDS(status == LAP_OK || (status == LAP_E_FORMAT && err.message[0]));
    for (uint64_t i = 0; status == LAP_OK && i < 2; i++) {
        float values[18];
        status = lap_input_image(input, i, values, &err);
        FUZZ_HOLDS(status == LAP_OK || status == LAP_E_FORMAT);
    }
    lap_input_free(input);
    return 0;
}
