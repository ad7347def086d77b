/* Matrix multiplication by CLBlast, where the build has it; else this file holds almost nothing.
 *
 * CLBlast may run several kernels for one product (copies that pad, the product, a copy back) and
 * hands out the event of the last one only. As the last command before a record that is right. As
 * the first command after a record it would hide the kernels before it, so when a record waits for
 * its first command, a fill of 4 private bytes goes first and carries the start stamp. Such a span
 * is longer by that fill, never shorter than the product.
 */
#include "opencl.h"

#ifdef LAP_HAVE_CLBLAST

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

const char *lap_cl_gemm_name(void *device, const char **why) {
    (void)device;
    const char *missing = lap_clblast_missing();
    if (missing && why) *why = missing;
    if (missing) return NULL;
#ifdef CLBLAST_VERSION_MAJOR
    return "CLBlast " TEXT(CLBLAST_VERSION_MAJOR) "." TEXT(CLBLAST_VERSION_MINOR) "." TEXT(
        CLBLAST_VERSION_PATCH);
#else
    return "CLBlast";
#endif
}

static lap_status enqueue_start_stamp(lap_cl_queue *queue, lap_error *err) {
    lap_cl_device *device = queue->device;
    cl_uint zero = 0;
    if (!device->scratch) {
        cl_int code;
        lap_status status =
            LAP_CL(err, LAP_CL_ALLOC, "making a 4-byte buffer",
                   (device->scratch = clCreateBuffer(device->context, CL_MEM_READ_WRITE,
                                                     sizeof zero, NULL, &code),
                    code));
        if (status != LAP_OK) device->scratch = NULL;
        LAP_TRY(status);
    }
    cl_event event = NULL;
    LAP_TRY(LAP_CL(err, LAP_CL_ENQUEUE, "enqueueing a start stamp",
                   clEnqueueFillBuffer(queue->handle, device->scratch, &zero, sizeof zero, 0,
                                       sizeof zero, 0, NULL, &event)));
    lap_cl_queue_push(queue, event);
    return LAP_OK;
}

static cl_mem memory_of(void *buffer) {
    return ((lap_cl_buffer *)buffer)->memory;
}

lap_status lap_cl_gemm(void *handle, const lap_raw_gemm *gemm, lap_error *err) {
    lap_cl_queue *queue = handle;
    if (queue->pending) LAP_TRY(enqueue_start_stamp(queue, err));
    queue->device->gemm_used = true;
    cl_event event = NULL;
    CLBlastTranspose b_transpose = gemm->b_transposed ? CLBlastTransposeYes : CLBlastTransposeNo;
    lap_status status =
        LAP_CL(err, LAP_CL_ENQUEUE, "the matrix product",
               (cl_int)CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, b_transpose, gemm->m,
                                    gemm->n, gemm->k, 1.0f, memory_of(gemm->a), gemm->a_offset,
                                    gemm->lda, memory_of(gemm->b), gemm->b_offset, gemm->ldb,
                                    gemm->beta, memory_of(gemm->c), gemm->c_offset, gemm->ldc,
                                    &queue->handle, &event));
    if (status != LAP_OK) {
        lap_error_prefix(err, "gemm %zu x %zu x %zu: ", gemm->m, gemm->n, gemm->k);
        return status;
    }
    lap_cl_queue_push(queue, event);
    return LAP_OK;
}

void lap_cl_gemm_forget(lap_cl_device *device) {
    /* CLBlast keeps compiled programs by context; a later context may get the same address. */
    if (device->gemm_used) LAP_CL_IGNORE((cl_int)CLBlastClearCache());
}

#else

void lap_cl_gemm_forget(lap_cl_device *device) {
    (void)device;
}

#endif
