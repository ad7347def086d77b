/* Picks a kernel row for one op and builds its kernels: the first row that accepts the case,
 * builds, and fits the limits that its built kernels report. Why earlier rows were passed over is
 * kept. */
#include "plan/internal.h"

#include "base/text.h"
#include <stdlib.h>
#include <string.h>

static uint64_t product(const uint32_t v[3]) {
    return (uint64_t)v[0] * v[1] * v[2];
}

/* Naive kernels use the flat global index with a bounds test, so their groups may shrink. */
static void shrink_groups(lap_grid *grid, uint32_t limit) {
    uint64_t items = (uint64_t)grid->groups[0] * grid->local[0];
    while (grid->local[0] > 1 && product(grid->local) > limit)
        grid->local[0] /= 2;
    grid->groups[0] = (uint32_t)((items + grid->local[0] - 1) / grid->local[0]);
}

/* *limit: the largest group that a built kernel runs with, where that is why it is refused. */
static lap_status build_stage(lap_plan *plan, plan_step *step, int index, uint32_t *limit,
                              lap_error *err) {
    const lap_stage *stage = &step->row->stages[index];
    lap_define defines[LAP_MAX_DEFINES];
    size_t count = lap_kernel_defines(step->row, &step->c, defines);
    lap_kernel *kernel;
    LAP_TRY(lap_kernel_cache_get(plan->session->kernels, plan->session->device, stage->stem,
                                 stage->entry, defines, count, &kernel, err));
    step->kernels[index] = kernel;
    lap_grid *grid = &(lap_grid){0};
    if (!stage->grid(&step->c, grid))
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "batch %llu does not fit the kernel's grid",
                        (unsigned long long)step->c.n);
    const lap_kernel_info *info = lap_kernel_get_info(kernel);
    if (step->row->naive) shrink_groups(grid, info->max_group_size);
    if (product(grid->local) > info->max_group_size) {
        *limit = info->max_group_size;
        return LAP_FAIL(err, LAP_E_UNSUPPORTED,
                        "needs groups of %llu work-items, this device runs it with at most %u",
                        (unsigned long long)product(grid->local), info->max_group_size);
    }
    lap_launch *launch = &step->launches[index].launch;
    *launch = (lap_launch){.kernel = kernel, .dynamic_local_bytes = grid->dynamic_local_bytes};
    memcpy(launch->groups, grid->groups, sizeof launch->groups);
    memcpy(launch->local, grid->local, sizeof launch->local);
    return step->row->chain ? plan_chain_test(plan, launch, err) : LAP_OK;
}

static lap_status build_row(lap_plan *plan, plan_step *step, uint32_t *limit, lap_error *err) {
    *limit = 0;
    if (lap_plan_interrupted(plan))
        return LAP_FAIL(err, LAP_E_INTERRUPTED, "interrupted before its kernels were built");
    for (int i = 0; i < step->row->stage_count; i++) {
        step->launches[i].kind = step->row->stages[i].kind;
        if (step->row->stages[i].kind == LAP_STAGE_KERNEL)
            LAP_TRY(build_stage(plan, step, i, limit, err));
    }
    return LAP_OK;
}

/* Worth trying the next row after? A lost device or an interrupt is not. */
static bool can_fall_back(lap_status status) {
    return status == LAP_E_BUILD || status == LAP_E_UNSUPPORTED;
}

/* Default parameters for groups of at most limit work-items (0: as the device has them), and the
 * batch that is run; false when there are none. */
static bool set_defaults(const lap_plan *plan, plan_step *step, uint64_t chosen_for,
                         uint32_t limit) {
    const lap_device_info *device = step->c.device;
    lap_device_info limited = *device;
    if (limit) limited.max_group_size = limit;
    step->c.device = &limited;
    step->c.n = chosen_for;
    bool fits = !limit || lap_kernel_can_run(step->row, &step->c, true);
    if (fits) step->row->defaults(&step->c, &step->c.params);
    if (limit) fits = fits && step->row->valid(&step->c);
    step->c.device = device;
    step->c.n = plan->options.batch;
    return fits;
}

/* Builds the step's row. A kernel may need so many registers that it runs with smaller groups only
 * than the device allows; then it is built again with the row's defaults for such groups. */
static lap_status build_fitting(lap_plan *plan, plan_step *step, uint64_t chosen_for,
                                lap_text *passed, lap_error *err) {
    lap_error refused = {0};
    uint32_t limit = 0;
    while (step->chosen || set_defaults(plan, step, chosen_for, limit)) {
        uint32_t before = limit;
        lap_error now = {0};
        lap_status status = build_row(plan, step, &limit, &now);
        if (status == LAP_OK && before) {
            char line[512];
            lap_error_text(&refused, line, sizeof line);
            lap_text_addf(passed, "%s%s: %s: smaller groups taken", passed->length ? "; " : "",
                          step->row->id, line);
        }
        bool is_limit = status == LAP_E_UNSUPPORTED && limit && (!before || limit < before);
        if (step->chosen || !is_limit) {
            *err = now;
            return status;
        }
        refused = now;
    }
    *err = refused;
    return LAP_E_UNSUPPORTED;
}

/* Is the id one of the list's, which are separated by commas and blanks? */
static bool is_listed(const char *list, const char *id) {
    size_t length = strlen(id);
    for (const char *s = list ? list : ""; *s; s += strcspn(s, ", \t")) {
        s += strspn(s, ", \t");
        if (strncmp(s, id, length) == 0 && strcspn(s, ", \t") == length) return true;
    }
    return false;
}

/* A compiler may even die of instructions that it half knows: who leaves these rows out must not
 * meet them in a probe. */
bool plan_wants_matrix(const lap_plan_options *options) {
    return !options->naive && !(is_listed(options->exclude, "conv_matrix") &&
                                is_listed(options->exclude, "conv_matrix_down"));
}

/* The chooser's row for the case, if there is one that this build and batch can have. */
static const lap_kernel_row *chooser_row(const lap_plan *plan, lap_case *c, bool has_gemm) {
    const lap_plan_options *options = &plan->options;
    if (!options->chooser || options->naive) return NULL;
    const lap_kernel_row *row = options->chooser(options->chooser_context, c);
    if (!row || !lap_kernel_can_run(row, c, has_gemm) || !row->valid(c)) return NULL;
    return row;
}

/* Candidate i of a step, in the order in which they are tried: the chooser's, then preferred rows
 * (variants too), then the others of the list. NULL where there is none in that place. */
static const lap_kernel_row *candidate(const lap_plan *plan, lap_case *c, size_t i, bool has_gemm) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    const lap_plan_options *options = &plan->options;
    const lap_kernel_row *row = i ? rows[(i - 1) % count] : chooser_row(plan, c, has_gemm);
    if (!row || (options->naive && !row->naive)) return NULL;
    if (is_listed(options->exclude, row->id)) return NULL;
    if (i) {
        bool preferred = is_listed(options->prefer, row->id);
        if (preferred != (i <= count) || (row->variant && !preferred)) return NULL;
    }
    return lap_kernel_can_run(row, c, has_gemm) ? row : NULL;
}

/* Why rows that were asked for by name are passed over where the device has no library for them. */
static void note_lacking_gemm(const lap_plan *plan, const lap_case *c, lap_text *passed) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (!rows[i]->needs_gemm || !is_listed(plan->options.prefer, rows[i]->id)) continue;
        if (lap_kernel_can_run(rows[i], c, true))
            lap_text_addf(passed, "%s%s: %s", passed->length ? "; " : "", rows[i]->id,
                          lap_device_gemm_lacking(plan->session->device));
    }
}

lap_status plan_choose(lap_plan *plan, plan_step *step, lap_fusion fusion, lap_error *err) {
    size_t count;
    (void)lap_kernel_rows(&count);
    uint64_t chosen_for = plan->options.chosen_for ? plan->options.chosen_for : plan->options.batch;
    bool has_gemm = lap_device_has_gemm(plan->session->device);
    lap_text passed = {0};
    if (step->fallback) lap_text_add(&passed, step->fallback); /* of a fused try */
    free(step->fallback);
    step->fallback = NULL;
    lap_status status = LAP_E_UNSUPPORTED;
    for (size_t i = 0; i <= 2 * count; i++) {
        step->c = (lap_case){.op = step->op,
                             .fusion = fusion,
                             .partner = step->partner,
                             .device = lap_device_get_info(plan->session->device),
                             .precision = plan->options.precision,
                             .features = plan->session->features,
                             .n = chosen_for};
        if (i == 0 && !has_gemm) note_lacking_gemm(plan, &step->c, &passed);
        const lap_kernel_row *row = candidate(plan, &step->c, i, has_gemm);
        if (!row) continue;
        step->row = row;
        step->chosen = i == 0;
        step->c.n = plan->options.batch;
        lap_error detail = {0};
        status = build_fitting(plan, step, chosen_for, &passed, &detail);
        if (status == LAP_OK) break;
        if (!can_fall_back(status)) {
            if (err) *err = detail;
            lap_error_prefix(err, "%s: kernel %s: ", step->op->name, row->id);
            lap_text_free(&passed);
            return status;
        }
        char line[512];
        lap_error_text(&detail, line, sizeof line);
        lap_text_addf(&passed, "%s%s: %s", passed.length ? "; " : "", row->id, line);
    }
    if (status != LAP_OK) {
        const char *lacking = plan->session->lacking[plan->options.precision];
        const char *exclude = plan->options.exclude ? plan->options.exclude : "";
        status = LAP_FAIL(
            err, LAP_E_UNSUPPORTED, "%s: no %s kernel in %s runs on this device%s%s%s%s",
            step->op->name, lap_op_kind_name(step->op->kind),
            lap_precision_name(plan->options.precision), passed.length || *lacking ? ": " : "",
            passed.length ? lap_text_get(&passed) : lacking, *exclude ? "; excluded: " : "",
            exclude);
    }
    step->fallback = passed.data; /* may be NULL */
    return status;
}
