/* A stand-in for libnvrtc, built as a shared library and found through LAP_NVRTC. It compiles
 * nothing: the image is "STANDIN <cubin|ptx>", the options, one a line, and the source, which the
 * runtime's stand-in searches for entries. Told by the script (script.h: [nvrtc], fail, delay); a
 * source that contains "#error planted" fails with a log of log_lines lines. */
#include "script.h"

#include <nvrtc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct _nvrtcProgram {
    char *source;
    char name[128];
    char options[4096];
    char *log;
    int sass;
};

static int live;

/* Found by name: programs not destroyed. */
int nvrtc_standin_live(void);
int nvrtc_standin_live(void) {
    return live;
}

const char *const script_functions[] = {"nvrtcCompileProgram", "nvrtcCreateProgram",
                                        "nvrtcGetCUBIN",       "nvrtcGetPTX",
                                        "nvrtcVersion",        NULL};

#define ENTER()                                                                                    \
    do {                                                                                           \
        int code_ = script_enter(__func__);                                                        \
        if (code_) return (nvrtcResult)code_;                                                      \
    } while (0)

const char *nvrtcGetErrorString(nvrtcResult code) {
    return code == NVRTC_SUCCESS                ? "NVRTC_SUCCESS"
           : code == NVRTC_ERROR_COMPILATION    ? "NVRTC_ERROR_COMPILATION"
           : code == NVRTC_ERROR_INVALID_OPTION ? "NVRTC_ERROR_INVALID_OPTION"
                                                : "NVRTC_ERROR unknown";
}

nvrtcResult nvrtcVersion(int *major, int *minor) {
    ENTER();
    *major = (int)script_get()->nvrtc.version.at[0];
    *minor = (int)script_get()->nvrtc.version.at[1];
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetNumSupportedArchs(int *count) {
    *count = (int)script_get()->nvrtc.archs.count;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int *out) {
    const script_numbers *archs = &script_get()->nvrtc.archs; /* ascending */
    for (size_t i = 0; i < archs->count; i++)
        out[i] = (int)archs->at[i];
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name,
                               int headers, const char *const *header_texts,
                               const char *const *header_names) {
    (void)header_texts, (void)header_names;
    ENTER();
    if (headers) return NVRTC_ERROR_INVALID_INPUT;
    *program = calloc(1, sizeof **program);
    if (!*program) return NVRTC_ERROR_OUT_OF_MEMORY;
    (*program)->source = strdup(source);
    snprintf((*program)->name, sizeof(*program)->name, "%s", name);
    live++;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program) {
    live--;
    free((*program)->source);
    free((*program)->log);
    free(*program);
    *program = NULL;
    return NVRTC_SUCCESS;
}

/* Like the real one: an architecture that is not in the list is an invalid option. */
static int known_arch(const char *option, int *sass) {
    const script_numbers *archs = &script_get()->nvrtc.archs;
    const char *value = strchr(option, '=') + 1;
    *sass = strncmp(value, "sm_", 3) == 0;
    int arch = atoi(strchr(value, '_') + 1);
    for (size_t i = 0; i < archs->count; i++)
        if (archs->at[i] == arch) return 1;
    return 0;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
    ENTER();
    for (int i = 0; i < count; i++) {
        size_t n = strlen(program->options);
        snprintf(program->options + n, sizeof program->options - n, "%s\n", options[i]);
        if (strncmp(options[i], "--gpu-architecture=", 19) == 0 &&
            !known_arch(options[i], &program->sass))
            return NVRTC_ERROR_INVALID_OPTION;
    }
    if (!strstr(program->source, "#error planted")) return NVRTC_SUCCESS;
    int lines = (int)script_get()->nvrtc.log_lines;
    program->log = calloc((size_t)lines + 1, 160);
    if (!program->log) return NVRTC_ERROR_OUT_OF_MEMORY;
    for (int i = 1; i <= lines; i++) {
        size_t n = strlen(program->log);
        snprintf(program->log + n, 160, "%s(%d): error: planted\n", program->name, i);
    }
    return NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size) {
    *size = program->log ? strlen(program->log) + 1 : 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log) {
    strcpy(log, program->log ? program->log : "");
    return NVRTC_SUCCESS;
}

static size_t image(nvrtcProgram program, const char *kind, char *out) {
    size_t size = strlen("STANDIN ") + strlen(kind) + 1 + strlen(program->options) +
                  strlen(program->source) + 1;
    if (out) snprintf(out, size, "STANDIN %s\n%s%s", kind, program->options, program->source);
    return size;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size) {
    *size = program->sass ? image(program, "cubin", NULL) : 0;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *out) {
    ENTER();
    image(program, "cubin", out);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size) {
    *size = image(program, "ptx", NULL);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *out) {
    ENTER();
    image(program, "ptx", out);
    return NVRTC_SUCCESS;
}
