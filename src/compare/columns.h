/* The columns that a comparison can show. Those for people and those for programs are in one list,
 * so that --columns means the same for every format. */
#ifndef LAP_COMPARE_COLUMNS_H
#define LAP_COMPARE_COLUMNS_H

#include "compare/compare.h"

typedef struct lap_column {
    const char *name;   /* for --columns, and the header of CSV */
    const char *header; /* for people */
    bool right;
    size_t least; /* see report/sheet.h */
    int drop;
    void (*cell)(lap_text *out, const lap_comparison *c, const lap_line *line, bool utf8);
} lap_column;

enum { LAP_COLUMNS_MAX = 48 };

/* Which columns, in order. */
typedef struct lap_selection {
    const lap_column *columns[LAP_COLUMNS_MAX];
    size_t count;
} lap_selection;

/* "device,latency,speed". LAP_E_CONFIG names the word that is no column, or was given twice. */
lap_status lap_columns_parse(const char *list, lap_selection *out, lap_error *err);
/* What is shown unless asked otherwise: every value for programs, or what people need, without
 * columns in which all lines are alike. */
void lap_columns_for_programs(lap_selection *out);
void lap_columns_for_people(const lap_comparison *c, lap_selection *out);
/* Do all lines have the same text in this column? Then `shared`, which is written over, is it. */
bool lap_columns_shared(const lap_comparison *c, const char *name, lap_text *shared);
/* All names, separated by blanks, for the help. */
void lap_columns_names(lap_text *out);

#endif
