/* A row of a result document as the row it was, for a run that is taken up again. The file is
 * somebody else's until proven otherwise: each member is checked, and the row's own text is kept,
 * so that what this program does not know is not lost either. */
#ifndef LAP_COMPARE_RESTORE_H
#define LAP_COMPARE_RESTORE_H

#include "measure/result.h"
#include <jansson.h>

/* All but the device, which is *device. path and index are for messages: "FILE: rows[3].fps is
 * ...". LAP_E_FORMAT, LAP_E_NOMEM; row is then empty. */
lap_status lap_row_restore(const char *path, size_t index, json_t *object,
                           const lap_device_info *device, lap_row *row, lap_error *err);

#endif
