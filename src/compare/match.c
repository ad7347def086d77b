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

/* ---- what sets rows of one case apart ------------------------------------------------------- */

typedef enum unlike {
    ALIKE = 0,
    OTHER_CLOCK,
    OTHER_WEIGHTS,
    OTHER_BESIDE,
    COLD_CACHE,
    HOT_CACHE,
    VERIFIED,
    NOT_VERIFIED
} unlike;

static bool is_cold(const lap_record *r) {
    return strcmp(r->cache, "cold") == 0;
}

static unlike find_unlike(const lap_record *a, const lap_record *b, bool wall) {
    if (!wall && strcmp(a->clock, b->clock) != 0) return OTHER_CLOCK;
    if (strcmp(a->weights, b->weights) != 0) return OTHER_WEIGHTS;
    if (strcmp(a->beside, b->beside) != 0) return OTHER_BESIDE;
    if (is_cold(a) != is_cold(b)) return is_cold(a) ? COLD_CACHE : HOT_CACHE;
    if (a->proof != b->proof) return a->proof == LAP_PROOF_PASSED ? VERIFIED : NOT_VERIFIED;
    return ALIKE;
}

const char *lap_difference(const lap_record *a, const lap_record *b, bool wall) {
    static const char *const words[] = {
        [ALIKE] = "",
        [OTHER_CLOCK] = "timed by another clock (--clock wall compares the wall spans of both)",
        [OTHER_WEIGHTS] = "run with other weights",
        [OTHER_BESIDE] = "run beside other devices",
        [COLD_CACHE] = "run with a cold cache, and the baseline with a hot one",
        [HOT_CACHE] = "run with a hot cache, and the baseline with a cold one",
        [VERIFIED] = "verified, and the baseline is not",
        [NOT_VERIFIED] = "not verified, and the baseline is",
    };
    return words[find_unlike(a, b, wall)];
}

#define NONE_ALIKE "no row to compare with: another of this case was "
const char *lap_difference_alone(const lap_record *a, const lap_record *b, bool wall) {
    static const char *const words[] = {
        [ALIKE] = "",
        [OTHER_CLOCK] = NONE_ALIKE "timed by another clock (--clock wall compares the wall spans)",
        [OTHER_WEIGHTS] = NONE_ALIKE "run with other weights",
        [OTHER_BESIDE] = NONE_ALIKE "run beside other devices",
        [COLD_CACHE] = NONE_ALIKE "run with a hot cache, and this one with a cold one",
        [HOT_CACHE] = NONE_ALIKE "run with a cold cache, and this one with a hot one",
        [VERIFIED] = NONE_ALIKE "not verified, and this one was",
        [NOT_VERIFIED] = NONE_ALIKE "verified, and this one was not",
    };
    return words[find_unlike(a, b, wall)];
}

const char *lap_difference_between(const lap_record *a, const lap_record *b, bool wall) {
    static const char *const words[] = {
        [ALIKE] = "",
        [OTHER_CLOCK] = "either was timed by another clock (--clock wall compares the wall spans)",
        [OTHER_WEIGHTS] = "either was run with other weights",
        [OTHER_BESIDE] = "either was run beside other devices",
        [COLD_CACHE] = "the first was run with a cold cache, the second with a hot one",
        [HOT_CACHE] = "the first was run with a hot cache, the second with a cold one",
        [VERIFIED] = "the first was verified, the second was not",
        [NOT_VERIFIED] = "the second was verified, the first was not",
    };
    return words[find_unlike(a, b, wall)];
}

/* ---- what is only remarkable ---------------------------------------------------------------- */

/* "[run] kernels: naive against default" */
static void add_setting(lap_text *out, const char *key, const char *a, const char *b) {
    if (strcmp(a, b) == 0) return;
    lap_text_addf(out, "%s[run] %s: %.60s against %.60s", out->length ? "; " : "", key,
                  a[0] ? a : "nothing", b[0] ? b : "nothing");
}

void lap_add_remarkable(lap_text *out, const lap_record *a, const lap_record *b) {
    const lap_document *x = a->document, *y = b->document;
    lap_text told = {0};
    /* Files of before these keys have none of them. */
    if (x->kernels[0] && y->kernels[0]) {
        add_setting(&told, "kernels", x->kernels, y->kernels);
        add_setting(&told, "prefer", x->prefer, y->prefer);
        add_setting(&told, "exclude", x->exclude, y->exclude);
    }
    if (x->overlap[0] && y->overlap[0]) add_setting(&told, "overlap", x->overlap, y->overlap);
    if (a->passes && b->passes && a->passes != b->passes)
        lap_text_addf(&told, "%spasses in a sample: %llu against %llu", told.length ? "; " : "",
                      (unsigned long long)a->passes, (unsigned long long)b->passes);
    lap_text_add(out, lap_text_get(&told));
    if (told.failed) out->failed = true;
    lap_text_free(&told);
}
