/* Operators and networks as data: shapes, work and bytes. Knows nothing of devices or kernels.
 *
 * A network is an array of ops over an array of tensors (each written by exactly one op; tensor 0
 * is the input image). FLOPs and least bytes are functions of the op, never of the kernel that runs
 * it. All counts are for ONE image; multiply by the batch.
 *
 * Layout contract for every kernel: activations are NHWC. A tensor has c logical channels, stored
 * with a channel stride cs = c rounded up to LAP_CHANNEL_ALIGN; whoever writes a tensor writes
 * zeros into channels c..cs-1. Offsets of an image (n * h * w * cs) are 64-bit; offsets inside one
 * image fit 31 bits (lap_net_build refuses larger ones).
 */
#ifndef LAP_NET_OP_H
#define LAP_NET_OP_H

#include "base/status.h"
#include <stdbool.h>
#include <stdint.h>

#define LAP_CHANNEL_ALIGN 4

typedef enum lap_precision {
    LAP_FP32 = 0, /* fp32 storage, fp32 FMA */
    LAP_FP32X3,   /* fp32-class from three fp16 products */
    LAP_TF32,
    LAP_FP16,
    LAP_BF16,
    LAP_PRECISION_COUNT
} lap_precision;

const char *lap_precision_name(lap_precision precision); /* "fp32", … */
bool lap_precision_parse(const char *name, lap_precision *out);

typedef enum lap_op_kind {
    LAP_OP_CONV = 0, /* convolution + bias [+ residual] [+ activation] */
    LAP_OP_MAXPOOL,  /* padding counts as minus infinity */
    LAP_OP_AVGPOOL,  /* global average over h and w */
    LAP_OP_FC,       /* fully connected + bias */
    LAP_OP_DWCONV,   /* depthwise convolution (a window a channel) + bias [+ activation] */
    LAP_OP_SCALE,    /* every channel times its own factor of the image, the second input */
    LAP_OP_KIND_COUNT
} lap_op_kind;

const char *lap_op_kind_name(lap_op_kind kind); /* "conv", … */

/* What an op does to each of its values at the end. */
typedef enum lap_activation {
    LAP_ACT_NONE = 0,
    LAP_ACT_RELU,
    LAP_ACT_SILU,    /* x / (1 + exp(-x)) */
    LAP_ACT_SIGMOID, /* 1 / (1 + exp(-x)) */
    LAP_ACT_COUNT
} lap_activation;

const char *lap_activation_name(lap_activation act); /* "none", "relu", … */

typedef struct lap_tensor {
    int c, h, w; /* logical shape of one image */
    int cs;      /* stored channel stride, >= c, multiple of LAP_CHANNEL_ALIGN */
} lap_tensor;

/* Elements of one image as stored (h * w * cs) and as defined (h * w * c). */
uint64_t lap_tensor_stored(const lap_tensor *tensor);
uint64_t lap_tensor_logical(const lap_tensor *tensor);

typedef struct lap_op {
    lap_op_kind kind;
    char name[48]; /* torchvision's module name: "layer1.0.conv1", "maxpool", "fc" */
    char bn[48];   /* the batch-norm module folded into it, "" if none */
    int input;     /* tensor indices */
    int output;
    int residual; /* second input: added before the activation, or SCALE's factors; -1 if none */
    lap_activation act;
    lap_tensor in, out; /* copies of the tensors' shapes */
    int r, s;        /* window height and width (CONV, DWCONV, MAXPOOL); h, w for AVGPOOL; else 1 */
    int stride, pad; /* the same in both directions */
} lap_op;

typedef struct lap_net {
    const char *model; /* "resnet18"; static text */
    int height, width;
    lap_op *ops;
    int op_count;
    lap_tensor *tensors; /* 0 is the input, the last op's output holds the logits */
    int tensor_count;
    int classes;
} lap_net;

/* Build the op and tensor arrays of a model for one image size. Errors: LAP_E_CONFIG for an unknown
 * model (lists the known ones) or a size below 32 or too large; LAP_E_NOMEM. */
lap_status lap_net_build(const char *model, int height, int width, lap_net **out, lap_error *err);
void lap_net_free(lap_net *net);
/* Known model names, NULL-terminated. */
extern const char *const lap_net_model_names[];
const char *const *lap_net_models(void);
/* The name as its authors write it: "ResNet-18"; an unknown one as it is. */
const char *lap_net_title(const char *model);

/* Work of one op on one image. */
uint64_t lap_op_macs(const lap_op *op);         /* multiply-adds: convolutions and fc only */
uint64_t lap_op_flops(const lap_op *op);        /* 2 * macs */
uint64_t lap_op_weight_count(const lap_op *op); /* weight elements, without bias */
bool lap_op_has_weights(const lap_op *op);
int lap_op_depth(const lap_op *op); /* input channels of one output: 1 for DWCONV */
/* fvcore's convention: one flop per multiply-add, 2 per batch-norm element, 1 per average-pool
 * input element; activations, addition and max-pool free. */
uint64_t lap_op_fvcore(const lap_op *op);
/* Elements of an image's input that some output needs: a 1x1 window with step 2 reads a quarter. */
uint64_t lap_op_reads(const lap_op *op);
/* Least bytes moved for a batch n: input + residual + output once per image, weights + bias once;
 * of input and weights what some output needs (on a 1x1 image a 3x3 window has one tap). Logical
 * channels, elem_bytes per element (bias 4). */
uint64_t lap_op_bytes(const lap_op *op, uint64_t n, unsigned elem_bytes);

uint64_t lap_net_macs(const lap_net *net);
uint64_t lap_net_flops(const lap_net *net);
uint64_t lap_net_fvcore(const lap_net *net);
/* Learnable parameters before folding: weights, fc bias, batch-norm scale and shift. */
uint64_t lap_net_parameters(const lap_net *net);

#endif
