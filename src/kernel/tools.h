/* Kernels that compute no layer: what the program measures devices with. They follow the same
 * contract as the rows' kernels (same entries, arguments and defines in both languages).
 */
#ifndef LAP_KERNEL_TOOLS_H
#define LAP_KERNEL_TOOLS_H

#include "device/device.h"

typedef struct lap_tool {
    const char *stem;
    const char *entries[4];        /* NULL where there are fewer */
    bool needs_mma;                /* runs only where compute capability is 8.0 or more */
    const char *only;              /* language it exists in, NULL for both */
    const lap_define *variants[3]; /* typical define lists, for tests that compile everything */
    size_t variant_counts[3];
} lap_tool;

/* NULL past the end. */
const lap_tool *lap_tool_at(size_t index);

/* The last dimension of loops that the compiler cannot know: n is an int in every kernel. */
#define LAP_TOOL_MAX_COUNT 0x3FFFFFFF

/* Build a tool's kernel on the device. Errors as lap_kernel_build; LAP_E_UNSUPPORTED where the
 * device's language does not have it. The caller frees the kernel. */
lap_status lap_tool_build(lap_device *device, const char *stem, const char *entry,
                          const lap_define *defines, size_t define_count, lap_kernel **out,
                          lap_error *err);

/* Floats in the vectors that tools are built with on this device: 1 or 4 in languages and on
 * devices with scalar units, the native width on CPUs. */
int lap_tool_vector(const lap_device_info *device, int scalar);

#endif
