/* Private to src/kernel: weight layouts of the GPU rows. Every function writes all its bytes, zeros
 * in the padding. */
#ifndef LAP_KERNEL_PACK_GPU_H
#define LAP_KERNEL_PACK_GPU_H

#include "net/op.h"

#include <stddef.h>

/* [K][C][R][S] to [R][S][CS] x [K], depth rounded up to depth_multiple, K (its stride) to
 * k_multiple, in the precision's storage type: the right-hand matrix of an implicit matrix product.
 */
typedef struct lap_depth_k_layout {
    lap_precision precision;
    size_t depth_multiple, k_multiple;
} lap_depth_k_layout;
size_t lap_pack_depth_k_bytes(const lap_op *op, const lap_depth_k_layout *layout);
void lap_pack_depth_k(const lap_op *op, const lap_depth_k_layout *layout, const float *w,
                      void *out);

/* 3x3 windows transformed for Winograd F(2x2): [K/width][CS/slice][16][slice][width], K (its
 * stride) rounded up to width; slice divides CS. */
size_t lap_pack_winograd_g_bytes(const lap_op *op, size_t width);
void lap_pack_winograd_g(const lap_op *op, size_t slice, size_t width, const float *w, float *out);

/* [K][C][R][S] to [R][C][S][K], K (its stride) rounded up to k_multiple. */
size_t lap_pack_rcs_k_bytes(const lap_op *op, size_t k_multiple);
void lap_pack_rcs_k(const lap_op *op, size_t k_multiple, const float *w, float *out);

/* [K][C] to [KS][CS], in the precision's storage type. */
size_t lap_pack_ks_cs_bytes(const lap_op *op, lap_precision precision);
void lap_pack_ks_cs(const lap_op *op, lap_precision precision, const float *w, void *out);

#endif
