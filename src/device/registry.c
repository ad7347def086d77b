/* The backends this program was built with, in order of preference for one physical device. The
 * only file that names them, and the only one with a backend's #ifdef. Compiled into each program
 * (see lap_link_backends), because the library comes without backends. */
#include "device/device_ops.h"

#include <string.h>

#ifdef LAP_HAVE_CUDA
extern const lap_device_ops lap_cuda_ops;
#endif
#ifdef LAP_HAVE_OPENCL
extern const lap_device_ops lap_opencl_ops;
#endif

static const lap_device_ops *const built_in[] = {
#ifdef LAP_HAVE_CUDA
    &lap_cuda_ops,
#endif
#ifdef LAP_HAVE_OPENCL
    &lap_opencl_ops,
#endif
    NULL};

enum { BUILT_IN_SLOTS = sizeof built_in / sizeof built_in[0], ADDED_MAX = 8 };

static const lap_device_ops *stand_in[BUILT_IN_SLOTS]; /* for the built-in one at the same index */
static const lap_device_ops *added[ADDED_MAX];
static size_t added_count;

static size_t built_in_count(void) {
    size_t n = 0;
    while (built_in[n])
        n++;
    return n;
}

size_t lap_registry_count(void) {
    return built_in_count() + added_count;
}

const lap_device_ops *lap_registry_get(size_t index) {
    size_t n = built_in_count();
    if (index < n) return stand_in[index] ? stand_in[index] : built_in[index];
    return index - n < added_count ? added[index - n] : NULL;
}

const lap_device_ops *lap_registry_find(const char *name) {
    for (size_t i = 0; name && i < lap_registry_count(); i++) {
        const lap_device_ops *ops = lap_registry_get(i);
        if (strcmp(ops->name, name) == 0) return ops;
    }
    return NULL;
}

void lap_registry_add(const lap_device_ops *ops) {
    if (!ops) {
        memset(stand_in, 0, sizeof stand_in);
        added_count = 0;
        return;
    }
    for (size_t i = 0; built_in[i]; i++) {
        if (strcmp(built_in[i]->name, ops->name) == 0) {
            stand_in[i] = ops;
            return;
        }
    }
    for (size_t i = 0; i < added_count; i++) {
        if (strcmp(added[i]->name, ops->name) == 0) {
            added[i] = ops;
            return;
        }
    }
    if (added_count < ADDED_MAX) added[added_count++] = ops;
}

const char *lap_registry_known(size_t index, const char **form) {
    static const struct {
        const char *name, *form;
    } known[] = {{"cuda", "cuda[:INDEX]"}, {"opencl", "opencl[:PLATFORM[:DEVICE]]"}};
    if (form) *form = NULL;
    if (index >= sizeof known / sizeof known[0]) return NULL;
    if (form) *form = known[index].form;
    return known[index].name;
}
