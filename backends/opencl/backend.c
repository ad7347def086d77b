/* The opencl backend's operation table. */
#include "device/device_ops.h"

extern const lap_device_ops lap_opencl_ops;
const lap_device_ops lap_opencl_ops = {.name = "opencl"};
