/* The files that run, verify and pitfalls write, held against each other and against what they
 * read, before any work. */
#ifndef LAP_APP_OUTPUTS_H
#define LAP_APP_OUTPUTS_H

#include "app/options.h"

/* Can everything be written that is asked for? documents: how many of json, csv and markdown the
 * command writes. resuming: the JSON file is the one that is taken up again. LAP_E_CONFIG and
 * LAP_E_IO. */
lap_status lap_outputs_check(const lap_options *options, size_t documents, bool resuming,
                             lap_error *err);

#endif
