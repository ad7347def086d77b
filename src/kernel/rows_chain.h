/* Private to the chained rows (rows_chain.c, rows_chain_split.c): what they share. */
#ifndef LAP_KERNEL_ROWS_CHAIN_H
#define LAP_KERNEL_ROWS_CHAIN_H

#include "kernel/rows.h"

#define LAP_CHAIN_THREADS 256
#define LAP_CHAIN_CHUNK 128 /* bytes of channels in a phase */
#define LAP_CHAIN_HEAD 512  /* bytes of local memory before the input's rows */
#define LAP_CHAIN_MOST_BUFFERS 16
#define LAP_CHAIN_MOST_ROWS (1 << 28)

/* Local memory of a group. */
int lap_chain_local(const lap_case *c);
/* A device that can have them, and at most that batch. */
bool lap_chain_device(const lap_case *c, uint64_t most_batch);
bool lap_chain_grid(const lap_case *c, lap_grid *grid);

#define LAP_CHAIN_STAGE(stem)                                                                      \
    .stages = {LAP_ROW_STAGE_KERNEL(stem, lap_chain_grid, 6, LAP_ROLE_MEMORY, LAP_ROLE_PARAMETERS, \
                                    LAP_ROLE_TABLE, LAP_ROLE_SYNC, LAP_ROLE_FIRST,                 \
                                    LAP_ROLE_COUNT)},                                              \
    .stage_count = 1, .precisions = LAP_ROW_MMA, .chain_local = lap_chain_local

#endif
