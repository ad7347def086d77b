/* Comparing the rows of any number of documents: one line for each row, in groups that are one
 * comparison each; baselines in every group; how many times as fast every other line is.
 *
 * fp32 and fp32x3 are in one group. A line is compared with a baseline of the very same precision,
 * and with one of the other only when there is none. Of several rows that a selector names the
 * first of the precision is the baseline, in the order of the documents and their rows; of a
 * document the row that is most like the line: precision, batch, device, API, then the first.
 *
 * Everything that renderers show is decided here. Documents are borrowed and must outlive the
 * comparison. */
#ifndef LAP_COMPARE_COMPARE_H
#define LAP_COMPARE_COMPARE_H

#include "base/text.h"
#include "compare/match.h"
#include "compare/ratio.h"

typedef enum lap_order {
    LAP_ORDER_GIVEN = 0,  /* as in the files */
    LAP_ORDER_SPEED,      /* fastest first */
    LAP_ORDER_LATENCY,    /* shortest first */
    LAP_ORDER_THROUGHPUT, /* highest first */
    LAP_ORDER_DEVICE,     /* by name, then route */
    LAP_ORDER_PRECISION,
    LAP_ORDER_BATCH,
    LAP_ORDER_FILE,
    LAP_ORDERS
} lap_order;

const char *lap_order_name(lap_order order);
bool lap_order_parse(const char *name, lap_order *out);

typedef struct lap_compare_options {
    lap_axis axis;
    bool wall;            /* the wall spans of every row instead of the spans of its clock */
    const char *baseline; /* a selector; NULL: the fastest of each group */
    const lap_document *baseline_document; /* the rows of this one instead; NULL: none */
    double margin;                         /* relative change in time that counts: see lap_judge */
    lap_order order;                       /* within a group; decides nothing */
    bool reverse;
    bool gate;             /* fail on lines that are slower */
    bool require_verified; /* fail on lines that are not verified */
} lap_compare_options;

typedef struct lap_line {
    const lap_record *record;
    size_t group;
    bool timed; /* ok, with a mean above 0 in the span that is compared */
    lap_judgement judgement;
    lap_estimate speed;         /* times as fast as the baseline */
    lap_estimate throughput;    /* the same of best throughputs; never with an interval */
    const lap_record *baseline; /* what it is compared with, itself for a baseline; NULL: none */
    const char *apart;          /* why it is not compared; "" when it is */
    bool failed_gate;           /* the baseline has this case, and this line no comparison */
    unsigned names, baseline_names; /* what tells it and its baseline from others: names.h */
    bool missing; /* a row of the baseline document that nothing was there to compare with */
} lap_line;

typedef struct lap_group {
    size_t first, count; /* of lines */
} lap_group;

/* One physical device through two APIs, in one precision; in the two of a class where they have
 * none in common. Estimates are a relative to b, above 1 where a is better. */
typedef struct lap_api_pair {
    const lap_record *a, *b;               /* a row of either route */
    const lap_record *batch_1a, *batch_1b; /* NULL: none */
    lap_estimate throughput, latency, launch;
    const char *apart;            /* why there is no latency; "" */
    const char *throughput_apart; /* why there is none although both have one; "" */
} lap_api_pair;

typedef struct lap_comparison {
    const lap_compare_options *options;
    const lap_document *const *documents;
    size_t document_count;
    size_t *duplicate_of; /* per document: an earlier one, or itself */
    lap_line *lines;      /* group by group */
    size_t line_count;
    lap_group *groups;
    size_t group_count;
    lap_api_pair *pairs;
    size_t pair_count;
    size_t same, faster, slower, unclear, apart; /* lines */
    size_t not_compared; /* lines that failed the gate without a comparison */
    size_t missing;      /* rows of the baseline document that nothing was compared with */
    size_t not_verified; /* lines that were not verified */
} lap_comparison;

/* Errors: LAP_E_CONFIG when a baseline selector matches no row, LAP_E_NOMEM. */
lap_status lap_compare(const lap_document *const *documents, size_t count,
                       const lap_compare_options *options, lap_comparison *out, lap_error *err);
void lap_comparison_free(lap_comparison *comparison);

/* What a gate says. */
typedef enum lap_gate {
    LAP_GATE_PASSED = 0,
    LAP_GATE_NOT_COMPARED, /* nothing was compared, or not everything that could have been */
    LAP_GATE_NOT_VERIFIED,
    LAP_GATE_SLOWER
} lap_gate;

/* The worst that holds; a result that is not verified is worse than one that is slow. */
lap_gate lap_gate_of(const lap_comparison *comparison);

/* The span that is compared. */
const lap_span *lap_record_span(const lap_record *record, bool wall);
/* Does a selector name this row? "cuda", "cuda:0", "opencl:1:0", "name=H200", "fp16", "batch=8", a
 * driver, a version, or part of a device's name. */
bool lap_record_matches(const lap_record *record, const char *selector);

#endif
