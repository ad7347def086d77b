/* What a device says of itself. A query that fails leaves 0 or "": only the name is never empty.
 *
 * Drivers differ in how they end strings (no NUL, several, blanks, control characters), so all text
 * is read by length and cleaned here, where it enters the program.
 */
#include "opencl.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Extension queries, by value: not every header has them. */
enum {
    QUERY_UUID_KHR = 0x106A,
    QUERY_PCI_BUS_INFO_KHR = 0x410F,
    QUERY_CC_MAJOR_NV = 0x4000,
    QUERY_CC_MINOR_NV = 0x4001,
    QUERY_WARP_SIZE_NV = 0x4003,
    QUERY_INTEGRATED_MEMORY_NV = 0x4006,
    QUERY_PCI_BUS_NV = 0x4008,
    QUERY_PCI_SLOT_NV = 0x4009,
    QUERY_PCI_DOMAIN_NV = 0x400A,
    QUERY_TOPOLOGY_AMD = 0x4037,
    QUERY_WAVEFRONT_WIDTH_AMD = 0x4043,
    QUERY_HOST_UNIFIED_MEMORY = 0x1035
};

enum { TEXT_LIMIT = 1 << 16 }; /* extension lists are a few KiB; more is a driver's mistake */

/* ---- text ----------------------------------------------------------------------------------- */

/* bytes[0..size) as a string: it ends at the first NUL or at size, and is cleaned. */
static char *finish_text(char *bytes, size_t size) {
    bytes[size] = '\0';
    return lap_text_clean(bytes);
}

char *lap_cl_device_text(cl_device_id device, cl_device_info what) {
    size_t size = 0;
    if (LAP_CL(NULL, LAP_CL_QUERY, "", clGetDeviceInfo(device, what, 0, NULL, &size)) != LAP_OK ||
        size == 0 || size > TEXT_LIMIT)
        return NULL;
    char *text = calloc(1, size + 1);
    if (!text) return NULL;
    if (LAP_CL(NULL, LAP_CL_QUERY, "", clGetDeviceInfo(device, what, size, text, NULL)) != LAP_OK) {
        free(text);
        return NULL;
    }
    return finish_text(text, size);
}

char *lap_cl_platform_text(cl_platform_id platform, cl_platform_info what) {
    size_t size = 0;
    if (LAP_CL(NULL, LAP_CL_QUERY, "", clGetPlatformInfo(platform, what, 0, NULL, &size)) !=
            LAP_OK ||
        size == 0 || size > TEXT_LIMIT)
        return NULL;
    char *text = calloc(1, size + 1);
    if (!text) return NULL;
    if (LAP_CL(NULL, LAP_CL_QUERY, "", clGetPlatformInfo(platform, what, size, text, NULL)) !=
        LAP_OK) {
        free(text);
        return NULL;
    }
    return finish_text(text, size);
}

void lap_cl_copy_text(char *to, size_t size, const char *from) {
    size_t n = from ? strlen(from) : 0;
    if (n > size - 1) {
        n = size - 1;
        /* from is valid UTF-8: step back over the tail of a character that does not fit. */
        while (n > 0 && ((unsigned char)from[n] & 0xC0) == 0x80)
            n--;
    }
    if (n > 0) memcpy(to, from, n);
    to[n] = '\0';
}

static void take_text(char *to, size_t size, char *owned) {
    lap_cl_copy_text(to, size, owned);
    free(owned);
}

bool lap_cl_has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *p = strstr(list, word); p; p = strstr(p + 1, word)) {
        bool starts = p == list || p[-1] == ' ';
        if (starts && (p[n] == ' ' || p[n] == '\0')) return true;
    }
    return false;
}

/* ---- values --------------------------------------------------------------------------------- */

bool lap_cl_device_value(cl_device_id device, cl_device_info what, void *value, size_t size) {
    memset(value, 0, size);
    size_t got = 0;
    if (LAP_CL(NULL, LAP_CL_QUERY, "", clGetDeviceInfo(device, what, size, value, &got)) ==
            LAP_OK &&
        got == size)
        return true;
    memset(value, 0, size);
    return false;
}

static uint32_t get_u32(cl_device_id device, cl_device_info what) {
    cl_uint value;
    lap_cl_device_value(device, what, &value, sizeof value);
    return value;
}

static uint64_t get_u64(cl_device_id device, cl_device_info what) {
    cl_ulong value;
    lap_cl_device_value(device, what, &value, sizeof value);
    return value;
}

static size_t get_size(cl_device_id device, cl_device_info what) {
    size_t value;
    lap_cl_device_value(device, what, &value, sizeof value);
    return value;
}

static uint32_t to_u32(size_t value) {
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

/* ---- the description ------------------------------------------------------------------------ */

/* A set: CL_DEVICE_TYPE_DEFAULT may be in it too. Simulators claim to be everything at once; such a
 * device must not be preferred as a GPU would be. */
static lap_device_type device_type(cl_device_id device) {
    cl_device_type type;
    lap_cl_device_value(device, CL_DEVICE_TYPE, &type, sizeof type);
    switch (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_ACCELERATOR)) {
    case CL_DEVICE_TYPE_GPU:
        return LAP_DEVICE_GPU;
    case CL_DEVICE_TYPE_CPU:
        return LAP_DEVICE_CPU;
    case CL_DEVICE_TYPE_ACCELERATOR:
        return LAP_DEVICE_ACCELERATOR;
    default:
        return LAP_DEVICE_OTHER;
    }
}

/* "OpenCL 3.0 CUDA" -> "OpenCL 3.0" */
static void api_text(char *to, size_t size, const char *version) {
    size_t n = strcspn(version, " ");
    if (version[n] == ' ') n += 1 + strcspn(version + n + 1, " ");
    snprintf(to, size, "%.*s", (int)(n < size ? n : size - 1), version);
}

/* What a compiled kernel depends on: everything the driver says of its version. The platform's text
 * names the compiler (PoCL: its LLVM; NVIDIA: its CUDA). */
static void fill_texts(cl_platform_id platform, cl_device_id device, lap_device_info *info) {
    take_text(info->platform, sizeof info->platform,
              lap_cl_platform_text(platform, CL_PLATFORM_NAME));
    take_text(info->name, sizeof info->name, lap_cl_device_text(device, CL_DEVICE_NAME));
    if (!info->name[0]) snprintf(info->name, sizeof info->name, "unnamed OpenCL device");
    take_text(info->vendor, sizeof info->vendor, lap_cl_device_text(device, CL_DEVICE_VENDOR));
    take_text(info->driver, sizeof info->driver, lap_cl_device_text(device, CL_DRIVER_VERSION));

    char *device_version = lap_cl_device_text(device, CL_DEVICE_VERSION);
    char *platform_version = lap_cl_platform_text(platform, CL_PLATFORM_VERSION);
    if (device_version) api_text(info->api, sizeof info->api, device_version);
    lap_text all = {0};
    lap_text_addf(&all, "driver %s", info->driver[0] ? info->driver : "of unknown version");
    if (device_version) lap_text_addf(&all, "; %s", device_version);
    if (platform_version && (!device_version || strcmp(platform_version, device_version) != 0))
        lap_text_addf(&all, "; %s", platform_version);
    lap_cl_copy_text(info->toolchain, sizeof info->toolchain, lap_text_get(&all));
    lap_text_free(&all);
    free(device_version);
    free(platform_version);
}

static void fill_limits(cl_device_id device, lap_device_info *info) {
    info->memory_bytes = get_u64(device, CL_DEVICE_GLOBAL_MEM_SIZE);
    info->max_alloc_bytes = get_u64(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    info->cache_bytes = get_u64(device, CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
    info->local_bytes = get_u64(device, CL_DEVICE_LOCAL_MEM_SIZE);
    info->local_optin_bytes = info->local_bytes;
    info->local_is_real = get_u32(device, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
    info->units = get_u32(device, CL_DEVICE_MAX_COMPUTE_UNITS);
    info->clock_mhz = get_u32(device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
    info->max_group_size = to_u32(get_size(device, CL_DEVICE_MAX_WORK_GROUP_SIZE));
    uint32_t bits = get_u32(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN);
    info->base_align_bytes = bits >= 8 ? bits / 8 : 1;
    info->timer_resolution_s =
        (double)get_size(device, CL_DEVICE_PROFILING_TIMER_RESOLUTION) * 1e-9;

    /* A device may have more than three dimensions; the list is then longer. */
    size_t sizes[16] = {0}, bytes = 0;
    lap_status status =
        LAP_CL(NULL, LAP_CL_QUERY, "",
               clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, &bytes));
    for (size_t i = 0; i < 3 && status == LAP_OK && (i + 1) * sizeof sizes[0] <= bytes; i++)
        info->max_group_dim[i] = to_u32(sizes[i]);
}

static void fill_pci(cl_device_id device, const char *extensions, lap_device_info *info) {
    cl_uint khr[4];        /* domain, bus, device, function */
    unsigned char amd[24]; /* type (4 bytes), 17 unused, bus, device, function */
    if (lap_cl_has_word(extensions, "cl_khr_pci_bus_info") &&
        lap_cl_device_value(device, QUERY_PCI_BUS_INFO_KHR, khr, sizeof khr)) {
        info->has_pci = true;
        info->pci_domain = khr[0];
        info->pci_bus = khr[1];
        info->pci_device = khr[2];
        info->pci_function = khr[3];
        return;
    }
    cl_uint bus, slot, domain;
    if (lap_cl_has_word(extensions, "cl_nv_device_attribute_query") &&
        lap_cl_device_value(device, QUERY_PCI_BUS_NV, &bus, sizeof bus) &&
        lap_cl_device_value(device, QUERY_PCI_SLOT_NV, &slot, sizeof slot)) {
        lap_cl_device_value(device, QUERY_PCI_DOMAIN_NV, &domain, sizeof domain);
        info->has_pci = true;
        info->pci_domain = domain;
        info->pci_bus = bus;
        info->pci_device = slot >> 3; /* the slot holds both, as in PCI's own address */
        info->pci_function = slot & 7;
        return;
    }
    cl_uint type = 0;
    if (lap_cl_has_word(extensions, "cl_amd_device_attribute_query") &&
        lap_cl_device_value(device, QUERY_TOPOLOGY_AMD, amd, sizeof amd)) {
        memcpy(&type, amd, sizeof type);
        info->has_pci = type == 1; /* 1: PCI Express */
        info->pci_bus = amd[21];
        info->pci_device = amd[22];
        info->pci_function = amd[23];
    }
}

static void fill_identity(cl_device_id device, const char *extensions, lap_device_info *info) {
    static const uint8_t zeros[sizeof info->uuid];
    if (lap_cl_has_word(extensions, "cl_khr_device_uuid") &&
        lap_cl_device_value(device, QUERY_UUID_KHR, info->uuid, sizeof info->uuid))
        info->has_uuid = memcmp(info->uuid, zeros, sizeof zeros) != 0;
    fill_pci(device, extensions, info);
}

/* Local memory of a group by compute capability, from NVIDIA's programming guide, less 1 KiB for
 * what the driver puts before a kernel's own. The driver lists 48 KiB and promises no more; kernels
 * that declare more were seen to build and run, and whoever wants it tries. */
static uint64_t unlisted_local(int major, int minor) {
    static const struct {
        int major, minor; /* minor -1: any */
        uint64_t kib;
    } known[] = {
        {7, 5, 64},  {7, -1, 96},  {8, 0, 163},   {8, 7, 163},
        {8, -1, 99}, {9, -1, 227}, {10, -1, 227}, {12, -1, 99},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].major == major && (known[i].minor == minor || known[i].minor < 0))
            return (known[i].kib - 1) << 10;
    return 0;
}

/* The width that kernels are written for: lanes in lockstep on GPUs, vector lanes on CPUs. */
static void fill_simd(cl_device_id device, const char *extensions, lap_device_info *info) {
    if (lap_cl_has_word(extensions, "cl_nv_device_attribute_query")) {
        info->cc_major = (int)get_u32(device, QUERY_CC_MAJOR_NV);
        info->cc_minor = (int)get_u32(device, QUERY_CC_MINOR_NV);
        info->simd_width = get_u32(device, QUERY_WARP_SIZE_NV);
        uint64_t local = unlisted_local(info->cc_major, info->cc_minor);
        if (local > info->local_bytes) info->local_optin_bytes = local;
        if (get_u32(device, QUERY_INTEGRATED_MEMORY_NV)) info->host_memory = true;
    } else if (lap_cl_has_word(extensions, "cl_amd_device_attribute_query") &&
               info->type == LAP_DEVICE_GPU) {
        info->simd_width = get_u32(device, QUERY_WAVEFRONT_WIDTH_AMD);
    }
    if (info->type == LAP_DEVICE_CPU)
        info->simd_width = get_u32(device, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
}

void lap_cl_device_describe(cl_platform_id platform, cl_device_id device, lap_device_info *info) {
    snprintf(info->backend, sizeof info->backend, "opencl");
    snprintf(info->language, sizeof info->language, "cl");
    info->native[0] = (uint64_t)(uintptr_t)platform;
    info->native[1] = (uint64_t)(uintptr_t)device;
    fill_texts(platform, device, info);
    info->type = device_type(device);
    info->host_memory =
        info->type == LAP_DEVICE_CPU || get_u32(device, QUERY_HOST_UNIFIED_MEMORY) != 0;
    fill_limits(device, info);
    char *list = lap_cl_device_text(device, CL_DEVICE_EXTENSIONS);
    const char *extensions = list ? list : "";
    info->has_fp16 = lap_cl_has_word(extensions, "cl_khr_fp16");
    fill_identity(device, extensions, info);
    fill_simd(device, extensions, info);
    free(list);
}
