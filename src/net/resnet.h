/* What the ResNet tables are written with: rows of a model, block by block. Private to src/net. */
#ifndef LAP_NET_RESNET_H
#define LAP_NET_RESNET_H

#include "net/model.h"

#define CONV(name, bn, input, residual, act, channels, window, stride, pad)                        \
    { LAP_OP_CONV, name, bn, input, residual, act, channels, window, stride, pad }

#define STEM                                                                                       \
    CONV("conv1", "bn1", NULL, NULL, LAP_ACT_RELU, 64, 7, 2, 3), {                                 \
        LAP_OP_MAXPOOL, "maxpool", NULL, "conv1", NULL, LAP_ACT_NONE, 0, 3, 2, 1                   \
    }

#define HEAD(input)                                                                                \
    {LAP_OP_AVGPOOL, "avgpool", NULL, input, NULL, LAP_ACT_NONE, 0, 0, 0, 0}, {                    \
        LAP_OP_FC, "fc", NULL, "avgpool", NULL, LAP_ACT_NONE, 1000, 0, 0, 0                        \
    }

/* Two 3x3 convolutions around an identity shortcut. */
#define BLOCK(p, input, channels)                                                                  \
    CONV(p ".conv1", p ".bn1", input, NULL, LAP_ACT_RELU, channels, 3, 1, 1),                      \
        CONV(p ".conv2", p ".bn2", p ".conv1", input, LAP_ACT_RELU, channels, 3, 1, 1)

/* The first block of a stage halves the image; its shortcut is a 1x1/2 convolution. */
#define BLOCK_DOWN(p, input, channels)                                                             \
    CONV(p ".conv1", p ".bn1", input, NULL, LAP_ACT_RELU, channels, 3, 2, 1),                      \
        CONV(p ".downsample.0", p ".downsample.1", input, NULL, LAP_ACT_NONE, channels, 1, 2, 0),  \
        CONV(p ".conv2", p ".bn2", p ".conv1", p ".downsample.0", LAP_ACT_RELU, channels, 3, 1, 1)

/* 1x1, 3x3, 1x1 with four times the channels, around an identity shortcut. */
#define BOTTLENECK(p, input, width)                                                                \
    CONV(p ".conv1", p ".bn1", input, NULL, LAP_ACT_RELU, width, 1, 1, 0),                         \
        CONV(p ".conv2", p ".bn2", p ".conv1", NULL, LAP_ACT_RELU, width, 3, 1, 1),                \
        CONV(p ".conv3", p ".bn3", p ".conv2", input, LAP_ACT_RELU, 4 * (width), 1, 1, 0)

/* The first of a stage: the 3x3 convolution takes the step (torchvision's layout, "v1.5"), and the
 * shortcut is a 1x1 convolution with the same step. */
#define BOTTLENECK_FIRST(p, input, width, stride)                                                  \
    CONV(p ".conv1", p ".bn1", input, NULL, LAP_ACT_RELU, width, 1, 1, 0),                         \
        CONV(p ".conv2", p ".bn2", p ".conv1", NULL, LAP_ACT_RELU, width, 3, stride, 1),           \
        CONV(p ".downsample.0", p ".downsample.1", input, NULL, LAP_ACT_NONE, 4 * (width), 1,      \
             stride, 0),                                                                           \
        CONV(p ".conv3", p ".bn3", p ".conv2", p ".downsample.0", LAP_ACT_RELU, 4 * (width), 1, 1, \
             0)

#endif
