/* Looks up the libraries whose functions api.h lists. They are named as a linker would name them,
 * and so found where the system's loader looks: no path of ours, none from a configuration.
 */
#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct function {
    const char *name;
    void *slot; /* in a table of pointers */
} function;

typedef struct library {
    const char *file, *install;
    const function *functions; /* up to one without a name */
    int scope;
    char missing[400];
} library;

lap_cl_functions lap_cl;

#define CL_FUNCTION(name) {#name, &lap_cl.name},
static const function cl_functions[] = {LAP_CL_FUNCTIONS(CL_FUNCTION){NULL, NULL}};

/* As for a library that was linked, its functions are visible to what is loaded later (drivers and
 * layers that count on it), and a preloaded library's come before them (tracers): hence the global
 * scope. It stays loaded: drivers have threads and work left at exit. */
static library cl_library = {.file = "libOpenCL.so.1",
                             .install = "an OpenCL ICD loader (Debian, Ubuntu: ocl-icd-libopencl1)",
                             .functions = cl_functions,
                             .scope = RTLD_GLOBAL};

static bool look_up(const library *lib, void *handle, const char **lacking) {
    for (const function *f = lib->functions; f->name; f++) {
        void *address = dlsym(lib->scope == RTLD_GLOBAL ? RTLD_DEFAULT : handle, f->name);
        *lacking = f->name;
        if (!address) return false;
        /* ISO C has no cast from an object to a function pointer; POSIX gives them one size. */
        memcpy(f->slot, &address, sizeof address);
    }
    return true;
}

static void load(library *lib) {
    const char *lacking = NULL;
    void *handle = dlopen(lib->file, RTLD_NOW | lib->scope);
    if (!handle) {
        const char *why = dlerror(); /* begins with the name of the file at fault */
        snprintf(lib->missing, sizeof lib->missing, "%.240s; install %s", why ? why : lib->file,
                 lib->install);
    } else if (!look_up(lib, handle, &lacking)) {
        snprintf(lib->missing, sizeof lib->missing, "%s has no %s; install %s", lib->file, lacking,
                 lib->install);
    }
}

static void load_cl(void) {
    load(&cl_library);
}

const char *lap_cl_missing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_cl);
    return cl_library.missing[0] ? cl_library.missing : NULL;
}

#ifdef LAP_HAVE_CLBLAST

lap_clblast_functions lap_clblast;

#define CLBLAST_FUNCTION(name) {#name, &lap_clblast.name},
static const function clblast_functions[] = {LAP_CLBLAST_FUNCTIONS(CLBLAST_FUNCTION){NULL, NULL}};

static library clblast_library = {.file = "libclblast.so.1",
                                  .install = "CLBlast (Debian, Ubuntu: libclblast1)",
                                  .functions = clblast_functions,
                                  .scope = RTLD_LOCAL};

static void load_clblast(void) {
    load(&clblast_library);
}

const char *lap_clblast_missing(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_clblast);
    return clblast_library.missing[0] ? clblast_library.missing : NULL;
}

#endif
