/* Which rows may be compared, and if not, why. Decides on what rows say about themselves; measures
 * and computes nothing. */
#ifndef LAP_COMPARE_MATCH_H
#define LAP_COMPARE_MATCH_H

#include "base/text.h"
#include "compare/document.h"

/* What tells the rows of one comparison apart; everything else that matters must agree. */
typedef enum lap_axis {
    LAP_BY_DEVICE = 0, /* the same case on anything */
    LAP_BY_API,        /* one device through its APIs */
    LAP_BY_PRECISION,  /* one device and API, any precision class */
    LAP_BY_BATCH,      /* one device and API, any batch, per image */
    LAP_BY_FILE,       /* one device and API, from file to file */
    LAP_BY_DRIVER,     /* as by file, named by driver */
    LAP_BY_VERSION,    /* as by file, named by the version of warmlap */
    LAP_AXES
} lap_axis;

const char *lap_axis_name(lap_axis axis);
bool lap_axis_parse(const char *name, lap_axis *out);

/* The physical device is the same: its UUID, or its PCI address in the same host. */
bool lap_same_physical(const lap_record *a, const lap_record *b);

/* The device is physically the same, or of the same name and at the same place of its document (so
 * that machines with the same hardware count as one). */
bool lap_same_device(const lap_record *a, const lap_record *b);

/* Rows that belong into one comparison. */
bool lap_same_case(const lap_record *a, const lap_record *b, lap_axis axis);

/* Why two rows of one case cannot be compared all the same: their clocks (unless wall, when the
 * wall spans of both are taken), weights, caches or verification differ. "" when they can; told of
 * a, with b as the baseline. */
const char *lap_difference(const lap_record *a, const lap_record *b, bool wall);
/* The same, told of an a that has no baseline: b is another row of its case. */
const char *lap_difference_alone(const lap_record *a, const lap_record *b, bool wall);
/* The same, told of two rows as they are named, a first. */
const char *lap_difference_between(const lap_record *a, const lap_record *b, bool wall);

/* Append what a reader should know of two rows that are compared: "[run] kernels: naive against
 * default; passes in a sample: 10 against 1", as somebody may do on purpose. Nothing when they are
 * alike. */
void lap_add_remarkable(lap_text *out, const lap_record *a, const lap_record *b);

#endif
