/* A parallel loop: for the reference and for data that is made up. */
#ifndef LAP_BASE_THREADS_H
#define LAP_BASE_THREADS_H

#include <stdint.h>

/* Cores this process may run on (its affinity mask), or the limit set below; at least 1. */
int lap_threads(void);
/* Use exactly n threads from now on; 0 restores the default. For tests; not thread-safe. */
void lap_threads_set(int n);

/* Call body(context, i) once for every i below count, in no particular order, on several threads;
 * returns when all are done. A thread that cannot be started is made up for by the others. */
void lap_parallel(uint64_t count, void (*body)(void *context, uint64_t i), void *context);

#endif
