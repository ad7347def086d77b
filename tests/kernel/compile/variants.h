/* Every build that a kernel row can ask for, as text, without a device: what the tests compile for
 * architectures that this machine does not have. */
#ifndef LAP_TEST_VARIANTS_H
#define LAP_TEST_VARIANTS_H

#include "kernel/kernel.h"

typedef struct variant {
    const lap_kernel_row *row;
    const char *stem, *entry;
    bool is_default; /* some default parameters lead here; else only tuning does */
    /* None before it in the list has the same kernel, parameters, precision and names of defines:
     * only the layer's sizes are others. */
    bool is_first_of_kind;
    char params[160];   /* "BM=64 …" */
    char options[1024]; /* "-DC=64 …" */
    lap_define defines[LAP_MAX_DEFINES];
    size_t define_count;
} variant;

typedef struct variants {
    variant *list;
    size_t count, room;
} variants;

/* Kinds of devices: "nvidia" (language cu), "nvidia-cl", "amd", "intel" (language cl), and those
 * two with matrix instructions: "amd-mfma", "amd-wmma", "intel-8", "intel-16". Rows that refuse the
 * GPU are given a CPU. NULL for an unknown name. */
const lap_device_info *variants_device(const char *name);

/* Distinct builds of all rows' default parameters over ResNet-18 at 224x224 and batches 1, 32, 256.
 * false without memory. */
bool variants_defaults(const lap_device_info *gpu, variants *out);
/* Adds distinct builds of the tuning space, at most `most` a row and evenly picked, on the row's
 * first op that it accepts. */
bool variants_space(const lap_device_info *gpu, size_t most, variants *out);
void variants_free(variants *v);

#endif
