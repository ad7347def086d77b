/* Opening and closing a device: one context each, and nothing shared between them. */
#include "opencl.h"

#include <stdlib.h>
#include <string.h>

/* cl_amd_device_attribute_query, by value: the header need not have it. */
enum { DEVICE_GLOBAL_FREE_MEMORY_AMD = 0x4039 };

/* The handles in info->native come from an enumeration of this process. */
static cl_platform_id platform_of(const lap_device_info *info) {
    return (cl_platform_id)(uintptr_t)info->native[0];
}

static cl_device_id device_of(const lap_device_info *info) {
    return (cl_device_id)(uintptr_t)info->native[1];
}

lap_status lap_cl_open(const lap_device_info *info, void **out, lap_error *err) {
    *out = NULL;
    lap_cl_device *device = calloc(1, sizeof *device);
    if (!device) return LAP_FAIL(err, LAP_E_NOMEM, "opening %s: no memory", info->selector);
    device->id = device_of(info);
    device->max_group_size = info->max_group_size;
    for (int i = 0; i < 3; i++)
        device->max_group_dim[i] = info->max_group_dim[i];
    device->memory_bytes = info->memory_bytes;
    char *extensions = lap_cl_device_text(device->id, CL_DEVICE_EXTENSIONS);
    device->has_amd_memory =
        extensions && lap_cl_has_word(extensions, "cl_amd_device_attribute_query");
    free(extensions);

    cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                          (cl_context_properties)platform_of(info), 0};
    cl_int code;
    lap_status status = LAP_CL(
        err, LAP_CL_OPEN, "making a context",
        (device->context = clCreateContext(properties, 1, &device->id, NULL, NULL, &code), code));
    if (status != LAP_OK) {
        lap_error_prefix(err, "opening %s (%.100s): ", info->selector, info->name);
        free(device);
        return status;
    }
    *out = device;
    return LAP_OK;
}

void lap_cl_close(void *handle) {
    lap_cl_device *device = handle;
    if (!device) return;
    lap_cl_gemm_forget(device);
    if (device->scratch) LAP_CL_IGNORE(clReleaseMemObject(device->scratch));
    LAP_CL_IGNORE(clReleaseContext(device->context));
    free(device);
}

lap_status lap_cl_memory(void *handle, uint64_t *free_bytes, uint64_t *total_bytes,
                         lap_error *err) {
    lap_cl_device *device = handle;
    *free_bytes = *total_bytes = 0;
    size_t kib[2]; /* all that is free, then the largest free block */
    if (!device->has_amd_memory ||
        !lap_cl_device_value(device->id, DEVICE_GLOBAL_FREE_MEMORY_AMD, kib, sizeof kib))
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "this OpenCL driver cannot tell how much memory is free");
    *free_bytes = (uint64_t)kib[0] * 1024;
    *total_bytes = device->memory_bytes;
    return LAP_OK;
}
