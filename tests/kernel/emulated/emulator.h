/* Chained CUDA kernels in host memory: see emulator.c. */
#ifndef KERNEL_EMULATOR_H
#define KERNEL_EMULATOR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct emulated_launch {
    char *memory;
    const char *weights;
    const int32_t *table;
    void *sync;
    int first, count;
    uint32_t groups, local_bytes;
} emulated_launch;

void emulated_chain_tf32(const emulated_launch *launch);
void emulated_chain_fp16(const emulated_launch *launch);

#endif
