/* Private to src/compare: what the name of a row has to say so that no other row of a comparison
 * reads like it. */
#ifndef LAP_COMPARE_NAMES_H
#define LAP_COMPARE_NAMES_H

#include "compare/compare.h"

enum {
    /* of a sentence, which has device, API and case */
    LAP_SAY_FILE = 1,
    LAP_SAY_HOST = 2,
    LAP_SAY_SELECTOR = 4,
    LAP_SAY_ROW = 8,
    /* of a remark, which has device, selector, batch and file */
    LAP_NAME_NETWORK = 16,
    LAP_NAME_SIZE = 32,
    LAP_NAME_PRECISION = 64,
    LAP_NAME_OTHERS = 128,
    LAP_NAME_HOST = 256,
    LAP_NAME_ROW = 512
};

/* Set the names of all lines, and of their baselines. In n log n: files are other people's. */
lap_status lap_find_names(lap_comparison *c, lap_error *err);

/* "CUDA" of "CUDA 13.0", length bytes; the backend's name without. */
const char *lap_api_of(const lap_record *r, size_t *length);

#endif
