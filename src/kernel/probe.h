/* What a device can really do, found by building and running a small kernel: lists of extensions
 * and version numbers are no evidence (NVIDIA's OpenCL runs matrix instructions that no extension
 * names).
 */
#ifndef LAP_KERNEL_PROBE_H
#define LAP_KERNEL_PROBE_H

#include "kernel/kernel.h"

/* Runs one matrix product of small integers on the queue through the instructions that the
 * tensor-core kernels of that precision are made of, and compares all its elements. LAP_OK: right.
 * LAP_E_BUILD, LAP_E_UNSUPPORTED: the device has none, err says why; LAP_E_VERIFY: it computed
 * something else. Another status: the device failed. */
lap_status lap_probe_mma(lap_queue *queue, lap_precision precision, lap_error *err);

/* The same through the warpgroup instructions of NVIDIA compute capability 9.0, in OpenCL, whose
 * compiler has to be led to them (kernels_cl/probe_wgmma.cl). */
lap_status lap_probe_wgmma(lap_queue *queue, lap_precision precision, lap_error *err);

/* Runs two small convolutions, with a stored residual and with one made by its 1x1 convolution,
 * through conv_matrix of that form (its FORM) and compares all their elements. As lap_probe_mma. */
lap_status lap_probe_matrix(lap_queue *queue, lap_precision precision, int form, lap_error *err);
/* Is the device of the vendor whose compiler may know that form? Others are never shown it. */
bool lap_probe_matrix_of(const lap_device_info *device, int form);

/* Fills and reads back all of info->local_optin_bytes of declared local memory in more groups than
 * there are multiprocessors. LAP_OK: it is there. LAP_E_BUILD, LAP_E_LAUNCH, LAP_E_OOM,
 * LAP_E_UNSUPPORTED, LAP_E_VERIFY: it is not, err says why. Another status: the device failed. */
lap_status lap_probe_local(lap_queue *queue, lap_error *err);

#endif
