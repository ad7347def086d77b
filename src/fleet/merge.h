/* Result documents of the ranks of a fleet made into one: rows of all, each with its rank and host,
 * the sums of what ran at the same time, and what became of every rank. Documents are taken one
 * after the other and not kept, so that memory grows with the result only. */
#ifndef LAP_FLEET_MERGE_H
#define LAP_FLEET_MERGE_H

#include "fleet/fleet.h"
#include "measure/sets.h"

typedef struct lap_merge lap_merge;

lap_status lap_merge_new(size_t ranks, lap_merge **out, lap_error *err);
void lap_merge_free(lap_merge *merge);

/* One rank's document, as `run --json` writes it. LAP_E_FORMAT when it is none. */
lap_status lap_merge_add(lap_merge *merge, size_t rank, const char *host, const char *json,
                         size_t size, lap_error *err);

/* Ranks without a document become members that failed; then the sums. Once, after the last add. */
lap_status lap_merge_sum(lap_merge *merge, const lap_rank *ranks, lap_error *err);
const lap_set *lap_merge_sets(const lap_merge *merge, size_t *count);

typedef struct lap_merge_head {
    const char *json_path; /* as configured: the ranks' own files have other names */
    const char *launcher;
    double timeout_s;
} lap_merge_head;

/* The document, after lap_merge_sum. */
lap_status lap_merge_write(lap_merge *merge, const lap_rank *ranks, const lap_merge_head *head,
                           lap_text *out, lap_error *err);

#endif
