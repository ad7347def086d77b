/* The result documents of a run: written after every row, each time whole, and at the end. */
#ifndef LAP_APP_DOCUMENTS_H
#define LAP_APP_DOCUMENTS_H

#include "app/config.h"
#include "report/output.h"
#include "report/report.h"
#include "report/table.h"

enum { LAP_DOCUMENTS = 3, LAP_LIBRARIES_MOST = 16, LAP_RESUMED_MOST = 64 };

typedef struct lap_documents {
    const lap_config *config;
    lap_host_info host;
    char started[32], run_id[40];
    char resumed[LAP_RESUMED_MOST][32];
    size_t resumed_count;
    char names[LAP_LIBRARIES_MOST][64], versions[LAP_LIBRARIES_MOST][256];
    size_t library_count;
    const char *host_name; /* of a fleet's rank; NULL: no fleet */
    size_t rank;
    bool resuming; /* the JSON file is the one that is taken up again: it may be replaced */
    lap_output_slot slots[LAP_DOCUMENTS];
} lap_documents;

/* A library of the program; ignored when there are too many. */
void lap_documents_library(lap_documents *d, const char *name, const char *version);

/* Files that can be written again, with the rows as they are by now. One that cannot be written is
 * tried again next time; the first failure is returned. */
lap_status lap_documents_update(lap_documents *d, const lap_row *rows, size_t count,
                                lap_error *err);

/* All of them for good, and the tables on standard output unless a document goes there. */
lap_status lap_documents_finish(lap_documents *d, const lap_row *rows, size_t count,
                                const lap_style *style, lap_error *err);

/* A fleet's rank: its own files for good, and no tables; json and csv get the same as text. */
lap_status lap_documents_of_rank(lap_documents *d, const lap_row *rows, size_t count,
                                 lap_text *json, lap_text *csv, lap_error *err);

#endif
