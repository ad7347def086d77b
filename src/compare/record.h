/* Private to src/compare: one row of a document, from its JSON object. */
#ifndef LAP_COMPARE_RECORD_H
#define LAP_COMPARE_RECORD_H

#include "compare/document.h"
#include "compare/fields.h"

/* weights are those of the document's configuration. f->place is "rows[i]". */
lap_status lap_record_read(const lap_fields *f, json_t *row, const char *weights, lap_record *out);

#endif
