/* ResNet-18 exactly as torchvision defines it, as data. No code here: net.c builds it. */
#include "net/model.h"

#define CONV(name, bn, input, residual, relu, channels, window, stride, pad)                       \
    { LAP_OP_CONV, name, bn, input, residual, relu, channels, window, stride, pad }

/* Two 3x3 convolutions around an identity shortcut. */
#define BLOCK(p, input, channels)                                                                  \
    CONV(p ".conv1", p ".bn1", input, NULL, true, channels, 3, 1, 1),                              \
        CONV(p ".conv2", p ".bn2", p ".conv1", input, true, channels, 3, 1, 1)

/* The first block of a stage halves the image; its shortcut is a 1x1/2 convolution. */
#define BLOCK_DOWN(p, input, channels)                                                             \
    CONV(p ".conv1", p ".bn1", input, NULL, true, channels, 3, 2, 1),                              \
        CONV(p ".downsample.0", p ".downsample.1", input, NULL, false, channels, 1, 2, 0),         \
        CONV(p ".conv2", p ".bn2", p ".conv1", p ".downsample.0", true, channels, 3, 1, 1)

static const lap_model_row rows[] = {
    CONV("conv1", "bn1", NULL, NULL, true, 64, 7, 2, 3),
    {LAP_OP_MAXPOOL, "maxpool", NULL, "conv1", NULL, false, 0, 3, 2, 1},
    BLOCK("layer1.0", "maxpool", 64),
    BLOCK("layer1.1", "layer1.0.conv2", 64),
    BLOCK_DOWN("layer2.0", "layer1.1.conv2", 128),
    BLOCK("layer2.1", "layer2.0.conv2", 128),
    BLOCK_DOWN("layer3.0", "layer2.1.conv2", 256),
    BLOCK("layer3.1", "layer3.0.conv2", 256),
    BLOCK_DOWN("layer4.0", "layer3.1.conv2", 512),
    BLOCK("layer4.1", "layer4.0.conv2", 512),
    {LAP_OP_AVGPOOL, "avgpool", NULL, "layer4.1.conv2", NULL, false, 0, 0, 0, 0},
    {LAP_OP_FC, "fc", NULL, "avgpool", NULL, false, 1000, 0, 0, 0},
};

const lap_model lap_model_resnet18 = {rows, sizeof rows / sizeof rows[0]};
