/* What the tests can make the OpenCL calls do, and what they count. All zero: everything is real.
 */
#ifndef LAP_TESTS_OPENCL_STAGED_H
#define LAP_TESTS_OPENCL_STAGED_H

#include <CL/cl.h>

#include <stdbool.h>
#include <stddef.h>

typedef enum stamp_mode {
    STAMPS_REAL = 0,
    STAMPS_ZERO,
    STAMPS_REVERSED, /* end = start - 1 */
    STAMPS_EQUAL,
    STAMPS_MISSING, /* CL_PROFILING_INFO_NOT_AVAILABLE */
    STAMPS_FIXED    /* start 1000, end 3500 */
} stamp_mode;

typedef enum log_mode { LOG_REAL = 0, LOG_ERROR, LOG_EMPTY, LOG_ONE_BYTE, LOG_HUGE } log_mode;

typedef struct staged_calls {
    stamp_mode stamps;
    log_mode log;
    bool build_fails_late;      /* clBuildProgram succeeds, the build status does not */
    cl_int finish_code;         /* clFinish gives this once */
    cl_int wait_code;           /* clWaitForEvents gives this */
    cl_int alloc_code;          /* clCreateBuffer gives this */
    cl_int profiling_code;      /* a queue with profiling is refused so */
    size_t launch_fail_at;      /* the nth launch from now fails … */
    cl_int launch_code;         /* … so */
    size_t group_limit;         /* CL_KERNEL_WORK_GROUP_SIZE */
    cl_int empty_platform;      /* a first platform whose clGetDeviceIDs gives this */
    const char *device_name;    /* CL_DEVICE_NAME's bytes … */
    size_t device_name_size;    /* … exactly so many, with or without a NUL */
    cl_device_info fail_query;  /* this device query gives CL_INVALID_VALUE */
    const char *device_version; /* CL_DEVICE_VERSION */
    cl_device_type device_type; /* CL_DEVICE_TYPE */
    const char *extensions;     /* CL_DEVICE_EXTENSIONS */
    struct {
        cl_device_info what; /* 0 ends the list */
        size_t size;
        const void *bytes;
    } values[8];          /* other device queries */
    const char *binary;   /* CL_PROGRAM_BINARIES … */
    const char *reloaded; /* … and what clCreateProgramWithBinary makes a program of: source */
    cl_int binary_code;   /* clCreateProgramWithBinary gives this */
    char loaded[4096];    /* what it was given */
    /* counted */
    size_t events_made, events_retained, events_released, barriers, args_set, fills, caches_cleared;
    char options[1024];       /* of the last build */
    const char *more_options; /* given to the driver as well; NULL: none */
} staged_calls;

extern staged_calls staged;

/* Put them in the place of the loader's functions; once is enough. */
void staged_install(void);

#endif
