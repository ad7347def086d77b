/* Instructions of a target that the driver's compiler does not compile for, though its assembler
 * knows them. NVIDIA's OpenCL compiles for sm_90, which has no wgmma; the program's binary is PTX
 * text, and as sm_90a the driver takes it back.
 *
 * A source writes such instructions behind a mark, "//@sm_90a ", in the text of its inline
 * assembly, where the compiler takes them for comments and keeps them. Here the marks are taken out
 * and the target is raised. Whatever does not look as expected is a build error: the caller has
 * other kernels.
 */
#include "opencl.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MARK "//@"

bool lap_cl_target_of(const char *source, char target[LAP_CL_TARGET_ROOM]) {
    const char *at = strstr(source, "\"" MARK "sm_");
    if (!at) return false;
    at += 1 + strlen(MARK);
    size_t n = strcspn(at, " \"\n");
    if (n < strlen("sm_") + 2 || n >= LAP_CL_TARGET_ROOM) return false;
    memcpy(target, at, n);
    target[n] = '\0';
    return true;
}

/* The place behind ".target BASE" in text, with no further letter; NULL if there is none. */
static const char *target_end(const char *text, const char *target, size_t base) {
    static const char directive[] = ".target ";
    for (const char *at = text; (at = strstr(at, directive)); at++) {
        const char *name = at + strlen(directive);
        if (strncmp(name, target, base) == 0 && !isalnum((unsigned char)name[base]))
            return name + base;
    }
    return NULL;
}

lap_status lap_cl_retarget(const char *ptx, const char *target, lap_text *out, lap_error *err) {
    size_t base = strlen(target) - 1;
    char mark[LAP_CL_TARGET_ROOM + sizeof MARK + 1];
    snprintf(mark, sizeof mark, MARK "%s ", target);
    const char *behind = target_end(ptx, target, base);
    if (!behind)
        return LAP_FAIL(err, LAP_E_BUILD,
                        "the driver's binary is not PTX for %.*s, which instructions for %s need",
                        (int)base, target, target);
    if (!strstr(ptx, mark))
        return LAP_FAIL(err, LAP_E_BUILD, "the driver's PTX has kept no instruction for %s",
                        target);
    lap_text_addn(out, ptx, (size_t)(behind - ptx));
    lap_text_add(out, target + base);
    const char *from = behind;
    for (const char *at; (at = strstr(from, mark)); from = at + strlen(mark))
        lap_text_addn(out, from, (size_t)(at - from));
    lap_text_add(out, from);
    if (out->failed) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the program's PTX");
    return LAP_OK;
}
