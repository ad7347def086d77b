/* Which rows may be compared (see match.h). */
#include "compare/match.h"

#include <string.h>
#include <strings.h>

typedef struct axis_row {
    const char *name;
    bool any_batch, any_precision, one_device, one_backend;
} axis_row;

static const axis_row axes[LAP_AXES] = {
    [LAP_BY_DEVICE] = {"device", false, false, false, false},
    [LAP_BY_API] = {"api", false, false, true, false},
    [LAP_BY_PRECISION] = {"precision", false, true, true, true},
    [LAP_BY_BATCH] = {"batch", true, false, true, true},
    [LAP_BY_FILE] = {"file", false, false, true, true},
    [LAP_BY_DRIVER] = {"driver", false, false, true, true},
    [LAP_BY_VERSION] = {"version", false, false, true, true},
};

const char *lap_axis_name(lap_axis axis) {
    return axes[axis].name;
}

bool lap_axis_parse(const char *name, lap_axis *out) {
    for (int i = 0; i < LAP_AXES; i++) {
        if (strcmp(name, axes[i].name) != 0) continue;
        *out = (lap_axis)i;
        return true;
    }
    return false;
}

static bool same_host(const lap_document *a, const lap_document *b) {
    return a == b || (a->cpu[0] && strcmp(a->cpu, b->cpu) == 0 &&
                      strcmp(a->kernel, b->kernel) == 0 && a->memory_bytes == b->memory_bytes);
}

bool lap_same_physical(const lap_record *a, const lap_record *b) {
    if (a->uuid[0] && b->uuid[0]) return strcasecmp(a->uuid, b->uuid) == 0;
    if (a->pci[0] && b->pci[0])
        return strcasecmp(a->pci, b->pci) == 0 && strcmp(a->host, b->host) == 0 &&
               same_host(a->document, b->document);
    return false;
}

bool lap_same_device(const lap_record *a, const lap_record *b) {
    if (lap_same_physical(a, b)) return true;
    if (strcmp(a->device, b->device) != 0) return false;
    /* Two devices of one machine are not taken for each other. */
    if (a->uuid[0] && b->uuid[0] && same_host(a->document, b->document)) return false;
    if (a->document == b->document)
        return strcmp(a->selector, b->selector) == 0 && strcmp(a->host, b->host) == 0;
    return strcmp(a->host, b->host) == 0 && a->ordinal == b->ordinal;
}

bool lap_same_case(const lap_record *a, const lap_record *b, lap_axis axis) {
    const axis_row *x = &axes[axis];
    if (strcmp(a->network, b->network) != 0 || a->height != b->height || a->width != b->width)
        return false;
    if (!x->any_batch && a->batch != b->batch) return false;
    /* A device beside others is another case than the device alone. */
    if (a->others != b->others) return false;
    if (!x->any_precision &&
        strcmp(lap_precision_class(a->precision), lap_precision_class(b->precision)) != 0)
        return false;
    if (x->one_backend && strcmp(a->backend, b->backend) != 0) return false;
    return !x->one_device || lap_same_device(a, b);
}

const char *lap_difference(const lap_record *a, const lap_record *b, bool wall) {
    if (!wall && strcmp(a->clock, b->clock) != 0)
        return "timed by another clock (--clock wall compares the wall spans of both)";
    if (strcmp(a->weights, b->weights) != 0) return "run with other weights";
    if (strcmp(a->beside, b->beside) != 0) return "run beside other devices";
    if (a->proof != b->proof)
        return a->proof == LAP_PROOF_PASSED   ? "verified, and the baseline is not"
               : b->proof == LAP_PROOF_PASSED ? "not verified, and the baseline is"
                                              : "verified differently";
    return "";
}
