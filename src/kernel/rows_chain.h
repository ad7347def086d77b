/* Private to the chained rows (rows_chain.c, rows_chain_conv.c): what they share. */
#ifndef LAP_KERNEL_ROWS_CHAIN_H
#define LAP_KERNEL_ROWS_CHAIN_H

#include "kernel/rows.h"

#define LAP_CHAIN_THREADS 256
#define LAP_CHAIN_CONV_KINDS 3 /* tiles of convolutions: the first of the kernel's kinds */

/* Local memory of a group. */
int lap_chain_local(const lap_case *c);
/* A device that can have them, and work that is small enough for them. */
bool lap_chain_suits(const lap_case *c);
bool lap_chain_grid(const lap_case *c, lap_grid *grid);

#define LAP_CHAIN_STAGE                                                                            \
    .stages = {LAP_ROW_STAGE_KERNEL("chain", lap_chain_grid, 6, LAP_ROLE_MEMORY,                   \
                                    LAP_ROLE_PARAMETERS, LAP_ROLE_TABLE, LAP_ROLE_SYNC,            \
                                    LAP_ROLE_FIRST, LAP_ROLE_COUNT)},                              \
    .stage_count = 1, .precisions = LAP_ROW_MMA, .chain_local = lap_chain_local

#endif
