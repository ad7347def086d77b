/* NVRTC behind dlopen: finding the library, choosing the target, compiling, reading the log.
 * Knows nothing of devices; must not call the CUDA runtime.
 */
#include "compile.h"

#include "base/text.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <nvrtc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_CAP = 64 * 1024,   /* of a build log, no more is looked at */
    LOG_INSANE = 64 << 20, /* a log said to be longer is not fetched at all */
    LOG_LINES = 20,        /* that go into the error message */
    DEFINE_TEXT = 64,      /* -DNAME=VALUE: 2 + 23 + 1 + 20 and a terminator */
    MAX_ARCHS = 64,
    OLDEST_MAJOR = 12 /* sm_90a and the result codes of today begin there */
};

typedef struct nvrtc {
    void *handle;
    int major, minor;
    int archs[MAX_ARCHS]; /* 75, 80, … ascending */
    int arch_count;
    char path[512];
    __typeof__(nvrtcVersion) *version;
    __typeof__(nvrtcGetErrorString) *error_string;
    __typeof__(nvrtcGetNumSupportedArchs) *num_archs;
    __typeof__(nvrtcGetSupportedArchs) *get_archs;
    __typeof__(nvrtcCreateProgram) *create;
    __typeof__(nvrtcDestroyProgram) *destroy;
    __typeof__(nvrtcCompileProgram) *compile;
    __typeof__(nvrtcGetProgramLogSize) *log_size;
    __typeof__(nvrtcGetProgramLog) *log;
    __typeof__(nvrtcGetCUBINSize) *cubin_size;
    __typeof__(nvrtcGetCUBIN) *cubin;
    __typeof__(nvrtcGetPTXSize) *ptx_size;
    __typeof__(nvrtcGetPTX) *ptx;
} nvrtc;

#define SYMBOL(field, name)                                                                        \
    { #name, offsetof(nvrtc, field) }
static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    SYMBOL(version, nvrtcVersion),
    SYMBOL(error_string, nvrtcGetErrorString),
    SYMBOL(num_archs, nvrtcGetNumSupportedArchs),
    SYMBOL(get_archs, nvrtcGetSupportedArchs),
    SYMBOL(create, nvrtcCreateProgram),
    SYMBOL(destroy, nvrtcDestroyProgram),
    SYMBOL(compile, nvrtcCompileProgram),
    SYMBOL(log_size, nvrtcGetProgramLogSize),
    SYMBOL(log, nvrtcGetProgramLog),
    SYMBOL(cubin_size, nvrtcGetCUBINSize),
    SYMBOL(cubin, nvrtcGetCUBIN),
    SYMBOL(ptx_size, nvrtcGetPTXSize),
    SYMBOL(ptx, nvrtcGetPTX),
};

/* The one loaded library. Looked for once, also when it is not there: `done`. */
static struct {
    pthread_mutex_t lock;
    bool done;
    nvrtc lib; /* handle is NULL when missing */
    char missing[512];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- finding -------------------------------------------------------------------------------- */

static const char *const library_names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
enum { LIBRARY_NAMES = sizeof library_names / sizeof library_names[0] };

/* Why a library that was opened cannot be used: NULL when it can. */
static const char *resolve(nvrtc *lib, char *why, size_t size) {
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(lib->handle, symbols[i].name);
        if (!address) {
            snprintf(why, size, "has no %s", symbols[i].name);
            return why;
        }
        /* ISO C has no cast from an object to a function pointer; POSIX gives them one size. */
        memcpy((char *)lib + symbols[i].offset, &address, sizeof address);
    }
    if (lib->version(&lib->major, &lib->minor) != NVRTC_SUCCESS) return "does not tell its version";
    if (lib->major < OLDEST_MAJOR) {
        snprintf(why, size, "is version %d.%d, %d.0 or newer is needed", lib->major, lib->minor,
                 OLDEST_MAJOR);
        return why;
    }
    int count = 0;
    if (lib->num_archs(&count) != NVRTC_SUCCESS || count < 1 || count > MAX_ARCHS ||
        lib->get_archs(lib->archs) != NVRTC_SUCCESS)
        return "does not tell which architectures it supports";
    lib->arch_count = count;
    return NULL;
}

/* True when file could be loaded and used. What is wrong with a file that exists goes to notes. */
static bool try_library(nvrtc *lib, const char *file, lap_text *notes) {
    lib->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!lib->handle) {
        const char *why = dlerror();
        if (why && !strstr(why, "No such file")) lap_text_addf(notes, "; %s", why);
        return false;
    }
    char buffer[160];
    const char *why = resolve(lib, buffer, sizeof buffer);
    if (why) {
        lap_text_addf(notes, "; %s %s", file, why);
        dlclose(lib->handle);
        memset(lib, 0, sizeof *lib);
        return false;
    }
    /* The file that the loader really took, which a bare name does not tell. */
    void *address = NULL;
    memcpy(&address, &lib->version, sizeof address);
    Dl_info where;
    bool known = dladdr(address, &where) != 0 && where.dli_fname;
    snprintf(lib->path, sizeof lib->path, "%s", known ? where.dli_fname : file);
    return true;
}

static bool try_folder(nvrtc *lib, const char *folder, lap_text *notes) {
    for (size_t i = 0; i < LIBRARY_NAMES; i++) {
        char file[1024];
        int n = snprintf(file, sizeof file, "%s%s", folder, library_names[i]);
        if (n > 0 && (size_t)n < sizeof file && try_library(lib, file, notes)) return true;
    }
    return false;
}

static void find(nvrtc *lib, char *missing, size_t size) {
    lap_text notes = {0};
    const char *override = getenv("LAP_NVRTC");
    if (override && override[0]) {
        if (!try_library(lib, override, &notes))
            snprintf(missing, size, "NVRTC not found, looked for %s (LAP_NVRTC)%s", override,
                     lap_text_get(&notes));
        lap_text_free(&notes);
        return;
    }
    const char *home = getenv("CUDA_HOME");
    char folder[900] = "";
    if (home && home[0]) snprintf(folder, sizeof folder, "%s/lib64/", home);
    if (!try_folder(lib, "", &notes) && !(folder[0] && try_folder(lib, folder, &notes)) &&
        !try_folder(lib, "/usr/local/cuda/lib64/", &notes))
        snprintf(missing, size,
                 "NVRTC not found, looked for %s, %s and %s on the loader's path, in %s%sand in "
                 "/usr/local/cuda/lib64%s",
                 library_names[0], library_names[1], library_names[2],
                 folder[0] ? folder : "$CUDA_HOME/lib64 (CUDA_HOME is not set)",
                 folder[0] ? " (CUDA_HOME) " : " ", lap_text_get(&notes));
    lap_text_free(&notes);
}

static lap_status get(const nvrtc **lib, lap_error *err) {
    pthread_mutex_lock(&state.lock);
    if (!state.done) {
        find(&state.lib, state.missing, sizeof state.missing);
        state.done = true;
    }
    pthread_mutex_unlock(&state.lock);
    *lib = state.lib.handle ? &state.lib : NULL;
    return *lib ? LAP_OK : LAP_FAIL(err, LAP_E_UNSUPPORTED, "%s", state.missing);
}

void lap_cuda_nvrtc_forget(void) {
    pthread_mutex_lock(&state.lock);
    if (state.lib.handle) dlclose(state.lib.handle);
    memset(&state.lib, 0, sizeof state.lib);
    state.missing[0] = '\0';
    state.done = false;
    pthread_mutex_unlock(&state.lock);
}

lap_status lap_cuda_nvrtc_version(int *major, int *minor, const char **path, lap_error *err) {
    const nvrtc *lib;
    *major = *minor = 0;
    if (path) *path = NULL;
    LAP_TRY(get(&lib, err));
    *major = lib->major;
    *minor = lib->minor;
    if (path) *path = lib->path;
    return LAP_OK;
}

/* ---- the target ----------------------------------------------------------------------------- */

lap_status lap_cuda_arch(int cc_major, int cc_minor, char *arch, size_t size, lap_error *err) {
    const nvrtc *lib;
    if (size) arch[0] = '\0';
    LAP_TRY(get(&lib, err));
    int cc = cc_major * 10 + cc_minor, below = 0;
    for (int i = 0; i < lib->arch_count; i++) {
        if (lib->archs[i] == cc) {
            snprintf(arch, size, "sm_%d%s", cc, cc == 90 ? "a" : "");
            return LAP_OK;
        }
        if (lib->archs[i] < cc && lib->archs[i] > below) below = lib->archs[i];
    }
    if (below) {
        snprintf(arch, size, "compute_%d", below);
        return LAP_OK;
    }
    int first = lib->archs[0], last = lib->archs[lib->arch_count - 1];
    return LAP_FAIL(err, LAP_E_BUILD,
                    "the device has compute capability %d.%d, and NVRTC %d.%d (%s) compiles for "
                    "%d.%d to %d.%d only; an older CUDA toolkit's libnvrtc is needed (LAP_NVRTC "
                    "names the file to use)",
                    cc_major, cc_minor, lib->major, lib->minor, lib->path, first / 10, first % 10,
                    last / 10, last % 10);
}

/* ---- compiling ------------------------------------------------------------------------------ */

/* The first lines of the log, or "" when there is none. Free with lap_text_free. */
static lap_text first_lines(const nvrtc *lib, nvrtcProgram program) {
    lap_text text = {0};
    size_t size = 0;
    if (lib->log_size(program, &size) != NVRTC_SUCCESS || size < 2 || size > LOG_INSANE)
        return text;
    /* NVRTC writes the whole log or none of it, so the cap is applied afterwards. */
    char *log = calloc(size + 1, 1);
    if (!log) return text;
    if (lib->log(program, log) == NVRTC_SUCCESS) {
        if (size > LOG_CAP) log[LOG_CAP] = '\0';
        const char *end = log;
        int lines = 0;
        while (*end && lines < LOG_LINES)
            if (*end++ == '\n') lines++;
        size_t length = (size_t)(end - log);
        while (length > 0 && strchr(" \t\r\n", log[length - 1]))
            length--;
        lap_text_addn(&text, log, length);
        if (*end) lap_text_add(&text, "\n(the log goes on)");
    }
    free(log);
    return text;
}

/* Build the option list: two fixed ones and a -D for each define. One allocation, free() it. */
static const char **make_options(const lap_build *build, const char *arch, size_t *count) {
    size_t n = build->define_count + 2;
    char **options = calloc(1, n * (sizeof *options + DEFINE_TEXT));
    if (!options) return NULL;
    char *text = (char *)(options + n);
    for (size_t i = 0; i < n; i++)
        options[i] = text + i * DEFINE_TEXT;
    snprintf(options[0], DEFINE_TEXT, "%s", LAP_CUDA_OPTIONS);
    snprintf(options[1], DEFINE_TEXT, "--gpu-architecture=%s", arch);
    for (size_t i = 0; i < build->define_count; i++)
        snprintf(options[i + 2], DEFINE_TEXT, "-D%s=%" PRId64, build->defines[i].name,
                 build->defines[i].value);
    *count = n;
    return (const char **)options;
}

static lap_status nvrtc_failed(const nvrtc *lib, nvrtcResult code, const char *call,
                               const lap_build *build, const char *arch, lap_error *err) {
    lap_status status = code == NVRTC_ERROR_OUT_OF_MEMORY ? LAP_E_NOMEM : LAP_E_BUILD;
    return LAP_FAIL_NATIVE(err, status, call, code, lib->error_string(code),
                           "%s.cu (%s) for %s: NVRTC %d.%d (%s) failed", build->stem, build->entry,
                           arch, lib->major, lib->minor, lib->path);
}

static lap_status compile_failed(const nvrtc *lib, nvrtcResult code, nvrtcProgram program,
                                 const lap_build *build, const char *const *options, size_t count,
                                 lap_error *err) {
    lap_text log = first_lines(lib, program), defines = {0};
    for (size_t i = 2; i < count && defines.length < 400; i++)
        lap_text_addf(&defines, " %s", options[i]);
    const char *arch = strchr(options[1], '=') + 1;
    lap_status status =
        LAP_FAIL_NATIVE(err, code == NVRTC_ERROR_OUT_OF_MEMORY ? LAP_E_NOMEM : LAP_E_BUILD,
                        "nvrtcCompileProgram", code, lib->error_string(code),
                        "%s.cu (%s) did not compile for %s with NVRTC %d.%d%s%s:\n%s", build->stem,
                        build->entry, arch, lib->major, lib->minor, defines.length ? "," : "",
                        lap_text_get(&defines), log.length ? lap_text_get(&log) : "(no log)");
    lap_text_free(&defines);
    lap_text_free(&log);
    return status;
}

static lap_status fetch_image(const nvrtc *lib, nvrtcProgram program, const lap_build *build,
                              const char *arch, void **image, size_t *bytes, lap_error *err) {
    bool ptx = strncmp(arch, "compute_", 8) == 0;
    size_t size = 0;
    nvrtcResult code = ptx ? lib->ptx_size(program, &size) : lib->cubin_size(program, &size);
    const char *call = ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize";
    if (code != NVRTC_SUCCESS) return nvrtc_failed(lib, code, call, build, arch, err);
    if (size == 0)
        return LAP_FAIL(err, LAP_E_BUILD, "%s.cu (%s): NVRTC %d.%d wrote no %s for %s", build->stem,
                        build->entry, lib->major, lib->minor, ptx ? "PTX" : "CUBIN", arch);
    char *data = malloc(size);
    if (!data)
        return LAP_FAIL(err, LAP_E_NOMEM, "%s.cu: no %zu bytes for the compiled kernel",
                        build->stem, size);
    code = ptx ? lib->ptx(program, data) : lib->cubin(program, data);
    if (code != NVRTC_SUCCESS) {
        free(data);
        call = ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN";
        return nvrtc_failed(lib, code, call, build, arch, err);
    }
    *image = data;
    *bytes = size;
    return LAP_OK;
}

lap_status lap_cuda_compile(const lap_build *build, const char *arch, void **image, size_t *bytes,
                            lap_error *err) {
    const nvrtc *lib;
    *image = NULL;
    *bytes = 0;
    LAP_TRY(get(&lib, err));
    size_t count = 0;
    const char **options = make_options(build, arch, &count);
    if (!options)
        return LAP_FAIL(err, LAP_E_NOMEM, "%s.cu: no memory for %zu compiler options", build->stem,
                        build->define_count);
    char name[128];
    snprintf(name, sizeof name, "%s.cu", build->stem);
    nvrtcProgram program = NULL;
    lap_status status;
    nvrtcResult code = lib->create(&program, build->source, name, 0, NULL, NULL);
    if (code != NVRTC_SUCCESS) {
        status = nvrtc_failed(lib, code, "nvrtcCreateProgram", build, arch, err);
    } else {
        code = lib->compile(program, (int)count, options);
        if (code != NVRTC_SUCCESS)
            status = compile_failed(lib, code, program, build, options, count, err);
        else
            status = fetch_image(lib, program, build, arch, image, bytes, err);
        lib->destroy(&program);
    }
    free(options);
    return status;
}
