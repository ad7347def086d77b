/* The rule of kernels_cu/overlap.cuh, seen in what the real NVRTC makes of the kernels, which needs
 * no GPU: from compute capability 9.0 on every kernel of a row, but for the plain ones and the
 * chain, waits for the launch before it ahead of anything that touches memory or branches, once,
 * never lets the next one begin by itself, and carries the variable by which the backend knows it,
 * in PTX and in CUBIN. The others have none of it, and neither has anything for older devices. One
 * build for each kernel and precision; skipped (77), saying why, without NVRTC. Usage:
 * nvrtc_overlap [KERNEL]: only those whose names begin so. */
#include "cuda/compile.h"
#include "variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "warmlap_waits_for_earlier"
#define WAIT "griddepcontrol.wait"

static int failed, waiting, others;

static void fault(const variant *v, const char *what) {
    printf("%s %s: %s\n", v->stem, v->options, what);
    failed++;
}

static bool holds(const char *bytes, size_t size, const char *text) {
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= size; i++)
        if (memcmp(bytes + i, text, length) == 0) return true;
    return false;
}

/* Compiled text or bytes; NULL: no NVRTC (status says so) or a fault. */
static char *compiled(const variant *v, const char *arch, size_t *size, lap_status *status) {
    lap_build build = {v->stem, lap_kernel_source("cu", v->stem), v->entry, v->defines,
                       v->define_count};
    void *image = NULL;
    lap_error err = {0};
    *status = lap_cuda_compile(&build, arch, &image, size, &err);
    if (*status == LAP_E_UNSUPPORTED) printf("skipped: %s\n", err.message);
    if (*status != LAP_OK && *status != LAP_E_UNSUPPORTED) fault(v, err.message);
    return image;
}

/* Works on registers and the arguments only, and goes on with the next line. */
static bool is_harmless(const char *opcode) {
    static const char *const known[] = {"ld.param.", "mov.", "cvta.", "cvt.", "add.", "sub.",
                                        "mul.",      "mad.", "shl.",  "shr.", "and.", "or.",
                                        "xor.",      "not.", "setp.", "selp."};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(opcode, known[i], strlen(known[i])) == 0) return true;
    return false;
}

/* The entry's lines up to the wait: declarations, comments, marks of inline text, and instructions
 * without harm. A label would mean that something jumps there. */
static void check_order(const variant *v, char *ptx) {
    char *body = strstr(ptx, ".entry ");
    body = body ? strchr(body, '{') : NULL;
    if (!body) {
        fault(v, "no entry in the PTX");
        return;
    }
    for (char *rest = body + 1, *line; (line = strtok_r(rest, "\n", &rest));) {
        line += strspn(line, " \t{}");
        if (strncmp(line, WAIT, strlen(WAIT)) == 0) return;
        if (*line == '\0' || *line == '.' || strncmp(line, "//", 2) == 0 || is_harmless(line))
            continue;
        fault(v, "before the wait:");
        printf("  %s\n", line);
        return;
    }
    fault(v, "no wait in the entry");
}

static bool is_to_wait(const char *stem) {
    size_t length = strlen(stem);
    return strcmp(stem, "chain") != 0 && (length < 6 || strcmp(stem + length - 6, "_naive") != 0);
}

static lap_status check(const variant *v) {
    static const struct {
        const char *name;
        bool text, early; /* PTX; knows such launches */
    } archs[] = {{"compute_90a", true, true},
                 {"sm_90a", false, true},
                 {"compute_120", true, true},
                 {"compute_80", true, false}};
    bool waits = is_to_wait(v->stem);
    *(waits ? &waiting : &others) += 1;
    for (size_t a = 0; a < sizeof archs / sizeof archs[0]; a++) {
        bool here = waits && archs[a].early;
        if (a > 1 && strncmp(v->stem, "conv_wgmma", 10) == 0) continue; /* refused there */
        size_t size = 0;
        lap_status status;
        char *image = compiled(v, archs[a].name, &size, &status);
        if (status == LAP_E_UNSUPPORTED) return status;
        if (!image) continue;
        if (holds(image, size, MARK) != here)
            fault(v, here ? "lacks the variable of overlap.cuh" : "has overlap.cuh's variable");
        if (holds(image, size, "launch_dependents")) fault(v, "lets the next launch begin");
        if (archs[a].text && holds(image, size, WAIT) != here)
            fault(v, here ? "does not wait" : "waits, and should not");
        if (archs[a].text && here) check_order(v, image);
        free(image);
    }
    return LAP_OK;
}

/* The first default of each kernel and precision. */
static bool is_first(const variants *all, size_t index) {
    const variant *v = &all->list[index];
    int64_t precision = -1, other;
    for (size_t i = 0; i < v->define_count; i++)
        if (strcmp(v->defines[i].name, "PRECISION") == 0) precision = v->defines[i].value;
    for (size_t i = 0; i < index; i++) {
        const variant *u = &all->list[i];
        other = -1;
        for (size_t k = 0; k < u->define_count; k++)
            if (strcmp(u->defines[k].name, "PRECISION") == 0) other = u->defines[k].value;
        if (u->row && strcmp(u->stem, v->stem) == 0 && other == precision) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    const char *only = argc > 1 ? argv[1] : "";
    variants all = {0};
    if (!variants_defaults(variants_device("nvidia"), &all)) {
        printf("out of memory, or no network\n");
        return 1;
    }
    lap_status status = LAP_OK;
    for (size_t i = 0; i < all.count && status == LAP_OK; i++)
        if (all.list[i].row && strncmp(all.list[i].stem, only, strlen(only)) == 0 &&
            lap_kernel_source("cu", all.list[i].stem) && is_first(&all, i))
            status = check(&all.list[i]);
    variants_free(&all);
    if (status == LAP_E_UNSUPPORTED) return 77;
    printf("%d builds that wait, %d that do not, %d faults\n", waiting, others, failed);
    return failed != 0 || waiting + others == 0;
}
