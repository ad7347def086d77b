/* Steps that one launch runs one after another (chain): what a row of the kernel list tells of
 * its op. The kernels have the same words in the same order. */
#ifndef LAP_KERNEL_CHAIN_H
#define LAP_KERNEL_CHAIN_H

#include <stdint.h>

#define LAP_CHAIN_WORDS 32
#define LAP_CHAIN_PIECE 16 /* bytes that offsets count */
#define LAP_CHAIN_SYNC_BYTES 64
#define LAP_CHAIN_SYNC_FAILED 2 /* word of sync that is not 0 once a barrier has given up */

typedef enum lap_chain_word {
    /* The plan's: places of tensors, of weights, and LAP_FLAG_*. */
    LAP_CHAIN_IN = 0,
    LAP_CHAIN_OUT,
    LAP_CHAIN_SECOND,
    LAP_CHAIN_WEIGHTS,
    LAP_CHAIN_BIAS,
    LAP_CHAIN_FLAGS,
    /* The row's. */
    LAP_CHAIN_KIND,
    LAP_CHAIN_ITEMS,
    LAP_CHAIN_COLUMNS,
    LAP_CHAIN_ROWS,
    LAP_CHAIN_PIXELS,
    LAP_CHAIN_OUT_W,
    LAP_CHAIN_OUT_C,
    LAP_CHAIN_IN_H,
    LAP_CHAIN_IN_W,
    LAP_CHAIN_IN_BYTES,
    LAP_CHAIN_STEP,
    LAP_CHAIN_LINES,
    LAP_CHAIN_PHASES,
    LAP_CHAIN_BUFFERS,
    LAP_CHAIN_TAILS,
    LAP_CHAIN_SECOND_IMAGE,
    LAP_CHAIN_SECOND_W,
    LAP_CHAIN_SECOND_BYTES,
    LAP_CHAIN_SECOND_STEP,
    LAP_CHAIN_IMAGES,
    LAP_CHAIN_SPLITS,
    LAP_CHAIN_SCRATCH, /* the plan's */
    LAP_CHAIN_TILES,
    /* The stem's own meaning of two of them: the convolution's size before the pool. */
    LAP_CHAIN_CONV_H = LAP_CHAIN_LINES,
    LAP_CHAIN_CONV_W = LAP_CHAIN_PHASES
} lap_chain_word;

#endif
