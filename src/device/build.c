/* Kernels: argument checks, the cache of built ones, then the backend's compiler. */
#include "device/build_cache.h"
#include "device/objects.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- checks --------------------------------------------------------------------------------- */

/* Names go into a compiler's command line or source: nothing but an identifier may pass. */
static bool is_identifier(const char *name, size_t size) {
    size_t n = strnlen(name, size);
    if (n == 0 || n == size || isdigit((unsigned char)name[0])) return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '_') return false;
    }
    return true;
}

static lap_status check_build(const lap_build *build, lap_error *err) {
    if (!build || !build->stem || !build->source || !build->entry)
        return LAP_FAIL(err, LAP_E_ARG, "lap_kernel_build: stem, source or entry is NULL");
    if (!build->source[0])
        return LAP_FAIL(err, LAP_E_ARG, "lap_kernel_build: %s has no source text", build->stem);
    if (!is_identifier(build->entry, 256))
        return LAP_FAIL(err, LAP_E_ARG, "lap_kernel_build: %s: entry \"%s\" is not an identifier",
                        build->stem, build->entry);
    if (build->define_count > 0 && !build->defines)
        return LAP_FAIL(err, LAP_E_ARG, "lap_kernel_build: %s: defines is NULL, its count is %zu",
                        build->stem, build->define_count);
    for (size_t i = 0; i < build->define_count; i++) {
        const lap_define *d = &build->defines[i];
        if (!is_identifier(d->name, sizeof d->name))
            return LAP_FAIL(err, LAP_E_ARG,
                            "lap_kernel_build: %s: define %zu (\"%.*s\") is not an identifier",
                            build->stem, i, (int)sizeof d->name, d->name);
    }
    return LAP_OK;
}

/* ---- the cache ------------------------------------------------------------------------------ */

void lap_device_use_cache(lap_device *device, lap_build_cache *cache) {
    bool able = device->ops->kernel_binary && device->ops->kernel_load;
    device->cache = able ? cache : NULL;
}

void lap_device_build_counts(const lap_device *device, uint64_t *cached, uint64_t *compiled) {
    *cached = device->build_cached;
    *compiled = device->build_compiled;
}

static lap_status compile(lap_device *device, const lap_build *build, lap_kernel *kernel,
                          lap_error *err) {
    LAP_TRY(device->ops->kernel_build(device->handle, build, &kernel->handle, &kernel->info, err));
    device->build_compiled++;
    return LAP_OK;
}

/* From the cache; false: compile it. What a driver refuses to load is no good to the next start
 * either. */
static bool load_cached(lap_device *device, const lap_build *build, const char *key,
                        lap_kernel *kernel, lap_status *status, lap_error *err) {
    void *bytes;
    size_t size;
    if (!lap_build_cache_read(device->cache, key, &bytes, &size)) return false;
    lap_error detail = {0};
    *status = device->ops->kernel_load(device->handle, build, bytes, size, &kernel->handle,
                                       &kernel->info, &detail);
    free(bytes);
    if (*status == LAP_OK) device->build_cached++;
    if (*status == LAP_OK || *status == LAP_E_DEVICE) {
        if (*status != LAP_OK && err) *err = detail;
        return true;
    }
    lap_build_cache_drop(device->cache, key);
    return false;
}

static void store(lap_device *device, const char *key, const lap_kernel *kernel) {
    void *bytes = NULL;
    size_t size = 0;
    if (device->ops->kernel_binary(kernel->handle, &bytes, &size, NULL) == LAP_OK)
        lap_build_cache_write(device->cache, key, bytes, size);
    free(bytes);
}

static lap_status load_or_compile(lap_device *device, const lap_build *build, lap_kernel *kernel,
                                  lap_error *err) {
    if (!device->cache) return compile(device, build, kernel, err);
    lap_text key = {0};
    lap_build_cache_key(&device->info, device->ops->fixed_options, build, &key);
    lap_status status;
    if (key.failed) {
        status = LAP_FAIL(err, LAP_E_NOMEM, "building %s: no memory for its key", build->stem);
    } else if (!load_cached(device, build, key.data, kernel, &status, err)) {
        status = compile(device, build, kernel, err);
        if (status == LAP_OK) store(device, key.data, kernel);
    }
    lap_text_free(&key);
    return status;
}

/* ---- building ------------------------------------------------------------------------------- */

lap_status lap_kernel_build(lap_device *device, const lap_build *build, lap_kernel **out,
                            lap_error *err) {
    if (!out) return LAP_FAIL(err, LAP_E_ARG, "lap_kernel_build: out is NULL");
    *out = NULL;
    if (!device) return LAP_FAIL(err, LAP_E_ARG, "lap_kernel_build: device is NULL");
    LAP_TRY(check_build(build, err));
    lap_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) return LAP_FAIL(err, LAP_E_NOMEM, "building %s: out of memory", build->stem);
    kernel->device = device;
    snprintf(kernel->stem, sizeof kernel->stem, "%s", build->stem);
    lap_status status = lap_call_enter(device, "lap_kernel_build", err);
    if (status == LAP_OK)
        status =
            lap_call_leave(device, "lap_kernel_build", load_or_compile(device, build, kernel, err));
    if (status != LAP_OK) {
        free(kernel);
        return status;
    }
    uint32_t most = device->info.max_group_size;
    uint32_t *own = &kernel->info.max_group_size;
    if (*own == 0 || (most != 0 && *own > most)) *own = most;
    device->kernels++;
    *out = kernel;
    return LAP_OK;
}

void lap_kernel_free(lap_kernel *kernel) {
    if (!kernel) return;
    kernel->device->ops->kernel_free(kernel->handle);
    kernel->device->kernels--;
    free(kernel);
}

const lap_kernel_info *lap_kernel_get_info(const lap_kernel *kernel) {
    return kernel ? &kernel->info : NULL;
}

lap_status lap_kernel_resident(lap_kernel *kernel, const uint32_t local[3],
                               size_t dynamic_local_bytes, uint64_t *groups, lap_error *err) {
    if (!kernel || !local || !groups)
        return LAP_FAIL(err, LAP_E_ARG, "lap_kernel_resident: an argument is NULL");
    *groups = 0;
    lap_device *device = kernel->device;
    if (!device->ops->kernel_resident) return LAP_OK;
    LAP_TRY(lap_call_enter(device, "lap_kernel_resident", err));
    return lap_call_leave(
        device, "lap_kernel_resident",
        device->ops->kernel_resident(kernel->handle, local, dynamic_local_bytes, groups, err));
}
