/* OpenCL codes: their names, what they mean for people, and which status each becomes.
 *
 * Choices worth knowing:
 * - CL_OUT_OF_RESOURCES (-5) is LAP_E_OOM everywhere but in a build. Memory is handed out lazily,
 *   so that is how a launch says that a buffer does not exist after all. Some drivers say the same
 *   when a kernel reads or writes out of bounds; the message names both causes.
 * - CL_INVALID_BUFFER_SIZE (-61) is LAP_E_OOM when a buffer is made: larger than the device allows.
 * - Anything unexpected while waiting is LAP_E_DEVICE: commands were accepted and then failed.
 */
#include "opencl.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Extension and vendor codes, by value: their headers are not everywhere. */
enum {
    CODE_PLATFORM_NOT_FOUND = -1001, /* cl_khr_icd */
    CODE_NV_ILLEGAL_ACCESS = -9999   /* NVIDIA: a kernel's illegal read or write */
};

typedef struct cl_code {
    cl_int code;
    const char *name;
    const char *hint; /* NULL: the name says it */
} cl_code;

static const cl_code codes[] = {
    {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND", "the platform has no such device"},
    {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE",
     "the device is not available; another process may hold it exclusively"},
    {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE", "the driver has no kernel compiler"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE", "out of device memory"},
    {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES",
     "out of device memory or of another device resource; some drivers also say this when a kernel "
     "accesses memory out of bounds"},
    {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY", "the driver is out of host memory"},
    {CL_PROFILING_INFO_NOT_AVAILABLE, "CL_PROFILING_INFO_NOT_AVAILABLE",
     "the driver has no time stamps for this command"},
    {CL_MEM_COPY_OVERLAP, "CL_MEM_COPY_OVERLAP", NULL},
    {CL_IMAGE_FORMAT_MISMATCH, "CL_IMAGE_FORMAT_MISMATCH", NULL},
    {CL_IMAGE_FORMAT_NOT_SUPPORTED, "CL_IMAGE_FORMAT_NOT_SUPPORTED", NULL},
    {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE", "the source does not compile"},
    {CL_MAP_FAILURE, "CL_MAP_FAILURE", NULL},
    {CL_MISALIGNED_SUB_BUFFER_OFFSET, "CL_MISALIGNED_SUB_BUFFER_OFFSET",
     "the offset must be a multiple of the device's base address alignment"},
    {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
     "a command that was waited for has failed"},
    {CL_COMPILE_PROGRAM_FAILURE, "CL_COMPILE_PROGRAM_FAILURE", NULL},
    {CL_LINKER_NOT_AVAILABLE, "CL_LINKER_NOT_AVAILABLE", NULL},
    {CL_LINK_PROGRAM_FAILURE, "CL_LINK_PROGRAM_FAILURE", NULL},
    {CL_DEVICE_PARTITION_FAILED, "CL_DEVICE_PARTITION_FAILED", NULL},
    {CL_KERNEL_ARG_INFO_NOT_AVAILABLE, "CL_KERNEL_ARG_INFO_NOT_AVAILABLE", NULL},
    {CL_INVALID_VALUE, "CL_INVALID_VALUE", NULL},
    {CL_INVALID_DEVICE_TYPE, "CL_INVALID_DEVICE_TYPE", NULL},
    {CL_INVALID_PLATFORM, "CL_INVALID_PLATFORM", NULL},
    {CL_INVALID_DEVICE, "CL_INVALID_DEVICE", NULL},
    {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT", "the context is lost"},
    {CL_INVALID_QUEUE_PROPERTIES, "CL_INVALID_QUEUE_PROPERTIES", NULL},
    {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE",
     "the queue is lost, as after an earlier fault in a kernel"},
    {CL_INVALID_HOST_PTR, "CL_INVALID_HOST_PTR", NULL},
    {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT", NULL},
    {CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR", NULL},
    {CL_INVALID_IMAGE_SIZE, "CL_INVALID_IMAGE_SIZE", NULL},
    {CL_INVALID_SAMPLER, "CL_INVALID_SAMPLER", NULL},
    {CL_INVALID_BINARY, "CL_INVALID_BINARY", NULL},
    {CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS", "the driver refuses a compiler option"},
    {CL_INVALID_PROGRAM, "CL_INVALID_PROGRAM", NULL},
    {CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE", NULL},
    {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME", "the source has no kernel of that name"},
    {CL_INVALID_KERNEL_DEFINITION, "CL_INVALID_KERNEL_DEFINITION", NULL},
    {CL_INVALID_KERNEL, "CL_INVALID_KERNEL", NULL},
    {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX", "the kernel has fewer arguments"},
    {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE", "the kernel's argument is of another kind"},
    {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE", "the kernel's argument is of another size"},
    {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS", "a kernel argument was not set"},
    {CL_INVALID_WORK_DIMENSION, "CL_INVALID_WORK_DIMENSION", NULL},
    {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE",
     "the group has more work-items than this kernel can have, or not the size it requires"},
    {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE",
     "the group is larger in one dimension than the device allows"},
    {CL_INVALID_GLOBAL_OFFSET, "CL_INVALID_GLOBAL_OFFSET", NULL},
    {CL_INVALID_EVENT_WAIT_LIST, "CL_INVALID_EVENT_WAIT_LIST", NULL},
    {CL_INVALID_EVENT, "CL_INVALID_EVENT", NULL},
    {CL_INVALID_OPERATION, "CL_INVALID_OPERATION", NULL},
    {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE",
     "the buffer is larger than the device's largest allocation, or empty"},
    {CL_INVALID_MIP_LEVEL, "CL_INVALID_MIP_LEVEL", NULL},
    {CL_INVALID_GLOBAL_WORK_SIZE, "CL_INVALID_GLOBAL_WORK_SIZE", NULL},
    {CL_INVALID_PROPERTY, "CL_INVALID_PROPERTY", NULL},
    {CODE_PLATFORM_NOT_FOUND, "CL_PLATFORM_NOT_FOUND_KHR", "no OpenCL driver is installed"},
    {CODE_NV_ILLEGAL_ACCESS, "NVIDIA illegal access",
     "a kernel read or wrote memory that is not its own"},
    /* CLBlast's own codes, from its public header. */
    {-1024, "CLBlastNotImplemented", NULL},
    {-1022, "CLBlastInvalidMatrixA", NULL},
    {-1021, "CLBlastInvalidMatrixB", NULL},
    {-1020, "CLBlastInvalidMatrixC", NULL},
    {-1017, "CLBlastInvalidDimension", "m, n and k must be above zero"},
    {-1016, "CLBlastInvalidLeadDimA", "lda is shorter than a row of A"},
    {-1015, "CLBlastInvalidLeadDimB", "ldb is shorter than a row of B"},
    {-1014, "CLBlastInvalidLeadDimC", "ldc is shorter than a row of C"},
    {-1011, "CLBlastInsufficientMemoryA", "A's buffer is too small"},
    {-1010, "CLBlastInsufficientMemoryB", "B's buffer is too small"},
    {-1009, "CLBlastInsufficientMemoryC", "C's buffer is too small"},
    {-2046, "CLBlastInvalidLocalMemUsage", "the device has too little local memory"},
    {-2041, "CLBlastDatabaseError", NULL},
    {-2040, "CLBlastUnknownError", NULL},
    {-2039, "CLBlastUnexpectedError", NULL},
};

static const cl_code *find_code(cl_int code) {
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code) return &codes[i];
    return NULL;
}

const char *lap_cl_error_name(cl_int code) {
    if (code == CL_SUCCESS) return "CL_SUCCESS";
    const cl_code *found = find_code(code);
    return found ? found->name : "unknown OpenCL error";
}

/* What a code means when nothing about its place says otherwise. */
static lap_status general_status(lap_cl_stage stage, cl_int code) {
    switch (code) {
    case CL_OUT_OF_RESOURCES:
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
        return LAP_E_OOM;
    case CL_INVALID_COMMAND_QUEUE:
    case CL_INVALID_CONTEXT:
    case CL_DEVICE_NOT_AVAILABLE:
    case CODE_NV_ILLEGAL_ACCESS:
        return LAP_E_DEVICE;
    case CL_BUILD_PROGRAM_FAILURE:
    case CL_COMPILER_NOT_AVAILABLE:
        return LAP_E_BUILD;
    case CL_DEVICE_NOT_FOUND:
    case CODE_PLATFORM_NOT_FOUND:
        return LAP_E_NODEVICE;
    default:
        if (stage == LAP_CL_ALLOC && code == CL_INVALID_BUFFER_SIZE) return LAP_E_OOM;
        return stage == LAP_CL_WAIT || stage == LAP_CL_OPEN ? LAP_E_DEVICE : LAP_E_LAUNCH;
    }
}

lap_status lap_cl_status(lap_cl_stage stage, cl_int code) {
    if (code == CL_SUCCESS) return LAP_OK;
    if (stage == LAP_CL_TIMER) return LAP_E_TIMER;
    if (code == CL_OUT_OF_HOST_MEMORY) return LAP_E_NOMEM;
    if (stage == LAP_CL_BUILD) return LAP_E_BUILD;
    return general_status(stage, code);
}

/* "(x = clCreateBuffer(context, …), code)" -> "clCreateBuffer" */
static void call_name(char *to, size_t size, const char *expression) {
    size_t n = 0;
    for (const char *p = expression; *p; p++) {
        bool starts = p == expression || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        bool call = (strncmp(p, "cl", 2) == 0 && isupper((unsigned char)p[2])) ||
                    strncmp(p, "CLBlast", 7) == 0;
        if (!starts || !call) continue;
        size_t length = strcspn(p, "( ,)");
        if (p[length] != '(' && p[length] != '\0') continue; /* a variable or a constant */
        n = length < size - 1 ? length : size - 1;
        memcpy(to, p, n);
        break;
    }
    to[n] = '\0';
}

lap_status lap_cl_check(lap_error *err, lap_cl_stage stage, const char *what,
                        const char *expression, cl_int code, const char *file, int line) {
    if (code == CL_SUCCESS) return LAP_OK;
    lap_status status = lap_cl_status(stage, code);
    if (!err) return status;
    const cl_code *found = find_code(code);
    const char *hint = found && found->hint ? found->hint : lap_cl_error_name(code);
    char call[sizeof err->call];
    call_name(call, sizeof call, expression);
    return lap_fail_native_at(err, status, file, line, call, code, lap_cl_error_name(code),
                              "%s failed: %s", what, hint);
}
