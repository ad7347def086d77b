/* The MPI module is a library of its own, loaded only where a fleet is asked for: without one, MPI
 * costs nothing and need not be installed. */
#include "fleet/wire.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool lap_fleet_launched(const char **name) {
    static const struct {
        const char *rank, *size; /* size NULL: the rank alone is told */
    } launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                     {"PMI_RANK", "PMI_SIZE"},
                     {"PMIX_RANK", NULL}};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *size = launchers[i].size ? getenv(launchers[i].size) : NULL;
        if (!getenv(launchers[i].rank)) continue;
        *name = launchers[i].rank;
        if (!launchers[i].size || (size && strcmp(size, "1") != 0)) return true;
        return false;
    }
    *name = "";
    return false;
}

#ifdef LAP_MPI_MODULE
static void *load(const char *path, char *why, size_t size) {
    /* Open MPI's own plug-ins look for its symbols among the global ones. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) snprintf(why, size, "%s", dlerror());
    return handle;
}

/* Beside the program (a build folder), then where it is installed. */
static void *find(char *why, size_t size) {
    const char *named = getenv("LAP_FLEET_MODULE");
    if (named && *named) return load(named, why, size);
    char path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    if (n > 0) {
        path[n] = '\0';
        char *slash = strrchr(path, '/');
        snprintf(slash + 1, 64, "%s", LAP_MPI_MODULE);
        if (access(path, R_OK) == 0) return load(path, why, size);
        snprintf(slash + 1, 64, "../lib/warmlap/%s", LAP_MPI_MODULE);
        if (access(path, R_OK) == 0) return load(path, why, size);
    }
    return load(LAP_MPI_MODULE_DIR "/" LAP_MPI_MODULE, why, size);
}

lap_status lap_fleet_wire_open(double timeout_s, lap_wire *out, lap_error *err) {
    char why[600] = "";
    void *handle = find(why, sizeof why);
    lap_wire_open *open_wire = NULL;
    if (handle) *(void **)&open_wire = dlsym(handle, LAP_WIRE_SYMBOL);
    if (!open_wire)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "fleet: the MPI module cannot be loaded: %s",
                        why[0] ? why : "it is of another version of warmlap");
    return open_wire(timeout_s, out, err);
}
#else
lap_status lap_fleet_wire_open(double timeout_s, lap_wire *out, lap_error *err) {
    (void)timeout_s;
    (void)out;
    return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                    "fleet: this warmlap was built without MPI; build it where Open MPI is "
                    "installed (libopenmpi-dev, -DLAP_MPI=ON), or set run:fleet=no to let every "
                    "process measure by itself");
}
#endif
