/* The cuda backend's operation table. */
#include "device/device_ops.h"

extern const lap_device_ops lap_cuda_ops;
const lap_device_ops lap_cuda_ops = {.name = "cuda"};
