/* Taking a run up again after its last finished row (`--resume FILE`): only if it is the same run,
 * on the same devices, by the same program; what differs is named. */
#ifndef LAP_APP_RESUME_H
#define LAP_APP_RESUME_H

#include "app/config.h"
#include "compare/document.h"

/* Read FILE and check who wrote it. LAP_E_IO, LAP_E_FORMAT, LAP_E_CONFIG. */
lap_status lap_resume_load(const char *path, lap_document **out, lap_error *err);

/* Set every key as in the file, paths of outputs excepted: those are nobody's but the caller's. The
 * file itself becomes the JSON output. */
lap_status lap_resume_configure(const lap_document *document, lap_config *config, lap_error *err);
/* After all other settings: nothing that decides what is measured may differ from the file. */
lap_status lap_resume_check(const lap_document *document, const lap_config *config, lap_error *err);

/* Row index as planned now, and as it is in the file: the same case on the same device and driver?
 * Then *finished, and *row (filled) if it is. */
lap_status lap_resume_row(const lap_document *document, size_t index, const lap_row *planned,
                          bool *finished, lap_row *row, lap_error *err);

#endif
