/* What renderers share: the time of a document. */
#include "report/report.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

void lap_report_time(char out[32]) {
    time_t now = time(NULL);
    struct tm utc;
    if (now == (time_t)-1 || !gmtime_r(&now, &utc) ||
        strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        memcpy(out, "1970-01-01T00:00:00Z", sizeof "1970-01-01T00:00:00Z");
}

void lap_report_run_id(char out[40]) {
    unsigned char b[16];
    if (getrandom(b, sizeof b, GRND_NONBLOCK) != (ssize_t)sizeof b) {
        /* Early in the life of a machine: time and process are apart enough there. */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        const uint64_t parts[] = {(uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                                  (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15)};
        memcpy(b, parts, sizeof b);
    }
    b[6] = (unsigned char)((b[6] & 0x0F) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3F) | 0x80);
    snprintf(out, 40, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}
