/* A row as bytes, for another process of the same program (a fork, so types and addresses of
 * constants are the same there). Not for files: those are src/report's. */
#ifndef LAP_MEASURE_ROW_PACK_H
#define LAP_MEASURE_ROW_PACK_H

#include "base/text.h"
#include "measure/result.h"

/* Append; false on a lack of memory. */
bool lap_row_pack(const lap_row *row, lap_text *out);
/* Out of exactly the bytes that lap_row_pack made. False when they are not, or on a lack of memory;
 * row is then empty. Free with lap_row_free. */
bool lap_row_unpack(const char *bytes, size_t size, lap_row *row);

#endif
