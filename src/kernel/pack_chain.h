/* Private to src/kernel: weight layouts of the chained rows, in the order in which the lanes of a
 * warp take them. */
#ifndef LAP_KERNEL_PACK_CHAIN_H
#define LAP_KERNEL_PACK_CHAIN_H

#include "net/op.h"

#include <stddef.h>

/* [K][C][3][3] (and the partner's [K][C2] behind it, NULL without) to, for every block of bn output
 * channels, [128 bytes of channels][quarter of them][tap][lane's words] and then [quarter][128
 * bytes of the partner's channels][lane's words]. A lane has two words of every 8 output channels:
 * what mma.sync wants as its B. The channel strides are multiples of 128 bytes and of bn, bn of
 * 16. */
size_t lap_pack_chain_bytes(const lap_op *op, const lap_op *partner, lap_precision precision);
void lap_pack_chain(const lap_op *op, const float *w, const lap_op *partner, const float *partner_w,
                    lap_precision precision, int bn, void *out);

/* [K][C <= 4][7][7] to [32 output channels][window row][32 bytes of it][lane's words]; a window row
 * is 8 pixels of 4 channels, the last of zeros. */
size_t lap_pack_chain_stem_bytes(const lap_op *op, lap_precision precision);
void lap_pack_chain_stem(const lap_op *op, const float *w, lap_precision precision, void *out);

#endif
