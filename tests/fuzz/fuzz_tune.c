/* A tune store, and what its entries say to the chooser. */
#include "fuzz.h"

#include "tune/store.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lap_error err = {0};
    lap_tune_store store;
    lap_status status = lap_tune_store_parse("fuzz.txt", (const char *)data, size, &store, &err);
    FUZZ_HOLDS(status == LAP_OK || (status == LAP_E_FORMAT && err.message[0] && !store.entries));
    for (size_t i = 0; i < store.count; i++) {
        const lap_tune_entry *e = &store.entries[i];
        FUZZ_HOLDS(e->batch > 0 && isfinite(e->tuned_s) && e->tuned_s > 0);
        const lap_kernel_row *row = lap_kernel_find(e->kernel);
        lap_params params;
        if (row) (void)lap_tune_params_parse(row, e->params, &params);
        lap_candidate candidate;
        (void)lap_candidate_parse(e->params, &candidate);
    }
    lap_tune_store_free(&store);
    return 0;
}
