/* Sets of cases that run at the same time (see run_sets.h). */
#include "app/run_sets.h"

#include <stdlib.h>
#include <string.h>

static bool same_work(const lap_run_case *a, const lap_run_case *b) {
    return strcmp(a->model, b->model) == 0 && a->height == b->height && a->width == b->width &&
           a->precision == b->precision && a->batch == b->batch;
}

/* Two entries of one platform are two devices, by their driver's own word. */
static bool same_device(const lap_device_info *a, const lap_device_info *b) {
    if (strcmp(a->selector, b->selector) == 0) return true;
    bool one_platform =
        strcmp(a->backend, b->backend) == 0 && strcmp(a->platform, b->platform) == 0;
    return !one_platform && a->physical == b->physical;
}

static bool fits(const lap_run_case *cases, const size_t *set_of, size_t before, size_t set,
                 const lap_run_case *c) {
    bool any = false;
    for (size_t i = 0; i < before; i++) {
        if (set_of[i] != set) continue;
        if (!same_work(&cases[i], c) || same_device(cases[i].device, c->device)) return false;
        any = true;
    }
    return any;
}

lap_status lap_app_add_sets(lap_run_case *cases, size_t lone, size_t *count, lap_error *err) {
    size_t *set_of = calloc(2 * lone + 1, sizeof *set_of), sets = 0, number = 0;
    if (!set_of) return LAP_FAIL(err, LAP_E_NOMEM, "no memory for the sets of %zu rows", lone);
    size_t *size_of = set_of + lone;
    for (size_t i = 0; i < lone; i++) {
        for (size_t s = 1; s <= sets && set_of[i] == 0; s++)
            if (fits(cases, set_of, i, s, &cases[i])) set_of[i] = s;
        if (set_of[i] == 0) set_of[i] = ++sets;
        size_of[set_of[i]]++;
    }
    *count = lone;
    for (size_t s = 1; s <= sets; s++) {
        if (size_of[s] < 2) continue;
        number++;
        for (size_t i = 0; i < lone; i++) {
            if (set_of[i] != s) continue;
            cases[*count] = cases[i];
            cases[*count].set = number;
            cases[*count].alone = i;
            ++*count;
        }
    }
    free(set_of);
    return LAP_OK;
}
