/* What machine this is: for the result document, not for decisions. Never fails; unknown texts are
 * "" and unknown counts 0.
 */
#ifndef LAP_REPORT_HOST_H
#define LAP_REPORT_HOST_H

#include <stdint.h>

typedef struct lap_host_info {
    char cpu[256];    /* "AMD EPYC 9B14" */
    uint32_t cores;   /* online logical processors that this process may use */
    char os[256];     /* "Debian GNU/Linux 12 (bookworm)" */
    char kernel[256]; /* "Linux 6.1.0-18-amd64 x86_64" */
    uint64_t memory_bytes;
} lap_host_info;

/* root is "" except in tests: a prefix of /proc and /etc. */
void lap_host_info_read(const char *root, lap_host_info *out);

#endif
