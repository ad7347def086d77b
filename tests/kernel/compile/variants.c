/* Enumerates builds. Compiles nothing. */
#include "variants.h"
#include "plan/internal.h"

#include "kernel/tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t batches[] = {1, 32, 256};
#define BATCHES (sizeof batches / sizeof batches[0])

#define AMD                                                                                        \
    {                                                                                              \
        .language = "cl", .vendor = "Advanced Micro Devices, Inc.", .type = LAP_DEVICE_GPU,        \
        .units = 104, .local_bytes = 65536, .max_group_size = 256,                                 \
        .max_group_dim = {1024, 1024, 1024}, .simd_width = 64                                      \
    }
#define INTEL                                                                                      \
    {                                                                                              \
        .language = "cl", .vendor = "Intel(R) Corporation", .type = LAP_DEVICE_GPU, .units = 512,  \
        .local_bytes = 65536, .max_group_size = 1024, .max_group_dim = {1024, 1024, 1024},         \
        .simd_width = 8                                                                            \
    }

static const struct {
    const char *name;
    lap_device_info info;
    int form; /* of conv_matrix's instructions; 0: none */
} devices[] = {
    {"nvidia",
     {.language = "cu",
      .vendor = "NVIDIA Corporation",
      .type = LAP_DEVICE_GPU,
      .units = 132,
      .local_bytes = 49152,
      .local_optin_bytes = 232448,
      .max_group_size = 1024,
      .max_group_dim = {1024, 1024, 64},
      .simd_width = 32,
      .cc_major = 9},
     0},
    {"nvidia-cl",
     {.language = "cl",
      .vendor = "NVIDIA Corporation",
      .type = LAP_DEVICE_GPU,
      .units = 132,
      .local_bytes = 49152,
      .local_optin_bytes = 232448,
      .max_group_size = 1024,
      .max_group_dim = {1024, 1024, 64},
      .simd_width = 32,
      .cc_major = 9},
     0},
    {"amd", AMD, 0},
    {"intel", INTEL, 0},
    {"amd-mfma", AMD, 1},
    {"amd-wmma", AMD, 2},
    {"intel-8", INTEL, 3},
    {"intel-16", INTEL, 4},
};

const lap_device_info *variants_device(const char *name) {
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (strcmp(devices[i].name, name) == 0) return &devices[i].info;
    return NULL;
}

/* All that test kernels could find there. */
static unsigned features_of(const lap_device_info *gpu) {
    if (gpu->cc_major) return ~0u;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
        if (gpu == &devices[i].info && devices[i].form)
            return LAP_FEATURE_MATRIX(devices[i].form, LAP_FP16) |
                   LAP_FEATURE_MATRIX(devices[i].form, LAP_BF16);
    return 0;
}

static lap_device_info cpu_like(const lap_device_info *gpu) {
    lap_device_info info = *gpu;
    info.type = LAP_DEVICE_CPU;
    info.units = 16;
    info.max_group_size = 4096;
    /* GPU compilers limit the stack of a work-item; with 16 the tiles of CPU kernels go beyond it.
     */
    info.simd_width = 4;
    info.host_memory = true;
    return info;
}

static bool same_names(const variant *a, const variant *b) {
    if (a->define_count != b->define_count) return false;
    for (size_t i = 0; i < a->define_count; i++)
        if (strcmp(a->defines[i].name, b->defines[i].name) != 0) return false;
    return true;
}

static int64_t precision_of(const variant *v) {
    for (size_t i = 0; i < v->define_count; i++)
        if (strcmp(v->defines[i].name, "PRECISION") == 0) return v->defines[i].value;
    return -1;
}

/* The same code but for the sizes of a layer. */
static bool same_kind(const variant *a, const variant *b) {
    return strcmp(a->stem, b->stem) == 0 && strcmp(a->params, b->params) == 0 &&
           precision_of(a) == precision_of(b) && same_names(a, b);
}

static bool add(variants *out, const lap_kernel_row *row, const lap_case *c, bool is_default) {
    variant v = {.row = row, .is_default = is_default};
    v.define_count = lap_kernel_defines(row, c, v.defines);
    size_t used = 0;
    for (size_t i = 0; i < v.define_count && used < sizeof v.options; i++)
        used += (size_t)snprintf(v.options + used, sizeof v.options - used, "%s-D%s=%lld",
                                 i ? " " : "", v.defines[i].name, (long long)v.defines[i].value);
    lap_kernel_params_text(row, &c->params, v.params, sizeof v.params);
    for (int s = 0; s < row->stage_count; s++) {
        if (row->stages[s].kind != LAP_STAGE_KERNEL) continue;
        v.stem = row->stages[s].stem;
        v.entry = row->stages[s].entry;
        bool known = false;
        v.is_first_of_kind = true;
        for (size_t i = 0; i < out->count && !known; i++) {
            known = strcmp(out->list[i].stem, v.stem) == 0 &&
                    strcmp(out->list[i].options, v.options) == 0;
            if (same_kind(&out->list[i], &v)) v.is_first_of_kind = false;
        }
        if (known) continue;
        if (out->count == out->room) {
            size_t room = out->room ? 2 * out->room : 64;
            variant *list = realloc(out->list, room * sizeof *list);
            if (!list) return false;
            out->list = list;
            out->room = room;
        }
        out->list[out->count++] = v;
    }
    return true;
}

/* The case of a row on an op, fused as the row wants, on the GPU or else on a CPU; false when it
 * runs on neither. */
static bool accepted(const lap_kernel_row *row, const lap_net *net, int index,
                     lap_precision precision, uint64_t n, const lap_device_info *gpu,
                     const lap_device_info *cpu, lap_case *c) {
    const lap_device_info *both[] = {gpu, cpu};
    const lap_op *partner = NULL;
    lap_fusion fusion = LAP_FUSE_NONE;
    if (row->fusion != LAP_FUSE_NONE) partner = plan_partner(net, index, &fusion);
    for (int i = 0; i < 2; i++) {
        *c = (lap_case){.op = &net->ops[index],
                        .fusion = fusion,
                        .partner = partner,
                        .device = both[i],
                        .precision = precision,
                        .features = features_of(gpu),
                        .n = n};
        if (!lap_kernel_can_run(row, c, true)) continue;
        row->defaults(c, &c->params);
        return true;
    }
    return false;
}

static void add_tool(variants *out, const lap_tool *tool, int which, bool *ok) {
    if (out->count == out->room) {
        size_t room = out->room ? 2 * out->room : 64;
        variant *list = realloc(out->list, room * sizeof *list);
        if (!list) {
            *ok = false;
            return;
        }
        out->list = list;
        out->room = room;
    }
    variant *v = &out->list[out->count++];
    *v = (variant){.stem = tool->stem,
                   .entry = tool->entries[0],
                   .is_default = !tool->needs_mma,
                   .is_first_of_kind = true};
    size_t used = 0;
    for (; v->define_count < tool->variant_counts[which]; v->define_count++) {
        const lap_define *d = &tool->variants[which][v->define_count];
        v->defines[v->define_count] = *d;
        used += (size_t)snprintf(v->options + used, sizeof v->options - used, "%s-D%s=%lld",
                                 used ? " " : "", d->name, (long long)d->value);
    }
}

/* What the program measures devices with. */
static bool tools(const lap_device_info *gpu, variants *out) {
    bool ok = true;
    const lap_tool *tool;
    for (size_t i = 0; ok && (tool = lap_tool_at(i)); i++)
        for (int v = 0; ok && (!tool->needs_mma || gpu->cc_major >= 8) &&
                        (v == 0 || (v < 3 && tool->variants[v]));
             v++)
            add_tool(out, tool, v, &ok);
    return ok;
}

/* All defaults of a network; of the networks behind the first only `most` builds a row, since their
 * layers differ in size more than in kind. */
static bool defaults_of(const char *model, size_t most, const lap_device_info *gpu, variants *out) {
    lap_net *net = NULL;
    if (lap_net_build(model, 224, 224, &net, NULL) != LAP_OK) return false;
    lap_device_info cpu = cpu_like(gpu);
    size_t rows;
    const lap_kernel_row *const *list = lap_kernel_rows(&rows);
    bool ok = true;
    for (size_t r = 0; r < rows && ok; r++) {
        size_t before = out->count;
        for (int o = 0; o < net->op_count && ok; o++)
            for (size_t b = 0; b < BATCHES && ok; b++)
                for (int p = 0; p < LAP_PRECISION_COUNT && ok; p++) {
                    /* A row's first precision for all batches, the others for the last. */
                    bool first = (list[r]->precisions & ((1u << p) - 1)) == 0;
                    lap_case c;
                    if ((first || b + 1 == BATCHES || list[r]->chain) &&
                        out->count - before < most &&
                        accepted(list[r], net, o, (lap_precision)p, batches[b], gpu, &cpu, &c))
                        ok = add(out, list[r], &c, true);
                }
    }
    lap_net_free(net);
    return ok;
}

bool variants_defaults(const lap_device_info *gpu, variants *out) {
    const char *const *models = lap_net_models();
    bool ok = tools(gpu, out) && defaults_of(models[0], SIZE_MAX, gpu, out);
    for (int i = 1; ok && models[i]; i++)
        ok = defaults_of(models[i], 3, gpu, out);
    return ok;
}

/* The index-th parameter vector in counting order; false past the last. */
static bool vector_at(const lap_kernel_row *row, uint64_t index, lap_params *params) {
    *params = (lap_params){0};
    for (int i = 0; i < row->tunable_count; i++) {
        const lap_tunable *t = &row->tunables[i];
        params->value[i] = t->values[index % (uint64_t)t->value_count];
        index /= (uint64_t)t->value_count;
    }
    return index == 0;
}

static bool space_of(const lap_kernel_row *row, lap_case *c, size_t most, variants *out) {
    uint64_t valid = 0;
    for (uint64_t i = 0; vector_at(row, i, &c->params); i++)
        valid += row->valid(c);
    uint64_t seen = 0;
    for (uint64_t i = 0; vector_at(row, i, &c->params); i++) {
        if (!row->valid(c)) continue;
        /* Evenly picked: when seen * most / valid takes a new value. */
        bool pick = valid <= most || seen * most / valid != (seen + 1) * most / valid;
        seen++;
        if (pick && !add(out, row, c, false)) return false;
    }
    return true;
}

/* Some of the row's space on the first op that it takes, from the back: wide layers, where no tile
 * is refused for being too wide. */
static bool space_on(const lap_kernel_row *row, const lap_net *net, const lap_device_info *gpu,
                     size_t most, variants *out, bool *found) {
    lap_device_info cpu = cpu_like(gpu);
    int p = 0;
    while (!(row->precisions & 1u << p))
        p++;
    for (int o = net->op_count - 1; o >= 0; o--) {
        lap_case c;
        if (!accepted(row, net, o, (lap_precision)p, 256, gpu, &cpu, &c)) continue;
        *found = true;
        return space_of(row, &c, most, out);
    }
    return true;
}

bool variants_space(const lap_device_info *gpu, size_t most, variants *out) {
    size_t rows;
    const lap_kernel_row *const *list = lap_kernel_rows(&rows);
    bool ok = true;
    for (size_t r = 0; r < rows && ok; r++) {
        bool found = !list[r]->tunable_count;
        for (const char *const *model = lap_net_models(); *model && ok && !found; model++) {
            lap_net *net = NULL;
            if (lap_net_build(*model, 224, 224, &net, NULL) != LAP_OK) return false;
            ok = space_on(list[r], net, gpu, most, out, &found);
            lap_net_free(net);
        }
    }
    return ok;
}

void variants_free(variants *v) {
    free(v->list);
    *v = (variants){0};
}
