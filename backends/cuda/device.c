/* What CUDA devices there are, opening and closing one. Enumeration makes no context: it asks for
 * properties and attributes only, so listing neither takes device memory nor disturbs others.
 */
#include "compile.h"
#include "cuda_backend.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- versions ------------------------------------------------------------------------------- */

static int api_major(int version) {
    return version / 1000;
}

static int api_minor(int version) {
    return version % 1000 / 10;
}

void lap_cuda_version(char *buffer, size_t size) {
    int runtime = 0, major, minor;
    const char *path;
    LAP_CUDA_IGNORE(cudaRuntimeGetVersion(&runtime));
    int n = snprintf(buffer, size, "CUDA runtime %d.%d (static), ", api_major(runtime),
                     api_minor(runtime));
    if (n < 0 || (size_t)n >= size) return;
    lap_error why = {0};
    if (lap_cuda_nvrtc_version(&major, &minor, &path, &why) == LAP_OK)
        snprintf(buffer + n, size - (size_t)n, "NVRTC %d.%d (%s)", major, minor, path);
    else
        snprintf(buffer + n, size - (size_t)n, "%s", why.message);
}

/* The line reads "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release …":
 * the version is the first word of digits and dots only. */
bool lap_cuda_driver_text(const char *line, char *text, size_t size) {
    if (size) text[0] = '\0';
    while (*line) {
        line += strspn(line, " \t\r\n");
        size_t length = strcspn(line, " \t\r\n");
        size_t digits = strspn(line, "0123456789.");
        if (length && digits == length && memchr(line, '.', length) && *line != '.' &&
            length < size) {
            memcpy(text, line, length);
            text[length] = '\0';
            return true;
        }
        line += length;
    }
    return false;
}

/* The driver's own version if the kernel module tells it, else what the API tells. */
static void driver_version(int api, char *text, size_t size) {
    char line[256] = "";
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    if (file) {
        if (!fgets(line, sizeof line, file)) line[0] = '\0';
        fclose(file);
    }
    if (!lap_cuda_driver_text(line, text, size))
        snprintf(text, size, "CUDA driver API %d.%d", api_major(api), api_minor(api));
}

/* ---- enumeration ---------------------------------------------------------------------------- */

/* Why there is nothing to list, in words that say what to do. */
static lap_status note_no_devices(lap_list_builder *builder, cudaError_t code, lap_error *err) {
    int runtime = 0, api = 0;
    LAP_CUDA_IGNORE(cudaRuntimeGetVersion(&runtime));
    LAP_CUDA_IGNORE(cudaDriverGetVersion(&api));
    int major = api_major(runtime), minor = api_minor(runtime);
    char reason[400];
    if (code == cudaErrorInsufficientDriver && api == 0)
        snprintf(reason, sizeof reason,
                 "no NVIDIA driver: libcuda.so.1 was not found or is older than CUDA %d.%d needs",
                 major, minor);
    else if (code == cudaErrorInsufficientDriver)
        snprintf(reason, sizeof reason,
                 "the NVIDIA driver is too old: it supports CUDA %d.%d, this program needs one for "
                 "CUDA %d.%d",
                 api_major(api), api_minor(api), major, minor);
    else if (code == cudaSuccess || code == cudaErrorNoDevice)
        snprintf(reason, sizeof reason,
                 "the NVIDIA driver is there, but shows no CUDA device: no GPU, no access to "
                 "/dev/nvidia*, or hidden by CUDA_VISIBLE_DEVICES");
    else if (code == cudaErrorInitializationError || code == cudaErrorUnknown)
        snprintf(reason, sizeof reason,
                 "the NVIDIA driver did not start: often the kernel module is not loaded, was "
                 "updated without a reboot, or /dev/nvidia* cannot be opened");
    else
        snprintf(reason, sizeof reason, "CUDA could not be asked for its devices");
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char hidden[128] = "";
    if (visible) snprintf(hidden, sizeof hidden, "; CUDA_VISIBLE_DEVICES is \"%.80s\"", visible);
    if (code == cudaSuccess)
        return lap_list_add_note(builder, "cuda", "", err, "%s%s", reason, hidden);
    return lap_list_add_note(builder, "cuda", "", err, "%s (%s, %d: %s)%s", reason,
                             cudaGetErrorName(code), (int)code, cudaGetErrorString(code), hidden);
}

static uint64_t at_least_0(int value) {
    return value > 0 ? (uint64_t)value : 0;
}

static uint32_t count32(int value) {
    return value > 0 ? (uint32_t)value : 0;
}

static void fill_identity(lap_device_info *info, const struct cudaDeviceProp *p) {
    _Static_assert(sizeof p->uuid.bytes == sizeof info->uuid, "a UUID has 16 bytes");
    memcpy(info->uuid, p->uuid.bytes, sizeof info->uuid);
    for (size_t i = 0; i < sizeof info->uuid; i++)
        if (info->uuid[i]) info->has_uuid = true;
    /* From the API, so it is right whatever CUDA_VISIBLE_DEVICES or CUDA_DEVICE_ORDER say. */
    info->has_pci = true;
    info->pci_domain = count32(p->pciDomainID);
    info->pci_bus = count32(p->pciBusID);
    info->pci_device = count32(p->pciDeviceID);
}

static void fill_limits(lap_device_info *info, const struct cudaDeviceProp *p) {
    info->type = LAP_DEVICE_GPU;
    info->host_memory = p->integrated != 0;
    info->local_is_real = true;
    info->cc_major = p->major;
    info->cc_minor = p->minor;
    info->has_fp16 = p->major > 5 || (p->major == 5 && p->minor >= 3);
    info->memory_bytes = info->max_alloc_bytes = p->totalGlobalMem;
    info->cache_bytes = at_least_0(p->l2CacheSize);
    info->local_bytes = p->sharedMemPerBlock;
    info->local_optin_bytes = p->sharedMemPerBlockOptin > p->sharedMemPerBlock
                                  ? p->sharedMemPerBlockOptin
                                  : p->sharedMemPerBlock;
    info->units = count32(p->multiProcessorCount);
    info->max_group_size = count32(p->maxThreadsPerBlock);
    for (int i = 0; i < 3; i++)
        info->max_group_dim[i] = count32(p->maxThreadsDim[i]);
    info->simd_width = count32(p->warpSize);
    info->base_align_bytes = 256;
    info->timer_resolution_s = 0.5e-6; /* as the manual says of cudaEventElapsedTime */
}

static lap_status add_device(lap_list_builder *builder, int index, const lap_device_info *common,
                             lap_error *err) {
    struct cudaDeviceProp properties;
    memset(&properties, 0, sizeof properties);
    lap_error why = {0};
    if (LAP_CUDA(&why, cudaGetDeviceProperties(&properties, index),
                 "asking for the properties of cuda:%d", index) != LAP_OK) {
        char text[400];
        lap_error_text(&why, text, sizeof text);
        return lap_list_add_note(builder, "cuda", common->platform, err, "cuda:%d not listed: %s",
                                 index, text);
    }
    lap_device_info info = *common;
    snprintf(info.selector, sizeof info.selector, "cuda:%d", index);
    snprintf(info.name, sizeof info.name, "%.255s", properties.name);
    lap_text_clean(info.name);
    fill_identity(&info, &properties);
    fill_limits(&info, &properties);
    int khz = 0; /* no longer in the properties; not known on every device */
    if (LAP_CUDA(NULL, cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, index), "clock") ==
        LAP_OK)
        info.clock_mhz = count32(khz / 1000);
    info.native[0] = (uint64_t)index;
    return lap_list_add_device(builder, &info, err);
}

lap_status lap_cuda_enumerate(lap_list_builder *builder, lap_error *err) {
    int count = 0, api = 0, major, minor;
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count < 1) {
        (void)cudaGetLastError();
        return note_no_devices(builder, code, err);
    }
    lap_device_info common = {.backend = "cuda",
                              .language = "cu",
                              .platform = "NVIDIA CUDA",
                              .vendor = "NVIDIA Corporation"};
    LAP_CUDA_IGNORE(cudaDriverGetVersion(&api));
    driver_version(api, common.driver, sizeof common.driver);
    snprintf(common.api, sizeof common.api, "CUDA %d.%d", api_major(api), api_minor(api));
    lap_error missing = {0};
    if (lap_cuda_nvrtc_version(&major, &minor, NULL, &missing) == LAP_OK) {
        snprintf(common.toolchain, sizeof common.toolchain, "NVRTC %d.%d", major, minor);
    } else {
        snprintf(common.toolchain, sizeof common.toolchain, "NVRTC missing");
        LAP_TRY(lap_list_add_note(builder, "cuda", common.platform, err, "%s", missing.message));
    }
    for (int i = 0; i < count; i++)
        LAP_TRY(add_device(builder, i, &common, err));
    return LAP_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

lap_status lap_cuda_open(const lap_device_info *info, void **device, lap_error *err) {
    *device = NULL;
    int index = (int)info->native[0];
    LAP_TRY(LAP_CUDA(err, cudaSetDevice(index), "opening cuda:%d (%s)", index, info->name));
    /* Makes the context now, so that a device that cannot be used fails here. */
    LAP_TRY(LAP_CUDA(err, cudaFree(NULL), "opening cuda:%d (%s)", index, info->name));
    lap_cuda_device *d = calloc(1, sizeof *d);
    if (!d) return LAP_FAIL(err, LAP_E_NOMEM, "cuda:%d: no host memory for a device", index);
    d->index = index;
    d->cc_major = info->cc_major;
    d->cc_minor = info->cc_minor;
    d->warp_size = info->simd_width;
    d->max_group_size = info->max_group_size;
    d->local_optin_bytes = info->local_optin_bytes;
    memcpy(d->driver, info->driver, sizeof d->driver);
    *device = d;
    return LAP_OK;
}

/* The context stays until the process ends: a reset would take other users of this process's
 * context with it, and the next open is then cheap. */
void lap_cuda_close(void *device) {
    free(device);
}

lap_status lap_cuda_memory(void *device, uint64_t *free_bytes, uint64_t *total_bytes,
                           lap_error *err) {
    const lap_cuda_device *d = device;
    *free_bytes = *total_bytes = 0;
    LAP_TRY(lap_cuda_use(d, err));
    size_t available = 0, total = 0;
    LAP_TRY(LAP_CUDA(err, cudaMemGetInfo(&available, &total), "asking cuda:%d for its free memory",
                     d->index));
    *free_bytes = available;
    *total_bytes = total;
    return LAP_OK;
}
