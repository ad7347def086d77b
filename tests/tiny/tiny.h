/* A network of a few hundred values that has every kind of op, a residual and padding channels, for
 * tests that run a whole case thousands of times. Not for accuracy: its weights mean nothing. */
#ifndef TINY_H
#define TINY_H

#include "check/check.h"

#define TINY_MODEL "tiny"
enum { TINY_SIDE = 8, TINY_CLASSES = 10, TINY_OPS = 7 };

/* conv1, maxpool, conv2, conv3 (+ maxpool's output), proj (1x1, no ReLU), avgpool, fc. */
lap_net *tiny_net(void);
lap_weights *tiny_weights(const lap_net *net);
void tiny_expected(const lap_net *net, const lap_weights *weights, size_t count, lap_expected *out);

#endif
