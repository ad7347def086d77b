/* The functions of other libraries that this backend calls. They are looked up when they are first
 * wanted, so that the program starts, and does all else, where a library is missing; from then on a
 * call goes through a pointer, as one into any shared library does. opencl.h gives the pointers the
 * functions' own names. Tests put functions of theirs into the tables.
 */
#ifndef LAP_OPENCL_API_H
#define LAP_OPENCL_API_H

#include <CL/cl.h>

#define LAP_CL_FUNCTIONS(X)                                                                        \
    X(clBuildProgram)                                                                              \
    X(clCreateBuffer)                                                                              \
    X(clCreateCommandQueue)                                                                        \
    X(clCreateContext)                                                                             \
    X(clCreateKernel)                                                                              \
    X(clCreateProgramWithBinary)                                                                   \
    X(clCreateProgramWithSource)                                                                   \
    X(clCreateSubBuffer)                                                                           \
    X(clEnqueueBarrierWithWaitList)                                                                \
    X(clEnqueueFillBuffer)                                                                         \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clFinish)                                                                                    \
    X(clFlush)                                                                                     \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clGetEventInfo)                                                                              \
    X(clGetEventProfilingInfo)                                                                     \
    X(clGetExtensionFunctionAddress)                                                               \
    X(clGetKernelInfo)                                                                             \
    X(clGetKernelWorkGroupInfo)                                                                    \
    X(clGetPlatformIDs)                                                                            \
    X(clGetPlatformInfo)                                                                           \
    X(clGetProgramBuildInfo)                                                                       \
    X(clGetProgramInfo)                                                                            \
    X(clReleaseCommandQueue)                                                                       \
    X(clReleaseContext)                                                                            \
    X(clReleaseEvent)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clReleaseMemObject)                                                                          \
    X(clReleaseProgram)                                                                            \
    X(clRetainEvent)                                                                               \
    X(clSetKernelArg)                                                                              \
    X(clWaitForEvents)

#define LAP_API_POINTER(name) __typeof__(name) *(name);
typedef struct lap_cl_functions {
    LAP_CL_FUNCTIONS(LAP_API_POINTER)
} lap_cl_functions;

extern lap_cl_functions lap_cl;

/* Look the ICD loader up, once. NULL when all functions are there; else why not, in one line that
 * also says what to install. No function may be called before this gave NULL. */
const char *lap_cl_missing(void);

#ifdef LAP_HAVE_CLBLAST
#include <clblast_c.h>

#define LAP_CLBLAST_FUNCTIONS(X)                                                                   \
    X(CLBlastClearCache)                                                                           \
    X(CLBlastSgemm)

typedef struct lap_clblast_functions {
    LAP_CLBLAST_FUNCTIONS(LAP_API_POINTER)
} lap_clblast_functions;

extern lap_clblast_functions lap_clblast;

/* The same for CLBlast. */
const char *lap_clblast_missing(void);
#endif

#endif
