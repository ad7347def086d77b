/* Prints the builds of a kind of device that differ in more than the layer's sizes, one a line:
 * stem, a tab, options. For scripts that compile them with tools of their own. Usage:
 * kernel_variants DEVICE [MOST]: also up to MOST builds of each row's tuning space. */
#include "variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    const lap_device_info *gpu = argc >= 2 ? variants_device(argv[1]) : NULL;
    if (!gpu) {
        fprintf(stderr, "usage: kernel_variants nvidia|nvidia-cl|amd|amd-mfma|amd-wmma|intel|"
                        "intel-8|intel-16 [MOST]\n");
        return 2;
    }
    variants v = {0};
    bool ok = variants_defaults(gpu, &v);
    if (ok && argc > 2) ok = variants_space(gpu, strtoul(argv[2], NULL, 10), &v);
    for (size_t i = 0; i < v.count; i++)
        if (v.list[i].is_first_of_kind && lap_kernel_source(gpu->language, v.list[i].stem))
            printf("%s\t%s\n", v.list[i].stem, v.list[i].options);
    variants_free(&v);
    return ok ? 0 : 1;
}
