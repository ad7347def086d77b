/* Kernels as data: THE list of kernel rows, fastest first, the naive one last.
 *
 * A row says which ops and devices it accepts, which parameters it has and what they may be, how to
 * pack an op's weights for it, and the launches ("stages") that make up one op. Everything that
 * chooses, builds, tunes, checks or reports kernels works from this list.
 *
 * Parameters are small integers with a name; every one becomes a -D define of the row's kernels, as
 * do the op's geometry (see lap_kernel_defines). The batch is never a define.
 */
#ifndef LAP_KERNEL_KERNEL_H
#define LAP_KERNEL_KERNEL_H

#include "device/device.h"
#include "net/op.h"
#include "net/weights.h"

#define LAP_MAX_TUNABLES 12
#define LAP_MAX_VALUES 12
#define LAP_MAX_STAGES 4
#define LAP_MAX_ROLES 12
#define LAP_MAX_DEFINES 40

typedef struct lap_tunable {
    const char *name; /* the define's name: "BM", "PIXELS" */
    int value_count;
    int values[LAP_MAX_VALUES]; /* the declared space */
} lap_tunable;

typedef struct lap_params {
    int value[LAP_MAX_TUNABLES]; /* parallel to the row's tunables */
} lap_params;

/* The element type T of tensors and packed weights follows the precision: float for fp32 and tf32,
 * IEEE half for fp16, bfloat16 for bf16, float for fp32x3, which kernels split as they load it. The
 * network's last output (the logits) is float in every precision, and so are biases.
 *
 * What a kernel argument is. The order in a stage's role list is the argument order in both
 * languages; a test holds the sources to it. */
typedef enum lap_role {
    LAP_ROLE_IN = 0,   /* const T *  input tensor */
    LAP_ROLE_OUT,      /* T *        output tensor */
    LAP_ROLE_OUT2,     /* T *        means beside the output (LAP_FUSE_POOL, LAP_FUSE_EXPAND) */
    LAP_ROLE_RESIDUAL, /* const T *  residual tensor, null if the op has none */
    LAP_ROLE_IN2, /* const T *  the partner's input (LAP_FUSE_DOWNSAMPLE); SCALE's factors, alone
                     and with LAP_FUSE_SCALE */
    LAP_ROLE_WEIGHTS, /* const T *  packed weights */
    LAP_ROLE_BIAS,    /* const float *, padded with zeros to the output's cs; the sum of both with
                         LAP_FUSE_DOWNSAMPLE, the layer's with LAP_FUSE_FC, op's and then the
                         partner's with LAP_FUSE_EXCITE and LAP_FUSE_EXPAND */
    LAP_ROLE_SCRATCH, /* float *    scratch memory of this op */
    LAP_ROLE_N,       /* int        images in the batch */
    LAP_ROLE_FLAGS,   /* int        LAP_FLAG_* */
    /* Of rows with chain: several steps in one launch (kernel/chain.h). */
    LAP_ROLE_MEMORY,     /* char *       every tensor of the plan */
    LAP_ROLE_PARAMETERS, /* const char * weights and biases of the plan's chained steps */
    LAP_ROLE_TABLE,      /* const int *  LAP_CHAIN_WORDS words a step */
    LAP_ROLE_SYNC,       /* void *       LAP_CHAIN_SYNC_BYTES, zeros before the first launch */
    LAP_ROLE_FIRST,      /* int          index in the table */
    LAP_ROLE_COUNT       /* int          steps; < 0: only the barrier, -count times */
} lap_role;

#define LAP_FLAG_RELU 1
#define LAP_FLAG_RESIDUAL 2 /* residual is not null and is added before the activation */

/* Two ops that one row computes without storing the tensor between them. */
typedef enum lap_fusion {
    LAP_FUSE_NONE = 0,
    LAP_FUSE_MAXPOOL, /* op: convolution; partner: the max-pool behind it, whose output is written
                       */
    LAP_FUSE_DOWNSAMPLE, /* op: convolution; partner: the 1x1 convolution whose output is its
                            residual; the partner's input is LAP_ROLE_IN2, there is no residual to
                            read */
    LAP_FUSE_FC,         /* op: average pool; partner: the fully connected layer behind it */
    LAP_FUSE_POOL,       /* op: depthwise convolution; partner: the average pool of its output; both
                            outputs are written */
    LAP_FUSE_EXCITE,     /* op: 1x1 convolution on a single pixel; partner: another one behind it */
    LAP_FUSE_SCALE,      /* op: 1x1 convolution; partner: the SCALE that makes its input, whose own
                            input is LAP_ROLE_IN and whose factors are LAP_ROLE_IN2 */
    LAP_FUSE_EXPAND, /* op: 1x1 convolution; partner: the depthwise one behind it, whose output is
                        written, and the means of its channels beside it */
    LAP_FUSE_COUNT
} lap_fusion;

/* The op whose output a step writes in the end: the partner, where it comes behind op. */
bool lap_fusion_partner_writes(lap_fusion fusion);
/* Both have weights and the partner comes behind op: the biases are op's, then the partner's. */
bool lap_fusion_two_layers(lap_fusion fusion);
/* The partner comes before op in the network. */
bool lap_fusion_partner_first(lap_fusion fusion);

/* Matrix instructions of a precision run on the device in its kernel language (probe.h). */
#define LAP_FEATURE_MMA(precision) (1u << (precision))
/* So do the warpgroup instructions of NVIDIA compute capability 9.0, in OpenCL. */
#define LAP_FEATURE_WGMMA(precision) (1u << (8 + (precision)))
/* Forms of conv_matrix's instructions (1 to 4: its FORM), of which a device has one at most. */
#define LAP_MATRIX_FORMS 4
#define LAP_FEATURE_MATRIX(form, precision) (1u << (15 + 2 * (form) + ((precision) == LAP_BF16)))
/* Kernels may declare info->local_optin_bytes of local memory, more than the driver lists. */
#define LAP_FEATURE_LARGE_LOCAL (1u << 16)

/* One choice of work: op, device, batch, parameters. What every function of a row is given. */
typedef struct lap_case {
    const lap_op *op;
    lap_fusion fusion;
    const lap_op *partner; /* NULL without fusion */
    const lap_device_info *device;
    lap_precision precision;
    unsigned features; /* LAP_FEATURE_* that test kernels have shown the device to have */
    uint64_t n;        /* batch */
    lap_params params;
} lap_case;

typedef enum lap_stage_kind { LAP_STAGE_KERNEL = 0, LAP_STAGE_GEMM } lap_stage_kind;

typedef struct lap_grid {
    uint32_t groups[3], local[3];
    size_t dynamic_local_bytes;
} lap_grid;

typedef struct lap_stage {
    lap_stage_kind kind;
    const char *stem;  /* KERNEL: kernels_cl/<stem>.cl and kernels_cu/<stem>.cu */
    const char *entry; /* KERNEL: function name in both */
    lap_role roles[LAP_MAX_ROLES];
    int role_count;
    /* KERNEL: fills the grid; false when the case does not fit the grid's limits. */
    bool (*grid)(const lap_case *c, lap_grid *grid);
    /* GEMM: fills sizes and leading dimensions; the operands' roles are roles[0..2] = A, B, C. */
    void (*gemm)(const lap_case *c, lap_gemm *gemm);
} lap_stage;

typedef struct lap_kernel_row {
    const char *id;      /* stable name in results: "conv_direct_v" */
    const char *about;   /* one line */
    lap_op_kind kind;    /* of op */
    lap_fusion fusion;   /* which pair it computes; LAP_FUSE_NONE: op alone */
    unsigned precisions; /* bit mask 1u << lap_precision */
    bool naive;          /* the last resort of its kind; chosen by kernels = naive */
    bool variant;        /* never chosen automatically, only by id */
    const char *only;    /* language it exists in ("cl"), NULL for both */
    bool needs_gemm;     /* the device must have a GEMM library */
    bool smooth;         /* knows SiLU and sigmoid (the define ACT); all rows know ReLU (a flag) */
    /* 0: sums and products of the op only, so small integers give exact results. Otherwise the row
     * computes by way of other numbers (Winograd F(4x4)): checks take the rounding bound for
     * integers too, and that bound is this many times as wide. */
    int error_factor;
    lap_tunable tunables[LAP_MAX_TUNABLES];
    int tunable_count;
    lap_stage stages[LAP_MAX_STAGES];
    int stage_count;
    /* Can this row run the op on the device at all, and is it meant to be chosen there? Cheap. */
    bool (*accepts)(const lap_case *c);
    /* Default parameters for the case (c->params is ignored). */
    void (*defaults)(const lap_case *c, lap_params *params);
    /* Is this parameter vector allowed? Defaults always are. */
    bool (*valid)(const lap_case *c);
    /* Packed weights; NULL for ops without weights. pack writes exactly packed_bytes. */
    size_t (*packed_bytes)(const lap_case *c);
    void (*pack)(const lap_case *c, const lap_op_weights *weights, void *out);
    /* Instead of pack where fusion is not LAP_FUSE_NONE. */
    void (*pack_fused)(const lap_case *c, const lap_op_weights *weights,
                       const lap_op_weights *partner, void *out);
    /* Scratch bytes for the batch c->n; NULL means none. */
    uint64_t (*scratch_bytes)(const lap_case *c);
    /* The scratch starts as zeros, is this op's alone, and every run leaves the zeros it relies on.
     * Without it the scratch holds garbage and is shared with other ops. */
    bool scratch_zeroed;
    /* Set: neighbouring steps with such rows are one launch, whose groups wait for each other and
     * must be resident together. chain fills the row's words of the step (kernel/chain.h); the
     * kernel's defines are LOCAL (chain_local) and PRECISION alone, so that all share it, and the
     * row's tunables are in the words. */
    void (*chain)(const lap_case *c, int32_t *words);
    int (*chain_local)(const lap_case *c);
} lap_kernel_row;

/* The list, fastest first within each op kind. */
const lap_kernel_row *const *lap_kernel_rows(size_t *count);

/* The row of that id, variants too; NULL when there is none. */
const lap_kernel_row *lap_kernel_find(const char *id);

/* Kind, precision, language and GEMM library match and the row accepts the case. Where the device
 * has fp32x3, rows of fp32 run in it too. */
bool lap_kernel_can_run(const lap_kernel_row *row, const lap_case *c, bool has_gemm);

/* First row whose kind, precision and language match and that accepts the case; with naive_only the
 * naive one. Fills c->params with its defaults. NULL when there is none. */
const lap_kernel_row *lap_kernel_choose(lap_case *c, bool naive_only, bool has_gemm);

/* Text of kernels_<language>/<stem>.<language>, embedded at build time; NULL if there is none. */
const char *lap_kernel_source(const char *language, const char *stem);
/* All embedded sources, for tests: returns false past the end. */
bool lap_kernel_source_at(size_t index, const char **language, const char **stem,
                          const char **text);

/* The complete define list of a row on a case, in a fixed order. Geometry, where the kind has it:
 *   C CS       input channels, channel stride         (all)
 *   H W        input height, width                    (all but FC)
 *   K KS       output channels, channel stride        (CONV, FC, DWCONV)
 *   P Q R S STRIDE PAD   output height, width, window (CONV, DWCONV, MAXPOOL)
 *   POOL_P POOL_Q POOL_R POOL_STRIDE POOL_PAD   the pool's output and window (LAP_FUSE_MAXPOOL)
 *   C2 CS2 H2 W2 STRIDE2                        the partner's input and step (LAP_FUSE_DOWNSAMPLE)
 *   K KS                                        of the layer (LAP_FUSE_FC)
 *   K2 KS2 ACT2   the partner's output and activation (LAP_FUSE_EXCITE)
 *   SCALED        1 with LAP_FUSE_SCALE
 *   P2 Q2 R2 S2 STRIDE2 PAD2 ACT2   the partner's output, window and activation (LAP_FUSE_EXPAND)
 *   ACT           op's activation where it is SiLU or sigmoid (the lap_activation value)
 *
 * Then the row's parameters by name, then PRECISION (the lap_precision value; fp32 where a row of
 * fp32 serves fp32x3). A row with chain has LOCAL and PRECISION alone. Returns the count; out has
 * room for LAP_MAX_DEFINES. */
size_t lap_kernel_defines(const lap_kernel_row *row, const lap_case *c, lap_define *out);

/* "PIXELS=14 BLOCKS=2"; "" for a row without parameters. */
void lap_kernel_params_text(const lap_kernel_row *row, const lap_params *params, char *buffer,
                            size_t size);

#endif
