/* What a CUDA runtime error means here. The only place that maps codes to statuses.
 *
 * Two kinds: an error that refuses one call, after which the next call works, and one that sticks
 * to the context, after which every call fails with it. The first is cleared from the runtime's
 * memory, or a later cudaGetLastError would blame the wrong call.
 */
#include "cuda_backend.h"

#include <stdio.h>

/* Codes that the headers of the oldest toolkit we build with do not name. */
enum { CODE_CONTAINED = 226, CODE_TENSOR_MEMORY_LEAK = 721, CODE_EXTERNAL_DEVICE = 911 };

lap_status lap_cuda_status(cudaError_t code) {
    switch ((int)code) {
    case cudaSuccess:
        return LAP_OK;
    case cudaErrorMemoryAllocation:
        return LAP_E_OOM;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorStubLibrary:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
        return LAP_E_NODEVICE;
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorJitCompilationDisabled:
    case cudaErrorInvalidSource:
    case cudaErrorSharedObjectSymbolNotFound:
    case cudaErrorSharedObjectInitFailed:
    case cudaErrorSymbolNotFound:
        return LAP_E_BUILD;
    case cudaErrorNotSupported:
    case cudaErrorCallRequiresNewerDriver:
    case cudaErrorNotYetImplemented:
        return LAP_E_UNSUPPORTED;
    case cudaErrorInitializationError:
    case cudaErrorCudartUnloading:
    case cudaErrorDevicesUnavailable:
    case cudaErrorPriorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case CODE_CONTAINED:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case CODE_TENSOR_MEMORY_LEAK:
    case cudaErrorSystemNotReady:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorMpsRpcFailure:
    case cudaErrorMpsServerNotReady:
    case cudaErrorMpsClientTerminated:
    case CODE_EXTERNAL_DEVICE:
    case cudaErrorUnknown:
        return LAP_E_DEVICE;
    default:
        return LAP_E_LAUNCH;
    }
}

static const char *advice(cudaError_t code, lap_status status) {
    if (code == cudaErrorLaunchOutOfResources)
        return "; the group needs more registers or shared memory than a multiprocessor has: use a "
               "smaller group";
    if (code == cudaErrorInvalidConfiguration)
        return "; the number of groups, their size or their shared memory is out of range";
    if (code == cudaErrorDevicesUnavailable)
        return "; another process has it exclusively, or its compute mode forbids use";
    if (status == LAP_E_OOM) return "; free device memory or use a smaller batch";
    if (status == LAP_E_DEVICE)
        return "; a command may have faulted earlier: the context is lost and every later call on "
               "this device fails";
    return "";
}

lap_status lap_cuda_check(cudaError_t code, const char *call, const char *file, int line,
                          lap_error *err, const char *format, ...) {
    if (code == cudaSuccess) return LAP_OK;
    lap_status status = lap_cuda_status(code);
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    /* Harmless on a lost context: a sticky error comes back with the next call. */
    (void)cudaGetLastError();
    return lap_fail_native_at(err, status, file, line, call, (long)code, cudaGetErrorName(code),
                              "%s: %s%s", what, cudaGetErrorString(code), advice(code, status));
}

lap_status lap_cuda_use(const lap_cuda_device *device, lap_error *err) {
    return LAP_CUDA(err, cudaSetDevice(device->index), "using cuda:%d", device->index);
}

lap_status lap_cuda_not_capturing(const lap_cuda_queue *queue, const char *what, lap_error *err) {
    if (!queue->capturing) return LAP_OK;
    return LAP_FAIL(err, LAP_E_ARG,
                    "cuda:%d: %s between lap_graph_begin and lap_graph_end is not possible; end "
                    "the graph first",
                    queue->device->index, what);
}
