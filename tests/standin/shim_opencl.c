/* LD_PRELOADed between a program and a real OpenCL driver, which does the work: only time stamps
 * and chosen calls are spoilt, as the script says (script.h: [opencl], fail and delay). For whole
 * programs; results stay right, so only timing and error handling are on trial.
 */
#include "script.h"

#include <CL/cl.h>
#include <dlfcn.h>
#include <string.h>

const char *const script_functions[] = {"clCreateBuffer", "clEnqueueNDRangeKernel", "clFinish",
                                        "clGetEventProfilingInfo", NULL};

/* The next definition of the function of that name. */
#define NEXT(function)                                                                             \
    union {                                                                                        \
        void *object;                                                                              \
        __typeof__(function) *call;                                                                \
    } next = {.object = dlsym(RTLD_NEXT, #function)}

CL_API_ENTRY cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info what,
                                                        size_t size, void *value, size_t *needed) {
    NEXT(clGetEventProfilingInfo);
    cl_int code = script_enter("clGetEventProfilingInfo");
    if (code == CL_SUCCESS) code = next.call(event, what, size, value, needed);
    if (code != CL_SUCCESS || !value || size < sizeof(cl_ulong)) return code;
    cl_ulong stamp;
    memcpy(&stamp, value, sizeof stamp);
    if (!script_stamp(what == CL_PROFILING_COMMAND_END, &stamp))
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    memcpy(value, &stamp, sizeof stamp);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                       cl_uint dimensions, const size_t *offset,
                                                       const size_t *global, const size_t *local,
                                                       cl_uint waits, const cl_event *wait_list,
                                                       cl_event *event) {
    NEXT(clEnqueueNDRangeKernel);
    cl_int code = script_enter("clEnqueueNDRangeKernel");
    if (code != CL_SUCCESS) return code;
    return next.call(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue queue) {
    NEXT(clFinish);
    cl_int code = script_enter("clFinish");
    return code == CL_SUCCESS ? next.call(queue) : code;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                               void *host, cl_int *code) {
    NEXT(clCreateBuffer);
    cl_int failed = script_enter("clCreateBuffer");
    if (failed == CL_SUCCESS) return next.call(context, flags, size, host, code);
    if (code) *code = failed;
    return NULL;
}
