/* Pinned host memory: OpenCL has none by name. A buffer made with CL_MEM_ALLOC_HOST_PTR and mapped
 * for as long as it lives is what drivers back with page-locked memory; on CPUs it is plain memory.
 */
#include "opencl.h"

#include <stdlib.h>

typedef struct lap_cl_pinned {
    cl_command_queue queue; /* its own: mapping needs one, and the caller's may be busy */
    cl_mem memory;
    void *data;
} lap_cl_pinned;

static lap_status make(lap_cl_device *device, size_t bytes, lap_cl_pinned *p, lap_error *err) {
    cl_int code;
    LAP_TRY(LAP_CL(err, LAP_CL_OPEN, "making a queue for pinned memory",
                   (p->queue = clCreateCommandQueue(device->context, device->id, 0, &code), code)));
    LAP_TRY(
        LAP_CL(err, LAP_CL_ALLOC, "making pinned memory",
               (p->memory = clCreateBuffer(
                    device->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code),
                code)));
    return LAP_CL(
        err, LAP_CL_ALLOC, "mapping pinned memory",
        (p->data = clEnqueueMapBuffer(p->queue, p->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                      bytes, 0, NULL, NULL, &code),
         code));
}

lap_status lap_cl_pinned_new(void *device, size_t bytes, void **pinned, void **data,
                             lap_error *err) {
    *pinned = *data = NULL;
    lap_cl_pinned *p = calloc(1, sizeof *p);
    if (!p) return LAP_FAIL(err, LAP_E_NOMEM, "making pinned memory: no memory");
    lap_status status = make(device, bytes, p, err);
    if (status != LAP_OK) {
        lap_error_prefix(err, "pinning %zu bytes of host memory: ", bytes);
        lap_cl_pinned_free(p);
        return status;
    }
    *pinned = p;
    *data = p->data;
    return LAP_OK;
}

void lap_cl_pinned_free(void *pinned) {
    lap_cl_pinned *p = pinned;
    if (!p) return;
    if (p->data) {
        LAP_CL_IGNORE(clEnqueueUnmapMemObject(p->queue, p->memory, p->data, 0, NULL, NULL));
        LAP_CL_IGNORE(clFinish(p->queue));
    }
    if (p->memory) LAP_CL_IGNORE(clReleaseMemObject(p->memory));
    if (p->queue) LAP_CL_IGNORE(clReleaseCommandQueue(p->queue));
    free(p);
}
