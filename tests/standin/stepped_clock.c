/* Loaded before the C library: the wall clock jumps by an hour, back and forth, with every look at
 * it, as when it is set during a run. The monotonic clock is left alone. */
#include <dlfcn.h>
#include <stddef.h>
#include <sys/time.h>
#include <time.h>

static long jump(void) {
    static _Atomic unsigned looks;
    return looks++ % 2 ? 3600 : -3600;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, out);
    if (status == 0 && clock == CLOCK_REALTIME) out->tv_sec += jump();
    return status;
}

time_t time(time_t *out) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now = {0};
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
