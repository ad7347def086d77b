/* A fake OpenCL driver for the ICD loader, told by the environment what to be. Its memory is real,
 * its kernels do nothing at all: a program that reports a time for it has not checked results.
 *
 *   LAP_FAKE_CL_DEVICES     one number a platform, comma-separated: how many devices it has, or the
 *                           negative code that clGetDeviceIDs gives ("1,0,-6"); default "1". Read
 *                           when the loader loads the driver; all below whenever asked for
 *   LAP_FAKE_CL_NAME        CL_DEVICE_NAME; \0 \n \t \\ \xHH are bytes, and no NUL is added
 *   LAP_FAKE_CL_TYPE        gpu (default), cpu, accelerator
 *   LAP_FAKE_CL_UUID        32 hexadecimal digits, of every device: they are then one device
 *   LAP_FAKE_CL_PCI         "domain:bus:device.function" in hexadecimal, of every device
 *   LAP_FAKE_CL_MEMORY, LAP_FAKE_CL_MAX_ALLOC    bytes
 *   LAP_FAKE_CL_GROUP, LAP_FAKE_CL_KERNEL_GROUP  largest group, of the device and of any kernel
 *   LAP_FAKE_CL_STAMPS      zero, reversed (end = start - 1), equal, missing; else sound ones
 *   LAP_FAKE_CL_FAIL        "call:n:code": the nth call from loading fails so; calls are alloc,
 *                           build, launch, finish, queue
 *
 * Only what OpenCL 1.2 host programs of this project call is there; other entries are NULL.
 */
#include "fake_opencl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLATFORMS_MAX = 8, DEVICES_MAX = 8 };

static struct _cl_platform_id platforms[PLATFORMS_MAX];
static struct _cl_device_id devices[PLATFORMS_MAX][DEVICES_MAX];

/* ---- environment ---------------------------------------------------------------------------- */

const char *fake_text(const char *name, const char *otherwise) {
    char variable[64];
    snprintf(variable, sizeof variable, "LAP_FAKE_CL_%s", name);
    const char *value = getenv(variable);
    return value ? value : otherwise;
}

uint64_t fake_number(const char *name, uint64_t otherwise) {
    const char *value = fake_text(name, NULL);
    return value ? strtoull(value, NULL, 10) : otherwise;
}

cl_int fake_failure(const char *call) {
    static const char *const calls[] = {"alloc", "build", "launch", "finish", "queue"};
    static unsigned long counts[5];
    char wanted[16];
    unsigned long nth;
    int code;
    for (size_t i = 0; i < 5; i++) {
        if (strcmp(call, calls[i]) != 0) continue;
        counts[i]++;
        if (sscanf(fake_text("FAIL", ""), "%15[a-z]:%lu:%d", wanted, &nth, &code) == 3 &&
            strcmp(wanted, call) == 0 && counts[i] == nth)
            return code;
    }
    return CL_SUCCESS;
}

static int hex_digit(char c) {
    const char *digits = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Escapes to bytes; returns how many. */
static size_t unescape(char *to, size_t size, const char *from) {
    size_t n = 0;
    for (const char *p = from; *p && n < size; p++) {
        if (*p != '\\' || !p[1]) {
            to[n++] = *p;
            continue;
        }
        p++;
        if (*p == 'x' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0) {
            to[n++] = (char)(hex_digit(p[1]) * 16 + hex_digit(p[2]));
            p += 2;
        } else {
            to[n++] = *p == '0' ? '\0' : *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
        }
    }
    return n;
}

cl_int fake_answer(const void *bytes, size_t n, size_t size, void *value, size_t *needed) {
    if (needed) *needed = n;
    if (!value) return CL_SUCCESS;
    if (size < n) return CL_INVALID_VALUE;
    memcpy(value, bytes, n);
    return CL_SUCCESS;
}

/* ---- platforms ------------------------------------------------------------------------------ */

static cl_uint load_platforms(void) {
    static cl_uint count;
    if (count > 0) return count;
    const char *p = fake_text("DEVICES", "1");
    while (*p && count < PLATFORMS_MAX) {
        char *end;
        long n = strtol(p, &end, 10);
        if (end == p) break;
        platforms[count] = (struct _cl_platform_id){&fake_dispatch, count,
                                                    (int)(n > DEVICES_MAX ? DEVICES_MAX : n)};
        for (unsigned d = 0; d < DEVICES_MAX; d++)
            devices[count][d] = (struct _cl_device_id){&fake_dispatch, &platforms[count], d};
        count++;
        p = *end == ',' ? end + 1 : end;
    }
    return count;
}

static cl_int CL_API_CALL get_platforms(cl_uint room, cl_platform_id *out, cl_uint *count) {
    cl_uint n = load_platforms();
    if (count) *count = n;
    for (cl_uint i = 0; out && i < n && i < room; i++)
        out[i] = &platforms[i];
    return n > 0 ? CL_SUCCESS : CL_PLATFORM_NOT_FOUND_KHR;
}

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                        void *value, size_t *needed) {
    char name[32];
    const char *text = NULL;
    snprintf(name, sizeof name, "Fake %u", platform->index);
    if (what == CL_PLATFORM_NAME) text = name;
    if (what == CL_PLATFORM_VENDOR) text = "Fake vendor";
    if (what == CL_PLATFORM_VERSION) text = "OpenCL 1.2 fake";
    if (what == CL_PLATFORM_PROFILE) text = "FULL_PROFILE";
    if (what == CL_PLATFORM_EXTENSIONS) text = "cl_khr_icd";
    if (what == CL_PLATFORM_ICD_SUFFIX_KHR) text = "FAKE";
    return text ? fake_answer(text, strlen(text) + 1, size, value, needed) : CL_INVALID_VALUE;
}

/* ---- devices -------------------------------------------------------------------------------- */

static cl_device_type fake_type(void) {
    const char *type = fake_text("TYPE", "gpu");
    if (strcmp(type, "cpu") == 0) return CL_DEVICE_TYPE_CPU;
    return strcmp(type, "accelerator") == 0 ? CL_DEVICE_TYPE_ACCELERATOR : CL_DEVICE_TYPE_GPU;
}

static cl_int CL_API_CALL get_devices(cl_platform_id platform, cl_device_type type, cl_uint room,
                                      cl_device_id *out, cl_uint *count) {
    if (platform->devices < 0) return platform->devices;
    if (platform->devices == 0 || !(type == CL_DEVICE_TYPE_ALL || (type & fake_type())))
        return CL_DEVICE_NOT_FOUND;
    if (count) *count = (cl_uint)platform->devices;
    for (cl_uint i = 0; out && i < (cl_uint)platform->devices && i < room; i++)
        out[i] = &devices[platform->index][i];
    return CL_SUCCESS;
}

static cl_int text_info(cl_device_info what, size_t size, void *value, size_t *needed) {
    char text[1024];
    switch (what) {
    case CL_DEVICE_NAME:
        return fake_answer(text, unescape(text, sizeof text, fake_text("NAME", "Fake device\\0")),
                           size, value, needed);
    case CL_DEVICE_EXTENSIONS:
        snprintf(text, sizeof text, "cl_khr_global_int32_base_atomics%s%s",
                 fake_text("UUID", NULL) ? " cl_khr_device_uuid" : "",
                 fake_text("PCI", NULL) ? " cl_khr_pci_bus_info" : "");
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

static cl_int identity_info(cl_device_info what, size_t size, void *value, size_t *needed) {
    cl_uchar uuid[16] = {0};
    cl_uint pci[4] = {0};
    const char *text = fake_text(what == CL_DEVICE_UUID_KHR ? "UUID" : "PCI", NULL);
    if (!text) return CL_INVALID_VALUE;
    if (what == CL_DEVICE_UUID_KHR) {
        for (size_t i = 0; i < 16 && strlen(text) == 32; i++)
            uuid[i] = (cl_uchar)(hex_digit(text[2 * i]) * 16 + hex_digit(text[2 * i + 1]));
        return fake_answer(uuid, sizeof uuid, size, value, needed);
    }
    if (sscanf(text, "%x:%x:%x.%x", &pci[0], &pci[1], &pci[2], &pci[3]) != 4)
        return CL_INVALID_VALUE;
    return fake_answer(pci, sizeof pci, size, value, needed);
}

static cl_int number_info(cl_device_info what, size_t size, void *value, size_t *needed) {
    const cl_ulong gib = 1u << 30;
    cl_ulong wide = 0;
    switch (what) {
    case CL_DEVICE_GLOBAL_MEM_SIZE:
        wide = fake_number("MEMORY", 4 * gib);
        break;
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        wide = fake_number("MAX_ALLOC", fake_number("MEMORY", 4 * gib));
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
    const size_t group = (size_t)fake_number("GROUP", 256);
    const size_t sizes[3] = {group, group, group}, resolution = 1;
    const cl_device_type type = fake_type();
    cl_uint number;
    switch (what) {
    case CL_DEVICE_NAME:
    case CL_DEVICE_VENDOR:
    case CL_DEVICE_VERSION:
    case CL_DRIVER_VERSION:
    case CL_DEVICE_EXTENSIONS:
        return text_info(what, size, value, needed);
    case CL_DEVICE_UUID_KHR:
    case CL_DEVICE_PCI_BUS_INFO_KHR:
        return identity_info(what, size, value, needed);
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
        return number_info(what, size, value, needed);
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
