/* The fake backend's script, its table of kernels, and running what was enqueued, with the planted
 * defects. */
#include "fake_objects.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fake_script fake;

enum { MAX_KERNELS = 64, MAX_PLANTS = 8 };

static struct {
    const char *stem, *entry;
    fake_kernel_fn fn;
} kernels[MAX_KERNELS];
static size_t kernel_count;
static struct {
    char stem[48];
    fake_plant_kind kind;
} plants[MAX_PLANTS];
size_t fake_object_count;

size_t fake_alive(void) {
    return fake_object_count;
}

bool fake_register(const char *stem, const char *entry, fake_kernel_fn fn) {
    size_t i = 0;
    while (i < kernel_count &&
           (strcmp(kernels[i].stem, stem) != 0 || strcmp(kernels[i].entry, entry) != 0))
        i++;
    if (i == MAX_KERNELS) return false;
    kernels[i].stem = stem;
    kernels[i].entry = entry;
    kernels[i].fn = fn;
    if (i == kernel_count) kernel_count++;
    return true;
}

int64_t fake_define(const lap_define *defines, size_t count, const char *name, int64_t fallback) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(defines[i].name, name) == 0) return defines[i].value;
    }
    return fallback;
}

void fake_plant(const char *stem, fake_plant_kind kind) {
    size_t i = 0;
    while (i < MAX_PLANTS && strcmp(plants[i].stem, stem) != 0)
        i++;
    for (size_t k = 0; i == MAX_PLANTS && k < MAX_PLANTS; k++) {
        if (!plants[k].stem[0]) i = k;
    }
    if (i == MAX_PLANTS) abort(); /* a test that plants more must raise the limit */
    snprintf(plants[i].stem, sizeof plants[i].stem, "%s", kind ? stem : "");
    plants[i].kind = kind;
}

void fake_reset(void) {
    fake = (fake_script){.device_count = 1,
                         .fail_launch_status = LAP_E_LAUNCH,
                         .launch_s = 10e-6,
                         .command_s = 1e-6};
    for (size_t i = 0; i < FAKE_MAX_DEVICES; i++) {
        lap_device_info *d = &fake.devices[i];
        *d = (lap_device_info){.backend = "fake",
                               .language = "cl",
                               .platform = "Fake Platform",
                               .vendor = "Fake Vendor",
                               .driver = "1.0",
                               .toolchain = "C functions",
                               .api = "Fake 1.0",
                               .type = LAP_DEVICE_GPU,
                               .memory_bytes = (uint64_t)1 << 30,
                               .max_alloc_bytes = (uint64_t)1 << 29,
                               .cache_bytes = 1 << 20,
                               .local_bytes = 32 << 10,
                               .local_optin_bytes = 32 << 10,
                               .units = 4,
                               .clock_mhz = 1000,
                               .max_group_size = 1024,
                               .max_group_dim = {1024, 1024, 64},
                               .simd_width = 32,
                               .base_align_bytes = 128,
                               .timer_resolution_s = 1e-9,
                               .native = {i, 0}};
        snprintf(d->selector, sizeof d->selector, "fake:%zu", i);
        snprintf(d->name, sizeof d->name, "Fake Device %zu", i);
    }
    memset(plants, 0, sizeof plants);
    kernel_count = 0;
    fake_register_naive();
}

fake_kernel_fn fake_find_kernel(const char *stem, const char *entry) {
    for (size_t i = 0; i < kernel_count; i++) {
        if (strcmp(kernels[i].stem, stem) == 0 && strcmp(kernels[i].entry, entry) == 0)
            return kernels[i].fn;
    }
    return NULL;
}

/* ---- running commands ----------------------------------------------------------------------- */

static fake_plant_kind plant_of(const char *stem) {
    for (size_t i = 0; i < MAX_PLANTS; i++) {
        if (plants[i].kind && strcmp(plants[i].stem, stem) == 0) return plants[i].kind;
    }
    return FAKE_PLANT_NONE;
}

/* The output of a launch and its size in floats; see fake_plant_kind. */
static float *output_of(const command *c, size_t *count) {
    const fake_buffer *out = NULL;
    int64_t images = -1;
    for (size_t i = 0; i < c->launch.arg_count; i++) {
        const lap_raw_arg *arg = &c->launch.args[i];
        if (arg->kind == LAP_ARG_BUFFER && arg->buffer) out = arg->buffer;
        if (arg->kind == LAP_ARG_I32 && images < 0) images = arg->i32;
    }
    if (!out) return NULL;
    const lap_define *d = c->kernel->defines;
    size_t n = c->kernel->define_count;
    int64_t stored = fake_define(d, n, "KS", fake_define(d, n, "CS", 0));
    int64_t pixels = fake_define(d, n, "P", 1) * fake_define(d, n, "Q", 1);
    *count = stored > 0 && images > 0 ? (size_t)(images * pixels * stored) : out->bytes / 4;
    return (float *)(void *)out->data;
}

static void run_kernel(const command *c) {
    void *pointers[LAP_MAX_ARGS] = {0};
    for (size_t i = 0; i < c->launch.arg_count; i++) {
        const fake_buffer *buffer = c->launch.args[i].buffer;
        if (buffer && buffer->pretend) return;
        if (c->launch.args[i].kind == LAP_ARG_BUFFER && buffer) pointers[i] = buffer->data;
    }
    fake_plant_kind plant = plant_of(c->kernel->stem);
    if (plant == FAKE_PLANT_NOTHING) return;
    c->kernel->fn(c->kernel->defines, c->kernel->define_count, &c->launch, pointers);
    size_t count = 0;
    float *out = plant ? output_of(c, &count) : NULL;
    if (!out || count == 0) return;
    /* A multiple of 4 is a channel that is there in every layout. */
    size_t middle = count / 2 / 4 * 4;
    if (plant == FAKE_PLANT_WRONG) out[middle] = out[middle] * 1.125f + 1.0f;
    if (plant == FAKE_PLANT_NAN) out[middle] = NAN;
    if (plant == FAKE_PLANT_OUT_OF_BOUNDS) out[count] = 12345.0f; /* at worst in the red zone */
}

static float *matrix(void *buffer, size_t offset) {
    return (float *)(void *)((fake_buffer *)buffer)->data + offset;
}

static void run_gemm(const lap_raw_gemm *g) {
    const float *a = matrix(g->a, g->a_offset), *b = matrix(g->b, g->b_offset);
    float *c = matrix(g->c, g->c_offset);
    for (size_t i = 0; i < g->m; i++) {
        for (size_t j = 0; j < g->n; j++) {
            float sum = 0;
            for (size_t l = 0; l < g->k; l++)
                sum +=
                    a[i * g->lda + l] * (g->b_transposed ? b[j * g->ldb + l] : b[l * g->ldb + j]);
            float *to = &c[i * g->ldc + j];
            *to = sum + (g->beta != 0 ? g->beta * *to : 0);
        }
    }
}

static bool pretends(const void *buffer) {
    return ((const fake_buffer *)buffer)->pretend;
}

static void run(const command *c) {
    switch (c->kind) {
    case RUN:
        run_kernel(c);
        break;
    case GEMM:
        if (!pretends(c->gemm.a) && !pretends(c->gemm.b) && !pretends(c->gemm.c))
            run_gemm(&c->gemm);
        break;
    case WRITE:
        if (!c->buffer->pretend) memcpy(c->buffer->data + c->offset, c->from, c->bytes);
        break;
    case READ:
        if (c->buffer->pretend)
            memset(c->to, 0, c->bytes);
        else
            memcpy(c->to, c->buffer->data + c->offset, c->bytes);
        break;
    case FILL:
        if (c->buffer->pretend) break;
        for (size_t i = 0; i < c->bytes; i += 4)
            memcpy(c->buffer->data + c->offset + i, &c->pattern, 4);
        break;
    }
}

static bool append(commands *list, const command *c) {
    if (list->count == list->capacity) {
        size_t more = list->capacity ? list->capacity * 2 : 16;
        command *items = realloc(list->items, more * sizeof *items);
        if (!items) return false;
        list->items = items;
        list->capacity = more;
    }
    list->items[list->count++] = *c;
    return true;
}

void fake_drain(fake_queue *q) {
    for (size_t i = 0; i < q->pending.count; i++)
        run(&q->pending.items[i]);
    q->pending.count = 0;
    if (fake.real_time) lap_clock_sleep(q->unslept);
    q->unslept = 0;
}

/* Memory and kernels may be in use by what has not run yet. */
void fake_drain_all(fake_device *d) {
    for (fake_queue *q = d->queues; q; q = q->next)
        fake_drain(q);
}

double fake_copy_cost(size_t bytes) {
    double rate = fake.copy_bytes_per_s;
    return fake.command_s + (rate > 0 ? (double)bytes / rate : 0);
}

static double cost_of(const command *c) {
    if (c->kind == WRITE || c->kind == READ) return fake_copy_cost(c->bytes);
    if (c->kind == FILL) return fake.command_s;
    if (c->kind == RUN && fake.cost) return fake.cost(c->kernel->stem, &c->launch);
    return fake.launch_s;
}

void fake_advance(fake_queue *q, double seconds) {
    q->clock += seconds;
    q->unslept += seconds;
}

lap_status fake_submit(fake_queue *q, const command *c, lap_error *err) {
    if (q->graph) {
        if (append(q->graph, c)) return LAP_OK;
        return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    }
    if (!fake.deferred) {
        run(c);
    } else if (!append(&q->pending, c)) {
        return LAP_FAIL(err, LAP_E_NOMEM, "fake: out of memory");
    }
    fake_advance(q, cost_of(c));
    return LAP_OK;
}

lap_status fake_healthy(const fake_device *d, const char *call, lap_error *err) {
    if (!d->lost) return LAP_OK;
    return LAP_FAIL_NATIVE(err, LAP_E_DEVICE, call, 700, "FAKE_FAULT", "fake: the device faulted");
}

lap_status fake_settle(fake_queue *q, const char *call, lap_error *err) {
    LAP_TRY(fake_healthy(q->device, call, err));
    fake_drain(q);
    lap_status status = q->late;
    q->late = LAP_OK;
    if (status == LAP_OK) return LAP_OK;
    if (fake.sticky) q->device->lost = true;
    return LAP_FAIL_NATIVE(err, status, call, 1, "FAKE_LATE", "fake: an earlier launch failed");
}

lap_status fake_touch(const fake_buffer *buffer, const char *call, lap_error *err) {
    if (!buffer || !buffer->lazy) return LAP_OK;
    return LAP_FAIL_NATIVE(err, LAP_E_OOM, call, 2, "FAKE_OUT_OF_MEMORY",
                           "fake: the %zu bytes promised before are not there", buffer->bytes);
}
