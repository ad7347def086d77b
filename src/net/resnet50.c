/* ResNet-50 exactly as torchvision defines it, as data. No code here: net.c builds it. */
#include "net/resnet.h"

static const lap_model_row rows[] = {
    STEM,
    BOTTLENECK_FIRST("layer1.0", "maxpool", 64, 1),
    BOTTLENECK("layer1.1", "layer1.0.conv3", 64),
    BOTTLENECK("layer1.2", "layer1.1.conv3", 64),
    BOTTLENECK_FIRST("layer2.0", "layer1.2.conv3", 128, 2),
    BOTTLENECK("layer2.1", "layer2.0.conv3", 128),
    BOTTLENECK("layer2.2", "layer2.1.conv3", 128),
    BOTTLENECK("layer2.3", "layer2.2.conv3", 128),
    BOTTLENECK_FIRST("layer3.0", "layer2.3.conv3", 256, 2),
    BOTTLENECK("layer3.1", "layer3.0.conv3", 256),
    BOTTLENECK("layer3.2", "layer3.1.conv3", 256),
    BOTTLENECK("layer3.3", "layer3.2.conv3", 256),
    BOTTLENECK("layer3.4", "layer3.3.conv3", 256),
    BOTTLENECK("layer3.5", "layer3.4.conv3", 256),
    BOTTLENECK_FIRST("layer4.0", "layer3.5.conv3", 512, 2),
    BOTTLENECK("layer4.1", "layer4.0.conv3", 512),
    BOTTLENECK("layer4.2", "layer4.1.conv3", 512),
    HEAD("layer4.2.conv3"),
};

const lap_model lap_model_resnet50 = {rows, sizeof rows / sizeof rows[0]};
