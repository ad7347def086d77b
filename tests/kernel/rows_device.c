/* Every kernel row on every device of one backend, op by op and pair by pair, against src/ref:
 * integer data for equal bits, real data within the rounding bound, NaN that must come through.
 * Outputs are poisoned and guarded. GPU rows also run on CPU devices here (told that it is a GPU),
 * on few and small shapes: slow, but their arithmetic is checked without a GPU; so do halves and
 * bfloat16, and the matrix instructions of other vendors, emulated by element (matrix/). */
#include "rows_job.h"
#include "shapes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* conv_matrix's text with its instructions in front, and where they exchange operands. */
static char *emulated(const char *text) {
    static const char begin[] = "const int flags) {\n";
    static const char room[] = "    __local uint emulated_room[THREADS * ROOM_WORDS];\n";
    FILE *file = fopen(MATRIX_INSTRUCTIONS, "rb");
    const char *body = strstr(text, begin);
    assert_true(file && body);
    char *all = must_alloc(strlen(text) + 20000, 1);
    size_t used = fread(all, 1, 16000, file);
    fclose(file);
    body += sizeof begin - 1;
    memcpy(all + used, text, (size_t)(body - text));
    used += (size_t)(body - text);
    strcpy(all + used, room);
    strcat(all + used, body);
    return all;
}

/* Builds the row for the case in j; false when a built kernel takes smaller groups only. */
static bool build_job(job *j) {
    bool fits = true;
    lap_define defines[LAP_MAX_DEFINES];
    size_t count = lap_kernel_defines(j->row, &j->c, defines);
    for (int s = 0; s < j->row->stage_count; s++) {
        const lap_stage *stage = &j->row->stages[s];
        if (stage->kind != LAP_STAGE_KERNEL) continue;
        lap_build build = {stage->stem, lap_kernel_source(j->r->info.language, stage->stem),
                           stage->entry, defines, count};
        char *text = strcmp(stage->stem, "conv_matrix") == 0 ? emulated(build.source) : NULL;
        if (text) build.source = text;
        OK(lap_kernel_build(j->r->device, &build, &j->kernels[s], &job_err));
        free(text);
        lap_grid grid = {0};
        assert_true(stage->grid(&j->c, &grid));
        fits &= grid.local[0] * grid.local[1] * grid.local[2] <=
                lap_kernel_get_info(j->kernels[s])->max_group_size;
    }
    return fits;
}

/* Runs all fills on the case in j. */
static void check_job(job *j) {
    static const char *const fills[] = {"exact", "real", "NaN"};
    char params[128], where[512];
    lap_kernel_params_text(j->row, &j->c.params, params, sizeof params);
    bool fits = build_job(j);
    for (int f = 0; fits && f < FILL_COUNT; f++) {
        snprintf(where, sizeof where, "%s [%s], %s data, n=%d c=%d %dx%d k=%d %dx%d/%d+%d, %d",
                 j->row->id, params, fills[f], (int)j->c.n, j->op.in.c, j->op.in.h, j->op.in.w,
                 j->op.out.c, j->op.r, j->op.s, j->op.stride, j->op.pad, j->partner.out.c);
        job_make_data(j, (fill)f);
        job_run(j);
        job_judge(j, (fill)f, where);
        if (f == FILL_REAL) job_judge_repeat(j, where);
        job_free_data(j);
    }
    for (int s = 0; s < j->row->stage_count; s++) {
        lap_kernel_free(j->kernels[s]);
        j->kernels[s] = NULL;
    }
    j->r->checked += fits;
    j->r->skipped += !fits;
}

/* LAP_TEST_ROW in the environment: only rows whose name begins so. */
static bool asked_for(const rig *r, const lap_kernel_row *row) {
    const char *only = getenv("LAP_TEST_ROW");
    if (r->only && strncmp(row->id, r->only, strlen(r->only)) != 0) return false;
    return !only || strncmp(row->id, only, strlen(only)) == 0;
}

static bool start_job(job *j, rig *r, const lap_kernel_row *row, const shape *s) {
    memset(j, 0, sizeof *j);
    j->r = r;
    j->row = row;
    j->op = shape_op(s);
    j->partner = shape_partner(s, &j->op);
    j->c = (lap_case){.op = &j->op,
                      .fusion = s->fusion,
                      .partner = s->fusion ? &j->partner : NULL,
                      .device = &r->info,
                      .precision = r->precision,
                      .features = r->features,
                      .n = (uint64_t)s->n};
    if (!asked_for(r, row) || row->chain) return false;
    j->last = lap_fusion_partner_writes(s->fusion) ? &j->partner : &j->op;
    if (!lap_kernel_can_run(row, &j->c, r->has_gemm)) {
        r->tiny = r->info;
        r->tiny.units = 1;
        j->c.device = &r->tiny;
        /* Some rows are for NVIDIA GPUs, but run anywhere. */
        if (r->pretend && !lap_kernel_can_run(row, &j->c, r->has_gemm)) r->tiny.cc_major = 7;
        if (!lap_kernel_can_run(row, &j->c, r->has_gemm)) return false;
    }
    row->defaults(&j->c, &j->c.params);
    assert_true(row->valid(&j->c));
    return true;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void check_rows(rig *r, const int *indices, size_t index_count) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count * index_count; i++) {
        job j;
        const lap_kernel_row *row = rows[i / index_count];
        /* Done without pretence. */
        if (r->pretend && ((row->naive && !r->precision) || row->needs_gemm)) continue;
        size_t at = i % index_count;
        if (start_job(&j, r, row, &shapes[indices ? indices[at] : (int)at])) check_job(&j);
    }
}

static void defaults_on_all_shapes(void **state) {
    rig *r = *state;
    if (getenv("LAP_TEST_SMALL"))
        check_rows(r, small_shapes, (size_t)small_shape_count);
    else
        check_rows(r, NULL, (size_t)shape_count);
    if (!getenv("LAP_TEST_ROW")) assert_true(r->checked >= 4);
}

/* Each value of each tunable once, the others at their defaults. */
static void check_values(rig *r) {
    size_t count;
    const lap_kernel_row *const *rows = lap_kernel_rows(&count);
    for (size_t i = 0; i < count; i++)
        for (int t = 0; t < rows[i]->tunable_count; t++)
            for (int v = 0; v < rows[i]->tunables[t].value_count; v++) {
                job j;
                const shape *s = &shapes[shape_for(rows[i]->kind, rows[i]->fusion)];
                if (r->pretend && rows[i]->needs_gemm) continue;
                if (!start_job(&j, r, rows[i], s)) continue;
                if (j.c.params.value[t] == rows[i]->tunables[t].values[v]) continue;
                j.c.params.value[t] = rows[i]->tunables[t].values[v];
                if (rows[i]->valid(&j.c)) check_job(&j);
            }
}

static void declared_values(void **state) {
    if (!getenv("LAP_TEST_SMALL")) check_values(*state);
}

static void gpu_rows_on_cpu(void **state) {
    rig *r = *state;
    if (r->info.type != LAP_DEVICE_CPU) return;
    rig gpu = *r;
    gpu.info.type = LAP_DEVICE_GPU;
    gpu.info.simd_width = 32;
    gpu.pretend = true;
    check_rows(&gpu, small_shapes, (size_t)small_shape_count);
    if (!getenv("LAP_TEST_SMALL")) check_values(&gpu);
    r->checked = gpu.checked;
    r->skipped = gpu.skipped;
}

/* Storage of 16 bits, on any device; on a CPU that is said to be a GPU. */
static void short_rows(void **state) {
    rig *r = *state, gpu = *r;
    static const lap_precision precisions[] = {LAP_FP16, LAP_BF16};
    gpu.pretend = r->info.type == LAP_DEVICE_CPU;
    gpu.info.type = LAP_DEVICE_GPU;
    if (gpu.pretend) gpu.info.simd_width = 32;
    for (int i = 0; i < 2; i++) {
        gpu.precision = precisions[i];
        check_rows(&gpu, small_shapes, (size_t)small_shape_count);
    }
    r->checked = gpu.checked;
    r->skipped = gpu.skipped;
}

/* conv_matrix in all its forms, with its instructions emulated; LAP_TEST_MATRIX=1234 in the
 * environment: that alone, in those forms, on more shapes and with other tiles. */
static void emulated_matrix(void **state) {
    static const int matrix_shapes[] = {2, 28, 4, 7, 12, 26, 40, 42};
    rig *r = *state, gpu = *r;
    if (r->info.type != LAP_DEVICE_CPU || strcmp(r->info.language, "cl") != 0) return;
    const char *forms = getenv("LAP_TEST_MATRIX");
    size_t count = forms ? sizeof matrix_shapes / sizeof matrix_shapes[0] : 2;
    gpu.pretend = true;
    gpu.only = "conv_matrix";
    gpu.info.type = LAP_DEVICE_GPU;
    gpu.info.units = 1; /* large tiles */
    gpu.info.max_group_size = 256;
    for (int form = 1; form <= LAP_MATRIX_FORMS; form++) {
        if (forms && !strchr(forms, '0' + form)) continue;
        strcpy(gpu.info.vendor, form <= 2 ? "AMD" : "Intel");
        gpu.precision = form % 2 ? LAP_FP16 : LAP_BF16;
        gpu.features = LAP_FEATURE_MATRIX(form, gpu.precision);
        check_rows(&gpu, matrix_shapes, count);
        gpu.only = "conv_matrix_down";
        if (forms) check_values(&gpu);
        gpu.only = "conv_matrix";
    }
    if (!getenv("LAP_TEST_ROW")) assert_true(gpu.checked >= r->checked + 8);
    r->checked = gpu.checked;
    r->skipped = gpu.skipped;
}

static int run_on(const lap_device_info *info) {
    rig r = {.info = *info};
    OK(lap_device_open(info, &r.device, &job_err));
    OK(lap_queue_new(r.device, &r.queue, &job_err));
    r.has_gemm = lap_device_has_gemm(r.device);
    printf("%s (%s)%s%s\n", info->name, info->selector, r.has_gemm ? ", " : "",
           r.has_gemm ? lap_device_gemm_name(r.device) : "");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(defaults_on_all_shapes, &r),
        cmocka_unit_test_prestate(declared_values, &r),
        cmocka_unit_test_prestate(gpu_rows_on_cpu, &r),
        cmocka_unit_test_prestate(short_rows, &r),
        cmocka_unit_test_prestate(emulated_matrix, &r),
    };
    const struct CMUnitTest matrix[] = {cmocka_unit_test_prestate(emulated_matrix, &r)};
    int failed = getenv("LAP_TEST_MATRIX") ? cmocka_run_group_tests(matrix, NULL, NULL)
                                           : cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d checked, %d skipped: the built kernel takes no group of that size\n", r.checked,
           r.skipped);
    lap_queue_free(r.queue);
    if (failed == 0) OK(lap_device_close(r.device, &job_err)); /* nothing left alive */
    return failed;
}

int main(void) {
    lap_device_list *list;
    if (lap_device_enumerate(&list, &job_err) != LAP_OK) {
        fprintf(stderr, "%s\n", job_err.message);
        return 1;
    }
    int failed = 0, found = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->devices[i].backend, ROWS_BACKEND) != 0) continue;
        found++;
        failed += run_on(&list->devices[i]);
    }
    for (size_t i = 0; !found && i < list->note_count; i++)
        if (strcmp(list->notes[i].backend, ROWS_BACKEND) == 0)
            printf("skipped: %s\n", list->notes[i].reason);
    lap_device_list_free(list);
    if (!found) printf("skipped: no %s device\n", ROWS_BACKEND);
    return found ? failed != 0 : 77;
}
