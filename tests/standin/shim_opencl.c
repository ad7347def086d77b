/* LD_PRELOADed between a program and a real OpenCL driver, which does the work: only time stamps
 * and chosen results are spoilt. For whole programs; results stay right, so only timing and error
 * handling are on trial.
 *
 *   LAP_SHIM_CL_STAMPS   zero, reversed (end = start - 1), missing, or "/N": stamps that run N
 * times too slowly, as one driver's wrong clock unit did LAP_SHIM_CL_FAIL     "call:n:code": the
 * nth call fails so; "call:n+:code": that and all later ones; calls are launch, finish, alloc
 *   LAP_SHIM_CL_LAUNCH_MS  every launch sleeps so long on the host first
 */
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The next definition of the function of that name. */
#define NEXT(function)                                                                             \
    union {                                                                                        \
        void *object;                                                                              \
        __typeof__(function) *call;                                                                \
    } next = {.object = dlsym(RTLD_NEXT, #function)}

static cl_int failure(const char *call, unsigned long count) {
    const char *text = getenv("LAP_SHIM_CL_FAIL");
    char wanted[16], more[2];
    unsigned long nth;
    int code;
    if (!text) return CL_SUCCESS;
    if (sscanf(text, "%15[a-z]:%lu:%d", wanted, &nth, &code) == 3)
        return strcmp(wanted, call) == 0 && count == nth ? code : CL_SUCCESS;
    if (sscanf(text, "%15[a-z]:%lu%1[+]:%d", wanted, &nth, more, &code) == 4)
        return strcmp(wanted, call) == 0 && count >= nth ? code : CL_SUCCESS;
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info what,
                                                        size_t size, void *value, size_t *needed) {
    NEXT(clGetEventProfilingInfo);
    const char *mode = getenv("LAP_SHIM_CL_STAMPS");
    if (mode && strcmp(mode, "missing") == 0) return CL_PROFILING_INFO_NOT_AVAILABLE;
    cl_int code = next.call(event, what, size, value, needed);
    if (!mode || code != CL_SUCCESS || !value || size < sizeof(cl_ulong)) return code;
    cl_ulong stamp;
    memcpy(&stamp, value, sizeof stamp);
    if (strcmp(mode, "zero") == 0) stamp = 0;
    if (strcmp(mode, "reversed") == 0) stamp = what == CL_PROFILING_COMMAND_END ? 4999 : 5000;
    if (mode[0] == '/' && atoi(mode + 1) > 0) stamp /= (cl_ulong)atoi(mode + 1);
    memcpy(value, &stamp, sizeof stamp);
    return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                       cl_uint dimensions, const size_t *offset,
                                                       const size_t *global, const size_t *local,
                                                       cl_uint waits, const cl_event *wait_list,
                                                       cl_event *event) {
    static unsigned long count;
    NEXT(clEnqueueNDRangeKernel);
    cl_int code = failure("launch", ++count);
    if (code != CL_SUCCESS) return code;
    const char *delay = getenv("LAP_SHIM_CL_LAUNCH_MS");
    long ms = delay ? atol(delay) : 0;
    if (ms > 0) nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    return next.call(queue, kernel, dimensions, offset, global, local, waits, wait_list, event);
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue queue) {
    static unsigned long count;
    NEXT(clFinish);
    cl_int code = failure("finish", ++count);
    return code == CL_SUCCESS ? next.call(queue) : code;
}

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size,
                                               void *host, cl_int *code) {
    static unsigned long count;
    NEXT(clCreateBuffer);
    cl_int failed = failure("alloc", ++count);
    if (failed == CL_SUCCESS) return next.call(context, flags, size, host, code);
    if (code) *code = failed;
    return NULL;
}
