/* Devices that were measured at the same time, added up: the sum of their rates, what they reach of
 * what each does alone, the slowest and the spread. Arithmetic on what rows or documents say;
 * measures nothing.
 */
#ifndef LAP_MEASURE_SETS_H
#define LAP_MEASURE_SETS_H

#include "measure/result.h"

/* value +- half, a 95 % interval; half is absent where nothing is known about it. */
typedef struct lap_margin {
    lap_optional value, half;
} lap_margin;

typedef struct lap_set_member {
    char selector[64], device[LAP_DEVICE_NAME];
    char host[128];      /* of a fleet; "" otherwise */
    size_t rank;         /* of a fleet */
    size_t row, alone;   /* indices of its rows in the document: at once, and alone */
    bool ok;             /* its row is */
    char reason[256];    /* why not */
    double started_s;    /* host clock at its first sample; 0: unknown */
    lap_rounds rounds;   /* n = 0: none */
    lap_optional mean_s; /* latency at once, its relative standard error; then alone */
    lap_optional mean_error;
    size_t mean_n; /* samples; 0: unknown, taken as many */
    lap_optional alone_mean_s, alone_mean_error;
    size_t alone_mean_n;
    /* Derived. */
    lap_margin rate, alone_rate, scaling; /* images per second of the rounds; at once / alone */
    lap_margin fps, alone_fps;            /* batch / mean latency */
    lap_margin slowdown;                  /* mean latency at once / alone */
} lap_set_member;

enum { LAP_SET_NOBODY = -1 };

typedef struct lap_set {
    char network[32], precision[16];
    int height, width;
    uint64_t batch; /* of the latency */
    lap_set_member *members;
    size_t count;
    bool fleet; /* the members are ranks */
    /* Derived. A sum is over the members that have the value, `rated` and `timed` many. */
    size_t rated, timed;
    size_t rounds; /* the fewest of any rated member: what the sum's interval is from */
    lap_margin rate, alone_rate, scaling;
    lap_margin fps, alone_fps, fps_scaling;
    long slowest; /* by rate, by fps where there are no rates; LAP_SET_NOBODY */
    lap_optional slowest_rate, fastest_rate;
    lap_optional spread; /* standard deviation of the members' rates over their mean */
    lap_optional skew_s; /* between the first and the last member's first sample */
} lap_set;

/* The sets of a document's rows: those with concurrent.set above 0. Free with lap_sets_free. */
lap_status lap_sets_of_rows(const lap_row *rows, size_t count, lap_set **out, size_t *set_count,
                            lap_error *err);
void lap_sets_free(lap_set *sets, size_t count);

/* Everything derived, from the members. */
void lap_set_derive(lap_set *set);
/* The same kind of work: network, size, precision, batch. */
bool lap_set_same(const lap_set *a, const lap_set *b);

#endif
