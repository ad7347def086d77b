/* Kernels: compile with NVRTC for the device, load with the runtime's library calls, launch.
 * Entries are extern "C", so their name in the image is their name in the source.
 */
#include "compile.h"
#include "cuda_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The runtime takes a cudaKernel_t wherever it takes the address of a __global__ function. */
static const void *function_of(const lap_cuda_kernel *k) {
    return (const void *)k->kernel;
}

/* Say which side is too old when the driver refuses the image. */
static lap_status load_failed(const lap_cuda_kernel *k, const char *arch, cudaError_t code,
                              lap_error *err) {
    static const char call[] = "cudaLibraryLoadData";
    int major = 0, minor = 0, api = 0;
    (void)lap_cuda_nvrtc_version(&major, &minor, NULL, NULL);
    LAP_CUDA_IGNORE(cudaDriverGetVersion(&api));
    if (code != cudaErrorUnsupportedPtxVersion)
        return lap_cuda_check(code, call, __FILE__, __LINE__, err,
                              "loading %s, compiled for %s by NVRTC %d.%d, on cuda:%d with driver "
                              "%s (CUDA %d.%d)",
                              k->name, arch, major, minor, k->device->index, k->device->driver,
                              api / 1000, api % 1000 / 10);
    (void)cudaGetLastError();
    return LAP_FAIL_NATIVE(err, LAP_E_BUILD, call, code, cudaGetErrorName(code),
                           "%s: the code for %s that NVRTC %d.%d wrote is newer than the driver %s "
                           "(CUDA %d.%d) understands; update the driver, or name a libnvrtc of "
                           "CUDA %d.%d or older in LAP_NVRTC",
                           k->name, arch, major, minor, k->device->driver, api / 1000,
                           api % 1000 / 10, api / 1000, api % 1000 / 10);
}

static lap_status load(lap_cuda_kernel *k, const lap_build *build, const char *arch,
                       const void *image, lap_error *err) {
    cudaError_t code = cudaLibraryLoadData(&k->library, image, NULL, NULL, 0, NULL, NULL, 0);
    if (code != cudaSuccess) {
        k->library = NULL;
        return load_failed(k, arch, code, err);
    }
    return LAP_CUDA(err, cudaLibraryGetKernel(&k->kernel, k->library, build->entry),
                    "finding extern \"C\" __global__ %s in %s.cu", build->entry, build->stem);
}

/* Asking for the attributes also makes a lazily loading driver load now, not at the first launch.
 */
static lap_status describe(lap_cuda_kernel *k, lap_kernel_info *info, lap_error *err) {
    struct cudaFuncAttributes attributes = {0};
    LAP_TRY(LAP_CUDA(err, cudaFuncGetAttributes(&attributes, function_of(k)),
                     "asking for the limits of %s on cuda:%d", k->name, k->device->index));
    k->static_local_bytes = attributes.sharedSizeBytes;
    k->dynamic_limit = attributes.maxDynamicSharedSizeBytes > 0
                           ? (uint64_t)attributes.maxDynamicSharedSizeBytes
                           : 0;
    *info =
        (lap_kernel_info){.max_group_size = attributes.maxThreadsPerBlock > 0 &&
                                                    (uint32_t)attributes.maxThreadsPerBlock <
                                                        k->device->max_group_size
                                                ? (uint32_t)attributes.maxThreadsPerBlock
                                                : k->device->max_group_size,
                          .local_bytes = attributes.sharedSizeBytes,
                          .private_bytes = attributes.localSizeBytes,
                          .registers = attributes.numRegs > 0 ? (uint32_t)attributes.numRegs : 0,
                          .preferred_multiple = k->device->warp_size};
    return LAP_OK;
}

/* Does the code wait by itself for the launch before it? What was compiled with the wait
 * (kernels_cu/overlap.cuh) has this variable, which nothing uses; CUBIN and PTX keep its name. */
static bool has_wait(const void *image, size_t bytes) {
    static const char mark[] = "warmlap_waits_for_earlier";
    const char *at = image, *end = at + bytes;
    while ((at = memchr(at, mark[0], (size_t)(end - at)))) {
        if ((size_t)(end - at) >= sizeof mark - 1 && memcmp(at, mark, sizeof mark - 1) == 0)
            return true;
        at++;
    }
    return false;
}

/* Load image, which becomes the kernel's own (freed on failure too). */
static lap_status kernel_of(lap_cuda_device *d, const lap_build *build, const char *arch,
                            void *image, size_t bytes, void **kernel, lap_kernel_info *info,
                            lap_error *err) {
    lap_cuda_kernel *k = calloc(1, sizeof *k);
    if (!k) {
        free(image);
        return LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for a kernel", d->index);
    }
    k->device = d;
    k->image = image;
    k->image_bytes = bytes;
    k->waits = d->cc_major >= 9 && has_wait(image, bytes);
    snprintf(k->name, sizeof k->name, "%s.cu (%s)", build->stem, build->entry);
    lap_status status = load(k, build, arch, image, err);
    if (status == LAP_OK) status = describe(k, info, err);
    if (status != LAP_OK) {
        lap_cuda_kernel_free(k);
        return status;
    }
    *kernel = k;
    return LAP_OK;
}

lap_status lap_cuda_kernel_build(void *device, const lap_build *build, void **kernel,
                                 lap_kernel_info *info, lap_error *err) {
    *kernel = NULL;
    *info = (lap_kernel_info){0};
    lap_cuda_device *d = device;
    LAP_TRY(lap_cuda_use(d, err));
    char arch[16];
    LAP_TRY(lap_cuda_arch(d->cc_major, d->cc_minor, arch, sizeof arch, err));
    void *image;
    size_t bytes;
    LAP_TRY(lap_cuda_compile(build, arch, &image, &bytes, err));
    return kernel_of(d, build, arch, image, bytes, kernel, info, err);
}

/* The image is kept until it is asked for; the runtime has a copy of its own. */
lap_status lap_cuda_kernel_binary(void *kernel, void **bytes, size_t *size, lap_error *err) {
    lap_cuda_kernel *k = kernel;
    if (!k->image) return LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s: its image is gone", k->name);
    *bytes = k->image;
    *size = k->image_bytes;
    k->image = NULL;
    return LAP_OK;
}

/* No compiler is needed, so a machine whose NVRTC was removed still runs what it has built. */
lap_status lap_cuda_kernel_load(void *device, const lap_build *build, const void *bytes,
                                size_t size, void **kernel, lap_kernel_info *info, lap_error *err) {
    *kernel = NULL;
    *info = (lap_kernel_info){0};
    lap_cuda_device *d = device;
    LAP_TRY(lap_cuda_use(d, err));
    void *image = calloc(1, size + 1); /* PTX is text: terminated whatever the file holds */
    if (!image) return LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for a kernel", d->index);
    memcpy(image, bytes, size);
    lap_status status = kernel_of(d, build, "this device", image, size, kernel, info, err);
    if (status != LAP_OK) return status;
    lap_cuda_kernel *k = *kernel;
    free(k->image);
    k->image = NULL;
    return LAP_OK;
}

void lap_cuda_kernel_free(void *kernel) {
    lap_cuda_kernel *k = kernel;
    if (!k) return;
    (void)lap_cuda_use(k->device, NULL);
    if (k->library) LAP_CUDA_IGNORE(cudaLibraryUnload(k->library));
    free(k->image);
    free(k);
}

/* More dynamic shared memory than the default 48 KiB has to be asked for, once for a kernel. */
static lap_status allow_dynamic(lap_cuda_kernel *k, size_t bytes, lap_error *err) {
    if (bytes <= k->dynamic_limit) return LAP_OK;
    uint64_t most = k->device->local_optin_bytes;
    if (bytes > most || bytes + k->static_local_bytes > most)
        return LAP_FAIL(err, LAP_E_LAUNCH,
                        "%s on cuda:%d: %zu bytes of dynamic and %llu of static shared memory are "
                        "more than the %llu a group can have",
                        k->name, k->device->index, bytes, (unsigned long long)k->static_local_bytes,
                        (unsigned long long)most);
    LAP_TRY(LAP_CUDA(err,
                     cudaFuncSetAttribute(function_of(k),
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                     "%s on cuda:%d: asking for %zu bytes of dynamic shared memory", k->name,
                     k->device->index, bytes));
    k->dynamic_limit = bytes;
    return LAP_OK;
}

lap_status lap_cuda_kernel_resident(void *kernel, const uint32_t local[3],
                                    size_t dynamic_local_bytes, uint64_t *groups, lap_error *err) {
    lap_cuda_kernel *k = kernel;
    *groups = 0;
    LAP_TRY(lap_cuda_use(k->device, err));
    LAP_TRY(allow_dynamic(k, dynamic_local_bytes, err));
    int of_one = 0, units = 0;
    LAP_TRY(LAP_CUDA(
        err,
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &of_one, function_of(k), (int)(local[0] * local[1] * local[2]), dynamic_local_bytes),
        "asking how many groups of %s a multiprocessor of cuda:%d holds", k->name,
        k->device->index));
    LAP_TRY(LAP_CUDA(
        err, cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, k->device->index),
        "asking for the multiprocessors of cuda:%d", k->device->index));
    *groups = (uint64_t)of_one * (uint64_t)units;
    return LAP_OK;
}

/* With the attribute the groups are started when those of the launch in front have ended, before
 * what they wrote can be read; a captured graph has it as the kind of its edge. No kernel asks for
 * the next one earlier (griddepcontrol.launch_dependents): docs/PERFORMANCE.md. */
static cudaError_t start(const lap_cuda_queue *q, const lap_cuda_kernel *k,
                         const lap_raw_launch *launch, void **args, const char **call) {
    const uint32_t *g = launch->groups, *l = launch->local;
    struct dim3 grid = {g[0], g[1], g[2]}, block = {l[0], l[1], l[2]};
    *call = "cudaLaunchKernel";
    if (!launch->overlap || !k->waits)
        return cudaLaunchKernel(function_of(k), grid, block, args, launch->dynamic_local_bytes,
                                q->stream);
    *call = "cudaLaunchKernelExC";
    cudaLaunchAttribute early = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                 .val = {.programmaticStreamSerializationAllowed = 1}};
    cudaLaunchConfig_t config = {.gridDim = grid,
                                 .blockDim = block,
                                 .dynamicSmemBytes = launch->dynamic_local_bytes,
                                 .stream = q->stream,
                                 .attrs = &early,
                                 .numAttrs = 1};
    return cudaLaunchKernelExC(&config, function_of(k), args);
}

lap_status lap_cuda_enqueue(void *queue, void *kernel, const lap_raw_launch *launch,
                            lap_error *err) {
    lap_cuda_queue *q = queue;
    lap_cuda_kernel *k = kernel;
    LAP_TRY(lap_cuda_use(q->device, err));
    LAP_TRY(allow_dynamic(k, launch->dynamic_local_bytes, err));
    union {
        void *pointer;
        int32_t i32;
    } values[LAP_MAX_ARGS];
    void *args[LAP_MAX_ARGS];
    for (size_t i = 0; i < launch->arg_count; i++) {
        const lap_raw_arg *arg = &launch->args[i];
        const lap_cuda_buffer *buffer = arg->buffer;
        if (arg->kind == LAP_ARG_BUFFER)
            values[i].pointer = buffer ? buffer->pointer : NULL;
        else
            values[i].i32 = arg->i32;
        args[i] = &values[i];
    }
    const uint32_t *g = launch->groups, *l = launch->local;
    const char *call;
    cudaError_t code = start(q, k, launch, args, &call);
    return lap_cuda_check(
        code, call, __FILE__, __LINE__, err,
        "launching %s on cuda:%d with %ux%ux%u groups of %ux%ux%u and %zu bytes of dynamic shared "
        "memory",
        k->name, k->device->index, g[0], g[1], g[2], l[0], l[1], l[2], launch->dynamic_local_bytes);
}
