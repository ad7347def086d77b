/* Rates of one device, alone and beside others: what a row keeps of the rounds that its team ran
 * (team.h). */
#ifndef LAP_MEASURE_ROUNDS_H
#define LAP_MEASURE_ROUNDS_H

#include <stddef.h>
#include <stdint.h>

enum { LAP_ROUNDS_MOST = 32 };

/* Rates of one member, alone and together taking turns, so that drift of the machine hits both. */
typedef struct lap_rounds {
    size_t n;
    uint64_t batch;                                           /* images in a batch */
    uint64_t batches;                                         /* in each timed part */
    double alone[LAP_ROUNDS_MOST], together[LAP_ROUNDS_MOST]; /* images per second */
    double seconds;                                           /* timed together, over all rounds */
} lap_rounds;

/* What a row knows about the others that ran at the same time. */
typedef struct lap_concurrent {
    size_t others;     /* 0: it ran alone */
    size_t set;        /* rows of one set ran at the same time; from 1; 0: none */
    size_t alone_row;  /* the row of the same case alone: its index */
    char devices[512]; /* names of the whole set in alphabetical order: what is comparable */
    double started_s;  /* host clock at the first sample; 0: none */
    lap_rounds rounds;
} lap_concurrent;

#endif
