/* A fake OpenCL driver for the ICD loader: it answers as its script says (script.h). Its memory is
 * real, its kernels do nothing at all: a program that reports a time for it has not checked
 * results.
 *
 * The loader asks for platforms once, when it loads the driver; all else is looked up whenever
 * asked for, so a later script may change it, but for the number of platforms.
 *
 * Only what OpenCL 1.2 host programs of this project call is there; other entries are NULL.
 */
#include "fake_opencl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const script_functions[] = {"clBuildProgram",
                                        "clCreateBuffer",
                                        "clCreateCommandQueue",
                                        "clCreateContext",
                                        "clCreateKernel",
                                        "clCreateProgramWithSource",
                                        "clCreateSubBuffer",
                                        "clEnqueueBarrierWithWaitList",
                                        "clEnqueueFillBuffer",
                                        "clEnqueueMapBuffer",
                                        "clEnqueueNDRangeKernel",
                                        "clEnqueueReadBuffer",
                                        "clEnqueueUnmapMemObject",
                                        "clEnqueueWriteBuffer",
                                        "clFinish",
                                        "clFlush",
                                        "clGetDeviceIDs",
                                        "clGetDeviceInfo",
                                        "clGetEventInfo",
                                        "clGetEventProfilingInfo",
                                        "clGetKernelInfo",
                                        "clGetKernelWorkGroupInfo",
                                        "clGetPlatformIDs",
                                        "clGetPlatformInfo",
                                        "clGetProgramBuildInfo",
                                        "clReleaseCommandQueue",
                                        "clReleaseContext",
                                        "clReleaseEvent",
                                        "clReleaseKernel",
                                        "clReleaseMemObject",
                                        "clReleaseProgram",
                                        "clRetainEvent",
                                        "clSetKernelArg",
                                        "clWaitForEvents",
                                        NULL};

static struct _cl_platform_id platforms[SCRIPT_PLATFORMS];
static struct _cl_device_id devices[SCRIPT_PLATFORMS][SCRIPT_DEVICES];

cl_int fake_answer(const void *bytes, size_t n, size_t size, void *value, size_t *needed) {
    if (needed) *needed = n;
    if (!value) return CL_SUCCESS;
    if (size < n) return CL_INVALID_VALUE;
    memcpy(value, bytes, n);
    return CL_SUCCESS;
}

/* ---- platforms ------------------------------------------------------------------------------ */

static const script_platform *platform_of(cl_platform_id platform) {
    const script *s = script_get();
    if (platform->index < s->platform_count) return &s->platforms[platform->index];
    fprintf(stderr, "stand-in: this script has no platform %u\n", platform->index);
    abort();
}

const script_device *fake_device_of(cl_device_id device) {
    const script_platform *platform = platform_of(device->platform);
    if (device->index < platform->device_count) return &platform->devices[device->index];
    fprintf(stderr, "stand-in: this script has no device %u of platform %u\n", device->index,
            device->platform->index);
    abort();
}

static cl_int CL_API_CALL get_platforms(cl_uint room, cl_platform_id *out, cl_uint *count) {
    FAKE_ENTER("clGetPlatformIDs");
    cl_uint n = (cl_uint)script_get()->platform_count;
    if (count) *count = n;
    for (cl_uint i = 0; i < n; i++) {
        platforms[i] = (struct _cl_platform_id){&fake_dispatch, i};
        for (unsigned d = 0; d < SCRIPT_DEVICES; d++)
            devices[i][d] = (struct _cl_device_id){&fake_dispatch, &platforms[i], d};
        if (out && i < room) out[i] = &platforms[i];
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                        void *value, size_t *needed) {
    FAKE_ENTER("clGetPlatformInfo");
    char name[32];
    const char *text = NULL;
    const script_text *given = &platform_of(platform)->name;
    snprintf(name, sizeof name, "Fake %u", platform->index);
    if (what == CL_PLATFORM_NAME && given->length)
        return fake_answer(given->bytes, given->length, size, value, needed);
    if (what == CL_PLATFORM_NAME) text = name;
    if (what == CL_PLATFORM_VENDOR) text = "Fake vendor";
    if (what == CL_PLATFORM_VERSION) text = "OpenCL 1.2 fake";
    if (what == CL_PLATFORM_PROFILE) text = "FULL_PROFILE";
    if (what == CL_PLATFORM_EXTENSIONS) text = "cl_khr_icd";
    if (what == CL_PLATFORM_ICD_SUFFIX_KHR) text = "FAKE";
    return text ? fake_answer(text, strlen(text) + 1, size, value, needed) : CL_INVALID_VALUE;
}

/* ---- devices -------------------------------------------------------------------------------- */

static cl_device_type type_of(const script_device *device) {
    static const cl_device_type types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_CPU,
                                           CL_DEVICE_TYPE_ACCELERATOR};
    return types[device->type];
}

static cl_int CL_API_CALL get_devices(cl_platform_id platform, cl_device_type type, cl_uint room,
                                      cl_device_id *out, cl_uint *count) {
    FAKE_ENTER("clGetDeviceIDs");
    const script_platform *p = platform_of(platform);
    if (p->error) return (cl_int)p->error;
    cl_uint n = 0;
    for (cl_uint i = 0; i < p->device_count; i++) {
        if (type != CL_DEVICE_TYPE_ALL && !(type & type_of(&p->devices[i]))) continue;
        if (out && n < room) out[n] = &devices[platform->index][i];
        n++;
    }
    if (count) *count = n;
    return n ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

static cl_int text_info(const script_device *d, cl_device_info what, size_t size, void *value,
                        size_t *needed) {
    char text[128];
    switch (what) {
    case CL_DEVICE_NAME:
        return fake_answer(d->name.bytes, d->name.length, size, value, needed);
    case CL_DEVICE_EXTENSIONS:
        snprintf(text, sizeof text, "cl_khr_global_int32_base_atomics%s%s",
                 d->uuid.count ? " cl_khr_device_uuid" : "",
                 d->pci.count ? " cl_khr_pci_bus_info" : "");
        break;
    case CL_DEVICE_VERSION:
        snprintf(text, sizeof text, "OpenCL 1.2 fake");
        break;
    case CL_DRIVER_VERSION:
        snprintf(text, sizeof text, "1.0");
        break;
    default:
        snprintf(text, sizeof text, "Fake vendor");
    }
    return fake_answer(text, strlen(text) + 1, size, value, needed);
}

static cl_int identity_info(const script_device *d, cl_device_info what, size_t size, void *value,
                            size_t *needed) {
    cl_uchar uuid[16];
    cl_uint pci[4];
    const script_numbers *given = what == CL_DEVICE_UUID_KHR ? &d->uuid : &d->pci;
    if (given->count == 0) return CL_INVALID_VALUE;
    for (size_t i = 0; i < 16; i++)
        uuid[i] = (cl_uchar)given->at[i];
    for (size_t i = 0; i < 4; i++)
        pci[i] = (cl_uint)given->at[i];
    if (what == CL_DEVICE_UUID_KHR) return fake_answer(uuid, sizeof uuid, size, value, needed);
    return fake_answer(pci, sizeof pci, size, value, needed);
}

uint64_t fake_max_alloc(const script_device *device) {
    return (uint64_t)(device->max_alloc ? device->max_alloc : device->memory);
}

static cl_int number_info(const script_device *d, cl_device_info what, size_t size, void *value,
                          size_t *needed) {
    cl_ulong wide = 0;
    switch (what) {
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        wide = (cl_ulong)d->memory;
        break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        wide = fake_max_alloc(d);
        break;
    case CL_DEVICE_GLOBAL_MEM_CACHE_SIZE:
    case CL_DEVICE_LOCAL_MEM_SIZE:
        wide = 32768;
        break;
    default:
        return CL_INVALID_VALUE;
    }
    return fake_answer(&wide, sizeof wide, size, value, needed);
}

static cl_int CL_API_CALL device_info(cl_device_id device, cl_device_info what, size_t size,
                                      void *value, size_t *needed) {
    FAKE_ENTER("clGetDeviceInfo");
    const script_device *d = fake_device_of(device);
    const size_t group = (size_t)d->group;
    const size_t sizes[3] = {group, group, group}, resolution = 1;
    const cl_device_type type = type_of(d);
    cl_uint number;
    switch (what) {
    case CL_DEVICE_NAME:
    case CL_DEVICE_VENDOR:
    case CL_DEVICE_VERSION:
    case CL_DRIVER_VERSION:
    case CL_DEVICE_EXTENSIONS:
        return text_info(d, what, size, value, needed);
    case CL_DEVICE_UUID_KHR:
    case CL_DEVICE_PCI_BUS_INFO_KHR:
        return identity_info(d, what, size, value, needed);
    case CL_DEVICE_TYPE:
        return fake_answer(&type, sizeof type, size, value, needed);
    case CL_DEVICE_PLATFORM:
        return fake_answer(&device->platform, sizeof device->platform, size, value, needed);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return fake_answer(&group, sizeof group, size, value, needed);
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return fake_answer(sizes, sizeof sizes, size, value, needed);
    case CL_DEVICE_PROFILING_TIMER_RESOLUTION:
        return fake_answer(&resolution, sizeof resolution, size, value, needed);
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LOCAL_MEM_TYPE: /* 1: CL_LOCAL */
        number = 1;
        break;
    case CL_DEVICE_MAX_COMPUTE_UNITS:
        number = 4;
        break;
    case CL_DEVICE_MAX_CLOCK_FREQUENCY:
        number = 1000;
        break;
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
        number = 1024;
        break;
    case CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS:
        number = 3;
        break;
    default:
        return number_info(d, what, size, value, needed);
    }
    return fake_answer(&number, sizeof number, size, value, needed);
}

/* What a BLAS library asks first, to find its context: it is told no, and gives up with an error.
 */
static cl_int CL_API_CALL queue_info(cl_command_queue queue, cl_command_queue_info what,
                                     size_t size, void *value, size_t *needed) {
    (void)queue, (void)what, (void)size, (void)value, (void)needed;
    return CL_INVALID_VALUE;
}

/* ---- what the loader asks for --------------------------------------------------------------- */

const cl_icd_dispatch fake_dispatch = {
    .clGetPlatformIDs = get_platforms,
    .clGetPlatformInfo = platform_info,
    .clGetDeviceIDs = get_devices,
    .clGetDeviceInfo = device_info,
    .clCreateContext = fake_create_context,
    .clReleaseContext = fake_release_context,
    .clCreateCommandQueue = fake_create_queue,
    .clReleaseCommandQueue = fake_release_queue,
    .clGetCommandQueueInfo = queue_info,
    .clFlush = fake_flush,
    .clFinish = fake_finish,
    .clCreateBuffer = fake_create_buffer,
    .clCreateSubBuffer = fake_create_sub_buffer,
    .clReleaseMemObject = fake_release_memory,
    .clCreateProgramWithSource = fake_create_program,
    .clBuildProgram = fake_build_program,
    .clGetProgramBuildInfo = fake_build_info,
    .clReleaseProgram = fake_release_program,
    .clCreateKernel = fake_create_kernel,
    .clGetKernelInfo = fake_kernel_info,
    .clGetKernelWorkGroupInfo = fake_group_info,
    .clSetKernelArg = fake_set_arg,
    .clReleaseKernel = fake_release_kernel,
    .clEnqueueNDRangeKernel = fake_launch,
    .clEnqueueFillBuffer = fake_fill,
    .clEnqueueMapBuffer = fake_map,
    .clEnqueueUnmapMemObject = fake_unmap,
    .clEnqueueBarrierWithWaitList = fake_barrier,
    .clEnqueueReadBuffer = fake_read,
    .clEnqueueWriteBuffer = fake_write,
    .clWaitForEvents = fake_wait,
    .clGetEventInfo = fake_event_info,
    .clGetEventProfilingInfo = fake_profiling_info,
    .clRetainEvent = fake_retain_event,
    .clReleaseEvent = fake_release_event,
};

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name) {
    union { /* ISO C has no conversion from a function pointer to an object pointer */
        cl_int(CL_API_CALL *ids)(cl_uint, cl_platform_id *, cl_uint *);
        cl_int(CL_API_CALL *info)(cl_platform_id, cl_platform_info, size_t, void *, size_t *);
        void *object;
    } entry = {.object = NULL};
    if (strcmp(name, "clIcdGetPlatformIDsKHR") == 0) entry.ids = get_platforms;
    if (strcmp(name, "clGetPlatformInfo") == 0) entry.info = platform_info;
    return entry.object;
}
