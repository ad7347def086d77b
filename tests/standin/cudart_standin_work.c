/* A stand-in for the CUDA runtime: see cudart_standin.h. Commands, streams, events, kernels,
 * graphs. Commands run when they are enqueued, or when their graph is launched; time is a counter
 * that every command moves on by 10 us, so that intervals are known exactly. */
#include "cudart_standin_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- commands ------------------------------------------------------------------------------- */

static void run(const command *c) {
    standin_s.now_ms += COMMAND_MS;
    if (c->what == COMMAND_SET) memset(c->to, c->value, c->bytes);
    if (c->what == COMMAND_COPY) memcpy(c->to, c->from, c->bytes);
    if (c->what != COMMAND_KERNEL) return;
    standin_s.pending = standin.fault;
    standin.fault = 0;
    if (standin_s.pending) return; /* a kernel that faults leaves no result */
    for (size_t i = 0; i < MAX_NAMED && standin_s.kernels[i].run; i++) {
        if (strcmp(standin_s.kernels[i].entry, c->kernel->entry) != 0) continue;
        void *args[MAX_ARGS];
        for (size_t k = 0; k < MAX_ARGS; k++)
            args[k] = (void *)(uintptr_t)&c->values[k];
        standin_s.kernels[i].run(c->grid, c->block, c->shared, args);
    }
}

static cudaError_t enqueue(cudaStream_t stream, const command *c) {
    stream->launched = c->what == COMMAND_KERNEL;
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
    if (!standin_inside(pointer, bytes)) return standin_result(cudaErrorInvalidValue);
    command c = {.what = COMMAND_SET, .to = pointer, .value = value, .bytes = bytes};
    return enqueue(stream, &c);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
    ENTER();
    if (kind != cudaMemcpyHostToDevice && !standin_inside(from, bytes))
        return standin_result(cudaErrorInvalidValue);
    if (kind != cudaMemcpyDeviceToHost && !standin_inside(to, bytes))
        return standin_result(cudaErrorInvalidValue);
    command c = {.what = COMMAND_COPY, .to = to, .from = from, .bytes = bytes};
    return enqueue(stream, &c);
}

static cudaError_t launch(const void *function, struct dim3 grid, struct dim3 block, void **args,
                          size_t shared, cudaStream_t stream) {
    struct CUkern_st *kernel = (struct CUkern_st *)(uintptr_t)function;
    unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
    if (!grid.x || !grid.y || !grid.z || !threads || threads > 1024)
        return standin_result(cudaErrorInvalidConfiguration);
    if (shared > (size_t)kernel->dynamic_limit) return standin_result(cudaErrorInvalidValue);
    command c = {
        .what = COMMAND_KERNEL, .kernel = kernel, .grid = grid, .block = block, .shared = shared};
    /* As on a device, the values are taken when the launch is enqueued. */
    for (size_t i = 0; i < MAX_NAMED && standin_s.kernels[i].run; i++)
        if (strcmp(standin_s.kernels[i].entry, kernel->entry) == 0)
            for (size_t k = 0; standin_s.kernels[i].kinds[k]; k++)
                memcpy(&c.values[k], args[k],
                       standin_s.kernels[i].kinds[k] == 'p' ? sizeof(void *) : 4);
    return enqueue(stream, &c);
}

cudaError_t cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **args,
                             size_t shared, cudaStream_t stream) {
    ENTER();
    return launch(function, grid, block, args, shared, stream);
}

/* Knows one attribute, and is stricter than the runtime: what begins early must wait by itself,
 * stand behind another launch, and be on a device that has such launches. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **args) {
    ENTER();
    const struct CUkern_st *kernel = function;
    if (config->numAttrs != 1 ||
        config->attrs->id != cudaLaunchAttributeProgrammaticStreamSerialization ||
        config->attrs->val.programmaticStreamSerializationAllowed != 1 || !kernel->waits ||
        !config->stream->launched || standin.cc_major < 9)
        return standin_result(cudaErrorNotSupported);
    return launch(function, config->gridDim, config->blockDim, args, config->dynamicSmemBytes,
                  config->stream);
}

/* ---- streams and events --------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    ENTER();
    if (flags != cudaStreamNonBlocking) return standin_result(cudaErrorInvalidValue);
    *stream = calloc(1, sizeof **stream);
    if (!*stream) abort();
    standin_s.live.streams++;
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    ENTER_FREE();
    free(stream);
    standin_s.live.streams--;
    return standin_result(code_);
}

/* What a wait sees: a fault of an earlier kernel, or a capture that it breaks. */
static cudaError_t wait_for(cudaStream_t stream) {
    if (stream && stream->capture) {
        stream->invalid = true;
        return standin_result(cudaErrorStreamCaptureUnsupported);
    }
    if (standin_s.pending) standin_s.sticky = standin_s.pending;
    return standin_result(standin_s.sticky);
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
    standin_s.live.events++;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    ENTER_FREE();
    free(event);
    standin_s.live.events--;
    return standin_result(code_);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    ENTER();
    if (stream->capture) return standin_result(cudaErrorStreamCaptureUnsupported);
    event->recorded = true;
    stream->launched = false;
    event->ms = standin_s.now_ms;
    return cudaSuccess;
}

/* Commands have run when they are enqueued, so there is nothing left to wait for. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    ENTER();
    if (flags) return standin_result(cudaErrorInvalidValue);
    if (!event->recorded) return standin_result(cudaErrorInvalidResourceHandle);
    if (stream->capture) return standin_result(cudaErrorStreamCaptureUnsupported);
    stream->launched = false;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    ENTER();
    (void)event;
    return wait_for(NULL);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
    ENTER();
    if (!a->recorded || !b->recorded) return standin_result(cudaErrorInvalidResourceHandle);
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
        return standin_result(cudaErrorInvalidKernelImage);
    *library = calloc(1, sizeof **library);
    if (!*library) abort();
    (*library)->text = strdup(code);
    standin_s.live.libraries++;
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
    standin_s.live.libraries--;
    return standin_result(code_);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name) {
    ENTER();
    *kernel = NULL;
    if (!strstr(library->text, name)) return standin_result(cudaErrorSymbolNotFound);
    struct CUkern_st *k = calloc(1, sizeof *k);
    if (!k) abort();
    snprintf(k->entry, sizeof k->entry, "%s", name);
    k->dynamic_limit = 48 << 10;
    k->waits = strstr(library->text, "griddepcontrol.wait") != NULL;
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

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int threads, size_t dynamic_bytes) {
    ENTER();
    (void)function;
    if (threads <= 0) return standin_result(cudaErrorInvalidValue);
    *blocks = dynamic_bytes > (100 << 10) ? 1 : 2;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute,
                                 int value) {
    ENTER();
    struct CUkern_st *k = (struct CUkern_st *)(uintptr_t)function;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value > (227 << 10) - 1024)
        return standin_result(cudaErrorInvalidValue);
    k->dynamic_limit = value;
    return cudaSuccess;
}

/* ---- graphs --------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode) {
    ENTER();
    if (mode != cudaStreamCaptureModeThreadLocal || stream->capture)
        return standin_result(cudaErrorIllegalState);
    stream->capture = calloc(1, sizeof *stream->capture);
    if (!stream->capture) abort();
    stream->invalid = false;
    stream->launched = false;
    standin_s.live.graphs++;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
    ENTER_FREE();
    *graph = NULL;
    if (!stream->capture) return standin_result(cudaErrorIllegalState);
    if (!stream->invalid && !code_) {
        *graph = stream->capture;
    } else {
        free(stream->capture->commands);
        free(stream->capture);
        standin_s.live.graphs--;
    }
    stream->capture = NULL;
    return standin_result(code_ ? code_ : stream->invalid ? cudaErrorStreamCaptureInvalidated : 0);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    ENTER_FREE();
    free(graph->commands);
    free(graph);
    standin_s.live.graphs--;
    return standin_result(code_);
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
    standin_s.live.execs++;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
    ENTER();
    stream->launched = false;
    for (size_t i = 0; i < exec->graph.count; i++)
        run(&exec->graph.commands[i]);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
    ENTER_FREE();
    free(exec->graph.commands);
    free(exec);
    standin_s.live.execs--;
    return standin_result(code_);
}
