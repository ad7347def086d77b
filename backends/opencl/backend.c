/* The OpenCL backend's operation table, and the versions of what it was built on. */
#include "opencl.h"

#include <stdio.h>

extern const lap_device_ops lap_opencl_ops;
const lap_device_ops lap_opencl_ops = {
    .name = "opencl",
    .version = lap_cl_version,
    .enumerate = lap_cl_enumerate,
    .open = lap_cl_open,
    .close = lap_cl_close,
    .memory = lap_cl_memory,
    .queue_new = lap_cl_queue_new,
    .queue_free = lap_cl_queue_free,
    .queue_finish = lap_cl_queue_finish,
    .queue_flush = lap_cl_queue_flush,
    .buffer_new = lap_cl_buffer_new,
    .buffer_view = lap_cl_buffer_view,
    .buffer_free = lap_cl_buffer_free,
    .buffer_write = lap_cl_buffer_write,
    .buffer_read = lap_cl_buffer_read,
    .buffer_fill = lap_cl_buffer_fill,
    .buffer_write_async = lap_cl_buffer_write_async,
    .buffer_read_async = lap_cl_buffer_read_async,
    .queue_wait_event = lap_cl_queue_wait_event,
    .pinned_new = lap_cl_pinned_new,
    .pinned_free = lap_cl_pinned_free,
    .kernel_build = lap_cl_kernel_build,
    .kernel_binary = lap_cl_kernel_binary,
    .kernel_load = lap_cl_kernel_load,
    .fixed_options = LAP_CL_OPTIONS,
    .kernel_free = lap_cl_kernel_free,
    .enqueue = lap_cl_enqueue,
#ifdef LAP_HAVE_CLBLAST
    .gemm_name = lap_cl_gemm_name,
    .gemm = lap_cl_gemm,
#endif
    .event_new = lap_cl_event_new,
    .event_free = lap_cl_event_free,
    .event_record = lap_cl_event_record,
    .event_wait = lap_cl_event_wait,
    .event_elapsed = lap_cl_event_elapsed,
};

/* ocl-icd says which loader it is through a function of its own; the Khronos loader has none. */
static void loader_text(char *buffer, size_t size) {
    enum { ICDL_VERSION = 2, ICDL_NAME = 3 };
    typedef cl_int (*info_function)(int what, size_t size, void *value, size_t *needed);
    union { /* ISO C has no conversion from an object pointer to a function pointer */
        void *object;
        info_function function;
    } entry = {.object = NULL};
    snprintf(buffer, size, "no libOpenCL.so.1");
    if (lap_cl_missing()) return;
    LAP_CL_IGNORE(
        (entry.object = clGetExtensionFunctionAddress("clGetICDLoaderInfoOCLICD"), CL_SUCCESS));
    char name[64] = "", version[64] = "";
    snprintf(buffer, size, "OpenCL ICD Loader");
    if (!entry.object) return;
    lap_status status = LAP_CL(NULL, LAP_CL_QUERY, "asking the loader's name",
                               entry.function(ICDL_NAME, sizeof name - 1, name, NULL));
    if (status == LAP_OK)
        status = LAP_CL(NULL, LAP_CL_QUERY, "asking the loader's version",
                        entry.function(ICDL_VERSION, sizeof version - 1, version, NULL));
    if (status == LAP_OK) snprintf(buffer, size, "%s %s", name, version);
}

void lap_cl_version(char *buffer, size_t size) {
    char loader[192];
    loader_text(loader, sizeof loader);
#ifdef LAP_OPENCL_HEADERS
    const char *headers = LAP_OPENCL_HEADERS;
#else
    const char *headers = "of unknown version";
#endif
#ifdef LAP_HAVE_CLBLAST
    const char *gemm = lap_cl_gemm_name(NULL, NULL);
    snprintf(buffer, size, "%s, headers %s, %s", loader, headers,
             gemm ? gemm : "no libclblast.so.1");
#else
    snprintf(buffer, size, "%s, headers %s, no CLBlast", loader, headers);
#endif
}
