/* The list of tools and how to build one. Measures nothing. */
#include "kernel/tools.h"
#include "kernel/kernel.h"
#include "kernel/rows.h"

#include <string.h>

static const lap_define fma_gpu[] = {{"V", 1}, {"CHAINS", 8}};
static const lap_define copy_gpu[] = {{"V", 4}, {"CHUNKED", 0}};

static const lap_define mma_tf32[] = {{"PRECISION", 2}};
static const lap_define mma_fp16[] = {{"PRECISION", 3}};
static const lap_define mma_bf16[] = {{"PRECISION", 4}};

static const lap_define local_small[] = {{"LOCAL_BYTES", 32768}};

static const lap_tool tools[] = {
    {.stem = "elementwise",
     .entries = {"elementwise_mul", "elementwise_add", "elementwise_sin", "elementwise_cos"}},
    {.stem = "peak_fma", .entries = {"peak_fma"}, .variants = {fma_gpu}, .variant_counts = {2}},
    {.stem = "stream_copy",
     .entries = {"stream_copy"},
     .variants = {copy_gpu},
     .variant_counts = {2}},
    {.stem = "peak_mma",
     .entries = {"peak_mma"},
     .needs_mma = true,
     .variants = {mma_tf32, mma_fp16, mma_bf16},
     .variant_counts = {1, 1, 1}},
    {.stem = "probe_mma",
     .entries = {"probe_mma"},
     .needs_mma = true,
     .variants = {mma_tf32, mma_fp16, mma_bf16},
     .variant_counts = {1, 1, 1}},
    {.stem = "probe_wgmma",
     .entries = {"probe_wgmma"},
     .needs_mma = true,
     .only = "cl",
     .variants = {mma_tf32, mma_fp16, mma_bf16},
     .variant_counts = {1, 1, 1}},
    {.stem = "probe_local",
     .entries = {"probe_local"},
     .only = "cl",
     .variants = {local_small},
     .variant_counts = {1}},
};

const lap_tool *lap_tool_at(size_t index) {
    return index < sizeof tools / sizeof tools[0] ? &tools[index] : NULL;
}

lap_status lap_tool_build(lap_device *device, const char *stem, const char *entry,
                          const lap_define *defines, size_t define_count, lap_kernel **out,
                          lap_error *err) {
    *out = NULL;
    const char *language = lap_device_get_info(device)->language;
    lap_build build = {.stem = stem,
                       .source = lap_kernel_source(language, stem),
                       .entry = entry,
                       .defines = defines,
                       .define_count = define_count};
    if (!build.source)
        return LAP_FAIL(err, LAP_E_UNSUPPORTED, "kernel %s does not exist in language %s", stem,
                        language);
    return lap_kernel_build(device, &build, out, err);
}

int lap_tool_vector(const lap_device_info *device, int scalar) {
    return device->type == LAP_DEVICE_CPU ? lap_row_vector_width(device) : scalar;
}
