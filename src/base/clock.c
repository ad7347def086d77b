/* Host clock. CLOCK_MONOTONIC: slewed by NTP by at most 0.05 %, never stepped. */
#include "base/clock.h"

#include <time.h>

double lap_clock_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void lap_clock_sleep(double seconds) {
    if (!(seconds > 0)) return;
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}
