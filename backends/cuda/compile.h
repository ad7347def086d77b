/* Compiling CUDA C++ with NVRTC, without a device: what the backend itself uses for every kernel,
 * and what a test uses to compile all kernels on a machine that has no GPU.
 *
 * NVRTC is loaded with dlopen at first use, so the program starts without it. LAP_NVRTC=/path in
 * the environment names the library to use instead of searching.
 */
#ifndef LAP_CUDA_COMPILE_H
#define LAP_CUDA_COMPILE_H

#include "device/device.h"

/* The options of every compilation besides arch and defines. */
#define LAP_CUDA_OPTIONS "--std=c++17"

/* Compile build->source for arch: "sm_75", "sm_90a", … gives a CUBIN, "compute_90" gives PTX text
 * (terminated; *bytes counts the terminator). *image is malloc'ed, free() it; NULL and 0 on
 * failure. The entry need not exist: that shows when the image is loaded.
 * LAP_E_UNSUPPORTED when NVRTC is missing (the message names every place looked at), LAP_E_BUILD
 * with the first lines of the log when the source does not compile. */
lap_status lap_cuda_compile(const lap_build *build, const char *arch, void **image, size_t *bytes,
                            lap_error *err);

/* The arch to compile for on a device of this compute capability: its own "sm_XY" ("sm_90a" for
 * 9.0, because wgmma exists only there); on a device newer than NVRTC knows, the newest
 * "compute_XY" not above it, which the driver then finishes; LAP_E_BUILD on one that is too old. */
lap_status lap_cuda_arch(int cc_major, int cc_minor, char *arch, size_t size, lap_error *err);

/* NVRTC's version. LAP_E_UNSUPPORTED, naming every place looked at, when it is missing. path (may
 * be NULL) gets the file it was loaded from; it lives until lap_cuda_nvrtc_forget. */
lap_status lap_cuda_nvrtc_version(int *major, int *minor, const char **path, lap_error *err);

/* For tests: unload NVRTC, so that the next use looks for it again. No other thread may be
 * compiling. */
void lap_cuda_nvrtc_forget(void);

#endif
