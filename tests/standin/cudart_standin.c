/* A stand-in for the CUDA runtime: see cudart_standin.h. The script, devices, errors, memory. */
#include "cudart_standin_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const script_functions[] = {"cudaDeviceGetAttribute",
                                        "cudaDriverGetVersion",
                                        "cudaEventCreate",
                                        "cudaEventDestroy",
                                        "cudaEventElapsedTime",
                                        "cudaEventRecord",
                                        "cudaEventSynchronize",
                                        "cudaFree",
                                        "cudaFreeHost",
                                        "cudaFuncGetAttributes",
                                        "cudaFuncSetAttribute",
                                        "cudaGetDeviceCount",
                                        "cudaGetDeviceProperties",
                                        "cudaGetLastError",
                                        "cudaGraphDestroy",
                                        "cudaGraphExecDestroy",
                                        "cudaGraphInstantiate",
                                        "cudaGraphLaunch",
                                        "cudaLaunchKernel",
                                        "cudaLaunchKernelExC",
                                        "cudaLibraryGetKernel",
                                        "cudaLibraryLoadData",
                                        "cudaLibraryUnload",
                                        "cudaMalloc",
                                        "cudaMallocHost",
                                        "cudaMemGetInfo",
                                        "cudaMemcpyAsync",
                                        "cudaMemsetAsync",
                                        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
                                        "cudaRuntimeGetVersion",
                                        "cudaSetDevice",
                                        "cudaStreamBeginCapture",
                                        "cudaStreamCreateWithFlags",
                                        "cudaStreamDestroy",
                                        "cudaStreamEndCapture",
                                        "cudaStreamQuery",
                                        "cudaStreamSynchronize",
                                        "cudaStreamWaitEvent",
                                        NULL};

standin_settings standin;
standin_state standin_s;

/* ---- the script ----------------------------------------------------------------------------- */

void standin_reset(void) {
    allocation *allocations = standin_s.allocations;
    standin_counts live = standin_s.live;
    memset(&standin_s, 0, sizeof standin_s);
    standin_s.started = true;
    standin_s.allocations = allocations;
    standin_s.live = live;
    memset(&standin, 0, sizeof standin);
    const script *told = script_get();
    standin.devices = (int)told->cuda.devices;
    standin.count_error = (int)told->cuda.count_error;
    standin.driver = (int)told->cuda.driver;
    standin.max_threads = 1024;
    standin.cc_major = (int)told->cuda.capability.at[0];
    standin.cc_minor = (int)told->cuda.capability.at[1];
    standin.memory_bytes = (size_t)told->cuda.memory;
    snprintf(standin.name, sizeof standin.name, "%.255s", told->cuda.name.bytes);
}

static size_t function_slot(const char *name) {
    for (size_t i = 0; i < MAX_NAMED; i++) {
        if (!standin_s.functions[i].name[0])
            snprintf(standin_s.functions[i].name, sizeof standin_s.functions[i].name, "%s", name);
        if (strcmp(standin_s.functions[i].name, name) == 0) return i;
    }
    fprintf(stderr, "stand-in: more than %d functions\n", MAX_NAMED);
    abort();
}

void standin_fail(const char *function, int nth, int code) {
    size_t i = function_slot(function);
    standin_s.functions[i].fail_at = standin_s.functions[i].calls + nth;
    standin_s.functions[i].code = code;
}

int standin_calls(const char *function) {
    return standin_s.functions[function_slot(function)].calls;
}

standin_counts standin_live(void) {
    return standin_s.live;
}

void standin_register(const char *entry, const char *kinds, standin_kernel function) {
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (!standin_s.kernels[i].run) {
            snprintf(standin_s.kernels[i].entry, sizeof standin_s.kernels[i].entry, "%s", entry);
            snprintf(standin_s.kernels[i].kinds, sizeof standin_s.kernels[i].kinds, "%s", kinds);
            standin_s.kernels[i].run = function;
            return;
        }
    abort();
}

cudaError_t standin_result(int code) {
    if (code) standin_s.last = code;
    return (cudaError_t)code;
}

/* Every function starts here: counts the call, and says whether it is to fail. */
int standin_enter(const char *function) {
    if (!standin_s.started) standin_reset();
    /* CUDA 12's headers turn some names into name_v2. */
    char name[sizeof standin_s.functions[0].name];
    snprintf(name, sizeof name, "%s", function);
    char *version = strstr(name, "_v2");
    if (version) *version = '\0';
    size_t i = function_slot(name);
    standin_s.functions[i].calls++;
    int code = script_enter(name);
    if (code) return code;
    if (standin_s.sticky) return standin_s.sticky;
    if (standin_s.functions[i].fail_at != standin_s.functions[i].calls) return 0;
    return standin_s.functions[i].code;
}

/* ---- devices -------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count) {
    ENTER();
    if (standin.count_error) return standin_result(standin.count_error);
    *count = standin.devices;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
    ENTER();
    *version = standin.driver;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
    ENTER();
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device) {
    ENTER();
    if (device < 0 || device >= standin.devices) return standin_result(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "%s", standin.name);
    for (size_t i = 0; i < sizeof p->uuid.bytes; i++)
        p->uuid.bytes[i] = (char)(0xa0 + (int)i + device);
    p->totalGlobalMem = standin.memory_bytes;
    p->sharedMemPerBlock = 48 << 10;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->major = standin.cc_major;
    p->minor = standin.cc_minor;
    p->multiProcessorCount = 132;
    p->l2CacheSize = 50 << 20;
    p->pciDomainID = 1;
    p->pciBusID = 0x3b + device;
    p->pciDeviceID = 2;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
    ENTER();
    bool known = attribute == cudaDevAttrClockRate || attribute == cudaDevAttrMultiProcessorCount;
    if (device < 0 || device >= standin.devices || !known)
        return standin_result(cudaErrorInvalidValue);
    *value = attribute == cudaDevAttrClockRate ? 1980000 : 132;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    ENTER();
    if (device >= 0 && device < 32) standin.used |= 1u << device;
    return standin_result(device < 0 || device >= standin.devices ? cudaErrorInvalidDevice
                                                                  : cudaSuccess);
}

cudaError_t cudaGetLastError(void) {
    (void)standin_enter(__func__);
    int code = standin_s.last;
    standin_s.last = standin_s.sticky;
    return (cudaError_t)code;
}

const char *cudaGetErrorName(cudaError_t code) {
    switch ((int)code) {
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
        return "cudaErrorInitializationError";
    case cudaErrorInsufficientDriver:
        return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
        return "cudaErrorNoDevice";
    case cudaErrorUnsupportedPtxVersion:
        return "cudaErrorUnsupportedPtxVersion";
    case cudaErrorIllegalAddress:
        return "cudaErrorIllegalAddress";
    case cudaErrorUnknown:
        return "cudaErrorUnknown";
    default:
        return "cudaErrorOther";
    }
}

const char *cudaGetErrorString(cudaError_t code) {
    return code == cudaSuccess ? "no error" : "stand-in error";
}

/* ---- memory --------------------------------------------------------------------------------- */

bool standin_inside(const void *pointer, size_t bytes) {
    for (const allocation *a = standin_s.allocations; a; a = a->next)
        if ((const char *)pointer >= a->start &&
            (const char *)pointer + bytes <= a->start + a->bytes)
            return true;
    return false;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    ENTER();
    *pointer = NULL;
    if (standin_s.live.bytes + bytes > standin.memory_bytes)
        return standin_result(cudaErrorMemoryAllocation);
    allocation *a = malloc(sizeof *a);
    if (!a) abort();
    a->start = malloc(bytes ? bytes : 1);
    if (!a->start) abort();
    a->bytes = bytes;
    a->next = standin_s.allocations;
    standin_s.allocations = a;
    standin_s.live.buffers++;
    standin_s.live.bytes += bytes;
    *pointer = a->start;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer) {
    ENTER_FREE();
    if (!pointer) return standin_result(code_);
    for (allocation **link = &standin_s.allocations; *link; link = &(*link)->next) {
        allocation *a = *link;
        if (a->start != pointer) continue;
        *link = a->next;
        standin_s.live.buffers--;
        standin_s.live.bytes -= a->bytes;
        free(a->start);
        free(a);
        return standin_result(code_);
    }
    standin_s.live.bad_frees++;
    return standin_result(cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void **pointer, size_t bytes) {
    ENTER();
    *pointer = malloc(bytes);
    if (!*pointer) abort();
    standin_s.live.pinned++;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *pointer) {
    ENTER_FREE();
    free(pointer);
    standin_s.live.pinned--;
    return standin_result(code_);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    ENTER();
    *total = standin.memory_bytes;
    *available = standin.memory_bytes - standin_s.live.bytes;
    return cudaSuccess;
}
