/* EfficientNet-B0 exactly as torchvision defines it, for inference: no dropout, no stochastic
 * depth. Data, no code: net.c builds it. */
#include "net/model.h"

#define CONV(name, bn, input, residual, act, channels, window, stride)                             \
    { LAP_OP_CONV, name, bn, input, residual, act, channels, window, stride, (window) / 2 }
#define DWCONV(name, bn, input, window, stride)                                                    \
    { LAP_OP_DWCONV, name, bn, input, NULL, LAP_ACT_SILU, 0, window, stride, (window) / 2 }

/* Squeeze and excitation of what `input` wrote: one factor a channel from the channel's mean. */
#define GATE(p, input, squeezed, channels)                                                         \
    {LAP_OP_AVGPOOL, p ".avgpool", NULL, input, NULL, LAP_ACT_NONE, 0, 0, 0, 0},                   \
        CONV(p ".fc1", NULL, p ".avgpool", NULL, LAP_ACT_SILU, squeezed, 1, 1),                    \
        CONV(p ".fc2", NULL, p ".fc1", NULL, LAP_ACT_SIGMOID, channels, 1, 1), {                   \
        LAP_OP_SCALE, p ".scale", NULL, input, p ".fc2", LAP_ACT_NONE, 0, 1, 1, 0                  \
    }

/* Without expansion: depthwise, gate, projection. */
#define FIRST(p, input, in, window, stride, squeezed, out)                                         \
    DWCONV(p ".0.0", p ".0.1", input, window, stride), GATE(p ".1", p ".0.0", squeezed, in),       \
        CONV(p ".2.0", p ".2.1", p ".1.scale", NULL, LAP_ACT_NONE, out, 1, 1)

/* Expansion, depthwise, gate, projection; shortcut is the name of the block's input, or NULL. */
#define MBCONV(p, input, shortcut, wide, window, stride, squeezed, out)                            \
    CONV(p ".0.0", p ".0.1", input, NULL, LAP_ACT_SILU, wide, 1, 1),                               \
        DWCONV(p ".1.0", p ".1.1", p ".0.0", window, stride),                                      \
        GATE(p ".2", p ".1.0", squeezed, wide),                                                    \
        CONV(p ".3.0", p ".3.1", p ".2.scale", shortcut, LAP_ACT_NONE, out, 1, 1)

static const lap_model_row rows[] = {
    CONV("features.0.0", "features.0.1", NULL, NULL, LAP_ACT_SILU, 32, 3, 2),
    FIRST("features.1.0.block", "features.0.0", 32, 3, 1, 8, 16),
    MBCONV("features.2.0.block", "features.1.0.block.2.0", NULL, 96, 3, 2, 4, 24),
    MBCONV("features.2.1.block", "features.2.0.block.3.0", "features.2.0.block.3.0", 144, 3, 1, 6,
           24),
    MBCONV("features.3.0.block", "features.2.1.block.3.0", NULL, 144, 5, 2, 6, 40),
    MBCONV("features.3.1.block", "features.3.0.block.3.0", "features.3.0.block.3.0", 240, 5, 1, 10,
           40),
    MBCONV("features.4.0.block", "features.3.1.block.3.0", NULL, 240, 3, 2, 10, 80),
    MBCONV("features.4.1.block", "features.4.0.block.3.0", "features.4.0.block.3.0", 480, 3, 1, 20,
           80),
    MBCONV("features.4.2.block", "features.4.1.block.3.0", "features.4.1.block.3.0", 480, 3, 1, 20,
           80),
    MBCONV("features.5.0.block", "features.4.2.block.3.0", NULL, 480, 5, 1, 20, 112),
    MBCONV("features.5.1.block", "features.5.0.block.3.0", "features.5.0.block.3.0", 672, 5, 1, 28,
           112),
    MBCONV("features.5.2.block", "features.5.1.block.3.0", "features.5.1.block.3.0", 672, 5, 1, 28,
           112),
    MBCONV("features.6.0.block", "features.5.2.block.3.0", NULL, 672, 5, 2, 28, 192),
    MBCONV("features.6.1.block", "features.6.0.block.3.0", "features.6.0.block.3.0", 1152, 5, 1, 48,
           192),
    MBCONV("features.6.2.block", "features.6.1.block.3.0", "features.6.1.block.3.0", 1152, 5, 1, 48,
           192),
    MBCONV("features.6.3.block", "features.6.2.block.3.0", "features.6.2.block.3.0", 1152, 5, 1, 48,
           192),
    MBCONV("features.7.0.block", "features.6.3.block.3.0", NULL, 1152, 3, 1, 48, 320),
    CONV("features.8.0", "features.8.1", "features.7.0.block.3.0", NULL, LAP_ACT_SILU, 1280, 1, 1),
    {LAP_OP_AVGPOOL, "avgpool", NULL, "features.8.0", NULL, LAP_ACT_NONE, 0, 0, 0, 0},
    {LAP_OP_FC, "classifier.1", NULL, "avgpool", NULL, LAP_ACT_NONE, 1000, 0, 0, 0},
};

const lap_model lap_model_efficientnet_b0 = {rows, sizeof rows / sizeof rows[0]};
