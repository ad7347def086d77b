/* Which precisions a device can run, by asking the list of kernels. */
#ifndef LAP_APP_PRECISIONS_H
#define LAP_APP_PRECISIONS_H

#include "device/device.h"

/* Bit mask 1u << lap_precision: set when every op of a 224x224 ResNet-18 has a kernel for it on the
 * device without a GEMM library. Opens nothing, so it says what is offered, not what compiles. */
unsigned lap_device_precisions(const lap_device_info *info);

#endif
