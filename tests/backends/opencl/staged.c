/* Stands between the backend and the OpenCL loader, in the table of its functions: counts events,
 * and makes chosen calls answer as a broken driver would. Decides nothing by itself.
 */
#include "staged.h"

#include "api.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

staged_calls staged;

/* An address that no driver hands out, for the platform without devices. */
static char empty_platform;
#define EMPTY_PLATFORM ((cl_platform_id)(void *)&empty_platform)

static lap_cl_functions real;

#define STAGED(result, name, ...) static result staged_##name(__VA_ARGS__)

/* One answer in OpenCL's way: the size, and the bytes when there is room. */
static cl_int answer(const void *bytes, size_t n, size_t size, void *value, size_t *needed) {
    if (needed) *needed = n;
    if (!value) return CL_SUCCESS;
    if (size < n) return CL_INVALID_VALUE;
    memcpy(value, bytes, n);
    return CL_SUCCESS;
}

STAGED(cl_int, clGetPlatformIDs, cl_uint room, cl_platform_id *platforms, cl_uint *count) {
    if (staged.empty_platform == CL_SUCCESS) return real.clGetPlatformIDs(room, platforms, count);
    cl_uint found = 0;
    if (!platforms) {
        cl_int code = real.clGetPlatformIDs(0, NULL, &found);
        if (count) *count = found + 1;
        return code;
    }
    platforms[0] = EMPTY_PLATFORM;
    cl_int code = real.clGetPlatformIDs(room - 1, platforms + 1, &found);
    if (count) *count = found + 1;
    return code;
}

STAGED(cl_int, clGetPlatformInfo, cl_platform_id platform, cl_platform_info what, size_t size,
       void *value, size_t *needed) {
    if (platform == EMPTY_PLATFORM) return answer("Empty", 6, size, value, needed);
    return real.clGetPlatformInfo(platform, what, size, value, needed);
}

STAGED(cl_int, clGetDeviceIDs, cl_platform_id platform, cl_device_type type, cl_uint room,
       cl_device_id *devices, cl_uint *count) {
    if (platform == EMPTY_PLATFORM) return staged.empty_platform;
    return real.clGetDeviceIDs(platform, type, room, devices, count);
}

STAGED(cl_int, clGetDeviceInfo, cl_device_id device, cl_device_info what, size_t size, void *value,
       size_t *needed) {
    if (staged.fail_query && what == staged.fail_query) return CL_INVALID_VALUE;
    if (what == CL_DEVICE_NAME && staged.device_name)
        return answer(staged.device_name, staged.device_name_size, size, value, needed);
    if (what == CL_DEVICE_VERSION && staged.device_version)
        return answer(staged.device_version, strlen(staged.device_version) + 1, size, value,
                      needed);
    if (what == CL_DEVICE_EXTENSIONS && staged.extensions)
        return answer(staged.extensions, strlen(staged.extensions) + 1, size, value, needed);
    for (size_t i = 0; staged.values[i].what; i++)
        if (what == staged.values[i].what)
            return answer(staged.values[i].bytes, staged.values[i].size, size, value, needed);
    if (what == CL_DEVICE_TYPE && staged.device_type)
        return answer(&staged.device_type, sizeof staged.device_type, size, value, needed);
    return real.clGetDeviceInfo(device, what, size, value, needed);
}

STAGED(cl_command_queue, clCreateCommandQueue, cl_context context, cl_device_id device,
       cl_command_queue_properties properties, cl_int *code) {
    if (staged.profiling_code && (properties & CL_QUEUE_PROFILING_ENABLE)) {
        *code = staged.profiling_code;
        return NULL;
    }
    return real.clCreateCommandQueue(context, device, properties, code);
}

STAGED(cl_mem, clCreateBuffer, cl_context context, cl_mem_flags flags, size_t size, void *host,
       cl_int *code) {
    if (staged.alloc_code) {
        *code = staged.alloc_code;
        return NULL;
    }
    return real.clCreateBuffer(context, flags, size, host, code);
}

STAGED(cl_int, clBuildProgram, cl_program program, cl_uint count, const cl_device_id *devices,
       const char *options, void(CL_CALLBACK *notify)(cl_program, void *), void *data) {
    snprintf(staged.options, sizeof staged.options, "%s", options ? options : "");
    char all[1100];
    snprintf(all, sizeof all, "%s %s", staged.options, staged.more_options);
    return real.clBuildProgram(program, count, devices, staged.more_options ? all : options, notify,
                               data);
}

STAGED(cl_int, clGetProgramInfo, cl_program program, cl_program_info what, size_t size, void *value,
       size_t *needed) {
    if (!staged.binary) return real.clGetProgramInfo(program, what, size, value, needed);
    size_t length = strlen(staged.binary);
    if (what == CL_PROGRAM_BINARY_SIZES) return answer(&length, sizeof length, size, value, needed);
    if (what == CL_PROGRAM_BINARIES) {
        memcpy(*(unsigned char **)value, staged.binary, length);
        return CL_SUCCESS;
    }
    return real.clGetProgramInfo(program, what, size, value, needed);
}

STAGED(cl_program, clCreateProgramWithBinary, cl_context context, cl_uint count,
       const cl_device_id *devices, const size_t *sizes, const unsigned char **binaries,
       cl_int *loaded, cl_int *code) {
    snprintf(staged.loaded, sizeof staged.loaded, "%.*s", (int)sizes[0], (const char *)binaries[0]);
    if (staged.binary_code) {
        *code = staged.binary_code;
        return NULL;
    }
    if (!staged.reloaded)
        return real.clCreateProgramWithBinary(context, count, devices, sizes, binaries, loaded,
                                              code);
    *loaded = CL_SUCCESS;
    return real.clCreateProgramWithSource(context, 1, &staged.reloaded, NULL, code);
}

enum { HUGE_LOG = 16 << 20 };

static cl_int staged_log(size_t size, void *value, size_t *needed) {
    switch (staged.log) {
    case LOG_EMPTY:
        return answer("", 0, size, value, needed);
    case LOG_ONE_BYTE:
        return answer("", 1, size, value, needed);
    case LOG_HUGE:
        if (needed) *needed = HUGE_LOG;
        if (value && size >= HUGE_LOG) memset(value, 'x', HUGE_LOG); /* and no NUL */
        return CL_SUCCESS;
    default:
        return CL_INVALID_VALUE;
    }
}

STAGED(cl_int, clGetProgramBuildInfo, cl_program program, cl_device_id device,
       cl_program_build_info what, size_t size, void *value, size_t *needed) {
    if (what == CL_PROGRAM_BUILD_LOG && staged.log != LOG_REAL)
        return staged_log(size, value, needed);
    if (what == CL_PROGRAM_BUILD_STATUS && staged.build_fails_late) {
        cl_build_status status = CL_BUILD_ERROR;
        return answer(&status, sizeof status, size, value, needed);
    }
    return real.clGetProgramBuildInfo(program, device, what, size, value, needed);
}

STAGED(cl_int, clGetKernelWorkGroupInfo, cl_kernel kernel, cl_device_id device,
       cl_kernel_work_group_info what, size_t size, void *value, size_t *needed) {
    if (what == CL_KERNEL_WORK_GROUP_SIZE && staged.group_limit)
        return answer(&staged.group_limit, sizeof staged.group_limit, size, value, needed);
    return real.clGetKernelWorkGroupInfo(kernel, device, what, size, value, needed);
}

STAGED(cl_int, clSetKernelArg, cl_kernel kernel, cl_uint index, size_t size, const void *value) {
    staged.args_set++;
    return real.clSetKernelArg(kernel, index, size, value);
}

static cl_int made(cl_int code, const cl_event *event) {
    if (code == CL_SUCCESS && event && *event) staged.events_made++;
    return code;
}

STAGED(cl_int, clEnqueueBarrierWithWaitList, cl_command_queue queue, cl_uint waits,
       const cl_event *wait_list, cl_event *event) {
    staged.barriers++;
    return made(real.clEnqueueBarrierWithWaitList(queue, waits, wait_list, event), event);
}

STAGED(cl_int, clEnqueueNDRangeKernel, cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
       const size_t *offset, const size_t *global, const size_t *local, cl_uint waits,
       const cl_event *wait_list, cl_event *event) {
    if (staged.launch_fail_at && --staged.launch_fail_at == 0) return staged.launch_code;
    return made(real.clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local, waits,
                                            wait_list, event),
                event);
}

STAGED(cl_int, clEnqueueFillBuffer, cl_command_queue queue, cl_mem buffer, const void *pattern,
       size_t pattern_size, size_t offset, size_t size, cl_uint waits, const cl_event *wait_list,
       cl_event *event) {
    staged.fills++;
    return made(real.clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset, size, waits,
                                         wait_list, event),
                event);
}

STAGED(cl_int, clEnqueueReadBuffer, cl_command_queue queue, cl_mem buffer, cl_bool blocking,
       size_t offset, size_t size, void *data, cl_uint waits, const cl_event *wait_list,
       cl_event *event) {
    return made(real.clEnqueueReadBuffer(queue, buffer, blocking, offset, size, data, waits,
                                         wait_list, event),
                event);
}

STAGED(cl_int, clEnqueueWriteBuffer, cl_command_queue queue, cl_mem buffer, cl_bool blocking,
       size_t offset, size_t size, const void *data, cl_uint waits, const cl_event *wait_list,
       cl_event *event) {
    return made(real.clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, data, waits,
                                          wait_list, event),
                event);
}

STAGED(cl_int, clRetainEvent, cl_event event) {
    staged.events_retained++;
    return real.clRetainEvent(event);
}

STAGED(cl_int, clReleaseEvent, cl_event event) {
    staged.events_released++;
    return real.clReleaseEvent(event);
}

STAGED(cl_int, clGetEventProfilingInfo, cl_event event, cl_profiling_info what, size_t size,
       void *value, size_t *needed) {
    cl_ulong stamp = 0;
    switch (staged.stamps) {
    case STAMPS_REAL:
        return real.clGetEventProfilingInfo(event, what, size, value, needed);
    case STAMPS_MISSING:
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    case STAMPS_ZERO:
        break;
    case STAMPS_EQUAL:
        stamp = 5000;
        break;
    case STAMPS_REVERSED:
        stamp = what == CL_PROFILING_COMMAND_END ? 4999 : 5000;
        break;
    case STAMPS_FIXED:
        stamp = what == CL_PROFILING_COMMAND_END ? 3500 : 1000;
        break;
    }
    return answer(&stamp, sizeof stamp, size, value, needed);
}

STAGED(cl_int, clFinish, cl_command_queue queue) {
    cl_int code = real.clFinish(queue);
    if (staged.finish_code == CL_SUCCESS) return code;
    code = staged.finish_code;
    staged.finish_code = CL_SUCCESS;
    return code;
}

STAGED(cl_int, clWaitForEvents, cl_uint count, const cl_event *events) {
    cl_int code = real.clWaitForEvents(count, events);
    return staged.wait_code ? staged.wait_code : code;
}

#ifdef LAP_HAVE_CLBLAST
static lap_clblast_functions real_clblast;

static CLBlastStatusCode staged_CLBlastClearCache(void) {
    staged.caches_cleared++;
    return real_clblast.CLBlastClearCache();
}
#endif

void staged_install(void) {
    if (real.clFinish || lap_cl_missing()) return;
    real = lap_cl;
#define STAGE(name) lap_cl.name = staged_##name
    STAGE(clGetPlatformIDs);
    STAGE(clGetPlatformInfo);
    STAGE(clGetDeviceIDs);
    STAGE(clGetDeviceInfo);
    STAGE(clCreateCommandQueue);
    STAGE(clCreateBuffer);
    STAGE(clBuildProgram);
    STAGE(clGetProgramInfo);
    STAGE(clCreateProgramWithBinary);
    STAGE(clGetProgramBuildInfo);
    STAGE(clGetKernelWorkGroupInfo);
    STAGE(clSetKernelArg);
    STAGE(clEnqueueNDRangeKernel);
    STAGE(clEnqueueBarrierWithWaitList);
    STAGE(clEnqueueFillBuffer);
    STAGE(clEnqueueReadBuffer);
    STAGE(clEnqueueWriteBuffer);
    STAGE(clRetainEvent);
    STAGE(clReleaseEvent);
    STAGE(clGetEventProfilingInfo);
    STAGE(clFinish);
    STAGE(clWaitForEvents);
#ifdef LAP_HAVE_CLBLAST
    if (lap_clblast_missing()) return;
    real_clblast = lap_clblast;
    lap_clblast.CLBlastClearCache = staged_CLBlastClearCache;
#endif
}
