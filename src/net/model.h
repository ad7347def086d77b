/* A model as data: what a network's table looks like. Private to src/net.
 *
 * A model is a list of rows, one an op, in execution order; the builder (net.c) gives them shapes
 * for an image size. A new network is a new table and one more line in net.c's list.
 */
#ifndef LAP_NET_MODEL_H
#define LAP_NET_MODEL_H

#include "net/op.h"

typedef struct lap_model_row {
    lap_op_kind kind;
    const char *name;     /* torchvision's module name, unique */
    const char *bn;       /* batch-norm module folded into it; NULL: the op has a bias of its own */
    const char *input;    /* name of the row whose output it reads; NULL: the image */
    const char *residual; /* name of the row whose output it adds before the activation, or whose
                                    values are SCALE's factors; NULL: none */
    lap_activation act;
    int channels;            /* output channels; 0: as many as the input has (pools) */
    int window, stride, pad; /* square window; 0 for AVGPOOL and FC, which take the whole input */
} lap_model_row;

typedef struct lap_model {
    const lap_model_row *rows;
    int row_count;
} lap_model;

extern const lap_model lap_model_resnet18, lap_model_resnet34, lap_model_resnet50,
    lap_model_efficientnet_b0;

#endif
