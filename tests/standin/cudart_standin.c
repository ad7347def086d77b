/* A stand-in for the CUDA runtime: see cudart_standin.h. Commands run when they are enqueued, or
 * when their graph is launched; time is a counter that every command moves on by 10 us, so that
 * intervals are known exactly. */
#include "cudart_standin.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 16, MAX_NAMED = 64 };
#define COMMAND_MS 0.010

typedef struct command {
    enum { COMMAND_KERNEL, COMMAND_SET, COMMAND_COPY } what;
    struct CUkern_st *kernel;
    struct dim3 grid, block;
    size_t shared;
    union {
        void *pointer;
        int32_t i32;
    } values[MAX_ARGS];
    void *to;
    const void *from;
    int value;
    size_t bytes;
} command;

struct CUgraph_st {
    command *commands;
    size_t count;
};
struct CUgraphExec_st {
    struct CUgraph_st graph;
};
struct CUstream_st {
    struct CUgraph_st *capture;
    bool invalid;
};
struct CUevent_st {
    bool recorded;
    double ms;
};
struct CUkern_st {
    char entry[64];
    int dynamic_limit;
    struct CUkern_st *next;
};
struct CUlib_st {
    char *text;
    struct CUkern_st *kernels;
};

typedef struct allocation {
    char *start;
    size_t bytes;
    struct allocation *next;
} allocation;

standin_settings standin;

static struct {
    bool started;
    int pending, sticky, last;
    double now_ms;
    allocation *allocations;
    standin_counts live;
    struct {
        char name[48];
        int calls, fail_at, code;
    } functions[MAX_NAMED];
    struct {
        char entry[64], kinds[MAX_ARGS + 1];
        standin_kernel run;
    } kernels[MAX_NAMED];
} s;

/* ---- the script ----------------------------------------------------------------------------- */

static int environment(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

void standin_reset(void) {
    allocation *allocations = s.allocations;
    standin_counts live = s.live;
    memset(&s, 0, sizeof s);
    s.started = true;
    s.allocations = allocations;
    s.live = live;
    memset(&standin, 0, sizeof standin);
    standin.devices = environment("LAP_STANDIN_DEVICES", 1);
    standin.count_error = environment("LAP_STANDIN_COUNT_ERROR", 0);
    standin.driver = environment("LAP_STANDIN_DRIVER", 13000);
    standin.max_threads = 1024;
    standin.cc_major = 9;
    snprintf(standin.name, sizeof standin.name, "Stand-in GPU");
    const char *text = getenv("LAP_STANDIN_CC");
    if (text) sscanf(text, "%d.%d", &standin.cc_major, &standin.cc_minor);
    text = getenv("LAP_STANDIN_MEMORY");
    standin.memory_bytes = text ? (size_t)strtoull(text, NULL, 10) : (size_t)1 << 30;
    text = getenv("LAP_STANDIN_FAIL");
    char function[48];
    int nth, code;
    if (text && sscanf(text, "%47[^:]:%d:%d", function, &nth, &code) == 3)
        standin_fail(function, nth, code);
}

static size_t function_slot(const char *name) {
    for (size_t i = 0; i < MAX_NAMED; i++) {
        if (!s.functions[i].name[0])
            snprintf(s.functions[i].name, sizeof s.functions[i].name, "%s", name);
        if (strcmp(s.functions[i].name, name) == 0) return i;
    }
    fprintf(stderr, "stand-in: more than %d functions\n", MAX_NAMED);
    abort();
}

void standin_fail(const char *function, int nth, int code) {
    size_t i = function_slot(function);
    s.functions[i].fail_at = s.functions[i].calls + nth;
    s.functions[i].code = code;
}

int standin_calls(const char *function) {
    return s.functions[function_slot(function)].calls;
}

standin_counts standin_live(void) {
    return s.live;
}

void standin_register(const char *entry, const char *kinds, standin_kernel function) {
    for (size_t i = 0; i < MAX_NAMED; i++)
        if (!s.kernels[i].run) {
            snprintf(s.kernels[i].entry, sizeof s.kernels[i].entry, "%s", entry);
            snprintf(s.kernels[i].kinds, sizeof s.kernels[i].kinds, "%s", kinds);
            s.kernels[i].run = function;
            return;
        }
    abort();
}

static cudaError_t result(int code) {
    if (code) s.last = code;
    return (cudaError_t)code;
}

/* Every function starts here: counts the call, and says whether it is to fail. */
static int enter(const char *function) {
    if (!s.started) standin_reset();
    size_t i = function_slot(function);
    s.functions[i].calls++;
    if (s.sticky) return s.sticky;
    if (s.functions[i].fail_at != s.functions[i].calls) return 0;
    return s.functions[i].code;
}

#define ENTER()                                                                                    \
    do {                                                                                           \
        int code_ = enter(__func__);                                                               \
        if (code_) return result(code_);                                                           \
    } while (0)

/* For clean-up functions, which free what they are given even on a lost context. */
#define ENTER_FREE() int code_ = enter(__func__)

/* ---- devices -------------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count) {
    ENTER();
    if (standin.count_error) return result(standin.count_error);
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
    if (device < 0 || device >= standin.devices) return result(cudaErrorInvalidDevice);
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
    if (device < 0 || device >= standin.devices || attribute != cudaDevAttrClockRate)
        return result(cudaErrorInvalidValue);
    *value = 1980000;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    ENTER();
    return result(device < 0 || device >= standin.devices ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaGetLastError(void) {
    (void)enter(__func__);
    int code = s.last;
    s.last = s.sticky;
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

static bool inside(const void *pointer, size_t bytes) {
    for (const allocation *a = s.allocations; a; a = a->next)
        if ((const char *)pointer >= a->start &&
            (const char *)pointer + bytes <= a->start + a->bytes)
            return true;
    return false;
}

cudaError_t cudaMalloc(void **pointer, size_t bytes) {
    ENTER();
    *pointer = NULL;
    if (s.live.bytes + bytes > standin.memory_bytes) return result(cudaErrorMemoryAllocation);
    allocation *a = malloc(sizeof *a);
    if (!a) abort();
    a->start = malloc(bytes ? bytes : 1);
    if (!a->start) abort();
    a->bytes = bytes;
    a->next = s.allocations;
    s.allocations = a;
    s.live.buffers++;
    s.live.bytes += bytes;
    *pointer = a->start;
    return cudaSuccess;
}

cudaError_t cudaFree(void *pointer) {
    ENTER_FREE();
    if (!pointer) return result(code_);
    for (allocation **link = &s.allocations; *link; link = &(*link)->next) {
        allocation *a = *link;
        if (a->start != pointer) continue;
        *link = a->next;
        s.live.buffers--;
        s.live.bytes -= a->bytes;
        free(a->start);
        free(a);
        return result(code_);
    }
    s.live.bad_frees++;
    return result(cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
    ENTER();
    *total = standin.memory_bytes;
    *available = standin.memory_bytes - s.live.bytes;
    return cudaSuccess;
}

/* ---- commands ------------------------------------------------------------------------------- */

static void run(const command *c) {
    s.now_ms += COMMAND_MS;
    if (c->what == COMMAND_SET) memset(c->to, c->value, c->bytes);
    if (c->what == COMMAND_COPY) memcpy(c->to, c->from, c->bytes);
    if (c->what != COMMAND_KERNEL) return;
    s.pending = standin.fault;
    standin.fault = 0;
    if (s.pending) return; /* a kernel that faults leaves no result */
    for (size_t i = 0; i < MAX_NAMED && s.kernels[i].run; i++) {
        if (strcmp(s.kernels[i].entry, c->kernel->entry) != 0) continue;
        void *args[MAX_ARGS];
        for (size_t k = 0; k < MAX_ARGS; k++)
            args[k] = (void *)(uintptr_t)&c->values[k];
        s.kernels[i].run(c->grid, c->block, c->shared, args);
    }
}

static cudaError_t enqueue(cudaStream_t stream, const command *c) {
    if (!stream->capture) {
        run(c);
        return cudaSuccess;
    }
    struct CUgraph_st *g = stream->capture;
    command *grown = realloc(g->commands, (g->count + 1) * sizeof *grown);
    if (!grown) abort();
    g->commands = grown;
    g->commands[g->count++] = *c;
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t bytes, cudaStream_t stream) {
    ENTER();
    if (!inside(pointer, bytes)) return result(cudaErrorInvalidValue);
    command c = {.what = COMMAND_SET, .to = pointer, .value = value, .bytes = bytes};
    return enqueue(stream, &c);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    ENTER();
    if (kind != cudaMemcpyHostToDevice && !inside(from, bytes))
        return result(cudaErrorInvalidValue);
    if (kind != cudaMemcpyDeviceToHost && !inside(to, bytes)) return result(cudaErrorInvalidValue);
    command c = {.what = COMMAND_COPY, .to = to, .from = from, .bytes = bytes};
    return enqueue(stream, &c);
}

cudaError_t cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args,
                             size_t shared, cudaStream_t stream) {
    ENTER();
    struct CUkern_st *kernel = (struct CUkern_st *)(uintptr_t)function;
    unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024)
        return result(cudaErrorInvalidConfiguration);
    if (shared > (size_t)kernel->dynamic_limit) return result(cudaErrorInvalidValue);
    command c = {
        .what = COMMAND_KERNEL, .kernel = kernel, .grid = grid, .block = block, .shared = shared};
    /* As on a device, the values are taken when the launch is enqueued. */
    for (size_t i = 0; i < MAX_NAMED && s.kernels[i].run; i++)
        if (strcmp(s.kernels[i].entry, kernel->entry) == 0)
            for (size_t k = 0; s.kernels[i].kinds[k]; k++)
                memcpy(&c.values[k], args[k], s.kernels[i].kinds[k] == 'p' ? sizeof(void *) : 4);
    return enqueue(stream, &c);
}

/* ---- streams and events --------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    ENTER();
    if (flags != cudaStreamNonBlocking) return result(cudaErrorInvalidValue);
    *stream = calloc(1, sizeof **stream);
    if (!*stream) abort();
    s.live.streams++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    ENTER_FREE();
    free(stream);
    s.live.streams--;
    return result(code_);
}

/* What a wait sees: a fault of an earlier kernel, or a capture that it breaks. */
static cudaError_t wait_for(cudaStream_t stream) {
    if (stream && stream->capture) {
        stream->invalid = true;
        return result(cudaErrorStreamCaptureUnsupported);
    }
    if (s.pending) s.sticky = s.pending;
    return result(s.sticky);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    ENTER();
    return wait_for(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    ENTER();
    return wait_for(stream);
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    ENTER();
    *event = calloc(1, sizeof **event);
    if (!*event) abort();
    s.live.events++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    ENTER_FREE();
    free(event);
    s.live.events--;
    return result(code_);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    ENTER();
    if (stream->capture) return result(cudaErrorStreamCaptureUnsupported);
    event->recorded = true;
    event->ms = s.now_ms;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    ENTER();
    (void)event;
    return wait_for(NULL);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    ENTER();
    if (!a->recorded || !b->recorded) return result(cudaErrorInvalidResourceHandle);
    float real = (float)(b->ms - a->ms);
    const float shown[] = {real, 0.0f, -real, NAN};
    *ms = shown[standin.timer];
    return cudaSuccess;
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* An image of the NVRTC stand-in is text: see nvrtc_standin.c. */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *options, void **option_values, unsigned count,
                                enum cudaLibraryOption *more, void **more_values,
                                unsigned more_count) {
    ENTER();
    (void)options, (void)option_values, (void)more, (void)more_values;
    if (count || more_count || strncmp(code, "STANDIN ", 8) != 0)
        return result(cudaErrorInvalidKernelImage);
    *library = calloc(1, sizeof **library);
    if (!*library) abort();
    (*library)->text = strdup(code);
    s.live.libraries++;
    return cudaSuccess;
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
    ENTER_FREE();
    while (library->kernels) {
        struct CUkern_st *kernel = library->kernels;
        library->kernels = kernel->next;
        free(kernel);
    }
    free(library->text);
    free(library);
    s.live.libraries--;
    return result(code_);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    ENTER();
    *kernel = NULL;
    if (!strstr(library->text, name)) return result(cudaErrorSymbolNotFound);
    struct CUkern_st *k = calloc(1, sizeof *k);
    if (!k) abort();
    snprintf(k->entry, sizeof k->entry, "%s", name);
    k->dynamic_limit = 48 << 10;
    k->next = library->kernels;
    library->kernels = k;
    *kernel = k;
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
    ENTER();
    const struct CUkern_st *k = function;
    memset(attributes, 0, sizeof *attributes);
    attributes->maxThreadsPerBlock = standin.max_threads;
    attributes->sharedSizeBytes = 1024;
    attributes->localSizeBytes = 16;
    attributes->numRegs = 40;
    attributes->maxDynamicSharedSizeBytes = k->dynamic_limit;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
    ENTER();
    struct CUkern_st *k = (struct CUkern_st *)(uintptr_t)function;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > (227 << 10) - 1024)
        return result(cudaErrorInvalidValue);
    k->dynamic_limit = value;
    return cudaSuccess;
}

/* ---- graphs --------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    ENTER();
    if (mode != cudaStreamCaptureModeThreadLocal || stream->capture)
        return result(cudaErrorIllegalState);
    stream->capture = calloc(1, sizeof *stream->capture);
    if (!stream->capture) abort();
    stream->invalid = false;
    s.live.graphs++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    ENTER_FREE();
    *graph = NULL;
    if (!stream->capture) return result(cudaErrorIllegalState);
    if (!stream->invalid && !code_) {
        *graph = stream->capture;
    } else {
        free(stream->capture->commands);
        free(stream->capture);
        s.live.graphs--;
    }
    stream->capture = NULL;
    return result(code_ ? code_ : stream->invalid ? cudaErrorStreamCaptureInvalidated : 0);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    ENTER_FREE();
    free(graph->commands);
    free(graph);
    s.live.graphs--;
    return result(code_);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags) {
    ENTER();
    (void)flags;
    *exec = calloc(1, sizeof **exec);
    if (!*exec) abort();
    (*exec)->graph.count = graph->count;
    (*exec)->graph.commands = malloc((graph->count + 1) * sizeof(command));
    if (!(*exec)->graph.commands) abort();
    if (graph->count)
        memcpy((*exec)->graph.commands, graph->commands, graph->count * sizeof(command));
    s.live.execs++;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    ENTER();
    (void)stream;
    for (size_t i = 0; i < exec->graph.count; i++)
        run(&exec->graph.commands[i]);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    ENTER_FREE();
    free(exec->graph.commands);
    free(exec);
    s.live.execs--;
    return result(code_);
}
