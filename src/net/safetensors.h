/* The safetensors format, read for one expected set of tensors and written from one. Private to
 * src/net.
 *
 * Reading checks everything before any value is used; no field of the file ever sizes an allocation
 * (the header's length is bounded by the file's size and 100 MiB).
 */
#ifndef LAP_NET_SAFETENSORS_H
#define LAP_NET_SAFETENSORS_H

#include "net/state.h"

typedef struct lap_safetensors lap_safetensors;

/* Open path and match it to state, which must outlive the result. */
lap_status lap_safetensors_open(const char *path, const lap_state *state, lap_safetensors **out,
                                lap_error *err);
/* lap_state_fetch with a lap_safetensors as its context; converts F16 and BF16 exactly; a NaN or
 * infinity is LAP_E_FORMAT. */
lap_status lap_safetensors_fetch(void *file, int index, float *out, lap_error *err);
void lap_safetensors_close(lap_safetensors *file);

/* Write all of state as F32 (counters as I64 zeros) with values from fetch. */
lap_status lap_safetensors_write(const char *path, const lap_state *state, lap_state_fetch fetch,
                                 void *context, bool force, lap_error *err);

#endif
