/* ResNet-18 exactly as torchvision defines it, as data. No code here: net.c builds it. */
#include "net/resnet.h"

static const lap_model_row rows[] = {
    STEM,
    BLOCK("layer1.0", "maxpool", 64),
    BLOCK("layer1.1", "layer1.0.conv2", 64),
    BLOCK_DOWN("layer2.0", "layer1.1.conv2", 128),
    BLOCK("layer2.1", "layer2.0.conv2", 128),
    BLOCK_DOWN("layer3.0", "layer2.1.conv2", 256),
    BLOCK("layer3.1", "layer3.0.conv2", 256),
    BLOCK_DOWN("layer4.0", "layer3.1.conv2", 512),
    BLOCK("layer4.1", "layer4.0.conv2", 512),
    HEAD("layer4.1.conv2"),
};

const lap_model lap_model_resnet18 = {rows, sizeof rows / sizeof rows[0]};
