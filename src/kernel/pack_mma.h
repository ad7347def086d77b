/* Private to src/kernel: weight layouts of the tensor-core rows, in the storage type of the
 * precision. */
#ifndef LAP_KERNEL_PACK_MMA_H
#define LAP_KERNEL_PACK_MMA_H

#include "net/op.h"

#include <stddef.h>

/* What conv_mma's layout depends on. */
typedef struct lap_mma_layout {
    lap_precision precision;
    int bn;    /* output channels of a block */
    int rowb;  /* bytes of a row: 64 or 128 */
    bool halo; /* taps of a chunk of channels are neighbours; otherwise chunks of a tap are */
} lap_mma_layout;

/* [K][C][R][S] (and the partner's [K][C2] behind it, NULL without) to
 * [block of bn channels][depth step][bn][rowb], zeros in all padding. The channel strides must be
 * multiples of a row's elements with halo or a partner. fp32x3: each value times its channel's
 * power of two as two halves that add up to it, 16 high ones and then their 16 low ones; behind all
 * blocks a float for each channel of them, which undoes the power. */
size_t lap_pack_mma_bytes(const lap_op *op, const lap_op *partner, const lap_mma_layout *layout);
void lap_pack_mma(const lap_op *op, const float *w, const lap_op *partner, const float *partner_w,
                  const lap_mma_layout *layout, void *out);

/* [K][C <= 4][R][S <= 8] to [block of 64 channels][R][64][8 columns][4 channels]. */
size_t lap_pack_stem_bytes(const lap_op *op, lap_precision precision);
void lap_pack_stem(const lap_op *op, const float *w, lap_precision precision, void *out);

#endif
