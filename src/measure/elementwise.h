/* The elementwise workload of the spans protocol: out = a * b, a + b, sin(a), cos(b) over two float
 * tensors, one kernel each, one after the other. Verified on the host against double precision.
 */
#ifndef LAP_MEASURE_ELEMENTWISE_H
#define LAP_MEASURE_ELEMENTWISE_H

#include "device/device.h"
#include "measure/stats.h"

enum { LAP_ELEMENTWISE_OPS = 4 };

/* Bounds in units in the last place of the correct result, by operation. mul and add are rounded
 * correctly on every device; sin and cos may be 4 off, which is what OpenCL allows and more than
 * CUDA promises. */
extern const double lap_elementwise_bound[LAP_ELEMENTWISE_OPS];
extern const char *const lap_elementwise_name[LAP_ELEMENTWISE_OPS]; /* "mul", … */

typedef struct lap_elementwise lap_elementwise;

/* Build the kernels, make the tensors of `elements` floats (1 to 2^31 - 4) and upload the inputs,
 * which are uniform in (-pi, pi) and the same on every device. Errors: LAP_E_OOM and others. */
lap_status lap_elementwise_open(lap_queue *queue, uint64_t elements, lap_elementwise **out,
                                lap_error *err);
/* Enqueue the four kernels. context is the lap_elementwise: fits lap_workload. */
lap_status lap_elementwise_run(void *context, lap_error *err);

typedef struct lap_elementwise_report {
    uint64_t compared; /* elements of each operation: all of small tensors, else evenly spread */
    double worst_ulp[LAP_ELEMENTWISE_OPS];
} lap_elementwise_report;

/* Run each operation on its own into poisoned memory and compare. LAP_E_VERIFY names operation,
 * element and values. */
lap_status lap_elementwise_check(lap_elementwise *work, lap_elementwise_report *out,
                                 lap_error *err);
void lap_elementwise_close(lap_elementwise *work); /* NULL is allowed */

#endif
