/* How much memory may be taken without harm. Reads /proc and the control groups; allocates nothing.
 *
 * Where device memory is the host's (CPU devices, integrated GPUs), taking too much drives the
 * machine to swap or the OOM killer: the bound is a share of what is available right now.
 */
#ifndef LAP_MEASURE_LIMITS_H
#define LAP_MEASURE_LIMITS_H

#include "device/device.h"

typedef struct lap_host_memory {
    uint64_t total_bytes;     /* MemTotal; 0 unknown */
    uint64_t available_bytes; /* MemAvailable, or what the control groups leave, if that is less;
                                 meaningless when unknown */
    bool known;               /* available_bytes is known */
    bool limited;             /* a control group's limit is the tighter one */
} lap_host_memory;

/* root is "" except in tests: a prefix of /proc and /sys. Never fails: unknown stays unknown. */
void lap_host_memory_read(const char *root, lap_host_memory *out);

/* What is assumed when nothing is known: small enough for any machine. */
#define LAP_CONSERVATIVE_BYTES (256ull << 20)

/* Bytes that a batch search may take on the device: fraction (0..1] of its free memory (free_bytes,
 * if known, else all of its memory), and, where memory is the host's, of what the host has
 * available. An upper bound for growing: the smallest batch should be tried even above it, since
 * some devices report less memory than they have. host may be NULL for discrete devices. */
uint64_t lap_safe_bytes(const lap_device_info *device, bool free_known, uint64_t free_bytes,
                        const lap_host_memory *host, double fraction);

#endif
