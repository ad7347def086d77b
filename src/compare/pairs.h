/* Private to src/compare: the same physical device through two APIs. */
#ifndef LAP_COMPARE_PAIRS_H
#define LAP_COMPARE_PAIRS_H

#include "compare/compare.h"

/* Fill pairs and pair_count from the lines. */
lap_status lap_find_pairs(lap_comparison *c, lap_error *err);

#endif
