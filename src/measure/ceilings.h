/* Ceilings: what a device can do at most, measured by the program itself with kernels that do
 * nothing else. A layer's share of the roofline stands on these, never on a data sheet.
 *
 * A ceiling that could not be measured (no such instruction, no memory, a clock that shows no time,
 * a wrong result, a rate that no such device has) is absent and `reason` says why; it never becomes
 * 0 or infinite. Values are the best of several launches of a few milliseconds each.
 */
#ifndef LAP_MEASURE_CEILINGS_H
#define LAP_MEASURE_CEILINGS_H

#include "device/device.h"
#include "measure/stats.h"
#include "net/op.h"

typedef struct lap_ceilings {
    bool has; /* at least one value */
    /* Multiply-adds as 2, by precision: fp32 by fused multiply-adds, tf32, fp16 and bf16 by matrix
     * instructions (mma.sync), fp32x3 a third of fp16 since it takes three products. */
    lap_optional flops_per_s[LAP_PRECISION_COUNT];
    lap_optional memory_bytes_per_s; /* copying, bytes read and written, far beyond all caches */
    lap_optional cache_bytes_per_s;  /* the same where it is fastest: in the last-level cache */
    uint64_t memory_bytes;           /* read and written by one pass of that copy */
    uint64_t cache_bytes; /* read and written by one pass of the largest copy that is near the
                             cache's rate: as much counts as cached. CPU: half of what is told */
    bool stored;          /* at least one value is an earlier, better measurement from the disk */
    char reason[512];     /* what is absent and why; "" if nothing is */
} lap_ceilings;

/* Measure on an idle queue; takes about a second. Absent values are no error. Errors: LAP_E_DEVICE,
 * LAP_E_NOMEM. */
lap_status lap_ceilings_measure(lap_queue *queue, lap_ceilings *out, lap_error *err);

/* Measured, and of each value the best that was ever seen for this device, driver, toolchain and
 * these kernels, kept in a file in folder: a busy machine measures too little. folder may be NULL:
 * nothing is kept. That the file cannot be read or written is no error. */
lap_status lap_ceilings_get(lap_queue *queue, const char *folder, lap_ceilings *out,
                            lap_error *err);

/* "$XDG_CACHE_HOME/warmlap", else "$HOME/.cache/warmlap"; false when neither is set (or is not
 * absolute) or the path is too long. Makes no folder. */
bool lap_ceilings_folder(char *buffer, size_t size);

/* The roofline. Which ceiling limits work of `flops` and `bytes`, and what share of it `seconds`
 * is: max(flops / peak, bytes / bandwidth) / seconds. The bandwidth is the cache's for up to
 * cache_bytes, else the memory's. Absent where the ceilings needed are, or seconds is not
 * above zero. bound is "compute", "cache" or "memory"; NULL when the share is absent. */
typedef struct lap_roof {
    lap_optional intensity; /* FLOPs per byte; absent without bytes */
    lap_optional share;     /* 1 is the ceiling itself */
    const char *bound;
} lap_roof;
lap_roof lap_ceilings_roof(const lap_ceilings *ceilings, lap_precision precision, uint64_t flops,
                           uint64_t bytes, lap_optional seconds);

#endif
