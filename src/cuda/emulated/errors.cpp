/* errors.cpp: the names and texts of errors, the last error of each thread, and the check at the
 * start of every call. */
#include "runtime.h"

#include <stdio.h>

namespace emulated {
namespace {
thread_local cudaError_t last_error = cudaSuccess;
}

cudaError_t set_last_error(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t enter() {
  int n = device_count(); /* starts the runtime */
  if (unloading()) return cudaErrorCudartUnloading;
  if (settings().driver != Driver::PRESENT) return cudaErrorInsufficientDriver;
  if (n == 0) return cudaErrorNoDevice;
  return device_error(device(current_device()));
}

cudaError_t error_of(lt_EmulatedFault fault) {
  switch (fault) {
  case LT_EMULATED_OK:
  case LT_EMULATED_STOPPED:
    return cudaSuccess;
  case LT_EMULATED_ADDRESS:
    return cudaErrorIllegalAddress;
  case LT_EMULATED_FAILURE:
    break;
  case LT_EMULATED_ASSERTION:
    return cudaErrorAssert;
  case LT_EMULATED_INSTRUCTION:
    return cudaErrorIllegalInstruction;
  case LT_EMULATED_TIMEOUT:
    return cudaErrorLaunchTimeout;
  case LT_EMULATED_NO_MEMORY:
    return cudaErrorMemoryAllocation;
  case LT_EMULATED_UNLOADING:
    return cudaErrorCudartUnloading;
  }
  return cudaErrorLaunchFailure;
}

} // namespace emulated

using namespace emulated;

/* Returns the sticky error of the current device, or the last error of this thread. */
static cudaError_t current_error() {
  if (device_count() > 0 && !unloading()) {
    cudaError_t sticky = device_error(device(current_device()));
    if (sticky != cudaSuccess) return sticky;
  }
  return last_error;
}

cudaError_t cudaPeekAtLastError(void) { return current_error(); }

cudaError_t cudaGetLastError(void) {
  cudaError_t error = current_error();
  last_error = cudaSuccess;
  return error;
}

#define ERRORS(X)                                                                                  \
  X(cudaSuccess, "no error")                                                                       \
  X(cudaErrorInvalidValue, "invalid argument")                                                     \
  X(cudaErrorMemoryAllocation, "out of memory")                                                    \
  X(cudaErrorInitializationError, "initialization error")                                          \
  X(cudaErrorCudartUnloading, "driver shutting down")                                              \
  X(cudaErrorInvalidConfiguration, "invalid configuration argument")                               \
  X(cudaErrorInvalidPitchValue, "invalid pitch argument")                                          \
  X(cudaErrorInvalidSymbol, "invalid device symbol")                                               \
  X(cudaErrorInvalidDevicePointer, "invalid device pointer")                                       \
  X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                          \
  X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version")   \
  X(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable")              \
  X(cudaErrorInvalidDeviceFunction, "invalid device function")                                     \
  X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                       \
  X(cudaErrorInvalidDevice, "invalid device ordinal")                                              \
  X(cudaErrorInvalidKernelImage, "device kernel image is invalid")                                 \
  X(cudaErrorDeviceUninitialized, "invalid device context")                                        \
  X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device")   \
  X(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                              \
  X(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")      \
  X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                     \
  X(cudaErrorIllegalState, "the operation cannot be performed in the present state")               \
  X(cudaErrorSymbolNotFound, "named symbol not found")                                             \
  X(cudaErrorNotReady, "device not ready")                                                         \
  X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                           \
  X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                      \
  X(cudaErrorLaunchTimeout, "the launch timed out and was terminated")                             \
  X(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                           \
  X(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                             \
  X(cudaErrorContextIsDestroyed, "context is destroyed")                                           \
  X(cudaErrorAssert, "device-side assert triggered")                                               \
  X(cudaErrorHostMemoryAlreadyRegistered,                                                          \
    "part or all of the requested memory range is already mapped")                                 \
  X(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region") \
  X(cudaErrorHardwareStackError, "hardware stack error")                                           \
  X(cudaErrorIllegalInstruction, "an illegal instruction was encountered")                         \
  X(cudaErrorMisalignedAddress, "misaligned address")                                              \
  X(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space")        \
  X(cudaErrorInvalidPc, "invalid program counter")                                                 \
  X(cudaErrorLaunchFailure, "unspecified launch failure")                                          \
  X(cudaErrorNotPermitted, "operation not permitted")                                              \
  X(cudaErrorNotSupported, "operation not supported")                                              \
  X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")         \
  X(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture")  \
  X(cudaErrorStreamCaptureMerge,                                                                   \
    "operation would result in a merge of separate capture sequences")                             \
  X(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")       \
  X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                          \
  X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")    \
  X(cudaErrorStreamCaptureImplicit,                                                                \
    "operation would make the legacy stream depend on a capturing blocking stream")                \
  X(cudaErrorCapturedEvent,                                                                        \
    "operation not permitted on an event last recorded in a capturing stream")                     \
  X(cudaErrorStreamCaptureWrongThread,                                                             \
    "attempt to terminate a thread-local capture sequence from another thread")                    \
  X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define X(name, text)                                                                              \
  case name:                                                                                       \
    return #name;
    ERRORS(X)
#undef X
  }
  return "unrecognized error code";
}

static const char *text_of(cudaError_t error) {
  switch (error) {
#define X(name, text)                                                                              \
  case name:                                                                                       \
    return text;
    ERRORS(X)
#undef X
  }
  return "unrecognized error code";
}

/* Also describes where a kernel failed, which the real runtime cannot. */
const char *cudaGetErrorString(cudaError_t error) {
  bool kernel = error == cudaErrorIllegalAddress || error == cudaErrorLaunchTimeout ||
                error == cudaErrorLaunchFailure;
  const char *fault = kernel ? last_fault() : "";
  if (!*fault) return text_of(error);
  static thread_local char text[400];
  snprintf(text, sizeof text, "%s (emulated: %s)", text_of(error), fault);
  return text;
}
