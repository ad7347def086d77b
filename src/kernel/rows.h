/* Private to src/kernel: the rows that rows.c lists, weight packers, and what several rows share.
 */
#ifndef LAP_KERNEL_ROWS_H
#define LAP_KERNEL_ROWS_H

#include "kernel/kernel.h"

/* rows_naive.c: one work-item per output element, both languages. */
extern const lap_kernel_row lap_row_conv_naive, lap_row_maxpool_naive, lap_row_avgpool_naive,
    lap_row_fc_naive, lap_row_dwconv_naive, lap_row_scale_naive;

/* rows_gpu.c: tiled kernels for GPUs, both languages. */
extern const lap_kernel_row lap_row_conv_igemm, lap_row_conv_igemm_ds, lap_row_conv_igemm_scale,
    lap_row_maxpool_g, lap_row_avgpool_g, lap_row_fc_igemm, lap_row_fc_g;

/* rows_gpu_fused.c: pairs of ops for GPUs, both languages. */
extern const lap_kernel_row lap_row_stem_g, lap_row_pool_fc_g;

/* rows_cpu.c: explicit vectors for CPUs, OpenCL. */
extern const lap_kernel_row lap_row_conv_direct_v, lap_row_conv_direct_scale_v,
    lap_row_conv_direct_down_v, lap_row_conv_direct_pool_v, lap_row_maxpool_v, lap_row_avgpool_v;

/* rows_depthwise.c: depthwise convolution for CPUs (OpenCL). */
extern const lap_kernel_row lap_row_conv_dw_v, lap_row_excite_v;
extern const lap_kernel_row lap_row_dwconv_v, lap_row_dwconv_pool_v;

/* rows_excite.c: depthwise, squeeze and excitation, few input channels; GPUs, both languages. */
extern const lap_kernel_row lap_row_dwconv_r, lap_row_dwconv_pool_r, lap_row_dwconv_g,
    lap_row_dwconv_pool_g, lap_row_excite_g, lap_row_conv_few_g;

/* rows_cpu_fc.c: fully connected, alone and behind the average pool, CPUs, OpenCL. */
extern const lap_kernel_row lap_row_fc_v, lap_row_avgpool_fc_v;

/* rows_winograd.c: fewer multiplications for 3x3, CPUs, OpenCL. */
extern const lap_kernel_row lap_row_conv_winograd_v, lap_row_conv_winograd_down_v,
    lap_row_conv_winograd4_v, lap_row_conv_winograd4_down_v;

/* rows_winograd_g.c: the same for GPUs, both languages. */
extern const lap_kernel_row lap_row_conv_winograd_g, lap_row_conv_winograd_down_g;

/* rows_gemm.c: through the device's GEMM library, OpenCL. */
extern const lap_kernel_row lap_row_conv_gemm, lap_row_fc_gemm;

/* rows_mma.c: tensor cores, both languages. */
extern const lap_kernel_row lap_row_conv_mma, lap_row_conv_mma_down, lap_row_conv_mma_scale,
    lap_row_conv_mma_smooth, lap_row_fc_mma;
/* rows_matrix.c: matrix instructions of AMD and Intel, OpenCL. */
extern const lap_kernel_row lap_row_conv_matrix, lap_row_conv_matrix_down;
/* rows_wgmma.c: the same by warpgroups, on full GPUs of compute capability 9.0. */
extern const lap_kernel_row lap_row_conv_wgmma, lap_row_conv_wgmma_down, lap_row_conv_wgmma_swap;
/* rows_chain.c, rows_chain_conv.c: tensor cores for small batches, a chain of steps in one launch.
 */
extern const lap_kernel_row lap_row_chain_conv, lap_row_chain_conv_down, lap_row_chain_stem_pool,
    lap_row_chain_pool_fc;
/* rows_stem.c: the first convolution on tensor cores, both languages. */
extern const lap_kernel_row lap_row_stem_mma, lap_row_stem_mma_pool;

#define LAP_ROW_FP32 (1u << LAP_FP32)
/* Precisions of tensor cores, and what plain kernels store, converting element by element. */
#define LAP_ROW_MMA (1u << LAP_TF32 | 1u << LAP_FP16 | 1u << LAP_BF16)
#define LAP_ROW_SHORT (1u << LAP_FP16 | 1u << LAP_BF16)
#define LAP_ROW_MMA_X3 (LAP_ROW_MMA | 1u << LAP_FP32X3)
#define LAP_ROW_PLAIN (LAP_ROW_FP32 | LAP_ROW_MMA)
#define LAP_ROW_STAGE_KERNEL(stem_, grid_, count_, ...)                                            \
    {                                                                                              \
        .kind = LAP_STAGE_KERNEL, .stem = (stem_), .entry = (stem_), .roles = {__VA_ARGS__},       \
        .role_count = (count_), .grid = (grid_)                                                    \
    }

/* ---- rows ----------------------------------------------------------------------------------- */

bool lap_row_accepts_all(const lap_case *c);
/* All but tf32 where the device has none: nothing may be called tf32 that no tensor core could
 * make.
 */
bool lap_row_accepts_plain(const lap_case *c);
bool lap_row_valid_all(const lap_case *c);
void lap_row_defaults_none(const lap_case *c, lap_params *params);

/* A one-dimensional grid over `items` work-items of one image, images in the second dimension,
 * which kernels walk with a stride because it may be shorter than the batch. false when a grid
 * dimension would overflow. `local` is lowered to what the device allows. */
bool lap_row_grid_linear(const lap_case *c, uint64_t items, uint32_t local, lap_grid *grid);

/* Floats in the vectors a CPU kernel is written with: 4, 8 or 16. */
int lap_row_vector_width(const lap_device_info *device);

/* Shared by the GPU rows (rows_gpu.c): whether rows for GPUs are meant for the device; the
 * largest group that it takes; whether it takes groups of that size with that much local memory;
 * whether its compilers give a thread so few registers that tiles must be small. */
bool lap_row_is_gpu(const lap_device_info *device);
uint64_t lap_row_group_most(const lap_device_info *device);
bool lap_row_group_fits(const lap_device_info *device, uint64_t threads, uint64_t local_bytes);
bool lap_row_small_registers(const lap_device_info *device);
/* Is the kernel language CUDA's, which takes local memory as an argument of the launch? */
bool lap_row_in_cuda(const lap_case *c);
/* A convolution that keeps the image's size: the taps of a tile are shifts of one line of pixels,
 * few enough for the bits of a word. */
bool lap_row_can_halo(const lap_op *op);
/* An average pool of so few pixels that every group of the classifier can make it again for itself.
 */
bool lap_row_pool_again(const lap_op *op);

/* Matrix instructions of any kind that convolutions of the precision could run on; 0 where other
 * precisions have kernels of their own (rows_matrix.c). */
unsigned lap_row_matrix_features(lap_precision precision);
/* Is the device of the vendor whose compiler may know that form of conv_matrix? */
bool lap_row_matrix_vendor(const lap_device_info *device, int form);

/* Multiprocessors guessed when the API does not tell. */
#define LAP_ROW_UNITS_UNKNOWN 32
/* Local memory of a multiprocessor of NVIDIA's large GPUs, and what each group on it takes besides
 * its own. */
#define LAP_ROW_UNIT_LOCAL 233472
#define LAP_ROW_GROUP_EXTRA 1024

/* Local memory that a group of a tensor-core kernel may have (rows_mma.c). */
uint64_t lap_row_local_limit(const lap_case *c);

/* ceil(a / b), b > 0 */
uint64_t lap_row_ceil_div(uint64_t a, uint64_t b);

/* ---- stored elements (pack.c) --------------------------------------------------------------- */

/* Bytes of a stored element of activations and packed weights. */
size_t lap_element_bytes(lap_precision precision);
/* Element i of `to`, rounded to the precision. */
void lap_element_put(lap_precision precision, void *to, size_t i, float value);

/* ---- packers (pack.c) ----------------------------------------------------------------------- */

/* [K][C][R][S] to [K][R][S][C]. */
size_t lap_pack_krsc_bytes(const lap_case *c);
void lap_pack_krsc(const lap_case *c, const lap_op_weights *weights, void *out);

/* [C][1][R][S] to [R][S][CS], zeros in the padding. */
size_t lap_pack_rsc_bytes(const lap_case *c);
void lap_pack_rsc(const lap_case *c, const lap_op_weights *weights, void *out);

/* [K][C][R][S] to [R][S][C][K]; as many bytes. */
void lap_pack_rsck(const lap_case *c, const lap_op_weights *weights, void *out);

/* [K][C][R][S] to [K/block][R][S][C][block], zeros in output channels beyond K. Blocks cover the
 * output's channel stride. */
void lap_pack_blocked(const lap_op *op, const lap_op_weights *weights, int block, void *out);

/* G g G^T of a 3x3 window for Winograd F(m x m, 3x3), edge = m + 2 = 4 or 6: edge * edge values,
 * made in double and rounded once. */
void lap_winograd_window(const float *g, int edge, float *u);

/* 3x3 windows transformed for Winograd F(m x m), m = 2 or 4: [K/block][(m+2)^2][C][block], zeros
 * beyond K. */
void lap_pack_winograd(const lap_op *op, const lap_op_weights *weights, int block, int m,
                       void *out);

#endif
