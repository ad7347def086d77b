/* Kernels built on one device, each distinct (stem, entry, defines) once. In memory only. */
#include "plan/internal.h"

#include "base/text.h"
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char *key;
    lap_kernel *kernel;
} entry;

struct lap_kernel_cache {
    entry *entries;
    size_t count, capacity;
};

lap_status lap_kernel_cache_new(lap_kernel_cache **out, lap_error *err) {
    *out = calloc(1, sizeof **out);
    return *out ? LAP_OK : LAP_FAIL(err, LAP_E_NOMEM, "no memory for the kernel cache");
}

void lap_kernel_cache_free(lap_kernel_cache *cache) {
    if (!cache) return;
    for (size_t i = 0; i < cache->count; i++) {
        lap_kernel_free(cache->entries[i].kernel);
        free(cache->entries[i].key);
    }
    free(cache->entries);
    free(cache);
}

static lap_status key_text(const char *stem, const char *entry_name, const lap_define *defines,
                           size_t count, char **out, lap_error *err) {
    lap_text text = {0};
    lap_text_addf(&text, "%s/%s", stem, entry_name);
    for (size_t i = 0; i < count; i++)
        lap_text_addf(&text, " %s=%lld", defines[i].name, (long long)defines[i].value);
    if (text.failed) {
        lap_text_free(&text);
        return LAP_FAIL(err, LAP_E_NOMEM, "no memory for a kernel's key");
    }
    *out = text.data;
    return LAP_OK;
}

static lap_status append(lap_kernel_cache *cache, char *key, lap_kernel *kernel, lap_error *err) {
    if (cache->count == cache->capacity) {
        size_t capacity = cache->capacity ? 2 * cache->capacity : 32;
        entry *grown = realloc(cache->entries, capacity * sizeof *grown);
        if (!grown) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the kernel cache");
        cache->entries = grown;
        cache->capacity = capacity;
    }
    cache->entries[cache->count++] = (entry){key, kernel};
    return LAP_OK;
}

lap_status lap_kernel_cache_get(lap_kernel_cache *cache, lap_device *device, const char *stem,
                                const char *entry_name, const lap_define *defines,
                                size_t define_count, lap_kernel **out, lap_error *err) {
    *out = NULL;
    char *key = NULL;
    LAP_TRY(key_text(stem, entry_name, defines, define_count, &key, err));
    for (size_t i = 0; i < cache->count; i++) {
        if (strcmp(cache->entries[i].key, key) == 0) {
            free(key);
            *out = cache->entries[i].kernel;
            return LAP_OK;
        }
    }
    const char *language = lap_device_get_info(device)->language;
    lap_build build = {.stem = stem,
                       .source = lap_kernel_source(language, stem),
                       .entry = entry_name,
                       .defines = defines,
                       .define_count = define_count};
    lap_kernel *kernel = NULL;
    lap_status status = build.source
                            ? lap_kernel_build(device, &build, &kernel, err)
                            : LAP_FAIL(err, LAP_E_UNSUPPORTED,
                                       "kernel %s does not exist in language %s", stem, language);
    if (status == LAP_OK) status = append(cache, key, kernel, err);
    if (status != LAP_OK) {
        lap_kernel_free(kernel);
        free(key);
        return status;
    }
    *out = kernel;
    return LAP_OK;
}
