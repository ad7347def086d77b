/* Threads for loops over independent items: items are handed out by a counter. Each item's result
 * must not depend on which thread computes it, nor when. */
#include "base/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS_MAX = 256 };

static int forced_threads;

void lap_threads_set(int n) {
    forced_threads = n < 0 ? 0 : n;
}

int lap_threads(void) {
    if (forced_threads > 0) return forced_threads < THREADS_MAX ? forced_threads : THREADS_MAX;
    cpu_set_t set;
    /* Fails on machines with more than 1024 cores; one thread is then still right. */
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n < THREADS_MAX ? n : THREADS_MAX;
}

typedef struct loop {
    uint64_t count;
    void (*body)(void *context, uint64_t i);
    void *context;
    atomic_uint_fast64_t next;
} loop;

static void *work(void *context) {
    loop *l = context;
    for (;;) {
        uint64_t i = atomic_fetch_add(&l->next, 1);
        if (i >= l->count) return NULL;
        l->body(l->context, i);
    }
}

void lap_parallel(uint64_t count, void (*body)(void *context, uint64_t i), void *context) {
    loop l = {count, body, context, 0};
    pthread_t threads[THREADS_MAX];
    uint64_t wanted = (uint64_t)lap_threads();
    if (wanted > count) wanted = count;
    int started = 0;
    while ((uint64_t)started + 1 < wanted && pthread_create(&threads[started], NULL, work, &l) == 0)
        started++;
    work(&l);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}
